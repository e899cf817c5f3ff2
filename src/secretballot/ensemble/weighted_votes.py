"""Votes of teachers that count several times, each as often as its group says. Private until the
door has released something about them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from secretballot._typing import IntArray
from secretballot._validation import check_count, shown
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
    voters : tuple of (str, int, int)
        Of each group its name, how many teachers it has and how many votes each of them casts.
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
    >>> votes = WeightedVotes.of_groups(
    ...     {"strict": strict, "others": others}, weights={"strict": 1, "others": 2}
    ... )
    >>> votes.voters, votes.n_teachers
    ((('strict', 100, 1), ('others', 50, 2)), 200)
    """

    __slots__ = ("__voters", "__votes")
    _refusal = "private votes refuse to {}; release them through secretballot.release."

    def __init__(self, votes: VoteCounts, voters: tuple[tuple[str, int, int], ...]) -> None:
        self.__votes, self.__voters = votes, voters

    @classmethod
    def of_groups(
        cls, groups: Mapping[str, VoteCounts], weights: Mapping[str, int]
    ) -> "WeightedVotes":
        """Return the votes of all groups, each teacher's as many times as its group says.

        Parameters
        ----------
        groups : mapping of str to VoteCounts
            By the name of the group, of its teachers, on the same queries and classes.
        weights : mapping of str to int
            By the same names, the votes that each teacher of the group casts; public.

        Raises
        ------
        DataError
            If they do not fit together.
        ParameterError
            If a weight is no integer of at least 1.
        """
        if not groups or set(groups) != set(weights):
            raise DataError(
                f"There are votes of the groups {shown(list(groups))} and weights of"
                f" {shown(list(weights))}; give one weight for each group."
            )
        times = [check_count("weights", weights[name]) for name in groups]
        all_votes = list(groups.values())
        # one row holds one vote of each teacher: votes that count already would count twice over
        strange = [one for one in all_votes if type(one) is not VoteCounts]
        if strange:
            raise DataError(
                f"The votes of a group are a {type(strange[0]).__name__}; give VoteCounts, one vote"
                " of each of its teachers at every query."
            )
        # the same order of classes, too: counts are added up column by column
        shapes = {(one.n_queries, tuple(one.classes), str(one.declared)) for one in all_votes}
        if len(shapes) > 1:
            raise DataError(
                "The groups voted on other queries or classes, or were made for other units; let"
                " all of them vote on the same."
            )
        voters = tuple(
            (name, one.n_teachers, w) for (name, one), w in zip(groups.items(), times, strict=True)
        )
        total = sum(number * weight for _, number, weight in voters)
        if not total <= _MOST_VOTES:
            raise DataError(f"{total} votes at one query are too many; there may be {_MOST_VOTES}.")
        parts = [w * one.open_at_the_door() for one, w in zip(all_votes, times, strict=True)]
        votes = VoteCounts(np.sum(parts, axis=0), all_votes[0].classes, total)
        declared = all_votes[0].declared
        return cls(votes if declared is None else votes.under(**declared), voters)

    @property
    def voters(self) -> tuple[tuple[str, int, int], ...]:
        """Of each group its name, its number of teachers, and the votes of each of them."""
        return self.__voters

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
        """Return the votes on some queries, rows of shape (l,), as `VoteCounts.take`."""
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
