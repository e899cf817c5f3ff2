"""The rows of a ledger as a hash chain: how they are added, and how a reader follows and checks them.

Every row carries the SHA-256 of itself and of the row before it; the first one follows the terms of the account.
"""

import hashlib
import json
import sqlite3
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any

from secretballot.exceptions import LedgerError, SecretBallotError
from secretballot.privacy.accounting import Event, Grant, event_from_json
from secretballot.privacy.ledger.schema import APPLICATION_ID, SCHEMA_VERSION

__all__ = [
    "Account",
    "Progress",
    "add_closing",
    "add_parts",
    "add_reservation",
    "catch_up",
    "decode_events",
    "encode_events",
    "is_answer",
    "link",
]


@dataclass(frozen=True)
class Account:
    """What is fixed when a ledger is made: whose data, what is promised, how much, and how releases compose.

    Parameters
    ----------
    dataset : str
        Name of the private dataset.
    unit : str
        Whose data the promise is about: one "record", or all records of one "user".
    neighbours : str
        Relation that the promise is about.
    epsilon, delta : float
        Total budget.
    composition : str
        Name of the filter that admits releases.
    filter_order : float or None
        Order of the Renyi filter; None for basic composition.
    created_at : str
        UTC, ISO 8601.
    """

    dataset: str
    unit: str
    neighbours: str
    epsilon: float
    delta: float
    composition: str
    filter_order: float | None
    created_at: str

    @property
    def digest(self) -> bytes:
        """The SHA-256 that the chain of rows starts from."""
        return link(b"", ["account", APPLICATION_ID, SCHEMA_VERSION, *astuple(self)])


@dataclass(frozen=True)
class Progress:
    """How far a reader has followed and checked the rows.

    Parameters
    ----------
    position : int
        Number of rows (reservations, parts and closings) checked.
    chain : bytes
        SHA-256 of the last of them.
    grants : tuple of Grant
        Every reservation among them, in the order of their ids 1, 2, 3, ...; whatever its state, it is spent, up to
        what its closing says it used where the composition allows that.
    """

    position: int
    chain: bytes
    grants: tuple[Grant, ...] = ()


def link(previous: bytes, fields: Sequence[Any]) -> bytes:
    """Return the SHA-256 of one row and everything before it."""
    # a value of a type that no ledger writes can only come from an edit by hand, and must give another hash
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"), default=lambda value: ["?", repr(value)])
    return hashlib.sha256(previous + text.encode()).digest()


def encode_events(events: Sequence[Event]) -> str:
    """Return the text under which events are stored: JSON whose numbers read back bit for bit."""
    return json.dumps([event.to_json() for event in events], sort_keys=True, allow_nan=False)


def decode_events(text: str) -> tuple[Event, ...]:
    """Return the events behind a stored text.

    Raises
    ------
    ParameterError
        If an event is unknown to this version or out of range.
    """
    return tuple(event_from_json(item) for item in json.loads(text))


# All kinds of rows in the order they were written. Columns: position, kind, chain, then what the chain covers, filled
# up with NULL; last the released bytes of a closing, which the chain covers through their SHA-256.
_ROWS = """
SELECT position, 'reservation', chain, id, request, purpose, events, epsilon, delta, reserved_at, NULL
FROM reservation WHERE position > :after
UNION ALL
SELECT position, 'part', chain, reservation, number, CASE typeof(question) WHEN 'blob' THEN hex(question) END,
       CASE typeof(answer) WHEN 'blob' THEN hex(answer) END, answered_at, NULL, NULL, NULL
FROM part WHERE position > :after
UNION ALL
SELECT position, 'closing', chain, reservation, state, released_sha256, reason, used, closed_at, NULL, released
FROM closing WHERE position > :after
ORDER BY position
"""
_COVERED = {"reservation": 7, "part": 5, "closing": 6}
_FIRST, _RELEASED = 3, 10


def catch_up(connection: sqlite3.Connection, seen: Progress, where: str) -> Progress:
    """Check every row after `seen` against the chain and return the new progress.

    Parameters
    ----------
    connection : sqlite3.Connection
        Inside a transaction.
    seen : Progress
        What was checked before; `Progress(0, account.digest)` for nothing.
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
    position, chain, grants = seen.position, seen.chain, list(seen.grants)
    for row in connection.execute(_ROWS, {"after": seen.position}):
        position += 1
        chain = _next_link(chain, row)
        if (row[0], row[2]) != (position, chain) or not _fits(row, len(grants)):
            raise LedgerError(f"{where} was changed by hand at entry {row[0]!r} or before it; restore it from a copy.")
        if row[1] == "reservation":
            grants.append(_grant(row[6], row[7], row[8], where))
        elif row[1] == "closing" and row[7] is not None:
            bought = grants[row[3] - 1]
            grants[row[3] - 1] = _grant(row[7], bought.epsilon, bought.delta, where)
    if head != (position, chain):
        raise LedgerError(f"{where} has lost entries, or was replaced by an older copy; restore the newest copy of it.")
    return Progress(position, chain, tuple(grants))


def _next_link(chain: bytes, row: tuple[Any, ...]) -> bytes:
    return link(chain, (*row[:2], *row[_FIRST : _FIRST + _COVERED[row[1]]]))


def _fits(row: tuple[Any, ...], n_reservations: int) -> bool:
    if row[1] == "reservation":
        return bool(row[3] == n_reservations + 1)
    known = 1 <= row[3] <= n_reservations
    return bool(known and (row[1] == "part" or is_answer(row[_RELEASED], row[5])))


def is_answer(released: object, digest: object) -> bool:
    """Return whether `released` is what was committed under the stored SHA-256, or both are None."""
    if not isinstance(released, bytes):
        return released is None and digest is None
    return hashlib.sha256(released).hexdigest() == digest


def _grant(events: str, epsilon: float, delta: float, where: str) -> Grant:
    try:
        return Grant(events=decode_events(events), epsilon=epsilon, delta=delta)
    except (SecretBallotError, TypeError, ValueError) as error:
        raise LedgerError(f"{where} holds a reservation that this program cannot read: {error}") from error


def add_reservation(
    connection: sqlite3.Connection, seen: Progress, request: str, purpose: str, events: str, *, grant: Grant, at: str
) -> int:
    """Append a reservation after `seen` and return its number."""
    number, position = len(seen.grants) + 1, seen.position + 1
    fields = (number, request, purpose, events, grant.epsilon, grant.delta, at)
    chain = link(seen.chain, (position, "reservation", *fields))
    connection.execute(
        "INSERT INTO reservation (position, chain, id, request, purpose, events, epsilon, delta, reserved_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (position, chain, *fields),
    )
    connection.execute("UPDATE head SET position = ?, chain = ?", (position, chain))
    return number


def add_parts(
    connection: sqlite3.Connection,
    seen: Progress,
    reservation: int,
    first: int,
    parts: Sequence[tuple[bytes, bytes]],
    at: str,
) -> Progress:
    """Append answers, as (question, answer), to an open reservation, numbered from `first`; return the new progress."""
    position, chain = seen.position, seen.chain
    for number, (question, answer) in enumerate(parts, first):
        position += 1
        chain = link(chain, (position, "part", reservation, number, question.hex().upper(), answer.hex().upper(), at))
        connection.execute(
            "INSERT INTO part (position, chain, reservation, number, question, answer, answered_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (position, chain, reservation, number, question, answer, at),
        )
        connection.execute("UPDATE head SET position = ?, chain = ?", (position, chain))
    return Progress(position, chain, seen.grants)


def add_closing(
    connection: sqlite3.Connection,
    seen: Progress,
    number: int,
    *,
    released: bytes | None,
    reason: str | None,
    used: str | None,
    at: str,
) -> None:
    """Append the closing of reservation `number` after `seen`: committed if `released` is given, else forfeited."""
    position = seen.position + 1
    state = "forfeited" if released is None else "committed"
    digest = None if released is None else hashlib.sha256(released).hexdigest()
    fields = (number, state, digest, reason, used, at)
    chain = link(seen.chain, (position, "closing", *fields))
    connection.execute(
        "INSERT INTO closing (position, chain, reservation, state, released_sha256, reason, used, closed_at, released)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (position, chain, *fields, released),
    )
    connection.execute("UPDATE head SET position = ?, chain = ?", (position, chain))
