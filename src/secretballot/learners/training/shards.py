"""Which private record goes to which teacher, and what ties finished teachers to their shards."""

from pathlib import Path
from typing import Any

import joblib
import numpy as np

from secretballot._typing import IntArray
from secretballot.ensemble.partition import KeyedHashPartition, PositionPartition
from secretballot.exceptions import Argument, DataError, Parameter, ParameterError
from secretballot.privacy.noise import entropy_bytes
from secretballot.vault import read_secret, write_secret

__all__ = ["assign_shards", "fingerprint", "forget_records", "learner_identity"]

KEY_BYTES = 32
ID_BYTES = 8
RECORD_IDS = "record.ids"


def assign_shards(
    n_records: int, n_teachers: int, neighbours: str, units: Any, vault: Path | None
) -> IntArray:
    """Return the shard number of every record.

    Parameters
    ----------
    n_records, n_teachers : int
    neighbours : {"add-remove", "replace-one"}
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
    if neighbours == "replace-one":
        if units is not None:
            raise ParameterError(
                Parameter("units"),
                " are given with ",
                Argument("neighbours", "replace-one"),
                ", which splits by position; use 'add-remove' for units.",
            )
        return PositionPartition(n_teachers, n_records).assign()
    key = _kept_entropy(vault, "partition.key", KEY_BYTES)
    ids = units
    if units is None:
        # a collision of two random ids only puts two records in one shard
        raw = _kept_entropy(vault, RECORD_IDS, ID_BYTES * n_records)
        ids = np.frombuffer(raw, dtype=np.uint64) >> np.uint64(1)
    shards = KeyedHashPartition(n_teachers, key).assign(ids)
    if len(shards) != n_records:
        raise DataError(
            Parameter("units"),
            f" has {len(shards)} ids for {n_records} records; give one id for each record.",
        )
    return shards


def forget_records(vault: Path) -> None:
    """Remove the record ids, before anything is released: they serve to resume one fit and never a
    second one.

    Two releases over one random partition compose only if a record has the same shard in both
    worlds. Ids that are kept, and drawn anew once the number of records has changed, would tell of
    that change.
    """
    (vault / RECORD_IDS).unlink(missing_ok=True)


def _kept_entropy(vault: Path | None, name: str, size: int) -> bytes:
    """Return entropy from the vault if it is there in the wanted size, else draw it and keep it."""
    if vault is None:
        return entropy_bytes(size)
    stored = read_secret(vault / name)
    if stored is None or len(stored) != size:
        stored = entropy_bytes(size)
        write_secret(vault / name, stored)
    return stored


def fingerprint(
    teacher: Any, X: Any, y: IntArray, shards: IntArray, random_state: int | None
) -> str:
    """Return a digest of everything that teachers depend on; private, it stays in the vault.

    Parameters
    ----------
    teacher : classifier
    X : array, sparse matrix or frame of shape (n_records, n_features)
    y, shards : ndarray of int64, shape (n_records,)
    random_state : int or None
    """
    return str(
        joblib.hash((learner_identity(teacher), X, y, shards, random_state), hash_name="sha1")
    )


def learner_identity(learner: Any) -> str:
    """Return a digest of an unfitted learner with its settings, the same in every process."""
    try:
        return str(joblib.hash(learner, hash_name="sha1"))
    except Exception:
        # a learner that cannot be pickled cannot be kept either; its settings must do
        return repr(learner)
