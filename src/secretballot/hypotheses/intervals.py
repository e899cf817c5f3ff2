"""Intervals of one feature: learner in one pass over sorted points, and dichotomies by number
alone."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from secretballot._typing import BoolArray, FloatArray, IntArray
from secretballot.exceptions import ParameterError
from secretballot.hypotheses.base import Dichotomies, HypothesisClass
from secretballot.hypotheses.cuts import SortedColumn, number_or_word, places_between
from secretballot.hypotheses.points import check_labelled, check_points

# Labellings whose errors are still given one by one: 400 MB of numbers, the intervals of 9,999
# distinct points.
_MOST_LISTED = 50_000_000


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

    def describe(self) -> dict[str, Any]:
        """Return the parameters as JSON values."""
        return {"lower": number_or_word(self.lower), "upper": number_or_word(self.upper)}


EMPTY = Interval(math.inf, -math.inf)


class Intervals(HypothesisClass):
    """Functions 1[a <= x <= b] of one feature, with a <= b real or infinite, and the function 0.

    Notes
    -----
    On m distinct points there are m (m + 1) / 2 + 1 labellings. Cost with n points: O(n log n) for
    `erm` and `dichotomies`, O(m^2) for errors of all labellings. A version space lists the
    labellings of all points that were asked, up to 9,999 distinct ones; for the region of
    disagreement between all of them, up to 4,999.

    Examples
    --------
    >>> best = sb.hypotheses.Intervals().erm([[1.0], [2.0], [3.0], [4.0]], [0, 1, 1, 0])
    >>> best.lower, best.upper
    (1.5, 3.5)
    """

    name: ClassVar[str] = "intervals"
    n_features = 1

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
        found = self.dichotomies(X)
        labels, weights = check_labelled(y, sample_weight, len(found.points))
        # zeros less ones: mistakes gained
        excess = found.column.prefix_sums(np.where(labels == 1, -weights, weights))
        least_after = np.minimum.accumulate(excess[:0:-1])[::-1]  # over all ends from a start on
        gains = least_after - excess[:-1]
        first = int(gains.argmin())
        if not gains[first] < 0:
            return EMPTY
        return found.between(first, first + int(np.argmin(excess[first + 1 :])))

    def dichotomies(self, X: ArrayLike) -> "IntervalDichotomies":
        """Return the labellings: none first, then by first and last point inside.

        Parameters
        ----------
        X : array of shape (m, 1)
        """
        return IntervalDichotomies(check_points(X, 1))

    def representatives(self, asked: FloatArray, points: FloatArray) -> tuple[IntArray, IntArray]:
        """Return one row for all points between the same two that were asked: what holds one of
        them may be moved to hold another."""
        known, x = np.unique(asked), points[:, 0]
        # even between two known points, odd at one
        code = np.searchsorted(known, x, "left") + np.searchsorted(known, x, "right")
        _, rows, like = np.unique(code, return_index=True, return_inverse=True)
        return rows, like


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

    def __init__(self, points: FloatArray) -> None:
        super().__init__(points)
        self.column = SortedColumn.sort(points[:, 0])
        self._m = len(self.column.values)

    def __len__(self) -> int:
        return self._m * (self._m + 1) // 2 + 1

    def hypothesis(self, index: int) -> Interval:
        """Return the interval with that number."""
        ends = self.ends(index)
        return EMPTY if ends is None else self.between(*ends)

    def between(self, first: int, last: int) -> Interval:
        """Return the interval around the distinct points from one place to another."""
        return Interval(float(self.column.cuts[first]), float(self._upper_ends[last]))

    @cached_property
    def _upper_ends(self) -> FloatArray:
        """Upper ends of intervals whose last point inside is in each place, shape (m,): below the
        next point, the mirror image of lower ends."""
        following = np.append(self.column.values[1:], math.inf)
        return -places_between(-following, -self.column.values) + 0.0

    def ends(self, index: int) -> tuple[int, int] | None:
        """Return the places of the first and last distinct point inside; None for the empty one.

        Raises
        ------
        IndexError
            If there are not so many labellings.
        """
        number = range(len(self))[index]
        if number == 0:
            return None
        # Counted from the end, the intervals that start at the last r points are r (r + 1) / 2.
        behind = len(self) - 1 - number
        r = (math.isqrt(8 * behind + 1) - 1) // 2
        return self._m - 1 - r, self._m - 1 - (behind - r * (r + 1) // 2)

    def index(self, first: int, last: int) -> int:
        """Return the number of the labelling from one distinct point to another, by their places,
        0 <= first <= last < m."""
        return int(1 + first * self._m - first * (first - 1) // 2 + last - first)

    def prefix_mistakes_on(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> tuple[Any, NDArray[Any], NDArray[Any]]:
        """Return what the mistakes of all representatives on other points are made of.

        Parameters
        ----------
        X : array of shape (n, 1) or (n,)
            Any points. One that lies on an end which two neighbours share is inside both.
        y : array of 0 and 1, shape (n,)
        sample_weight : array of shape (n,), optional
            What a mistake on each row counts; 1 by default, and then numbers are int64.

        Returns
        -------
        base : int or float
            Mistakes of the empty interval.
        starts, ends : ndarrays of shape (m,)
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
        labels, weights = check_labelled(y, sample_weight, len(points))
        others = SortedColumn.sort(points)
        sums = others.prefix_sums(np.where(labels == 1, -weights, weights))
        return (
            weights[labels == 1].sum(),
            sums[np.searchsorted(others.values, self.column.cuts[:-1], side="left")],
            sums[np.searchsorted(others.values, self._upper_ends, side="right")],
        )

    def errors_on(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> NDArray[Any]:
        """Return the mistakes of every representative on other points, of shape (n, 1) or (n,).
        Cost: O(m^2) time and memory.

        Raises
        ------
        DataError
            If points or labels do not fit.
        ParameterError
            If there are more than 50,000,000 labellings.
        """
        if len(self) > _MOST_LISTED:
            raise ParameterError(
                f"There are {len(self)} labellings, more than the {_MOST_LISTED} whose errors are"
                " listed; take fewer points, or prefix_mistakes_on, which holds them all in one sum"
                " for each point."
            )
        base, starts, ends = self.prefix_mistakes_on(X, y, sample_weight)
        errors = np.full(len(self), base, dtype=ends.dtype)
        for first, mine in enumerate(self._slices()):
            errors[mine] += ends[first:] - starts[first]
        return errors

    def _slices(self) -> list[slice]:
        """Return where the intervals are that start at each distinct point."""
        starts = [self.index(first, first) for first in range(self._m)]
        return [slice(start, start + self._m - first) for first, start in enumerate(starts)]

    def disputed(self, left: BoolArray) -> BoolArray:
        """Return which points two of the labellings that are left tell apart. Cost: O(m^2)."""
        places, furthest = np.arange(self._m), np.full(self._m, -1)
        # nothing is outside of all intervals that are left but what all of them hold
        common = (0, -1) if left[0] else (0, self._m - 1)
        for first, mine in enumerate(self._slices()):
            lasts = first + np.flatnonzero(left[mine])
            if len(lasts):
                furthest[first] = lasts[-1]
                common = (first, min(common[1], int(lasts[0])))
        held = places <= np.maximum.accumulate(furthest)
        missed = (places < common[0]) | (places > common[1])
        return np.asarray((held & missed)[self.column.places])
