"""Dichotomies and version spaces of classes of cuts: thresholds of one feature, stumps of many."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from secretballot._typing import BoolArray, FloatArray, IntArray
from secretballot.hypotheses.base import Dichotomies, VersionSpace
from secretballot.hypotheses.cuts import Cut, Segments, SortedColumn, number_or_word, place_between
from secretballot.hypotheses.points import (
    check_index,
    check_labels,
    check_points,
    check_slack,
    check_weights,
    rounding_allowance,
)


def _mistakes_of_cuts(
    below: NDArray[Any], total: float, n_zeros: float, direction: str
) -> NDArray[Any]:
    """Return the mistakes of cuts with `below` = ones less zeros under them, `total` of it overall.

    Going up, ones below the threshold and zeros from it on are mistakes; going down, all others
    are.
    """
    return np.asarray(n_zeros + below if direction == "up" else (n_zeros + total) - below)


def best_cut(
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    n_features: int,
    directions: Sequence[str],
) -> Cut:
    """Return the cut with the fewest weighted mistakes, the first of `CutDichotomies` among equals.

    Cost: O(d n log n) time, O(n) memory beside the points.

    Parameters
    ----------
    X : array of shape (n, n_features)
    y : array of 0 and 1, shape (n,)
    sample_weight : array of shape (n,), optional
        What a mistake on each row counts, at least 0; 1 by default.
    n_features : int
    directions : sequence of {"up", "down"}
    """
    points = check_points(X, n_features)
    labels, weights = check_labels(y, len(points)), check_weights(sample_weight, len(points))
    signed, zeros = np.where(labels == 1, weights, -weights), weights[labels == 0].sum()
    fewest, best = math.inf, Cut(-math.inf, directions[0], 0, n_features)
    for feature in range(n_features):
        column = SortedColumn.sort(points[:, feature])
        below = column.prefix_sums(signed)
        for direction in directions:
            # the two constant labellings are tried once
            first = feature == 0 and direction == directions[0]
            cuts = slice(0, None) if first else slice(1, len(column.values))
            mistakes = _mistakes_of_cuts(below[cuts], below[-1], zeros, direction)
            if len(mistakes) and mistakes.min() < fewest:
                k = int(mistakes.argmin())
                fewest = float(mistakes[k])
                best = Cut(column.cut(k if first else k + 1), direction, feature, n_features)
    return best


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
        self._n = len(points)

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
        labels = check_labels(y, self._n)
        return self._all_mistakes(
            [column.prefix_sums(2 * labels - 1) for column in self.columns], labels
        )

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
        self._name, self._n_features, self._lines, self._chosen = (
            name,
            n_features,
            tuple(lines),
            chosen,
        )

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
        """Keep the cuts whose weighted mistakes exceed the least of the space by at most `slack`.

        Liu et al. 2021, supplement, Algorithm 7, line 12, with numbers of mistakes in place of
        rates.

        Parameters
        ----------
        X : array of shape (n, n_features)
        y : array of 0 and 1, shape (n,)
        slack : float
            In mistakes, in the unit of the weights; at least 0.
        sample_weight : array of shape (n,), optional
            What a mistake on each row counts, at least 0; 1 by default.
        """
        points = check_points(X, self._n_features)
        labels, weights = check_labels(y, len(points)), check_weights(sample_weight, len(points))
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
