"""Made-up samples: those whose best possible error is known, and labels that hold the Tsybakov
noise condition with a known exponent and no better."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from secretballot._typing import FloatArray, IntArray


class TwoClassSample(NamedTuple):
    """A sample from two classes with everything known about them.

    Attributes
    ----------
    X : ndarray of shape (n, n_features)
    y : ndarray of shape (n,), int64
        0 or 1.
    probability : ndarray of shape (n,)
        The true probability of class 1 at each point.
    bayes_error : float
        Error of the best possible classifier, which says 1 where `probability` exceeds one half.
    """

    X: FloatArray
    y: IntArray
    probability: FloatArray
    bayes_error: float


def synthetic_two_class(
    n: int, *, n_features: int = 5, bayes_error: float = 0.1, seed: int
) -> TwoClassSample:
    """Draw from two equally likely normal classes with a chosen Bayes error.

    Class 1 is N(m u, I) and class 0 is N(-m u, I) for the unit vector u with equal entries, so the
    Bayes error is Phi(-m), and `m` is chosen to make it `bayes_error`.

    Parameters
    ----------
    n : int
        Number of points.
    n_features : int
        Number of features.
    bayes_error : float
        Above 0, below 0.5.
    seed : int
        Fixes the sample; points are public or synthetic, so this is no secret.
    """
    m = -NormalDist().inv_cdf(bayes_error)
    direction = np.full(n_features, 1 / math.sqrt(n_features))
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, size=n)
    X = rng.normal(size=(n, n_features)) + np.outer((2 * y - 1) * m, direction)
    # The logistic function of 2 m <u, x>, in the form that cannot overflow.
    probability = 0.5 * (1 + np.tanh(m * (X @ direction)))
    return TwoClassSample(X, y, probability, bayes_error)


def synthetic_massart(
    X: npt.ArrayLike,
    concept: Callable[[FloatArray], npt.ArrayLike],
    *,
    noise: float = 0.0,
    seed: int,
) -> TwoClassSample:
    """Label points by a concept, and flip every label with one probability.

    Massart noise at its strongest.

    The best possible classifier is the concept, and its error is `noise`. A classifier that differs
    from the concept on a share s of the points errs by ``(1 - 2 noise) s`` more.

    Parameters
    ----------
    X : array of shape (n, n_features)
    concept : callable
        Takes the points and returns 0 or 1 for each, such as the `predict` of a hypothesis.
    noise : float
        Probability of a flip: from 0, where the concept is learnt without error, to below 0.5.
    seed : int
        Fixes the flips; points are public or synthetic, so this is no secret.
    """
    points = np.asarray(X, dtype=np.float64)
    best = np.asarray(concept(points))
    # every label is flipped with the same probability, so the flips do not depend on the point
    flipped = np.random.default_rng(seed).random(len(points)) < noise
    y = np.where(flipped, 1 - best, best).astype(np.int64)
    return TwoClassSample(points, y, np.where(best == 1, 1 - noise, noise), noise)


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
    """

    tau: float
    threshold: float = 0.5
    scale: float = 0.5
    noise: float = 0.0
    left_margin: float = 1.0

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
        """
        return np.asarray(
            np.abs(np.clip(np.asarray(threshold, dtype=np.float64), 0, 1) - self.threshold)
        )

    def excess(self, threshold: npt.ArrayLike) -> FloatArray:
        """Return the error of 1[x >= threshold] beyond `bayes_error`, exactly: see
        `disagreement`.

        Any shape; the result has the shape of `threshold`.
        """
        at = np.clip(threshold, 0, 1)
        z = np.abs(at - self.threshold)
        near = self.tau * self.scale * (np.minimum(z, self.scale) / self.scale) ** (1 / self.tau)
        side = np.where(at < self.threshold, self.left_margin, 1.0)
        return np.asarray((1 - 2 * self.noise) * side * (near + np.maximum(z - self.scale, 0)))

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
