"""Made-up samples whose best possible error is known."""

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from secretballot._typing import FloatArray, IntArray


class TwoClassSample(NamedTuple):
    """Points of shape (n, n_features), and their classes, 0 or 1."""

    X: FloatArray
    y: IntArray


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
    return TwoClassSample(X, y)
