"""Estimates of how far a fixed public pool's votes agree: one noisy integer for all points
together."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from secretballot._typing import FloatArray, IntArray
from secretballot._validation import check_probability
from secretballot.core.mechanisms import stability
from secretballot.core.noise import NoiseSource, least_scale
from secretballot.exceptions import DataError, Parameter
from secretballot.privacy.accounting import Pure
from secretballot.privacy.mechanisms.mechanism import Mechanism, check_counts


def stability_quantile(counts: IntArray, fraction: float) -> int:
    """Return the smallest distance to instability but floor(fraction * n_points), in votes.

    Private.

    At least a share 1 - fraction of the points lies at this distance or beyond.

    Parameters
    ----------
    counts : ndarray of int64, shape (n_points, n_classes)
        Votes.
    fraction : float
        Share of the points that may lie below, strictly between 0 and 1.
    """
    distances = stability(_check_pool(counts))
    # the float as it is: rounded up, its product with the number of points would leave one point
    # too few beyond
    rank = math.floor(Fraction(check_probability("fraction", fraction)) * len(distances))
    return int(np.partition(distances, rank)[rank])


@dataclass(frozen=True)
class StabilityQuantile(Mechanism):
    """Release an order statistic of the pool's distances to instability with discrete Laplace
    noise.

    Parameters
    ----------
    fraction : float
        Share of the points that may lie below, strictly between 0 and 1.
    epsilon : float
        Price of one release, in nats.

    Privacy
    -------
    Unit : one record or user, which reaches one shard, hence one teacher.
    Relation : add or remove one unit, or replace it in place.
    Sensitivity : 1, however many points there are and although one teacher may change its vote on
        all of them. Each distance moves by at most 1 (`stability`). If a(i) <= b(i) + 1 for all i,
        the r + 1 points with b at most its r-th order statistic b[r] have a <= b[r] + 1, so a[r] <=
        b[r] + 1; and the other way round. Order statistics of the margins have 2, counts of points
        beyond a margin have n_points.
    Price : per release (epsilon, 0): noise of scale 1 / epsilon on an integer that moves by 1.
    Source : Bassily, Thakurta, Thakkar 2018, remark 1 (an estimate to set T by), corrected.
    Rounding : the scale is the smallest float that keeps the loss at most epsilon in exact
    arithmetic.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    Notes
    -----
    The pool is fixed beforehand and public. Its size is public with it.

    Examples
    --------
    >>> from secretballot.privacy import mechanisms
    >>> counts = np.array([[10, 90], [40, 60], [49, 51]])
    >>> mechanism = mechanisms.StabilityQuantile(fraction=0.5, epsilon=0.5)
    >>> mechanism.release(counts, sb.audit.ScriptedNoise([0]))
    9
    >>> mechanism.event()
    Pure(epsilon=0.5, count=1)
    """

    fraction: float
    epsilon: float
    l1_sensitivity: ClassVar[int] = 1
    squared_l2_sensitivity: ClassVar[int] = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "fraction", check_probability("fraction", self.fraction))
        least_scale(1, self.epsilon)
        object.__setattr__(self, "epsilon", float(self.epsilon))

    @property
    def sensitivity(self) -> int:
        """How far the exact number can move when one teacher changes its votes on all points."""
        return 1

    @property
    def scale(self) -> float:
        """Scale of the noise, in votes."""
        return least_scale(self.sensitivity, self.epsilon)

    def event(self, count: int = 1) -> Pure:
        """Return what `count` releases, of any pools, are to the accountant."""
        return Pure(epsilon=self.epsilon, count=count)

    def release(self, counts: IntArray, noise: NoiseSource) -> int:
        """Return the noisy order statistic, in votes; it may be negative.

        Parameters
        ----------
        counts : ndarray of int64, shape (n_points, n_classes)
        noise : NoiseSource

        Raises
        ------
        DataError
            If `counts` do not fit; no value is named.
        """
        return stability_quantile(counts, self.fraction) + int(
            noise.discrete_laplace(self.scale, 1)[0]
        )

    def distribution(self, counts: IntArray, outcomes: IntArray) -> FloatArray:
        """Return the probability of each of some outcomes: private, for audits and tests.

        `counts` has shape (n_points, n_classes), the result the shape of `outcomes`.
        """
        return _laplace_pmf(
            np.asarray(outcomes) - stability_quantile(counts, self.fraction), self.scale
        )


def _check_pool(counts: IntArray) -> IntArray:
    table = np.asarray(counts)
    if not (table.ndim == 2 and table.shape[0] >= 1 and table.shape[1] >= 2):
        raise DataError(
            Parameter("counts"),
            f" have shape {table.shape}; give (n_points, n_classes), one point and two classes at"
            " least.",
        )
    return check_counts(table, table.shape[1])


def _laplace_pmf(values: IntArray, scale: float) -> FloatArray:
    return np.asarray(np.tanh(0.5 / scale) * np.exp(-np.abs(values) / scale), dtype=np.float64)
