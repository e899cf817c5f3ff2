"""A stored table dealt out to shards: one file for each, which its teacher alone reads."""

import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from secretballot._json_files import LARGEST_JSON, json_fields
from secretballot._typing import AnyArray, IntArray, UnsignedArray
from secretballot.exceptions import DataError
from secretballot.teachers.stored_table import (
    Cells,
    RowBlock,
    RowFile,
    StoredTable,
    block_of,
    read_rows,
    remove_folder,
    sparse_part,
    units_of,
)
from secretballot.vault import make_vault, read_secret, write_secret

#: Returns the shard numbers of some rows: from the hashes of their units, if they have any, the
#: place of the first of them in the file, and how many there are.
ShardOf = Callable[[UnsignedArray | None, int, int], IntArray]

FOLDER, ABOUT = "shards", "about.json"
_FORMAT, _VERSION = "secretballot/shards", 1
_FIELDS = {
    "format": str,
    "version": int,
    "table": str,
    "rule": str,
    "serial": str,
    "sizes": list,
}
_DEALT_BYTES = 2**26  # of rows that are sorted at once


@dataclass(frozen=True, eq=False, repr=False)
class StoredShards:
    """Shards of a stored table, in files of a vault: a small handle that any process which sees
    the folder can read them by.

    Attributes
    ----------
    folder : Path
    cells : Cells
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
    cells: Cells
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
        # by the file that every dealing has: what a single shard holds, or lacks, has no say
        if not (self.folder / ABOUT).is_file():
            raise DataError(
                f"A worker does not see the shards in {self.folder}; put the vault on storage that"
                " all workers share, or let the shards be sent to them (send_shards,"
                " --send-shards). Nothing was spent."
            )
        return _encoded_part(self._rows_of_shard(number), self.cells, self.sparse)

    def loader(self, number: int, *, send: bool) -> Callable[[], tuple[Any, IntArray]]:
        """Return what a worker needs to have a shard: where it lies, or its rows in as few bytes
        as on disk."""
        if send:
            return partial(_encoded_part, self._rows_of_shard(number), self.cells, self.sparse)
        return partial(self.part, number)

    def block(self, number: int) -> RowBlock:
        """Return one shard, with the units of its rows."""
        return block_of(self._rows_of_shard(number), self.cells)

    def _rows_of_shard(self, number: int) -> AnyArray:
        """Return the rows of one shard as they are kept."""
        size, path = self.sizes[number], self.folder / _name_of(number)
        if not size:
            return np.empty(0, dtype=self.row_type)
        (rows,) = read_rows(path, self.row_type, size, size)
        return rows

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
    folder = make_vault(vault) / FOLDER
    about = {"format": _FORMAT, "version": _VERSION, "table": table.serial, "rule": rule}
    kept = _kept_dealing(folder, table, n_shards, about)
    if kept is not None:
        return kept
    forget_shards(vault)
    make_vault(folder)
    sizes, first, files = np.zeros(n_shards, dtype=np.int64), 0, dict[int, RowFile]()
    for rows in table.stored_rows(max(1, _DEALT_BYTES // table.row_type.itemsize)):
        numbers = shard_of(units_of(rows), first, len(rows))
        order, here = np.argsort(numbers, kind="stable"), np.bincount(numbers, minlength=n_shards)
        ends = np.cumsum(here)
        # one file each, hence a loop
        for number in np.flatnonzero(here).tolist():
            part = order[ends[number] - here[number] : ends[number]]
            if number not in files:
                files[number] = RowFile(folder / _name_of(number))
            files[number].add(rows[part])
        sizes, first = sizes + here, first + len(rows)
    for file in files.values():
        file.finish()
    about |= {"serial": serial, "sizes": sizes.tolist()}
    # last, as it vouches for all the others
    write_secret(folder / ABOUT, json.dumps(about).encode())
    return StoredShards(folder, table.cells, table.row_type, tuple(sizes.tolist()), serial)


def forget_shards(vault: Path) -> None:
    """Remove the shards of a vault: before anything is released, and before others are dealt.

    Raises
    ------
    DataError
        If they are still there: a second release by the same shards would tell whether the table
        has changed in between.
    """
    remove_folder(vault / FOLDER, ABOUT)
    if os.path.lexists(vault / FOLDER / ABOUT):
        raise DataError(
            f"The shards in {vault / FOLDER} cannot be removed, and nothing may be released while"
            " they are there; remove that folder, and repeat. Nothing was spent."
        )


def _kept_dealing(
    folder: Path, table: StoredTable, n_shards: int, expected: Mapping[str, object]
) -> StoredShards | None:
    """Return shards that lie in a folder whole, of this table, by this rule and of this number."""
    content = None
    with suppress(DataError):
        content = read_secret(folder / ABOUT, largest=LARGEST_JSON)
    about = None if content is None else json_fields(content, _FIELDS)
    if about is None or any(about[name] != value for name, value in expected.items()):
        return None
    sizes = about["sizes"]
    if len(sizes) != n_shards or not all(type(size) is int and size >= 0 for size in sizes):
        return None
    return StoredShards(folder, table.cells, table.row_type, tuple(sizes), about["serial"])


def _encoded_part(rows: AnyArray, cells: Cells, sparse: bool) -> tuple[Any, IntArray]:
    """Return kept rows of a shard as its teacher gets them, and the indices of their classes."""
    if sparse:
        return sparse_part(rows, cells)
    block = block_of(rows, cells)
    return block.X, block.classes


def _name_of(number: int) -> str:
    return f"{number:06d}.rows"
