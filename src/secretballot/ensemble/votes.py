"""Votes of teachers that were trained elsewhere: given teacher by teacher, counted, or in files."""

import contextlib
import io
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from secretballot._validation import NEIGHBOURS, UNITS, check_choice, check_relation, name_part
from secretballot.core.private import Votes
from secretballot.core.types import Guarantee
from secretballot.ensemble.tally import blocks_of, check_classes, check_counts, count_votes
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.vault import write_secret


def votes_of_teachers(
    votes: Any, classes: object, *, unit: str = "record", neighbours: str = "add-remove"
) -> Votes:
    """Count votes given teacher by teacher.

    Parameters
    ----------
    votes : array-like of shape (n_queries, n_teachers)
        Each a value of `classes`. A memory map is read in blocks.
    classes : list of length C
        Every class value, declared and not taken from the votes.
    unit : {"record", "user", "label"}
    neighbours : {"add-remove", "replace-one"}
        What the teachers' shards were made for.

    Raises
    ------
    DataError
        If a vote is missing or no declared class; the message names rows, never values.
    ParameterError
        If `classes` is not a list of two or more distinct values.

    Examples
    --------
    >>> sb.votes_of_teachers([["no", "yes", "yes"]], ["no", "yes"]).shape.n_teachers
    3
    """
    values = check_classes(classes)
    counts, _ = count_votes(blocks_of(_vote_table(votes, "votes")), values)
    return Votes.of_teachers(counts, guarantee_of(unit, neighbours), classes=values)


def votes_of_counts(
    counts: Any,
    classes: object = None,
    n_teachers: int | None = None,
    *,
    unit: str = "record",
    neighbours: str = "add-remove",
) -> Votes:
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
    unit, neighbours
        As for `votes_of_teachers`.

    Raises
    ------
    DataError
        If a count is nan, fractional or negative, or rows differ in their sum; rows are named,
        never values.
    ParameterError
        If `classes` is not a list of two or more distinct values.

    Examples
    --------
    >>> votes = sb.votes_of_counts([[3, 97], [60, 40]], classes=["no", "yes"])
    >>> votes.shape.n_teachers, votes.classes, votes.take([1]).shape.n_queries
    (100, ('no', 'yes'), 1)
    """
    table = _vote_table(counts, "counts")
    values = check_classes(range(table.shape[1]) if classes is None else classes)
    checked, _ = check_counts(blocks_of(table), len(values), n_teachers)
    return Votes.of_teachers(checked, guarantee_of(unit, neighbours), classes=values)


def read_votes(
    path: str | os.PathLike[str],
    kind: str | None = None,
    classes: object = None,
    n_teachers: int | None = None,
    header: str | None = None,
    *,
    unit: str = "record",
    neighbours: str = "add-remove",
) -> Votes:
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
    unit, neighbours
        As for `votes_of_teachers`.

    Raises
    ------
    DataError
        If the file cannot be read, its kind cannot be told, or its content does not fit.
    ParameterError
        If `kind` or `classes` is out of its range.
    """
    from secretballot.ensemble.vote_files import read_counts

    counts, values, _ = read_counts(Path(path), kind, classes, n_teachers, header)
    return Votes.of_teachers(counts, guarantee_of(unit, neighbours), classes=values)


def write_votes(votes: Votes, path: str | os.PathLike[str]) -> None:
    """Write counts of votes as `.npy`, mode 0600, into a vault: a folder that is closed to
    everyone else.

    Parameters
    ----------
    votes : Votes
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
    np.save(content, votes._unseal()[0], allow_pickle=False)
    write_secret(target, content.getvalue())


def guarantee_of(unit: object, neighbours: object) -> Guarantee:
    """Return whose data a promise is about and how neighbours differ, as words of settings.

    Raises
    ------
    ParameterError
        If one is unknown, or the two do not go together.
    """
    of = check_choice("unit", unit, UNITS)
    relation = check_choice("neighbours", neighbours, NEIGHBOURS)
    check_relation(of, relation)
    return Guarantee(unit=of, relation=relation)


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
