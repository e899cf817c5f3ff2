"""Release the exact value of a function where the data are far from changing it."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from secretballot._typing import BoolArray, IntArray
from secretballot._validation import check_count, check_probability
from secretballot.core.noise import NoiseSource, check_scale
from secretballot.core.streams import laplace_above
from secretballot.exceptions import DataError
from secretballot.privacy.accounting import StableTests
from secretballot.privacy.mechanisms.mechanism import Mechanism, check_values

ABSTAINED = -1  # stands for the papers' bottom sign


@dataclass(frozen=True)
class DistanceToInstability(Mechanism):
    """Release f exactly where its distance to instability, with discrete Laplace noise, exceeds a
    threshold.

    Parameters
    ----------
    scale : float
        Scale of the noise, in votes; positive and finite.
    threshold : int
        Threshold, in votes; at least 0. The comparison is strict.

    Privacy
    -------
    Unit : one record or user, which reaches one shard, hence one teacher.
    Relation : add or remove one unit, or replace it in place.
    Sensitivity : the caller's distance moves by at most 1 when one teacher moves one vote, and is 0
        on both sides wherever f changes, as `stability` of the plurality is. The un-halved margin
        is neither.
    Price : per query (1 / scale, P(noise > threshold)).
    Source : Smith, Thakurta 2013; Bassily, Thakurta, Thakkar 2018, Algorithm 1; Liu et al. 2021,
        Algorithm 6.
    Rounding : none here; the accountant rounds upward.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    Examples
    --------
    >>> from secretballot.privacy import mechanisms
    >>> test = mechanisms.DistanceToInstability(scale=2.0, threshold=30)
    >>> noise = sb.audit.ScriptedNoise([0, 0])
    >>> test.release(np.array([49, 4]), np.array([1, 0]), noise)
    array([ 1, -1])
    >>> test.stable_distance(beta=0.01)
    40
    """

    scale: float
    threshold: int
    l1_sensitivity: ClassVar[int] = 1
    squared_l2_sensitivity: ClassVar[int] = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", check_scale("scale", self.scale))
        object.__setattr__(self, "threshold", check_count("threshold", self.threshold, minimum=0))

    def event(self, count: int = 1) -> StableTests:
        """Return what `count` queries, adaptively chosen, are to the accountant."""
        return StableTests(scale=self.scale, threshold=self.threshold, count=count)

    def passes(self, distances: IntArray, noise: NoiseSource) -> BoolArray:
        """Return whether each noisy distance exceeds the threshold, shape (n_queries,)."""
        checked = check_values(distances)
        return np.asarray(
            checked + noise.discrete_laplace(self.scale, len(checked)) > self.threshold
        )

    def release(self, distances: IntArray, values: IntArray, noise: NoiseSource) -> IntArray:
        """Return f's value where the test passes, else -1.

        Parameters
        ----------
        distances : ndarray of int64, shape (n_queries,)
            Distance to instability of each value, in votes.
        values : ndarray of int64, shape (n_queries,)
            f itself; -1 is taken.
        noise : NoiseSource

        Returns
        -------
        ndarray of int64, shape (n_queries,)

        Raises
        ------
        DataError
            If the two arrays differ in length.
        """
        exact = check_values(values)
        if len(exact) != len(np.asarray(distances)):
            raise DataError(
                f"{len(exact)} values have {len(np.asarray(distances))} distances; give one for"
                " each."
            )
        return np.where(self.passes(distances, noise), exact, ABSTAINED)

    def answer_probability(self, distance: int) -> float:
        """Return the probability that a query at `distance` is answered.

        P(noise > threshold - distance).
        """
        return laplace_above(self.threshold - distance, self.scale)

    def stable_distance(self, beta: float) -> int:
        """Return a distance from which on a query is answered except with probability `beta`.

        Parameters
        ----------
        beta : float
            Failure probability of the statement.

        Returns
        -------
        int
            threshold + ceil(scale * log(1 / beta)), in votes.

        Raises
        ------
        ParameterError
            If `beta` does not lie strictly between 0 and 1.

        Notes
        -----
        Bassily, Thakurta, Thakkar 2018, Theorem 2.5, where threshold = log(1 / delta) / epsilon and
        scale = 1 / epsilon. For the discrete distribution P(X <= -k) = exp(-k / scale) / (1 +
        exp(-1 / scale)) at whole k >= 1.
        """
        return self.threshold + math.ceil(-self.scale * math.log(check_probability("beta", beta)))
