"""What a hypothesis class takes in: finite points, labels 0 and 1, weights of mistakes, slack."""

import contextlib
import math
import numbers
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from secretballot._typing import FloatArray, IntArray
from secretballot._validation import name_part, shown
from secretballot.exceptions import DataError, Parameter, ParameterError

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


def check_labels(y: ArrayLike, n: int) -> IntArray:
    """Return the labels as int64, shape (n,).

    Raises
    ------
    DataError
        If there are not `n` of them in one dimension, or one is neither 0 nor 1.
    """
    labels = _as_floats("y", y)
    if labels.shape != (n,):
        raise DataError(
            Parameter("y"),
            f" has shape {labels.shape}; it must hold one label for each of the {n} points.",
        )
    if not np.all((labels == 0) | (labels == 1)):
        raise DataError("y holds labels other than 0 and 1; map the two classes to 0 and 1 first.")
    return labels.astype(np.int64)


def check_weights(sample_weight: ArrayLike | None, n: int) -> FloatArray:
    """Return what a mistake on each row counts, shape (n,); ones where nothing is given.

    Raises
    ------
    DataError
        If there are not `n` of them in one dimension, one is negative, infinite or nan, or their
        sum is infinite.
    """
    if sample_weight is None:
        return np.ones(n)
    weights = _as_floats("sample_weight", sample_weight)
    if weights.shape != (n,):
        raise DataError(
            Parameter("sample_weight"),
            f" has shape {weights.shape}; it must hold one weight for each of the {n} points.",
        )
    if not np.all(weights >= 0):
        raise DataError(
            "sample_weight holds a negative number or nan; every weight must be at least 0."
        )
    with np.errstate(over="ignore"):
        total = weights.sum()
    if not np.isfinite(total):
        raise DataError(Parameter("sample_weight"), " has no finite sum; give smaller weights.")
    return weights


def check_weighted(
    X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None, n_features: int | None
) -> tuple[FloatArray, IntArray, FloatArray]:
    """Return points, labels and what a mistake on each row counts; parameters and errors are those
    of `check_points`, `check_labels` and `check_weights`."""
    points = check_points(X, n_features)
    return points, check_labels(y, len(points)), check_weights(sample_weight, len(points))


def check_slack(slack: object) -> float:
    """Return the slack as a float if it is at least 0; infinity keeps every hypothesis.

    Raises
    ------
    ParameterError
        If it is not a number, is negative or nan.
    """
    real = isinstance(slack, numbers.Real) and not isinstance(slack, bool)
    if not real or not slack >= 0:  # type: ignore[operator]
        raise ParameterError(
            Parameter("slack"), f" is {shown(slack)}; it must be a number of mistakes, at least 0."
        )
    with contextlib.suppress(OverflowError):
        return float(slack)  # type: ignore[arg-type]
    return math.inf  # an integer beyond the floats is larger than any number of mistakes


def check_index(index: object, n_labellings: int) -> int:
    """Return the number of a labelling as an int.

    Raises
    ------
    ParameterError
        If it is not an integer from 0 to `n_labellings` less 1.
    """
    if (
        isinstance(index, bool)
        or not isinstance(index, (int, np.integer))
        or not 0 <= index < n_labellings
    ):
        raise ParameterError(
            Parameter("index"),
            f" is {shown(index)}; it must be an integer from 0 to {n_labellings - 1}.",
        )
    return int(index)


def rounding_allowance(weights: FloatArray) -> float:
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
