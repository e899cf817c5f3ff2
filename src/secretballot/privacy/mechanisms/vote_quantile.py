"""Release a quantile of teachers' votes, drawn from a public grid by its distance in ranks."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from secretballot._typing import IntArray
from secretballot._validation import check_count
from secretballot.core.mechanisms import rank_distances
from secretballot.core.noise import least_scale
from secretballot.core.types import Noise
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.privacy.accounting import BoundedRange
from secretballot.privacy.mechanisms.mechanism import Mechanism

MOST_POSITIONS = 2**16


@dataclass(frozen=True)
class VoteQuantile(Mechanism):
    """Release a position for every query, drawn with probability proportional to exp(-d / scale).

    d is how many votes must change for the position to be the vote of the given rank.

    Parameters
    ----------
    epsilon : float
        Range of the privacy loss of one draw, in nats; scale = 2 / epsilon.
    rank : int
        From 1, the smallest vote, to the number of teachers; the middle one for a median. Public.
    n_positions : int
        Positions of the grid, from 2 to 65,536; public.

    Privacy
    -------
    Unit : one record or user, which reaches one shard, hence one teacher.
    Relation : add or remove one unit, or replace it in place: either way one vote changes.
    Sensitivity : every distance moves by at most 1, since it counts votes that must change; some
        may rise while others fall.
    Price : per query a loss in an interval of length epsilon that holds 0: the ratio of two weights
        lies within e^(1 / scale) either way, and the ratio of the sums is one number.
    Source : Asi and Duchi 2020, arXiv:2005.10630, for the distance; Dong, Durfee, Rogers 2020,
        arXiv:1909.13830, for the range; docs/explanation/prices.md, section 16.
    Rounding : the scale is the smallest float that keeps the range within epsilon.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    Examples
    --------
    >>> from secretballot.privacy import mechanisms
    >>> mechanism = mechanisms.VoteQuantile(epsilon=2.0, rank=2, n_positions=4)
    >>> mechanism.distances(np.array([0, 2, 2])).tolist()
    [1, 1, 0, 2]
    >>> mechanism.event(5)
    BoundedRange(epsilon=2.0, count=5)
    """

    epsilon: float
    rank: int
    n_positions: int
    l1_sensitivity: ClassVar[int] = 1
    squared_l2_sensitivity: ClassVar[int] = 1

    def __post_init__(self) -> None:
        least_scale(2, self.epsilon)
        object.__setattr__(self, "epsilon", float(self.epsilon))
        object.__setattr__(self, "rank", check_count("rank", self.rank))
        positions = check_count("n_positions", self.n_positions, minimum=2)
        if not positions <= MOST_POSITIONS:
            raise ParameterError(
                Parameter("n_positions"),
                f" is {positions}; a grid has at most {MOST_POSITIONS} positions.",
            )
        object.__setattr__(self, "n_positions", positions)

    @property
    def scale(self) -> float:
        """Scale of the weights, in votes."""
        # distances move both ways at once
        return least_scale(2, self.epsilon)

    def event(self, count: int = 1) -> BoundedRange:
        """Return what `count` queries, adaptively chosen, are to the accountant."""
        return BoundedRange(epsilon=self.epsilon, count=count)

    def distances(self, votes: IntArray) -> IntArray:
        """Return the distance of each position, shape (n_positions,), from votes of shape
        (n_teachers,).

        Private.

        Raises
        ------
        DataError
            If the votes are no positions, or fewer than the rank; none is named.
        """
        cast = np.asarray(votes)
        if cast.ndim != 1 or cast.dtype.kind not in "iu" or len(cast) < self.rank:
            raise DataError(
                Parameter("votes"),
                f" have dtype {cast.dtype} and shape {cast.shape}; give the positions that at least"
                f" {self.rank} teachers voted for.",
            )
        if not ((cast >= 0) & (cast < self.n_positions)).all():
            raise DataError(
                f"votes hold something else than positions from 0 to {self.n_positions - 1}."
            )
        counts = np.bincount(cast, minlength=self.n_positions)
        return np.asarray(rank_distances(counts[None], self.rank)[0])

    def release(self, votes: IntArray, noise: Noise) -> IntArray:
        """Return drawn positions, shape (n_queries,), from votes of shape (n_queries,
        n_teachers)."""
        rows = np.asarray(votes)
        found = [noise.exponential_index(-self.distances(row), self.scale) for row in rows]
        return np.array(found, dtype=np.int64)
