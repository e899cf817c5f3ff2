"""Random rows: what every other strategy is measured against."""

from typing import Any

import numpy as np

from secretballot._typing import IntArray
from secretballot.queries.base import PublicPool, QuerySelector, QueryStrategy
from secretballot.released import ReleasedLabels


class OrderedSelector(QuerySelector):
    """Propose rows in an order fixed beforehand; no answer changes it.

    Parameters
    ----------
    order : array of int, shape (k,)
        Distinct rows of the pool.
    """

    def __init__(self, order: IntArray) -> None:
        self._left = order

    def propose(self, n: int) -> IntArray:
        """Return the next `n` rows of the order, or what is left of it."""
        rows, self._left = self._left[:n], self._left[n:]
        return rows

    def receive(self, released: ReleasedLabels) -> None:
        """Leave out rows that others asked; learn nothing."""
        self._left = self._left[~np.isin(self._left, released.queries)]


class PassiveSampling(QueryStrategy):
    """Ask random rows of the pool, by the public seed (Liu et al. 2021, Algorithm 3).

    The rows do not depend on how many are asked at a time: two rounds of 10 ask what one of 20
    asks.

    Examples
    --------
    >>> pool = sb.queries.PublicPool(np.arange(20.0)[:, None], (0, 1), n_queries=6, random_state=0)
    >>> rows = sb.queries.PassiveSampling().start(pool).propose(6)
    >>> len(set(rows.tolist()))
    6
    """

    def start(self, pool: PublicPool) -> OrderedSelector:
        """Shuffle the pool by its public seed."""
        return OrderedSelector(np.random.default_rng(pool.random_state).permutation(pool.n_points))

    def describe(self) -> dict[str, Any]:
        """Return the name."""
        return {"name": "passive"}
