"""Guards on what a strategy proposes: nothing is paid for a row that cannot be asked."""

from collections.abc import Collection
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secretballot._seeded import own_global_states, seed_of
from secretballot._typing import IntArray
from secretballot._validation import check_count
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.queries.base import PublicPool, QuerySelector, QueryStrategy
from secretballot.queries.uncertainty import MarginSampling
from secretballot.released import ReleasedLabels

_ROUNDS = 20  # where nothing else is said


def default_round_size(n_queries: int) -> int:
    """Return how many queries a round has, where nothing else is said."""
    return max(1, n_queries // _ROUNDS)


def check_proposal(
    rows: object, n: int, pool: PublicPool, asked: Collection[int] | IntArray
) -> IntArray:
    """Return the proposed rows, if they may be asked, as an int64 array of shape (k,), k <= n.

    Parameters
    ----------
    rows : array of int, shape (k,)
        What a strategy proposed.
    n : int
        How many it was allowed to propose.
    pool : PublicPool
    asked : collection of int
        Rows that were proposed before.

    Raises
    ------
    DataError
        If the rows are not a list of integers, lie outside of the pool, repeat a row, or are
        more than `n`.
    """
    # Types first: whatever is compared afterwards is a number, and a number of float type might
    # round to a row that nobody meant.
    array: NDArray[Any] = np.asarray(rows)
    if array.ndim != 1:
        raise DataError(
            f"the strategy proposed an array of shape {array.shape}; it must propose a list of"
            " rows."
        )
    if not array.size:
        return np.empty(0, dtype=np.int64)
    if array.dtype.kind not in "iu":
        raise DataError(
            f"the strategy proposed rows of dtype {array.dtype}; it must propose integers."
        )
    if len(array) > n:
        raise DataError(
            f"the strategy proposed {len(array)} rows where {n} were wanted; it must propose at"
            f" most {n}."
        )
    outside = array[(array < 0) | (array >= pool.n_points)]
    if len(outside):
        raise DataError(
            f"the strategy proposed row {outside[0]}, outside of the pool; "
            f"it must propose rows from 0 to {pool.n_points - 1}."
        )
    values, times = np.unique(array.astype(np.int64), return_counts=True)
    again = values[
        (times > 1) | np.isin(values, np.fromiter(asked, dtype=np.int64, count=len(asked)))
    ]
    if len(again):
        raise DataError(
            f"the strategy proposed row {again[0]} twice; it must propose each row of the pool"
            " once."
        )
    return array.astype(np.int64)


class CheckedSelector(QuerySelector):
    """Run any strategy, and stop with one sentence at the first proposal that cannot be asked.

    Every step runs on global random states of its own, seeded by the pool's public random state: a
    strategy whose learner draws from them does not depend on what was done before.

    Parameters
    ----------
    strategy : QueryStrategy
    pool : PublicPool

    Raises
    ------
    ParameterError
        If `strategy` is no strategy, or starts something else than a selector.

    Examples
    --------
    >>> pool = sb.queries.PublicPool(np.arange(20.0)[:, None], (0, 1), n_queries=6, random_state=0)
    >>> selector = sb.queries.CheckedSelector(sb.queries.PassiveSampling(), pool)
    >>> len(selector.propose(4)), len(selector.propose(40))
    (4, 16)
    """

    def __init__(self, strategy: QueryStrategy, pool: PublicPool) -> None:
        if not isinstance(strategy, QueryStrategy):
            raise ParameterError(
                Parameter("strategy"),
                f" is a {type(strategy).__name__}; give a QueryStrategy, such as MarginSampling().",
            )
        self._pool = pool
        self._asked: set[int] = set()
        with self._own_states():
            self._selector = strategy.start(pool)
        if not isinstance(self._selector, QuerySelector):
            raise ParameterError(
                f"{type(strategy).__name__}.start returned a {type(self._selector).__name__}; "
                "it must return a QuerySelector."
            )

    def propose(self, n: int) -> IntArray:
        """Return at most `n` rows that were checked; see `check_proposal` for what is refused."""
        n = check_count("n", n)
        with self._own_states():
            proposed = self._selector.propose(n)
        rows = check_proposal(proposed, n, self._pool, self._asked)
        self._asked.update(rows.tolist())
        return rows

    def receive(self, released: ReleasedLabels) -> None:
        """Hand everything released so far to the strategy."""
        with self._own_states():
            self._selector.receive(released)

    def explain(self) -> dict[str, Any]:
        """Return what the strategy tells of its choices."""
        with self._own_states():
            return self._selector.explain()

    def _own_states(self) -> AbstractContextManager[None]:
        """Return a context seeded by the pool and by how far the run has come."""
        return own_global_states(seed_of(self._pool.random_state, len(self._asked)))


@dataclass(frozen=True, eq=False)
class InRounds:
    """Settings of queries that are asked in rounds.

    Parameters
    ----------
    strategy : QueryStrategy, optional
        How to choose; `MarginSampling` by default.
    round_size : int, optional
        Queries per round; a twentieth of all by default. The strategy learns from the answers
        between rounds.
    confidence : float, optional
        Of interactive voting: probability from which on a prediction of the student that was not
        corrected counts as confirmed; 0.9 by default. Given with `ConfidentLabels` of your own, it
        makes them interactive.

    Examples
    --------
    >>> sb.queries.InRounds(round_size=20).chosen.describe()["name"]
    'margin'
    """

    strategy: QueryStrategy | None = None
    round_size: int | None = None
    confidence: float | None = None

    @property
    def chosen(self) -> QueryStrategy:
        """The strategy."""
        return MarginSampling() if self.strategy is None else self.strategy
