"""What every public basis is: rows to integers, each row by itself, vectors of numbers on a scale
that public points fix."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from secretballot._typing import BoolArray, FloatArray, IntArray, Json
from secretballot.bases.integer_model import UNIT, with_constant
from secretballot.exceptions import DataError, Parameter

#: Integers for one standard deviation of the public points, and how many of them a number may lie
#: from their mean: farther ones are cut.
STEPS_PER_DEVIATION, MOST_DEVIATIONS = 64, 8
#: Columns that vary less than this share of the widest are measured as if they varied so much.
_LEAST_SPREAD = 0.1
_MOST_COLUMNS = 2**20  # squares of distances then stay below 2^40


def plain_table(X: Any, dtype: type | None = None) -> Any:
    """Return a table as a frame of pandas or an array, a sparse matrix as a dense one.

    Raises
    ------
    DataError
        If it is no table.
    """
    if hasattr(X, "to_pandas"):
        X = X.to_pandas()
    if isinstance(X, pd.DataFrame):
        return X
    table = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=dtype)
    if table.ndim != 2:
        raise DataError(
            Parameter("X"), f" has shape {table.shape}; give a table of shape (rows, columns)."
        )
    return table


def numbers_of(X: Any) -> FloatArray:
    """Return a table as floating point, each cell by itself; what is no number is missing. The
    shape (n_rows, n_columns) is that of the table.

    Raises
    ------
    DataError
        If it is no table, or not of numbers.
    """
    table = np.asarray(plain_table(X))
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
    if not len(numbers) or numbers.shape[1] > _MOST_COLUMNS:
        raise DataError(
            Parameter("X"),
            f" has shape {numbers.shape}; give public points with at most {_MOST_COLUMNS} columns.",
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
    # of a column without numbers both are nan, with a warning
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        spread = np.nan_to_num(np.nanstd(finite, axis=0))
        centre = np.nan_to_num(np.nanmean(finite, axis=0))
    widest = float(spread.max(initial=0.0))
    if not widest > 0:
        raise DataError("The public points are all alike; no direction is left of them.")
    return centre, np.maximum(spread, _LEAST_SPREAD * widest) if scaled else widest


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


#: The cells of a basis without any.
NO_CELLS: BoolArray = np.zeros(0, dtype=np.bool_)
BLOCK = 4096  # rows of vectors that are mapped at a time
#: Coordinates of rows, which of them are covered, and the cells that trees compare.
Mapped = tuple[IntArray, BoolArray, IntArray]


# scikit-learn ships no types
class IntegerBasis(TransformerMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A feature map that public points alone have fixed.

    Attributes
    ----------
    n_features_in_ : int
        Columns of the public points.
    n_directions_ : int
        Coordinates of a row.
    uncovered_share_ : float
        Share of further points like the public ones that `covered` denies, about.
    levels_ : ndarray of bool, shape (n_cells,)
        Which of the cells that trees compare are numbers of levels; a basis may have no cells.
    """

    #: On certificates.
    name: ClassVar[str]
    n_features_in_: int
    n_directions_: int
    uncovered_share_: float
    levels_: BoolArray = NO_CELLS

    @abstractmethod
    def _parts(self, X: Any) -> Iterator[Mapped]:
        """Yield what rows are mapped to, block by block; each row is a function of itself and of
        public values, to the last bit."""

    def _mapped(self, X: Any) -> Mapped:
        check_is_fitted(self, "n_directions_")
        shape = 0, self.n_directions_
        nothing = np.empty(shape, np.int64), NO_CELLS, np.empty((0, len(self.levels_)), np.int64)
        coordinates, covered, cells = zip(nothing, *self._parts(X), strict=True)
        return np.concatenate(coordinates), np.concatenate(covered), np.concatenate(cells)

    def integers(self, X: Any) -> IntArray:
        """Return coordinates in units of 1 / 2^14, an array of int64 of shape (n_rows,
        n_directions); each row a function of itself and of public values, to the last bit.

        Raises
        ------
        DataError
            If the columns are not as many as those of the public points.
        """
        return self._mapped(X)[0]

    def covered(self, X: Any) -> BoolArray:
        """Return which rows the public points cover, shape (n_rows,); each row by itself. What is
        not covered cannot be distinguished in this basis."""
        return self._mapped(X)[1]

    def rows(self, X: Any) -> IntArray:
        """Return rows as a `LinearModel` takes them: coordinates, that of the intercept, and the
        cells that trees compare, int64 of shape (n_rows, n_directions + 1 + n_cells)."""
        return self.mapped(X)[0]

    def mapped(self, X: Any) -> tuple[IntArray, BoolArray]:
        """Return what `rows` and `covered` do, in one pass."""
        coordinates, covered, cells = self._mapped(X)
        return np.hstack([with_constant(coordinates), cells]), covered

    def describe(self) -> Json:
        """Return name and settings as JSON values, for a certificate."""
        return {"name": self.name, **self.get_params()}

    def transform(self, X: Any) -> FloatArray:
        """Return coordinates, an array of shape (n_rows, n_directions); public points have a root
        mean square length of one."""
        return self.integers(X) / UNIT

    def _check_width(self, n_columns: int) -> None:
        """Refuse rows of another width than the public points'."""
        if n_columns != self.n_features_in_:
            raise DataError(
                Parameter("X"),
                f" has {n_columns} columns and the public points had {self.n_features_in_};"
                " give the same columns.",
            )


class VectorBasis(IntegerBasis):
    """A feature map of vectors of numbers, which maps them block by block."""

    @abstractmethod
    def _map(self, numbers: FloatArray) -> tuple[IntArray, BoolArray]:
        """Return coordinates of numbers, of shape (n_rows, n_features), and which rows are about as
        near to public points as these are to each other."""

    def _parts(self, X: Any) -> Iterator[Mapped]:
        numbers = numbers_of(X)
        self._check_width(numbers.shape[1])
        for start in range(0, len(numbers), BLOCK):
            found, covered = self._map(numbers[start : start + BLOCK])
            yield found, covered, np.empty((len(found), 0), dtype=np.int64)
