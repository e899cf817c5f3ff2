"""Answers that are given one by one under one reservation, each on the disk before it is returned."""

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import replace

from secretballot.exceptions import LedgerError, ParameterError
from secretballot.privacy.accounting import Event, GaussianEvent, LabelGaussianEvent
from secretballot.privacy.ledger.chain import Account, Progress, add_parts, encode_events
from secretballot.privacy.ledger.terms import utc_now

__all__ = ["AnswerPage", "check_used", "refuse_unknown_or_closed"]


class AnswerPage:
    """The answers of one open reservation, held against everyone else until the transaction ends.

    What is added here is on the disk when the transaction ends, and not at all if it does not: draw, add, leave, and
    only then return an answer to the world.

    Parameters
    ----------
    connection : sqlite3.Connection
        Inside a transaction that may write.
    seen : Progress
        The rows checked up to now.
    reservation : int
        Number of an open reservation.
    """

    def __init__(self, connection: sqlite3.Connection, seen: Progress, reservation: int) -> None:
        self._connection, self._seen, self._reservation = connection, seen, reservation

    @property
    def count(self) -> int:
        """Number of answers given so far."""
        return int(self._connection.execute(_COUNT, (self._reservation,)).fetchone()[0])

    def find(self, questions: Iterable[bytes]) -> dict[bytes, bytes]:
        """Return the stored answers to those of `questions` that were asked before."""
        found = {}
        for question in questions:
            row = self._connection.execute(_ANSWER, (self._reservation, question)).fetchone()
            if row is not None:
                found[question] = bytes(row[0])
        return found

    def parts(self) -> list[tuple[bytes, bytes]]:
        """Return every (question, answer), in the order in which they were answered."""
        return [(bytes(q), bytes(a)) for q, a in self._connection.execute(_PARTS, (self._reservation,))]

    def last(self) -> bytes | None:
        """Return the answer given last, None where there is none yet."""
        row = self._connection.execute(_LAST, (self._reservation,)).fetchone()
        return None if row is None else bytes(row[0])

    def add(self, parts: Sequence[tuple[bytes, bytes]]) -> None:
        """Store answers as (question, answer); none of the questions may have an answer yet."""
        first = self.count + 1
        self._seen = add_parts(self._connection, self._seen, self._reservation, first, parts, utc_now())


def refuse_unknown_or_closed(connection: sqlite3.Connection, seen: Progress, reservation: int, where: str) -> None:
    """Refuse a reservation that takes no further answers.

    Raises
    ------
    LedgerError
        If there is none of that number, or it is closed.
    """
    if reservation > len(seen.grants):
        raise LedgerError(f"{where} has no reservation {reservation}; give a number from reserve.")
    row = connection.execute("SELECT state FROM closing WHERE reservation = ?", (reservation,)).fetchone()
    if row is not None:
        raise LedgerError(f"Reservation {reservation} is {row[0]} already; a reservation is closed once.")


def check_used(account: Account, bought: Sequence[Event], used: Sequence[Event], answered: int) -> str:
    """Return the text to store for what a plan used of what it bought.

    Under a Renyi filter the divergences of one order add up over the steps that were really taken, whatever decided
    when to stop (Feldman and Zrnic 2021, Theorem 3.1), so steps that were not taken can be spent on something else.
    Sums of (epsilon, delta) pairs know no such thing: a pair is about the whole plan.

    Raises
    ------
    LedgerError
        If the account adds up pairs.
    ParameterError
        If the used events are not the bought ones with no more queries each, or fewer than were answered.
    """
    if account.composition != "renyi":
        raise LedgerError(
            f"The ledger of {account.dataset!r} composes by {account.composition!r}, where a plan that stops early"
            " costs as much as the whole plan; keep the rest of the plan open, or use a ledger with composition"
            " 'renyi'."
        )
    given = tuple(used)
    stopped = len(given) == len(bought) and all(map(_is_start_of, given, bought))
    never_began = not given and all(isinstance(event, _STEPPED) for event in bought)
    if not (stopped or never_began) or answered > sum(map(_steps, given)):
        raise ParameterError(
            "The used events must be the bought ones with as many queries as were answered; count them again."
        )
    return encode_events(given)


def _is_start_of(part: Event, whole: Event) -> bool:
    """Return whether `part` is the beginning of a run of `whole`, stopped after some of its steps."""
    if isinstance(part, LabelGaussianEvent) and isinstance(whole, LabelGaussianEvent):
        return part.queries <= whole.queries and part == replace(whole, queries=part.queries)
    if isinstance(part, GaussianEvent) and isinstance(whole, GaussianEvent):
        return part.shifts <= whole.shifts and part == replace(whole, shifts=part.shifts)
    return part == whole


def _steps(event: Event) -> int:
    match event:
        case LabelGaussianEvent():
            return event.queries
        case GaussianEvent():
            return event.shifts
    return _UNCOUNTED


_STEPPED = (LabelGaussianEvent, GaussianEvent)
_UNCOUNTED = 2**62  # answers of other events are bounded by their own rule, not by a number of steps
_COUNT = "SELECT coalesce(max(number), 0) FROM part WHERE reservation = ?"
_ANSWER = "SELECT answer FROM part WHERE reservation = ? AND question = ?"
_LAST = "SELECT answer FROM part WHERE reservation = ? ORDER BY number DESC LIMIT 1"
_PARTS = "SELECT question, answer FROM part WHERE reservation = ? ORDER BY number"
