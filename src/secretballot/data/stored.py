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
from typing import IO, Any, Literal, NamedTuple

import numpy as np
from pydantic import NonNegativeInt, ValidationError

from secretballot._files import LARGEST_JSON
from secretballot._typing import AnyArray, FloatArray, IntArray, Names, UnsignedArray, Values
from secretballot.core.private import Private
from secretballot.core.types import Model
from secretballot.data.schema import Schema
from secretballot.exceptions import DataError
from secretballot.vault import make_vault, read_secret, write_secret

_FOLDER, _SHARDS_FOLDER = "table", "shards"  # in the vault
_ABOUT = "about.json"
#: How folders begin in which a fit keeps parts of a table while it is at work.
PERSONS, SHARDS = _PARTS = ("persons-", "shards-")
#: Numbers of one block of encoded rows: 2**22 doubles are 32 MiB.
_BLOCK_ENTRIES = 2**22
_DEALT_BYTES = 2**26  # of rows that are sorted at once
_CELLS, _CLASS, _UNIT = "cells", "class", "unit"
_APPENDING = os.O_WRONLY | os.O_CREAT | os.O_APPEND


class About(Model):
    """What vouches for rows on disk; private.

    Attributes
    ----------
    identity : str
        Names all that shaped the rows, and in which file each is.
    serial : str
        Names these very files; drawn at random, never computed from data.
    sizes : tuple of int
        Rows of each file.
    n_units : int
        About how many units they are of.
    columns : tuple of str
        Of the table that was read; its header may be a record.
    single : bool
        Whether that was one file, so that a record's place among the others follows from no cell.
    """

    format: Literal["secretballot/rows"] = "secretballot/rows"
    version: Literal[1] = 1
    identity: str
    serial: str
    sizes: tuple[NonNegativeInt, ...] = ()
    n_units: NonNegativeInt = 0
    columns: Names = ()
    single: bool = False


class RowBlock(NamedTuple):
    """Some rows of a private table.

    Attributes
    ----------
    X : ndarray of float64 or CSR matrix, shape (n_rows, n_features)
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


@dataclass(frozen=True, eq=False, repr=False)
class StoredShards:
    """Rows in files of a vault: a small handle that any process which sees the folder can read them
    by. A stored table is one file; its shards are a file each.

    Attributes
    ----------
    folder : Path
    cells : Schema
        How rows are kept and encoded; public.
    row_type : numpy.dtype
        Of a row on disk.
    sizes : tuple of int
        Rows of each file; private.
    serial : str
        Names these very files; drawn at random, never computed from data.
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
        """Number of files; public."""
        return len(self.sizes)

    def read(self, number: int, start: int = 0, count: int | None = None) -> AnyArray:
        """Return rows of one file as they are kept, shape (count,): from one place on, or all.

        Raises
        ------
        DataError
            If this process does not see the folder, or the file cannot be read, is not whole, or is
            another one.
        """
        size, width = self.sizes[number], self.row_type.itemsize
        wanted = (size if count is None else count) * width
        # by the file that each folder has: what the others hold, or lack, has no say
        if not (self.folder / _ABOUT).is_file():
            raise DataError(
                f"The rows in {self.folder} are not seen where they are to be read; store them"
                " again, or, on a cluster, put the vault on storage that all workers share, or let"
                " the rows be sent to them (send_shards)."
            )
        if not size:
            return np.empty(0, dtype=self.row_type)
        path = self.folder / _name_of(number)
        if not self.is_whole(number):
            raise DataError(
                f"{path} is not whole; remove the folder {self.folder}, and repeat the run."
            )
        with _opened_file(path, os.O_RDONLY, "read") as file:
            # before others are written, what vouches for these goes: look once the rows are open
            about = _read_about(self.folder)
            if about is None or about.serial != self.serial:
                raise DataError(
                    f"The rows in {self.folder} are not there any more, or others were stored in"
                    " their place; store them again, each table in a vault of its own."
                )
            file.seek(start * width)
            part = file.read(wanted)
        if len(part) != wanted:
            raise DataError(f"{path} was changed while it was read; repeat the run.")
        return np.frombuffer(part, dtype=self.row_type)

    def is_whole(self, number: int) -> bool:
        """Return whether a file has as many rows as it should."""
        path, size = self.folder / _name_of(number), self.sizes[number] * self.row_type.itemsize
        return not size or (path.is_file() and path.stat().st_size == size)

    def part(self, number: int) -> tuple[Any, IntArray]:
        """Return the encoded rows of one file, an array or a CSR matrix, and the indices of their
        classes, in the order of the table; errors are those of `read`."""
        return self.loader(number, send=True)()

    def loader(self, number: int, *, send: bool) -> Callable[[], tuple[Any, IntArray]]:
        """Return what a worker needs to have a shard: where it lies, or its rows in as few bytes
        as on disk."""
        if send:
            return partial(_encoded_part, self.read(number), self.cells, self.sparse)
        return partial(self.part, number)

    def loaders(
        self, *, send: bool = False, most: int | None = None
    ) -> Iterator[Callable[[], RowBlock]]:
        """Yield what any process that sees the folder reads encoded rows by, file by file, or at
        most so many at once; it holds the rows where `send` is true."""
        for piece in self.pieces(most):
            if send:
                yield partial(block_of, self.read(*piece), self.cells)
            else:
                yield partial(self._block, *piece)

    def _block(self, number: int, start: int, count: int) -> RowBlock:
        return block_of(self.read(number, start, count), self.cells)

    def pieces(self, most: int | None = None) -> Iterator[tuple[int, int, int]]:
        """Yield number of file, first row and number of rows of pieces of at most so many."""
        for number, size in enumerate(self.sizes):
            step = max(1, size) if most is None else most
            for start in range(0, size, step):
                yield number, start, min(step, size - start)

    def __repr__(self) -> str:
        return f"StoredShards(n_teachers={self.n_teachers}, records=<private>)"


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

    _refusal = "a stored table is not shown, copied or kept; give it to a learner as X."

    def __init__(
        self, vault: Path, cells: Schema, classes: Values, unit_name: str | None, about: About
    ) -> None:
        self.vault, self.cells, self.classes, self.unit_name = vault, cells, classes, unit_name
        self.identity, self.serial = about.identity, about.serial
        self.columns, self.single = about.columns, about.single
        self.unit = "record" if unit_name is None else "user"
        self.n_columns = len(cells.feature_names)
        self.row_type = row_type(cells, classes, unit_name)
        self._about = about
        self._files = StoredShards(vault / _FOLDER, cells, self.row_type, about.sizes, about.serial)

    @classmethod
    def found(
        cls, vault: Path, cells: Schema, classes: Values, unit_name: str | None, identity: str
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
        about = _read_about(vault / _FOLDER)
        if about is None or about.identity != identity:
            return None
        table = cls(vault, cells, classes, unit_name, about)
        # a file that was cut short, or written to since, is not whole
        return table if table._files.is_whole(0) else None

    def count_rows(self) -> int:
        """Return the number of records; private, but under replace-one."""
        return sum(self._about.sizes)

    def count_units(self) -> int:
        """Return the number of units, about; private, but of records under replace-one."""
        return self._about.n_units

    def stored_rows(self, most: int) -> Iterator[AnyArray]:
        """Yield all rows as they are kept, in the order of the file, at most so many at once.

        Raises
        ------
        DataError
            As for `StoredShards.read`.
        """
        return (self._files.read(*piece) for piece in self._files.pieces(most))

    def loaders(self, *, send: bool = False) -> Iterator[Callable[[], RowBlock]]:
        """Yield what any process that sees the vault reads a block of encoded rows by, in the order
        of the file; it holds the rows where `send` is true. A block has 32 MiB, or one row."""
        return self._files.loaders(send=send, most=max(1, _BLOCK_ENTRIES // self.n_columns))

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

    def __init__(self, vault: Path, cells: Schema, classes: Values, unit_name: str | None) -> None:
        self._place = make_vault(vault), cells, classes, unit_name
        self._type = row_type(cells, classes, unit_name)
        forget_table(vault)
        self._files = _RowWriter(Path(vault) / _FOLDER, self._type, 1)

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
        self._files.add(0, rows)

    def finish(self, about: About) -> StoredTable:
        """Return the table, which is whole now and was found to be fit.

        Parameters
        ----------
        about : About
            Without sizes.

        Raises
        ------
        DataError
            If the rows are not those that were written, or cannot be.
        """
        return StoredTable(*self._place, self._files.finish(about))


class _RowWriter:
    """Write rows to files of a secret folder, mode 0600, each closed between two writes, so that
    there may be very many."""

    def __init__(self, folder: Path, kind: np.dtype[Any], n_files: int) -> None:
        self._folder, self._type = make_vault(folder), kind
        self._sizes = [0] * n_files

    def add(self, number: int, rows: AnyArray) -> None:
        """Write rows, of shape (n_rows,), behind those of a file."""
        with _opened_file(self._folder / _name_of(number), _APPENDING, "written") as file:
            file.write(np.ascontiguousarray(rows).data)
        self._sizes[number] += len(rows)

    def finish(self, about: About) -> About:
        """Write all files through to the disk, and then what vouches for them: without it there are
        no rows, so an interrupted run leaves none. Return it."""
        for number, size in enumerate(self._sizes):
            if not size:
                continue
            with _opened_file(self._folder / _name_of(number), _APPENDING, "written") as file:
                os.fsync(file.fileno())
                whole = os.fstat(file.fileno()).st_size == size * self._type.itemsize
            if not whole:
                raise DataError(
                    f"Something else has written to {self._folder}; give every table a vault of its"
                    " own, and repeat."
                )
        vouched = about.changed(sizes=tuple(self._sizes))
        write_secret(self._folder / _ABOUT, vouched.model_dump_json().encode())
        return vouched


def forget_table(vault: Path) -> None:
    """Remove the table that is kept in a vault, if there is one, and the parts of it that a fit
    which was killed has left there."""
    _remove_folder(vault / _FOLDER)
    for name in _PARTS:
        for left in vault.glob(f"{name}*"):
            shutil.rmtree(left, ignore_errors=True)


def _remove_folder(folder: Path) -> None:
    """Remove a folder of rows, as far as it can be, and before anything else the file that vouches
    for them; a link in its place goes, not what it leads to."""
    with suppress(OSError):
        if folder.is_symlink():
            folder.unlink()
        else:
            (folder / _ABOUT).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def _read_about(folder: Path) -> About | None:
    """Return what is recorded of the rows in a folder, None where nothing vouches for them."""
    with suppress(DataError, ValidationError):
        content = read_secret(folder / _ABOUT, largest=LARGEST_JSON)
        return About.model_validate_json(content or b"", strict=True)
    return None


def row_type(cells: Schema, classes: Values, unit_name: str | None) -> np.dtype[Any]:
    """Return the type of a row on disk."""
    fields: list[Any] = [
        (_CELLS, cells.compact_type),
        (_CLASS, np.min_scalar_type(len(classes) - 1)),
    ]
    return np.dtype([*fields, *([] if unit_name is None else [(_UNIT, np.uint64, (2,))])])


def block_of(rows: AnyArray, cells: Schema, sparse: bool = False) -> RowBlock:
    """Return kept rows, of shape (n_rows,), as encoded ones."""
    X = cells.widen_sparse(rows[_CELLS]) if sparse else cells.widen(rows[_CELLS])
    return RowBlock(X, rows[_CLASS].astype(np.int64), _units_of(rows))


def _encoded_part(rows: AnyArray, cells: Schema, sparse: bool) -> tuple[Any, IntArray]:
    """Return kept rows of a shard as its teacher gets them, and the indices of their classes."""
    return block_of(rows, cells, sparse)[:2]


def _units_of(rows: AnyArray) -> UnsignedArray | None:
    """Return the keyed hashes of the units of kept rows, shape (n_rows, 2), None where every record
    is one."""
    return rows[_UNIT] if _UNIT in (rows.dtype.names or ()) else None


@contextmanager
def _opened_file(path: Path, flags: int, what: str) -> Iterator[IO[bytes]]:
    """Give an open file of a vault; never through a link."""
    try:
        handle = os.open(path, flags | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "ab" if flags & os.O_APPEND else "rb", buffering=2**20) as file:
            yield file
    except OSError as error:
        problem = error.strerror or type(error).__name__
        raise DataError(
            f"{path} cannot be {what} ({problem}); free some space, or name another folder."
        ) from None


#: Returns the shard numbers of some rows: from the hashes of their units, if they have any, the
#: place of the first of them in the file, and how many there are.
_ShardOf = Callable[[UnsignedArray | None, int, int], IntArray]


def dealt_shards(
    table: StoredTable, vault: Path, n_shards: int, shard_of: _ShardOf, *, rule: str, serial: str
) -> StoredShards:
    """Return the shards of a stored table, dealt now or found in the vault.

    Rows keep their order inside a shard, as in `ensemble.Shards`.

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
    folder, identity = make_vault(vault) / _SHARDS_FOLDER, f"{rule} {table.serial}"
    about = _read_about(folder)
    if about is None or (about.identity, len(about.sizes)) != (identity, n_shards):
        forget_shards(vault)
        files, first = _RowWriter(folder, table.row_type, n_shards), 0
        for rows in table.stored_rows(max(1, _DEALT_BYTES // table.row_type.itemsize)):
            numbers = shard_of(_units_of(rows), first, len(rows))
            order = np.argsort(numbers, kind="stable")
            here = np.bincount(numbers, minlength=n_shards)
            # one file each, hence a loop
            for number, part in enumerate(np.split(order, np.cumsum(here)[:-1])):
                if len(part):
                    files.add(number, rows[part])
            first += len(rows)
        about = files.finish(About(identity=identity, serial=serial))
    return StoredShards(folder, table.cells, table.row_type, about.sizes, about.serial)


def forget_shards(vault: Path) -> None:
    """Remove the shards of a vault: before anything is released, and before others are dealt.

    Raises
    ------
    DataError
        If they are still there: a second release by the same shards would tell whether the table
        has changed in between.
    """
    _remove_folder(vault / _SHARDS_FOLDER)
    if os.path.lexists(vault / _SHARDS_FOLDER / _ABOUT):
        raise DataError(
            f"The shards in {vault / _SHARDS_FOLDER} cannot be removed, and nothing may be released"
            " while they are there; remove that folder, and repeat. Nothing was spent."
        )


def _name_of(number: int) -> str:
    return f"{number:06d}.rows"
