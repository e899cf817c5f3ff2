"""A private table that lies on disk, in few bytes a row: read block by block, or dealt out to
shards, one file for each, which its teacher alone reads.

Its files hold private data. They lie in a vault, in folders of mode 0700, and are removed once
nothing needs them.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, TypeVar

import numpy as np
from pydantic import NonNegativeInt, ValidationError

from secretballot._json_files import LARGEST_JSON
from secretballot._typing import AnyArray, FloatArray, IntArray, UnsignedArray
from secretballot.core.private import Private
from secretballot.core.types import Model
from secretballot.data.schema import Schema
from secretballot.exceptions import DataError
from secretballot.vault import make_vault, read_secret, write_secret

FOLDER = "table"  # in the vault
ROWS, ABOUT = "rows", "about.json"
#: How folders begin in which a fit keeps parts of a table while it is at work.
PERSONS, SHARDS = PARTS = ("persons-", "shards-")
#: Numbers of one block of encoded rows: 2**22 doubles are 32 MiB.
_BLOCK_ENTRIES = 2**22
_CELLS, _CLASS, _UNIT = "cells", "class", "unit"
_APPENDING = os.O_WRONLY | os.O_CREAT | os.O_APPEND


class TableAbout(Model):
    """What vouches for a table on disk; private.

    Attributes
    ----------
    identity : str
        Digest of all that shaped the rows.
    serial : str
        Names this very table on disk; drawn at random, never computed from data.
    n_rows, n_units : int
        Number of records, and about how many units they are of.
    columns : tuple of str
        Of the file; its header may be a record.
    single : bool
        Whether it was given as one file, so that a record's place among the others follows from no
        cell.
    """

    format: Literal["secretballot/table"] = "secretballot/table"
    version: Literal[1] = 1
    identity: str
    serial: str
    n_rows: NonNegativeInt = 0
    n_units: NonNegativeInt
    columns: tuple[str, ...]
    single: bool = False


class ShardsAbout(Model):
    """What vouches for shards on disk; private.

    Attributes
    ----------
    table : str
        Serial of the table that they are of.
    rule : str
        Names what dealt them.
    serial : str
        Names this dealing; drawn at random.
    sizes : tuple of int
        Rows of each shard.
    """

    format: Literal["secretballot/shards"] = "secretballot/shards"
    version: Literal[1] = 1
    table: str
    rule: str
    serial: str
    sizes: tuple[NonNegativeInt, ...]


About = TypeVar("About", bound=Model)


class RowBlock(NamedTuple):
    """Some rows of a private table.

    Attributes
    ----------
    X : ndarray of float64, shape (n_rows, n_features)
    classes : ndarray of int64, shape (n_rows,)
        Indices of the declared classes.
    units : ndarray of uint64, shape (n_rows, 2), or None
        Keyed hashes of the units; None where every record is one.
    """

    X: FloatArray
    classes: IntArray
    units: UnsignedArray | None

    def __repr__(self) -> str:
        return "RowBlock(<private>)"


class StoredTable(Private):
    """A private table on disk, ready to be learned from: give it to a learner as `X`.

    Make one with `secretballot.store_table`.

    Attributes
    ----------
    vault : Path
        Folder in which it lies, under "table".
    cells : Schema
        How rows are kept and encoded; public.
    classes : tuple
        Declared classes; public.
    unit : {"record", "user"}
        Whose records are protected together.
    unit_name : str or None
        The column of the units.
    n_columns : int
        Encoded columns; public.
    identity : str
        Digest of all that shaped the rows; private.
    serial : str
        Names this very table on disk; drawn at random, never computed from data.
    single : bool
        Whether it was given as one file, so that a record's place among the others follows from no
        cell.
    columns : tuple of str
        Of the file; private where its header may be a record.

    Privacy
    -------
    Its rows are private. A row on disk is a function of one record and public values; where units
    are persons, of the key of the vault, too.
    """

    _refusal = "a stored table refuses to {}; give it to a learner as X."

    def __init__(
        self,
        vault: Path,
        cells: Schema,
        classes: tuple[Any, ...],
        unit_name: str | None,
        about: TableAbout,
    ) -> None:
        self.vault, self.cells, self.classes, self.unit_name = vault, cells, classes, unit_name
        self.identity, self.serial = about.identity, about.serial
        self.columns, self.single = about.columns, about.single
        self.unit = "record" if unit_name is None else "user"
        self.n_columns = len(cells.feature_names)
        self.row_type = row_type(cells, classes, unit_name)
        self._about = about

    @classmethod
    def found(
        cls,
        vault: Path,
        cells: Schema,
        classes: tuple[Any, ...],
        unit_name: str | None,
        identity: str,
    ) -> "StoredTable | None":
        """Return the table that lies in a vault, None where there is none that is whole and that
        was made of the same file by the same settings.

        Parameters
        ----------
        vault : Path
        cells, classes, unit_name
            As the table was written with.
        identity : str
            Digest of all that shaped the rows; private.
        """
        about = _read_about(vault / FOLDER, TableAbout)
        if about is None or about.identity != identity:
            return None
        table, rows = cls(vault, cells, classes, unit_name, about), vault / FOLDER / ROWS
        size = table.row_type.itemsize * about.n_rows
        # a file that was cut short, or written to since, is not whole
        return table if rows.is_file() and rows.stat().st_size == size else None

    def count_rows(self) -> int:
        """Return the number of records; private, but under replace-one."""
        return self._about.n_rows

    def count_units(self) -> int:
        """Return the number of units, about; private, but of records under replace-one."""
        return self._about.n_units

    def stored_rows(self, most: int) -> Iterator[AnyArray]:
        """Yield all rows as they are kept, in the order of the file, at most so many at once.

        Raises
        ------
        DataError
            If the file cannot be read, or is not whole, or another table was stored here meanwhile.
        """
        return (read() for read in self._readers(most))

    def _readers(self, most: int) -> Iterator[Callable[[], AnyArray]]:
        place = self.vault, self.serial, self.row_type, self.count_rows()
        for start in range(0, self.count_rows(), most):
            yield partial(_rows_in_place, *place, start, min(most, self.count_rows() - start))

    def loaders(self, *, send: bool = False) -> Iterator[Callable[[], RowBlock]]:
        """Yield what any process that sees the vault reads a block of encoded rows by, in the order
        of the file; it holds the rows where `send` is true. A block has 32 MiB, or one row."""
        for read in self._readers(max(1, _BLOCK_ENTRIES // self.n_columns)):
            yield _loader_of(read, self.cells, send=send)

    def blocks(self) -> Iterator[RowBlock]:
        """Yield all rows encoded, in the order of the file."""
        return (load() for load in self.loaders())

    def remove(self) -> None:
        """Remove the files of the table; it cannot be read after that."""
        forget_table(self.vault)

    def __repr__(self) -> str:
        return (
            f"StoredTable(n_columns={self.n_columns}, classes={list(self.classes)},"
            f" unit={self.unit!r}, records=<private>)"
        )


class TableWriter:
    """Write a stored table row by row; it is there once `finish` was called, and not before.

    Parameters
    ----------
    vault : path
        Made with mode 0700 where absent. A table that lies there is removed.
    cells, classes, unit_name
        As for `StoredTable`.

    Raises
    ------
    DataError
        If the vault cannot be written.
    """

    def __init__(
        self, vault: Path, cells: Schema, classes: tuple[Any, ...], unit_name: str | None
    ) -> None:
        self._vault, self._folder = make_vault(vault), Path(vault) / FOLDER
        self._cells, self._classes, self._unit_name = cells, classes, unit_name
        self._type = row_type(cells, classes, unit_name)
        forget_table(vault)
        make_vault(self._folder)
        self._rows, self._n_rows = self._folder / ROWS, 0

    def add(self, cells: AnyArray, classes: IntArray, units: UnsignedArray | None) -> None:
        """Write rows behind those that are there.

        Parameters
        ----------
        cells : structured ndarray of shape (n_rows,)
        classes : ndarray of int64, shape (n_rows,)
        units : ndarray of uint64, shape (n_rows, 2), or None
        """
        rows = np.empty(len(cells), dtype=self._type)
        rows[_CELLS], rows[_CLASS] = cells, classes
        if units is not None:
            rows[_UNIT] = units
        add_rows(self._rows, rows)
        self._n_rows += len(rows)

    def finish(self, about: TableAbout) -> StoredTable:
        """Return the table, which is whole now and was found to be fit.

        Parameters
        ----------
        about : TableAbout
            Without the number of rows.

        Raises
        ------
        DataError
            If the rows are not those that were written, or cannot be.
        """
        if finish_rows(self._rows) != self._n_rows * self._type.itemsize:
            raise DataError(
                f"Something else has written to {self._folder}; give every table a vault of its"
                " own, and repeat."
            )
        # last: without this file there is no table, so an interrupted run leaves none
        whole = about.changed(n_rows=self._n_rows)
        write_secret(self._folder / ABOUT, whole.model_dump_json().encode())
        return StoredTable(self._vault, self._cells, self._classes, self._unit_name, whole)


def forget_table(vault: Path) -> None:
    """Remove the table that is kept in a vault, if there is one, and the parts of it that a fit
    which was killed has left there."""
    remove_folder(vault / FOLDER, ABOUT)
    for name in PARTS:
        for left in vault.glob(f"{name}*"):
            shutil.rmtree(left, ignore_errors=True)


def remove_folder(folder: Path, about: str) -> None:
    """Remove a folder of rows, as far as it can be, and before anything else the file that vouches
    for them; a link in its place goes, not what it leads to."""
    with suppress(OSError):
        if folder.is_symlink():
            folder.unlink()
        else:
            (folder / about).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def _read_about(folder: Path, kind: type[About]) -> About | None:
    """Return what is recorded of the rows in a folder, None where nothing vouches for them."""
    with suppress(DataError, ValidationError):
        content = read_secret(folder / ABOUT, largest=LARGEST_JSON)
        return kind.model_validate_json(content or b"", strict=True)
    return None


def row_type(cells: Schema, classes: tuple[Any, ...], unit_name: str | None) -> np.dtype[Any]:
    """Return the type of a row on disk."""
    fields: list[Any] = [
        (_CELLS, cells.compact_type),
        (_CLASS, np.min_scalar_type(len(classes) - 1)),
    ]
    return np.dtype([*fields, *([] if unit_name is None else [(_UNIT, np.uint64, (2,))])])


def _rows_in_place(
    vault: Path, serial: str, kind: np.dtype[Any], n_rows: int, start: int, count: int
) -> AnyArray:
    """Return some rows of the table in a vault.

    Raises
    ------
    DataError
        If they cannot be read, or another table was stored there meanwhile: its people are others.
    """

    def check() -> None:
        about = _read_about(vault / FOLDER, TableAbout)
        if about is None or about.serial != serial:
            raise DataError(
                f"The table that was stored in {vault} is not there any more, or another one"
                " was stored in its place; store it again, each table in a vault of its own."
            )

    _check_seen(vault / FOLDER)
    # before others are written, what vouches for these goes: look once the rows are open
    return read_rows(vault / FOLDER / ROWS, kind, n_rows, start, count, check)


def _check_seen(folder: Path) -> None:
    """Refuse to go on without a folder of rows, by the file that each one has: what it holds, or
    lacks, has no say.

    Raises
    ------
    DataError
        If this process does not see it.
    """
    if not (folder / ABOUT).is_file():
        raise DataError(
            f"The rows in {folder} are not seen where they are to be read; store them again, or, on"
            " a cluster, put the vault on storage that all workers share, or let the rows be sent"
            " to them (send_shards)."
        )


def _loader_of(
    read: Callable[[], AnyArray], cells: Schema, *, send: bool
) -> Callable[[], RowBlock]:
    """Return what loads kept rows as encoded ones: by reading them there, or as they were read
    here."""
    return partial(_block_read_by, partial(np.asarray, read()) if send else read, cells)


def _block_read_by(read: Callable[[], AnyArray], cells: Schema) -> RowBlock:
    return block_of(read(), cells)


def block_of(rows: AnyArray, cells: Schema) -> RowBlock:
    """Return kept rows, of shape (n_rows,), as encoded ones."""
    return RowBlock(cells.widen(rows[_CELLS]), rows[_CLASS].astype(np.int64), units_of(rows))


def units_of(rows: AnyArray) -> UnsignedArray | None:
    """Return the keyed hashes of the units of kept rows, shape (n_rows, 2), None where every record
    is one."""
    return rows[_UNIT] if _UNIT in (rows.dtype.names or ()) else None


def add_rows(path: Path, rows: AnyArray) -> None:
    """Write rows, of shape (n_rows,), behind those of a secret file, mode 0600, which is closed
    between two writes, so that there may be very many. It is whole once `finish_rows` was called.

    Raises
    ------
    DataError
        If they cannot be written.
    """
    with _opened_file(path, _APPENDING, "written") as file:
        file.write(np.ascontiguousarray(rows).data)


def finish_rows(path: Path) -> int:
    """Write a file of rows through to the disk, an empty one where there is none, and return its
    size in bytes.

    Raises
    ------
    DataError
        If it cannot be written.
    """
    with _opened_file(path, _APPENDING, "written") as file:
        os.fsync(file.fileno())
        return os.fstat(file.fileno()).st_size


def read_rows(
    path: Path,
    kind: np.dtype[Any],
    n_rows: int,
    start: int,
    count: int,
    check: Callable[[], None] | None = None,
) -> AnyArray:
    """Return some rows of a secret file, shape (count,).

    Parameters
    ----------
    path : Path
    kind : numpy.dtype
        Of a row.
    n_rows : int
        How many the file must have.
    start, count : int
        The first row, and how many.
    check : callable, optional
        Called once the file is open; raises where it is another one.

    Raises
    ------
    DataError
        If it cannot be read, or holds another number of rows.
    """
    not_whole = f"{path} is not whole; remove the folder {path.parent}, and repeat the run."
    if not path.is_file():
        raise DataError(not_whole)
    with _opened_file(path, os.O_RDONLY, "read") as file:
        if os.fstat(file.fileno()).st_size != n_rows * kind.itemsize:
            raise DataError(not_whole)
        # the file is open now: what is checked is what will be read
        if check is not None:
            check()
        file.seek(start * kind.itemsize)
        part = file.read(count * kind.itemsize)
    if len(part) != count * kind.itemsize:
        raise DataError(f"{path} was changed while it was read; repeat the run.")
    return np.frombuffer(part, dtype=kind)


@contextmanager
def _opened_file(path: Path, flags: int, what: str) -> Iterator[IO[bytes]]:
    """Give an open file of a vault, without a buffer; never through a link."""
    problem = ""
    try:
        handle = os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o600)
        with os.fdopen(handle, "ab" if flags & os.O_APPEND else "rb", buffering=2**20) as file:
            yield file
    except OSError as error:
        problem = error.strerror or type(error).__name__
    if problem:
        raise DataError(
            f"{path} cannot be {what} ({problem}); free some space, or name another folder."
        )


#: Returns the shard numbers of some rows: from the hashes of their units, if they have any, the
#: place of the first of them in the file, and how many there are.
ShardOf = Callable[[UnsignedArray | None, int, int], IntArray]

SHARDS_FOLDER = "shards"  # in the vault
_DEALT_BYTES = 2**26  # of rows that are sorted at once


@dataclass(frozen=True, eq=False, repr=False)
class StoredShards:
    """Shards of a stored table, in files of a vault: a small handle that any process which sees
    the folder can read them by.

    Attributes
    ----------
    folder : Path
    cells : Schema
        How rows are kept and encoded; public.
    row_type : numpy.dtype
        Of a row on disk.
    sizes : tuple of int
        Rows of each shard; private.
    serial : str
        Names this dealing; drawn at random, never computed from data.
    sparse : bool
        Whether parts are CSR matrices; public.
    """

    folder: Path
    cells: Schema
    row_type: np.dtype[np.void]
    sizes: tuple[int, ...] = field(repr=False)
    serial: str
    sparse: bool = False

    @property
    def n_teachers(self) -> int:
        """Number of shards; public."""
        return len(self.sizes)

    def part(self, number: int) -> tuple[Any, IntArray]:
        """Return the encoded rows of one shard, an array or a CSR matrix, and the indices of their
        classes, in the order of the file.

        Raises
        ------
        DataError
            If this process does not see the folder, or its file cannot be read or is not whole.
        """
        return _encoded_part(self._rows_of_shard(number), self.cells, self.sparse)

    def loader(self, number: int, *, send: bool) -> Callable[[], tuple[Any, IntArray]]:
        """Return what a worker needs to have a shard: where it lies, or its rows in as few bytes
        as on disk."""
        if send:
            return partial(_encoded_part, self._rows_of_shard(number), self.cells, self.sparse)
        return partial(self.part, number)

    def loaders(self, *, send: bool = False) -> Iterator[Callable[[], RowBlock]]:
        """Yield what loads each shard with the units of its rows, as `StoredTable.loaders` does."""
        for number in range(self.n_teachers):
            yield _loader_of(partial(self._rows_of_shard, number), self.cells, send=send)

    def _rows_of_shard(self, number: int) -> AnyArray:
        """Return the rows of one shard as they are kept."""
        _check_seen(self.folder)
        size, path = self.sizes[number], self.folder / _name_of(number)
        if not size:
            return np.empty(0, dtype=self.row_type)
        return read_rows(path, self.row_type, size, 0, size)

    def __repr__(self) -> str:
        return f"StoredShards(n_teachers={self.n_teachers}, records=<private>)"


def dealt_shards(
    table: StoredTable, vault: Path, n_shards: int, shard_of: ShardOf, *, rule: str, serial: str
) -> StoredShards:
    """Return the shards of a stored table, dealt now or found in the vault.

    Rows keep their order inside a shard, as in `training.Shards`.

    Parameters
    ----------
    table : StoredTable
    vault : path
        Its folder "shards" takes a file for each shard, of mode 0600.
    n_shards : int
    shard_of : callable
        Takes the hashes of units or None, the place of the first row in the file, and a number of
        rows; returns their shard numbers. Each must be a function of that row's unit or place, and
        of fresh randomness.
    rule : str
        Name of what `shard_of` does: shards that were dealt by another rule are not taken up.
    serial : str
        Of a new dealing; drawn at random.

    Raises
    ------
    DataError
        If files cannot be read or written.
    """
    folder = make_vault(vault) / SHARDS_FOLDER
    kept = _read_about(folder, ShardsAbout)
    wanted = table.serial, rule, n_shards
    if kept is not None and (kept.table, kept.rule, len(kept.sizes)) == wanted:
        return StoredShards(folder, table.cells, table.row_type, kept.sizes, kept.serial)
    forget_shards(vault)
    make_vault(folder)
    sizes, first = np.zeros(n_shards, dtype=np.int64), 0
    for rows in table.stored_rows(max(1, _DEALT_BYTES // table.row_type.itemsize)):
        numbers = shard_of(units_of(rows), first, len(rows))
        order, here = np.argsort(numbers, kind="stable"), np.bincount(numbers, minlength=n_shards)
        ends = np.cumsum(here)
        # one file each, hence a loop
        for number in np.flatnonzero(here).tolist():
            part = order[ends[number] - here[number] : ends[number]]
            add_rows(folder / _name_of(number), rows[part])
        sizes, first = sizes + here, first + len(rows)
    for number in np.flatnonzero(sizes).tolist():
        finish_rows(folder / _name_of(number))
    about = ShardsAbout(table=table.serial, rule=rule, serial=serial, sizes=tuple(sizes.tolist()))
    # last, as it vouches for all the others
    write_secret(folder / ABOUT, about.model_dump_json().encode())
    return StoredShards(folder, table.cells, table.row_type, about.sizes, serial)


def forget_shards(vault: Path) -> None:
    """Remove the shards of a vault: before anything is released, and before others are dealt.

    Raises
    ------
    DataError
        If they are still there: a second release by the same shards would tell whether the table
        has changed in between.
    """
    remove_folder(vault / SHARDS_FOLDER, ABOUT)
    if os.path.lexists(vault / SHARDS_FOLDER / ABOUT):
        raise DataError(
            f"The shards in {vault / SHARDS_FOLDER} cannot be removed, and nothing may be released"
            " while they are there; remove that folder, and repeat. Nothing was spent."
        )


def _encoded_part(rows: AnyArray, cells: Schema, sparse: bool) -> tuple[Any, IntArray]:
    """Return kept rows of a shard as its teacher gets them, and the indices of their classes."""
    X = cells.widen_sparse(rows[_CELLS]) if sparse else cells.widen(rows[_CELLS])
    return X, rows[_CLASS].astype(np.int64)


def _name_of(number: int) -> str:
    return f"{number:06d}.rows"
