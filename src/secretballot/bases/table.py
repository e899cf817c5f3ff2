"""A public basis for tables: levels, quantile bins, ranks and bends, rotated by the pool."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from secretballot._typing import FloatArray, IntArray
from secretballot._validation import check_count
from secretballot.bases.columns import BENDS, ONE, LevelColumn, NumberColumn, fitted_column
from secretballot.bases.integer_basis import IntegerBasis, Mapped, plain_table
from secretballot.bases.integer_model import Rotation, exact_products, fitted_rotation
from secretballot.exceptions import DataError, Parameter

BLOCK = 2**14  # rows that are mapped at a time
#: Bins of all columns of numbers that are made without being asked for.
_MOST_BINS = 72


@dataclass(eq=False, repr=False)
class TableBasis(IntegerBasis):
    """Map rows of a table to coordinates that public points alone have fixed.

    A column of texts, or of numbers with few values, becomes levels; another column of numbers
    becomes quantile bins, a rank and how far this lies from the middle, with a value that more than
    half of the pool shares, and missing values, apart. Beside such a value, others that are far
    more frequent than those next to them (usual amounts) have bins of their own. The features are
    centred, rotated to the principal axes of the pool and partly whitened. What is summed is
    integers, and the rest looks at one cell, so no row depends on another. Rows of one table must
    be of one length, and a list of rows is refused whole if one is not: check private rows one by
    one before they come here.

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

    name: ClassVar[str] = "table"

    n_bins: int = 16
    whitening: float = 0.6
    n_directions: int = 500

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
        return cls(n_bins=min(most, max(1, _MOST_BINS // max(1, n_numbers))))

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
        frame = _frame_of(X)
        if not len(frame):
            raise DataError(Parameter("X"), " has no rows; give public points.")
        self._columns = tuple(
            fitted_column(frame.iloc[:, i], self.n_bins) for i in range(frame.shape[1])
        )
        self.levels_ = np.array([isinstance(one, LevelColumn) for one in self._columns])
        self.n_features_in_ = frame.shape[1]
        self.feature_names_in_ = np.array([str(name) for name in frame.columns], dtype=object)
        self.n_inputs_ = sum(column.width for column in self._columns)
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
        return self

    def _parts(self, X: Any) -> Iterator[Mapped]:
        # a level is covered if it occurs eight times, a number if it lies within the public range
        frame, made = self._checked_frame(X), _table_map(self._columns, self._rotation)
        return (made.of(frame.iloc[at : at + BLOCK]) for at in range(0, len(frame), BLOCK))

    def column_shares(self, X: Any, weights: FloatArray) -> FloatArray:
        """Return how much of linear functions comes from each column of rows, shape (n_features,).

        Parameters
        ----------
        X : array, sparse matrix, list of rows or frame of shape (n_rows, n_features)
        weights : ndarray of float64, shape (n_directions, n_functions)

        Returns
        -------
        ndarray of shape (n_features,)
            The covariance of a column's part with the whole, over the variance: together 1, or all
            0 where the functions are the same at all rows.
        """
        inputs = self._integer_inputs(self._checked_frame(X))
        effects = self._rotation.weights.astype(np.float64) @ weights
        values = inputs @ effects
        values -= values.mean(axis=0)
        parts = (effects * (inputs.T @ values)).sum(axis=1)
        of_column = np.repeat(np.arange(len(self._columns)), [one.width for one in self._columns])
        shares = np.bincount(of_column, parts, minlength=len(self._columns))
        return np.asarray(shares / shares.sum() if shares.sum() > 0 else 0 * shares)

    def _checked_frame(self, X: Any) -> pd.DataFrame:
        """Return rows as a frame of the columns that the public points had."""
        check_is_fitted(self, "n_directions_")
        frame = _frame_of(X)
        self._check_width(frame.shape[1])
        if isinstance(X, pd.DataFrame) and [str(name) for name in X] != [*self.feature_names_in_]:
            raise DataError(
                Parameter("X"), " has other columns than the public points had; give the same ones."
            )
        return frame

    def _integer_inputs(self, frame: pd.DataFrame) -> Any:
        """Return the integer features before the rotation, (n_rows, n_inputs)."""
        entries, first = list[tuple[IntArray, IntArray, IntArray]](), 0
        for column, (_, cells) in zip(self._columns, frame.items(), strict=True):
            found = column.reader()(cells)
            shown = np.flatnonzero(found.places >= 0)
            entries.append((shown, first + found.places[shown], np.full(len(shown), ONE)))
            if found.ranks is not None and isinstance(column, NumberColumn):
                ranked = np.flatnonzero(found.ranks)
                place = np.full(len(ranked), first + column.rank_place)
                own = found.ranks[ranked]
                entries += [(ranked, place, own), (ranked, place + 1, BENDS[own + ONE])]
            first += column.width
        rows, places, integers = map(np.concatenate, zip(*entries, strict=True))
        table: Any = sparse.coo_array((integers, (rows, places)), shape=(len(frame), first))
        return table.tocsr()


class _TableMap:
    """Columns and their rotation, made ready to map many rows.

    The features of a cell but its rank follow from one number, so their part of the coordinates is
    a row of a table; what most cells of a column have is kept apart, for all rows. Ranks and
    their bends are multiplied. Sums of integers are exact in any order, so these coordinates are
    those of the features.
    """

    def __init__(self, columns: tuple[LevelColumn | NumberColumn, ...], rotation: Rotation) -> None:
        self._columns, self._rotation = columns, rotation
        self._readers = [column.reader() for column in columns]
        self._usual = np.zeros(rotation.weights.shape[1], dtype=np.int64)
        tables, ranks, width = [], [], 0
        for column in columns:
            own = rotation.weights[width : width + column.width]
            usual = 0 if column.usual is None else own[column.usual]
            self._usual += ONE * usual
            # the last row is that of a cell without features
            tables.append(np.vstack([own, np.zeros((1, own.shape[1]), dtype=np.int64)]) - usual)
            if isinstance(column, NumberColumn):
                ranks += [own[column.rank_place], own[column.rank_place + 1]]
            width += column.width
        self._table, self._ranks = np.concatenate(tables), np.array(ranks, dtype=np.int64)

    def of(self, frame: pd.DataFrame) -> Mapped:
        """Return coordinates of rows, which are covered, and the codes of their cells."""
        covered = np.ones(len(frame), dtype=np.bool_)
        # by columns, as they are read; and as floats, in which the product is exact
        ranks = np.empty((len(frame), len(self._ranks)), order="F")
        places = np.zeros((len(frame), len(self._columns)), dtype=np.int32)
        codes = np.empty(places.shape, dtype=np.int64)
        unusual = np.zeros(places.shape, dtype=np.bool_)
        begun = n_ranks = 0
        for k, (column, (_, cells)) in enumerate(zip(self._columns, frame.items(), strict=True)):
            found, n_features = self._readers[k](cells), column.width
            covered &= found.covered
            codes[:, k] = found.codes
            differs = found.places != (-1 if column.usual is None else column.usual)
            if differs.any():
                unusual[:, k] = differs
                places[:, k] = begun + np.where(found.places < 0, n_features, found.places)
            begun += n_features + 1
            if found.ranks is not None:
                ranks[:, n_ranks], ranks[:, n_ranks + 1] = found.ranks, BENDS[found.ranks + ONE]
                n_ranks += 2
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
    # cells of lists keep their own types: one that is odd must not change the others
    table = plain_table(X, object if isinstance(X, list | tuple) else None)
    if isinstance(table, pd.DataFrame):
        return table
    if table.dtype.kind in "biufMm":
        return pd.DataFrame(table)
    # pandas would make times of a column of times, and leave it as it is beside one odd cell
    return pd.DataFrame(table.astype(object), dtype=object)
