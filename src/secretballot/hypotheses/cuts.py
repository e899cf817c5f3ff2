"""One feature cut at a threshold: thresholds of one feature, stumps of many, their dichotomies and
version spaces."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from secretballot._typing import BoolArray, FloatArray, IntArray
from secretballot._validation import check_choice, check_count
from secretballot.exceptions import Parameter, ParameterError
from secretballot.hypotheses.base import Dichotomies, HypothesisClass, VersionSpace
from secretballot.hypotheses.points import (
    check_index,
    check_labels,
    check_points,
    check_slack,
    check_weighted,
    rounding_allowance,
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


def _mistakes_of_cuts(
    below: NDArray[Any], total: float, n_zeros: float, direction: str
) -> NDArray[Any]:
    """Return the mistakes of cuts with `below` = ones less zeros under them, `total` of it overall.

    Going up, ones below the threshold and zeros from it on are mistakes; going down, all others
    are.
    """
    return np.asarray(n_zeros + below if direction == "up" else (n_zeros + total) - below)


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
    Cost: O(d n log n) for sorting; O(d^2 n) to find labellings that two features share; O(d n) for
    `errors`. Memory: O(d n).
    """

    def __init__(self, points: FloatArray, directions: Sequence[str]) -> None:
        self.columns = tuple(SortedColumn.sort(column) for column in points.T)
        self._directions = tuple(directions)
        self._points = points

    def __len__(self) -> int:
        return int(self._block_offsets[-1])

    def hypothesis(self, index: int) -> Cut:
        """Return the cut with that number. Cost: O(log d)."""
        number = check_index(index, len(self))
        block = int(np.searchsorted(self._block_offsets, number, side="right")) - 1
        chosen = self._all_blocks[block]
        k = int(chosen.cuts[number - int(self._block_offsets[block])])
        threshold = self.columns[chosen.feature].cut(k)
        return Cut(threshold, chosen.direction, chosen.feature, len(self.columns))

    def errors(self, y: ArrayLike) -> IntArray:
        """Return the mistakes of every labelling against `y`, by prefix sums. Cost: O(d n).

        Parameters
        ----------
        y : array of 0 and 1, shape (m,)
        """
        return self.errors_on(self._points, y)

    def errors_on(self, X: ArrayLike, y: ArrayLike) -> IntArray:
        """Return the number of mistakes of every representative on n other points.

        The points are sorted into the cells between thresholds and summed up there. Cost: O(d (n +
        m) log n).

        Parameters
        ----------
        X : array of shape (n, n_features)
        y : array of 0 and 1, shape (n,)
        """
        points = check_points(X, len(self.columns))
        labels = check_labels(y, len(points))
        below = []
        for column, values in zip(self.columns, points.T, strict=True):
            others = SortedColumn.sort(values)
            sums = others.prefix_sums(2 * labels - 1)
            below.append(sums[np.searchsorted(others.values, column.cuts, side="left")])
        return self._all_mistakes(below, labels)

    def _all_mistakes(self, below: Sequence[IntArray], labels: IntArray) -> IntArray:
        """Return all mistakes from ones less zeros below each threshold, shape (m + 1,) each."""
        zeros = len(labels) - int(labels.sum())
        return np.concatenate(
            [
                _mistakes_of_cuts(
                    below[block.feature][block.cuts],
                    below[block.feature][-1],
                    zeros,
                    block.direction,
                )
                for block in self._all_blocks
            ]
        )

    @cached_property
    def _all_blocks(self) -> tuple[_Block, ...]:
        return tuple(self._cut_blocks())

    @cached_property
    def _block_offsets(self) -> IntArray:
        return np.cumsum([0, *(len(block.cuts) for block in self._all_blocks)])

    def _cut_blocks(self) -> Iterator[_Block]:
        for feature, column in enumerate(self.columns):
            new = np.ones(len(column.values) - 1, dtype=bool)
            for earlier in self.columns[:feature]:
                new &= ~_shared_cuts(column, earlier)
            between = np.flatnonzero(new) + 1
            for direction in self._directions:
                first = feature == 0 and direction == self._directions[0]
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


@dataclass(frozen=True, eq=False)
class _Line:
    """The thresholds that are left of one feature and direction."""

    feature: int
    direction: str
    segments: Segments

    @property
    def hull(self) -> tuple[float, float]:
        """Greatest lower and least upper bound of the thresholds."""
        return float(self.segments.low[0]), float(self.segments.high[-1])

    def describe(self) -> dict[str, Any]:
        low, high = (number_or_word(bound) for bound in self.hull)
        line = {"feature": self.feature, "direction": self.direction, "above": low, "at_most": high}
        return {**line, "segments": len(self.segments)}


class CutSpace(VersionSpace):
    """A set of cuts: for every feature and direction, a union of segments of thresholds.

    Exact over the continuum of thresholds, not only over those that some pool distinguishes.

    Notes
    -----
    Cost with n points and s segments: O(d (n log n + s log n)) for `restrict`, where only points
    between the least and the greatest threshold left are sorted; O(d n) for `disagreement_region`.
    Memory: O(d s), beside O(n) or, where many segments survive, O(d n) while restricting.
    """

    def __init__(self, name: str, n_features: int, lines: Sequence[_Line], chosen: Cut) -> None:
        self._name, self._n_features = name, n_features
        self._lines, self._chosen = tuple(lines), chosen

    @classmethod
    def whole(cls, name: str, n_features: int, directions: Sequence[str]) -> "CutSpace":
        """Return the space of all cuts."""
        lines = [
            _Line(feature, way, Segments.whole())
            for feature in range(n_features)
            for way in directions
        ]
        return cls(name, n_features, lines, Cut(-math.inf, directions[0], 0, n_features))

    def restrict(
        self, X: ArrayLike, y: ArrayLike, slack: float, sample_weight: ArrayLike | None = None
    ) -> "CutSpace":
        """See `VersionSpace.restrict`."""
        points, labels, weights = check_weighted(X, y, sample_weight, self._n_features)
        margin = check_slack(slack) + rounding_allowance(weights)
        signed, zeros = np.where(labels == 1, weights, -weights), float(weights[labels == 0].sum())
        # two passes: what survives depends on the fewest mistakes of all lines, so the first pass
        # drops what is worse than the fewest so far, to save memory, and the second decides
        fewest, chosen, left = math.inf, self._chosen, []
        for line, mistakes in self._pieces_with_mistakes(points, signed, zeros):
            k = int(mistakes.argmin())
            if mistakes[k] < fewest:
                fewest, chosen = float(mistakes[k]), self._cut_of_piece(line, k)
            kept = mistakes <= fewest + margin
            left.append(
                (_Line(line.feature, line.direction, line.segments.keep(kept)), mistakes[kept])
            )
        lines = []
        for line, mistakes in left:
            segments = line.segments.keep(mistakes <= fewest + margin).joined()
            if len(segments):
                lines.append(_Line(line.feature, line.direction, segments))
        return CutSpace(self._name, self._n_features, lines, chosen)

    def _cut_of_piece(self, line: _Line, k: int) -> Cut:
        threshold = place_between(float(line.segments.low[k]), float(line.segments.high[k]))
        return Cut(threshold, line.direction, line.feature, self._n_features)

    def _pieces_with_mistakes(
        self, points: FloatArray, signed: FloatArray, zeros: float
    ) -> Iterator[tuple[_Line, FloatArray]]:
        """Yield every line cut at the points, with the mistakes of its pieces."""
        total = float(signed.sum())
        for feature in sorted({line.feature for line in self._lines}):
            lines = [line for line in self._lines if line.feature == feature]
            low, high = min(line.hull[0] for line in lines), max(line.hull[1] for line in lines)
            x = points[:, feature]
            # only points between the ends of the lines cut one; those below are counted all at once
            near = (x > low) & (x < high)
            column = SortedColumn.sort(x[near])
            below = float(signed[x <= low].sum()) + column.prefix_sums(signed[near])
            for line in lines:
                pieces = line.segments.split(column.values)
                lower = below[np.searchsorted(column.values, pieces.low, side="right")]
                yield (
                    _Line(feature, line.direction, pieces),
                    _mistakes_of_cuts(lower, total, zeros, line.direction),
                )

    def disagreement_region(self, X: ArrayLike) -> BoolArray:
        """Return whether two cuts of the space label each row of `X` differently, shape (n,)."""
        points = check_points(X, self._n_features)
        one, zero = np.zeros(len(points), dtype=bool), np.zeros(len(points), dtype=bool)
        for line in self._lines:
            low, high = line.hull
            x = points[:, line.feature]
            # some threshold is at most x; some is above x
            reached, missed = x > low, x < high
            one |= reached if line.direction == "up" else missed
            zero |= missed if line.direction == "up" else reached
        return np.asarray(one & zero)

    def hypothesis(self) -> Cut:
        """Return the first member with the fewest mistakes on the points of the last `restrict`."""
        return self._chosen

    def describe(self) -> dict[str, Any]:
        """Return hull and number of segments of thresholds, by feature and direction."""
        return {"class": self._name, "thresholds": [line.describe() for line in self._lines]}


class _CutClass(HypothesisClass):
    """Cuts of some features in some directions."""

    n_features: int
    _directions: tuple[str, ...]

    def erm(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Cut:
        """Return the cut with the least weighted mistakes, the first of `dichotomies` among equals.

        Parameters
        ----------
        X : array of shape (n, n_features)
        y : array of 0 and 1, shape (n,)
        sample_weight : array of shape (n,), optional
            What a mistake on each row counts, at least 0; 1 by default.

        Notes
        -----
        Cost: O(d n log n) time, O(n) memory beside the points.
        """
        points, labels, weights = check_weighted(X, y, sample_weight, self.n_features)
        signed, zeros = np.where(labels == 1, weights, -weights), weights[labels == 0].sum()
        fewest, best = math.inf, Cut(-math.inf, self._directions[0], 0, self.n_features)
        for feature in range(self.n_features):
            column = SortedColumn.sort(points[:, feature])
            below = column.prefix_sums(signed)
            for direction in self._directions:
                # the two constant labellings are tried once
                first = feature == 0 and direction == self._directions[0]
                cuts = slice(0, None) if first else slice(1, len(column.values))
                mistakes = _mistakes_of_cuts(below[cuts], below[-1], zeros, direction)
                if len(mistakes) and mistakes.min() < fewest:
                    k = int(mistakes.argmin())
                    fewest = float(mistakes[k])
                    place = column.cut(k if first else k + 1)
                    best = Cut(place, direction, feature, self.n_features)
        return best

    def dichotomies(self, X: ArrayLike) -> CutDichotomies:
        """Return the labellings, by feature, direction (up, then down) and ascending threshold.

        Parameters
        ----------
        X : array of shape (m, n_features)
        """
        return CutDichotomies(check_points(X, self.n_features), self._directions)

    def version_space(self) -> CutSpace:
        """Return the whole class as a version space."""
        return CutSpace.whole(self.name, self.n_features, self._directions)


class Thresholds(_CutClass):
    """Functions 1[x >= t] of one feature, with t a real number or an infinity.

    Parameters
    ----------
    direction : {"up", "down", "either"}, default="up"
        "down" has the complements 1[x < t]; "either" has both, the halfspaces of the line.

    Notes
    -----
    On m distinct points there are m + 1 labellings, 2 m for "either". Cost with n points: O(n log
    n) for `erm`, `dichotomies` and `restrict`; O(n) for errors of all labellings and for the
    disagreement region.

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
    separate the points alike. Cost with n points: O(d n log n) for `erm` and `restrict`, O(d n log
    n + d^2 n) for `dichotomies`, O(d n) for errors of all labellings and for the disagreement
    region.

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
