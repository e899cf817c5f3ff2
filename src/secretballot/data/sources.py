"""Where a table lies: a file, a folder of Parquet files, or a URL of either.

A source lists files and opens them; their content is read by `tables`. Names that are shown
carry no credentials.
"""

import hashlib
import os
import stat
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any, TypeVar
from urllib.parse import unquote, urlsplit

from secretballot._files import is_url, shown_place
from secretballot._validation import shown
from secretballot.exceptions import DataError, SecretBallotError

T = TypeVar("T")

#: What a table may be named by: a path, or a URL.
Place = str | os.PathLike[str]

_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_NAMED = 3  # files that a message names
_LEFT_OUT = (".", "_")
#: Of tables in which some of the files are deleted rows, or older ones.
_LOGS = {"_delta_log": "Delta Lake", ".hoodie": "Hudi"}
_PARQUET_NAMES = (".parquet", ".parq", ".pq")


@dataclass(frozen=True)
class TableFile:
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
    def opened(self) -> Iterator[IO[bytes]]:
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
        digest = hashlib.sha256()

        def read() -> str:
            with self.opened() as content:
                while block := content.read(2**20):
                    digest.update(block)
            return digest.hexdigest()

        return attempt(read, partial(why_unread, repr(self.shown)))

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
    files : tuple of TableFile
        One, or as many Parquet files as a folder holds, by name.
    shown : str
        What messages call it; without credentials.
    single : bool
        Whether it was given as one file; only then do places of records follow from no cell, for
        files of a folder may be sorted by what records say.
    """

    files: tuple[TableFile, ...]
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
            file.path: attempt(file.signature, partial(why_unread, repr(file.shown)))
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

    def _sized_files(self) -> list[tuple[TableFile, int]]:
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
    return TableSource((TableFile(local, place),), place, True)


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

    about, found = attempt(
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
    return TableSource((TableFile(path, place, {}, system),), place, True)


def _file_system(url: str, where: str) -> tuple[Any, str]:
    """Return the file system of a URL and the path in it."""
    found, (fs, _) = None, arrow_modules(where)
    # each knows schemes that the other does not, and raises what it likes, with the address in it
    for ask in (_by_arrow, _by_fsspec):
        try:
            found = found or ask(fs, url)
        except MemoryError:
            raise  # the machine failed, and says nothing of the address
        except Exception:
            continue
    if found is None:
        scheme = urlsplit(url).scheme
        raise DataError(
            f"{where} has an address that no installed file system knows ({scheme}); install the"
            f" fsspec package for {scheme}, or copy the table here."
        )
    return found


def arrow_modules(where: str) -> tuple[Any, Any]:
    """Return the modules of pyarrow for file systems and for Parquet; `DataError` that begins with
    `where` if it is not installed."""
    try:
        from pyarrow import fs, parquet
    except ImportError:
        raise DataError(
            f"{where} needs pyarrow; install it with: pip install 'secretballot[parquet]'."
        ) from None
    return fs, parquet


def _by_arrow(fs: Any, url: str) -> tuple[Any, str]:
    system, path = fs.FileSystem.from_uri(url)
    return system, path


def _by_fsspec(fs: Any, url: str) -> tuple[Any, str]:
    import fsspec

    system, path = fsspec.core.url_to_fs(url)
    return fs.PyFileSystem(fs.FSSpecHandler(system)), path


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
    odd = [relative for relative, _ in wanted if not relative.endswith(_PARQUET_NAMES)]
    if odd:
        names = ", ".join(shown(_without_values(one)) for one in odd[:_NAMED])
        raise DataError(
            f"{where} is a folder that holds other files than Parquet ({names}); take them out, or"
            " give one file."
        )
    keys = [_folder_keys(relative) for relative, _ in wanted]
    if any(set(one) != set(keys[0]) for one in keys):
        raise DataError(
            f"{where} is a folder whose files lie in subfolders of different columns; give all of"
            ' them the same, such as "year=2020/month=1".'
        )
    files = tuple(
        TableFile(path, _shown_file(place, relative, number), own, system, relative)
        for number, ((relative, path), own) in enumerate(zip(wanted, keys, strict=True), start=1)
    )
    return TableSource(files, place, False)


def _shown_file(place: str, relative: str, number: int) -> str:
    """Return what messages call a file of a folder."""
    bare = _without_values(relative)
    return f"{place}/{bare}" + (f" (number {number} by name)" if bare != relative else "")


def _without_values(relative: str) -> str:
    """Return a path without what its folders say, which are cells ("year=..." of "year=2020")."""
    *folders, name = relative.split("/")
    bare = (f"{one.partition('=')[0]}=..." if "=" in one else one for one in folders)
    return "/".join([*bare, name])


def _folder_keys(relative: str) -> dict[str, str | None]:
    """Return the columns that the folders of a file stand for, with their values, which are texts:
    no type is guessed from a private file."""
    found: dict[str, str | None] = {}
    for part in relative.split("/")[:-1]:
        name, sign, value = part.partition("=")
        if sign:
            found[unquote(name)] = None if value == _HIVE_NULL else unquote(value)
    return found


def reason_unread(error: Exception) -> str:
    """Return why a file could not be read, in words that hold no address and no cell.

    Raises
    ------
    MemoryError
        In the place of one, which no other file would replace.
    """
    if isinstance(error, MemoryError):
        raise MemoryError
    number = getattr(error, "errno", None)
    return os.strerror(number) if isinstance(number, int) else type(error).__name__


def why_unread(where: str, error: Exception) -> str:
    """Return a sentence that says so of a file."""
    return f"{where} cannot be read ({reason_unread(error)}); check the path."


def attempt(call: Callable[[], T], why: Callable[[Exception], str]) -> T:
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
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return call()
    except SecretBallotError:
        raise
    except Exception as error:
        sentence = why(error)
    raise DataError(sentence)


def guarded(blocks: Iterator[T], why: Callable[[Exception], str]) -> Iterator[T]:
    """Yield blocks, each by `attempt`."""
    while (block := attempt(partial(next, blocks, None), why)) is not None:
        yield block
