"""What a hypothesis class takes in: finite points, labels 0 and 1, weights of mistakes, slack."""

import contextlib
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from secretballot._typing import FloatArray, IntArray
from secretballot._validation import name_part
from secretballot.exceptions import DataError, Parameter

# Sums of multiples of 2^-20 that stay below 2^33 need 53 bits at most, so that every partial sum is
# exact.
_GRAIN = 2.0**20
_EXACT_BELOW = 2.0**33


def _as_floats(name: str, values: Any) -> FloatArray:
    if hasattr(values, "toarray"):
        raise DataError(name_part(name), " is a sparse matrix; give it as a dense array.")
    # numpy's own sentence may quote a cell, hence no raise inside an except
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        array = np.asarray(values)
        if array.dtype.kind in "buifO":
            return array.astype(np.float64)
    raise DataError(
        name_part(name), " does not hold real numbers only; encode it as an array of numbers first."
    )


def check_points(X: ArrayLike, n_features: int | None) -> FloatArray:
    """Return the points as a new array of shape (n, d), in which -0 is 0.

    Parameters
    ----------
    X : array of shape (n, n_features), or (n,) where there is one feature
        At least one row.
    n_features : int or None
        Columns that the class needs; None for any number.

    Raises
    ------
    DataError
        If there is no row, the number of columns differs, or a value is not a finite number.
    """
    points = _as_floats("X", X)
    if points.ndim == 1 and n_features == 1:
        points = points[:, None]
    if points.ndim != 2:
        raise DataError(
            Parameter("X"),
            f" has {points.ndim} dimensions; it must have two: one row for each point.",
        )
    if n_features is not None and points.shape[1] != n_features:
        raise DataError(
            Parameter("X"),
            f" has {points.shape[1]} columns; this class of hypotheses needs {n_features}.",
        )
    if not points.size:
        raise DataError(Parameter("X"), f" has shape {points.shape}; give at least one point.")
    points += 0.0  # minus zero becomes zero, so that equal parameters look equal
    bad = ~np.isfinite(points)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise DataError(
            f"X holds nan or infinity (first in row {row}, column {column}); give finite numbers"
            " only."
        )
    return points


def check_labelled(
    y: ArrayLike, sample_weight: ArrayLike | None, n: int
) -> tuple[IntArray, NDArray[Any]]:
    """Return the labels of n points as int64, and what a mistake on each counts: ones, as int64,
    where nothing is given.

    Raises
    ------
    DataError
        If there is not one label and one weight for each point, a label is neither 0 nor 1, a
        weight is negative or nan, or their sum is infinite.
    """
    labels = _as_floats("y", y)
    if labels.shape != (n,):
        raise DataError(
            Parameter("y"),
            f" has shape {labels.shape}; it must hold one label for each of the {n} points.",
        )
    if not np.all((labels == 0) | (labels == 1)):
        raise DataError("y holds labels other than 0 and 1; map the two classes to 0 and 1 first.")
    if sample_weight is None:
        return labels.astype(np.int64), np.ones(n, dtype=np.int64)
    weights = _as_floats("sample_weight", sample_weight)
    with np.errstate(over="ignore"):
        good = weights.shape == (n,) and np.all(weights >= 0) and np.isfinite(weights.sum())
    if not good:
        raise DataError(
            Parameter("sample_weight"),
            f" must hold a number of at least 0 for each of the {n} points, and have a finite sum.",
        )
    return labels.astype(np.int64), weights


def rounding_allowance(weights: NDArray[Any]) -> float:
    """Return how far the difference of two weighted numbers of mistakes may be off by rounding, in
    mistakes.

    It is 0 for integers and other multiples of 2^-20 of moderate size, whose sums floats hold
    exactly. For other weights a version space adds it to the slack, so that rounding alone never
    drops a hypothesis that belongs.

    Parameters
    ----------
    weights : array of shape (n,)
    """
    total = float(weights.sum())
    if total < _EXACT_BELOW and not np.any((weights * _GRAIN) % 1):
        return 0.0
    # Each of the few prefix sums of n terms that an error count is made of errs by at most n times
    # half an ulp of the total (Higham, Accuracy and Stability of Numerical Algorithms, section
    # 4.2).
    return 8 * (len(weights) + 4) * math.ulp(1.0) * total
