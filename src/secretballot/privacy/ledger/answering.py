"""Answers that are given one by one under one reservation, each on the disk before it is
returned."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from secretballot.exceptions import LedgerError, ParameterError
from secretballot.privacy.accounting import (
    ArgmaxGaussianEvent,
    Event,
    GaussianEvent,
    LabelGaussianEvent,
    VoteTableEvent,
)
from secretballot.privacy.ledger.chain import Account, Progress, Reserved, add_parts, encode_events
from secretballot.privacy.ledger.store import Transaction
from secretballot.privacy.ledger.terms import in_brief, utc_now


class AnswerPage:
    """The answers of one open reservation, held against everyone else until the transaction ends.

    What is added here is on the disk when the transaction ends, and not at all if it does not:
    draw, add, leave, and only then return an answer to the world.

    Parameters
    ----------
    transaction : Transaction
        Inside a transaction that may write.
    seen : Progress
        The rows checked up to now.
    reservation : int
        Number of an open reservation.
    where : str
        Name of the ledger, for messages.
    """

    def __init__(
        self, transaction: Transaction, seen: Progress, reservation: int, where: str
    ) -> None:
        self._open: Transaction | None = transaction
        self._seen, self._reservation, self._where = seen, reservation, where

    def close(self) -> None:
        """Let go of the ledger.

        The transaction is over, and a row that was added now would be checked by nobody.
        """
        self._open = None

    @property
    def _open_transaction(self) -> Transaction:
        if self._open is None:
            raise LedgerError(
                f"The answers of reservation {self._reservation} are no longer held; ask for them "
                "again, and use them inside of the with."
            )
        return self._open

    @property
    def count(self) -> int:
        """Number of answers given so far."""
        return int(self._open_transaction.execute(_COUNT, (self._reservation,)).fetchone()[0])

    @property
    def closed(self) -> bool:
        """Whether the reservation is settled: stored answers are all that comes."""
        found = self._open_transaction.execute(_CLOSED, (self._reservation,)).fetchone()
        return found is not None

    def find(self, questions: Iterable[bytes]) -> dict[bytes, bytes]:
        """Return the stored answers to those of `questions` that were asked before."""
        listed, found = list(questions), dict[bytes, bytes]()
        for start in range(0, len(listed), _AT_ONCE):
            block = listed[start : start + _AT_ONCE]
            statement = f"{_ANSWERS} ({', '.join('?' * len(block))})"
            rows = self._open_transaction.execute(statement, (self._reservation, *block)).fetchall()
            found |= {bytes(question): bytes(answer) for question, answer in rows}
        return found

    def parts(self) -> list[tuple[bytes, bytes]]:
        """Return every (question, answer), in the order in which they were answered."""
        rows = self._open_transaction.execute(_PARTS, (self._reservation,)).fetchall()
        return [(bytes(question), bytes(answer)) for question, answer in rows]

    def last(self) -> bytes | None:
        """Return the answer given last, None where there is none yet."""
        row = self._open_transaction.execute(_LAST, (self._reservation,)).fetchone()
        return None if row is None else bytes(row[0])

    def add(self, parts: Sequence[tuple[bytes, bytes]]) -> None:
        """Store answers as (question, answer); none of the questions may have an answer yet."""
        first = self.count + 1
        self._seen = add_parts(
            self._open_transaction, self._seen, self._reservation, first, parts, utc_now()
        )


def refuse_unknown_or_closed(
    transaction: Transaction, seen: Progress, reservation: int, where: str
) -> None:
    """Refuse a reservation that takes no further answers.

    Raises
    ------
    LedgerError
        If there is none of that number, it is closed, or parts of it are gone.
    """
    if reservation > seen.reservations:
        raise LedgerError(f"{where} has no reservation {reservation}; give a number from reserve.")
    row = transaction.execute(_CLOSED, (reservation,)).fetchone()
    if row is not None:
        raise LedgerError(
            f"Reservation {reservation} is {row[0]} already; a reservation is closed once."
        )
    counted = int(transaction.execute(_COUNT, (reservation,)).fetchone()[0])
    if counted != seen.open_parts.get(reservation, 0):
        raise LedgerError(
            f"{where} had answers of reservation {reservation} removed by hand; restore it from a"
            " copy."
        )


def check_used(account: Account, reserved: Reserved, used: Sequence[Event], answered: int) -> str:
    """Return the text to store for what a reservation used of what it holds.

    Under a Renyi filter the divergences of one order add up over the steps that were really taken,
    whatever decided when to stop (Feldman and Zrnic 2021, Theorem 3.1), so steps that were not
    taken can be spent on something else. Sums of (epsilon, delta) pairs know no such thing: a pair
    is about the whole reservation.

    How many steps were taken is not taken on trust: it follows from the answers stored and from how
    many were reserved.

    Raises
    ------
    LedgerError
        If the account adds up pairs.
    ParameterError
        If the used events are not the reserved ones with the steps of just these answers or more,
        or nobody can tell.
    """
    # basic composition adds the prices of whole reservations, and stopping early lowers none
    if account.composition != "renyi":
        raise LedgerError(
            f"The ledger of {in_brief(account.dataset)!r} composes by"
            f" {in_brief(account.composition)!r}, where stopping early costs as much as the"
            " whole reservation; keep the rest of it open, or use a ledger with composition"
            " 'renyi'."
        )
    given = tuple(used)
    stopped = len(given) == len(reserved.events) and all(map(_is_start_of, given, reserved.events))
    never_began = (
        not given and not answered and all(isinstance(event, _STEPPED) for event in reserved.events)
    )
    # what is kept must cover every answer that was given: less would give back privacy that was
    # spent
    covered = all(
        _n_steps(part) >= _steps_of(whole, reserved.queries, answered)
        for part, whole in zip(given, reserved.events, strict=False)
    )
    if not (never_began or (stopped and covered)):
        raise ParameterError(
            "The used events must be the reserved ones with as many queries as were answered, of a"
            " number of queries that was stated when they were reserved; count them again, or leave"
            " used out."
        )
    return encode_events(given)


def _steps_of(event: Event, queries: int | None, answered: int) -> int:
    """Return how many steps of an event that was reserved for so many queries this many answers
    took."""
    match event:
        case LabelGaussianEvent() | ArgmaxGaussianEvent() | VoteTableEvent():
            return answered
        case GaussianEvent() if queries is not None and event.shifts % queries == 0:
            return event.shifts // queries * answered
        case GaussianEvent():
            # a histogram takes two steps and a count one: who was not told cannot tell
            return event.shifts
    return 0


def _is_start_of(part: Event, whole: Event) -> bool:
    """Return whether `part` is the beginning of a run of `whole`, stopped after some of its
    steps."""
    for kind in (LabelGaussianEvent, ArgmaxGaussianEvent, VoteTableEvent):
        if isinstance(part, kind) and isinstance(whole, kind):
            return part.queries <= whole.queries and part == replace(whole, queries=part.queries)
    if isinstance(part, GaussianEvent) and isinstance(whole, GaussianEvent):
        return part.shifts <= whole.shifts and part == replace(whole, shifts=part.shifts)
    return part == whole


def _n_steps(event: Event) -> int:
    match event:
        case LabelGaussianEvent() | ArgmaxGaussianEvent() | VoteTableEvent():
            return event.queries
        case GaussianEvent():
            return event.shifts
    return _UNCOUNTED


_STEPPED = (LabelGaussianEvent, ArgmaxGaussianEvent, VoteTableEvent, GaussianEvent)
_UNCOUNTED = 2**62  # other events are kept whole, however many answers they gave
_COUNT = "SELECT coalesce(max(number), 0) FROM part WHERE reservation = ?"
_CLOSED = "SELECT state FROM closing WHERE reservation = ?"
_ANSWERS = "SELECT question, answer FROM part WHERE reservation = ? AND question IN"
_AT_ONCE = 500  # questions in one statement
_LAST = "SELECT answer FROM part WHERE reservation = ? ORDER BY number DESC LIMIT 1"
_PARTS = "SELECT question, answer FROM part WHERE reservation = ? ORDER BY number"
