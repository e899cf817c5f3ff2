"""Fits of the same private records in one process, and public points that are private ones.

Nothing here changes what is released: it warns the curator, or refuses. Whether it does may depend
on private records, so neither the warning nor the refusal is for publication
(`docs/explanation/threat-model.md`).
"""

import sys
import warnings
from collections import deque
from dataclasses import dataclass
from typing import Any

from secretballot.ensemble.stored_table import StoredTable
from secretballot.exceptions import DataError, RepeatedFitWarning
from secretballot.learners.training.record_digests import (
    RecordDigests,
    digests_of_stored,
    record_digests,
    rows_among_stored,
)
from secretballot.learners.training.surroundings import is_in_search
from secretballot.privacy.ledger import Ledger

__all__ = ["NotedFit", "noted_fit", "noted_stored_fit", "private_points"]

MOST_REMEMBERED = 64  # fits
#: Share of the records above which two tables count as the same people.
SAME_RECORDS = 0.1
#: Share of the public points above which they count as private records; there must be so many of
#: them, since a few points of a small world are among the records by chance.
SAME_POINTS, LEAST_POINTS = 0.9, 50
LEAST_ROWS = 20  # of two tables of the same rows

_PACKAGE = "secretballot."
_SEARCH = (
    "This fit is one of a cross-validation or a search, and every fit of it spends a budget of its"
    " own, which its certificate does not add up."
)
_AGAIN = (
    "Some of these private records were fitted before in this process, on another account: what"
    " was promised about them adds up, and no certificate says so."
)
_MEND = (
    " Give all fits one ledger=, choose settings on public or synthetic data, or by hold_out and"
    " choose_candidate."
)


@dataclass(frozen=True, eq=False)
class _Remembered:
    digests: RecordDigests
    account: str


_remembered: deque[_Remembered] = deque(maxlen=MOST_REMEMBERED)


class NotedFit:
    """A fit that begins; tell it when its price was paid."""

    def __init__(self, digests: RecordDigests | None, account: str) -> None:
        self._digests, self._account = digests, account

    def paid(self) -> None:
        """Remember, in this process alone, that these records were fitted."""
        if self._digests is not None:
            _remembered.append(_Remembered(self._digests, self._account))


def noted_fit(
    X: Any, X_public: Any, account: Ledger, *, alone: bool, same: bool = False
) -> NotedFit:
    """Refuse public points that are the private records, warn of a repeated fit, and return what
    notes its payment.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n_records, n_features)
        Private, with public types.
    X_public : like X, of shape (n_public, n_features), or None
        None where there are no public points, or where the features of all records are public.
    account : Ledger
        What pays.
    alone : bool
        Whether it is an account of this fit alone.
    same : bool
        Whether both tables were given as one object.

    Raises
    ------
    DataError
        If the public points are the private records.

    Warns
    -----
    RepeatedFitWarning
        If these records, or a tenth of them, were fitted before on another account; or, without a
        ledger, in a cross-validation or a search.
    """
    digests = record_digests(X)
    if X_public is not None and _are_records(digests, X_public, same=same):
        raise private_points()
    return _warned_fit(digests, account, alone=alone)


def noted_stored_fit(
    table: StoredTable, X_public: Any, account: Ledger, *, alone: bool
) -> NotedFit:
    """Refuse public points that are the rows of a stored table, warn of a repeated fit of it, and
    return what notes its payment.

    Only the same file, stored by the same settings, is known again.

    Parameters
    ----------
    table : StoredTable
    X_public : array or sparse matrix of shape (n_public, n_features), or None
    account, alone
        As for `noted_fit`.

    Raises
    ------
    DataError
        If the public points are the private records.

    Warns
    -----
    RepeatedFitWarning
        As `noted_fit` does.
    """
    points = None if X_public is None else record_digests(X_public)
    if points is not None and _are_stored_records(points, table):
        raise private_points()
    return _warned_fit(digests_of_stored(table), account, alone=alone)


def _warned_fit(digests: RecordDigests | None, account: Ledger, *, alone: bool) -> NotedFit:
    own = account.account  # a digest: taken once, not for every fit that is remembered
    again = digests is not None and any(
        one.account != own and _same_people(one.digests, digests) for one in _remembered
    )
    # a search with one ledger is added up, and the ledger refuses what goes beyond it
    searched = alone and is_in_search()
    if again or searched:
        warnings.warn(
            (_AGAIN if again else _SEARCH) + _MEND,
            RepeatedFitWarning,
            stacklevel=_level_of_caller(),
        )
    return NotedFit(digests, own)


def _level_of_caller() -> int:
    """Return how far up the stack, from whoever calls this, the first frame of another package
    is."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    return level


def private_points() -> DataError:
    """Return the refusal of public points that are the private records."""
    return DataError(
        "X_public holds the private records themselves, and public points are published; give"
        " points that are known to everybody, or, if the features are public and the labels"
        " alone private, take LabelPrivateClassifier. Nothing was spent."
    )


def _same_people(one: RecordDigests, other: RecordDigests) -> bool:
    if one.n_columns != other.n_columns:
        return False
    return one.same_rows(other) or one.shared(other) >= SAME_RECORDS


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
