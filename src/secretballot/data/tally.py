"""Votes of teachers that were trained elsewhere, given teacher by teacher or counted: blocks of
them become checked integer counts, and every inconsistency is named by its row numbers."""

import contextlib
import io
import math
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from secretballot._typing import AnyArray, BoolArray, CountArray, IntArray, Place
from secretballot._validation import (
    RELATIONS,
    UNITS,
    check_choice,
    check_relation,
    name_part,
    name_rows,
    refusal,
    shown,
    shown_classes,
)
from secretballot.core.private import Votes
from secretballot.core.types import Guarantee
from secretballot.data.cells import coded_texts, numbers_of, text_of
from secretballot.exceptions import DataError
from secretballot.vault import write_secret

#: Some rows of votes or counts: queries, by teachers or classes.
Block = AnyArray | pd.DataFrame
#: Counts of a block, and which of its rows break each rule.
_Counted = tuple[CountArray, dict[str, BoolArray]]

_BLOCK_CELLS = 2**22
_NO_CLASS = -1


def check_classes(classes: object) -> list[Any]:
    """Return the class values as plain Python values, all numbers or all text, distinct, two or
    more.

    Raises
    ------
    ParameterError
        If `classes` is not such a list.
    """
    if isinstance(classes, (str, bytes)) or not isinstance(classes, Iterable):
        raise refusal("classes", f" is {shown(classes)}; it must be a list of the class values.")
    values = [value.item() if isinstance(value, np.generic) else value for value in classes]
    is_text = [isinstance(value, str) and _fits_a_file(value) for value in values]
    is_number = [isinstance(value, (int, float)) and _fits_a_file(value) for value in values]
    usable, texts = len(values) >= 2 and (all(is_text) or all(is_number)), {*map(text_of, values)}
    # 1 and True are equal; "1" and "1.0" are read alike, and an empty cell names no class
    if not usable or "" in texts or min(len(set(values)), len(texts)) < len(values):
        raise refusal(
            "classes",
            f" is {shown_classes(values)}; it must hold two or more distinct values, not one"
            " class or a class twice, all numbers or all text that is not empty, which certificates"
            " and tables can hold.",
        )
    return values


def _fits_a_file(value: object) -> bool:
    """Return whether a class can be written to a certificate and to a table, and read again: nan,
    infinite numbers and half characters cannot."""
    if isinstance(value, float):
        return math.isfinite(value)
    try:
        str(value).encode()
    except UnicodeEncodeError:
        return False
    return True


def blocks_of(table: AnyArray) -> Iterator[AnyArray]:
    """Yield the rows of `table`, shape (n_rows, n_columns), in blocks of about four million
    cells."""
    rows = max(1, _BLOCK_CELLS // max(1, table.shape[1]))
    for start in range(0, len(table), rows):
        yield np.asarray(table[start : start + rows])


def count_votes(
    blocks: Iterable[Block], classes: Sequence[Any], n_teachers: int | None = None
) -> CountArray:
    """Count the votes for each class.

    Parameters
    ----------
    blocks : iterable of arrays or frames of shape (rows, n_teachers)
        The votes, each a value of `classes`, compared as text: 1, 1.0 and "1" are one class.
    classes : sequence of length C
        As `check_classes` returns them.
    n_teachers : int, optional
        What the number of columns must be.

    Returns
    -------
    ndarray of shape (n_queries, C), int32

    Raises
    ------
    DataError
        If a vote is missing or no declared class, or the shape does not fit; the message names
        rows, never values.
    """
    places = {text_of(value): place for place, value in enumerate(classes)}

    def places_in(cells: "pd.Series[Any]") -> IntArray:
        codes, texts = coded_texts(cells)
        return np.array([places.get(text, _NO_CLASS) for text in texts], dtype=np.int64)[codes]

    def counted(block: Block) -> _Counted:
        cast = _by_cell(places_in, block)
        every = [np.count_nonzero(cast == place, axis=1) for place in range(len(classes))]
        fault = "a vote that is missing, or no declared class"
        return np.stack(every, axis=1).astype(np.int32), {fault: (cast == _NO_CLASS).any(axis=1)}

    return _joined_counts(blocks, counted, "votes", n_teachers)


def _by_cell(read: Callable[["pd.Series[Any]"], Any], block: Block) -> Any:
    """Return what is read of every cell, in the shape of the block."""
    if isinstance(block, pd.DataFrame):
        return np.column_stack([read(block[name]) for name in block.columns])
    cells = block if block.dtype.kind in "biuf" else block.astype(object)
    return read(pd.Series(cells.ravel(), dtype=cells.dtype)).reshape(block.shape)


def check_counts(
    blocks: Iterable[Block], n_classes: int | None = None, n_teachers: int | None = None
) -> CountArray:
    """Check counts of votes: whole, not negative, every row with the same sum, the number of
    teachers.

    Parameters
    ----------
    blocks : iterable of arrays or frames of shape (rows, C)
        Votes per class; integers of any numeric type.
    n_classes : int, optional
        What the number of columns must be.
    n_teachers : int, optional
        What every row must sum to; by default what the first row sums to.

    Returns
    -------
    ndarray of shape (n_queries, C), int32

    Raises
    ------
    DataError
        If a count is nan, fractional, negative or too large, or rows differ in their sum; rows are
        named, never values.
    """

    def counted(block: Block) -> _Counted:
        nonlocal n_teachers
        numbers = _by_cell(numbers_of, block)
        fits = (numbers >= 0) & (numbers <= np.iinfo(np.int32).max) & (np.floor(numbers) == numbers)
        odd = ~fits.all(axis=1)
        # broken cells are reported, and must not overflow or count before that
        counts = np.where(odd[:, None], 0, numbers).astype(np.int32)
        sums = counts.sum(axis=1, dtype=np.int64)
        # the first row sets the number of teachers, which all others must have
        if n_teachers is None and not odd[0]:
            n_teachers = int(sums[0])
        return counts, {
            "a count that is no whole number from 0 to 2**31 - 1": odd,
            "a sum that is not the number of teachers": (sums != n_teachers) & ~odd,
        }

    joined = _joined_counts(blocks, counted, "counts", n_classes)
    if not n_teachers:
        raise DataError("counts sum to 0 in every row; there must be at least one teacher.")
    return joined


def _joined_counts(
    blocks: Iterable[Block], counted: Callable[[Block], _Counted], table: str, width: int | None
) -> CountArray:
    """Return the counts of all blocks, each of so many columns, which `counted` returns with the
    rows that break a rule: one message names those of the whole table."""
    parts, faults, first = list[CountArray](), dict[str, list[IntArray]](), 0
    for block in blocks:
        wanted, width = width, int(block.shape[1])
        if width == 0 or wanted not in (None, width):
            least = "at least 1" if wanted is None else str(wanted)
            of = "teacher" if table == "votes" else "class"
            raise DataError(
                f"{table} have {width} columns; there must be {least}, one for each {of}."
            )
        counts, odd = counted(block)
        for fault, rows in odd.items():
            faults.setdefault(fault, []).append(np.flatnonzero(rows) + first)
        parts.append(counts)
        first += len(block)
    if not parts:
        raise DataError(f"{table} have no rows; there must be at least one query.")
    # the first rule that is broken, by how many rows, and where
    for fault, places in faults.items():
        found = np.concatenate(places)
        if found.size:
            raise DataError(
                f"{table}: {found.size} rows with {fault} ({name_rows(found)}, counted from 0)."
            )
    return np.concatenate(parts)


def votes_of_teachers(
    votes: Any, classes: object, *, unit: str = "record", relation: str = "add-remove"
) -> Votes:
    """Count votes given teacher by teacher.

    Parameters
    ----------
    votes : array-like of shape (n_queries, n_teachers)
        Each a value of `classes`. A memory map is read in blocks.
    classes : list of length C
        Every class value, declared and not taken from the votes.
    unit : {"record", "user", "label"}
    relation : {"add-remove", "replace-one"}
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
    counts = count_votes(blocks_of(vote_table(votes, "votes")), values)
    return Votes.of_teachers(counts, guarantee_of(unit, relation), classes=values)


def votes_of_counts(
    counts: Any,
    classes: object = None,
    n_teachers: int | None = None,
    *,
    unit: str = "record",
    relation: str = "add-remove",
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
    unit, relation
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
    table = vote_table(counts, "counts")
    values = check_classes(range(table.shape[1]) if classes is None else classes)
    checked = check_counts(blocks_of(table), len(values), n_teachers)
    return Votes.of_teachers(checked, guarantee_of(unit, relation), classes=values)


def write_votes(votes: Votes, path: Place) -> None:
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
        raise refusal("path", f" is {str(target)!r}; it must end in .npy.")
    _refuse_open_folder(target.parent)
    # into memory first: numpy itself would make a file that others may read
    content = io.BytesIO()
    np.save(content, votes._unseal()[0], allow_pickle=False)
    write_secret(target, content.getvalue())


def guarantee_of(unit: object, relation: object) -> Guarantee:
    """Return whose data a promise is about and which relation holds, as words of settings.

    Raises
    ------
    ParameterError
        If one is unknown, or the two do not go together.
    """
    of = check_choice("unit", unit, UNITS)
    relation = check_choice("relation", relation, RELATIONS)
    check_relation(of, relation)
    return Guarantee(unit=of, relation=relation)


def vote_table(values: Any, name: str) -> AnyArray:
    """Return votes or counts as a table of two dimensions.

    Raises
    ------
    DataError
        If they are none; `name` is what they are called.
    """
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
