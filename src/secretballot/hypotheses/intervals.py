"""Intervals of one feature: learner in one pass over sorted points, dichotomies by number alone,
version spaces as cells of pairs of ends that no asked point distinguishes."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from secretballot._typing import BoolArray, FloatArray, IntArray
from secretballot.exceptions import Parameter, ParameterError
from secretballot.hypotheses.base import Dichotomies, HypothesisClass, VersionSpace
from secretballot.hypotheses.cuts import (
    Segments,
    SortedColumn,
    number_or_word,
    place_between,
    places_between,
)
from secretballot.hypotheses.points import (
    check_index,
    check_labels,
    check_points,
    check_slack,
    check_weighted,
    rounding_allowance,
)

# Cells that a version space may hold, in one byte each: those of about 14,000 asked points if none
# could be dropped.
_MOST_CELLS = 200_000_000
# Numbers of a block of cells that are looked at together: 32 MB.
_BLOCK_NUMBERS = 4_000_000
# Labellings whose errors are still given one by one: 400 MB of numbers, the intervals of 9,999
# distinct points.
_MOST_LISTED = 50_000_000


@dataclass(frozen=True)
class Interval:
    """1 from `lower` to `upper`, both included, else 0; the empty interval is from inf to -inf.

    Attributes
    ----------
    lower, upper : float

    Raises
    ------
    ParameterError
        If an end is nan, or the upper end lies below the lower one in any other way than the empty
        interval's.
    """

    lower: float
    upper: float

    def __post_init__(self) -> None:
        if not (self.lower <= self.upper or (self.lower, self.upper) == (math.inf, -math.inf)):
            raise ParameterError(
                Parameter("lower"),
                f" is {self.lower!r} and upper {self.upper!r}; give lower <= upper, or inf and"
                " -inf for no point.",
            )

    def predict(self, X: ArrayLike) -> IntArray:
        """Return 0 or 1 for every row of `X`, shape (n,), int64. Cost: O(n)."""
        x = check_points(X, 1)[:, 0]
        return ((x >= self.lower) & (x <= self.upper)).astype(np.int64)

    def describe(self) -> dict[str, Any]:
        """Return the parameters as JSON values."""
        return {"lower": number_or_word(self.lower), "upper": number_or_word(self.upper)}


EMPTY = Interval(math.inf, -math.inf)


def _upper_between(low: float, high: float) -> float:
    """Return an upper end b with low <= b < high, the mirror image of a lower end."""
    return -place_between(-high, -low) + 0.0


def upper_ends(column: SortedColumn) -> FloatArray:
    """Return the upper ends of intervals whose last point inside is in each place, shape (m,)."""
    following = np.append(column.values[1:], math.inf)
    return -places_between(-following, -column.values) + 0.0


def interval_between(column: SortedColumn, first: int, last: int) -> Interval:
    """Return the interval around points from one place to another, its ends midway to the next."""
    values = column.values
    following = float(values[last + 1]) if last + 1 < len(values) else math.inf
    return Interval(column.cut(first), _upper_between(float(values[last]), following))


@dataclass(frozen=True, eq=False)
class _Slabs:
    """Disjoint ranges of one end, ascending, with the old range that each came from."""

    low: FloatArray
    high: FloatArray
    source: IntArray

    def split(self, values: FloatArray) -> "_Slabs":
        """Return the ranges split at the distinct, ascending values, of shape (n_values,), strictly
        inside them."""
        pieces = Segments(self.low, self.high).split(values)
        return _Slabs(
            pieces.low, pieces.high, np.searchsorted(self.low, pieces.low, side="right") - 1
        )

    def __len__(self) -> int:
        return len(self.low)

    def take(self, kept: BoolArray) -> "_Slabs":
        return _Slabs(self.low[kept], self.high[kept], self.source[kept])


@dataclass(frozen=True, eq=False)
class _Cells:
    """Pairs of a range (p, q] of lower ends and a range [r, s) of upper ends.

    A cell is its pairs with a <= b.

    Such a pair exists where p < s. `allowed` says which cells the old ones contain.
    """

    lower: _Slabs
    upper: _Slabs
    parent: BoolArray

    def allowed(self, rows: slice) -> BoolArray:
        """Return which cells of some rows belong to the old space, shape (rows, upper ranges)."""
        inherited = self.parent[np.ix_(self.lower.source[rows], self.upper.source)]
        return np.asarray(inherited & (self.lower.low[rows, None] < self.upper.high))

    def blocks(self) -> list[slice]:
        height = max(1, _BLOCK_NUMBERS // max(1, len(self.upper)))
        return [slice(start, start + height) for start in range(0, len(self.lower), height)]

    def least_by_lower(self, upper_gain: FloatArray) -> FloatArray:
        """Return the least `upper_gain` among the allowed upper ranges of each lower range, or inf.

        The gain has shape (upper ranges,), what is returned shape (lower ranges,). All lower ranges
        from one old range may use the same upper ranges, from the first with p < s on.
        """
        least = np.full(len(self.lower), math.inf)
        starts = np.searchsorted(self.lower.source, np.arange(len(self.parent) + 1))
        for row, used in enumerate(self.parent):
            mine = slice(starts[row], starts[row + 1])
            # the inf at the end: behind the last upper range lies none
            behind = np.append(np.where(used[self.upper.source], upper_gain, math.inf), math.inf)
            behind = np.minimum.accumulate(behind[::-1])[::-1]
            least[mine] = behind[
                np.searchsorted(self.upper.high, self.lower.low[mine], side="right")
            ]
        return least

    def greatest_by_upper(self, lower_loss: FloatArray) -> FloatArray:
        """Return the greatest `lower_loss` of the allowed lower ranges of each upper, or -inf.

        The loss has shape (lower ranges,), what is returned shape (upper ranges,).
        """
        greatest = np.full(len(self.upper), -math.inf)
        starts = np.searchsorted(self.upper.source, np.arange(self.parent.shape[1] + 1))
        for place, used in enumerate(self.parent.T):
            mine = slice(starts[place], starts[place + 1])
            # the -inf in front: before the first lower range lies none
            before = np.append(-math.inf, np.where(used[self.lower.source], lower_loss, -math.inf))
            before = np.maximum.accumulate(before)
            greatest[mine] = before[
                np.searchsorted(self.lower.low, self.upper.high[mine], side="left")
            ]
        return greatest


class IntervalSpace(VersionSpace):
    """A set of intervals: cells of pairs of ends, and whether the empty interval belongs.

    The lower end lies in a range (p, q], the upper end in a range [r, s), between neighbouring
    asked points. Exact over the continuum of ends: intervals between two asked points belong, too.
    On asked points they are what the empty interval is, so that they survive with it or fall with
    it. Every range that is held has a cell that survives, and so has every part of it between new
    points: a bound of an upper range never lies inside a lower one, and vice versa, because it was
    asked, and would have split it.

    Notes
    -----
    With n points asked at once, and A lower and B upper ranges of which some pair survives:
    `restrict` costs O(n log n + n c + A B), c being the number of ranges before (1 at first), and
    memory A B bytes, at most 200 MB; A and B are at most the number of asked points plus 1, and few
    once the labels tell. `disagreement_region` of n points costs O(A B + n log A).
    """

    def __init__(
        self, low: _Slabs, high: _Slabs, kept: BoolArray, has_empty: bool, chosen: Interval
    ) -> None:
        self._lower, self._upper, self._kept = low, high, kept
        self._has_empty, self._chosen = has_empty, chosen

    @classmethod
    def whole(cls) -> "IntervalSpace":
        """Return the space of all intervals."""
        line = _Slabs(np.array([-math.inf]), np.array([math.inf]), np.zeros(1, dtype=np.int64))
        return cls(line, line, np.ones((1, 1), dtype=bool), True, EMPTY)

    def restrict(
        self, X: ArrayLike, y: ArrayLike, slack: float, sample_weight: ArrayLike | None = None
    ) -> "IntervalSpace":
        """Keep the intervals whose weighted mistakes exceed the least of the space by at most
        `slack`.

        Liu et al. 2021, supplement, Algorithm 7, line 12, with numbers of mistakes in place of
        rates. Mistakes of a cell are those of the empty interval, plus a part of its upper range,
        less a part of its lower range.

        Raises
        ------
        DataError
            If points, labels or weights do not fit.
        ParameterError
            If the slack is negative or nan, or more than 200,000,000 cells might survive.

        Parameters
        ----------
        X : array of shape (n, 1)
        y : array of 0 and 1, shape (n,)
        slack : float
            In mistakes, in the unit of the weights; at least 0.
        sample_weight : array of shape (n,), optional
            What a mistake on each row counts, at least 0; 1 by default.
        """
        points, labels, weights = check_weighted(X, y, sample_weight, 1)
        margin = check_slack(slack) + rounding_allowance(weights)
        column = SortedColumn.sort(points[:, 0])
        gained = column.prefix_sums(np.where(labels == 1, -weights, weights))
        lower, upper = self._lower.split(column.values), self._upper.split(column.values)
        # [a, b] holds the points up to the lower bound of b's range, less those below the upper
        # bound of a's
        loss = gained[np.searchsorted(column.values, lower.high, side="left")]
        gain = gained[np.searchsorted(column.values, upper.low, side="right")]
        cells = _Cells(lower, upper, self._kept)
        by_lower, by_upper = cells.least_by_lower(gain) - loss, gain - cells.greatest_by_upper(loss)
        # ranges that no surviving cell has are dropped before cells are listed: their product is
        # what takes memory
        least = float(by_lower.min())
        most = least + margin
        rows, columns = by_lower <= most, by_upper <= most
        trimmed = _Cells(lower.take(rows), upper.take(columns), self._kept)
        kept = _surviving_cells(trimmed, gain[columns], loss[rows], most)
        has_empty = self._has_empty and most >= 0
        chosen = (
            EMPTY if self._has_empty and least == 0 else _first_best_interval(cells, gain, by_lower)
        )
        return IntervalSpace(trimmed.lower, trimmed.upper, kept, has_empty, chosen)

    def disagreement_region(self, X: ArrayLike) -> BoolArray:
        """Return whether two intervals of the space label each row differently, shape (n,)."""
        x = check_points(X, 1)[:, 0]
        furthest = self._upper.high[self._kept.shape[1] - 1 - self._kept[:, ::-1].argmax(axis=1)]
        # Some interval holds x if a cell has p < x and x < s.
        reach = np.append(-math.inf, np.maximum.accumulate(furthest))
        held = x < reach[np.searchsorted(self._lower.low, x, side="left")]
        # Some interval does not if a cell has x < q or r < x: the pair has points on one side of
        # x, because p < s. The empty interval adds nothing to the short ones between points, which
        # are left wherever it is.
        return np.asarray(held & ((x < self._lower.high[-1]) | (x > self._upper.low[0])))

    def hypothesis(self) -> Interval:
        """Return a member with the fewest mistakes in the last `restrict`: empty, or the first."""
        return self._chosen

    def describe(self) -> dict[str, Any]:
        """Return the hulls of both ends, the number of cells, and whether the empty one is left."""
        description: dict[str, Any] = {
            "class": "intervals",
            "empty": self._has_empty,
            "cells": int(self._kept.sum()),
        }
        for name, slabs in (("lower", self._lower), ("upper", self._upper)):
            description[name] = [number_or_word(slabs.low[0]), number_or_word(slabs.high[-1])]
        return description


def _surviving_cells(cells: _Cells, gain: FloatArray, loss: FloatArray, most: float) -> BoolArray:
    """Return which cells are allowed and add at most `most` mistakes, shape (lower, upper)."""
    n_cells = len(cells.lower) * len(cells.upper)
    if n_cells > _MOST_CELLS:
        raise ParameterError(
            f"Up to {n_cells} cells of intervals would survive, more than the {_MOST_CELLS} that"
            " are held; restrict with fewer points or a smaller slack first."
        )
    kept = np.empty((len(cells.lower), len(cells.upper)), dtype=bool)
    for rows in cells.blocks():
        kept[rows] = cells.allowed(rows) & (gain - loss[rows, None] <= most)
    return kept


def _first_best_interval(cells: _Cells, gain: FloatArray, by_lower: FloatArray) -> Interval:
    """Return an interval of the first cell with the fewest mistakes, by lower, then upper range.

    The cell must hold an asked point, q <= r, so that any pair of its ends is in order.
    """
    row = int(by_lower.argmin())
    place = int(np.argmin(np.where(cells.allowed(slice(row, row + 1))[0], gain, math.inf)))
    p, q = float(cells.lower.low[row]), float(cells.lower.high[row])
    r, s = float(cells.upper.low[place]), float(cells.upper.high[place])
    return Interval(place_between(p, q), _upper_between(r, s))


class Intervals(HypothesisClass):
    """Functions 1[a <= x <= b] of one feature, with a <= b real or infinite, and the function 0.

    Notes
    -----
    On m distinct points there are m (m + 1) / 2 + 1 labellings. Cost with n points: O(n log n) for
    `erm` and `dichotomies`, O(m^2) for errors of all labellings; for version spaces see
    `IntervalSpace`.

    Examples
    --------
    >>> best = sb.hypotheses.Intervals().erm([[1.0], [2.0], [3.0], [4.0]], [0, 1, 1, 0])
    >>> best.lower, best.upper
    (1.5, 3.5)
    """

    name: ClassVar[str] = "intervals"

    @property
    def vc_dimension(self) -> int:
        """2. Exact."""
        return 2

    def erm(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Interval:
        """Return the interval with the least weighted mistakes; among equals the first of
        `dichotomies`.

        The run of neighbours with the largest sum of ones less zeros, by prefix sums (Kadane).
        Cost: O(n log n).

        Parameters
        ----------
        X : array of shape (n, 1)
        y : array of 0 and 1, shape (n,)
        sample_weight : array of shape (n,), optional
            What a mistake on each row counts, at least 0; 1 by default.
        """
        points, labels, weights = check_weighted(X, y, sample_weight, 1)
        column = SortedColumn.sort(points[:, 0])
        # zeros less ones: mistakes gained
        excess = column.prefix_sums(np.where(labels == 1, -weights, weights))
        least_after = np.minimum.accumulate(excess[:0:-1])[::-1]  # over all ends from a start on
        gains = least_after - excess[:-1]
        first = int(gains.argmin())
        if not gains[first] < 0:
            return EMPTY
        last = first + int(np.argmin(excess[first + 1 :]))
        return interval_between(column, first, last)

    def dichotomies(self, X: ArrayLike) -> "IntervalDichotomies":
        """Return the labellings: none first, then by first and last point inside.

        Parameters
        ----------
        X : array of shape (m, 1)
        """
        return IntervalDichotomies(check_points(X, 1)[:, 0])

    def version_space(self) -> IntervalSpace:
        """Return the whole class as a version space."""
        return IntervalSpace.whole()


class IntervalDichotomies(Dichotomies):
    """The distinct labellings of points by intervals.

    Number 0 is the empty interval; then come the intervals that start at the first distinct point,
    by their last one; then those that start at the second; and so on. Ends lie midway between
    neighbours, or at infinity.

    Attributes
    ----------
    column : SortedColumn
        Distinct points, and prefix sums of anything: what a sampler over all
        labellings needs.

    Notes
    -----
    Memory: O(n). Cost: O(n log n) for sorting, O(1) for one hypothesis.
    """

    def __init__(self, values: FloatArray) -> None:
        self.column, self._points = SortedColumn.sort(values), values
        self._m = len(self.column.values)

    def __len__(self) -> int:
        return self._m * (self._m + 1) // 2 + 1

    def hypothesis(self, index: int) -> Interval:
        """Return the interval with that number."""
        ends = self.ends(index)
        return EMPTY if ends is None else interval_between(self.column, *ends)

    def ends(self, index: int) -> tuple[int, int] | None:
        """Return the places of the first and last distinct point inside; None for the empty one.

        Raises
        ------
        ParameterError
            If `index` is not from 0 to the number of labellings less 1.
        """
        number = check_index(index, len(self))
        if number == 0:
            return None
        # Counted from the end, the intervals that start at the last r points are r (r + 1) / 2.
        behind = len(self) - 1 - number
        r = (math.isqrt(8 * behind + 1) - 1) // 2
        return self._m - 1 - r, self._m - 1 - (behind - r * (r + 1) // 2)

    def index(self, first: int, last: int) -> int:
        """Return the number of the labelling from one distinct point to another, by their places.

        Raises
        ------
        ParameterError
            If not 0 <= first <= last < number of distinct points.
        """
        if not 0 <= first <= last < self._m:
            raise ParameterError(
                Parameter("first"),
                f" is {first!r} and last {last!r}; they must be places of the {self._m} distinct"
                " points, in order.",
            )
        return int(1 + first * self._m - first * (first - 1) // 2 + last - first)

    def errors(self, y: ArrayLike) -> IntArray:
        """Return the mistakes of every labelling against `y`. Cost: O(m^2) time and memory.

        Raises
        ------
        DataError
            If the labels do not fit.
        ParameterError
            If there are more than 50,000,000 labellings.

        Parameters
        ----------
        y : array of 0 and 1, shape (m,)
            Labels of the points, in their order.
        """
        return self.errors_on(self._points, y)

    def prefix_mistakes_on(self, X: ArrayLike, y: ArrayLike) -> tuple[int, IntArray, IntArray]:
        """Return what the mistakes of all representatives on other points are made of.

        Parameters
        ----------
        X : array of shape (n, 1) or (n,)
            Any points. One that lies on an end which two neighbours share is inside both.
        y : array of 0 and 1, shape (n,)

        Returns
        -------
        base : int
            Mistakes of the empty interval.
        starts, ends : ndarrays of int64, shape (m,)
            The interval from place i to place j makes ``base + ends[j] - starts[i]`` mistakes.

        Raises
        ------
        DataError
            If points or labels do not fit.

        Notes
        -----
        Cost: O((n + m) log n).
        """
        points = check_points(X, 1)[:, 0]
        labels = check_labels(y, len(points))
        others = SortedColumn.sort(points)
        sums = others.prefix_sums(1 - 2 * labels)
        starts = sums[np.searchsorted(others.values, self.column.cuts[:-1], side="left")]
        return (
            int(labels.sum()),
            starts,
            sums[np.searchsorted(others.values, upper_ends(self.column), side="right")],
        )

    def errors_on(self, X: ArrayLike, y: ArrayLike) -> IntArray:
        """Return the mistakes of every representative on other points, in O(m^2) time and memory.

        Raises
        ------
        DataError
            If points or labels do not fit.
        ParameterError
            If there are more than 50,000,000 labellings.

        Parameters
        ----------
        X : array of shape (n, 1) or (n,)
        y : array of 0 and 1, shape (n,)
        """
        if len(self) > _MOST_LISTED:
            raise ParameterError(
                f"There are {len(self)} labellings, more than the {_MOST_LISTED} whose errors are"
                " listed; use prefix_mistakes_on, which holds them all in one sum for each point."
            )
        base, starts, ends = self.prefix_mistakes_on(X, y)
        errors = np.empty(len(self), dtype=np.int64)
        errors[0] = base
        for first in range(self._m):
            start = self.index(first, first)
            errors[start : start + self._m - first] = ends[first:] - starts[first] + base
        return errors
