"""How a reader follows the rows of a ledger: from the first one, from a checkpoint, or only on from
where it was.

A row that was followed is one whose SHA-256, and those of all rows before it, are as stored, up to
the row `head`. From a checkpoint on, what was before it is taken from its row, with the number of
rows and the parts of what was open then.
"""

import functools
import hashlib
import sqlite3
from typing import Any

from secretballot.exceptions import LedgerError, SecretBallotError
from secretballot.privacy.accounting import Filter, Grant
from secretballot.privacy.ledger.chain import (
    Account,
    Progress,
    Reserved,
    decode_events,
    link,
    read_account,
)
from secretballot.privacy.ledger.checkpoints import Checkpoint, priced_by
from secretballot.privacy.ledger.terms import in_brief

__all__ = [
    "catch_up",
    "check_row",
    "contains_row",
    "is_answer",
    "reserved_in",
    "reserved_of",
    "start_of",
]

# All kinds of rows in the order they were written. Columns: position, kind, chain, then what the
# chain covers, filled up with NULL; last the released bytes of a closing, which the chain covers
# through their SHA-256.
_ROWS = """
SELECT position, 'reservation', chain, id, request, purpose, events, epsilon, delta, reserved_at,
       NULL
FROM reservation WHERE position {which}
UNION ALL
SELECT position, 'part', chain, reservation, number,
       CASE typeof(question) WHEN 'blob' THEN hex(question) END,
       CASE typeof(answer) WHEN 'blob' THEN hex(answer) END, answered_at, NULL, NULL, NULL
FROM part WHERE position {which}
UNION ALL
SELECT position, 'closing', chain, reservation, state, released_sha256, reason, used, closed_at,
       NULL, released
FROM closing WHERE position {which}
UNION ALL
SELECT position, 'checkpoint', chain, reservations, parts, closings, totals, open_parts, priced_by,
       made_at, NULL
FROM checkpoint WHERE position {which}
ORDER BY position
"""
_COVERED = {"reservation": 7, "part": 5, "closing": 6, "checkpoint": 7}
_FIRST, _RELEASED = 3, 10
Row = tuple[Any, ...]


def catch_up(connection: sqlite3.Connection, seen: Progress, rule: Filter, where: str) -> Progress:
    """Check every row after `seen` against the chain and return the new progress.

    Parameters
    ----------
    connection : sqlite3.Connection
        Inside a transaction.
    seen : Progress
        What was checked before; `Progress(0, account.digest)` for nothing.
    rule : Filter
        Of the account; it says what each grant adds up to.
    where : str
        Name of the ledger, for messages.

    Raises
    ------
    LedgerError
        If a row was edited, removed or added by hand, or the file is an older copy of itself.
    """
    head = connection.execute("SELECT position, chain FROM head").fetchone()
    if head == (seen.position, seen.chain):
        return seen
    walk = _Walk(connection, seen, rule, where)
    for row in connection.execute(_ROWS.format(which="> :after"), {"after": seen.position}):
        walk.follow(row)
    if head != (walk.position, walk.chain):
        raise LedgerError(
            f"{where} has lost entries, or was replaced by an older copy; restore the newest copy"
            " of it."
        )
    return walk.progress()


class _Walk:
    """A reader on its way along the rows; what it has counted becomes a `Progress` at the end."""

    def __init__(
        self, connection: sqlite3.Connection, seen: Progress, rule: Filter, where: str
    ) -> None:
        self._connection, self._rule, self._where = connection, rule, where
        self._seen, self._pricing = seen, priced_by(rule)
        self._take = {
            "reservation": self._add_reservation,
            "part": self._add_part,
            "closing": self._add_closing,
            "checkpoint": self._agrees_with_count,
        }
        self.position, self.chain = seen.position, seen.chain
        self._totals, self._parts, self._closings = seen.totals, seen.parts, seen.closings
        self._open_parts, self._checkpoint = dict(seen.open_parts), seen.checkpoint

    def follow(self, row: Row) -> None:
        """Take one row more, or refuse it.

        Raises
        ------
        LedgerError
            If the row does not follow from the one before it.
        """
        self.position += 1
        self.chain = _next_link(self.chain, row)
        if (row[0], row[2]) != (self.position, self.chain) or not self._take[row[1]](row):
            raise LedgerError(
                f"{self._where} was changed by hand at entry {self.position} or before it; restore"
                " it from a copy."
            )

    def progress(self) -> Progress:
        """Return how far it has come."""
        return Progress(
            self.position,
            self.chain,
            self._totals,
            self._parts,
            self._closings,
            self._open_parts,
            self._seen.start,
            self._checkpoint,
        )

    def _add_reservation(self, row: Row) -> bool:
        if row[3] != self._totals.grants + 1:
            return False
        self._totals = self._totals.plus(
            self._rule.costs(_checked_grant(row[6], row[7], row[8], self._where))
        )
        return True

    def _add_part(self, row: Row) -> bool:
        expected = self._open_parts.get(row[3], 0) + 1
        if not (1 <= row[3] <= self._totals.grants and row[4] == expected):
            return False
        self._parts += 1
        self._open_parts[row[3]] = expected
        return True

    def _add_closing(self, row: Row) -> bool:
        if not (1 <= row[3] <= self._totals.grants and is_answer(row[_RELEASED], row[5])):
            return False
        self._closings += 1
        self._open_parts.pop(row[3], None)
        if row[7] is not None:
            events, epsilon, delta = _purchase_of(self._connection, self._seen, row[3], self._where)
            reserved = self._rule.costs(_checked_grant(events, epsilon, delta, self._where))
            self._totals = self._totals.changed(
                reserved, self._rule.costs(_checked_grant(row[7], epsilon, delta, self._where))
            )
        return True

    def _agrees_with_count(self, row: Row) -> bool:
        """Return whether a checkpoint says what was counted.

        Sums only if this very program has priced them.
        """
        self._checkpoint = row[0]
        stated = Checkpoint.of_row(row[_FIRST:])
        own = self.progress().as_checkpoint(self._rule)
        if stated is None or stated.counts != own.counts:
            return False
        return stated.priced_by != self._pricing or stated.totals == own.totals


def _next_link(chain: bytes, row: Row) -> bytes:
    return link(chain, (*row[:2], *row[_FIRST : _FIRST + _COVERED[row[1]]]))


def _row_at(connection: sqlite3.Connection, position: int) -> Row | None:
    found: Row | None = connection.execute(_ROWS.format(which="= :at"), {"at": position}).fetchone()
    return found


def check_row(connection: sqlite3.Connection, seen: Progress, position: int, where: str) -> None:
    """Refuse a row that was not followed, as it lies before the start, and does not follow from the
    one before it.

    Parameters
    ----------
    connection : sqlite3.Connection
        Inside a transaction.
    seen : Progress
        What was followed.
    position : int
        Of the row.
    where : str
        Name of the ledger, for messages.

    Raises
    ------
    LedgerError
        If it was edited by hand.
    """
    if position <= seen.start:
        _linked_row(connection, position, where)


def _linked_row(connection: sqlite3.Connection, position: int, where: str) -> Row:
    """Return a row, if it follows from the one before it, or the first one from the terms of the
    account."""
    row, before = _row_at(connection, position), _row_at(connection, position - 1)
    previous = before[2] if before is not None else read_account(connection, where).digest
    if row is None or (before is None) != (position == 1) or _next_link(previous, row) != row[2]:
        raise LedgerError(
            f"{where} was changed by hand at entry {position}; restore it from a copy."
        )
    return row


def contains_row(
    connection: sqlite3.Connection, position: int, chain: str, account: Account
) -> bool:
    """Return whether the row at a position has this SHA-256, in hexadecimal.

    That of no row is the account's.
    """
    if not position:
        return chain == account.digest.hex()
    row = _row_at(connection, position)
    return row is not None and isinstance(row[2], bytes) and row[2].hex() == chain


def start_of(
    connection: sqlite3.Connection, account: Account, rule: Filter, where: str
) -> Progress:
    """Return the progress from which a new reader follows.

    That of the last checkpoint but one, else of no row at all.

    So the newest thousand rows and more are always followed. Of a checkpoint are looked at: its own
    link, the number of all rows, and the parts of every reservation that was open then, on which
    its next answer depends. Sums that were priced by another program are not taken over.

    Raises
    ------
    LedgerError
        If the file does not fit the checkpoint.
    """
    # only sums that this very pricing computed are taken over; the last but one checkpoint leaves
    # rows to check after it
    select = (
        "SELECT position FROM checkpoint WHERE priced_by = ? ORDER BY position DESC LIMIT 1"
        " OFFSET 1"
    )
    found = connection.execute(select, (priced_by(rule),)).fetchone()
    if found is None:
        return Progress(0, account.digest)
    position = found[0]
    row = _linked_row(connection, position, where)
    stated = Checkpoint.of_row(row[_FIRST:]) if row[1] == "checkpoint" else None
    if stated is None or not _fits_file(connection, position, stated):
        raise LedgerError(
            f"{where} does not fit its checkpoint at entry {position}; restore it from a copy."
        )
    return Progress(
        position,
        row[2],
        stated.totals,
        stated.parts,
        stated.closings,
        stated.open_parts,
        start=position,
        checkpoint=position,
    )


_COUNTS = """
SELECT (SELECT count(*) FROM reservation), (SELECT count(*) FROM part),
       (SELECT count(*) FROM closing),
       (SELECT count(*) FROM checkpoint), (SELECT position FROM head),
       (SELECT count(*) FROM reservation WHERE position > :at),
       (SELECT count(*) FROM part WHERE position > :at),
       (SELECT count(*) FROM closing WHERE position > :at)
"""
_PARTS_BEFORE = "SELECT count(*), max(number) FROM part WHERE reservation = ? AND position < ?"
_CLOSED_BEFORE = "SELECT count(*) FROM closing WHERE reservation = ? AND position < ?"


def _fits_file(connection: sqlite3.Connection, position: int, stated: Checkpoint) -> bool:
    reservations, parts, closings, checkpoints, head, *later = connection.execute(
        _COUNTS, {"at": position}
    ).fetchone()
    if reservations + parts + closings + checkpoints != head:
        return False
    before = (reservations - later[0], parts - later[1], closings - later[2])
    if before != (stated.reservations, stated.parts, stated.closings):
        return False
    for reservation, count in stated.open_parts.items():
        if connection.execute(_PARTS_BEFORE, (reservation, position)).fetchone() != (count, count):
            return False
        if connection.execute(_CLOSED_BEFORE, (reservation, position)).fetchone() != (0,):
            return False
    return True


def reserved_of(
    connection: sqlite3.Connection, seen: Progress, reservation: int, where: str
) -> Reserved:
    """Return what a reservation holds.

    Raises
    ------
    LedgerError
        If it was edited by hand, or this program cannot read it.
    """
    return reserved_in(_purchase_of(connection, seen, reservation, where)[0], where)


def _purchase_of(
    connection: sqlite3.Connection, seen: Progress, reservation: int, where: str
) -> tuple[str, float, float]:
    """Return events, epsilon and delta of a reservation.

    What is given back must not exceed what was taken.
    """
    select = "SELECT position, events, epsilon, delta FROM reservation WHERE id = ?"
    position, events, epsilon, delta = connection.execute(select, (reservation,)).fetchone()
    check_row(connection, seen, position, where)
    return events, epsilon, delta


def _checked_grant(events: str, epsilon: float, delta: float, where: str) -> Grant:
    return Grant(events=reserved_in(events, where).events, epsilon=epsilon, delta=delta)


def reserved_in(text: str, where: str) -> Reserved:
    """Return what a stored text says was reserved.

    Raises
    ------
    LedgerError
        If this program cannot read it.
    """
    try:
        return _decoded(text)
    except (SecretBallotError, TypeError, ValueError, LookupError, RecursionError) as error:
        raise LedgerError(
            f"{where} holds a reservation that this program cannot read: {in_brief(error)}"
        ) from error


# a ledger holds the same few events many times
_decoded = functools.lru_cache(maxsize=4096)(decode_events)


def is_answer(released: object, digest: object) -> bool:
    """Return whether `released` is what was committed under the stored SHA-256, or both are
    None."""
    if not isinstance(released, bytes):
        return released is None and digest is None
    return hashlib.sha256(released).hexdigest() == digest
