"""One axis-aligned rectangle, and version spaces of them: limits on mistakes at asked points."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from secretballot._typing import BoolArray, FloatArray, IntArray
from secretballot.exceptions import DataError
from secretballot.hypotheses.base import VersionSpace
from secretballot.hypotheses.planar_mistakes import Limits, Mistakes
from secretballot.hypotheses.planar_strips import Grid, Strip, strip_minima
from secretballot.hypotheses.points import check_points

__all__ = ["NOWHERE", "Rectangle", "RectangleVersionSpace", "box_around"]


_MOST_ASKED = 500


@dataclass(frozen=True)
class Rectangle:
    """1 where both coordinates lie between their bounds, which belong to it; else 0.

    Attributes
    ----------
    low, high : pairs of floats
        Infinite, the wrong way round, for the empty rectangle.
    """

    low: tuple[float, float]
    high: tuple[float, float]

    def predict(self, X: ArrayLike) -> IntArray:
        """Return 0 or 1 for every row of `X`, shape (n, 2)."""
        points = check_points(X, 2)
        return np.asarray(
            ((points >= self.low) & (points <= self.high)).all(axis=1).astype(np.int64)
        )

    def describe(self) -> dict[str, Any]:
        """Return the bounds; None for the empty rectangle."""
        low, high = (None, None) if self == NOWHERE else (list(self.low), list(self.high))
        return {"low": low, "high": high}


NOWHERE = Rectangle((math.inf, math.inf), (-math.inf, -math.inf))


def box_around(points: FloatArray) -> Rectangle:
    """Return the smallest rectangle that holds the points, shape (n, 2)."""
    low, high = points.min(axis=0).tolist(), points.max(axis=0).tolist()
    return Rectangle((low[0], low[1]), (high[0], high[1]))


class RectangleVersionSpace(VersionSpace):
    """Rectangles whose mistakes on the asked points keep within limits.

    Exact over the continuum of rectangles: limits depend on which asked points a rectangle holds.

    Notes
    -----
    Cost with q distinct asked points and T limits: the least that a rectangle costs between every
    two columns is found in O(T q^2 log q); pairs of columns that can keep within every limit are
    opened at O(T q^2) each. So `restrict`, and the first `disagreement_region` of a space, cost O(T
    q^4) where little is decided and much less where it is; testing a point after that costs O(log
    q). Memory: O(q^2).
    """

    def __init__(self, limits: Limits, choice: Rectangle) -> None:
        self._limits = limits
        self._choice = choice

    @classmethod
    def whole(cls) -> "RectangleVersionSpace":
        """Return the space of all rectangles."""
        return cls(Limits.none(), NOWHERE)

    def restrict(
        self, X: ArrayLike, y: ArrayLike, slack: float, sample_weight: ArrayLike | None = None
    ) -> "RectangleVersionSpace":
        """Keep the rectangles whose mistakes exceed the least of the space by at most `slack`.

        Where weights are no integer multiples of their sum's last binary place, rounding is allowed
        for by 1e-15 of the sum for each row, so that it drops no rectangle that belongs.

        Raises
        ------
        DataError, ParameterError
            If the input does not fit, or more than 500 distinct points were asked.

        Parameters
        ----------
        X : array of shape (n, 2)
        y : array of 0 and 1, shape (n,)
        slack : float
            In mistakes, in the unit of the weights; at least 0.
        sample_weight : array of shape (n,), optional
            What a mistake on each row counts, at least 0; 1 by default.
        """
        limits, mistakes, slack_units = self._limits.asked(X, y, slack, sample_weight)
        if len(limits.points) > _MOST_ASKED:
            raise DataError(
                f"X brings the asked points to {len(limits.points)} distinct ones; a version space"
                f" of rectangles is searched exactly for at most {_MOST_ASKED}: ask fewer, or use a"
                " FiniteClass of rectangles."
            )
        least, choice = _least_excess(limits, mistakes)
        return RectangleVersionSpace(limits.limited(mistakes, least + slack_units), choice)

    def hypothesis(self) -> Rectangle:
        """Return a member with the fewest mistakes in the last `restrict`: empty, or the first."""
        return self._choice

    def describe(self) -> dict[str, Any]:
        """Return the number of asked points, and the rectangle that every member holds, if any."""
        shared = self._held_by_all.describe() if len(self._limits) else NOWHERE.describe()
        return {
            "class": "rectangles",
            "asked_points": len(self._limits.points),
            "held_by_all": shared,
        }

    def disagreement_region(self, X: ArrayLike) -> BoolArray:
        """Return whether two rectangles of the space label each row differently, shape (n,)."""
        points = check_points(X, 2)
        if not len(self._limits):
            return np.ones(len(points), dtype=np.bool_)
        held_by_one = self._reached_cells[
            _cell_numbers(self._asked_grid.xs, points[:, 0]),
            _cell_numbers(self._asked_grid.ys, points[:, 1]),
        ]
        return np.asarray(held_by_one & (self._held_by_all.predict(points) == 0))

    @cached_property
    def _asked_grid(self) -> Grid:
        return Grid(self._limits.points)

    @property
    def _held_by_all(self) -> Rectangle:
        return self._shared_and_reached[0]

    @property
    def _reached_cells(self) -> BoolArray:
        return self._shared_and_reached[1]

    @cached_property
    def _shared_and_reached(self) -> tuple[Rectangle, BoolArray]:
        """The rectangle that every member holds, and the cells that some member reaches.

        Cells are the columns and rows of asked points and the gaps between and around them, in
        turn: a point's label by any member that leaves the asked points alone depends on its cell
        only.
        """
        grid, empty_alive = self._asked_grid, bool(np.all(self._limits.bounds >= 0))
        # members are added up by the corners of what they reach, and summed over both axes at the
        # end: marking every cell of every member would take their number times the cells
        edges = np.zeros((2 * len(grid.xs) + 2, 2 * len(grid.ys) + 2), dtype=np.int64)
        low, high = [-1, -1], [len(grid.xs), len(grid.ys)]
        for left, right, strip, alive in _open_strips(
            grid, self._limits, _open_pairs(grid, self._limits)
        ):
            bottoms = np.flatnonzero(alive.any(axis=1))
            tops = alive.shape[1] - 1 - alive[bottoms, ::-1].argmax(axis=1)
            low = [max(low[0], left), max(low[1], int(strip.rows[bottoms[-1]]))]
            high = [min(high[0], right), min(high[1], int(strip.rows[alive.any(axis=0).argmax()]))]
            below = np.concatenate([[0], 2 * strip.rows[:-1] + 2])[bottoms]
            above = np.concatenate([2 * strip.rows[1:], [2 * len(grid.ys)]])[tops]
            for column, sign in ((2 * left, 1), (2 * right + 3, -1)):
                np.add.at(edges[column], below, sign)
                np.add.at(edges[column], above + 1, -sign)
        reached = (edges.cumsum(axis=0).cumsum(axis=1) > 0)[:-1, :-1]
        if empty_alive:
            asked = np.zeros_like(reached)
            asked[2 * grid.columns + 1, 2 * grid.rows + 1] = True
            return NOWHERE, reached | ~asked
        if low[0] > high[0] or low[1] > high[1]:
            return NOWHERE, reached
        corners = np.array(
            [[grid.xs[low[0]], grid.ys[low[1]]], [grid.xs[high[0]], grid.ys[high[1]]]]
        )
        return box_around(corners), reached


def _cell_numbers(values: FloatArray, tested: FloatArray) -> IntArray:
    """Return the cell of each tested value: number 2 k + 1 on value k, even ones between."""
    return np.asarray(
        np.searchsorted(values, tested) + np.searchsorted(values, tested, side="right")
    )


def _all_minima(grid: Grid, costs: IntArray) -> IntArray:
    """Return the least cost of a rectangle in each strip, shape (n_columns, n_columns)."""
    minima = np.zeros((len(grid.xs), len(grid.xs)), dtype=np.int64)
    for left, right, least in strip_minima(grid, costs):
        minima[left : left + len(least), right] = least
    return minima


def _open_pairs(grid: Grid, limits: Limits) -> BoolArray:
    """Return which strips may hold a rectangle within the limits, shape (n_columns, n_columns)."""
    open_ = np.triu(np.ones((len(grid.xs), len(grid.xs)), dtype=np.bool_))
    for costs, bound in zip(limits.costs, limits.bounds, strict=True):
        open_ &= _all_minima(grid, costs) <= bound
    return open_


def _open_strips(
    grid: Grid, limits: Limits, pairs: BoolArray
) -> Iterator[tuple[int, int, Strip, BoolArray]]:
    """Yield the strips with a rectangle within the limits, and their ranges of rows within them."""
    for left, right in np.argwhere(pairs).tolist():
        strip = grid.strip(left, right)
        alive = _ranges_within_limits(strip, limits)
        if alive.any():
            yield left, right, strip, alive


def _ranges_within_limits(strip: Strip, limits: Limits) -> BoolArray:
    """Return which ranges of rows, from one to another, keep within the limits, shape (k, k)."""
    alive = np.triu(np.ones((len(strip.rows), len(strip.rows)), dtype=np.bool_))
    # the last limit is mostly the tightest
    for costs, bound in zip(limits.costs[::-1], limits.bounds[::-1], strict=True):
        alive &= strip.within(costs, int(bound))
        if not alive.any():
            break
    return alive


def _least_excess(limits: Limits, mistakes: Mistakes) -> tuple[int, Rectangle]:
    """Return the least excess over label 0 everywhere within limits, and its first rectangle."""
    # strips by rising lower bound: as soon as a bound is no better than what was found, none of the
    # others can be
    grid = Grid(limits.points)
    minima = _all_minima(grid, mistakes.costs)
    pairs = np.argwhere(_open_pairs(grid, limits))
    bounds = minima[pairs[:, 0], pairs[:, 1]]
    least, choice = (0, NOWHERE) if np.all(limits.bounds >= 0) else (2**62, NOWHERE)
    for index in np.argsort(bounds, kind="stable"):
        if bounds[index] >= least:
            break
        strip = grid.strip(*pairs[index].tolist())
        units = np.where(_ranges_within_limits(strip, limits), strip.ranges(mistakes.costs), least)
        bottom, top = np.unravel_index(units.argmin(), units.shape)
        if units[bottom, top] < least:
            least = int(units[bottom, top])
            rows = grid.rows[strip.members]
            held = (rows >= strip.rows[bottom]) & (rows <= strip.rows[top])
            choice = box_around(grid.points[strip.members[held]])
    return least, choice
