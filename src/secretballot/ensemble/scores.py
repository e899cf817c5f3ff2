"""How often each of some candidates is right on private records, by unit."""

from typing import Any

import numpy as np

from secretballot._typing import IntArray
from secretballot.core.partition import KeyedHashPartition, canonical_id
from secretballot.exceptions import DataError, Parameter


def unit_numbers(units: Any, n_records: int) -> IntArray:
    """Return a number for the unit of every record: 0, 1, ... in the order of their first records.

    Private.

    Parameters
    ----------
    units : array-like of shape (n_records,)
        Ids as `KeyedHashPartition.assign` takes them: 7, 7.0 and "7" are one unit.
    n_records : int

    Returns
    -------
    ndarray of int64, shape (n_records,)

    Raises
    ------
    DataError
        If an id is missing or is none, or there is not one for each record; the message names row
        numbers only.
    """
    found = len(KeyedHashPartition(1, bytes(16)).assign(units))  # refuses what is no id
    if found != n_records:
        raise DataError(
            Parameter("units"),
            f" has {found} ids for {n_records} records; give one id for each record.",
        )
    column = units.to_numpy() if hasattr(units, "to_numpy") else units
    known: dict[bytes | None, int] = {}
    ids = (
        canonical_id(value) for value in (column.tolist() if hasattr(column, "tolist") else column)
    )
    return np.array([known.setdefault(one, len(known)) for one in ids], dtype=np.int64)


def right_units(right: Any, units: Any = None) -> IntArray:
    """Return on how many units each candidate is right: private.

    Parameters
    ----------
    right : array of bool, shape (n_records, n_candidates)
        Whether each candidate is right on each private record.
    units : array of shape (n_records,), optional
        Ids, as for `unit_numbers`; without them every record is a unit.

    Returns
    -------
    ndarray of int64, shape (n_candidates,)

    Raises
    ------
    DataError
        If shapes do not fit, or an id is missing.

    Privacy
    -------
    Sensitivity : 1 for every candidate, whatever the number of a unit's records: a unit counts
        once, if the candidate is right on more than half of its records.
    """
    table = np.asarray(right)
    if table.ndim != 2 or table.dtype.kind != "b" or not table.shape[1]:
        raise DataError(
            Parameter("right"),
            f" has shape {table.shape} and dtype {table.dtype}; give true or false,"
            " (n_records, n_candidates).",
        )
    if units is not None:
        owner = unit_numbers(units, len(table))
        # by the majority of its records, so that a user moves each score by 1 at most
        records = np.bincount(owner)
        hits = np.zeros((len(records), table.shape[1]), dtype=np.int64)
        np.add.at(hits, owner, table)
        table = 2 * hits > records[:, None]
    counted: IntArray = table.sum(axis=0, dtype=np.int64)
    return counted
