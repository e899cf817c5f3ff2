"""Hold the teachers' votes as counts that nothing outside the private rooms can read by
accident."""

import contextlib
import io
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from secretballot._typing import IntArray
from secretballot._validation import NEIGHBOURS, UNITS, check_choice, name_part
from secretballot.ensemble.sealed import Sealed
from secretballot.ensemble.tally import blocks_of, check_classes, check_counts, count_votes
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.vault import write_secret


class VoteCounts(Sealed):
    """Votes per query and class: private until the door has released something about them.

    Make one with `from_votes`, `from_counts` or `read`, or take what an ensemble returns. Its shape
    and classes are public and shown; its values are not. It refuses to become an array, to be
    iterated, compared by value or pickled.

    Attributes
    ----------
    n_queries, n_classes, n_teachers : int
        The public shape.
    classes : list
        The class values, in the order of the columns.
    declared : dict or None
        ``unit`` and ``neighbours`` that the teachers' shards were made for, None where nobody
        knows.

    Examples
    --------
    >>> votes = sb.VoteCounts.from_counts([[3, 97], [60, 40]], classes=["no", "yes"])
    >>> votes
    VoteCounts(n_queries=2, n_classes=2, n_teachers=100, values=<private>)
    >>> votes.take([1]).n_queries, votes.classes
    (1, ['no', 'yes'])
    """

    __slots__ = ("__classes", "__counts", "__declared", "__n_teachers")
    _refusal = (
        "private votes refuse to {}; use n_queries and take, and release them through"
        " secretballot.release."
    )

    def __init__(self, counts: npt.NDArray[Any], classes: object, n_teachers: int) -> None:
        values = check_classes(classes)
        checked, self.__n_teachers = check_counts(
            blocks_of(_vote_table(counts, "counts")), len(values), n_teachers
        )
        self.__counts = checked
        self.__classes = tuple(values)
        self.__declared: tuple[str, str] | None = None

    @classmethod
    def from_votes(cls, votes: Any, classes: object) -> "VoteCounts":
        """Count votes given teacher by teacher.

        Parameters
        ----------
        votes : array-like of shape (n_queries, n_teachers)
            Each a value of `classes`. A memory map is read in blocks.
        classes : list of length C
            Every class value, declared and not taken from the votes.

        Raises
        ------
        DataError
            If a vote is missing or no declared class; the message names rows, never values.
        ParameterError
            If `classes` is not a list of two or more distinct values.
        """
        values = check_classes(classes)
        counts, n_teachers = count_votes(blocks_of(_vote_table(votes, "votes")), values)
        return cls(counts, values, n_teachers)

    @classmethod
    def from_counts(
        cls, counts: Any, classes: object = None, n_teachers: int | None = None
    ) -> "VoteCounts":
        """Take counts made elsewhere.

        Parameters
        ----------
        counts : array-like of shape (n_queries, C)
            Votes per class; integers of any numeric type, every row summing to the number of
            teachers.
        classes : list of length C, optional
            The class values; 0 to C - 1 where none are given.
        n_teachers : int, optional
            What the rows must sum to; by default what the first row sums to.

        Raises
        ------
        DataError
            If a count is nan, fractional or negative, or rows differ in their sum; rows are named,
            never values.
        ParameterError
            If `classes` is not a list of two or more distinct values.
        """
        table = _vote_table(counts, "counts")
        values = check_classes(range(table.shape[1]) if classes is None else classes)
        checked, n_teachers = check_counts(blocks_of(table), len(values), n_teachers)
        return cls(checked, values, n_teachers)

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        kind: str | None = None,
        classes: object = None,
        n_teachers: int | None = None,
        header: str | None = None,
    ) -> "VoteCounts":
        """Read votes or counts from a `.npy`, `.csv` or `.parquet` file.

        Parameters
        ----------
        path : path
            Rows are queries; columns are teachers (votes) or classes (counts).
        kind : {"votes", "counts"}, optional
            What the file holds. Without it the public shape decides, or the file is refused.
        classes : list, optional
            The class values; needed for votes.
        n_teachers : int, optional
            The number of teachers that the file must agree with.
        header : {"yes", "no"}, optional
            Whether the first line of a CSV file names its columns. Without it a line in which no
            cell could be a vote or count is a header, one in which all could be is data, and any
            other is refused.

        Raises
        ------
        DataError
            If the file cannot be read, its kind cannot be told, or its content does not fit.
        ParameterError
            If `kind` or `classes` is out of its range.
        """
        from secretballot.ensemble.vote_files import read_counts

        return cls(*read_counts(Path(path), kind, classes, n_teachers, header))

    @property
    def n_queries(self) -> int:
        """Number of queries (rows)."""
        return len(self.__counts)

    @property
    def n_classes(self) -> int:
        """Number of classes (columns)."""
        return len(self.__classes)

    @property
    def n_teachers(self) -> int:
        """Number of teachers, the sum of every row."""
        return self.__n_teachers

    @property
    def largest_count(self) -> int:
        """No count is larger; the number of teachers."""
        return self.__n_teachers

    @property
    def classes(self) -> list[Any]:
        """The class values, in the order of the columns."""
        return list(self.__classes)

    @property
    def declared(self) -> dict[str, str] | None:
        """Unit and relation that the teachers' shards were made for, None where nobody knows."""
        return (
            None
            if self.__declared is None
            else dict(zip(("unit", "neighbours"), self.__declared, strict=True))
        )

    def under(self, unit: str, neighbours: str) -> "VoteCounts":
        """Return the same votes with the unit and the relation that the teachers' shards were made
        for.

        Parameters
        ----------
        unit : {"record", "user", "label"}
        neighbours : {"add-remove", "replace-one"}
        """
        declared = (
            check_choice("unit", unit, UNITS),
            check_choice("neighbours", neighbours, NEIGHBOURS),
        )
        # both hold the same counts, which nothing changes
        same = VoteCounts(self.__counts, self.__classes, self.__n_teachers)
        same.__declared = declared
        return same

    def take(self, rows: Any) -> "VoteCounts":
        """Return the votes on some queries.

        Parameters
        ----------
        rows : array-like of shape (l,), int
            Row numbers from 0, at least one; a row may be taken more than once.

        Raises
        ------
        ParameterError
            If a row number is not an integer from 0 to n_queries - 1.
        """
        chosen = np.asarray(rows)
        if chosen.ndim != 1 or chosen.dtype.kind not in "iu" or chosen.size == 0:
            raise ParameterError(
                Parameter("rows"), " must be a list of one or more whole row numbers."
            )
        if not (chosen.min() >= 0 and chosen.max() < self.n_queries):
            raise ParameterError(
                Parameter("rows"),
                f" must lie from 0 to {self.n_queries - 1}, the queries that were voted on.",
            )
        taken = VoteCounts(self.__counts[chosen], self.__classes, self.__n_teachers)
        taken.__declared = self.__declared
        return taken

    def open_at_the_door(self) -> IntArray:
        """Return a copy of the counts, shape (n_queries, n_classes), int64.

        For the release and diagnostics alone.

        Privacy
        -------
        The returned values are private: one unit moves one vote in every row. Whoever calls this
        must add noise and pay for it, or keep the result in the vault.
        """
        return self.__counts.astype(np.int64)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the counts as `.npy`, mode 0600, into a vault.

        A folder that is closed to everyone else.

        Parameters
        ----------
        path : path
            A file name ending in `.npy`; an existing file is replaced.

        Raises
        ------
        ParameterError
            If `path` does not end in `.npy`.
        DataError
            If the folder is absent, open to others, or cannot be written.
        """
        target = Path(path)
        if target.suffix != ".npy":
            raise ParameterError(Parameter("path"), f" is {str(target)!r}; it must end in .npy.")
        _refuse_open_folder(target.parent)
        # into memory first: numpy itself would make a file that others may read
        content = io.BytesIO()
        np.save(content, self.__counts, allow_pickle=False)
        write_secret(target, content.getvalue())

    def __repr__(self) -> str:
        return (
            f"VoteCounts(n_queries={self.n_queries}, n_classes={self.n_classes}, "
            f"n_teachers={self.n_teachers}, values=<private>)"
        )


def _vote_table(values: Any, name: str) -> npt.NDArray[Any]:
    if isinstance(values, np.ma.MaskedArray):
        raise DataError(name_part(name), " are a masked array; fill or drop what is masked.")
    table = values if isinstance(values, np.ndarray) else None
    # numpy's own sentence may quote a cell, hence no raise inside an except
    with contextlib.suppress(ValueError):
        table = np.asarray(values)
    if table is None:
        raise DataError(
            name_part(name), " are ragged; every row must have the same number of columns."
        )
    if table.ndim != 2:
        raise DataError(
            name_part(name),
            f" have {table.ndim} dimensions; give one row per query and two dimensions.",
        )
    return table


def _refuse_open_folder(folder: Path) -> None:
    try:
        mode = folder.stat().st_mode
    except OSError as error:
        raise DataError(f"the folder {str(folder)!r} cannot be used: {error.strerror}.") from None
    if not stat.S_ISDIR(mode) or mode & 0o077:
        raise DataError(
            f"the folder {str(folder)!r} is open to others; votes go into a vault of mode 0700."
        )
