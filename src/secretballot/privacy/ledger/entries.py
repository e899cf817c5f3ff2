"""How reservations and stored answers are read out of a ledger."""

from dataclasses import replace
from typing import Any

from secretballot.exceptions import LedgerError
from secretballot.privacy.ledger.following import is_answer, reserved_in
from secretballot.privacy.ledger.store import Transaction
from secretballot.privacy.ledger.terms import LedgerEntry, in_brief

_ENTRIES = """
SELECT id, request, purpose, events, epsilon, delta,
       coalesce(state, 'reserved'), reserved_at, closed_at, released_sha256, reason,
       (SELECT coalesce(max(number), 0) FROM part WHERE reservation = id)
FROM reservation LEFT JOIN closing ON reservation = id
"""
_ANSWER = """
SELECT released, released_sha256
FROM closing JOIN reservation ON reservation = id
WHERE request = ? AND state = 'committed'
"""
_STATE = (
    "SELECT coalesce(state, 'reserved') FROM reservation LEFT JOIN closing ON reservation = id"
    " WHERE request = ?"
)

_KNOWN = {
    "committed": "was answered already; use the stored answer, which is public",
    "reserved": (
        "is being drawn or was interrupted, and stays spent; ask under another key to pay for it"
        " again"
    ),
    "forfeited": "was forfeited and stays spent; ask under another key to pay for it again",
}


def entries_of(transaction: Transaction, where: str) -> list[LedgerEntry]:
    """Return every reservation, oldest first."""
    return [_entry_of_row(where, *row) for row in transaction.execute(f"{_ENTRIES} ORDER BY id")]


def entry_of(transaction: Transaction, request: str, where: str) -> LedgerEntry | None:
    """Return the reservation of a request, None where there is none."""
    row = transaction.execute(f"{_ENTRIES} WHERE request = ?", (request,)).fetchone()
    return None if row is None else _entry_of_row(where, *row)


def _entry_of_row(
    where: str, number: int, request: str, purpose: str, events: str, *rest: Any
) -> LedgerEntry:
    reserved = reserved_in(events, where)
    return replace(
        LedgerEntry(number, request, purpose, reserved.events, *rest), queries=reserved.queries
    )


def answer_of(transaction: Transaction, request: str, where: str) -> bytes | None:
    """Return the released bytes of a committed request, None where there is no answer.

    Raises
    ------
    LedgerError
        If the bytes are not the ones that were committed.
    """
    row = transaction.execute(_ANSWER, (request,)).fetchone()
    if row is None:
        return None
    answer, digest = row
    if digest is None or not is_answer(answer, digest):
        raise LedgerError(f"{where} had an answer changed by hand; restore it from a copy.")
    return bytes(answer)


def refuse_known(transaction: Transaction, request: str) -> None:
    """Refuse a request that has a reservation already, in whatever state.

    Raises
    ------
    LedgerError
        If it has.
    """
    row = transaction.execute(_STATE, (request,)).fetchone()
    if row is not None:
        raise LedgerError(f"Request {in_brief(request)!r} {_KNOWN[row[0]]}.")
