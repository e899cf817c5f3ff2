"""A public basis for tables: levels, quantile bins and ranks, rotated by the pool."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from secretballot._typing import BoolArray, FloatArray, IntArray
from secretballot._validation import check_count
from secretballot.bases.columns import ONE, LevelColumn, NumberColumn, fitted_column
from secretballot.bases.integer_basis import IntegerBasis, check_whitening
from secretballot.bases.rotation import fitted_rotation
from secretballot.exceptions import DataError, Parameter

BLOCK = 8192  # rows that are mapped at a time
#: Bins of all columns of numbers that are made without being asked for.
MOST_BINS = 96


class TableBasis(IntegerBasis):
    """Map rows of a table to coordinates that public points alone have fixed.

    A column of texts, or of numbers with few values, becomes levels; another column of numbers
    becomes quantile bins and a rank, with a value that more than half of the pool shares, and
    missing values, apart. The features are centred, rotated to the principal axes of the pool and
    partly whitened. What is summed is integers, and the rest looks at one cell, so no row depends
    on another. Rows of one table must be of one length, and a list of rows is refused whole if one
    is not: check private rows one by one before they come here.

    Parameters
    ----------
    n_bins : int, default 16
        Quantile bins of a column of numbers.
    whitening : float, default 0.6
        Between 0 (rotate only) and 1 (equal variances in all directions).
    n_directions : int, default 500
        Largest number of directions kept.

    Attributes
    ----------
    n_directions_ : int
        Directions kept.
    n_inputs_ : int
        Features before the rotation.
    uncovered_share_ : float
        Share of further points like the public ones that `covered` denies, at most and about.

    Examples
    --------
    >>> pool = [[age, city] for age in range(60) for city in ("north", "south")]
    >>> basis = sb.bases.TableBasis().fit(pool)
    >>> basis.transform([[30, "south"]]).shape == (1, basis.n_directions_)
    True
    """

    def __init__(self, n_bins: int = 16, whitening: float = 0.6, n_directions: int = 500) -> None:
        self.n_bins = n_bins
        self.whitening = whitening
        self.n_directions = n_directions

    @classmethod
    def suited_to(cls, X: Any) -> Self:
        """Return an unfitted basis with fewer bins where columns of numbers are many.

        Every bin is a direction of its own, and every direction has the same noise.

        Parameters
        ----------
        X : array, sparse matrix, list of rows or frame of shape (n_public, n_features)
            Public.
        """
        frame, most = _frame_of(X), cls().n_bins
        columns = [fitted_column(frame.iloc[:, i], most) for i in range(frame.shape[1])]
        n_numbers = sum(isinstance(column, NumberColumn) for column in columns)
        return cls(n_bins=min(most, max(1, MOST_BINS // max(1, n_numbers))))

    def fit(self, X: Any, y: None = None) -> Self:
        """Learn the map from public points.

        Parameters
        ----------
        X : array, sparse matrix, list of rows or frame of shape (n_public, n_features)
            Public.
        y : None
            Ignored.

        Raises
        ------
        DataError
            If the points are no table, or all alike.
        ParameterError
            If a setting is out of range.
        """
        check_count("n_bins", self.n_bins)
        check_count("n_directions", self.n_directions)
        check_whitening(self.whitening)
        frame = _frame_of(X)
        if not len(frame):
            raise DataError(Parameter("X"), " has no rows; give public points.")
        self._columns = [
            fitted_column(frame.iloc[:, i], self.n_bins) for i in range(frame.shape[1])
        ]
        self.n_features_in_ = frame.shape[1]
        self.feature_names_in_ = np.array([str(name) for name in frame.columns], dtype=object)
        self.n_inputs_ = sum(len(column.names) for column in self._columns)
        if not self.n_inputs_:
            raise DataError(
                "The public points are too few or all alike; no feature is left of them."
            )
        # a bound, as if no row were uncovered in two columns
        self.uncovered_share_ = min(1.0, sum(one.uncovered_share for one in self._columns))
        self._rotation = fitted_rotation(
            self._integer_inputs(frame),
            ONE,
            whitening=self.whitening,
            n_directions=self.n_directions,
        )
        self.n_directions_ = self._rotation.weights.shape[1]
        if not self.n_directions_:
            raise DataError(
                "The public points are too few or all alike; no direction is left of them."
            )
        return self

    def integers(self, X: Any) -> IntArray:
        """Return coordinates in units of 1 / 2^14, an array of int64 of shape (n_rows,
        n_directions).

        Raises
        ------
        DataError
            If the columns are not as many as those of the public points.
        """
        frame = self._checked_frame(X)
        # what a row is more than the usual one has few entries
        usual = _usual_inputs(self._columns) @ self._rotation.weights
        blocks = [
            self._rotation.coordinates(
                self._integer_inputs(frame.iloc[start : start + BLOCK], less_usual=True), usual
            )
            for start in range(0, len(frame), BLOCK)
        ]
        return np.concatenate(blocks)

    def covered(self, X: Any) -> BoolArray:
        """Return which rows have cells alone that the public points show, shape (n_rows,).

        A level is shown if it stands there eight times, a number if it lies within their range.
        What is not shown cannot be told apart in this basis. Each row is looked at by itself.
        """
        check_is_fitted(self, "n_directions_")
        return _covered_rows(self._columns, _frame_of(X))

    def features(self, X: Any) -> tuple[Any, IntArray]:
        """Return features before the rotation, in whole numbers, and which column each is of.

        Returns
        -------
        features : sparse array of int64, shape (n_rows, n_inputs)
        columns : ndarray of int64, shape (n_inputs,)
            Number of the column that a feature is made of.
        """
        frame = self._checked_frame(X)
        widths = [len(column.names) for column in self._columns]
        return self._integer_inputs(frame), np.repeat(np.arange(len(widths)), widths)

    def effects(self, weights: Any) -> FloatArray:
        """Return what weights of directions mean for features, an array of shape (n_inputs,
        n_columns), up to one factor."""
        check_is_fitted(self, "n_directions_")
        meant: FloatArray = self._rotation.weights.astype(np.float64) @ np.asarray(weights, float)
        return meant

    def describe(self) -> dict[str, Any]:
        """Return name and settings as JSON values, for a certificate."""
        return {"name": "table", **self.get_params()}

    def _checked_frame(self, X: Any) -> pd.DataFrame:
        """Return rows as a frame of the columns that the public points had."""
        check_is_fitted(self, "n_directions_")
        frame = _frame_of(X)
        if frame.shape[1] != self.n_features_in_:
            raise DataError(
                Parameter("X"),
                f" has {frame.shape[1]} columns and the public points had {self.n_features_in_};"
                " give the same columns.",
            )
        if isinstance(X, pd.DataFrame) and [str(name) for name in X] != [*self.feature_names_in_]:
            raise DataError(
                Parameter("X"), " has other columns than the public points had; give the same ones."
            )
        return frame

    def _integer_inputs(self, frame: pd.DataFrame, *, less_usual: bool = False) -> Any:
        """Return the integer features before the rotation, (n_rows, n_inputs), or what they are
        more than those of the usual row."""
        rows, places, integers, width = [], [], [], 0
        for column, (_, cells) in zip(self._columns, frame.items(), strict=True):
            if less_usual and isinstance(column, LevelColumn):
                found = column.unusual_entries(cells)
            else:
                found = column.entries(cells)
            rows.append(found[0])
            places.append(found[1] + width)
            integers.append(found[2])
            width += len(column.names)
        entries = np.concatenate(integers), (np.concatenate(rows), np.concatenate(places))
        table: Any = sparse.coo_array(entries, shape=(len(frame), width))
        return table.tocsr()


def _usual_inputs(columns: Sequence[LevelColumn | NumberColumn]) -> IntArray:
    """Return the features of a row whose cells are 0 wherever that is a level."""
    parts = [np.zeros(len(column.names), dtype=np.int64) for column in columns]
    for column, part in zip(columns, parts, strict=True):
        if isinstance(column, LevelColumn) and column.usual is not None:
            part[column.usual] = ONE
    return np.concatenate(parts)


def _covered_rows(columns: Sequence[Any], frame: pd.DataFrame) -> BoolArray:
    """Return which rows have cells alone that the columns were fitted to."""
    covered = np.ones(len(frame), dtype=np.bool_)
    for column, (_, cells) in zip(columns, frame.items(), strict=True):
        covered &= column.covered(cells)
    return covered


def _frame_of(X: Any) -> pd.DataFrame:
    """Return a table as a frame, a sparse matrix as a dense one."""
    if hasattr(X, "to_pandas"):
        X = X.to_pandas()
    if isinstance(X, pd.DataFrame):
        return X
    if hasattr(X, "toarray"):
        X = X.toarray()
    # cells of lists keep their own types: one that is odd must not change the others
    table = np.array(X, dtype=object) if isinstance(X, list | tuple) else np.asarray(X)
    if table.ndim != 2:
        raise DataError(
            Parameter("X"), f" has shape {table.shape}; give a table of shape (rows, columns)."
        )
    if table.dtype.kind in "biufMm":
        return pd.DataFrame(table)
    # pandas would make times of a column of times, and leave it as it is beside one odd cell
    cells = table.astype(object)
    return pd.DataFrame({i: pd.Series(cells[:, i], dtype=object) for i in range(cells.shape[1])})
