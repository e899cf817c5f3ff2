"""One feature cut at a threshold: the hypothesis, sorted columns, and unions of segments."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from secretballot._typing import BoolArray, FloatArray, IntArray
from secretballot._validation import check_choice, check_count
from secretballot.exceptions import Parameter, ParameterError
from secretballot.hypotheses.points import check_points


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

    Raises
    ------
    ParameterError
        If the threshold is nan, the direction another word, or the feature not one of the columns.
    """

    threshold: float
    direction: str = "up"
    feature: int = 0
    n_features: int = 1

    def __post_init__(self) -> None:
        check_choice("direction", self.direction, ("up", "down"))
        check_count("n_features", self.n_features)
        if math.isnan(self.threshold):
            raise ParameterError(
                Parameter("threshold"), " is nan; it must be a number or an infinity."
            )
        if not check_count("feature", self.feature, minimum=0) < self.n_features:
            raise ParameterError(
                Parameter("feature"),
                f" is {self.feature}; there are {self.n_features}, counted from 0.",
            )

    def predict(self, X: ArrayLike) -> IntArray:
        """Return 0 or 1 for every row of `X`, shape (n,), int64. Cost: O(n)."""
        above = check_points(X, self.n_features)[:, self.feature] >= self.threshold
        return (above if self.direction == "up" else ~above).astype(np.int64)

    def describe(self) -> dict[str, Any]:
        """Return the parameters as JSON values."""
        threshold = number_or_word(self.threshold)
        return {"threshold": threshold, "direction": self.direction, "feature": self.feature}


def number_or_word(value: float) -> float | str:
    """Return a finite number as it is, and an infinity, which JSON has not, as "inf" or "-inf"."""
    return float(value) if math.isfinite(value) else str(float(value))


def place_between(low: float, high: float) -> float:
    """Return a threshold t with low < t <= high in the middle, or an end that is infinite.

    Halves are added, not numbers, because a sum may overflow. Where no float lies strictly between
    neighbours, the upper one separates them: values from it on are at least t.
    """
    if math.isinf(low):
        return low  # the only case with t = low: nothing finite lies below
    if math.isinf(high):
        return high
    middle = low / 2 + high / 2
    return middle if low < middle <= high else high


def places_between(low: FloatArray, high: FloatArray) -> FloatArray:
    """Return `place_between` of many pairs, shape (k,), bit for bit."""
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
        """Sort n numbers. Cost: O(n log n).

        Parameters
        ----------
        column : array of shape (n,)
        """
        order = np.argsort(column)
        ascending = column[order]
        starts = np.flatnonzero(ascending[1:] != ascending[:-1]) + 1
        bounds = (
            np.concatenate([[0], starts, [len(column)]])
            if len(column)
            else np.zeros(1, dtype=np.int64)
        )
        return cls(ascending[bounds[:-1]], order, bounds)

    def prefix_sums(self, amounts: NDArray[Any]) -> NDArray[Any]:
        """Return the sums of amounts over the first 0, ..., m distinct values, shape (m + 1,)."""
        sums = np.zeros(len(amounts) + 1, dtype=amounts.dtype)
        np.cumsum(amounts[self.order], out=sums[1:])
        return sums[self.bounds]

    @property
    def cuts(self) -> FloatArray:
        """The thresholds `cut(0)`, ..., `cut(m)`, shape (m + 1,)."""
        return places_between(np.append(-math.inf, self.values), np.append(self.values, math.inf))

    def cut(self, k: int) -> float:
        """Return a threshold with the first `k` distinct values below it and the others not."""
        low = self.values[k - 1] if k > 0 else -math.inf
        high = self.values[k] if k < len(self.values) else math.inf
        return place_between(float(low), float(high))


@dataclass(frozen=True, eq=False)
class Segments:
    """A set of thresholds: disjoint segments (low, high], ascending.

    Minus infinity counts as above itself.

    Attributes
    ----------
    low, high : ndarray of shape (s,)
    """

    low: FloatArray
    high: FloatArray

    @classmethod
    def whole(cls) -> "Segments":
        """Return the set of all thresholds, the infinities included."""
        return cls(np.array([-math.inf]), np.array([math.inf]))

    def __len__(self) -> int:
        return len(self.low)

    def split(self, values: FloatArray) -> "Segments":
        """Return the same set in pieces with none of the ascending values strictly inside.

        All thresholds of a piece label all of the values alike.

        Parameters
        ----------
        values : array of shape (k,)
        """
        holder = np.searchsorted(self.low, values, side="left") - 1
        inside = values[(holder >= 0) & (values < self.high[np.maximum(holder, 0)])]
        if not len(inside):
            return self
        # Sorted together, the n-th lower bound belongs to the n-th upper one, because segments are
        # disjoint.
        return Segments(
            np.sort(np.concatenate([self.low, inside]), kind="stable"),
            np.sort(np.concatenate([self.high, inside]), kind="stable"),
        )

    def keep(self, kept: BoolArray) -> "Segments":
        """Return the segments that are kept, shape (s,) of bool."""
        return Segments(self.low[kept], self.high[kept])

    def joined(self) -> "Segments":
        """Return the same set with segments that touch made one."""
        apart = np.ones(len(self) + 1, dtype=bool)
        apart[1:-1] = self.low[1:] != self.high[:-1]
        return Segments(self.low[apart[:-1]], self.high[apart[1:]])
