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

from secretballot.ensemble.scores import unit_numbers
from secretballot.ensemble.stored_table import StoredTable
from secretballot.exceptions import DataError, RepeatedFitWarning
from secretballot.learners.training.inputs import n_rows
from secretballot.learners.training.private_rows import PrivateRows
from secretballot.learners.training.record_digests import (
    RecordDigests,
    digests_of_stored,
    record_digests,
)
from secretballot.learners.training.surroundings import is_in_search
from secretballot.privacy.ledger import Ledger

__all__ = ["NotedFit", "noted_fit", "noted_stored_fit", "private_points"]

MOST_REMEMBERED = 64  # fits
#: Share of the records above which two tables count as the same people.
SAME_RECORDS = 0.1

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
    X: Any, X_public: Any, account: Ledger, *, alone: bool, same: bool = False, units: Any = None
) -> NotedFit:
    """Refuse public points that are private records, warn of a repeated fit, and return what notes
    its payment.

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
    units : array of shape (n_records,), optional
        Ids of the units, as `KeyedHashPartition.assign` takes them.

    Raises
    ------
    DataError
        If public points are private records, more of them than chance explains.

    Warns
    -----
    RepeatedFitWarning
        If these records, or a tenth of them, were fitted before on another account; or, without a
        ledger, in a cross-validation or a search.
    """
    if X_public is not None and _are_records(X, X_public, units, same=same):
        raise private_points()
    return _warned_fit(record_digests(X), account, alone=alone)


def noted_stored_fit(
    table: StoredTable, X_public: Any, account: Ledger, *, alone: bool
) -> NotedFit:
    """Refuse public points that are rows of a stored table, warn of a repeated fit of it, and
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
        As for `noted_fit`.

    Warns
    -----
    RepeatedFitWarning
        As `noted_fit` does.
    """
    if X_public is not None:
        rows = PrivateRows([X_public])
        rows.add_stored(table)
        if rows.hold(0):
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
    """Return the refusal of public points that are private records."""
    return DataError(
        "X_public holds private records, more of them than chance explains, and public points are"
        " published; give points that are known to everybody, and X with all its equal rows, or,"
        " if the features are public and the labels alone private, take LabelPrivateClassifier."
        " Nothing was spent."
    )


def _same_people(one: RecordDigests, other: RecordDigests) -> bool:
    if one.n_columns != other.n_columns:
        return False
    return one.same_rows(other) or one.shared(other) >= SAME_RECORDS


def _are_records(X: Any, X_public: Any, units: Any, *, same: bool) -> bool:
    """Return whether private records are among the public points, more than chance explains."""
    rows = PrivateRows([X_public])
    rows.add(X, None if units is None else unit_numbers(units, n_rows(X)))
    return same or rows.hold(0)
