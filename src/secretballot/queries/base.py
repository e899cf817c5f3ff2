"""What a query strategy sees, public things alone, and what it answers: the next points to ask."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from secretballot._typing import IntArray
from secretballot.released import ReleasedLabels


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
    classes: tuple[Any, ...]
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
    def describe(self) -> dict[str, Any]:
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
        """Return at most `n` new rows of the pool, distinct; empty where no label is worth asking.

        Parameters
        ----------
        n : int
            At least 1.
        """

    @abstractmethod
    def receive(self, released: ReleasedLabels) -> None:
        """Take in everything released so far; `released.queries` are rows of the pool."""

    def explain(self) -> dict[str, Any]:
        """Return what the report may tell of the run, as JSON values, such as a version space."""
        return {}
