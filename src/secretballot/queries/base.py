"""What a query strategy sees, public things alone, and what it answers: the next points to ask."""

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import erf

from secretballot._seeded import own_global_states, seed_of
from secretballot._typing import FloatArray, IntArray, Json, Values
from secretballot._validation import check_count
from secretballot.exceptions import DataError
from secretballot.released import ReleasedLabels

_ROUNDS = 20  # where nothing else is set


@dataclass(frozen=True, eq=False)
class PublicPool:
    """All that is known before the first label: public points and public numbers.

    Attributes
    ----------
    X : array, sparse matrix or frame of shape (m, n_features)
        Public points, distinct, in the order of the stream.
    classes : tuple
        Class values; labels are their positions.
    n_queries : int
        Labels that are paid for, at most.
    random_state : int
        Public seed of the strategy.

    Examples
    --------
    >>> pool = sb.queries.PublicPool(np.zeros((5, 2)), ("no", "yes"), n_queries=3, random_state=0)
    >>> pool.n_points
    5
    """

    X: Any
    classes: Values
    n_queries: int
    random_state: int

    @property
    def n_points(self) -> int:
        """Number m of public points."""
        return int(self.X.shape[0])


class QueryStrategy(ABC):
    """How to choose queries. Holds public settings only, and may be used for any number of pools.

    Examples
    --------
    >>> class FirstRows(sb.queries.QueryStrategy):
    ...     def start(self, pool):
    ...         return NextRows(pool)
    ...     def describe(self):
    ...         return {"name": "first rows"}
    >>> FirstRows().describe()
    {'name': 'first rows'}
    """

    @abstractmethod
    def start(self, pool: PublicPool) -> "QuerySelector":
        """Return a selector for this pool.

        Raises
        ------
        ParameterError, DataError
            If the strategy cannot work on this pool; nothing was asked yet.
        """

    @abstractmethod
    def describe(self) -> Json:
        """Return name and settings as JSON values, for the certificate and the report."""


class QuerySelector(ABC):
    """One run through a pool: propose points, receive what was released, and so on.

    It is deterministic given the pool and what it received, so that an interrupted run can be
    taken again: the answers stored under the same questions cost nothing.

    Examples
    --------
    >>> class NextRows(sb.queries.QuerySelector):
    ...     def __init__(self, pool):
    ...         self.rows = np.arange(pool.n_points)
    ...     def propose(self, n):
    ...         rows, self.rows = self.rows[:n], self.rows[n:]
    ...         return rows
    ...     def receive(self, released):
    ...         self.rows = np.setdiff1d(self.rows, released.queries)
    >>> pool = sb.queries.PublicPool(np.arange(20.0)[:, None], (0, 1), n_queries=6, random_state=0)
    >>> NextRows(pool).propose(3).tolist()
    [0, 1, 2]
    """

    @abstractmethod
    def propose(self, n: int) -> IntArray:
        """Return at most `n` new rows of the pool, distinct; empty where no label would help.

        Parameters
        ----------
        n : int
            At least 1.
        """

    @abstractmethod
    def receive(self, released: ReleasedLabels) -> None:
        """Take in everything released so far; `released.queries` are rows of the pool."""


def default_round_size(n_queries: int) -> int:
    """Return how many queries a round has, where nothing else is set."""
    return max(1, n_queries // _ROUNDS)


class CheckedSelector(QuerySelector):
    """Run any strategy, and stop with one sentence at the first proposal that cannot be asked.

    Every step runs on global random states of its own, seeded by the pool's public random state: a
    strategy whose learner draws from them does not depend on what was done before.

    Parameters
    ----------
    strategy : QueryStrategy
    pool : PublicPool

    Examples
    --------
    >>> pool = sb.queries.PublicPool(np.arange(20.0)[:, None], (0, 1), n_queries=6, random_state=0)
    >>> selector = sb.queries.CheckedSelector(sb.queries.PassiveSampling(), pool)
    >>> len(selector.propose(4)), len(selector.propose(40))
    (4, 16)
    """

    def __init__(self, strategy: QueryStrategy, pool: PublicPool) -> None:
        self._pool, self._asked = pool, set[int]()
        with self._own_states():
            self._selector = strategy.start(pool)

    def propose(self, n: int) -> IntArray:
        """Return at most `n` rows that were checked.

        Raises
        ------
        DataError
            If what was proposed is no list of at most `n` integers, lies outside of the pool, or
            repeats a row.
        """
        n = check_count("n", n)
        with self._own_states():
            proposed = np.asarray(self._selector.propose(n))
        if proposed.ndim == 1 and not proposed.size:
            return np.empty(0, dtype=np.int64)
        # types first: a number of float type might round to a row that nobody meant
        fits = proposed.ndim == 1 and proposed.dtype.kind in "iu" and len(proposed) <= n
        rows = set(proposed.tolist()) if fits else set()
        new = rows - self._asked
        if not (fits and len(new) == len(proposed) and new <= set(range(self._pool.n_points))):
            raise DataError(
                f"the strategy proposed an array of {proposed.dtype} of shape {proposed.shape}; it"
                f" must propose a list of at most {n} integers, each row from 0 to"
                f" {self._pool.n_points - 1} once."
            )
        self._asked |= rows
        return proposed.astype(np.int64)

    def receive(self, released: ReleasedLabels) -> None:
        """Hand everything released so far to the strategy."""
        with self._own_states():
            self._selector.receive(released)

    def _own_states(self) -> AbstractContextManager[None]:
        """Return a context seeded by the pool and by how far the run has come."""
        return own_global_states(seed_of(self._pool.random_state, len(self._asked)))


@dataclass(frozen=True)
class LabelledRows:
    """Rows of the pool with released labels.

    Attributes
    ----------
    rows, labels : ndarray of int64, shape (n,)
        Rows of the pool, and positions among the classes. Abstentions are not among them.
    weights : ndarray of float64, shape (n,)
        Confidence in each label, from 0 to 1; 1 where labels alone were released.
    asked : ndarray of int64, shape (n_queries,)
        All rows that were asked, abstentions included.
    """

    rows: IntArray
    labels: IntArray
    weights: FloatArray
    asked: IntArray

    @classmethod
    def none(cls) -> "LabelledRows":
        """Return what is known before the first answer."""
        nothing = np.empty(0, dtype=np.int64)
        return cls(nothing, nothing, np.empty(0), nothing)

    def among(self, rows: IntArray) -> "LabelledRows":
        """Return the part that belongs to `rows`, of shape (k,)."""
        kept = np.isin(self.rows, rows)
        return LabelledRows(
            self.rows[kept],
            self.labels[kept],
            self.weights[kept],
            self.asked[np.isin(self.asked, rows)],
        )

    @property
    def n_classes(self) -> int:
        """Number of classes of which a label is known."""
        return len(np.unique(self.labels))


def labelled_rows(released: ReleasedLabels) -> LabelledRows:
    """Return the answered queries of a release.

    The confidence in a label, where noisy counts are released, is 2 Phi(gap / noise) - 1: Phi(gap /
    noise) is the probability, under a flat prior, that the class with the larger noisy count also
    has the larger true one; 0 says that the label is no better than a guess. Labels alone are
    trusted fully.
    """
    queries, labels = released.queries, released.labels
    weights, counts, sigma = np.ones(len(labels)), released.noisy_counts, released.sigma
    if counts is not None and sigma is not None:
        if counts.ndim == 1:
            gap, noise = np.abs(counts - released.n_teachers / 2), sigma
        else:
            ordered = np.sort(counts, axis=1)
            gap, noise = (ordered[:, -1] - ordered[:, -2]).astype(np.float64), sigma * np.sqrt(2.0)
        # 2 Phi(x) - 1 = erf(x / sqrt 2)
        weights = np.asarray(erf(gap / (noise * np.sqrt(2.0))), dtype=np.float64)
    answered = labels >= 0  # -1 stands for a query without an answer
    return LabelledRows(queries[answered], labels[answered], weights[answered], queries)
