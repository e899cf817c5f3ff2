"""How often each of some candidates is right on private records: counts by unit that only the
door may read."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from secretballot._typing import IntArray
from secretballot._validation import NEIGHBOURS, check_choice
from secretballot.core.partition import KeyedHashPartition, canonical_id
from secretballot.core.private import Private as Sealed
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


class PrivateScores(Sealed):
    """The number of units on which each candidate is right.

    Private until the door has chosen by it.

    Make one with `of`. Its shape is public and shown, its values are not.

    Attributes
    ----------
    n_candidates : int
        The public shape.
    unit : {"record", "user"}
        What one point of a score stands for: a record, or all records of one id.
    neighbours : {"add-remove", "replace-one"}
        Relation under which every score moves by at most 1.

    Privacy
    -------
    Unit : one record, or all records of one id.
    Sensitivity : 1 for every candidate, whatever the number of a unit's records: a unit counts
        once, if the candidate is right on more than half of its records. Under add-remove all
        scores rise together; under replace-one they may move both ways.

    Examples
    --------
    >>> from secretballot.ensemble.scores import PrivateScores
    >>> PrivateScores.of(np.array([[True, False], [True, True]]))
    PrivateScores(n_candidates=2, values=<private>)
    """

    __slots__ = ("__scores", "neighbours", "unit")
    _refusal = "private scores refuse to {}; choose by them through the door."

    def __init__(self, scores: npt.NDArray[Any], unit: str, neighbours: str) -> None:
        self.__scores = np.asarray(scores, dtype=np.int64)
        self.unit = check_choice("unit", unit, ("record", "user"))
        self.neighbours = check_choice("neighbours", neighbours, NEIGHBOURS)

    @classmethod
    def of(cls, right: Any, units: Any = None, neighbours: str = "add-remove") -> "PrivateScores":
        """Count units.

        Parameters
        ----------
        right : array of bool, shape (n_records, n_candidates)
            Whether each candidate is right on each private record.
        units : array of shape (n_records,), optional
            Ids, as for `unit_numbers`; without them every record is a unit.
        neighbours : {"add-remove", "replace-one"}
            Units go with add-remove alone.

        Raises
        ------
        DataError
            If shapes do not fit, an id is missing, or units are given under replace-one.
        """
        table = np.asarray(right)
        if table.ndim != 2 or table.dtype.kind != "b" or not table.shape[1]:
            raise DataError(
                Parameter("right"),
                f" has shape {table.shape} and dtype {table.dtype}; give true or false,"
                " (n_records, n_candidates).",
            )
        if units is None:
            return cls(table.sum(axis=0), "record", neighbours)
        if neighbours != "add-remove":
            raise DataError(
                Parameter("units"),
                " are given under replace-one, which is about single records; use add-remove.",
            )
        owner = unit_numbers(units, len(table))
        # by the majority of its records, so that a user moves each score by 1 at most
        records = np.bincount(owner)
        hits = np.zeros((len(records), table.shape[1]), dtype=np.int64)
        np.add.at(hits, owner, table)
        return cls((2 * hits > records[:, None]).sum(axis=0), "user", neighbours)

    @classmethod
    def added(cls, parts: Iterable["PrivateScores"]) -> "PrivateScores":
        """Return the scores of a table that comes in parts, of one unit and relation each; all
        records of a unit are in one part."""
        total, unit, neighbours = np.zeros(0, dtype=np.int64), "record", "add-remove"
        for part in parts:
            own = part.open_at_the_door()
            total = own + total if total.size else own
            unit, neighbours = part.unit, part.neighbours
        return cls(total, unit, neighbours)

    @property
    def n_candidates(self) -> int:
        """Number of candidates."""
        return len(self.__scores)

    def open_at_the_door(self) -> IntArray:
        """Return a copy of the scores, shape (n_candidates,), int64; for the door alone.

        Privacy
        -------
        The returned values are private: whoever calls this must draw by them with noise, and pay
        for it.
        """
        return self.__scores.copy()

    def __repr__(self) -> str:
        return f"PrivateScores(n_candidates={self.n_candidates}, values=<private>)"
