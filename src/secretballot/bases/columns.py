"""One column of a table as integers: levels, quantile bins, rank, a spike, missing values.

Everything is learned from public cells; a private cell meets comparisons and table look-ups only.
"""

import math
import numbers
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import ndimage

from secretballot._typing import BoolArray, FloatArray, IntArray
from secretballot.foreign_code import result_of

#: The integer that stands for 1.0.
ONE = 2**10
#: A level or a missing value gets a column of its own if the pool shows it so often.
_LEAST_SEEN = 8
#: A number that more than this share of the rows have is a spike.
_SPIKE = 0.5
#: A value is a heap where this share of the pool, the spike left out, has it, and more than 1.5
#: times as many points as either value next to it. Beside a spike each heap is a bin.
_HEAP, _HIGHER = 1 / 64, 1.5
#: Columns of numbers with at most so many distinct values are levels.
_FEW_VALUES = 12
#: Where a bend ends: this much of -log(1 - u^2) is 1.0.
_MOST_BENT = 3.0
_shares = np.arange(-ONE, ONE + 1) / ONE
#: How far each rank u, from -ONE to ONE, lies from the middle: -log(1 - u^2), which is about as the
#: square of a normal value is by its rank. Where one class varies more than another, the logarithm
#: of their odds bends so; bins do not show it beyond the outermost edges.
BENDS = np.rint(ONE / _MOST_BENT * -np.log(np.maximum(1 - _shares**2, np.exp(-_MOST_BENT)))).astype(
    np.int64
)


class Cells(NamedTuple):
    """What some cells of a column say, each of itself.

    Attributes
    ----------
    places : ndarray of int64
        The feature that is 1.0; -1 where there is none.
    ranks : ndarray of int64, or None
        Integers of the feature for ranks, if the column has one.
    covered : ndarray of bool
        Which cells the pool shows.
    codes : ndarray of int64
        What trees compare: the place of a level, or the rank of a number, that of a spike too;
        below all ranks where it is missing.
    """

    places: IntArray
    ranks: IntArray | None
    covered: BoolArray
    codes: IntArray

    def set(self, which: BoolArray, place: int | None) -> None:
        """Give some cells a place apart, or none, and no rank."""
        self.places[which] = -1 if place is None else place
        self.covered[which] = place is not None
        if self.ranks is not None:
            self.ranks[which] = 0


#: What a cell is as a level: None is any missing value.
Level = str | float | None
#: Reads many cells; look-ups are made once.
Reader = Callable[["pd.Series[Any]"], Cells]


@dataclass(frozen=True)
class LevelColumn:
    """A column of levels: one feature for each level that the pool shows often enough.

    Attributes
    ----------
    levels : tuple of str, float or None
        By their places; None is any missing value.
    uncovered_share : float
        Share of further cells like the pool's whose level has no feature, about.
    """

    levels: tuple[Level, ...]
    uncovered_share: float

    @property
    def width(self) -> int:
        """How many features there are."""
        return len(self.levels)

    @property
    def usual(self) -> int | None:
        """The place of the level 0, which most cells of a column of indicators have."""
        return self.levels.index(0.0) if 0.0 in self.levels else None

    def reader(self) -> "Reader":
        """Return what reads cells; of a column without levels, with no content, every cell is
        covered."""
        known: dict[Level, int] = {level: place for place, level in enumerate(self.levels)}
        floats = [(level, place) for level, place in known.items() if isinstance(level, float)]

        def read(cells: "pd.Series[Any]") -> Cells:
            if _is_of_plain_numbers(cells):
                # all at once; every cell is compared with public levels alone
                values = cells.to_numpy().astype(np.float64)
                places = np.where(np.isnan(values), known.get(None, -1), -1)
                for level, place in floats:
                    places[values == level] = place
            else:
                places = np.array([known.get(level, -1) for level in _levels_in(cells)], np.int64)
            covered = places >= 0 if self.levels else np.ones(len(cells), dtype=np.bool_)
            return Cells(places, None, covered, places)

        return read


@dataclass(frozen=True, eq=False)
class NumberColumn:
    """A column of numbers: quantile bins, a rank and its bend; a spike and missing values apart.

    Attributes
    ----------
    edges : ndarray of float64, shape (n_edges,)
        Inner edges of the bins, ascending: quantiles, and both ends of each heap.
    sorted_values : ndarray of float64
        Values of the pool without the spike, in ascending order.
    spike : float or None
    missing : bool
        Whether missing values have a feature of their own.
    """

    edges: FloatArray
    sorted_values: FloatArray
    spike: float | None
    missing: bool

    @property
    def width(self) -> int:
        """How many features there are: bins, rank, bend, spike and missing values."""
        return self.rank_place + 2 + (self.spike is not None) + self.missing

    @property
    def usual(self) -> int | None:
        """The place of the only bin, if there is one alone."""
        return None if len(self.edges) else 0

    @property
    def rank_place(self) -> int:
        """The place of the rank; that of its bend (`BENDS`) is the next one."""
        return len(self.edges) + 1

    @property
    def uncovered_share(self) -> float:
        """Share of further cells like the pool's that lie beyond all of them, in the mean."""
        return 2 / (len(self.sorted_values) + 1)

    def reader(self) -> "Reader":
        """Return what reads cells: the bin of each, and its rank among the pool's values, from -ONE
        to ONE; within the range of the pool, or what it often shows, a cell is covered.

        One search finds all, as the edges are values of the pool: a cell is one of its m distinct
        values, number 2 k + 1, or lies beside them, number 2 k.
        """
        first = np.flatnonzero(np.diff(self.sorted_values, prepend=np.nan))
        distinct = self.sorted_values[first]
        starts = np.append(first, len(self.sorted_values))
        upto = np.arange(1, 2 * len(distinct) + 2) // 2
        smaller = np.arange(2 * len(distinct) + 1) // 2
        bins_upto = np.append(0, np.searchsorted(self.edges, distinct, side="right"))
        bins = bins_upto[upto]
        ranks = (starts[smaller] + starts[upto]) * ONE // len(self.sorted_values) - ONE
        spike_place = self.rank_place + 2
        missing_place = spike_place + (self.spike is not None)

        def read(cells: "pd.Series[Any]") -> Cells:
            values = _float_values(cells)
            # sorted first, which makes the search three times as fast
            order = np.argsort(values)
            below = np.empty(len(values), dtype=np.int64)
            below[order] = np.searchsorted(distinct, values[order], side="left")
            number = 2 * below + (distinct[np.minimum(below, len(distinct) - 1)] == values)
            absent = np.isnan(values)
            codes = np.where(absent, -ONE - 1, ranks[number])
            shown = (number > 0) & (number < 2 * len(distinct))
            found = Cells(bins[number], ranks[number], shown, codes)
            found.set(absent, missing_place if self.missing else None)
            if self.spike is not None:
                found.set(values == self.spike, spike_place)
            return found

        return read


def fitted_column(cells: "pd.Series[Any]", n_bins: int) -> LevelColumn | NumberColumn:
    """Return how a column is read, from its public cells."""
    if not _holds_numbers(cells):
        return _level_column(cells)
    values = _float_values(cells)
    present = np.sort(values[~np.isnan(values)])
    distinct, seen = np.unique(present, return_counts=True)
    if len(distinct) <= _FEW_VALUES:
        return _level_column(cells)
    spike = float(distinct[seen.argmax()]) if seen.max() > _SPIKE * len(values) else None
    kept = present if spike is None else present[present != spike]
    edges = np.quantile(kept, np.arange(1, n_bins) / n_bins, method="inverted_cdf")
    if spike is not None and n_bins > 1:
        edges = np.append(edges, _heap_edges(kept))
    missing = len(values) - len(present) >= _LEAST_SEEN
    return NumberColumn(np.unique(edges), kept, spike, missing)


def _heap_edges(values: FloatArray) -> FloatArray:
    """Return the edges of bins for values that are heaps, such as a usual amount; each bin ends at
    the next value of the pool."""
    distinct, seen = np.unique(values, return_counts=True)
    beside = ndimage.maximum_filter(seen, footprint=[1, 0, 1], mode="constant")
    heaps = (seen >= max(_LEAST_SEEN, _HEAP * len(values))) & (seen > _HIGHER * beside)
    edges: FloatArray = distinct[heaps | np.append(False, heaps[:-1])]
    return edges


def _holds_numbers(cells: "pd.Series[Any]") -> bool:
    """Return whether all public cells of a column are numbers, or missing."""
    if pd.api.types.is_numeric_dtype(cells.dtype):
        return not pd.api.types.is_bool_dtype(cells.dtype)
    return {type(level) for level in _levels_in(cells) if level is not None} == {float}


def _level_column(cells: "pd.Series[Any]") -> LevelColumn:
    seen = Counter(_levels_in(cells))
    often = [level for level, count in seen.items() if count >= _LEAST_SEEN]
    # missing values behind texts, before numbers
    often.sort(key=lambda level: "(" if level is None else repr(level))
    # without one of its rows a level that is just frequent enough would not be
    rare = sum(count for count in seen.values() if count <= _LEAST_SEEN) / max(1, len(cells))
    return LevelColumn(tuple(often), rare if often else 0.0)


def _is_of_plain_numbers(cells: "pd.Series[Any]") -> bool:
    """Return whether all cells are numbers of numpy that floating point holds, or rounds, alike."""
    dtype = cells.dtype
    return isinstance(dtype, np.dtype) and dtype.kind in "biuf" and dtype.itemsize <= 8


def _levels_in(cells: "pd.Series[Any]") -> list[Level]:
    """Return the cells one by one as levels, each of which is the same whatever is beside it."""
    if _is_of_plain_numbers(cells):
        values = cells.to_numpy().astype(np.float64) + 0.0  # -0 is 0
        return [None if math.isnan(value) else value for value in values.tolist()]
    known = cells.tolist()
    if isinstance(cells.dtype, pd.CategoricalDtype):
        # pandas would make other values of all categories where one cell is missing
        categories = [*cells.dtype.categories.tolist(), None]
        known = [categories[code] for code in cells.cat.codes.tolist()]
    # a private cell may be any object: what cannot be compared counts as missing, for its row alone
    return [cell if type(cell) is str else result_of(partial(_level_of, cell)) for cell in known]


def _level_of(cell: Any) -> Level:
    """Return what a cell is as a level; all kinds of missing are one, and 1 and 1.0 are."""
    if isinstance(cell, str):
        return str(cell)
    if isinstance(cell, numbers.Real | np.bool_):
        return None if math.isnan(cell) else float(cell)
    if isinstance(cell, pd.Interval):
        return str(_plain_interval(cell))
    return None if pd.isna(cell) else str(cell)


def _float_values(cells: "pd.Series[Any]") -> FloatArray:
    """Return cells as floating point, missing ones and texts as nan and infinite ones as the
    largest."""
    if pd.api.types.is_numeric_dtype(cells.dtype):
        values = cells.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        # cell by cell: one text among numbers is a missing value and changes no other row
        found = (level if isinstance(level, float) else np.nan for level in _levels_in(cells))
        values = np.fromiter(found, np.float64, len(cells))
    largest = np.finfo(np.float64).max
    clipped: FloatArray = np.clip(values, -largest, largest)
    return clipped


def _plain_interval(interval: "pd.Interval[Any]") -> "pd.Interval[Any]":
    """Return an interval whose numeric ends are integers where they can be, else floating point.

    pandas keeps all ends of a column in one type: beside a missing cell, or beside one with a
    fraction, (0, 1] becomes (0.0, 1.0], which is another text.
    """
    left, right = (_plain_end(end) for end in (interval.left, interval.right))
    return pd.Interval(left, right, closed=interval.closed)


def _plain_end(end: Any) -> Any:
    if not isinstance(end, Real):
        return end  # a time
    number = float(end)
    return int(number) if number.is_integer() else number
