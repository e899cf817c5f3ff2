"""A run through a pool in random order, by the public seed, whatever the order of the file."""

from dataclasses import replace
from typing import Any

import numpy as np

from secretballot._typing import IntArray
from secretballot.queries.base import PublicPool, QuerySelector
from secretballot.released import ReleasedLabels


def shuffled_pool(pool: PublicPool) -> tuple[PublicPool, IntArray]:
    """Return the pool in random order, and the row of the given pool behind each of its rows."""
    order = np.random.default_rng(pool.random_state).permutation(pool.n_points)
    X = pool.X.iloc[order] if hasattr(pool.X, "iloc") else pool.X[order]
    return replace(pool, X=X), order


class ShuffledSelector(QuerySelector):
    """Run through a shuffled pool, and speak of the rows of the pool that was given.

    Parameters
    ----------
    selector : QuerySelector
        Through the shuffled pool.
    order : ndarray of int64, shape (m,)
        From `shuffled_pool`.
    """

    def __init__(self, selector: QuerySelector, order: IntArray) -> None:
        self._selector, self._order = selector, order
        self._place = np.empty_like(order)
        self._place[order] = np.arange(len(order))

    def propose(self, n: int) -> IntArray:
        """Return up to `n` rows."""
        return np.asarray(self._order[self._selector.propose(n)])

    def receive(self, released: ReleasedLabels) -> None:
        """Take in everything released so far."""
        self._selector.receive(
            ReleasedLabels(
                queries=self._place[released.queries],
                labels=released.labels,
                classes=released.classes,
                n_teachers=released.n_teachers,
                sigma=released.sigma,
                noisy_counts=released.noisy_counts,
            )
        )

    def explain(self) -> dict[str, Any]:
        """Return what the run tells."""
        return self._selector.explain()
