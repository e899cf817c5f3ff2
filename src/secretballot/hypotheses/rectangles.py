"""Axis-aligned rectangles of the plane, searched exactly by growing strips."""

from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from secretballot._typing import FloatArray, IntArray
from secretballot.exceptions import DataError, Parameter
from secretballot.hypotheses.base import Dichotomies, HypothesisClass
from secretballot.hypotheses.planar_boxes import (
    NOWHERE,
    Rectangle,
    RectangleVersionSpace,
    box_around,
)
from secretballot.hypotheses.planar_mistakes import Mistakes
from secretballot.hypotheses.planar_strips import Grid, Strip, strip_minima
from secretballot.hypotheses.points import check_index, check_labels, check_points, check_weights

__all__ = ["RectangleDichotomies", "Rectangles"]


# Labellings that are listed at most: 160 MB of mistakes. More points than the second have that
# many, unless they lie on few lines, and counting them would take long.
_MOST_LABELLINGS = 20_000_000
_MOST_POINTS = 400


class RectangleDichotomies(Dichotomies):
    """The labellings of points of the plane by axis-aligned rectangles, each listed once.

    They are the empty one and one for each rectangle that is the smallest around the points it
    holds. Their number depends on the points: about m^4 / 144 for many points drawn independently,
    never more than (m (m + 1) / 2)^2 + 1.

    Parameters
    ----------
    X : array of shape (m, 2)
        Checked points; equal rows are one point.

    Raises
    ------
    DataError
        If there are more than 400 distinct points, or more than 20,000,000 labellings.
    """

    def __init__(self, X: FloatArray) -> None:
        points, self._point = np.unique(X, axis=0, return_inverse=True)
        if len(points) > _MOST_POINTS:
            most = (len(points) * (len(points) + 1) // 2) ** 2 + 1
            raise DataError(
                Parameter("X"),
                f" has {len(points)} distinct points; rectangles label them in up to {most:,}"
                " ways, too many to list: give a sample of some 200 points.",
            )
        self._grid = Grid(points)
        if len(self) > _MOST_LABELLINGS:
            raise DataError(
                Parameter("X"),
                f" has {len(points)} distinct points, which rectangles label in {len(self):,}"
                f" ways; at most {_MOST_LABELLINGS:,} are listed: give a sample of some 200"
                " points.",
            )

    def _strip_and_tops(self, left: int, right: int) -> tuple[Strip, IntArray]:
        """Return a strip, and for each row the first top row whose box touches all four sides."""
        strip, columns = self._grid.strip(left, right), self._grid.columns
        return strip, np.maximum(
            strip.first_rows(columns == left), strip.first_rows(columns == right)
        )

    @cached_property
    def _column_pairs(self) -> IntArray:
        return np.argwhere(
            np.triu(np.ones((len(self._grid.xs), len(self._grid.xs)), dtype=np.bool_))
        )

    @cached_property
    def _first_numbers(self) -> IntArray:
        """Number of the first labelling of each strip, and one past the last."""
        strips = (self._strip_and_tops(left, right) for left, right in self._column_pairs.tolist())
        counts = [int((len(tops) - tops).sum()) for _, tops in strips]
        return np.asarray(1 + np.concatenate([[0], np.cumsum(counts)]))

    def __len__(self) -> int:
        return int(self._first_numbers[-1])

    def hypothesis(self, index: int) -> Rectangle:
        """Return the representative of the labelling with that number: the smallest rectangle."""
        index = check_index(index, len(self))
        if index == 0:
            return NOWHERE
        pair = int(np.searchsorted(self._first_numbers, index, side="right")) - 1
        left, right = self._column_pairs[pair].tolist()
        strip, tops = self._strip_and_tops(left, right)
        passed = np.cumsum(len(tops) - tops)
        offset = index - int(self._first_numbers[pair])
        bottom = int(np.searchsorted(passed, offset, side="right"))
        top = len(tops) - int(passed[bottom]) + offset
        xs, ys = self._grid.xs, self._grid.ys[strip.rows]
        return box_around(np.array([[xs[left], ys[bottom]], [xs[right], ys[top]]]))

    def errors(self, y: ArrayLike) -> IntArray:
        """Return the number of mistakes of every labelling against `y`.

        Parameters
        ----------
        y : array of 0 and 1, shape (m,)
            Labels of the points, in their order.
        """
        labels = check_labels(y, len(self._point))
        mistakes = Mistakes.count(self._point, len(self._grid.points), labels)
        errors = np.empty(len(self), dtype=np.int64)
        errors[0] = mistakes.base
        pairs, starts = self._column_pairs.tolist(), self._first_numbers.tolist()
        for (left, right), start, stop in zip(pairs, starts[:-1], starts[1:], strict=True):
            if start < stop:
                strip, tops = self._strip_and_tops(left, right)
                listed = np.arange(len(tops)) >= tops[:, None]
                errors[start:stop] = mistakes.base + strip.ranges(mistakes.costs)[listed]
        return errors


class Rectangles(HypothesisClass):
    """Axis-aligned rectangles of the plane, 1 inside and on the border, and the empty one.

    Notes
    -----
    Cost with n points: O(n^2 log n) for `erm`, with at most 128 MB beside. The labellings are
    O(m^4), so that they are listed for some 230 points in general position, at 8 bytes each in a
    list of errors.

    Examples
    --------
    >>> X, y = [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0], [5.0, 1.0]], [0, 1, 1, 0]
    >>> best = sb.hypotheses.Rectangles().erm(X, y)
    >>> best.low, best.high
    ((1.0, 1.0), (2.0, 2.0))
    """

    name: ClassVar[str] = "rectangles"

    @property
    def vc_dimension(self) -> int:
        """4. Exact."""
        return 4

    def erm(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Rectangle:
        """Return a rectangle with the least weighted mistakes: the empty one, or the first.

        Parameters
        ----------
        X : array of shape (n, 2)
        y : array of 0 and 1, shape (n,)
        sample_weight : array of shape (n,), optional
            What a mistake on each row counts, at least 0; 1 by default.
        """
        points = check_points(X, 2)
        labels, weights = check_labels(y, len(points)), check_weights(sample_weight, len(points))
        distinct, point = np.unique(points, axis=0, return_inverse=True)
        grid, costs = Grid(distinct), Mistakes.count(point, len(distinct), labels, weights).costs
        # first the best strip of columns, which all strips together tell; only then its rows
        least, pair = 0, None
        for left, right, minima in strip_minima(grid, costs):
            lane = int(minima.argmin())
            if minima[lane] < least:
                least, pair = int(minima[lane]), (left + lane, right)
        if pair is None:
            return NOWHERE
        strip = grid.strip(*pair)
        rows = np.add.reduceat(costs[strip.members], strip.starts)
        bottom, top = _least_range(rows)
        inside = np.isin(grid.rows[strip.members], strip.rows[bottom : top + 1])
        return box_around(distinct[strip.members[inside]])

    def dichotomies(self, X: ArrayLike) -> RectangleDichotomies:
        """Return the distinct labellings of the rows of `X`, shape (m, 2)."""
        return RectangleDichotomies(check_points(X, 2))

    def version_space(self) -> RectangleVersionSpace:
        """Return all rectangles as a version space."""
        return RectangleVersionSpace.whole()


def _least_range(costs: IntArray) -> tuple[int, int]:
    """Return first and last place of a range with the least sum, which is negative."""
    passed = np.concatenate([[0], np.cumsum(costs)])
    highest = np.maximum.accumulate(passed[:-1])
    last = int((passed[1:] - highest).argmin())
    return int(passed[: last + 1].argmax()), last
