"""Which private record goes to which teacher, or represents its unit, and what ties finished
teachers to their shards."""

from pathlib import Path
from typing import Any

import numpy as np

from secretballot._typing import IntArray, UnsignedArray
from secretballot._validation import RELATIONS, check_choice, check_count, check_probability, shown
from secretballot.core.noise import entropy_bytes
from secretballot.core.partition import (
    KeyedHashPartition,
    PositionPartition,
    shards_of_digests,
)
from secretballot.data.stored import StoredShards, StoredTable, dealt_shards, forget_shards
from secretballot.exceptions import Argument, DataError, Parameter, ParameterError
from secretballot.teachers.records import unit_numbers
from secretballot.vault import read_secret, write_secret

KEY_BYTES = 32
ID_BYTES = 8
RECORD_IDS = "record.ids"
ROWS_TOGETHER = 2**16  # about
PARTS = 10**6  # shares are whole millionths


def assign_shards(
    n_records: int, n_teachers: int, relation: str, units: Any, vault: Path | None
) -> IntArray:
    """Return the shard number of every record.

    Parameters
    ----------
    n_records, n_teachers : int
    relation : {"add-remove", "replace-one"}
    units : array of shape (n_records,) or None
        Ids of the units; None makes every record a unit.
    vault : Path or None
        Where the key and the record ids are kept, so that an interrupted fit finds the same shards
        again. The ids go before anything is released (`forget_records`).

    Privacy
    -------
    Unit : the id, or the record.
    Relation : add/remove: a keyed hash of the id, or of a random id drawn once per record.
        Replace-one: the position.
    Sensitivity : one shard.

    Raises
    ------
    ParameterError
        If `units` are given under replace-one, whose rule knows positions only.
    """
    if relation == "replace-one":
        if units is not None:
            raise _units_under_replace_one()
        return PositionPartition(n_teachers, n_records).assign()
    return shards_of_digests(_digests_of_units(n_records, n_teachers, units, vault), n_teachers)


def _digests_of_units(
    n_records: int, n_teachers: int, units: Any, vault: Path | None
) -> UnsignedArray:
    """Return the keyed hash of every record's unit, uint64 of shape (n_records, 2)."""
    key = entropy_bytes(KEY_BYTES) if vault is None else partition_key(vault)
    ids = units
    if units is None:
        # a collision of two random ids only puts two records in one shard
        raw = _kept_entropy(vault, RECORD_IDS, ID_BYTES * n_records)
        ids = np.frombuffer(raw, dtype=np.uint64) >> np.uint64(1)
    digests = KeyedHashPartition(n_teachers, key).digests(ids)
    if len(digests) != n_records:
        raise DataError(
            Parameter("units"),
            f" has {len(digests)} ids for {n_records} records; give one id for each record.",
        )
    return digests


def hold_out(
    n_records: int,
    share: float,
    *,
    units: Any = None,
    relation: str = "add-remove",
) -> tuple[IntArray, IntArray]:
    """Return the rows for the teachers and the rows held out for a choice.

    Parameters
    ----------
    n_records : int
    share : float
        Share of the units to hold out, about; strictly between 0 and 1, in millionths.
    units : array of shape (n_records,), optional
        Ids: all records of one id go to one side. Without them every record is a unit.
    relation : {"add-remove", "replace-one"}
        Relation of the promise. Units go with add-remove alone.

    Returns
    -------
    taught, held : ndarrays of int64
        Row numbers, ascending.

    Raises
    ------
    ParameterError, DataError
        If a setting is out of its range, an id is missing, or a side comes out empty; rows are
        named, never values.

    Privacy
    -------
    Unit, relation, sensitivity : add-remove: the side of a unit follows from a keyed hash of its id
        (of a random number drawn for a record without one), so that nobody else's side depends on
        it. Replace-one: the side follows from the position. A shuffled or stratified split, or one
        of exactly the share, moves others too when a unit comes.
    Price : none here; the teachers and the choice each have their own, and the ledger adds them up.

    Examples
    --------
    >>> taught, held = sb.hold_out(1000, 0.1, relation="replace-one")
    >>> len(taught), len(held), np.intersect1d(taught, held).size
    (900, 100, 0)
    """
    # Each unit's side must depend on that unit alone: on its position where positions are public,
    # else on a hash of its own id. Exact shares would let one unit move another.
    n = check_count("n_records", n_records)
    parts = round(check_probability("share", share) * PARTS)
    if not 0 < parts < PARTS:
        raise ParameterError(
            Parameter("share"),
            f" is {shown(share)}; it must be at least a millionth from 0 and from 1.",
        )
    if check_choice("relation", relation, RELATIONS) == "replace-one":
        if units is not None:
            raise _units_under_replace_one()
        place = np.arange(n, dtype=np.int64)
        held = (place + 1) * parts // PARTS > place * parts // PARTS
    else:
        held = assign_shards(n, PARTS, relation, units, vault=None) < parts
    if held.all() or not held.any():
        side = "for the teachers" if held.all() else "held out"
        raise DataError(
            f"The split leaves no record {side}; give more records, or a share nearer to 0.5."
        )
    return np.flatnonzero(~held), np.flatnonzero(held)


def assign_stored_shards(
    table: StoredTable, n_teachers: int, relation: str, vault: Path
) -> StoredShards:
    """Return a stored table dealt out to shards, in files of a vault, by the rules of
    `assign_shards`.

    Parameters
    ----------
    table : StoredTable
    n_teachers : int
    relation : {"add-remove", "replace-one"}
    vault : Path
        Where the shards are kept, so that an interrupted fit finds them again. They go before
        anything is released (`forget_records`).

    Privacy
    -------
    As for `assign_shards`; a record without a unit goes to a shard by fresh randomness of its own.

    Raises
    ------
    ParameterError
        If persons are protected under replace-one, or there are more teachers than records there,
        or the table was not given as one file.
    DataError
        If the vault cannot be read or written.
    """
    rule = "record" if table.unit == "record" else "user"
    if relation == "replace-one":
        if rule == "user":
            raise _units_under_replace_one()
        check_positions(single=table.single)
        PositionPartition(n_teachers, table.count_rows())  # refuses too many teachers
        rule = "position"
    return _dealt(table, vault, n_teachers, rule)


def persons_together(table: StoredTable, folder: str | Path) -> StoredShards:
    """Return a stored table dealt out so that all records of a person are in one part, and few
    enough in each to be held at once; no more than an order of the records.

    Parameters
    ----------
    table : StoredTable
        About users.
    folder : path
        Secret; takes the files.
    """
    return _dealt(table, Path(folder), max(1, table.count_rows() // ROWS_TOGETHER), "user")


def _dealt(table: StoredTable, folder: Path, n_shards: int, rule: str) -> StoredShards:
    """Return a stored table dealt out by the hash of a unit, by position, or at random."""

    def shard_of(units: Any, first: int, count: int) -> IntArray:
        if rule == "user":
            return shards_of_digests(units, n_shards)
        if rule == "position":
            return np.arange(first, first + count, dtype=np.int64) % n_shards
        # 64 bits reduced modulo K: the bias between shards is below K / 2**64
        drawn = np.frombuffer(entropy_bytes(ID_BYTES * count), dtype=np.uint64)
        return (drawn % np.uint64(n_shards)).astype(np.int64)

    serial = entropy_bytes(16).hex()
    return dealt_shards(table, folder, n_shards, shard_of, rule=rule, serial=serial)


def _units_under_replace_one() -> ParameterError:
    return ParameterError(
        Parameter("units"),
        " are given with ",
        Argument("relation", "replace-one"),
        ", which splits by position; use 'add-remove' for units.",
    )


def check_positions(*, single: bool) -> None:
    """Refuse shards by position unless the private table was given as one file.

    Raises
    ------
    ParameterError
        If it was not.
    """
    if not single:
        raise ParameterError(
            Argument("relation", "replace-one"),
            " splits by position, and in a folder or a dataset of files a record's position may"
            " follow from what it says; give one file that is not sorted by content, or use"
            " 'add-remove'.",
        )


def partition_key(vault: Path) -> bytes:
    """Return the key of a vault by which units are hashed, drawn now if there is none."""
    return _kept_entropy(vault, "partition.key", KEY_BYTES)


def forget_records(vault: Path) -> None:
    """Remove the record ids and the shards of a stored table, before anything is released: they
    serve to resume one fit and never a second one.

    Two releases over one random partition compose only if a record has the same shard in both
    worlds. Ids that are kept, and drawn anew once the number of records has changed, would tell of
    that change.
    """
    (vault / RECORD_IDS).unlink(missing_ok=True)
    forget_shards(vault)


def _kept_entropy(vault: Path | None, name: str, size: int) -> bytes:
    """Return entropy from the vault if it is there in the wanted size, else draw it and keep it."""
    if vault is None:
        return entropy_bytes(size)
    stored = read_secret(vault / name)
    if stored is None or len(stored) != size:
        stored = entropy_bytes(size)
        write_secret(vault / name, stored)
    return stored


def fresh_key() -> bytes:
    """Return a key for `one_record_each`, drawn at random."""
    return entropy_bytes(KEY_BYTES)


def one_record_each(units: Any, n_records: int, key: bytes | None = None) -> IntArray:
    """Return one row of every unit, ascending: by a fresh keyed hash of its id, so that no other
    unit has a say in it.

    Parameters
    ----------
    units : array of shape (n_records,)
        Ids.
    n_records : int
    key : bytes, optional
        Drawn at random for a whole table of which these records are a part; a fresh one by default.

    Raises
    ------
    DataError
        If an id is missing, or there is not one for each record.

    Privacy
    -------
    Unit : all records of one id.
    Sensitivity : 1 record. Under a fixed key the row taken of a unit depends on its id, on how many
        records it has and on their order among themselves. So when a unit comes, one record comes
        and the others stay: for every key the choice keeps its epsilon, hence also for a key drawn
        at random and kept secret.

    Notes
    -----
    A unit's majority, as for `candidates`, is no sum over records: the two ends of an interval then
    no longer add up to its mistakes.
    """
    # Records of a unit are brought together in their own order; its hash, modulo how many it has,
    # picks one.
    owner = unit_numbers(units, n_records)
    # of 64 bits, so that a remainder is as good as uniform
    hashes = KeyedHashPartition(1, key or fresh_key()).digests(units)[:, 0]
    order = np.argsort(owner, kind="stable")
    starts = np.flatnonzero(np.diff(owner[order], prepend=-1))
    sizes = np.diff(np.append(starts, n_records))
    picked = hashes[order[starts]] % sizes.astype(np.uint64)
    return np.sort(order[starts + picked.astype(np.int64)])
