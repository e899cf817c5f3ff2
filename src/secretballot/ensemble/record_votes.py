"""Votes of records: each gives its class to the public points nearest to it."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from secretballot._nearest_points import NearestPoints
from secretballot._typing import BoolArray, IntArray
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
        Where uncovered records are told apart, also whether the public points cover each, bools
        of shape (n,).
    nearest : NearestPoints
        The public points.
    classes : sequence of length C
        Every class value, declared and not taken from the records.
    guarantee : Guarantee
    counts_uncovered : bool
        Whether uncovered records are told apart: such a record votes at no public point, and once
        in each of the first `nearest.k` cells of the spare rows.

    Raises
    ------
    DataError
        If coordinates or indices do not fit; no value is named.

    Examples
    --------
    >>> from secretballot._nearest_points import NearestPoints
    >>> from secretballot.core.types import Guarantee
    >>> from secretballot.ensemble.record_votes import votes_of_records
    >>> nearest = NearestPoints(np.array([[0], [10], [20]]), k=2)
    >>> records, classes = np.array([[4], [17]]), np.array([0, 1])
    >>> promise = Guarantee(unit="record", relation="add-remove")
    >>> votes_of_records([(records, classes)], nearest, ["no", "yes"], promise).shape.moved
    2
    """
    n_classes = len(classes)

    def cells() -> Iterator[IntArray]:
        for coordinates, index, *more in records:
            voted = np.asarray(index)
            if voted.shape != (len(coordinates),) or (
                len(voted) and not (voted.min() >= 0 and voted.max() < n_classes)
            ):
                raise DataError("Records and their class indices do not fit together.")
            beyond = np.zeros(len(voted), dtype=np.bool_)
            if counts_uncovered:
                covered = np.asarray(more[0] if more else None)
                if covered.dtype != bool or covered.shape != voted.shape:
                    raise DataError("It is not said of every record whether it is covered.")
                beyond = ~covered
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
