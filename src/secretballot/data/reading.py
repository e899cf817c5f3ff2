"""Read files as frames: CSV as text, cell by cell, and Parquet by the types of its columns.

No type is ever guessed from a private file. Messages name columns, counts and row numbers, never a
cell. Rows are counted from 0, without the header, as in the released labels.
"""

import codecs
import contextlib
import csv
import io
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from typing import IO, Any

import numpy as np
import pandas as pd

from secretballot._files import is_url
from secretballot._naming import NAMED_AT_MOST, name_rows
from secretballot._typing import ObjectArray
from secretballot.data.cells import texts_of
from secretballot.data.frames import frame_of_arrow, memory_bytes, with_text_names
from secretballot.data.sources import (
    Place,
    TableFile,
    TableSource,
    arrow_modules,
    attempt,
    guarded,
    source_of,
    why_unread,
)
from secretballot.exceptions import DataError

#: Whether the cells of the first line of a CSV file name its columns.
HeaderRule = Callable[[list[str]], bool]
DELIMITERS = (",", ";", "\t", "|")
_BLOCK_ROWS = 8192
_ROWS_TOGETHER = 2**16  # of a block, where all are held at last
_PARQUET, _START = b"PAR1", 65536  # how a Parquet file begins; bytes that tell what a file is
#: A table as Python text takes up to this many times its size on disk.
GROWTH = 3
#: Bytes that a cell takes at least: read, converted and encoded, eight each time.
_CELL_BYTES = 24
#: Characters of a cell of a CSV file: the most that the reader can be set to.
_LONGEST_CELL = 2**31 - 1


def read_table(
    path: str | os.PathLike[str], *, role: str = "file", encoding: str | None = None
) -> pd.DataFrame:
    """Read a CSV or Parquet file.

    A Parquet file is known by its first bytes, whatever its name. In a CSV file the delimiter
    (comma, semicolon, tab or bar) is the one that gives the header most fields; a byte order mark,
    quoted fields and space around fields are accepted. Every record is on one line, also where
    fields are quoted.

    A null in a Parquet file changes its own cell alone: the type of a column of the frame follows
    from the type of the column in the file. That type is taken from the file, so it must not depend
    on single records; a file that pandas wrote from integers and one null has floats in it, and
    integers beyond 2**53 were rounded when it was written. Write ids and codes of that size as
    text.

    Parameters
    ----------
    path : path
        The file.
    role : str
        What the messages call it, "private file" say.
    encoding : str, optional
        Of a CSV file, as the settings of a run name it; by default UTF-8.

    Returns
    -------
    pandas.DataFrame, shape (n_rows, n_columns)
        Texts (CSV) or typed cells (Parquet, see `data.frames`), index 0, 1, ...

    Raises
    ------
    DataError
        If the path is no readable, non-empty table; the message holds no cell of it.
    """
    blocks = table_blocks(path, role=role, rows=_ROWS_TOGETHER, whole=True, encoding=encoding)
    frames = list(blocks)
    if is_local_file(path):
        columns = ((name, [frame[name] for frame in frames]) for name in frames[0])
        return pd.DataFrame({name: pd.concat(parts, ignore_index=True) for name, parts in columns})
    return as_texts(frames)


def as_texts(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return frames below each other as texts, which say the same whatever type a column has in
    each of the files."""
    columns = ((name, [texts_of(frame[name]) for frame in frames]) for name in frames[0])
    return pd.DataFrame({name: np.concatenate(parts) for name, parts in columns}, dtype=object)


def table_blocks(
    place: Place,
    *,
    role: str = "file",
    rows: int = _BLOCK_ROWS,
    whole: bool = False,
    has_header: HeaderRule | None = None,
    encoding: str | None = None,
) -> Iterator[pd.DataFrame]:
    """Yield the rows of a table in blocks, as `read_table` reads them.

    It may be larger than this machine's memory; a row group of Parquet may not.

    Parameters
    ----------
    place : path or URL
        As `sources.source_of` takes it. Each file has the types of its own columns; what the
        names of its folders say ("year=2020") are columns of texts.
    role : str
        What the messages call it.
    rows : int
        Rows of a block, at most.
    whole : bool
        Whether all blocks are to be held in memory together.
    has_header : callable, optional
        Whether a first line of a CSV file names its columns, which are "0", "1", ... otherwise; by
        default it does.
    encoding : str, optional
        Of CSV files, as the settings of a run name it; by default UTF-8.

    Yields
    ------
    pandas.DataFrame, shape (at most rows, n_columns)
        Each with an index from 0.

    Raises
    ------
    DataError
        As `read_table`, at the block in which the trouble lies; if files of a folder have other
        columns than the first of them, or one was changed while it was read.
    """
    source = checked_source(place, role=role, whole=whole)
    before, names, empty = source.signatures(), None, True
    for file in source.files:
        where = f"The {role} {file.shown!r}"
        encoded = replace(file, encoding=encoding)
        for frame in _file_blocks(encoded, where, rows, whole, has_header):
            if names is None:
                _check_names([str(name) for name in frame.columns], where)
                names = list(frame.columns)
            if sorted(frame.columns) != sorted(names):
                raise DataError(
                    f"{where} has other columns than {source.files[0].shown!r}; write all files of"
                    " a table with the same."
                )
            if len(frame):
                empty = False
                yield frame[names]
    if empty:
        raise DataError(
            f"The {role} {source.shown!r} has a header but no rows; give a file with at least one."
        )
    # a file that came meanwhile counts as well
    if source_of(place, role=role).signatures() != before:
        raise DataError(
            f"The {role} {source.shown!r} was changed while it was read; repeat once nothing writes"
            " to it."
        )


def _file_blocks(
    file: TableFile, where: str, rows: int, whole: bool, has_header: HeaderRule | None
) -> Iterator[pd.DataFrame]:
    """Yield the rows of one file in blocks; the first may be empty."""
    start = _start_of(file, where)
    if start[:4] == _PARQUET:
        blocks, why = _parquet_blocks(file, where, rows, whole), _why_no_parquet
    else:
        blocks, why = _csv_blocks(file, where, rows, has_header), partial(_why_no_csv, file)
        name = file.encoding or "utf-8"
        if attempt(lambda: "\0" in start.decode(name, "ignore"), partial(why, where)):
            if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                raise DataError(_why_no_text(file, where, "utf-16"))
            raise DataError(f"{where} is binary; give CSV text in UTF-8, or Parquet.")
    for frame in guarded(blocks, partial(why, where)):
        # the folders of a file speak for all of its rows
        for name, value in file.keys.items():
            frame[name] = np.full(len(frame), value, dtype=object)
        yield frame


def _start_of(file: TableFile, where: str) -> bytes:
    """Return the first bytes of a file."""

    def read() -> bytes:
        with file.opened() as content:
            return content.read(_START)

    return attempt(read, partial(why_unread, where))


def is_local_file(place: Place) -> bool:
    """Return whether a table is named by the path of a local file, or of nothing at all."""
    return not is_url(place) and not os.path.isdir(place)


def estimated_rows(place: Place, *, role: str = "file") -> int:
    """Return about how many rows a table has, without reading it: as many as Parquet files say, or
    as the length of the first lines of a CSV file indicates.

    Raises
    ------
    DataError
        If it cannot be read.
    """
    source = checked_source(place, role=role)
    signatures, total = source.signatures(), 0
    for file in source.files:
        where = f"The {role} {file.shown!r}"
        start = _start_of(file, where)
        if start[:4] == _PARQUET:
            total += attempt(partial(_parquet_rows, file, where), partial(_why_no_parquet, where))
        else:
            lines = max(1, start.count(b"\n") + start.count(b"\r"))
            total += lines * signatures[file.path][0] // max(1, len(start))
    return total


def checked_source(place: Place, *, role: str = "file", whole: bool = False) -> TableSource:
    """Return the files of what may be a table, having read none of them.

    Raises
    ------
    DataError
        As `source_of`; or if the table is larger than this machine's memory could hold, and
        `whole`.
    """
    source = source_of(place, role=role)
    size = source.size()
    if whole and size * GROWTH > memory_bytes():
        raise DataError(
            f"The {role} {source.shown!r} is too large for this machine's memory ({size:,} bytes);"
            " give a part of it."
        )
    return source


def _parquet(where: str) -> Any:
    return arrow_modules(f"{where} is Parquet, which")[1]


def _parquet_rows(file: TableFile, where: str) -> int:
    with file.opened() as content:
        return int(_parquet(where).read_metadata(content).num_rows)


def _why_no_parquet(where: str, error: Exception) -> str:
    # errors of the file system have a number, those of Arrow have none
    damaged = isinstance(error, OSError) and error.errno is None
    if damaged or isinstance(error, ValueError | NotImplementedError):
        return f"{where} begins like Parquet but cannot be read as such; write it anew."
    return why_unread(where, error)


def _parquet_blocks(file: TableFile, where: str, rows: int, whole: bool) -> Iterator[pd.DataFrame]:
    """Yield the rows of a Parquet file in blocks; the first is empty."""
    parquet = _parquet(where)
    from pyarrow import Table

    with file.opened() as content:
        opened = parquet.ParquetFile(content)
        about, arrow = opened.metadata, opened.schema_arrow
        # a few bytes can claim any number
        groups = [about.row_group(place).num_rows for place in range(about.num_row_groups)]
        cells = max(about.num_rows, sum(groups)) * max(1, about.num_columns)
        if whole and cells * _CELL_BYTES > memory_bytes():
            raise DataError(
                f"{where} claims more rows than this machine's memory could hold; give a part of"
                " it."
            )
        yield with_text_names(frame_of_arrow(Table.from_batches([], arrow), where))
        for batch in opened.iter_batches(batch_size=rows):
            yield with_text_names(frame_of_arrow(Table.from_batches([batch]), where))


def _csv_blocks(
    file: TableFile, where: str, rows: int, has_header: HeaderRule | None
) -> Iterator[pd.DataFrame]:
    """Yield the rows of a CSV file as texts, in blocks; the first is empty."""
    # no long text stops a run; the limit belongs to the process, and is never lowered again
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_CELL))
    delimiter = _delimiter_of(file)
    with _opened_text(file) as text:
        records = _csv_records(text, where, delimiter)
        # where the first line may be a record, so may a blank one
        first = next(filter(None, records) if has_header is None else records, [])
        header = [name.strip() for name in first or [""]]
        if has_header is not None and not has_header(header):
            records = chain([header], records)
            header = [str(place) for place in range(len(header))]
        _check_names(header, where)
        yield pd.DataFrame({name: np.empty(0, dtype=object) for name in header}, dtype=object)
        for block in _even_blocks(records, len(header), where, rows):
            columns = zip(header, zip(*block, strict=True), strict=True)
            yield pd.DataFrame(
                {name: _compact_cells(cells) for name, cells in columns}, dtype=object
            )


def _why_no_csv(file: TableFile, where: str, error: Exception) -> str:
    if isinstance(error, UnicodeError):
        # nearly every byte is a letter of that encoding, so it is a likely guess and no more
        return _why_no_text(file, where, "cp1252" if file.encoding in (None, "utf-8") else "")
    if isinstance(error, csv.Error):
        return f"{where} is no well-formed CSV; look for a misplaced quotation mark."
    return why_unread(where, error)


def _why_no_text(file: TableFile, where: str, likely: str) -> str:
    """Return a sentence that says that a file is not in its encoding, but likely in another one,
    which is named to whoever can give it."""
    reads = f" but reads as {likely}" if likely else ""
    named = likely == "cp1252" and file.encoding  # in UTF-16 a byte too many moves all behind it
    give = f" or give --encoding {likely} (a run: --set data.encoding={likely})" if named else ""
    return f"{where} is not {(file.encoding or 'utf-8').upper()}{reads}: convert it{give}."


@contextlib.contextmanager
def _opened_text(file: TableFile) -> Iterator[IO[str]]:
    """Give a file open as text, with its line ends as they are."""
    encoding = "utf-8-sig" if file.encoding in (None, "utf-8") else file.encoding
    with (
        file.opened() as content,
        io.TextIOWrapper(content, encoding=encoding, newline="") as text,
    ):
        yield text


def _delimiter_of(file: TableFile) -> str:
    """Return the delimiter that gives the header most fields; only the header is looked at."""
    with _opened_text(file) as text:
        header = next((line for line in text if line.strip("\r\n")), "")

    def fields(delimiter: str) -> int:
        # with the wrong delimiter a long header is one field, longer than the reader takes
        with contextlib.suppress(csv.Error):
            return len(next(csv.reader([header], delimiter=delimiter, skipinitialspace=True), []))
        return 0

    return max(DELIMITERS, key=fields)


def _csv_records(text: Iterable[str], where: str, delimiter: str) -> Iterator[list[str]]:
    """Yield the cells of every line of a CSV file that was opened with ``newline=""``, none of a
    blank one.

    Raises
    ------
    DataError
        If a quoted cell goes on beyond its line: one stray quotation mark would swallow the records
        of others; or if a line does not end as the others do.
    csv.Error
        If it is no CSV; the message may hold cells.
    """
    reader = csv.reader(
        lines_of(text, where), delimiter=delimiter, skipinitialspace=True, strict=True
    )
    for number, record in enumerate(reader, start=1):
        if reader.line_num != number:
            raise DataError(
                f"{where} has a quoted cell that does not end on its line (line {number}); write"
                " every record on one line, or the table as Parquet."
            )
        yield record


def _even_blocks(
    records: Iterator[list[str]], width: int, where: str, rows: int
) -> Iterator[list[list[str]]]:
    """Yield records in blocks, all of them of so many cells. Between them blank lines are left out,
    but in a table of one column, where each is a record with nothing in it.

    Raises
    ------
    DataError
        If a record has another number of cells.
    """
    filled = filter(None, records) if width > 1 else (record or [""] for record in records)
    done = 0
    while block := list(islice(filled, rows)):
        odd = [done + row for row, record in enumerate(block) if len(record) != width]
        if odd:
            raise DataError(
                f"{where} has a first line of {width} cells but another number in"
                f" {name_rows(odd)}; quote cells that contain the delimiter, or fix the rows."
            )
        yield block
        done += len(block)


def _compact_cells(cells: Sequence[str]) -> ObjectArray:
    """Return stripped cells as an array in which equal strings are one object."""
    known: dict[str, str] = {}
    array = np.empty(len(cells), dtype=object)
    array[:] = [known.setdefault(cell, cell) for cell in map(str.strip, cells)]
    return array


def _check_names(names: Sequence[str], where: str) -> None:
    """Refuse a header with nameless or repeated columns; by position, since a "name" may be a
    cell."""
    placed = list(enumerate(names, start=1))
    first = {name: place for place, name in reversed(placed)}
    blank = [place for place, name in placed if not name.strip()]
    twice = [place for place, name in placed if first[name] < place]
    for what, places in (("columns without a name", blank), ("a column name twice", twice)):
        if places or not names:
            listed = ", ".join(map(str, places[:NAMED_AT_MOST])) or "none"
            raise DataError(
                f"{where} has {what} in its header (column number {listed}); give every column a"
                " name of its own in the first line, and write the file without its row index."
            )


def lines_of(file: Iterable[str], where: str) -> Iterator[str]:
    """Yield the lines of a text file that was opened with ``newline=""``.

    Parameters
    ----------
    file : iterable of str
        Lines with their ends.
    where : str
        What a message calls the file.

    Raises
    ------
    DataError
        If a carriage return ends a line in a file whose first line ends otherwise, or the other way
        round: a stray one inside a record would make two records of it, which may reach two
        teachers.
    """
    alone: bool | None = None
    for number, line in enumerate(file, start=1):
        ended = line.endswith(("\r", "\n"))
        if alone is None:
            alone = line.endswith("\r")
        if ended and line.endswith("\r") != alone:
            raise DataError(
                f"{where} has a line that does not end as its first line does (line {number}); take"
                " carriage returns out of the cells."
            )
        yield line
