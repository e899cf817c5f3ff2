"""Intervals of one feature: learner in one pass over sorted points, dichotomies by number alone."""

from math import isqrt
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from secretballot._typing import FloatArray, IntArray
from secretballot.exceptions import Parameter, ParameterError
from secretballot.hypotheses.base import Dichotomies, HypothesisClass
from secretballot.hypotheses.cuts import SortedColumn
from secretballot.hypotheses.interval_spaces import (
    EMPTY,
    Interval,
    IntervalSpace,
    interval_between,
    upper_ends,
)
from secretballot.hypotheses.points import check_index, check_labels, check_points, check_weights

# Labellings whose errors are still given one by one: 400 MB of numbers, the intervals of 9,999
# distinct points.
_MOST_LISTED = 50_000_000


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
        points = check_points(X, 1)
        labels, weights = check_labels(y, len(points)), check_weights(sample_weight, len(points))
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
        self.column = SortedColumn.sort(values)
        self._n = len(values)
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
        r = (isqrt(8 * behind + 1) - 1) // 2
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

    def prefix_mistakes(self, y: ArrayLike) -> tuple[int, IntArray]:
        """Return the mistakes of the empty interval, and what points add, summed from the left.

        Parameters
        ----------
        y : array of 0 and 1, shape (n,)

        Returns
        -------
        base : int
        gained : ndarray of int64, shape (m + 1,)
            The interval from place i to place j makes ``base + gained[j + 1] - gained[i]``
            mistakes.
        """
        labels = check_labels(y, self._n)
        return int(labels.sum()), self.column.prefix_sums(1 - 2 * labels)

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
        self._check_listable("prefix_mistakes")
        base, gained = self.prefix_mistakes(y)
        return self._all_errors(base, gained[:-1], gained[1:])

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
        self._check_listable("prefix_mistakes_on")
        return self._all_errors(*self.prefix_mistakes_on(X, y))

    def _check_listable(self, instead: str) -> None:
        if len(self) > _MOST_LISTED:
            raise ParameterError(
                f"There are {len(self)} labellings, more than the {_MOST_LISTED} whose errors are"
                f" listed; use {instead}, which holds them all in one sum for each point."
            )

    def _all_errors(self, base: int, starts: IntArray, ends: IntArray) -> IntArray:
        errors = np.empty(len(self), dtype=np.int64)
        errors[0] = base
        for first in range(self._m):
            start = self.index(first, first)
            errors[start : start + self._m - first] = ends[first:] - starts[first] + base
        return errors
