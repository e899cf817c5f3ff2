"""Mistakes on points of the plane in integer units, and limits on them: what a version space is."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from secretballot._typing import FloatArray, IntArray
from secretballot.hypotheses.points import check_labels, check_points, check_slack, check_weights

__all__ = ["Limits", "Mistakes"]


_NO_LIMIT = 2**62


@dataclass(frozen=True)
class Mistakes:
    """What labels cost at distinct points, in integer units so that no sum depends on its order.

    Attributes
    ----------
    costs : int64 array of shape (n_points,)
        Units by which label 1 costs more than label 0.
    base : int
        Units that label 0 everywhere costs.
    unit : float
        One unit, in mistakes; a power of two.
    allowance : int
        Units by which rounding may have moved the difference of two sums; 0 where weights are
        integer multiples of the unit.
    """

    costs: IntArray
    base: int
    unit: float = 1.0
    allowance: int = 0

    @classmethod
    def count(
        cls, point: IntArray, n_points: int, y: IntArray, weights: FloatArray | None = None
    ) -> "Mistakes":
        """Add up the rows of each point.

        Parameters
        ----------
        point : array of shape (n_rows,)
            Which point each row is.
        n_points : int
        y : array of 0 and 1, shape (n_rows,)
        weights : array of shape (n_rows,), optional
            What a mistake on each row counts; 1 by default.
        """
        unit, allowance, units = 1.0, 0, np.ones(len(y), dtype=np.int64)
        if weights is not None:
            # the finest unit with which the sum of all weights still stays below 2^53
            unit = math.ldexp(1.0, math.frexp(max(float(weights.sum()), 1e-290))[1] - 52)
            units = np.rint(weights / unit).astype(np.int64)
            allowance = 0 if np.array_equal(units * unit, weights) else len(units)
        costs = np.zeros(n_points, dtype=np.int64)
        np.add.at(costs, point, np.where(y == 1, -units, units))
        return cls(costs, int(units[y == 1].sum()), unit, allowance)

    def in_units(self, slack: float) -> int:
        """Return the units within a slack given in mistakes, with the allowance for rounding."""
        units = slack / self.unit
        return math.floor(units) + self.allowance if units < _NO_LIMIT // 2 else _NO_LIMIT


@dataclass(frozen=True, eq=False)
class Limits:
    """Points that were asked, and how many mistakes on them each `restrict` leaves room for.

    Attributes
    ----------
    points : array of shape (q, 2)
        Distinct.
    costs : int64 array of shape (n_limits, q)
        As in `Mistakes`, one row for each limit; each has units of its own.
    bounds : int64 array of shape (n_limits,)
        Most units that the labels may cost more than label 0 everywhere does; may be negative.
    """

    points: FloatArray
    costs: IntArray
    bounds: IntArray

    @classmethod
    def none(cls) -> "Limits":
        """Return no limits on no points."""
        return cls(np.empty((0, 2)), np.empty((0, 0), dtype=np.int64), np.empty(0, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.bounds)

    def asked(
        self, X: ArrayLike, y: ArrayLike, slack: float, sample_weight: ArrayLike | None
    ) -> tuple["Limits", Mistakes, int]:
        """Return these limits on the union of points, the new mistakes there, the slack in units.

        Raises
        ------
        DataError, ParameterError
            If points, labels, weights or slack do not fit.

        Parameters
        ----------
        X : array of shape (n, 2)
        y : array of 0 and 1, shape (n,)
        slack : float
        sample_weight : array of shape (n,) or None
        """
        rows = check_points(X, 2)
        labels, weights = check_labels(y, len(rows)), check_weights(sample_weight, len(rows))
        slack = check_slack(slack)
        points, point = np.unique(np.concatenate([self.points, rows]), axis=0, return_inverse=True)
        costs = np.zeros((len(self), len(points)), dtype=np.int64)
        costs[:, point[: len(self.points)]] = self.costs
        mistakes = Mistakes.count(point[len(self.points) :], len(points), labels, weights)
        return Limits(points, costs, self.bounds), mistakes, mistakes.in_units(slack)

    def limited(self, mistakes: Mistakes, bound: int) -> "Limits":
        """Return these limits and one more: at most `bound` units of mistakes, less the base.

        One that no labelling of the points exceeds is left out.
        """
        if bound >= int(mistakes.costs[mistakes.costs > 0].sum()):
            return self
        return Limits(
            self.points,
            np.vstack([self.costs, mistakes.costs]),
            np.append(self.bounds, np.int64(bound)),
        )
