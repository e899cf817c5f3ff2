"""Made-up data whose best possible error is known."""

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from secretballot._typing import FloatArray, IntArray
from secretballot._validation import check_count, check_finite, check_positive, shown
from secretballot.exceptions import DataError, Parameter, ParameterError


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

    Examples
    --------
    >>> sample = sb.datasets.synthetic_two_class(100, bayes_error=0.1, seed=0)
    >>> sample.X.shape, sample.bayes_error
    ((100, 5), 0.1)
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

    Raises
    ------
    ParameterError
        If a number is out of its range.
    """
    check_count("n", n)
    check_count("n_features", n_features)
    check_count("seed", seed, minimum=0)
    if not check_positive("bayes_error", bayes_error) < 0.5:
        raise ParameterError(
            Parameter("bayes_error"),
            f" is {shown(bayes_error)}; it must lie strictly between 0 and 0.5.",
        )
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

    Raises
    ------
    ParameterError
        If a number is out of its range.
    DataError
        If `X` is not two-dimensional, or the concept does not give 0 or 1 for every point.
    """
    check_count("seed", seed, minimum=0)
    if not 0 <= check_finite("noise", noise) < 0.5:
        raise ParameterError(
            Parameter("noise"), f" is {shown(noise)}; it must be at least 0 and less than 0.5."
        )
    points = np.asarray(X, dtype=np.float64)
    if points.ndim != 2:
        raise DataError(
            Parameter("X"),
            f" has {points.ndim} dimensions; it must have two: one row for each point.",
        )
    best = np.asarray(concept(points))
    if best.shape != (len(points),) or not np.isin(best, (0, 1)).all():
        raise DataError(
            "the concept does not give 0 or 1 for every point; give one label for each row of X."
        )
    # every label is flipped with the same probability, so the flips do not depend on the point
    flipped = np.random.default_rng(seed).random(len(points)) < noise
    y = np.where(flipped, 1 - best, best).astype(np.int64)
    return TwoClassSample(points, y, np.where(best == 1, 1 - noise, noise), noise)
