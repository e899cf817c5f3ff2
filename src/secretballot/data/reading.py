"""Read tables as frames: CSV as text, cell by cell, and Parquet by the types of its columns; from a
file, a folder of Parquet files, or a URL of either.

No type is ever guessed from a private file. Messages name columns, counts and row numbers, never a
cell, and places without credentials. Rows are counted from 0, without the header, as in the
released labels.
"""

import codecs
import contextlib
import csv
import hashlib
import io
import math
import os
import stat
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, TypeVar
from urllib.parse import unquote, urlsplit

import numpy as np
import pandas as pd

from secretballot._files import is_url, shown_place
from secretballot._typing import AnyArray, ObjectArray, Place
from secretballot._validation import (
    HEADER_LINES,
    NAMED_AT_MOST,
    VOTES_KINDS,
    check_choice,
    name_rows,
    shown,
)
from secretballot.core.private import Votes
from secretballot.data.cells import is_missing, number_of, text_of, texts_of
from secretballot.data.frames import frame_of_arrow, memory_bytes, with_text_names
from secretballot.data.tally import (
    Block,
    blocks_of,
    check_classes,
    check_counts,
    count_votes,
    guarantee_of,
    vote_table,
)
from secretballot.exceptions import Argument, DataError, SecretBallotError

_T = TypeVar("_T")


_LEFT_OUT = (".", "_")
#: Of tables in which some of the files are deleted rows, or older ones.
_LOGS = {"_delta_log": "Delta Lake", ".hoodie": "Hudi"}


@dataclass(frozen=True)
class _TableFile:
    """One file of a table.

    Attributes
    ----------
    path : str
        As its file system knows it.
    shown : str
        What messages call it; without credentials.
    keys : mapping of str to str or None
        Columns that its folder stands for ("year=2020"), by name.
    system : pyarrow.fs.FileSystem or None
        None for a local file.
    relative : str
        Path in the folder that is the table, wherever that lies; empty where it is a file.
    encoding : str or None
        Of the text of a CSV file; None where nobody could have named another one than UTF-8.
    """

    path: str
    shown: str
    keys: Mapping[str, str | None] = field(default_factory=dict)
    system: Any = None
    relative: str = ""
    encoding: str | None = None

    @contextmanager
    def opened(self) -> Iterator[Any]:
        """Give the file open for reading.

        Raises
        ------
        OSError
            If it cannot be read.
        """
        if self.system is None:
            with open(self.path, "rb") as file:
                yield file
        else:
            with self.system.open_input_file(self.path) as file:
                yield file

    def digest(self) -> str:
        """Return the SHA-256 of what it holds, in hexadecimal.

        Raises
        ------
        DataError
            If it cannot be read.
        """

        def read() -> str:
            with self.opened() as content:
                return hashlib.file_digest(content, "sha256").hexdigest()

        return _attempt(read, partial(_why_unread, repr(self.shown)))

    def signature(self) -> tuple[int, int]:
        """Return its size in bytes and when it was changed last, in nanoseconds since 1970, -1
        where the file system does not know.

        Raises
        ------
        OSError
            If it is not there.
        """
        if self.system is None:
            found = os.stat(self.path)
            return found.st_size, found.st_mtime_ns
        about = self.system.get_file_info(self.path)
        if about.size is None:
            raise FileNotFoundError(2, "there is no such file")
        changed = about.mtime_ns
        return int(about.size), -1 if changed is None else int(changed)


@dataclass(frozen=True)
class TableSource:
    """The files of a table, in the order in which they are read.

    Attributes
    ----------
    files : tuple of _TableFile
        One, or as many Parquet files as a folder holds, by name.
    shown : str
        What messages call it; without credentials.
    single : bool
        Whether it was given as one file; only then do places of records follow from no cell, for
        files of a folder may be sorted by what records say.
    """

    files: tuple[_TableFile, ...]
    shown: str
    single: bool

    def size(self) -> int:
        """Return how many bytes all files have."""
        return sum(size for size, _ in self.signatures().values())

    def signatures(self) -> dict[str, tuple[int, int]]:
        """Return size and time of each file, by its path.

        Raises
        ------
        DataError
            If one is not there any more.
        """
        return {
            file.path: _attempt(file.signature, partial(_why_unread, repr(file.shown)))
            for file in self.files
        }

    def shares_file(self, other: "TableSource") -> bool:
        """Return whether a file of this table is one of another table too: the same one, or one of
        the same content.

        Raises
        ------
        DataError
            If a file cannot be read.
        """
        mine, others = self._sized_files(), other._sized_files()
        # contents are read only where sizes are equal
        common = {size for _, size in mine} & {size for _, size in others}
        found = [
            {file.digest() for file, size in each if size in common} for each in (mine, others)
        ]
        return not found[0].isdisjoint(found[1])

    def _sized_files(self) -> list[tuple[_TableFile, int]]:
        signatures = self.signatures()
        return [(file, signatures[file.path][0]) for file in self.files]

    def digest(self) -> str:
        """Return the SHA-256 of what the files hold, in hexadecimal; of files elsewhere, of their
        sizes and times, where the file system knows these.

        Raises
        ------
        DataError
            If a file cannot be read.
        """
        digest, signatures = hashlib.sha256(), self.signatures()
        for file in self.files:
            signature = signatures[file.path]
            # far files go by size and time: to hash them would be to load them
            if file.system is not None and signature[1] >= 0:
                part = f"{signature[0]} {signature[1]}"
            else:
                part = file.digest()
            if self.single and file.system is None:
                return part
            name = file.relative or file.path
            digest.update(f"{name}\0{part}\0".encode("utf-8", "surrogatepass"))
        return digest.hexdigest()


def source_of(place: Place, *, role: str = "file") -> TableSource:
    """Return the files of a table.

    Parameters
    ----------
    place : path or URL
        A CSV or Parquet file; a folder of Parquet files, whose subfolders may be named by columns
        ("year=2020", as Hive does); or a URL of either, by any file system of pyarrow (s3, gs,
        abfs, hdfs, file) or fsspec.
    role : str
        What messages call it, "private file" say.

    Raises
    ------
    DataError
        If there is nothing there, or nothing that could be a table: a local file that is no
        regular one, empty or unreadable.
    """
    where = f"The {role} {shown_place(place)!r}"
    if not isinstance(place, str | os.PathLike):
        raise DataError(f"{where} is no path; give the path or the URL of a table.")
    if is_url(place):
        system, path = _file_system(str(place), where)
        if getattr(system, "type_name", "") != "local":
            return _source_at(path, system, shown_place(place), where)
        # a file here is the same file however it is called
        return _local_source(path, shown_place(place), where)
    return _local_source(os.fspath(place), str(place), where)


def _local_source(local: str, place: str, where: str) -> TableSource:
    """Return the files at a path of this machine."""
    if os.path.isdir(local):
        return _folder_source(_local_files(local, where), None, place, where)
    problem = _why_no_file(Path(local))
    if problem:
        raise DataError(f"{where} {problem}")
    return TableSource((_TableFile(local, place),), place, True)


def _why_no_file(path: Path) -> str:
    """Return why a path is no file that can be read, nothing where it is one."""
    try:
        # the file's kind comes before its content: opening a pipe would wait for ever
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            return "is no regular file; give a CSV or Parquet file."
        if status.st_size == 0:
            return "is empty; give a table with a header and at least one row."
        path.open("rb").close()
    except FileNotFoundError:
        return "does not exist; check the path."
    except (OSError, ValueError) as error:
        return f"cannot be read ({getattr(error, 'strerror', None) or 'the path is not valid'})."
    return ""


def _source_at(path: str, system: Any, place: str, where: str) -> TableSource:
    """Return the files at a path of a file system that is not this machine's."""
    from pyarrow import fs

    def listed() -> tuple[Any, list[Any]]:
        about = system.get_file_info(path)
        inside = about.type == fs.FileType.Directory
        return about, system.get_file_info(fs.FileSelector(path, recursive=True)) if inside else []

    about, found = _attempt(
        listed,
        lambda error: (
            f"{where} cannot be reached ({type(error).__name__}); give credentials as its file"
            " system takes them, in the environment or a profile, and check the address."
        ),
    )
    if about.type == fs.FileType.NotFound:
        raise DataError(f"{where} does not exist; check the address.")
    if about.type == fs.FileType.Directory:
        files = [
            (one.path[len(path.rstrip("/")) :].lstrip("/"), one.path)
            for one in found
            if one.type == fs.FileType.File
        ]
        return _folder_source(files, system, place, where)
    if about.type != fs.FileType.File:
        raise DataError(f"{where} is no regular file; give a CSV or Parquet file.")
    return TableSource((_TableFile(path, place, {}, system),), place, True)


def _file_system(url: str, where: str) -> tuple[Any, str]:
    """Return the file system of a URL and the path in it."""
    fs, _ = _arrow_modules(where)

    def by_fsspec(url: str) -> tuple[Any, str]:
        import fsspec

        system, path = fsspec.core.url_to_fs(url)
        return fs.PyFileSystem(fs.FSSpecHandler(system)), path

    # each knows schemes that the other does not, and raises what it likes, with the address in it
    for ask in (fs.FileSystem.from_uri, by_fsspec):
        try:
            system, path = ask(url)
            return system, path
        except MemoryError:
            raise  # the machine failed, and says nothing of the address
        except Exception:
            continue
    scheme = urlsplit(url).scheme
    raise DataError(
        f"{where} has an address that no installed file system knows ({scheme}); install the"
        f" fsspec package for {scheme}, or copy the table here."
    )


def _arrow_modules(where: str) -> tuple[Any, Any]:
    """Return the modules of pyarrow for file systems and for Parquet; `DataError` that begins with
    `where` if it is not installed."""
    try:
        from pyarrow import fs, parquet
    except ImportError:
        raise DataError(
            f"{where} needs pyarrow; install it with: pip install 'secretballot[parquet]'."
        ) from None
    return fs, parquet


def _local_files(folder: str, where: str) -> list[tuple[str, str]]:
    """Return relative and whole paths of all files in a folder and below.

    Raises
    ------
    DataError
        If there is something that cannot be read as a file: left out in silence, it would be
        missing in the table.
    """
    found, odd = [], 0
    unread: list[OSError] = []
    for above, folders, names in os.walk(folder, onerror=unread.append):
        # what is left out by its name may be anything
        folders[:] = [name for name in folders if name in _LOGS or not name.startswith(_LEFT_OUT)]
        # a link to a folder could lead around in a circle
        odd += sum(os.path.islink(os.path.join(above, name)) for name in folders)
        for name in names:
            path = os.path.join(above, name)
            # a pipe would make a reader wait for ever
            if os.path.isfile(path):
                found.append((os.path.relpath(path, folder).replace(os.sep, "/"), path))
            else:
                odd += not name.startswith(_LEFT_OUT)
    if unread or odd:
        raise DataError(
            f"{where} is a folder with {odd + len(unread)} links to folders, links that lead"
            " nowhere, pipes, devices or folders that cannot be read; put files in their place."
        )
    return found


def _folder_source(
    listed: Sequence[tuple[str, str]], system: Any, place: str, where: str
) -> TableSource:
    """Return the Parquet files of a folder, by name.

    Raises
    ------
    DataError
        If there are none, others among them, or files whose folders stand for other columns.
    """
    # looked for first: their names begin as those of files that are left out below
    kinds = {_LOGS[part] for one, _ in listed for part in one.split("/") if part in _LOGS}
    if kinds:
        raise DataError(
            f"{where} is a table of {' and '.join(sorted(kinds))}, whose files hold deleted and"
            " older rows too; write its rows to a folder of Parquet files of their own."
        )
    wanted = sorted(
        (relative, path)
        for relative, path in listed
        if not any(part.startswith(_LEFT_OUT) for part in relative.split("/"))
    )
    if not wanted:
        raise DataError(f"{where} is a folder without Parquet files; name one that has some.")
    # what folders are called are cells ("year=2020")
    names = [relative.rpartition("/")[2] for relative, _ in wanted]
    odd = [name for name in names if not name.endswith((".parquet", ".parq", ".pq"))]
    if odd:
        raise DataError(
            f"{where} is a folder that holds other files than Parquet, such as {shown(odd[0])};"
            " take them out, or give one file."
        )
    keys = [_folder_keys(relative) for relative, _ in wanted]
    if any(set(one) != set(keys[0]) for one in keys):
        raise DataError(
            f"{where} is a folder whose files lie in subfolders of different columns; give all of"
            ' them the same, such as "year=2020/month=1".'
        )
    files = tuple(
        _TableFile(path, f"{place} ({names[at]}, file {at + 1})", keys[at], system, relative)
        for at, (relative, path) in enumerate(wanted)
    )
    return TableSource(files, place, False)


def _folder_keys(relative: str) -> dict[str, str | None]:
    """Return the columns that the folders of a file stand for, with their values, which are texts:
    no type is guessed from a private file."""
    found: dict[str, str | None] = {}
    for part in relative.split("/")[:-1]:
        name, sign, value = part.partition("=")
        if sign:
            found[unquote(name)] = None if value == "__HIVE_DEFAULT_PARTITION__" else unquote(value)
    return found


def _why_unread(where: str, error: Exception) -> str:
    """Return a sentence that says that a file could not be read, without address or cell.

    Raises
    ------
    MemoryError
        In the place of one, which no other file would replace.
    """
    if isinstance(error, MemoryError):
        raise MemoryError
    number = getattr(error, "errno", None)
    reason = os.strerror(number) if isinstance(number, int) else type(error).__name__
    return f"{where} cannot be read ({reason}); check the path."


def _attempt(call: Callable[[], _T], why: Callable[[Exception], str]) -> _T:
    """Return what a call comes to.

    File systems and readers raise, and warn of, what they like, with addresses, keys and cells in
    it.

    Raises
    ------
    DataError
        In the place of any exception that is none of this package's own: the sentence that `why`
        returns, and nothing riding along.
    """
    try:
        with warnings.catch_warnings(action="ignore"):
            return call()
    except SecretBallotError:
        raise
    except Exception as error:
        sentence = why(error)
    raise DataError(sentence)


def _guarded(blocks: Iterator[_T], why: Callable[[Exception], str]) -> Iterator[_T]:
    """Yield blocks, each by `_attempt`."""
    while (block := _attempt(partial(next, blocks, None), why)) is not None:
        yield block


#: Whether the cells of the first line of a CSV file name its columns.
_HeaderRule = Callable[[list[str]], bool]
_BLOCK_ROWS = 8192
_ROWS_TOGETHER = 2**16  # of a block, where all are held at last
_PARQUET, _START = b"PAR1", 65536  # how a Parquet file begins; bytes that tell what a file is
#: A table as Python text takes up to this many times its size on disk.
GROWTH = 3


def read_table(path: Place, *, role: str = "file", encoding: str | None = None) -> pd.DataFrame:
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
    return _as_texts(frames)


def _as_texts(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
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
    has_header: _HeaderRule | None = None,
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
    file: _TableFile, where: str, rows: int, whole: bool, has_header: _HeaderRule | None
) -> Iterator[pd.DataFrame]:
    """Yield the rows of one file in blocks; the first may be empty."""
    start = _start_of(file, where)
    if start[:4] == _PARQUET:
        blocks, why = _parquet_blocks(file, where, rows, whole), _why_no_parquet
    else:
        blocks, why = _csv_blocks(file, where, rows, has_header), partial(_why_no_csv, file)
        name = file.encoding or "utf-8"
        if _attempt(lambda: "\0" in start.decode(name, "ignore"), partial(why, where)):
            if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                raise DataError(_why_no_text(file, where, "utf-16"))
            raise DataError(f"{where} is binary; give CSV text in UTF-8, or Parquet.")
    for frame in _guarded(blocks, partial(why, where)):
        # the folders of a file speak for all of its rows
        for name, value in file.keys.items():
            frame[name] = np.full(len(frame), value, dtype=object)
        yield frame


def _start_of(file: _TableFile, where: str) -> bytes:
    """Return the first bytes of a file."""

    def read() -> bytes:
        with file.opened() as content:
            return bytes(content.read(_START))

    return _attempt(read, partial(_why_unread, where))


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
            total += _attempt(partial(_parquet_rows, file, where), partial(_why_no_parquet, where))
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
    return _arrow_modules(f"{where} is Parquet, which")[1]


def _parquet_rows(file: _TableFile, where: str) -> int:
    with file.opened() as content:
        return int(_parquet(where).read_metadata(content).num_rows)


def _why_no_parquet(where: str, error: Exception) -> str:
    # errors of the file system have a number, those of Arrow have none
    damaged = isinstance(error, OSError) and error.errno is None
    if damaged or isinstance(error, ValueError | NotImplementedError):
        return f"{where} begins like Parquet but cannot be read as such; write it anew."
    return _why_unread(where, error)


def _parquet_blocks(file: _TableFile, where: str, rows: int, whole: bool) -> Iterator[pd.DataFrame]:
    """Yield the rows of a Parquet file in blocks; the first is empty."""
    parquet = _parquet(where)
    from pyarrow import Table

    with file.opened() as content:
        opened = parquet.ParquetFile(content)
        about, arrow = opened.metadata, opened.schema_arrow
        # a few bytes can claim any number
        groups = [about.row_group(place).num_rows for place in range(about.num_row_groups)]
        cells = max(about.num_rows, sum(groups)) * max(1, about.num_columns)
        # Bytes that a cell takes at least: read, converted and encoded, eight each time.
        if whole and cells * 24 > memory_bytes():
            raise DataError(
                f"{where} claims more rows than this machine's memory could hold; give a part of"
                " it."
            )
        yield with_text_names(frame_of_arrow(Table.from_batches([], arrow), where))
        for batch in opened.iter_batches(batch_size=rows):
            yield with_text_names(frame_of_arrow(Table.from_batches([batch]), where))


def _csv_blocks(
    file: _TableFile, where: str, rows: int, has_header: _HeaderRule | None
) -> Iterator[pd.DataFrame]:
    """Yield the rows of a CSV file as texts, in blocks; the first is empty."""
    # no long text stops a run; the limit belongs to the process, and is never lowered again
    # Characters of a cell of a CSV file: the most that the reader can be set to.
    csv.field_size_limit(max(csv.field_size_limit(), 2**31 - 1))
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


def _why_no_csv(file: _TableFile, where: str, error: Exception) -> str:
    if isinstance(error, UnicodeError):
        # nearly every byte is a letter of that encoding, so it is a likely guess and no more
        return _why_no_text(file, where, "cp1252" if file.encoding in (None, "utf-8") else "")
    if isinstance(error, csv.Error):
        return f"{where} is no well-formed CSV; look for a misplaced quotation mark."
    return _why_unread(where, error)


def _why_no_text(file: _TableFile, where: str, likely: str) -> str:
    """Return a sentence that says that a file is not in its encoding, but likely in another one,
    which is named to whoever can give it."""
    reads = f" but reads as {likely}" if likely else ""
    give = ""
    if likely == "cp1252" and file.encoding:  # in UTF-16 a byte too many moves all behind it
        give = f" or give --set data.encoding={likely} (predict and evaluate: --encoding {likely})"
    return f"{where} is not {(file.encoding or 'utf-8').upper()}{reads}: convert it{give}."


@contextlib.contextmanager
def _opened_text(file: _TableFile) -> Iterator[IO[str]]:
    """Give a file open as text, with its line ends as they are."""
    encoding = "utf-8-sig" if file.encoding in (None, "utf-8") else file.encoding
    with file.opened() as content, io.TextIOWrapper(content, encoding=encoding, newline="") as text:
        yield text


def _delimiter_of(file: _TableFile) -> str:
    """Return the delimiter that gives the header most fields; only the header is looked at."""
    with _opened_text(file) as text:
        header = next((line for line in text if line.strip("\r\n")), "")

    def fields(delimiter: str) -> int:
        # with the wrong delimiter a long header is one field, longer than the reader takes
        with contextlib.suppress(csv.Error):
            return len(next(csv.reader([header], delimiter=delimiter, skipinitialspace=True), []))
        return 0

    return max((",", ";", "\t", "|"), key=fields)


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
        _lines_of(text, where), delimiter=delimiter, skipinitialspace=True, strict=True
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
    odd = [place for place, name in placed if not name.strip() or first[name] < place]
    if odd or not names:
        listed = ", ".join(map(str, odd[:NAMED_AT_MOST])) or "none"
        raise DataError(
            f"{where} has columns without a name, or a column name twice, in its header (column"
            f" number {listed}); give every column a name of its own in the first line, and write"
            " the file without its row index (pandas: index=False; R: row.names=FALSE)."
        )


def _lines_of(file: Iterable[str], where: str) -> Iterator[str]:
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


_COLUMNS_NAMED = 5


def read_votes(
    path: Place,
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
    values = None if classes is None and kind == "counts" else check_classes(classes)

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
    if values is not None and kind == "votes":
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
    table: AnyArray = _attempt(opened, lambda error: why)
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
