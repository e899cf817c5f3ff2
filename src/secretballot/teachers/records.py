"""Votes of records: each gives its class to the public points nearest to it."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from secretballot._points import NearestPoints
from secretballot._typing import BoolArray, IntArray
from secretballot.core.partition import KeyedHashPartition, canonical_id
from secretballot.core.private import Votes
from secretballot.core.types import Guarantee, VoteShape
from secretballot.exceptions import DataError, Parameter, ParameterError


def record_votes_shape(
    n_queries: int,
    n_classes: int,
    votes_per_record: int,
    guarantee: Guarantee,
    *,
    counts_uncovered: bool = False,
) -> VoteShape:
    """Return the shape of votes that records cast for themselves, as `votes_of_records` does.

    Raises
    ------
    ParameterError
        If a record would vote for more points than there are.
    """
    if not votes_per_record <= n_queries:
        raise ParameterError(
            Parameter("votes_per_record"),
            f" is {votes_per_record}, and {n_queries} public points take votes; let a record vote"
            " for no more points than there are.",
        )
    replaced = guarantee.relation == "replace-one"
    return VoteShape(
        guarantee=guarantee,
        n_queries=n_queries,
        n_classes=n_classes,
        n_teachers=None,
        # one that is replaced takes votes away and brings others
        moved=2 * votes_per_record if replaced else votes_per_record,
        spare_rows=-(-votes_per_record // n_classes) if counts_uncovered else 0,
    )


def votes_of_records(
    records: Iterable[tuple[IntArray, IntArray] | tuple[IntArray, IntArray, BoolArray]],
    nearest: NearestPoints,
    classes: Sequence[Any],
    guarantee: Guarantee,
    *,
    counts_uncovered: bool = False,
) -> Votes:
    """Let every record vote, once at each of the `nearest.k` public points nearest to it.

    Parameters
    ----------
    records : iterable of (coordinates, class index) or (coordinates, class index, covered)
        Integers of shape (n, n_coordinates) and (n,), block by block. Of every unit one record.
        Where uncovered records are distinguished, also whether the public points cover each, bools
        of shape (n,).
    nearest : NearestPoints
        The public points.
    classes : sequence of length C
        Every class value, declared and not taken from the records.
    guarantee : Guarantee
    counts_uncovered : bool
        Whether uncovered records are separate: such a record votes at no public point, and once
        in each of the first `nearest.k` cells of the spare rows.

    Examples
    --------
    >>> from secretballot._points import NearestPoints
    >>> from secretballot.core.types import Guarantee
    >>> from secretballot.teachers.records import votes_of_records
    >>> nearest = NearestPoints(np.array([[0], [10], [20]]), k=2)
    >>> records, classes = np.array([[4], [17]]), np.array([0, 1])
    >>> promise = Guarantee(unit="record", relation="add-remove")
    >>> votes_of_records([(records, classes)], nearest, ["no", "yes"], promise).shape.moved
    2
    """
    n_classes = len(classes)

    def cells() -> Iterator[IntArray]:
        for coordinates, index, *more in records:
            voted, beyond = np.asarray(index), np.zeros(len(index), dtype=np.bool_)
            if counts_uncovered:
                (covered,) = more
                beyond = ~np.asarray(covered, dtype=bool)
            named = nearest.of(coordinates) * n_classes + voted[:, None]
            named[beyond] = nearest.n_points * n_classes + np.arange(nearest.k)
            yield named

    return Votes.of_records(
        cells(),
        guarantee,
        n_queries=nearest.n_points,
        n_classes=n_classes,
        votes_per_record=nearest.k,
        spare_rows=-(-nearest.k // n_classes) if counts_uncovered else 0,
        classes=classes,
    )


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
    known: dict[bytes, int] = {}
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
    table = np.asarray(right, dtype=bool)
    if units is not None:
        owner = unit_numbers(units, len(table))
        # by the majority of its records, so that a user moves each score by 1 at most
        records = np.bincount(owner)
        hits = np.zeros((len(records), table.shape[1]), dtype=np.int64)
        np.add.at(hits, owner, table)
        table = 2 * hits > records[:, None]
    counted: IntArray = table.sum(axis=0, dtype=np.int64)
    return counted
