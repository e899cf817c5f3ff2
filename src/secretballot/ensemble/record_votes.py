"""Votes of records: each gives its class to the public points nearest to it. Private until the
door has released something about them."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from secretballot._nearest_points import NearestPoints
from secretballot._typing import BoolArray, IntArray
from secretballot._validation import NEIGHBOURS, UNITS, check_choice, check_count
from secretballot.ensemble.sealed import Sealed
from secretballot.ensemble.tally import check_classes
from secretballot.exceptions import DataError, ParameterError


class RecordVotes(Sealed):
    """Votes per public point and class, where every record votes for itself.

    Make one with `cast`. The points, the classes, the unit and the votes of one record are public
    and shown; the counts are not, and neither is how many records there were.

    Attributes
    ----------
    n_queries, n_classes : int
        Points and classes.
    classes : list
        The class values, in the order of the columns.
    votes_per_record : int
        Points that one record votes for.
    n_teachers : int
        0: how many voted is private.
    largest_count : int
        No count is larger, however many records there are; public.
    counts_uncovered : bool
        Whether records that the public points do not cover were told apart: all votes of such a
        record go to cells of their own, one in each, and none to a public point.
    declared : dict
        ``unit`` and ``neighbours`` that the votes were cast for.

    Examples
    --------
    >>> from secretballot._nearest_points import NearestPoints
    >>> from secretballot.ensemble.record_votes import RecordVotes
    >>> nearest = NearestPoints(np.array([[0], [10], [20]]), k=2)
    >>> records, classes = np.array([[4], [17]]), np.array([0, 1])
    >>> RecordVotes.cast([(records, classes)], nearest, ["no", "yes"])
    RecordVotes(n_queries=3, n_classes=2, votes_per_record=2, values=<private>)
    """

    __slots__ = ("__classes", "__counts", "__declared", "__uncovered", "votes_per_record")
    _refusal = "private votes of records refuse to {}; release them through secretballot.release."
    n_teachers = 0
    largest_count = 10**12

    def __init__(
        self,
        counts: IntArray,
        classes: object,
        votes_per_record: int,
        declared: tuple[str, str],
        uncovered: int | None = None,
    ) -> None:
        values = check_classes(classes)
        table = np.asarray(counts)
        if table.dtype.kind not in "iu" or table.ndim != 2 or table.shape[1] != len(values):
            raise DataError(
                f"counts have dtype {table.dtype} and shape {table.shape}; give integers, one"
                f" column for each of {len(values)} classes."
            )
        # a bound that no real table meets: it moves no count by more than what it bounds moves
        self.__counts = np.clip(table, 0, self.largest_count).astype(np.int64)
        self.__classes = tuple(values)
        self.__uncovered = None if uncovered is None else min(uncovered, self.largest_count)
        self.votes_per_record = check_count("votes_per_record", votes_per_record)
        self.__declared = (
            check_choice("unit", declared[0], UNITS),
            check_choice("neighbours", declared[1], NEIGHBOURS),
        )

    @classmethod
    def cast(
        cls,
        records: Iterable[tuple[IntArray, IntArray] | tuple[IntArray, IntArray, BoolArray]],
        nearest: NearestPoints,
        classes: object,
        *,
        unit: str = "record",
        neighbours: str = "add-remove",
        counts_uncovered: bool = False,
    ) -> "RecordVotes":
        """Let every record vote.

        Parameters
        ----------
        records : iterable of (coordinates, class index) or (coordinates, class index, covered)
            Integers of shape (n, n_coordinates) and (n,), block by block. Of every unit one record.
            Where uncovered records are told apart, also whether the public points cover each, bools
            of shape (n,).
        nearest : NearestPoints
            The public points.
        classes : list of length C
            Every class value, declared and not taken from the records.
        unit : {"record", "user"}
        neighbours : {"add-remove", "replace-one"}
        counts_uncovered : bool
            Whether uncovered records are told apart and counted, in place of their votes.

        Raises
        ------
        DataError
            If coordinates or indices do not fit; no value is named.

        Privacy
        -------
        Unit : one record.
        Sensitivity : a record's votes depend on the record and on public values alone, and go to
            `nearest.k` different points, one each. So a record that comes or goes moves that many
            counts by one, and an uncovered one as many cells of its own. A record that is replaced
            takes that many votes away and gives as many: at most twice as many counts move, each by
            one; where both name the same count, it stays.
        """
        values = check_classes(classes)
        table = np.zeros(nearest.n_points * len(values), dtype=np.int64)
        uncovered = 0
        for coordinates, index, *more in records:
            voted = np.asarray(index)
            if voted.shape != (len(coordinates),) or (
                len(voted) and not (voted.min() >= 0 and voted.max() < len(values))
            ):
                raise DataError("Records and their class indices do not fit together.")
            if counts_uncovered:
                covered = np.asarray(more[0] if more else None)
                if covered.dtype != bool or covered.shape != voted.shape:
                    raise DataError("It is not said of every record whether it is covered.")
                uncovered += int(np.count_nonzero(~covered))
                # uncovered records do not vote: they are counted in place of that
                coordinates, voted = coordinates[covered], voted[covered]
            cells = nearest.of(coordinates) * len(values) + voted[:, None]
            table += np.bincount(cells.ravel(), minlength=len(table))
        counts = table.reshape(nearest.n_points, len(values))
        told = uncovered if counts_uncovered else None
        return cls(counts, values, nearest.k, (unit, neighbours), told)

    @property
    def n_queries(self) -> int:
        """Number of public points (rows)."""
        return len(self.__counts)

    @property
    def n_classes(self) -> int:
        """Number of classes (columns)."""
        return len(self.__classes)

    @property
    def classes(self) -> list[Any]:
        """The class values, in the order of the columns."""
        return list(self.__classes)

    @property
    def declared(self) -> dict[str, str]:
        """Unit and relation that the votes were cast for."""
        return dict(zip(("unit", "neighbours"), self.__declared, strict=True))

    @property
    def counts_uncovered(self) -> bool:
        """Whether uncovered records were told apart."""
        return self.__uncovered is not None

    def take(self, rows: Any) -> "RecordVotes":
        """Return the votes for some points.

        Parameters
        ----------
        rows : array-like of shape (l,), int
            Row numbers from 0, at least one, each once: a point that stood there twice would move
            with a record twice.

        Raises
        ------
        ParameterError
            If a row number is not an integer from 0 to n_queries - 1, or stands there twice.
        """
        chosen = np.asarray(rows)
        if chosen.ndim != 1 or chosen.dtype.kind not in "iu" or chosen.size == 0:
            raise ParameterError("rows must be a list of one or more whole row numbers.")
        if not (chosen.min() >= 0 and chosen.max() < self.n_queries):
            raise ParameterError(f"rows must lie from 0 to {self.n_queries - 1}.")
        if len(np.unique(chosen)) < len(chosen):
            raise ParameterError("rows names a row twice; name each row once.")
        return RecordVotes(
            self.__counts[chosen],
            self.__classes,
            self.votes_per_record,
            self.__declared,
            self.__uncovered,
        )

    def open_at_the_door(self) -> IntArray:
        """Return a copy of the counts, shape (n_queries, n_classes), int64.

        Where uncovered records are counted, rows follow whose first `votes_per_record` cells hold
        one vote of each of them; what is left of the last row is 0.

        Privacy
        -------
        The returned values are private: whoever calls this must add noise and pay for it.
        """
        if self.__uncovered is None:
            return self.__counts.copy()
        rows = -(-self.votes_per_record // self.n_classes)
        more = np.zeros(rows * self.n_classes, dtype=np.int64)
        more[: self.votes_per_record] = self.__uncovered
        return np.vstack([self.__counts, more.reshape(rows, self.n_classes)])

    def __repr__(self) -> str:
        return (
            f"RecordVotes(n_queries={self.n_queries}, n_classes={self.n_classes}, "
            f"votes_per_record={self.votes_per_record}, values=<private>)"
        )
