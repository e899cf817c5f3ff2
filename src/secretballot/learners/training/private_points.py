"""Public points that are private records.

Whether they are refused may depend on private records, so the refusal is not for publication
(`docs/explanation/threat-model.md`).
"""

from typing import Any

from secretballot.ensemble.stored_table import StoredTable
from secretballot.exceptions import DataError
from secretballot.learners.training.record_digests import (
    RecordDigests,
    record_digests,
    rows_among_stored,
)

__all__ = ["private_points", "refuse_private_points", "refuse_stored_points"]

#: Share of the public points above which they count as private records; there must be so many of
#: them, since a few points of a small world are among the records by chance.
SAME_POINTS, LEAST_POINTS = 0.9, 50
LEAST_ROWS = 20  # of two tables of the same rows


def refuse_private_points(X: Any, X_public: Any, *, same: bool = False) -> None:
    """Refuse public points that are the private records.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n_records, n_features)
        Private, with public types.
    X_public : like X, of shape (n_public, n_features), or None
    same : bool
        Whether both tables were given as one object.

    Raises
    ------
    DataError
        If the public points are the private records.
    """
    if X_public is not None and _are_records(record_digests(X), X_public, same=same):
        raise private_points()


def refuse_stored_points(table: StoredTable, X_public: Any) -> None:
    """Refuse public points that are the rows of a stored table.

    Parameters
    ----------
    table : StoredTable
    X_public : array or sparse matrix of shape (n_public, n_features), or None

    Raises
    ------
    DataError
        If the public points are the private records.
    """
    points = None if X_public is None else record_digests(X_public)
    if points is not None and _are_stored_records(points, table):
        raise private_points()


def private_points() -> DataError:
    """Return the refusal of public points that are the private records."""
    return DataError(
        "X_public holds the private records themselves, and public points are published; give"
        " points that are known to everybody, or, if the features are public and the labels"
        " alone private, take LabelPrivateClassifier. Nothing was spent."
    )


def _are_stored_records(points: RecordDigests, table: StoredTable) -> bool:
    """Return the like of `_are_records` for the rows of a table on disk, which are looked at block
    by block."""
    tell = points.n_single >= LEAST_POINTS and points.n_columns > 1
    if not tell and points.n_rows < LEAST_ROWS:
        return False
    equal, single = rows_among_stored(points, table)
    return (points.n_rows >= LEAST_ROWS and equal) or (tell and single >= SAME_POINTS)


def _are_records(records: RecordDigests | None, X_public: Any, *, same: bool) -> bool:
    """Return whether public points are private records: all rows alike, or, of many points that
    occur once, nine in ten that occur once among the records too."""
    if same or records is None:
        return same
    points = record_digests(X_public)
    if points is None:
        return False
    # in a single column, numbers meet by chance
    tell = points.n_single >= LEAST_POINTS and points.n_columns > 1
    equal = points.n_rows >= LEAST_ROWS and points.same_rows(records)
    return equal or (
        tell and points.n_single <= records.n_single and points.shared(records) >= SAME_POINTS
    )
