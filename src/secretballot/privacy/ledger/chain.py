"""The rows of a ledger as a hash chain, and how they are added; `following` reads and checks them.

Every row carries the SHA-256 of itself and of the row before it; the first one follows the terms of
the account.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from typing import Any, NamedTuple

from secretballot.exceptions import LedgerError
from secretballot.privacy.accounting import Event, Grant, Totals, event_from_json
from secretballot.privacy.ledger.schema import APPLICATION_ID, DIGEST_VERSION
from secretballot.privacy.ledger.store import Transaction


@dataclass(frozen=True)
class Account:
    """What is fixed when a ledger is made.

    Whose data, what is promised, how much, and how releases compose.

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
        return link(b"", ["account", APPLICATION_ID, DIGEST_VERSION, *astuple(self)])


@dataclass(frozen=True)
class Progress:
    """How far a reader has followed and checked the rows, and what they come to.

    Parameters
    ----------
    position : int
        Number of rows before the next one.
    chain : bytes
        SHA-256 of the last of them.
    totals : Totals
        Sums over every reservation among them, whatever its state, up to what its closing says it
        used where the composition allows that.
    parts, closings : int
        How many there are; the number of reservations is that of the grants in `totals`, and their
        ids are 1, 2, 3, ...
    open_parts : mapping of int to int
        How many parts each open reservation has, where it has any.
    """

    position: int
    chain: bytes
    totals: Totals = field(default_factory=Totals)
    parts: int = 0
    closings: int = 0
    open_parts: Mapping[int, int] = field(default_factory=dict)

    @property
    def reservations(self) -> int:
        """Number of reservations."""
        return self.totals.grants


class Reserved(NamedTuple):
    """What one reservation holds."""

    events: tuple[Event, ...]
    queries: int | None


def link(previous: bytes, fields: Sequence[Any]) -> bytes:
    """Return the SHA-256 of one row and everything before it."""
    # a value of a type that no ledger writes can only come from an edit by hand, and must give
    # another hash
    text = json.dumps(
        fields, ensure_ascii=False, separators=(",", ":"), default=lambda value: ["?", repr(value)]
    )
    return hashlib.sha256(previous + text.encode(errors="surrogatepass")).digest()


def encode_events(events: Sequence[Event], queries: int | None = None) -> str:
    """Return the text under which events are stored: JSON whose numbers read back bit for bit.

    Parameters
    ----------
    events : sequence of Event
    queries : int, optional
        How many answers they are for, each of them the same share of every event.
    """
    listed = [event.to_json() for event in events]
    content = listed if queries is None else {"events": listed, "queries": queries}
    return json.dumps(content, sort_keys=True, allow_nan=False)


def decode_events(text: str) -> Reserved:
    """Return the events behind a stored text.

    Raises
    ------
    ParameterError
        If an event is unknown to this version or out of range.
    """
    content = json.loads(text)
    listed, queries = (
        (content["events"], content["queries"]) if isinstance(content, dict) else (content, None)
    )
    return Reserved(tuple(event_from_json(item) for item in listed), queries)


def add_reservation(
    transaction: Transaction,
    seen: Progress,
    request: str,
    purpose: str,
    events: str,
    *,
    grant: Grant,
    at: str,
) -> int:
    """Append a reservation after `seen` and return its number."""
    number, position = seen.reservations + 1, seen.position + 1
    fields = {
        "id": number,
        "request": request,
        "purpose": purpose,
        "events": events,
        "epsilon": grant.epsilon,
        "delta": grant.delta,
        "reserved_at": at,
    }
    # the link covers every column, so that no edit by hand leaves the chain whole
    chain = link(seen.chain, (position, "reservation", *fields.values()))
    transaction.append("reservation", [{"position": position, "chain": chain, **fields}])
    return number


def add_parts(
    transaction: Transaction,
    seen: Progress,
    reservation: int,
    first: int,
    parts: Sequence[tuple[bytes, bytes]],
    at: str,
) -> Progress:
    """Append answers, as (question, answer), to an open reservation, numbered from `first`.

    Return where to go on.
    """
    position, chain, rows = seen.position, seen.chain, []
    for number, (question, answer) in enumerate(parts, first):
        position += 1
        # as a reader finds them again, who takes bytes in upper-case hexadecimal
        texts = question.hex().upper(), answer.hex().upper()
        chain = link(chain, (position, "part", reservation, number, *texts, at))
        rows.append(
            {
                "position": position,
                "chain": chain,
                "reservation": reservation,
                "number": number,
                "question": question,
                "answer": answer,
                "answered_at": at,
            }
        )
    transaction.append("part", rows)
    return replace(seen, position=position, chain=chain)


def add_closing(
    transaction: Transaction,
    seen: Progress,
    number: int,
    *,
    released: bytes | None,
    reason: str | None,
    used: str | None,
    at: str,
) -> None:
    """Append the closing of reservation `number` after `seen`.

    Committed if `released` is given, else forfeited.
    """
    position = seen.position + 1
    state = "forfeited" if released is None else "committed"
    digest = None if released is None else hashlib.sha256(released).hexdigest()
    fields = {
        "reservation": number,
        "state": state,
        "released_sha256": digest,
        "reason": reason,
        "used": used,
        "closed_at": at,
    }
    # in the chain the digest stands for the released bytes
    chain = link(seen.chain, (position, "closing", *fields.values()))
    row = {"position": position, "chain": chain, **fields, "released": released}
    transaction.append("closing", [row])


def read_account(transaction: Transaction, where: str) -> Account:
    """Return what was fixed at creation, or raise `LedgerError` if it is gone.

    Raises
    ------
    LedgerError
        If it is gone.
    """
    row = transaction.execute(
        "SELECT dataset, unit, neighbours, epsilon, delta, composition, filter_order, created_at"
        " FROM account"
    ).fetchone()
    if row is None:
        raise LedgerError(
            f"{where} has lost the row that holds its budget; restore it from a copy."
        )
    return Account(*row)
