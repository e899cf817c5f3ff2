"""Votes of teachers that count several times, each as often as its group says. Private until the
door has released something about them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from secretballot._typing import IntArray
from secretballot._validation import check_count
from secretballot.ensemble.sealed import Sealed
from secretballot.ensemble.votes import VoteCounts
from secretballot.exceptions import DataError

__all__ = ["WeightedVotes"]

_MOST_VOTES = 2**31 - 1  # as counts are held


class WeightedVotes(Sealed):
    """Votes per query and class, where the teachers of each group cast a public number of votes.

    Make one with `of_groups`. Its shape, its classes and how many teachers cast how many votes are
    public and shown; its values are not. It is no `VoteCounts`: what is priced for single votes
    refuses it.

    Attributes
    ----------
    n_queries, n_classes : int
        The public shape.
    n_teachers : int
        All votes together, the sum of every row.
    voters : tuple of (int, int)
        Of each group, how many teachers it has and how many votes each of them casts.
    classes : list
        The class values, in the order of the columns.
    declared : dict or None
        ``unit`` and ``neighbours`` that the teachers' shards were made for, None where nobody
        knows.

    Examples
    --------
    >>> from secretballot.ensemble import WeightedVotes
    >>> strict = sb.VoteCounts.from_counts([[3, 97], [60, 40]])
    >>> others = sb.VoteCounts.from_counts([[10, 40], [20, 30]])
    >>> WeightedVotes.of_groups([strict, others], weights=[1, 2])
    WeightedVotes(n_queries=2, n_classes=2, voters=((100, 1), (50, 2)), values=<private>)
    """

    __slots__ = ("__votes", "voters")
    _refusal = "private votes refuse to {}; release them through secretballot.release."

    def __init__(self, votes: VoteCounts, voters: tuple[tuple[int, int], ...]) -> None:
        self.__votes, self.voters = votes, voters

    @classmethod
    def of_groups(cls, groups: Sequence[VoteCounts], weights: Sequence[int]) -> "WeightedVotes":
        """Return the votes of all groups, each teacher's as many times as its group says.

        Parameters
        ----------
        groups : sequence of VoteCounts
            Of the teachers of each group, on the same queries and classes.
        weights : sequence of int
            Votes that each teacher of the group casts; public.

        Raises
        ------
        DataError
            If they do not fit together.
        ParameterError
            If a weight is no integer of at least 1.
        """
        times = [check_count("weights", weight) for weight in weights]
        if not groups or len(groups) != len(times):
            raise DataError(
                f"{len(groups)} groups have {len(times)} weights; give one weight for each group."
            )
        shapes = {(one.n_queries, tuple(one.classes), str(one.declared)) for one in groups}
        if len(shapes) > 1:
            raise DataError(
                "The groups voted on other queries or classes, or were made for other units; let"
                " all of them vote on the same."
            )
        voters = tuple((one.n_teachers, w) for one, w in zip(groups, times, strict=True))
        total = sum(number * weight for number, weight in voters)
        if not total <= _MOST_VOTES:
            raise DataError(f"{total} votes at one query are too many; there may be {_MOST_VOTES}.")
        parts = [w * one.open_at_the_door() for one, w in zip(groups, times, strict=True)]
        votes = VoteCounts(np.sum(parts, axis=0), groups[0].classes, total)
        declared = groups[0].declared
        return cls(votes if declared is None else votes.under(**declared), voters)

    @property
    def n_queries(self) -> int:
        """Number of queries (rows)."""
        return self.__votes.n_queries

    @property
    def n_classes(self) -> int:
        """Number of classes (columns)."""
        return self.__votes.n_classes

    @property
    def n_teachers(self) -> int:
        """All votes together, the sum of every row."""
        return self.__votes.n_teachers

    @property
    def largest_count(self) -> int:
        """No count is larger; all votes together."""
        return self.__votes.n_teachers

    @property
    def classes(self) -> list[Any]:
        """The class values, in the order of the columns."""
        return self.__votes.classes

    @property
    def declared(self) -> dict[str, str] | None:
        """Unit and relation that the teachers' shards were made for, None where nobody knows."""
        return self.__votes.declared

    def take(self, rows: Any) -> "WeightedVotes":
        """Return the votes on some queries, as `VoteCounts.take`."""
        return WeightedVotes(self.__votes.take(rows), self.voters)

    def open_at_the_door(self) -> IntArray:
        """Return a copy of the counts, shape (n_queries, n_classes), int64.

        For the release alone.

        Privacy
        -------
        The returned values are private: one unit moves, in every row, all votes of one teacher.
        Whoever calls this must add noise and pay for it.
        """
        return self.__votes.open_at_the_door()

    def __repr__(self) -> str:
        return (
            f"WeightedVotes(n_queries={self.n_queries}, n_classes={self.n_classes},"
            f" voters={self.voters}, values=<private>)"
        )
