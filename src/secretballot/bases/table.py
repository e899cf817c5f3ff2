"""A public basis for tables: levels, quantile bins and ranks, rotated by the pool."""

from functools import lru_cache
from typing import Any, Self

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from secretballot._typing import BoolArray, FloatArray, IntArray
from secretballot._validation import check_count
from secretballot.bases.columns import ONE, LevelColumn, NumberColumn, fitted_column
from secretballot.bases.exact_products import exact_products
from secretballot.bases.integer_basis import IntegerBasis, check_whitening
from secretballot.bases.integer_model import with_constant
from secretballot.bases.rotation import Rotation, fitted_rotation
from secretballot.exceptions import DataError, Parameter

BLOCK = 2**14  # rows that are mapped at a time
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

    name = "table"

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
        self._columns = tuple(
            fitted_column(frame.iloc[:, i], self.n_bins) for i in range(frame.shape[1])
        )
        self.levels_ = np.array([isinstance(one, LevelColumn) for one in self._columns])
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
        return self.rows(X)[:, : self.n_directions_]

    def rows(self, X: Any) -> IntArray:
        return self.mapped(X)[0]

    def covered(self, X: Any) -> BoolArray:
        """Return which rows have cells alone that the public points show, shape (n_rows,).

        A level is covered if it occurs eight times, a number if it lies within their range.
        What is not covered cannot be distinguished in this basis. Each row is looked at by itself.
        """
        check_is_fitted(self, "n_directions_")
        frame = _frame_of(X)
        covered = np.ones(len(frame), dtype=np.bool_)
        for column, (_, cells) in zip(self._columns, frame.items(), strict=True):
            covered &= column.reader()(cells).covered
        return covered

    def mapped(self, X: Any) -> tuple[IntArray, BoolArray]:
        frame = self._checked_frame(X)
        width = self.n_directions_ + 1 + len(self._columns)
        integers = np.empty((len(frame), width), dtype=np.int64)
        covered = np.empty(len(frame), dtype=np.bool_)
        made = _table_map(self._columns, self._rotation)
        for start in range(0, len(frame), BLOCK):
            part = slice(start, start + BLOCK)
            coordinates, covered[part], codes = made.of(frame.iloc[part])
            integers[part] = np.hstack([with_constant(coordinates), codes])
        return integers, covered

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

    def _integer_inputs(self, frame: pd.DataFrame) -> Any:
        """Return the integer features before the rotation, (n_rows, n_inputs)."""
        rows, places, integers, width = [], [], [], 0
        for column, (_, cells) in zip(self._columns, frame.items(), strict=True):
            found = column.reader()(cells)
            shown = np.flatnonzero(found.places >= 0)
            rows.append(shown)
            places.append(found.places[shown] + width)
            integers.append(np.full(len(shown), ONE, dtype=np.int64))
            if found.ranks is not None and isinstance(column, NumberColumn):
                ranked = np.flatnonzero(found.ranks)
                rows.append(ranked)
                places.append(np.full(len(ranked), column.rank_place + width))
                integers.append(found.ranks[ranked])
            width += len(column.names)
        entries = np.concatenate(integers), (np.concatenate(rows), np.concatenate(places))
        table: Any = sparse.coo_array(entries, shape=(len(frame), width))
        return table.tocsr()


class _TableMap:
    """Columns and their rotation, made ready to map many rows.

    The features of a cell but its rank follow from one number, so their part of the coordinates is
    a row of a table; what most cells of a column have is kept apart, for all rows. Ranks are
    multiplied. Sums of integers are exact in any order, so these coordinates are those of the
    features.
    """

    def __init__(self, columns: tuple[LevelColumn | NumberColumn, ...], rotation: Rotation) -> None:
        self._columns, self._rotation = columns, rotation
        self._readers = [column.reader() for column in columns]
        self._usual = np.zeros(rotation.weights.shape[1], dtype=np.int64)
        tables, ranks, width = [], [], 0
        for column in columns:
            own = rotation.weights[width : width + len(column.names)]
            usual = 0 if column.usual is None else own[column.usual]
            self._usual += ONE * usual
            # the last row is that of a cell without features
            tables.append(np.vstack([own, np.zeros((1, own.shape[1]), dtype=np.int64)]) - usual)
            if isinstance(column, NumberColumn):
                ranks.append(own[column.rank_place])
            width += len(column.names)
        self._table, self._ranks = np.concatenate(tables), np.array(ranks, dtype=np.int64)

    def of(self, frame: pd.DataFrame) -> tuple[IntArray, BoolArray, IntArray]:
        """Return coordinates of rows, which are covered, and the codes of their cells."""
        covered = np.ones(len(frame), dtype=np.bool_)
        # by columns, as they are read; and as floats, in which the product is exact
        ranks = np.empty((len(frame), len(self._ranks)), order="F")
        places = np.zeros((len(frame), len(self._columns)), dtype=np.int32)
        codes = np.empty(places.shape, dtype=np.int64)
        unusual = np.zeros(places.shape, dtype=np.bool_)
        begun = n_ranks = 0
        for k, (column, (_, cells)) in enumerate(zip(self._columns, frame.items(), strict=True)):
            found, n_features = self._readers[k](cells), len(column.names)
            covered &= found.covered
            codes[:, k] = found.codes
            differs = found.places != (-1 if column.usual is None else column.usual)
            if differs.any():
                unusual[:, k] = differs
                places[:, k] = begun + np.where(found.places < 0, n_features, found.places)
            begun += n_features + 1
            if found.ranks is not None:
                ranks[:, n_ranks] = found.ranks
                n_ranks += 1
        ends = np.append(0, np.cumsum(unusual.sum(axis=1)))
        shown = places[unusual]
        table: Any = sparse.csr_array(
            (np.full(len(shown), ONE), shown, ends), shape=(len(frame), begun)
        )
        sums = exact_products(table, self._table, ONE) + self._usual
        if n_ranks:
            sums += exact_products(ranks, self._ranks, ONE)
        return self._rotation.rounded(sums), covered, codes


@lru_cache(maxsize=1)
def _table_map(columns: tuple[LevelColumn | NumberColumn, ...], rotation: Rotation) -> _TableMap:
    """Return the map, which is made once for all blocks of rows."""
    return _TableMap(columns, rotation)


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
