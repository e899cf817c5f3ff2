"""Made-up labels on the unit interval that hold the Tsybakov noise condition with a known
exponent, and no better."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from secretballot._typing import FloatArray, IntArray
from secretballot._validation import check_count, check_finite, check_positive, shown
from secretballot.exceptions import DataError, Parameter, ParameterError


@dataclass(frozen=True)
class TsybakovThresholds:
    """Uniform points on [0, 1] whose labels are the noisier the nearer they are to a threshold t.

    The best classifier is 1[x >= t]. At distance z from t the probability r(x) of label 1 has |2
    r(x) - 1| = (1 - 2 noise) min(1, z / scale)^((1 - tau) / tau), times `left_margin` to the left
    of t.

    So P(|r(x) - 1/2| <= s) is proportional to s^(tau / (1 - tau)) for small s (Liu et al. 2021,
    Definition 3), and a threshold at distance z <= scale has the excess error (1 - 2 noise) tau
    scale (z / scale)^(1 / tau), times `left_margin` on the left: the condition P(h != h*) <= eta
    excess^tau of their Lemma 4 is an equality, and holds for no larger exponent.

    Attributes
    ----------
    tau : float
        Exponent, above 0, at most 1. At 1 the labels' noise is the same everywhere (Massart).
    threshold : float
        t, above 0, below 1.
    scale : float
        Distance from t at which the noise has come down to `noise`, positive; not read at tau = 1.
    noise : float
        Probability, from 0 to below 0.5, that the label of a point far from t is flipped.
    left_margin : float
        Above 0, at most 1. Below 1 the two sides differ; then learners of few records err more
        often to the left, all alike, and no vote among them fixes it.

    Raises
    ------
    ParameterError
        If a number is out of its range.

    Examples
    --------
    >>> points = sb.datasets.TsybakovThresholds(tau=0.5)
    >>> points.probability([0.25, 0.5, 0.75]).tolist()
    [0.25, 0.5, 0.75]
    >>> points.bayes_error
    0.25
    """

    tau: float
    threshold: float = 0.5
    scale: float = 0.5
    noise: float = 0.0
    left_margin: float = 1.0

    def __post_init__(self) -> None:
        check_positive("scale", self.scale)
        if not check_positive("tau", self.tau) <= 1:
            raise ParameterError(
                Parameter("tau"), f" is {shown(self.tau)}; it must be above 0 and at most 1."
            )
        if not 0 < check_finite("threshold", self.threshold) < 1:
            raise ParameterError(
                Parameter("threshold"),
                f" is {shown(self.threshold)}; it must lie strictly between 0 and 1.",
            )
        if not 0 <= check_finite("noise", self.noise) < 0.5:
            raise ParameterError(
                Parameter("noise"),
                f" is {shown(self.noise)}; it must be at least 0 and less than 0.5.",
            )
        if not check_positive("left_margin", self.left_margin) <= 1:
            raise ParameterError(
                Parameter("left_margin"),
                f" is {shown(self.left_margin)}; it must be above 0 and at most 1.",
            )

    def probability(self, x: npt.ArrayLike) -> FloatArray:
        """Return the probability of label 1 at points of [0, 1], in the shape given."""
        z = np.asarray(x, dtype=np.float64) - self.threshold
        margin = np.minimum(np.abs(z) / self.scale, 1) ** ((1 - self.tau) / self.tau)
        lean = (0.5 - self.noise) * np.where(z < 0, -self.left_margin, 1.0)
        return np.asarray(0.5 + lean * margin)

    def disagreement(self, threshold: npt.ArrayLike) -> FloatArray:
        """Return how often 1[x >= threshold] differs from the best classifier, in the shape given.

        Parameters
        ----------
        threshold : array of float
            Infinities and numbers outside of [0, 1] stand for a classifier that says the same
            everywhere.

        Raises
        ------
        DataError
            If a threshold is nan.
        """
        return np.asarray(np.abs(self._clipped_threshold(threshold) - self.threshold))

    def excess(self, threshold: npt.ArrayLike) -> FloatArray:
        """Return the error of 1[x >= threshold] beyond `bayes_error`, exactly: see
        `disagreement`.

        Any shape; the result has the shape of `threshold`.
        """
        at = self._clipped_threshold(threshold)
        z = np.abs(at - self.threshold)
        near = self.tau * self.scale * (np.minimum(z, self.scale) / self.scale) ** (1 / self.tau)
        side = np.where(at < self.threshold, self.left_margin, 1.0)
        return np.asarray((1 - 2 * self.noise) * side * (near + np.maximum(z - self.scale, 0)))

    def _clipped_threshold(self, threshold: npt.ArrayLike) -> FloatArray:
        values = np.asarray(threshold, dtype=np.float64)
        if np.isnan(values).any():
            raise DataError(Parameter("threshold"), " is nan; give a number or an infinity.")
        return np.clip(values, 0, 1)

    @property
    def bayes_error(self) -> float:
        """Error of the best classifier."""
        return float((1 - self.excess([0, 1]).sum()) / 2)

    @property
    def eta(self) -> float:
        """Least factor, at least 1, of the condition for thresholds: P(h != h*) <= eta
        excess^tau."""
        # the ratio is constant up to `scale` and rises beyond, so that the ends decide
        return float(max(1.0, (self.disagreement([0, 1]) / self.excess([0, 1]) ** self.tau).max()))


class TsybakovSample(NamedTuple):
    """A sample, and the distribution that it was drawn from.

    Attributes
    ----------
    X : ndarray of shape (n, 1)
        In [0, 1).
    y : ndarray of shape (n,), int64
        0 or 1.
    probability : ndarray of shape (n,)
        The true probability of class 1 at each point.
    bayes_error : float
    distribution : TsybakovThresholds

    Examples
    --------
    >>> sample = sb.datasets.synthetic_tsybakov(100, tau=0.5, seed=0)
    >>> sample.X.shape, sample.distribution.tau
    ((100, 1), 0.5)
    """

    X: FloatArray
    y: IntArray
    probability: FloatArray
    bayes_error: float
    distribution: TsybakovThresholds

    @property
    def law(self) -> TsybakovThresholds:
        """The distribution, by its former name."""
        return self.distribution


def synthetic_tsybakov(
    n: int,
    *,
    tau: float,
    threshold: float = 0.5,
    scale: float = 0.5,
    noise: float = 0.0,
    left_margin: float = 1.0,
    seed: int,
) -> TsybakovSample:
    """Draw from a distribution that holds the Tsybakov noise condition with exponent tau exactly.

    Parameters
    ----------
    n : int
        Number of points.
    tau, threshold, scale, noise, left_margin : float
        As for `TsybakovThresholds`.
    seed : int
        Fixes the sample; points are public or synthetic, so this is no secret.

    Raises
    ------
    ParameterError
        If a number is out of its range.

    Examples
    --------
    >>> sample = sb.datasets.synthetic_tsybakov(1000, tau=0.5, seed=0)
    >>> sample.bayes_error
    0.25
    >>> sample.distribution.excess([0.4, 0.5]).round(6).tolist()
    [0.01, 0.0]
    """
    check_count("n", n)
    check_count("seed", seed, minimum=0)
    distribution = TsybakovThresholds(tau, threshold, scale, noise, left_margin)
    rng = np.random.default_rng(seed)
    X = rng.random((n, 1))
    probability = distribution.probability(X[:, 0])
    y = (rng.random(n) < probability).astype(np.int64)
    return TsybakovSample(X, y, probability, distribution.bayes_error, distribution)
