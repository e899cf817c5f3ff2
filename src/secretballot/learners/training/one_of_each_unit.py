"""One record of every unit, chosen so that no other unit has a say in it."""

from typing import Any

import numpy as np

from secretballot._typing import IntArray
from secretballot.core.noise import entropy_bytes
from secretballot.core.partition import KeyedHashPartition
from secretballot.teachers.records import unit_numbers

KEY_BYTES = 32


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
