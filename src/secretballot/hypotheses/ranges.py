"""Functions that are 1 on a range of one feature: thresholds, stumps and intervals, with their
dichotomies."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from secretballot._typing import AnyArray, BoolArray, FloatArray, IntArray, Json, Names
from secretballot._validation import check_choice, check_count
from secretballot.hypotheses.base import (
    Dichotomies,
    Hypothesis,
    HypothesisClass,
    check_labelled,
    check_points,
)


@dataclass(frozen=True)
class Cut:
    """One feature, one threshold, one direction.

    Attributes
    ----------
    threshold : float
        From minus infinity to infinity, both included.
    direction : {"up", "down"}
        "up" labels 1 where the feature is at least the threshold, "down" where it is less.
    feature : int
        Column that is looked at.
    n_features : int
        Columns of the points.
    """

    threshold: float
    direction: str = "up"
    feature: int = 0
    n_features: int = 1

    def predict(self, X: ArrayLike) -> IntArray:
        """Return 0 or 1 for every row of `X`, shape (n,), int64. Cost: O(n)."""
        above = check_points(X, self.n_features)[:, self.feature] >= self.threshold
        return (above if self.direction == "up" else ~above).astype(np.int64)

    def describe(self) -> Json:
        """Return the parameters as JSON values."""
        threshold = _number_or_word(self.threshold)
        return {"threshold": threshold, "direction": self.direction, "feature": self.feature}


@dataclass(frozen=True)
class Interval:
    """1 from `lower` to `upper`, both included, else 0; the empty interval is from inf to -inf.

    Attributes
    ----------
    lower, upper : float
    """

    lower: float
    upper: float

    def predict(self, X: ArrayLike) -> IntArray:
        """Return 0 or 1 for every row of `X`, shape (n,), int64. Cost: O(n)."""
        x = check_points(X, 1)[:, 0]
        return ((x >= self.lower) & (x <= self.upper)).astype(np.int64)

    def describe(self) -> Json:
        """Return the parameters as JSON values."""
        return {"lower": _number_or_word(self.lower), "upper": _number_or_word(self.upper)}


EMPTY = Interval(math.inf, -math.inf)


def _number_or_word(value: float) -> float | str:
    """Return a finite number as it is, and an infinity, which JSON has not, as "inf" or "-inf"."""
    return float(value) if math.isfinite(value) else str(float(value))


def _places_between(low: FloatArray, high: FloatArray) -> FloatArray:
    """Return thresholds t with low < t <= high in the middle, or an end that is infinite, shape
    (k,).

    Halves are added, not numbers, because a sum may overflow. Where no float lies strictly between
    neighbours, the upper one separates them: values from it on are at least t. Nothing finite lies
    below a `low` of minus infinity, which is then the threshold.
    """
    middle = low / 2 + high / 2
    placed = np.where((low < middle) & (middle <= high), middle, high)
    return np.where(np.isinf(low), low, placed)


@dataclass(frozen=True, eq=False)
class SortedColumn:
    """A column of numbers in ascending order, equal ones together.

    Attributes
    ----------
    values : ndarray of shape (m,)
        Distinct values, ascending.
    order : ndarray of shape (n,)
        Rows by ascending value.
    bounds : ndarray of shape (m + 1,)
        The rows with `values[k]` are `order[bounds[k]:bounds[k + 1]]`.
    """

    values: FloatArray
    order: IntArray
    bounds: IntArray

    @classmethod
    def sort(cls, column: FloatArray) -> "SortedColumn":
        """Sort n numbers, at least one. Cost: O(n log n).

        Parameters
        ----------
        column : array of shape (n,)
        """
        order = np.argsort(column)
        ascending = column[order]
        starts = np.flatnonzero(ascending[1:] != ascending[:-1]) + 1
        bounds = np.concatenate([[0], starts, [len(column)]])
        return cls(ascending[bounds[:-1]], order, bounds)

    def prefix_sums(self, amounts: AnyArray) -> AnyArray:
        """Return the sums of amounts over the first 0, ..., m distinct values, shape (m + 1,)."""
        sums = np.zeros(len(amounts) + 1, dtype=amounts.dtype)
        np.cumsum(amounts[self.order], out=sums[1:])
        return sums[self.bounds]

    @cached_property
    def places(self) -> IntArray:
        """The place among the distinct values of each row, shape (n,)."""
        found = np.empty(len(self.order), dtype=np.int64)
        found[self.order] = np.repeat(np.arange(len(self.values)), np.diff(self.bounds))
        return found

    @cached_property
    def cuts(self) -> FloatArray:
        """Thresholds with the first 0, ..., m distinct values below them and the others not, shape
        (m + 1,)."""
        return _places_between(np.append(-math.inf, self.values), np.append(self.values, math.inf))

    @cached_property
    def ends(self) -> FloatArray:
        """The same numbers of values up to them, themselves included: the mirror image of cuts."""
        mirrored = SortedColumn(-self.values[::-1], self.order, self.bounds)
        return -mirrored.cuts[::-1] + 0.0


class RangeDichotomies(Dichotomies):
    """Labellings of points that are each 1 on a range of the distinct values of one feature.

    They are numbered in blocks, each of one feature.

    Attributes
    ----------
    columns : tuple of SortedColumn
        One for every feature.

    Notes
    -----
    Cost: O(d n log n) for sorting, O(log n) for one hypothesis, O(d (n + m) log n) and the number
    of labellings for errors. Memory: O(d n).
    """

    def __init__(self, points: FloatArray) -> None:
        super().__init__(points)
        self.columns = tuple(SortedColumn.sort(column) for column in points.T)
        self._offsets = np.cumsum(np.append(0, self._sizes()))

    @abstractmethod
    def _sizes(self) -> Sequence[int] | IntArray:
        """Return how many labellings each block has."""

    @abstractmethod
    def _range(self, block: int) -> tuple[int, IntArray, IntArray]:
        """Return the feature of a block, and from which place to below which one its labellings are
        1, two arrays of its size."""

    @abstractmethod
    def _hypothesis(self, block: int, place: int) -> Hypothesis:
        """Return the representative of the labelling with that place in a block."""

    def _upper_ends(self, column: SortedColumn) -> tuple[FloatArray, str]:
        """Return the upper ends of ranges with 0, ..., m values below, and on which side of a value
        that equals one it lies, as `numpy.searchsorted` names it."""
        return column.cuts, "left"

    def __len__(self) -> int:
        return int(self._offsets[-1])

    def hypothesis(self, index: int) -> Hypothesis:
        """Return the representative of the labelling with that number."""
        number = range(len(self))[index]
        block = int(np.searchsorted(self._offsets, number, side="right")) - 1
        return self._hypothesis(block, number - int(self._offsets[block]))

    def errors_on(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> AnyArray:
        """Return the mistakes of every representative on n other points.

        Raises
        ------
        DataError
            If points or labels do not fit.
        """
        ones, sums = self._sums_on(X, y, sample_weight)
        errors = []
        for block in range(len(self._offsets) - 1):
            feature, starts, stops = self._range(block)
            below_start, below_stop = sums[feature]
            errors.append(ones + below_stop[stops] - below_start[starts])
        return np.concatenate(errors)

    def _sums_on(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> tuple[Any, list[tuple[AnyArray, AnyArray]]]:
        """Return the ones among n other points, and for every feature zeros less ones below each
        lower and each upper end, two arrays of shape (m + 1,)."""
        points = check_points(X, len(self.columns))
        labels, weights = check_labelled(y, sample_weight, len(points))
        excess, found = np.where(labels == 1, -weights, weights), []
        for column, values in zip(self.columns, points.T, strict=True):
            others = SortedColumn.sort(values)
            sums = others.prefix_sums(excess)
            lower, upper = (
                sums[np.searchsorted(others.values, ends, side=side)]  # type: ignore[call-overload]
                for ends, side in ((column.cuts, "left"), self._upper_ends(column))
            )
            found.append((lower, upper))
        return weights[labels == 1].sum(), found

    def disputed(self, left: BoolArray) -> BoolArray:
        """Return which points two of the labellings that are left tell apart."""
        said = np.zeros(len(self.points), dtype=np.int64)  # how many of them are 1 there
        rises = [np.zeros(len(column.values) + 1, dtype=np.int64) for column in self.columns]
        for block, mine in enumerate(np.split(left, self._offsets[1:-1])):
            feature, *ends = self._range(block)
            first, last = (np.bincount(end[mine], minlength=len(rises[feature])) for end in ends)
            rises[feature] += first - last
        for column, rise in zip(self.columns, rises, strict=True):
            said += np.cumsum(rise)[column.places]
        return np.asarray((said > 0) & (said < left.sum()))


class CutDichotomies(RangeDichotomies):
    """The distinct labellings of points by cuts.

    In order: the cuts of the first feature in the first direction by ascending threshold, both
    constants among them; then those between points in the next direction; then the next feature,
    without labellings that came before. Thresholds lie midway between neighbours.

    Parameters
    ----------
    points : ndarray of float64, shape (m, n_features)
    directions : sequence of {"up", "down"}

    Notes
    -----
    Cost: O(d^2 n) more, to find labellings that two features share.
    """

    def __init__(self, points: FloatArray, directions: Sequence[str]) -> None:
        self._directions = directions
        super().__init__(points)

    def _sizes(self) -> list[int]:
        self._blocks: list[tuple[int, str, IntArray]] = []
        for feature, column in enumerate(self.columns):
            new = np.ones(len(column.values) - 1, dtype=np.bool_)
            for earlier in self.columns[:feature]:
                new &= ~_shared_cuts(column, earlier)
            between = np.flatnonzero(new) + 1
            self._blocks += [(feature, direction, between) for direction in self._directions]
        first = self._blocks[0]
        self._blocks[0] = (*first[:2], np.arange(len(self.columns[0].values) + 1))
        return [len(cuts) for _, _, cuts in self._blocks]

    def _range(self, block: int) -> tuple[int, IntArray, IntArray]:
        feature, direction, cuts = self._blocks[block]
        if direction == "down":
            return feature, np.zeros_like(cuts), cuts
        return feature, cuts, np.full_like(cuts, len(self.columns[feature].values))

    def _hypothesis(self, block: int, place: int) -> Cut:
        feature, direction, cuts = self._blocks[block]
        threshold = float(self.columns[feature].cuts[cuts[place]])
        return Cut(threshold, direction, feature, len(self.columns))


def _shared_cuts(column: SortedColumn, other: SortedColumn) -> BoolArray:
    """Return, for every cut between values of a column, whether one of the other separates alike:
    there all rows below the cut are below all others, or above them."""
    along, at = other.places[column.order], column.bounds[1:-1]
    below = [bound.accumulate(along)[at - 1] for bound in (np.minimum, np.maximum)]
    above = [bound.accumulate(along[::-1])[::-1][at] for bound in (np.minimum, np.maximum)]
    return np.asarray((below[1] < above[0]) | (below[0] > above[1]))


class IntervalDichotomies(RangeDichotomies):
    """The distinct labellings of points by intervals.

    Number 0 is the empty interval; then come the intervals that start at the first distinct point,
    by their last one; then those that start at the second; and so on. Ends lie midway between
    neighbours, or at infinity. Nothing is listed until it is asked for.
    """

    def _sizes(self) -> IntArray:
        return np.append(1, np.arange(len(self.columns[0].values), 0, -1))

    def _range(self, block: int) -> tuple[int, IntArray, IntArray]:
        first, m = max(0, block - 1), len(self.columns[0].values)
        stops = np.arange(first + 1, m + 1) if block else np.zeros(1, dtype=np.int64)
        return 0, np.full_like(stops, first), stops

    def _hypothesis(self, block: int, place: int) -> Interval:
        return self.between(block - 1, block - 1 + place) if block else EMPTY

    def _upper_ends(self, column: SortedColumn) -> tuple[FloatArray, str]:
        return column.ends, "right"

    def between(self, first: int, last: int) -> Interval:
        """Return the interval around the distinct points from one place to another."""
        [column] = self.columns
        return Interval(float(column.cuts[first]), float(column.ends[last + 1]))

    def prefix_mistakes_on(self, X: ArrayLike, y: ArrayLike) -> tuple[IntArray, IntArray]:
        """Return what the mistakes of all representatives on other points are made of.

        Parameters
        ----------
        X : array of shape (n, 1) or (n,)
            Any points. One that lies on an end which two neighbours share is inside both.
        y : array of 0 and 1, shape (n,)

        Returns
        -------
        starts, ends : ndarrays of int64, shape (m,)
            The interval from place i to place j makes ``ends[j] - starts[i]`` mistakes more than
            the empty one.

        Raises
        ------
        DataError
            If points or labels do not fit.

        Notes
        -----
        Cost: O((n + m) log n).
        """
        _, [(below_start, below_stop)] = self._sums_on(X, y)
        return below_start[:-1], below_stop[1:]


class _CutClass(HypothesisClass):
    """Cuts of some features in some directions."""

    n_features: int
    _directions: Names

    def dichotomies(self, X: ArrayLike) -> CutDichotomies:
        """Return the labellings, by feature, direction (up, then down) and ascending threshold.

        Parameters
        ----------
        X : array of shape (m, n_features)
        """
        return CutDichotomies(check_points(X, self.n_features), self._directions)


class Thresholds(_CutClass):
    """Functions 1[x >= t] of one feature, with t a real number or an infinity.

    Parameters
    ----------
    direction : {"up", "down", "either"}, default="up"
        "down" has the complements 1[x < t]; "either" has both, the halfspaces of the line.

    Notes
    -----
    On m distinct points there are m + 1 labellings, 2 m for "either". Cost with n points: O(n log
    n) for everything.

    Raises
    ------
    ParameterError
        If `direction` is another word.

    Examples
    --------
    >>> best = sb.hypotheses.Thresholds("down").erm([[1.0], [2.0], [3.0]], [1, 1, 0])
    >>> best.threshold, best.direction
    (2.5, 'down')
    """

    name: ClassVar[str] = "thresholds"
    n_features = 1

    def __init__(self, direction: str = "up") -> None:
        self.direction = check_choice("direction", direction, ("up", "down", "either"))
        self._directions = ("up", "down") if direction == "either" else (direction,)
        self.vc_dimension = len(self._directions)


class DecisionStumps(_CutClass):
    """Functions 1[x_f >= t] and 1[x_f < t] of any one feature f, with t real or infinite.

    Parameters
    ----------
    n_features : int
        Number d of features.

    Notes
    -----
    On m distinct points there are at most 2 d (m - 1) + 2 labellings; fewer where two features
    separate the points alike. Cost with n points: O(d n log n + d^2 n) for everything.

    Raises
    ------
    ParameterError
        If `n_features` is not an integer of at least 1.

    Examples
    --------
    >>> X, y = [[0.0, 5.0], [1.0, 5.0], [0.0, 9.0]], [0, 0, 1]
    >>> best = sb.hypotheses.DecisionStumps(n_features=2).erm(X, y)
    >>> best.feature, best.threshold
    (1, 7.0)
    """

    name: ClassVar[str] = "decision stumps"
    _directions = ("up", "down")

    def __init__(self, n_features: int) -> None:
        self.n_features = check_count("n_features", n_features)
        # A feature orders v points, so that it cuts off two sets of each size, one at either end;
        # all sets of half the points are needed. Leboeuf, LeBlanc and Marchand 2020,
        # arXiv:2010.07374, show that this suffices.
        self.vc_dimension = 2
        while math.comb(self.vc_dimension + 1, (self.vc_dimension + 1) // 2) <= 2 * n_features:
            self.vc_dimension += 1


class Intervals(HypothesisClass):
    """Functions 1[a <= x <= b] of one feature, with a <= b real or infinite, and the function 0.

    Notes
    -----
    On m distinct points there are m (m + 1) / 2 + 1 labellings. Cost with n points: O(n log n) for
    `erm` and `dichotomies`; O(m^2) for errors of all labellings, and for a version space of which m
    points were asked, or are looked at together: 400 MB at 10,000.

    Examples
    --------
    >>> best = sb.hypotheses.Intervals().erm([[1.0], [2.0], [3.0], [4.0]], [0, 1, 1, 0])
    >>> best.lower, best.upper
    (1.5, 3.5)
    """

    name: ClassVar[str] = "intervals"
    n_features = 1
    vc_dimension = 2

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
        found = self.dichotomies(X)
        labels, weights = check_labelled(y, sample_weight, len(found.points))
        # zeros less ones: mistakes gained
        excess = found.columns[0].prefix_sums(np.where(labels == 1, -weights, weights))
        least_after = np.minimum.accumulate(excess[:0:-1])[::-1]  # over all ends from a start on
        gains = least_after - excess[:-1]
        first = int(gains.argmin())
        if not gains[first] < 0:
            return EMPTY
        return found.between(first, first + int(np.argmin(excess[first + 1 :])))

    def dichotomies(self, X: ArrayLike) -> IntervalDichotomies:
        """Return the labellings: none first, then by first and last point inside.

        Parameters
        ----------
        X : array of shape (m, 1)
        """
        return IntervalDichotomies(check_points(X, 1))
