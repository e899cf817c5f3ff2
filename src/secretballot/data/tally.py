"""Votes of teachers that were trained elsewhere, given teacher by teacher or counted: blocks of
them become checked integer counts, and every inconsistency is named by its row numbers."""

import contextlib
import io
import math
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from numbers import Number
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from secretballot._naming import name_rows
from secretballot._typing import CountArray, FloatArray, IntArray
from secretballot._validation import (
    RELATIONS,
    UNITS,
    check_choice,
    check_relation,
    name_part,
    shown,
    shown_classes,
)
from secretballot.core.private import Votes
from secretballot.core.types import Guarantee
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.vault import write_secret

_BLOCK_CELLS = 2**22


_NO_CLASS, _MISSING_VOTE = -1, -2


_MISSING_WORDS = frozenset({"", "nan", "na", "n/a", "none", "null", "<na>"})


_MISSING_TYPES = frozenset({"NAType", "NaTType", "MaskedConstant"})


_LONGEST_SPELLED = 400  # characters of a number as text


_MOST_TEACHERS = np.iinfo(np.int32).max


def check_classes(classes: object) -> list[Any]:
    """Return the class values as plain Python values, all numbers or all text, distinct, two or
    more.

    Raises
    ------
    ParameterError
        If `classes` is not such a list.
    """
    if isinstance(classes, (str, bytes)) or not isinstance(classes, Iterable):
        raise ParameterError(
            Parameter("classes"), f" is {shown(classes)}; it must be a list of the class values."
        )
    values = [value.item() if isinstance(value, np.generic) else value for value in classes]
    is_text = [isinstance(value, str) and fits_a_file(value) for value in values]
    is_number = [isinstance(value, (int, float)) and fits_a_file(value) for value in values]
    if len(values) < 2 or not (all(is_text) or all(is_number)) or len(set(values)) < len(values):
        raise ParameterError(
            Parameter("classes"),
            f" is {shown_classes(values)}; it must hold two or more distinct values, not one"
            " class or a class twice, all numbers or all text, which certificates and tables can"
            " hold.",
        )
    return values


def fits_a_file(value: object) -> bool:
    """Return whether a class can be written to a certificate and to a table, and read again: nan,
    infinite numbers and half characters cannot."""
    if isinstance(value, float):
        return math.isfinite(value)
    try:
        str(value).encode()
    except UnicodeEncodeError:
        return False
    return True


def blocks_of(table: npt.NDArray[Any], block_rows: int | None = None) -> Iterator[npt.NDArray[Any]]:
    """Yield the rows of `table`, shape (n_rows, n_columns), in blocks of at most `block_rows`, by
    default about four million cells."""
    rows = block_rows or max(1, _BLOCK_CELLS // max(1, table.shape[1]))
    for start in range(0, len(table), rows):
        yield np.asarray(table[start : start + rows])


def _refuse_faults(table: str, faults: dict[str, list[IntArray]]) -> None:
    """Refuse a table of which rows break a rule: name the first rule, how many rows, and where.

    Raises
    ------
    DataError
        If there are any.
    """
    for fault, parts in faults.items():
        rows = np.concatenate(parts)
        if rows.size:
            raise DataError(
                f"{table}: {rows.size} rows with {fault} ({name_rows(rows)}, counted from 0)."
            )


def count_votes(
    blocks: Iterable[npt.NDArray[Any]], classes: Sequence[Any], n_teachers: int | None = None
) -> tuple[CountArray, int]:
    """Count the votes for each class.

    Parameters
    ----------
    blocks : iterable of arrays of shape (rows, n_teachers)
        The votes, each a value of `classes`.
    classes : sequence of length C
        As `check_classes` returns them.
    n_teachers : int, optional
        What the number of columns must be.

    Returns
    -------
    counts : ndarray of shape (n_queries, C), int32
    n_teachers : int

    Raises
    ------
    DataError
        If a vote is missing or no declared class, or the shape does not fit; the message names
        rows, never values.
    """
    missing, strange, parts, first = list[IntArray](), list[IntArray](), list[CountArray](), 0
    place_of = _VotePlaces(classes)
    # integers compare exactly, whatever the width of the votes' type
    values = [int(one) if isinstance(one, float) and one.is_integer() else one for one in classes]
    for block in blocks:
        n_teachers = _checked_width(block, "votes", n_teachers)
        _refuse_kind(block, classes)
        table, nothing = block, block != block
        # cells of an object column hold any types, so each is looked up by itself
        if block.dtype.kind == "O":
            table = np.array([list(map(place_of, row)) for row in block.tolist()], dtype=np.int64)
            values, nothing = list(range(len(classes))), table == _MISSING_VOTE
        counts = np.stack([np.count_nonzero(table == one, axis=1) for one in values], axis=1)
        without = nothing.any(axis=1)
        missing.append(np.flatnonzero(without) + first)
        strange.append(np.flatnonzero((counts.sum(axis=1) != n_teachers) & ~without) + first)
        parts.append(counts.astype(np.int32))
        first += len(block)
    # all blocks first: one message names the faulty rows of the whole table
    faults = {"a missing vote (nan)": missing, "a vote that is no declared class": strange}
    return _joined_counts(parts, "votes", faults), n_teachers or 0


class _VotePlaces:
    """Say which class one cell votes for, whatever the cells beside it are and whatever type they
    gave a column.

    Strings are compared with classes that are strings, without space around them, and read as
    numbers for classes that are numbers. Numbers are compared with classes that are numbers, and
    spelled for classes that are strings: 1 and 1.0 as "1".
    """

    def __init__(self, classes: Sequence[Any]) -> None:
        self._are_texts = isinstance(classes[0], str)
        self._places = {value: place for place, value in enumerate(classes)}
        self._of_text: dict[str, int] = {}

    def __call__(self, cell: Any) -> int:
        """Return the place of the class, or a negative number for a missing vote and for one
        that is no class."""
        if isinstance(cell, str):
            known = self._of_text.get(cell)
            if known is None:
                known = self._of_text[cell] = self._place_of_text(cell)
            return known
        if (
            cell is None
            or type(cell).__name__ in _MISSING_TYPES
            or (isinstance(cell, float) and cell != cell)
        ):
            return _MISSING_VOTE
        if not isinstance(cell, Number):
            return _NO_CLASS
        return self._place_of(_spelled_number(cell) if self._are_texts else cell)

    def _place_of_text(self, text: str) -> int:
        if self._are_texts:
            place = self._places.get(text, self._places.get(text.strip(), _NO_CLASS))
            return _MISSING_VOTE if place == _NO_CLASS and not text.strip() else place
        if text.strip().lower() in _MISSING_WORDS:
            return _MISSING_VOTE
        return self._place_of(_number_in(text))

    def _place_of(self, value: Any) -> int:
        try:
            return self._places.get(value, _NO_CLASS)
        except TypeError:  # a signalling nan of a decimal has no hash
            return _NO_CLASS


def _spelled_number(number: Any) -> str:
    whole = isinstance(number, float | np.floating) and float(number).is_integer()
    return str(int(number) if whole else number)[:_LONGEST_SPELLED]


def _number_in(text: str) -> int | float | None:
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return None


def _as_numbers(block: npt.NDArray[Any]) -> FloatArray:
    """Return cells as floating point, nan where one is missing or no number."""
    return np.array(
        [list(map(_float_or_nan, row)) for row in block.tolist()], dtype=np.float64
    ).reshape(block.shape)


def _float_or_nan(cell: Any) -> float:
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):  # whatever a cell may be
        return math.nan


def check_counts(
    blocks: Iterable[npt.NDArray[Any]], n_classes: int | None = None, n_teachers: int | None = None
) -> tuple[CountArray, int]:
    """Check counts of votes: whole, not negative, every row with the same sum, the number of
    teachers.

    Parameters
    ----------
    blocks : iterable of arrays of shape (rows, C)
        Votes per class; integers of any numeric type.
    n_classes : int, optional
        What the number of columns must be.
    n_teachers : int, optional
        What every row must sum to; by default what the first row sums to.

    Returns
    -------
    counts : ndarray of shape (n_queries, C), int32
    n_teachers : int

    Raises
    ------
    DataError
        If a count is nan, fractional, negative or too large, or rows differ in their sum; rows are
        named, never values.
    """
    broken, unlike, parts, first = list[IntArray](), list[IntArray](), list[CountArray](), 0
    for block in blocks:
        n_classes = _checked_width(block, "counts", n_classes)
        if block.dtype.kind == "O":
            block = _as_numbers(block)
        if block.dtype.kind not in "iuf":
            raise DataError(
                Parameter("counts"), f" have the type {block.dtype}; they must be integers."
            )
        fits = (block >= 0) & (block <= _MOST_TEACHERS) & (np.floor(block) == block)
        odd = ~fits.all(axis=1)
        # broken cells are reported, and must not overflow or count before that
        counts = np.where(odd[:, None], 0, block).astype(np.int32)
        sums = counts.sum(axis=1, dtype=np.int64)
        # the first row sets the number of teachers, which all others must have
        if n_teachers is None and not odd[0]:
            n_teachers = int(sums[0])
        broken.append(np.flatnonzero(odd) + first)
        unlike.append(np.flatnonzero((sums != n_teachers) & ~odd) + first)
        parts.append(counts)
        first += len(block)
    faults = {
        "a count that is no whole number from 0 to 2**31 - 1": broken,
        "a sum that is not the number of teachers": unlike,
    }
    joined = _joined_counts(parts, "counts", faults)
    if not n_teachers:
        raise DataError("counts sum to 0 in every row; there must be at least one teacher.")
    return joined, n_teachers


def _checked_width(block: npt.NDArray[Any], table: str, expected: int | None) -> int:
    if block.ndim != 2:
        raise DataError(
            f"{table} have {block.ndim} dimensions; give one row per query and two dimensions."
        )
    width = int(block.shape[1])
    if width == 0 or (expected is not None and width != expected):
        wanted = "at least 1" if expected is None else str(expected)
        raise DataError(f"{table} have {width} columns; there must be {wanted}.")
    return width


def _refuse_kind(block: npt.NDArray[Any], classes: Sequence[Any]) -> None:
    kind = block.dtype.kind
    if kind == "O":
        return
    is_text = isinstance(classes[0], str)
    if (kind in "UT") != is_text or kind not in "biufUT":
        what = "text" if is_text else "numbers"
        raise DataError(
            Parameter("votes"),
            f" have the type {block.dtype} while classes are {what}; declare classes of the"
            " votes' type.",
        )


def _joined_counts(
    parts: list[CountArray], table: str, faults: dict[str, list[IntArray]]
) -> CountArray:
    if not parts:
        raise DataError(f"{table} have no rows; there must be at least one query.")
    _refuse_faults(table, faults)
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
    counts, _ = count_votes(blocks_of(_vote_table(votes, "votes")), values)
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
    table = _vote_table(counts, "counts")
    values = check_classes(range(table.shape[1]) if classes is None else classes)
    checked, _ = check_counts(blocks_of(table), len(values), n_teachers)
    return Votes.of_teachers(checked, guarantee_of(unit, relation), classes=values)


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
