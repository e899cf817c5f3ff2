"""Points of the plane: which side of a line, exactly, and all lines through a point by angle."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secretballot._typing import BoolArray, FloatArray, IntArray
from secretballot.exceptions import DataError

__all__ = ["Fan", "Plane", "fans"]


# A float determinant of differences errs by less than 3.4e-16 of its two products (Shewchuk 1997,
# "ccwerrboundA"); below the second number products may have lost bits to underflow.
_DETERMINANT_ERROR, _UNDERFLOW = 1e-15, 1e-280
# Differences are rounded by 1.2e-16 each, arctan2 by at most a few units in the last place of pi.
_ANGLE_ERROR = 2e-14
# Differences of such integers, their products and the difference of two products fit into 63 bits.
_SMALL = 2**30
# Products of larger coordinates could overflow.
_LARGEST = 1e100
# Pivots are taken together until this many angles are held at once.
_BLOCK = 2**18


class Plane:
    """Distinct points of the plane.

    Parameters
    ----------
    points : array of shape (n, 2)
        Finite and distinct.

    Raises
    ------
    DataError
        If a coordinate exceeds 1e100 in size.
    """

    def __init__(self, points: FloatArray) -> None:
        if not np.all(np.abs(points) <= _LARGEST):
            raise DataError("X holds a coordinate above 1e100 in size; rescale its columns.")
        self.points = points

    def __len__(self) -> int:
        return len(self.points)

    @cached_property
    def scaled(self) -> tuple[NDArray[Any], int]:
        """The points as integers (int64 where small, else Python's), and their power of two."""
        ratios = [value.as_integer_ratio() for value in self.points.ravel().tolist()]
        scale = max((denominator for _, denominator in ratios), default=1)
        whole = [numerator * (scale // denominator) for numerator, denominator in ratios]
        small = all(-_SMALL < value < _SMALL for value in whole)
        return np.array(whole, dtype=np.int64 if small else object).reshape(-1, 2), scale

    def turn(self, a: IntArray, b: IntArray, c: IntArray) -> IntArray:
        """Return 1 where points `a`, `b`, `c` turn left, -1 where right, 0 on one line; exact.

        Parameters
        ----------
        a, b, c : arrays of point numbers of one shape, or that broadcast to one
        """
        # three steps: signs decide most, floats most of the rest, and integers what floats leave
        # in doubt; only the last are exact for all, and they are a hundred times slower
        sides = self.points[b] - self.points[a], self.points[c] - self.points[a]
        left, right = sides[0][..., 0] * sides[1][..., 1], sides[0][..., 1] * sides[1][..., 0]
        # signs of differences are exact, hence those of products of signs, which decide unless they
        # agree
        signs = np.sign(sides[0]), np.sign(sides[1])
        left_sign, right_sign = (
            signs[0][..., 0] * signs[1][..., 1],
            signs[0][..., 1] * signs[1][..., 0],
        )
        apart = left_sign != right_sign
        turns = np.sign(np.where(apart, left_sign - right_sign, left - right)).astype(np.int64)
        doubtful = (
            np.abs(left - right) <= _DETERMINANT_ERROR * (np.abs(left) + np.abs(right)) + _UNDERFLOW
        )
        doubtful &= ~apart & (left_sign != 0)
        turns[~apart & (left_sign == 0)] = 0
        if doubtful.any():
            whole, _ = self.scaled
            a, b, c = (np.broadcast_to(index, turns.shape)[doubtful] for index in (a, b, c))
            u, v = whole[b] - whole[a], whole[c] - whole[a]
            first, second = u[:, 0] * v[:, 1], u[:, 1] * v[:, 0]
            turns[doubtful] = (first > second).astype(np.int64) - (first < second).astype(np.int64)
        return turns

    def count_left(self, pivot: int, ahead: IntArray, tested: IntArray) -> IntArray:
        """Return how many rays have each tested point to their left, on the pivot, or behind it.

        The numbers are exact.

        Parameters
        ----------
        pivot : int
            Where the rays start.
        ahead : array of shape (k,)
            Points through which they go, other than the pivot.
        tested : array of shape (m,)

        Returns
        -------
        array of shape (m,)
            In O((m + k) log k), but O(k) for a tested point on the line of a ray.
        """
        forward, steps = (
            self.points[ahead] - self.points[pivot],
            self.points[tested] - self.points[pivot],
        )
        # counted among sorted angles; where a border lies within their rounding, asked exactly
        rays = np.sort(np.arctan2(forward[:, 1], forward[:, 0]))
        rays = np.concatenate([rays - 2 * math.pi, rays, rays + 2 * math.pi])
        angles = np.arctan2(steps[:, 1], steps[:, 0])
        borders = np.stack([angles - math.pi, angles])
        first, last = (
            np.searchsorted(rays, borders - _ANGLE_ERROR),
            np.searchsorted(rays, borders + _ANGLE_ERROR),
        )
        left = np.asarray(first[1] - first[0])
        doubtful = np.flatnonzero(np.any(first != last, axis=0))
        turns = self.turn(np.array(pivot), ahead, tested[doubtful][:, None])
        same_way = np.sum(np.sign(forward) * np.sign(steps[doubtful])[:, None], axis=2) > 0
        left[doubtful] = np.sum((turns > 0) | ((turns == 0) & ~same_way), axis=1)
        left[~steps.any(axis=1)] = len(ahead)
        return left


@dataclass(frozen=True)
class Fan:
    """The lines through each of some pivots and each other point, counterclockwise by half a turn.

    A line is directed by an angle from 0 to below pi, so that a point on it lies ahead of its pivot
    or behind.

    Attributes
    ----------
    pivots : array of shape (r,)
    order : array of shape (r, n)
        Points in the order of their line's angle, on one line those ahead first; the pivot itself
        comes last.
    ahead : bool array of shape (r, n)
        Whether the point in that place lies ahead.
    last : bool array of shape (r, n)
        Whether the next place holds another line; False for the pivot itself.
    apart : bool array of shape (r, n)
        Whether the point in that place is not the pivot.
    """

    pivots: IntArray
    order: IntArray
    ahead: BoolArray
    last: BoolArray
    apart: BoolArray

    @cached_property
    def end(self) -> IntArray:
        """Last place of the line to which each place belongs, shape (r, n)."""
        places = np.arange(self.order.shape[1])
        ends = np.where(self.last | ~self.apart, places, self.order.shape[1])
        return np.asarray(np.minimum.accumulate(ends[:, ::-1], axis=1)[:, ::-1])

    def representatives(self) -> BoolArray:
        """Return which places hold the first point of their line ahead, or behind; shape (r, n)."""
        first = np.ones_like(self.last)
        first[:, 1:] = self.last[:, :-1] | (self.ahead[:, :-1] & ~self.ahead[:, 1:])
        return first & self.apart

    def left_of(self, costs: IntArray) -> tuple[IntArray, IntArray]:
        """Return the costs of points to the left of the lines, and of all points but the pivot.

        Parameters
        ----------
        costs : int64 array of shape (n,)

        Returns
        -------
        left : shape (r, n)
            For each place, of the directed line through the pivot turned just past the line of that
            place.
        total : shape (r, 1)
        """
        ordered = np.where(self.apart, costs[self.order], 0)
        ahead = np.where(self.ahead, ordered, 0)
        # those behind come to the left, those ahead leave it
        passed = np.cumsum(ordered - 2 * ahead, axis=1)
        return ahead.sum(axis=1, keepdims=True) + passed, ordered.sum(axis=1, keepdims=True)

    def excess(self, costs: IntArray) -> IntArray:
        """Return the cost of each place's labelling, shape (r, n); the pivot's own has no meaning.

        The labelling of a place: 1 to the left of the line from the pivot to its point, on the
        pivot, and behind the pivot on that line. The others are all points, the pivot among them.
        """
        left, total = self.left_of(costs)
        past = np.take_along_axis(left, self.end, axis=1)
        return np.asarray(costs[self.pivots][:, None] + np.where(self.ahead, past, total - past))


def fans(plane: Plane, pivots: IntArray, others: IntArray) -> Iterator[Fan]:
    """Yield the fans of the pivots among the others, block by block, in their order.

    Parameters
    ----------
    pivots, others : ndarray of int64, shape (n_pivots,) and (n_others,)
        Numbers of points.

    Yields
    ------
    Fan
        Of which `order` holds positions in `others`.
    """
    # a block holds so many pairs of a pivot and another point at most
    rows = max(1, _BLOCK // max(1, len(others)))
    for start in range(0, len(pivots), rows):
        yield _fan_of(plane, pivots[start : start + rows], others)


def _fan_of(plane: Plane, pivots: IntArray, others: IntArray) -> Fan:
    steps = plane.points[others][None] - plane.points[pivots][:, None]
    dx, dy = steps[..., 0], steps[..., 1]
    behind = (dy < 0) | ((dy == 0) & (dx < 0))
    angle = np.arctan2(np.abs(dy), np.where(behind, -dx, dx))
    angle[(dx == 0) & (dy == 0)] = 9.0  # the pivot itself: beyond all lines
    order = np.argsort(angle, axis=1, kind="stable")
    angle = np.take_along_axis(angle, order, axis=1)
    apart = angle < 9.0
    last = apart.copy()
    close = (np.diff(angle, axis=1) <= _ANGLE_ERROR) & apart[:, 1:]
    if close.any():
        _sort_exactly(plane, pivots, others, behind, order, last, np.nonzero(close))
    return Fan(pivots, order, ~np.take_along_axis(behind, order, axis=1), last, apart)


def _sort_exactly(
    plane: Plane,
    pivots: IntArray,
    others: IntArray,
    behind: BoolArray,
    order: IntArray,
    last: BoolArray,
    close: tuple[IntArray, ...],
) -> None:
    """Put neighbours whose angles floats cannot distinguish into exact order, and mark the equal.

    Points on one line are put ahead before behind, then by number: an order that no rounding
    touches.
    """
    # an exchange sort, all rows at once: few neighbours are close, and mostly in order already;
    # after an exchange only the pairs that it touched are compared again
    rows, places = close
    follows = (rows[1:] == rows[:-1]) & (places[1:] == places[:-1] + 1)
    equal, wrong = np.zeros(len(rows), dtype=np.bool_), np.zeros(len(rows), dtype=np.bool_)
    changed, parity = np.arange(len(rows)), 0
    while True:
        row, place = rows[changed], places[changed]
        first, second = order[row, place], order[row, place + 1]
        sides = behind[row, first], behind[row, second]
        turns = plane.turn(pivots[row], others[first], others[second])
        turns[sides[0] != sides[1]] *= -1
        equal[changed] = turns == 0
        late = (sides[0] & ~sides[1]) | ((sides[0] == sides[1]) & (first > second))
        wrong[changed] = (turns < 0) | ((turns == 0) & late)
        if not wrong.any():
            break
        swap = wrong & (places % 2 == parity)  # of two that share a place, only one at a time
        if not swap.any():
            parity = 1 - parity
            swap = wrong & (places % 2 == parity)
        parity = 1 - parity
        row, place = rows[swap], places[swap]
        order[row, place], order[row, place + 1] = order[row, place + 1], order[row, place]
        wrong[swap] = False
        touched = np.zeros(len(rows), dtype=np.bool_)
        touched[1:] |= swap[:-1] & follows
        touched[:-1] |= swap[1:] & follows
        changed = np.flatnonzero(touched)
    last[rows, places] = ~equal
