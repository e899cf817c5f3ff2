"""Version spaces of halfspaces: limits on mistakes at asked points, searched by turning lines."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from secretballot._typing import BoolArray, FloatArray, IntArray
from secretballot.hypotheses.base import VersionSpace
from secretballot.hypotheses.planar import Fan, Plane, fans
from secretballot.hypotheses.planar_lines import CONSTANTS, Halfspace, behind_line
from secretballot.hypotheses.planar_mistakes import Limits, Mistakes
from secretballot.hypotheses.points import check_points

__all__ = ["HalfspaceVersionSpace"]


# Points that are tested together.
_BLOCK = 4096
# A constant, 0 or 1, or a pivot and the place of a point in its fan.
_Choice = tuple[int] | tuple[int, int]


class HalfspaceVersionSpace(VersionSpace):
    """Halfspaces whose mistakes on the asked points keep within limits.

    Exact over the continuum of halfspaces: limits depend on the labels of the asked points alone,
    so that the space is a union of cells, one for each labelling that keeps within them. A point is
    labelled both ways by a cell where a line through the point belongs to it, and by two cells that
    each label it alike but differ.

    Notes
    -----
    Cost with q distinct asked points and T limits: O(q^2 (T + log q)) for `restrict`; O(m q (T +
    log q)) for `disagreement_region` of m points, and O(q^2 (T + log q)) once. Memory: O(q + m),
    and 8 bytes for every labelling that is left.
    """

    def __init__(self, limits: Limits, choice: _Choice) -> None:
        self._limits = limits
        self._choice = choice
        self._plane = Plane(limits.points)

    @classmethod
    def whole(cls) -> "HalfspaceVersionSpace":
        """Return the space of all halfspaces."""
        return cls(Limits.none(), (0,))

    def restrict(
        self, X: ArrayLike, y: ArrayLike, slack: float, sample_weight: ArrayLike | None = None
    ) -> "HalfspaceVersionSpace":
        """Keep the halfspaces whose mistakes exceed the least of the space by at most `slack`.

        Where weights are no integer multiples of their sum's last binary place, rounding is allowed
        for by 1e-15 of the sum for each row, so that it drops no halfspace that belongs.

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
        least, choice = _least_excess(Plane(limits.points), limits, mistakes)
        return HalfspaceVersionSpace(limits.limited(mistakes, least + slack_units), choice)

    def hypothesis(self) -> Halfspace:
        """Return a member with the fewest mistakes in the last `restrict`, a constant first."""
        if len(self._choice) == 1:
            return CONSTANTS[self._choice[0]]
        pivot, place = self._choice
        (fan,) = fans(self._plane, np.array([pivot]), np.arange(len(self._plane)))
        return behind_line(self._plane, fan, place)

    def describe(self) -> dict[str, Any]:
        """Return the number of asked points and how many of their labellings are left."""
        labellings = sum(_alive_constants(self._limits)) if len(self._plane) else 1
        labellings += sum(
            int((alive & fan.representatives()).sum()) for fan, alive in self._cells_within_limits()
        )
        return {"class": "halfspaces", "asked_points": len(self._plane), "labellings": labellings}

    def disagreement_region(self, X: ArrayLike) -> BoolArray:
        """Return whether two halfspaces of the space label each row differently, shape (n,)."""
        distinct, point = np.unique(check_points(X, 2), axis=0, return_inverse=True)
        everywhere = Plane(distinct)
        if not len(self._limits):
            return np.ones(len(point), dtype=np.bool_)
        disagree = np.empty(len(distinct), dtype=np.bool_)
        for start in range(0, len(distinct), _BLOCK):
            block = everywhere.points[start : start + _BLOCK]
            disagree[start : start + _BLOCK] = self._disagreement_at(block)
        return disagree[point]

    def _cells_within_limits(self) -> Iterator[tuple[Fan, BoolArray]]:
        return _cells_within_limits(self._plane, self._limits)

    @cached_property
    def _rays_within_limits(self) -> list[tuple[int, IntArray]]:
        """Pivots with the points whose rays from there mark labellings within the limits."""
        return [
            (int(pivot), order[alive])
            for fan, block in self._cells_within_limits()
            for pivot, order, alive in zip(
                fan.pivots, fan.order, block & fan.representatives(), strict=True
            )
            if alive.any()
        ]

    def _disagreement_at(self, tested: FloatArray) -> BoolArray:
        """Return which tested points are labelled differently by two members."""
        # by two of one cell first, then by two cells, ray by ray, until no point is left
        n_asked = len(self._plane)
        points, place = np.unique(
            np.concatenate([self._plane.points, tested]), axis=0, return_inverse=True
        )
        plane, asked, tested_places = Plane(points), place[:n_asked], place[n_asked:]
        disagree = ~np.isin(tested_places, asked)
        disagree[disagree] = self._on_free_lines(plane, tested_places[disagree], asked)
        zero, one = (np.full(len(tested), found) for found in _alive_constants(self._limits))
        disagree |= zero & one
        for pivot, ahead in self._rays_within_limits:
            open_ = np.flatnonzero(~disagree)
            if not len(open_):
                break
            ones = plane.count_left(int(asked[pivot]), asked[ahead], tested_places[open_])
            one[open_] |= ones > 0
            zero[open_] |= ones < len(ahead)
            disagree[open_] = one[open_] & zero[open_]
        return disagree

    def _on_free_lines(self, plane: Plane, tested: IntArray, asked: IntArray) -> BoolArray:
        """Return which tested points lie on a separating line, within limits, through no asked one.

        A little to one side or the other, such a line gives the tested point either label and
        changes no other.
        """
        split: list[BoolArray] = [np.empty(0, dtype=np.bool_)]
        for fan in fans(plane, tested, asked):
            left, right = fan.last.copy(), fan.last.copy()
            for costs, bound in zip(self._limits.costs, self._limits.bounds, strict=True):
                to_left, total = fan.left_of(costs)
                left &= to_left <= bound
                right &= total - to_left <= bound
            split.append(np.any(left | right, axis=1))
        return np.concatenate(split)


def _alive_constants(limits: Limits) -> tuple[bool, bool]:
    """Return whether 0 everywhere and whether 1 everywhere keeps within the limits."""
    return bool(np.all(limits.bounds >= 0)), bool(np.all(limits.costs.sum(axis=1) <= limits.bounds))


def _cells_within_limits(plane: Plane, limits: Limits) -> Iterator[tuple[Fan, BoolArray]]:
    """Yield the fans of all points with the places whose labellings keep within the limits."""
    everything = np.arange(len(plane))
    for fan in fans(plane, everything, everything):
        alive = fan.apart.copy()
        for costs, bound in zip(limits.costs, limits.bounds, strict=True):
            alive &= fan.excess(costs) <= bound
        yield fan, alive


def _least_excess(plane: Plane, limits: Limits, mistakes: Mistakes) -> tuple[int, _Choice]:
    """Return the least excess over label 0 everywhere within limits, and its first labelling."""
    excess = (0, int(mistakes.costs.sum()))
    constants: list[tuple[int, _Choice]] = [
        (excess[value], (value,)) for value, alive in enumerate(_alive_constants(limits)) if alive
    ]
    least, choice = min(constants, default=(2**62, (0,)))
    for fan, alive in _cells_within_limits(plane, limits):
        units = np.where(alive, fan.excess(mistakes.costs), least)
        row, place = np.unravel_index(units.argmin(), units.shape)
        if units[row, place] < least:
            least, choice = int(units[row, place]), (int(fan.pivots[row]), int(place))
    return least, choice
