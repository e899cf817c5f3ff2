"""A private table that is too large for memory: read once, block by block, checked, and kept in the
vault in few bytes a row."""

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from secretballot._typing import UnsignedArray
from secretballot.core.noise import entropy_bytes
from secretballot.core.partition import KeyedHashPartition
from secretballot.data.frames import class_indices, unit_ids
from secretballot.data.reading import table_blocks
from secretballot.data.schema import Schema
from secretballot.data.sources import Place, TableSource, source_of
from secretballot.data.stored import About, StoredTable, TableWriter, forget_table
from secretballot.exceptions import DataError
from secretballot.learners.training.inputs import declared_classes
from secretballot.learners.training.private_rows import PrivateRows
from secretballot.learners.training.shards import partition_key
from secretballot.runs.questions import Watch
from secretballot.runs.spec import DataSpec
from secretballot.runs.table_match import (
    PRIVATE,
    TableCells,
    check_labelled_columns,
    settle_cells,
)

BLOCK_ROWS = 2**16
#: Places of which each unit marks one; how many are marked shows about how many units there are.
_PLACES = 2**26


@dataclass(frozen=True)
class StoredRecords:
    """What came of reading a private table that is too large for memory.

    Attributes
    ----------
    table : StoredTable or None
        None where it was only looked at.
    n_rows : int
        Private, but under replace-one.
    n_units : int
        About; private.
    columns : tuple of str
        Of the file.
    """

    table: StoredTable | None
    n_rows: int = field(repr=False)
    n_units: int = field(repr=False)
    columns: tuple[str, ...] = field(repr=False)


def read_to_disk(
    data: DataSpec,
    schema: Schema,
    classes: tuple[Any, ...],
    vault: Path | None,
    settle: Callable[[TableCells], None],
    progress: Callable[[int], None],
    beside: PrivateRows | None = None,
) -> StoredRecords:
    """Read a private table block by block, and keep it in a vault unless that is None.

    A table that lies there whole, of the same files by the same settings, was found to be fit
    before, and is not read again.

    Parameters
    ----------
    data : DataSpec
        The table, its target, of one of classes, its unit, and columns that are left out.
    schema : Schema
    classes : tuple
    vault : Path or None
    settle : callable
        Takes which cells could not be read; raises where they are too many.
    progress : callable
        Takes rows read.
    beside : PrivateRows, optional
        Takes all rows, encoded, to compare them with public ones.

    Raises
    ------
    DataError
        If the table cannot be read, or a row has no class, none of the declared, or no unit; or if
        the vault cannot be written. No cell is named.
    """
    writer, partition, identity, place = None, None, "", data.private or ""
    with _kept_whole(place, vault) as source:
        if vault is not None:
            public = schema, classes, data.unit
            identity = _identity(source.digest(), data.target[0], *public)
            found = StoredTable.found(vault, *public, identity)
            if found is not None:
                if beside is not None:
                    beside.add_stored(found)
                return StoredRecords(found, found.count_rows(), found.count_units(), found.columns)
            writer = TableWriter(vault, *public)
        if data.unit is not None:
            # without a vault units are only counted, by a key that nobody needs again
            key = entropy_bytes(32) if vault is None else partition_key(vault)
            partition = KeyedHashPartition(1, key)
        cells, units, columns = TableCells(), _UnitCount(), tuple[str, ...]()
        for frame in table_blocks(place, role=PRIVATE, rows=BLOCK_ROWS):
            first = cells.n_rows
            if not columns:
                columns = tuple(map(str, frame.columns))
                check_labelled_columns(data, frame, schema, role=PRIVATE)
            index = class_indices(frame, data.target[0], classes, role=PRIVATE, first_row=first)
            rows, odd = schema.compact(frame)
            cells.add(frame, odd)
            digests = None
            if data.unit is not None and partition is not None:
                digests = partition.digests(
                    unit_ids(frame, data.unit, role=PRIVATE, first_row=first)
                )
                units.add(digests)
            if beside is not None:
                beside.add(schema.widen(rows), None if digests is None else digests[:, 0])
            if writer is not None:
                writer.add(rows, index, digests)
            progress(cells.n_rows)
        n_units = cells.n_rows if data.unit is None else units.estimate()
        settle(cells)
        table = None
        if writer is not None:
            # last: what is whole in the vault was read from beginning to end and found to be fit
            about = About(
                identity=identity,
                serial=entropy_bytes(16).hex(),
                n_units=n_units,
                columns=columns,
                single=source.single,
            )
            table = writer.finish(about)
    return StoredRecords(table, cells.n_rows, n_units, columns)


def _identity(
    digest: str, target: str, schema: Schema, classes: tuple[Any, ...], unit: str | None
) -> str:
    """Return a digest of all that shapes the rows; private, as it depends on the files."""
    named = [digest, target, unit, list(classes), schema.to_json()]
    return hashlib.sha256(json.dumps(named, default=str).encode()).hexdigest()


@contextmanager
def _kept_whole(place: Place, vault: Path | None) -> Iterator[TableSource]:
    """Refuse files that change while they are read; of what is refused no table stays."""
    # what is reported of the files is reported before they are read
    source = source_of(place, role=PRIVATE)
    before = source.signatures()
    try:
        yield source
        if source_of(place, role=PRIVATE).signatures() != before:
            raise DataError(
                f"The {PRIVATE} {source.shown!r} was changed while it was read; repeat once nothing"
                " writes to it."
            )
    except DataError:
        if vault is not None:
            forget_table(vault)
        raise


def store_table(
    place: Place,
    vault: str | Path,
    *,
    schema: Schema,
    target: str,
    classes: Sequence[Any],
    unit: str | None = None,
    drop: Sequence[str] = (),
    accept_unseen: Sequence[str] = (),
    progress: Callable[[int], None] | None = None,
) -> StoredTable:
    """Read a private table that may be larger than memory, and keep it in a vault to learn from.

    Rows are encoded one by one, by public knowledge alone, and kept in few bytes each: numbers as
    they are, categories as codes. A learner that gets the stored table as `X`, and no `y`, reads it
    block by block.

    Parameters
    ----------
    place : path or URL
        A CSV or Parquet file, a folder of Parquet files (Hive's partitions too), or a URL of either
        by any file system of pyarrow or fsspec.
    vault : path
        Secret folder, made with mode 0700 where absent; holds the rows in the clear, in its folder
        "table". The same call finds a table there that is whole and of the same files.
    schema : Schema
        From public rows, or declared.
    target : str
        Column with the class.
    classes : sequence of two or more values
        Public; never inferred from the private labels.
    unit : str, optional
        Column with the id of the person that a record belongs to. In its place a keyed hash of 128
        bits is kept.
    drop : sequence of str
        Columns that are left out.
    accept_unseen : sequence of str
        Columns that may be as they are though most of their cells do not fit the schema.
    progress : callable, optional
        Takes the number of rows read.

    Returns
    -------
    StoredTable

    Raises
    ------
    DataError
        If the table cannot be read, or does not fit; or if the vault cannot be written. No cell is
        named.

    Privacy
    -------
    Price : none; nothing leaves the vault until a learner's release is paid for.
    Sensitivity : a row on disk is a function of one record and public values; with `unit`, of the
        key of the vault, too. Two persons share a hash with a probability below n^2 / 2^129, over
        the key and whatever the data are; they then count as one.

    Examples
    --------
    >>> import pandas as pd, pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> rows = pd.DataFrame({"age": range(20, 80), "ill": ["no", "yes"] * 30})
    >>> rows.to_csv(folder / "private.csv", index=False)
    >>> schema = sb.data.Schema.infer(pd.DataFrame({"age": ["30", "50", "70"]}))
    >>> sb.store_table(folder / "private.csv", folder / "vault",
    ...     schema=schema, target="ill", classes=["no", "yes"])
    StoredTable(n_columns=1, classes=['no', 'yes'], unit='record', records=<private>)
    """
    named = {"target": (target,), "unit": unit, "drop": drop, "accept_unseen": accept_unseen}
    data = DataSpec.of_tree({"private": place, **named})

    def settle(cells: TableCells) -> None:
        # a watch that nobody listens to: what is noted of private cells goes nowhere
        settle_cells(schema, cells, Watch(), role=PRIVATE, accepted=data.accept_unseen)

    notice = progress or (lambda rows: None)
    read = read_to_disk(data, schema, tuple(declared_classes(classes)), Path(vault), settle, notice)
    assert read.table is not None
    return read.table


class _UnitCount:
    """About how many different units there are, in little memory (linear counting, Whang et al.
    1990: a ten-thousandth off at 50 million)."""

    def __init__(self) -> None:
        self._marked = np.zeros(_PLACES, dtype=np.bool_)

    def add(self, digests: UnsignedArray) -> None:
        """Add units by their hashes, shape (n_rows, 2)."""
        self._marked[digests[:, 0] % np.uint64(_PLACES)] = True

    def estimate(self) -> int:
        """Return the number of different units, about."""
        empty = _PLACES - int(np.count_nonzero(self._marked))
        return round(-_PLACES * math.log(max(1, empty) / _PLACES))
