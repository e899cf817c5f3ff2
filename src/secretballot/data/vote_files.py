"""Read files of votes or counts in blocks, whatever framework wrote them."""

import math
import os
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from secretballot._typing import AnyArray
from secretballot._validation import HEADER_LINES, VOTES_KINDS, check_choice
from secretballot.core.private import Votes
from secretballot.data.cells import is_missing, number_of, text_of
from secretballot.data.reading import table_blocks
from secretballot.data.sources import Place, attempt, source_of
from secretballot.data.tally import (
    Block,
    blocks_of,
    check_classes,
    check_counts,
    count_votes,
    guarantee_of,
    vote_table,
)
from secretballot.exceptions import Argument, DataError, Parameter, ParameterError

_COLUMNS_NAMED = 5


def read_votes(
    path: str | os.PathLike[str],
    kind: str,
    classes: object = None,
    n_teachers: int | None = None,
    header: str | None = None,
    *,
    unit: str = "record",
    relation: str = "add-remove",
) -> Votes:
    """Read votes or counts from a `.npy`, CSV or Parquet file.

    Parameters
    ----------
    path : path
        Rows are queries; columns are teachers (votes) or classes (counts).
    kind : {"votes", "counts"}
        What the file holds.
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
        If the file cannot be read, or its content does not fit.
    ParameterError
        If `kind` or `classes` is out of its range.
    """
    check_choice("kind", kind, VOTES_KINDS)
    if header is not None:
        check_choice("header", header, HEADER_LINES)
    values = None if classes is None else check_classes(classes)

    def has_header(cells: list[str]) -> bool:
        if header is not None:
            return header == "yes"
        # a first column without a name is a row index, which is refused
        return not cells[0] or _is_header(cells, kind, values)

    blocks: Iterator[Block]
    if Path(path).suffix.lower() == ".npy":
        blocks = _npy_blocks(path)
    else:
        blocks = table_blocks(path, whole=True, has_header=has_header)
    if kind == "votes":
        if values is None:
            raise ParameterError(
                Parameter("classes"),
                " are missing; votes can only be counted for declared classes.",
            )
        counts = count_votes(blocks, values, n_teachers)
    else:
        width = None if values is None else len(values)
        counts = check_counts(_by_class(blocks, values), width, n_teachers)
    return Votes.of_teachers(counts, guarantee_of(unit, relation), classes=values)


def _npy_blocks(path: Place) -> Iterator[Block]:
    """Yield the rows of a `.npy` file in blocks."""
    where = f"the file {str(path)!r}"
    why = f"{where} is no readable .npy table; it is damaged or of another kind."
    file = source_of(path).files[0]
    if file.system is not None:
        raise DataError(f"{where} is on another machine; copy it here, or give CSV or Parquet.")
    # a memory map checks the header's claim against the file's size and never unpickles
    opened = partial(np.lib.format.open_memmap, file.path, mode="r")
    table: AnyArray = attempt(opened, lambda error: why)
    for block in blocks_of(vote_table(table, "votes")):
        if block.dtype.kind == "U":
            # numpy takes any four bytes for a character, Python does not
            marks = np.frombuffer(block.tobytes(), f"{block.dtype.byteorder}u4")
            if marks.max(initial=0) > sys.maxunicode:
                raise DataError(why)
        yield block


def _by_class(blocks: Iterator[Block], classes: list[Any] | None) -> Iterator[Block]:
    """Yield the blocks of counts with their columns in the order of the classes, by name where
    columns have names.

    Raises
    ------
    DataError
        If the names are neither the classes nor mere positions: counts must not go to the wrong
        class in silence.
    """
    for block in blocks:
        names = None if isinstance(block, np.ndarray) else list(block.columns)
        wanted = [text_of(value) for value in classes or ()]
        if names is None or len(names) != len(wanted):
            yield block
        elif sorted(names) == sorted(wanted):
            yield block[wanted]
        elif names == [str(place) for place in range(len(names))]:
            yield block
        else:
            odd = [place for place, name in enumerate(names, start=1) if name not in wanted]
            raise DataError(
                f"the columns of counts are not named by the {len(wanted)} classes"
                f" ({_named_columns(odd)} by none of them); name each column by its class."
            )


def _named_columns(places: Sequence[int]) -> str:
    """Return a phrase that names columns by their numbers, counted from 1; a cell is never
    quoted."""
    named = ", ".join(map(str, places[:_COLUMNS_NAMED]))
    more = ", ..." if len(places) > _COLUMNS_NAMED else ""
    return f"column{'s' if len(places) != 1 else ''} {named}{more}"


def _is_header(cells: list[str], kind: str, classes: list[Any] | None) -> bool:
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
    odd = [place + 1 for place, cell in enumerate(cells) if not _may_be_data(cell, kind, classes)]
    # one changed cell must not decide whether a row counts: mixed evidence is refused
    if len(cells) == 1 or 0 < len(odd) < len(cells):
        raise DataError(
            "whether the first line of the file is a header depends on a few cells"
            f" ({_named_columns(odd)} cannot be {kind}); correct it, or say which it is by ",
            Argument("header", "yes"),
            " or ",
            Argument("header", "no"),
            ".",
        )
    return bool(odd)


def _may_be_data(cell: str, kind: str, classes: list[Any] | None) -> bool:
    if kind == "votes" and classes is not None and isinstance(classes[0], str):
        return not cell or text_of(cell) in map(text_of, classes)
    return is_missing(cell) or math.isfinite(number_of(cell))
