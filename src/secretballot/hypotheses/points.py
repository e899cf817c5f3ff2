"""What a hypothesis class takes in: finite points, labels 0 and 1, weights of mistakes."""

import contextlib
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from secretballot._typing import FloatArray, IntArray
from secretballot._validation import name_part
from secretballot.exceptions import DataError, Parameter


def _as_floats(name: str, values: Any) -> FloatArray:
    # numpy's own sentence may quote a cell, hence no raise inside an except
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        array = np.asarray(values)
        if array.dtype.kind in "buifO":
            return array.astype(np.float64)
    raise DataError(
        name_part(name), " is no dense array of real numbers alone; encode it as one first."
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
    if points.ndim != 2 or not points.size or n_features not in (None, points.shape[1]):
        wanted = "" if n_features is None else f", in {n_features} columns"
        raise DataError(
            Parameter("X"), f" has shape {points.shape}; give a row for each point{wanted}."
        )
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
