"""Vectors of numbers as integers: each row by itself, on a scale that public points fix."""

from typing import Any

import numpy as np

from secretballot._typing import FloatArray, IntArray
from secretballot.exceptions import DataError, Parameter

#: Integers for one standard deviation of the public points, and how many of them a number may lie
#: from their mean: farther ones are cut.
STEPS_PER_DEVIATION, MOST_DEVIATIONS = 64, 8
#: Columns that vary less than this share of the widest are measured as if they varied so much.
LEAST_SPREAD = 0.1
MOST_COLUMNS = 2**20  # squares of distances then stay below 2^40


def numbers_of(X: Any) -> FloatArray:
    """Return a table as floating point, each cell by itself; what is no number is missing. The
    shape (n_rows, n_columns) is that of the table.

    Raises
    ------
    DataError
        If it is no table, or not of numbers.
    """
    if hasattr(X, "to_pandas"):
        X = X.to_pandas()
    if hasattr(X, "toarray"):
        X = X.toarray()
    table = X.to_numpy() if hasattr(X, "iloc") else np.array(X, dtype=None)
    if table.ndim != 2:
        raise DataError(
            Parameter("X"), f" has shape {table.shape}; give a table of shape (rows, columns)."
        )
    if table.dtype.kind in "iufb":
        return table.astype(np.float64)
    raise DataError(
        Parameter("X"),
        f" has the type {table.dtype.name[:40]}; this basis takes numbers alone. Use a TableBasis.",
    )


def public_numbers(X: Any) -> FloatArray:
    """Return public points as floating point, of shape (n_public, n_columns).

    Raises
    ------
    DataError
        If they are no table of numbers, none at all, or of too many columns.
    """
    numbers = numbers_of(X)
    if not len(numbers) or numbers.shape[1] > MOST_COLUMNS:
        raise DataError(
            Parameter("X"),
            f" has shape {numbers.shape}; give public points with at most {MOST_COLUMNS} columns.",
        )
    return numbers


def fitted_scale(numbers: FloatArray, scaled: bool) -> tuple[FloatArray, FloatArray | float]:
    """Return the mean of public numbers, and the length that counts as one, column by column.

    Parameters
    ----------
    numbers : ndarray of shape (n_public, n_columns)
    scaled : bool
        Whether every column is measured in its own standard deviations. Otherwise all are in those
        of the widest.

    Raises
    ------
    DataError
        If the points are all alike.
    """
    finite = np.where(np.isfinite(numbers), numbers, np.nan)
    with np.errstate(all="ignore"):
        spread = np.nan_to_num(_by_column(np.nanstd, finite))
        centre = np.nan_to_num(_by_column(np.nanmean, finite))
    widest = float(spread.max(initial=0.0))
    if not widest > 0:
        raise DataError("The public points are all alike; no direction is left of them.")
    return centre, np.maximum(spread, LEAST_SPREAD * widest) if scaled else widest


def rounded(numbers: FloatArray, centre: FloatArray, spread: FloatArray | float) -> IntArray:
    """Return numbers as integers, each by itself; missing and infinite ones count as the mean and
    the ends of the range.

    Parameters
    ----------
    numbers : ndarray of float64, shape (n_rows, n_columns)
    centre : ndarray of float64, shape (n_columns,)
    spread : float, or ndarray of float64 of shape (n_columns,)
        Both as `fitted_scale` returns them.

    Returns
    -------
    ndarray of int64, shape (n_rows, n_columns)
    """
    ends = STEPS_PER_DEVIATION * MOST_DEVIATIONS
    with np.errstate(all="ignore"):
        steps = (numbers - centre) / spread * STEPS_PER_DEVIATION
    found: IntArray = np.rint(np.clip(np.nan_to_num(steps, nan=0.0), -ends, ends)).astype(np.int64)
    return found


def _by_column(summary: Any, numbers: FloatArray) -> FloatArray:
    """Return a summary of each column; of one without numbers nan, and no warning."""
    empty = np.isnan(numbers).all(axis=0)
    filled = np.where(empty, 0.0, numbers)
    result: FloatArray = summary(filled, axis=0)
    return result
