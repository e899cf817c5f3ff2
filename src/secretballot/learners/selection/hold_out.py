"""Set private records aside, by a rule under which one unit is on one side only."""

from typing import Any

import numpy as np

from secretballot._typing import IntArray
from secretballot._validation import RELATIONS, check_choice, check_count, check_probability, shown
from secretballot.core.noise import entropy_bytes
from secretballot.core.partition import KeyedHashPartition
from secretballot.exceptions import Argument, DataError, Parameter, ParameterError

KEY_BYTES = 32
PARTS = 10**6  # shares are whole millionths


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
            raise ParameterError(
                Parameter("units"),
                " are given with ",
                Argument("relation", "replace-one"),
                ", which splits by position.",
            )
        place = np.arange(n, dtype=np.int64)
        held = (place + 1) * parts // PARTS > place * parts // PARTS
    else:
        held = _hashed_parts(n, units) < parts
    if held.all() or not held.any():
        side = "for the teachers" if held.all() else "held out"
        raise DataError(
            f"The split leaves no record {side}; give more records, or a share nearer to 0.5."
        )
    return np.flatnonzero(~held), np.flatnonzero(held)


def _hashed_parts(n_records: int, units: Any) -> IntArray:
    """Return a number from 0 to PARTS - 1 for every record, the same for all records of a unit."""
    if units is None:
        # a secret number of its own for each record, so that no other record moves it
        units = np.frombuffer(entropy_bytes(8 * n_records), dtype=np.uint64) >> np.uint64(1)
    parts = KeyedHashPartition(PARTS, entropy_bytes(KEY_BYTES)).assign(units)
    if len(parts) != n_records:
        raise DataError(
            Parameter("units"),
            f" has {len(parts)} ids for {n_records} records; give one id for each record.",
        )
    return parts
