"""One halfspace of the plane, and how to find one with given labels."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from secretballot._typing import BoolArray, FloatArray, IntArray
from secretballot.hypotheses.planar import Fan, Plane
from secretballot.hypotheses.points import check_points

__all__ = ["CONSTANTS", "Halfspace", "behind_line"]


# Rounding of coefficients, two products and two sums: at most 4 * 1.2e-16 of the terms' sizes.
_VALUE_ERROR, _UNDERFLOW = 1e-15, 1e-280


@dataclass(frozen=True)
class Halfspace:
    """1 where ``w . x + b >= 0``, else 0; the sign is that of the exact value, not a rounded one.

    Attributes
    ----------
    w : pair of numbers
        Normal; zero for the two constants.
    b : number
        Floats, or fractions where floats are too coarse to tell the points apart.
    """

    w: tuple[float | Fraction, float | Fraction]
    b: float | Fraction

    def predict(self, X: ArrayLike) -> IntArray:
        """Return 0 or 1 for every row of `X`, shape (n, 2)."""
        return self.labels(check_points(X, 2)).astype(np.int64)

    def labels(self, points: FloatArray) -> BoolArray:
        """Return the labels of points that were checked.

        Parameters
        ----------
        points : array of shape (n, 2)
        """
        w1, w2, b = float(self.w[0]), float(self.w[1]), float(self.b)
        with np.errstate(over="ignore", invalid="ignore"):
            terms = w1 * points[:, 0], w2 * points[:, 1]
            value = terms[0] + terms[1] + b
            size = np.abs(terms[0]) + np.abs(terms[1]) + abs(b)
            positive = value >= 0
            doubtful = ~(np.abs(value) > _VALUE_ERROR * size + _UNDERFLOW)
        # so near to the line a rounded sign may be wrong; exact fractions decide
        if doubtful.any():
            first, second, last = Fraction(self.w[0]), Fraction(self.w[1]), Fraction(self.b)
            rows = points[doubtful].tolist()
            positive[doubtful] = [
                first * Fraction(x) + second * Fraction(y) + last >= 0 for x, y in rows
            ]
        return positive

    def describe(self) -> dict[str, Any]:
        """Return the coefficients: numbers, or fractions as strings."""
        return {"w": [_as_json(value) for value in self.w], "b": _as_json(self.b)}


def _as_json(value: float | Fraction) -> float | str:
    return str(value) if isinstance(value, Fraction) else value


CONSTANTS = (Halfspace((0.0, 0.0), -1.0), Halfspace((0.0, 0.0), 1.0))


def behind_line(plane: Plane, fan: Fan, place: int) -> Halfspace:
    """Return a halfspace with the labels of a place in a fan of one pivot among all points of the
    plane.

    It is 1 to the left of the line from the pivot to the point in that place, on the pivot, and
    behind it on the line.
    """
    # the labelling first, then two lines between whose angles it is separated: the one at which it
    # begins and the one at which the next begins
    order, ahead, end = fan.order[0], fan.ahead[0], int(fan.end[0, place])
    positive = ahead == (np.arange(len(order)) > end)
    if not ahead[place]:
        positive = ~positive
    labels = np.empty(len(plane), dtype=np.bool_)
    labels[order] = positive
    labels[fan.pivots] = True
    following = end + 1
    turned = following >= len(order) or not fan.apart[0, following]
    lines = [
        (order[end], ahead[end]),
        (order[0], not ahead[0]) if turned else (order[following], ahead[following]),
    ]
    # both directed as the line from the pivot to the point in that place
    directed = [(int(point), bool(side == ahead[place])) for point, side in lines]
    return _halfspace_between(plane, labels, int(fan.pivots[0]), directed)


def _halfspace_between(
    plane: Plane, labels: BoolArray, pivot: int, lines: list[tuple[int, bool]]
) -> Halfspace:
    """Return a halfspace with these labels and an angle between two lines through the pivot."""
    # floats mostly do and are easier to read; integers always do
    for points, scale in ((plane.points, None), plane.scaled):
        steps = [
            (points[point] - points[pivot]) * (1 if forward else -1) for point, forward in lines
        ]
        found = _separating_halfspace(points, scale, labels, steps)
        if np.array_equal(found.labels(plane.points), labels):
            break
    return found


def _separating_halfspace(
    points: NDArray[Any], scale: int | None, labels: BoolArray, steps: list[NDArray[Any]]
) -> Halfspace:
    """Return the halfspace half way between the labels, in floats (`scale` None) or integers."""
    if scale is None:
        steps = [step / np.hypot(*step) for step in steps]
    elif points.dtype != object:
        points, steps = points.astype(object), [step.astype(object) for step in steps]
    u, v = steps
    opposite = u[0] * v[1] == u[1] * v[0]  # no other line through the pivot
    x, y = (-u[1], u[0]) if opposite else u + v
    w = (-y, x)
    heights = w[0] * points[:, 0] + w[1] * points[:, 1]
    low, high = heights[~labels].max(), heights[labels].min()
    if scale is None:
        return Halfspace((float(w[0]), float(w[1])), -float(low + high) / 2)
    size = 2 ** max(abs(w[0]), abs(w[1])).bit_length()
    return Halfspace(
        (Fraction(w[0], size), Fraction(w[1], size)), Fraction(-(low + high), 2 * scale * size)
    )
