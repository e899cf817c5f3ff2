"""Read files of votes or counts in blocks, whatever framework wrote them."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from secretballot._validation import HEADER_LINES, VOTES_KINDS, check_choice
from secretballot.core.private import Votes
from secretballot.data.frames import memory_bytes
from secretballot.data.reading import csv_records, even_blocks, parquet_module, why_no_file
from secretballot.data.sources import attempt, guarded
from secretballot.data.tally import (
    blocks_of,
    check_classes,
    check_counts,
    count_votes,
    guarantee_of,
)
from secretballot.exceptions import (
    Argument,
    DataError,
    Parameter,
    ParameterError,
)

_BLOCK_CELLS = 2**20
_COLUMNS_NAMED = 5
_LONGEST_PATH = 300  # characters of a path in a message
_ROW_BYTES = 16  # that a row of counts takes in memory, at least


@dataclass(frozen=True)
class _Table:
    """The public width of a file's table, its rows in blocks, and its column names if it has
    any."""

    n_columns: int
    blocks: Iterator[npt.NDArray[Any]]
    names: tuple[str, ...] | None = None


@dataclass(frozen=True)
class _Reading:
    """What the caller says of a file; None where it says nothing."""

    kind: str | None
    classes: list[Any] | None
    n_teachers: int | None
    header: str | None


def read_votes(
    path: str | os.PathLike[str],
    kind: str | None = None,
    classes: object = None,
    n_teachers: int | None = None,
    header: str | None = None,
    *,
    unit: str = "record",
    relation: str = "add-remove",
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
    unit, relation
        As for `votes_of_teachers`.

    Raises
    ------
    DataError
        If the file cannot be read, its kind cannot be recognised, or its content does not fit.
    ParameterError
        If `kind` or `classes` is out of its range.
    """
    if kind is not None:
        check_choice("kind", kind, VOTES_KINDS)
    if header is not None:
        check_choice("header", header, HEADER_LINES)
    values = None if classes is None else check_classes(classes)
    table = _opened_table(Path(path), _Reading(kind, values, n_teachers, header))
    guessed = kind is None
    kind = kind or _kind_by_shape(table.n_columns, values, n_teachers)
    if kind == "votes":
        if values is None:
            raise ParameterError(
                Parameter("classes"),
                " are missing; votes can only be counted for declared classes.",
            )
        counts, _ = count_votes(table.blocks, values, n_teachers)
        return Votes.of_teachers(counts, guarantee_of(unit, relation), classes=values)
    width = None if values is None else len(values)
    counts, found = check_counts(_by_class(table, values), width, n_teachers)
    # a table of votes could pass for one of counts; a wrong guess would misstate the sensitivity
    if guessed and n_teachers is None and (len(counts) == 1 or found <= table.n_columns):
        raise DataError(*_AMBIGUOUS)
    return Votes.of_teachers(counts, guarantee_of(unit, relation), classes=values)


def _by_class(table: _Table, classes: list[Any] | None) -> Iterator[npt.NDArray[Any]]:
    """Return the blocks of counts with their columns in the order of the classes, by name where
    columns have names.

    Raises
    ------
    DataError
        If the names are neither the classes nor mere positions: counts must not go to the wrong
        class in silence.
    """
    names = table.names
    if names is None or classes is None or len(names) != len(classes):
        return table.blocks
    wanted = [str(value) for value in classes]
    if sorted(names) == sorted(wanted):
        order = [names.index(name) for name in wanted]
        return (block[:, order] for block in table.blocks)
    if list(names) == [str(position) for position in range(len(names))]:
        return table.blocks
    odd = [place + 1 for place, name in enumerate(names) if name not in wanted]
    raise DataError(
        f"the columns of counts are not named by the {len(wanted)} classes ({_named_columns(odd)}"
        " by none of them); name each column by its class."
    )


_AMBIGUOUS = (
    "the file could hold votes or counts; say which by ",
    Argument("kind", "votes"),
    " or ",
    Argument("kind", "counts"),
    ".",
)


def _kind_by_shape(n_columns: int, classes: list[Any] | None, n_teachers: int | None) -> str:
    """Tell votes from counts by public numbers alone.

    A guess from the values could differ between neighbours.
    """
    if classes is not None and n_columns != len(classes):
        return "votes"
    if n_teachers is not None and n_columns == n_teachers:
        raise DataError(*_AMBIGUOUS)
    return "counts"


def _opened_table(path: Path, reading: _Reading) -> _Table:
    openers: dict[str, Callable[[Path, str, _Reading], _Table]] = {
        ".npy": _open_npy,
        ".csv": _open_csv,
        ".parquet": _open_parquet,
    }
    suffix = path.suffix.lower()
    if suffix not in openers:
        raise DataError(f"the file {_shown_path(path)} must end in .npy, .csv or .parquet.")
    where = f"the file {_shown_path(path)}"
    problem = why_no_file(path)
    if problem:
        raise DataError(f"{where} {problem}")

    def why(error: Exception) -> str:
        return (
            f"{where} is no readable {suffix} table; it is damaged, cut short or of another kind."
        )

    table: _Table = attempt(lambda: openers[suffix](path, where, reading), why)
    return _Table(table.n_columns, guarded(iter(table.blocks), why), table.names)


def _shown_path(path: Path) -> str:
    text = repr(str(path))
    return text if len(text) <= _LONGEST_PATH else f"'...{text[-_LONGEST_PATH:]}"


def _named_columns(places: Sequence[int]) -> str:
    """Return a phrase that names columns by their numbers, counted from 1; a cell is never
    quoted."""
    named = ", ".join(map(str, places[:_COLUMNS_NAMED]))
    more = ", ..." if len(places) > _COLUMNS_NAMED else ""
    return f"column{'s' if len(places) != 1 else ''} {named}{more}"


def _open_npy(path: Path, where: str, reading: _Reading) -> _Table:
    # A memory map checks the header's claim against the file's size and never unpickles.
    table = np.lib.format.open_memmap(path, mode="r")
    if table.ndim != 2:
        raise DataError(
            f"{where} has {table.ndim} dimensions; give one row per query and two dimensions."
        )
    return _Table(table.shape[1], blocks_of(table))


def _open_csv(path: Path, where: str, reading: _Reading) -> _Table:
    """Read a CSV file of which every record stands on one line, cell by cell.

    No type is found for a column.
    """
    lines = _csv_records(path, where)
    first = next(lines, None) or [""]
    if reading.header != "no" and not first[0].strip():
        raise DataError(
            f"{where} has a first column without a name; write it without the row index."
        )
    kind = reading.kind or _kind_by_shape(len(first), reading.classes, reading.n_teachers)
    has_header = _has_header(first, kind, reading)
    names = tuple(cell.strip() for cell in first) if has_header else None
    rows = lines if has_header else chain([first], lines)
    blocks = even_blocks(rows, len(first), where, max(1, _BLOCK_CELLS // len(first)))
    return _Table(len(first), (np.array(block, dtype=object) for block in blocks), names)


def _csv_records(path: Path, where: str) -> Iterator[list[str]]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        yield from csv_records(file, where)


def _has_header(first: list[str], kind: str, reading: _Reading) -> bool:
    """Return whether the first line names columns.

    No single cell can turn the answer, it can only lead to a refusal.

    A line in which every cell could be a vote (or count) is data, one in which none could be is a
    header, and any other is refused. With one column a single cell would decide, so the caller has
    to say.

    Raises
    ------
    DataError
        Naming columns by number: a cell of the first line may be a vote.
    """
    if reading.header is not None:
        return reading.header == "yes"
    odd = [
        place + 1
        for place, cell in enumerate(first)
        if not _may_be_data(cell, kind, reading.classes)
    ]
    if len(first) == 1:
        raise DataError(
            "the file has one column, so that a single cell decides whether its first line is a"
            " header; say so by ",
            Argument("header", "yes"),
            " or ",
            Argument("header", "no"),
            ".",
        )
    # one changed cell must not decide whether a row counts: mixed evidence is refused
    if odd and len(odd) < len(first):
        raise DataError(
            f"the first line of the file is neither header nor data: {_named_columns(odd)} cannot"
            f" be {kind} and others can; correct it, or say which it is by ",
            Argument("header", "yes"),
            " or ",
            Argument("header", "no"),
            ".",
        )
    return bool(odd)


def _may_be_data(cell: str, kind: str, classes: list[Any] | None) -> bool:
    if kind == "votes" and classes is not None and isinstance(classes[0], str):
        return not cell.strip() or cell.strip() in classes
    return _is_number(cell.strip())


def _is_number(cell: str) -> bool:
    try:
        float(cell or "nan")
    except ValueError:
        return False
    return True


def _open_parquet(path: Path, where: str, reading: _Reading) -> _Table:
    # the schema and the number of rows come before the cells: a small file can claim any size
    file = parquet_module(where).ParquetFile(path)
    schema, rows = file.schema_arrow, file.metadata.num_rows
    if any(name.startswith("__index_level_") for name in schema.names):
        raise DataError(f"{where} holds a row index; write it without the row index.")
    odd = [place + 1 for place, kind in enumerate(schema.types) if not _is_flat(kind)]
    if odd:
        raise DataError(
            f"{where} has cells in {_named_columns(odd)} that are neither"
            " numbers nor strings; write plain votes or counts."
        )
    if rows * _ROW_BYTES > memory_bytes():
        raise DataError(
            f"{where} claims {rows} rows, more than this machine's memory holds; give a part."
        )
    return _Table(len(schema.names), _parquet_blocks(file, len(schema.names)), tuple(schema.names))


def _is_flat(kind: Any) -> bool:
    from pyarrow import types

    if types.is_dictionary(kind):
        kind = kind.value_type
    numbers = (
        types.is_integer,
        types.is_floating,
        types.is_decimal,
        types.is_boolean,
        types.is_null,
    )
    texts = (types.is_string, types.is_large_string, types.is_string_view)
    return any(holds(kind) for holds in (*numbers, *texts))


def _parquet_blocks(file: Any, n_columns: int) -> Iterator[npt.NDArray[Any]]:
    """Yield cells as objects: the types of columns, and of a block, follow from single votes."""
    with file:
        for batch in file.iter_batches(batch_size=max(1, _BLOCK_CELLS // max(1, n_columns))):
            batch.validate(full=True)
            block = np.empty((batch.num_rows, batch.num_columns), dtype=object)
            for place, column in enumerate(batch.columns):
                block[:, place] = column.to_pylist()
            yield block
