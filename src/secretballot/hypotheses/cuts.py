"""One feature cut at a threshold: thresholds of one feature, stumps of many, and their
dichotomies."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from secretballot._typing import BoolArray, FloatArray, IntArray
from secretballot._validation import check_choice, check_count
from secretballot.hypotheses.base import Dichotomies, HypothesisClass
from secretballot.hypotheses.points import check_labelled, check_points


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

    def describe(self) -> dict[str, Any]:
        """Return the parameters as JSON values."""
        threshold = number_or_word(self.threshold)
        return {"threshold": threshold, "direction": self.direction, "feature": self.feature}


def number_or_word(value: float) -> float | str:
    """Return a finite number as it is, and an infinity, which JSON has not, as "inf" or "-inf"."""
    return float(value) if math.isfinite(value) else str(float(value))


def places_between(low: FloatArray, high: FloatArray) -> FloatArray:
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

    def prefix_sums(self, amounts: NDArray[Any]) -> NDArray[Any]:
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
        return places_between(np.append(-math.inf, self.values), np.append(self.values, math.inf))


@dataclass(frozen=True, eq=False)
class _Block:
    """Labellings of one feature and direction; `cuts` count distinct values below the threshold."""

    feature: int
    direction: str
    cuts: IntArray


class CutDichotomies(Dichotomies):
    """The distinct labellings of points by cuts.

    In order: the cuts of the first feature in the first direction by ascending threshold, both
    constants among them; then those between points in the next direction; then the next feature,
    without labellings that came before. Thresholds lie midway between neighbours.

    Attributes
    ----------
    columns : tuple of SortedColumn
        One for every feature: distinct values, and prefix sums of anything.

    Notes
    -----
    Cost: O(d n log n) for sorting and for `errors`; O(d^2 n) to find labellings that two features
    share. Memory: O(d n).
    """

    def __init__(self, points: FloatArray, directions: Sequence[str]) -> None:
        super().__init__(points)
        self.columns = tuple(SortedColumn.sort(column) for column in points.T)
        self._blocks = tuple(self._cut_blocks(directions))
        self._offsets = np.cumsum([0, *(len(block.cuts) for block in self._blocks)])

    def __len__(self) -> int:
        return int(self._offsets[-1])

    def hypothesis(self, index: int) -> Cut:
        """Return the cut with that number."""
        number = range(len(self))[index]
        block = int(np.searchsorted(self._offsets, number, side="right")) - 1
        chosen = self._blocks[block]
        k = int(chosen.cuts[number - int(self._offsets[block])])
        threshold = float(self.columns[chosen.feature].cuts[k])
        return Cut(threshold, chosen.direction, chosen.feature, len(self.columns))

    def errors_on(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> NDArray[Any]:
        """Return the mistakes of every representative on n other points.

        The points are sorted into the cells between thresholds and summed up there. Cost: O(d (n +
        m) log n).
        """
        points = check_points(X, len(self.columns))
        labels, weights = check_labelled(y, sample_weight, len(points))
        signed, below = np.where(labels == 1, weights, -weights), []
        for column, values in zip(self.columns, points.T, strict=True):
            others = SortedColumn.sort(values)
            sums = others.prefix_sums(signed)
            below.append(sums[np.searchsorted(others.values, column.cuts, side="left")])
        return self._mistakes(below, weights[labels == 0].sum())

    def disputed(self, left: BoolArray) -> BoolArray:
        """Return which points two of the labellings that are left tell apart. Cost: O(d n)."""
        one, zero = np.zeros((2, len(self.points)), dtype=np.bool_)
        for block, mine in zip(self._blocks, np.split(left, self._offsets[1:-1]), strict=True):
            if not mine.any():
                continue
            cuts, places = block.cuts[mine], self.columns[block.feature].places
            # some threshold is at most the point; some is above it
            reached, missed = places >= cuts[0], places < cuts[-1]
            one |= reached if block.direction == "up" else missed
            zero |= missed if block.direction == "up" else reached
        return np.asarray(one & zero)

    def _mistakes(self, below: Sequence[NDArray[Any]], zeros: Any) -> NDArray[Any]:
        """Return all mistakes from ones less zeros below each threshold, shape (m + 1,) each."""
        found = []
        for block in self._blocks:
            sums = below[block.feature]
            # going up, ones below the threshold and zeros from it on are mistakes; going down, all
            # others are
            up = block.direction == "up"
            found.append(zeros + sums[block.cuts] if up else (zeros + sums[-1]) - sums[block.cuts])
        return np.concatenate(found)

    def _cut_blocks(self, directions: Sequence[str]) -> Iterator[_Block]:
        for feature, column in enumerate(self.columns):
            new = np.ones(len(column.values) - 1, dtype=np.bool_)
            for earlier in self.columns[:feature]:
                new &= ~_shared_cuts(column, earlier)
            between = np.flatnonzero(new) + 1
            for direction in directions:
                first = feature == 0 and direction == directions[0]
                yield _Block(
                    feature, direction, np.arange(len(column.values) + 1) if first else between
                )


def _shared_cuts(column: SortedColumn, other: SortedColumn) -> BoolArray:
    """Return, for every cut between values of a column, whether one of the other separates alike.

    The c lowest rows of the one are the c lowest of the other if their places there stay below c,
    and its c highest if they stay at the top; c must end a run of equal values there.
    """
    n, counts = len(column.order), column.bounds[1:-1]
    ends = np.zeros(n + 1, dtype=bool)
    ends[other.bounds] = True
    places = np.empty(n, dtype=np.int64)
    places[other.order] = np.arange(n)
    along = places[column.order]
    same = (np.maximum.accumulate(along)[counts - 1] == counts - 1) & ends[counts]
    reverse = (np.minimum.accumulate(along)[counts - 1] == n - counts) & ends[n - counts]
    return np.asarray(same | reverse)


class _CutClass(HypothesisClass):
    """Cuts of some features in some directions."""

    n_features: int
    _directions: tuple[str, ...]

    def erm(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Cut:
        """Return the cut with the least weighted mistakes, the first of `dichotomies` among equals.
        Cost: O(d n log n).

        Parameters
        ----------
        X : array of shape (n, n_features)
        y : array of 0 and 1, shape (n,)
        sample_weight : array of shape (n,), optional
            What a mistake on each row counts, at least 0; 1 by default.
        """
        # feature by feature: of labellings that two features share the first is found first
        points = check_points(X, self.n_features)
        fewest, best = math.inf, Cut(-math.inf)
        for feature in range(self.n_features):
            found = CutDichotomies(points[:, [feature]], self._directions)
            mistakes = found.errors(y, sample_weight)
            k = int(np.argmin(mistakes))
            if mistakes[k] < fewest:
                fewest, best = float(mistakes[k]), found.hypothesis(k)
                best = replace(best, feature=feature, n_features=self.n_features)
        return best

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

    @property
    def vc_dimension(self) -> int:
        """1; 2 for "either". Exact."""
        return len(self._directions)


class DecisionStumps(_CutClass):
    """Functions 1[x_f >= t] and 1[x_f < t] of any one feature f, with t real or infinite.

    Parameters
    ----------
    n_features : int
        Number d of features.

    Notes
    -----
    On m distinct points there are at most 2 d (m - 1) + 2 labellings; fewer where two features
    separate the points alike. Cost with n points: O(d n log n) for `erm` and for errors of all
    labellings, O(d n log n + d^2 n) for `dichotomies` and version spaces.

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

    @property
    def vc_dimension(self) -> int:
        """The largest v with binomial(v, floor(v / 2)) <= 2 d, about log2(d). Exact.

        A feature orders v points, so that it cuts off two sets of each size, one at either end; all
        sets of half the points are needed. Leboeuf, LeBlanc and Marchand 2020, arXiv:2010.07374,
        show that this suffices.
        """
        dimension = 2
        while math.comb(dimension + 1, (dimension + 1) // 2) <= 2 * self.n_features:
            dimension += 1
        return dimension
