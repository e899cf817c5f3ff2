"""The rows of a ledger: what each one says, how they are chained, how they are read and checked.

One table, `entry`, beside `account` (the terms) and `head` (the last row). A request is one row
"reserve"; under it come its answers, each a row "part" named by its question, and at the end one
row "close". Rows are never changed nor removed. Each carries the SHA-256 of itself and of the row
before it, and the sums over all reservations up to it, so that the newest row tells what is spent.

Reading: a new reader looks at `head`, at the number of rows and at the newest rows; whoever reads
an older row looks at its link; `Reader.check_all` follows all rows. A living reader follows every
row since the last one that it saw, so that it notices an older copy in place of the account.

The chain is no signature: who can write the whole account can forge the whole chain.

Statements are plain SQL that both databases know, with a question mark for each value.
"""

import functools
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import Annotated, Any, Literal, NamedTuple, ParamSpec, Protocol, Self, TypeVar

from pydantic import Field, ValidationError

from secretballot.core.errors import Argument, LedgerError, Parameter, SecretBallotError
from secretballot.core.events import AnyEvent, Event
from secretballot.core.filters import Filter, Totals
from secretballot.core.price import PrivacyBudget
from secretballot.core.types import Count, Loss, Model, fault_of

Given = ParamSpec("Given")
Result = TypeVar("Result")

APPLICATION_ID = 0x53424C54  # "SBLT", in the header of a file
VERSION = 5  # of the tables
DIGEST_VERSION = 2  # part of the digest of an account for ever: vaults know their ledger by it
NEWEST = 1000  # rows that a new reader follows
AT_ONCE = 200  # rows that are read in one statement, of which each may hold a large answer

#: The tables and their keys, but for the names of three types.
TABLES = (
    """CREATE TABLE account (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    format INTEGER NOT NULL,
    dataset TEXT NOT NULL,
    unit TEXT NOT NULL CHECK (unit IN ('record', 'user', 'label')),
    neighbours TEXT NOT NULL CHECK (neighbours IN ('add-remove', 'replace-one')),
    epsilon {real} NOT NULL CHECK (epsilon > 0),
    delta {real} NOT NULL CHECK (delta >= 0 AND delta < 1),
    composition TEXT NOT NULL,
    filter_order {real},
    created_at TEXT NOT NULL
)""",
    """CREATE TABLE head (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    position {integer} NOT NULL,
    chain {bytes} NOT NULL CHECK (length(chain) = 32)
)""",
    """CREATE TABLE entry (
    position {integer} PRIMARY KEY CHECK (position >= 1),
    kind TEXT NOT NULL CHECK (kind IN ('reserve', 'part', 'close')),
    reservation {integer} NOT NULL CHECK (reservation >= 1),
    number {integer} NOT NULL CHECK (number >= 0 AND (number = 0) = (kind = 'reserve')),
    key {bytes} NOT NULL,
    terms TEXT NOT NULL,
    body {bytes} NOT NULL,
    at TEXT NOT NULL,
    sums TEXT NOT NULL,
    chain {bytes} NOT NULL CHECK (length(chain) = 32)
)""",
    "CREATE UNIQUE INDEX entry_place ON entry (reservation, number)",
    "CREATE UNIQUE INDEX entry_request ON entry (key) WHERE kind = 'reserve'",
    "CREATE UNIQUE INDEX entry_question ON entry (reservation, key) WHERE kind = 'part'",
)
COLUMNS = "position, kind, reservation, number, key, terms, body, at, sums, chain"
INSERT = f"INSERT INTO entry ({COLUMNS}) VALUES ({', '.join('?' * 10)})"
_SELECT = (
    f"SELECT {COLUMNS}, (SELECT p.chain FROM entry p WHERE p.position = e.position - 1)"
    " FROM entry e WHERE"
)


# --- what a ledger asks of the database under it ---


class BrokenOffError(LedgerError):
    """The connection was lost, or storing failed, and it is certain that nothing was stored."""


class UnknownEndError(LedgerError):
    """Storing broke off at its end, so that nobody knows whether it was done.

    Attributes
    ----------
    otherwise : str
        The sentence for the case that nothing was stored.
    """

    def __init__(self, *parts: str | Parameter | Argument, otherwise: str = "") -> None:
        super().__init__(*parts)
        self.otherwise = otherwise

    @classmethod
    def of(cls, what: str, otherwise: str) -> Self:
        """Return the error of what happened, given as the beginning of a sentence."""
        return cls(
            f"{what}; it is unknown whether that was stored, nothing was returned for it, and the"
            " same command or request is charged once when it is repeated.",
            otherwise=otherwise,
        )


def repeated(work: Callable[Given, Result]) -> Callable[Given, Result]:
    """Have work done once more, on a new connection, where it broke off and nothing was stored."""

    @functools.wraps(work)
    def done(*given: Given.args, **named: Given.kwargs) -> Result:
        try:
            return work(*given, **named)
        except BrokenOffError:
            pass
        return work(*given, **named)

    return done


class Transaction(Protocol):
    """A transaction that has begun; its end is the store's.

    Attributes
    ----------
    head : (int, bytes) or None
        Position and SHA-256 of the last row when it began; None where that is gone.
    """

    head: Any

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Any:
        """Run one statement."""
        ...

    def count(self) -> int:
        """Return the number of rows."""
        ...

    def append(self, rows: "Sequence[Row]") -> None:
        """Add rows, each one place after the one before it, and move the head to the last."""
        ...

    def claim_room(self, reservation: int, size: int) -> None:
        """Take space for an answer of `size` bytes to a reservation, where the database can."""
        ...

    def confirm_earlier(self) -> None:
        """Let the end of this transaction be durable, and with it all that was committed before,
        though no row is added."""
        ...


class Store(Protocol):
    """Where one account is kept; `where` is what messages call it."""

    where: str

    def reading(self) -> AbstractContextManager[Transaction]:
        """Begin a transaction that sees one state of the whole account and only reads.

        Raises
        ------
        LedgerError
            If there is no account, it has another format, or it cannot be read.
        """
        ...

    def writing(
        self, *, closes: int | None = None, after: str = "nothing was changed"
    ) -> AbstractContextManager[Transaction]:
        """Begin a transaction beside which nobody else writes to the account.

        At the end it is durable, or nothing is changed.

        Parameters
        ----------
        closes : int, optional
            A reservation whose room is free in it.
        after : str
            How things stand if it fails.

        Raises
        ------
        BrokenOffError
            If it broke off and nothing was stored.
        UnknownEndError
            If it is not known whether it was stored.
        LedgerError
            As `reading`, or if it cannot be written.
        """
        ...

    def keep_open(self) -> None:
        """Keep what a transaction needs at hand for the next ones, of a program that has many."""
        ...

    def check(self, transaction: Transaction, *, pages: bool) -> None:
        """Refuse tables, keys or triggers that are not as this program makes them, and damaged
        pages.

        Parameters
        ----------
        transaction : Transaction
        pages : bool
            Whether all pages are looked at however many they are.

        Raises
        ------
        LedgerError
            If that is the case.
        """
        ...


# --- what rows say ---


def in_brief(detail: object) -> str:
    """Return what a message may say of something that was read from an account: one line, bounded,
    without control characters, as whoever can write there chose the words."""
    plain = "".join(c if c.isprintable() else " " for c in str(detail)[: _LONGEST_DETAIL * 4])
    line = " ".join(plain.split())
    return line if len(line) <= _LONGEST_DETAIL else f"{line[:_LONGEST_DETAIL]}..."


_LONGEST_DETAIL = 160  # characters


def utc_now() -> str:
    """Return the time, UTC, ISO 8601, to the microsecond."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


@dataclass(frozen=True)
class Account:
    """What is fixed when a ledger is made: whose data, what is promised, how much, and how
    releases add up (`filter_order` is that of a Renyi filter, else None)."""

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
        fields = ["account", APPLICATION_ID, DIGEST_VERSION, *astuple(self)]
        # a value of a type that no ledger writes must give another digest, and no error
        text = json.dumps(fields, default=lambda value: ["?", repr(value)])
        return hashlib.sha256(text.encode()).digest()

    @property
    def values(self) -> tuple[Any, ...]:
        """Its row, with the version of the tables."""
        return (1, VERSION, *astuple(self))


def account_in(transaction: Transaction, where: str) -> Account:
    """Return what was fixed at creation.

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


class Row(NamedTuple):
    """One row.

    `reservation` counts from 1. `number` is the place within the reservation: 0 of the row that
    reserves, then the answers, and the closing comes last.

    ======= ======== =================== ==============================
    kind    key      terms               body
    ======= ======== =================== ==============================
    reserve request  `Purchase`          what for
    part    question nothing             answer
    close   nothing  `Closing`           what was released
    ======= ======== =================== ==============================
    """

    position: int
    kind: str
    reservation: int
    number: int
    key: bytes
    terms: str
    body: bytes
    at: str
    sums: str
    chain: bytes = b""

    def link(self, previous: bytes, body_sha256: str | None = None) -> bytes:
        """Return the SHA-256 of this row and everything before it; the body goes in by its own, so
        that a row can be checked by who knows only that."""
        digest = hashlib.sha256(self.body).hexdigest() if body_sha256 is None else body_sha256
        position, kind, reservation, number, key, terms, _, at, sums, _ = self
        # a value of a type that no ledger writes can only come from an edit by hand, and gives
        # another text
        text = (
            f"{position!a} {kind!a} {reservation!a} {number!a} {key.hex()} {terms!a} {digest}"
            f" {at!a} {sums!a}"
        )
        return hashlib.sha256(previous + text.encode()).digest()


class _Terms(Model):
    """Base of what rows say in JSON, whose numbers read back bit for bit."""

    def encode(self) -> str:
        """Return the text under which it is stored."""
        return self.model_dump_json()

    @classmethod
    def decode(cls, text: str) -> Self:
        """Return what a stored text says.

        Raises
        ------
        ParameterError
            If this version cannot read it.
        """
        try:
            return cls.model_validate_json(text, strict=True)
        except ValidationError as error:
            raise fault_of(error) from None


class Purchase(_Terms):
    """What one reservation holds: events, how many answers they are for, each of them the same
    share of every event (None where that was not stated), and the price of all together."""

    events: Annotated[tuple[AnyEvent, ...], Field(min_length=1)]
    queries: Count | None
    epsilon: Loss
    delta: Annotated[float, Field(ge=0, lt=1, strict=True)]

    @property
    def price(self) -> PrivacyBudget:
        """What all together was priced at."""
        return PrivacyBudget(self.epsilon, self.delta)


class Closing(_Terms):
    """How a reservation ended: with an answer, of which it has the SHA-256 and, where steps that
    were not taken are not paid, the events that were used; or without, for a reason."""

    sha256: str | None = None
    used: tuple[AnyEvent, ...] | None = None
    reason: str | None = None

    @property
    def state(self) -> Literal["committed", "forfeited"]:
        """Either "committed" or "forfeited"."""
        return "forfeited" if self.sha256 is None else "committed"


# a ledger holds the same few purchases many times
_purchase_in = functools.lru_cache(maxsize=4096)(Purchase.decode)
_UNREADABLE = (SecretBallotError, TypeError, ValueError, LookupError, RecursionError)


@dataclass(frozen=True)
class Progress:
    """How far a reader has come: the last row, and the sums over all reservations up to it,
    whatever their states, less what closings gave back; the number of reservations is `grants`."""

    position: int
    chain: bytes
    totals: Totals
    sums: str

    @classmethod
    def of(cls, position: int, chain: bytes, totals: Totals) -> Self:
        """Return the progress with these sums."""
        return cls(position, chain, totals, f"{totals.grants} {totals.loss} {totals.failure}")


def _totals_in(sums: str) -> Totals:
    grants, loss, failure = sums.split(" ")
    return Totals(int(grants), Fraction(loss), Fraction(failure))


# --- reading and writing ---


class Reader:
    """Rows within one transaction; each is held against its SHA-256 before anybody has it.

    Parameters
    ----------
    transaction : Transaction
    digest : bytes
        SHA-256 of the account.
    rule : Filter
        Of the account; it says what each purchase adds up to.
    where : str
        Name of the ledger, for messages.
    """

    def __init__(self, transaction: Transaction, digest: bytes, rule: Filter, where: str) -> None:
        self.transaction, self.where = transaction, where
        self._digest, self._rule = digest, rule

    def one(self, which: str, *values: Any) -> Row | None:
        """Return the first row of which a condition holds."""
        found = self.transaction.execute(f"{_SELECT} {which} LIMIT 1", values).fetchone()
        return None if found is None else self._checked(found)

    def all(self, which: str, *values: Any) -> list[Row]:
        """Return every row of which a condition holds."""
        found = self.transaction.execute(f"{_SELECT} {which}", values).fetchall()
        return [self._checked(row) for row in found]

    def parts(self, reservation: int) -> Iterator[Row]:
        """Give all answers of a reservation, in order."""
        # by the one key that has them in this order: no statement may take long
        which = f"reservation = ? AND number > ? ORDER BY number LIMIT {AT_ONCE}"
        found = self.all(which, reservation, 0)
        while found:
            yield from (row for row in found if row.kind == "part")
            found = self.all(which, reservation, found[-1].number)

    def answers(self, reservation: int, questions: Sequence[bytes]) -> Iterator[Row]:
        """Give the answers to those of `questions` that have one."""
        for start in range(0, len(questions), AT_ONCE):
            block = questions[start : start + AT_ONCE]
            marks = ", ".join("?" * len(block))
            which = f"reservation = ? AND kind = 'part' AND key IN ({marks})"
            yield from self.all(which, reservation, *block)

    def last_number(self, reservation: int) -> tuple[int, bool]:
        """Return the number of answers of a reservation, and whether it is closed."""
        found = self.transaction.execute(
            "SELECT number, kind FROM entry WHERE reservation = ? ORDER BY number DESC LIMIT 1",
            (reservation,),
        ).fetchone()
        number, kind = found or (0, "reserve")
        closed = kind == "close"
        return number - closed, closed

    def reserved(self, reservation: int) -> Row:
        """Return the row of a reservation that is there."""
        row = self.one("reservation = ? AND number = 0", reservation)
        if row is None:
            raise self._forged(self.transaction.head[0])
        return row

    def purchase(self, row: Row) -> Purchase:
        """Return what a reservation holds.

        Raises
        ------
        LedgerError
            If this program cannot read it.
        """
        return self._read(_purchase_in, row)

    def closing(self, row: Row) -> Closing:
        """Return how a reservation ended; errors are those of `purchase`."""
        return self._read(Closing.decode, row)

    def _read(self, decode: Callable[[str], Result], row: Row) -> Result:
        try:
            return decode(row.terms)
        except _UNREADABLE as error:
            raise LedgerError(
                f"{self.where} holds a reservation that this program cannot read: {in_brief(error)}"
            ) from error

    def ends(self, after: int, up_to: int) -> list[tuple[Row, Row]]:
        """Return the first and the last row of the reservations with these numbers. Bodies of last
        rows are not read, so of them closings alone are checked, which have the SHA-256 of
        theirs."""
        some = "reservation > ? AND reservation <= ? AND number = 0"
        last = (
            "SELECT (SELECT l.position FROM entry l WHERE l.reservation = f.reservation"
            f" ORDER BY l.number DESC LIMIT 1) FROM entry f WHERE {some}"
        )
        places = [place for (place,) in self.transaction.execute(last, (after, up_to)).fetchall()]
        marks = ", ".join("?" * len(places)) or "0"
        select = f"{_SELECT} position IN ({marks}) ORDER BY reservation".replace(" body,", " NULL,")
        found = self.transaction.execute(select, places).fetchall()
        lasts = [Row(*fields[:-1]) for fields in found]
        for row, fields in zip(lasts, found, strict=True):
            if row.kind == "close":
                self._checked(fields, self.closing(row).sha256 or _NOTHING)
        firsts = self.all(f"{some} ORDER BY reservation", after, up_to)
        return list(zip(firsts, lasts, strict=True))

    # --- how far it goes ---

    def start(self) -> Progress:
        """Return how far a new reader has come.

        Raises
        ------
        LedgerError
            If rows are missing, or one of the newest was edited.
        """
        head = self.transaction.head
        count = self.transaction.count()
        if head is None or head[0] != count:
            raise self._lost()
        before = count - NEWEST
        if before < 1:
            return self.follow(self._beginning())
        row = self.one("position = ?", before)
        if row is None:
            raise self._forged(before)
        return self.follow(Progress.of(before, row.chain, self._sums_of(row)))

    def follow(self, seen: Progress, ends: dict[int, int | None] | None = None) -> Progress:
        """Check every row after `seen` and return the new progress.

        Parameters
        ----------
        seen : Progress
        ends : dict of int to int, optional
            The next number of each reservation, None of one that is closed; then the order of rows
            is checked, too.

        Raises
        ------
        LedgerError
            If a row was edited, removed or added by hand, or the account is an older copy.
        """
        head = self.transaction.head
        if head == (seen.position, seen.chain):
            return seen
        select = f"SELECT {COLUMNS} FROM entry WHERE position > ? ORDER BY position LIMIT {AT_ONCE}"
        count = AT_ONCE
        while count == AT_ONCE:
            found = self.transaction.execute(select, (seen.position,)).fetchall()
            for fields in found:
                row = Row(*fields)
                seen = self._next(seen, row)
                if ends is not None:
                    if ends.get(row.reservation, 0) != row.number:
                        raise self._forged(row.position)
                    ends[row.reservation] = None if row.kind == "close" else row.number + 1
            count = len(found)
        if head != (seen.position, seen.chain):
            raise self._lost()
        return seen

    def check_all(self) -> Progress:
        """Check every row from the first one on, and the order of those of each reservation; errors
        are those of `follow`."""
        return self.follow(self._beginning(), {})

    def _beginning(self) -> Progress:
        return Progress.of(0, self._digest, Totals())

    def _next(self, seen: Progress, row: Row) -> Progress:
        """Return the progress after one row more."""
        if row.position != seen.position + 1:
            raise self._forged(seen.position + 1)
        self._check_link(row, seen.chain)
        expected, known = seen.totals, 1 <= row.reservation <= seen.totals.grants
        if row.kind == "reserve":
            purchase = self.purchase(row)
            expected = expected.plus(self._rule.costs(purchase.events, purchase.price))
            known = row.reservation == expected.grants
        elif row.kind == "close":
            closing = self.closing(row)
            digest = None if closing.sha256 is None else hashlib.sha256(row.body).hexdigest()
            known = known and closing.sha256 == digest
            if known and closing.used is not None:
                expected = self.after_closing(expected, row.reservation, closing.used)
        after = Progress.of(row.position, row.chain, expected) if expected != seen.totals else seen
        if row.sums != after.sums:
            # another version, or another machine's arithmetic, may have found it to cost more
            after = Progress.of(row.position, row.chain, self._sums_of(row))
            known = known and _cover(after.totals, expected)
        if not known or row.sums != after.sums:
            raise self._forged(row.position)
        return Progress(row.position, row.chain, after.totals, row.sums)

    def after_closing(self, totals: Totals, reservation: int, used: Sequence[Event]) -> Totals:
        """Return the sums where a reservation has turned out to be only what was used of it. What
        is taken back is what its row added, whatever this version would add for it."""
        row = self.reserved(reservation)
        before = self.one("position = ?", row.position - 1)
        earlier, later = self._sums_of(before) if before else Totals(), self._sums_of(row)
        reserved = later.minus(earlier)
        kept = self._rule.costs(used, self.purchase(row).price)
        lower = Totals(1, min(kept.loss, reserved.loss), min(kept.failure, reserved.failure))
        return totals.minus(reserved).plus(lower)

    def _sums_of(self, row: Row) -> Totals:
        try:
            return _totals_in(row.sums)
        except (AttributeError, ValueError, ZeroDivisionError):
            raise self._forged(row.position) from None

    def _checked(self, found: Sequence[Any], body_sha256: str | None = None) -> Row:
        row, previous = Row(*found[:-1]), found[-1]
        self._check_link(row, self._digest if row.position == 1 else previous, body_sha256)
        return row

    def _check_link(self, row: Row, previous: Any, body_sha256: str | None = None) -> None:
        try:
            sound = row.link(previous, body_sha256) == row.chain
        except (AttributeError, TypeError, UnicodeError):  # a value of a type that nobody writes
            sound = False
        if not sound:
            raise self._forged(row.position)

    def _forged(self, position: object) -> LedgerError:
        return LedgerError(
            f"{self.where} was changed by hand at entry {in_brief(position)} or before it; restore"
            " it from a copy."
        )

    def _lost(self) -> LedgerError:
        return LedgerError(
            f"{self.where} has lost entries, or was replaced by an older copy; restore the newest"
            " copy of it."
        )


_NOTHING = hashlib.sha256(b"").hexdigest()
_SPARE = 1 + Fraction(1, 10**9)


def _cover(sums: Totals, least: Totals) -> bool:
    """Return whether recorded sums are those that this version finds, or more, but for rounding."""
    enough = least.loss <= sums.loss * _SPARE and least.failure <= sums.failure * _SPARE
    return enough and sums.grants == least.grants


class Writer:
    """Adds rows within one transaction, after all that is there.

    Parameters
    ----------
    reader : Reader
        Of a transaction that may write.
    seen : Progress
        The rows checked up to now, which are all.
    """

    def __init__(self, reader: Reader, seen: Progress) -> None:
        self.reader, self.seen = reader, seen

    def add(
        self,
        kind: str,
        reservation: int,
        number: int,
        *,
        key: bytes = b"",
        terms: str = "",
        body: bytes = b"",
        totals: Totals | None = None,
    ) -> None:
        """Add one row with the time, and with new sums where they change."""
        seen = self.seen
        after = seen if totals is None else Progress.of(seen.position, seen.chain, totals)
        self._append(
            after, [Row(0, kind, reservation, number, key, terms, body, utc_now(), after.sums)]
        )

    def add_parts(self, reservation: int, first: int, parts: Sequence[tuple[bytes, bytes]]) -> None:
        """Add answers, as (question, answer), numbered from `first`."""
        sums = self.seen.sums
        rows = [
            Row(0, "part", reservation, number, question, "", answer, "", sums)
            for number, (question, answer) in enumerate(parts, first)
        ]
        self._append(self.seen, rows)

    def _append(self, after: Progress, rows: Sequence[Row]) -> None:
        position, chain, chained = self.seen.position, self.seen.chain, []
        for row in rows:
            position += 1
            placed = row._replace(position=position)
            chain = placed.link(chain)
            chained.append(placed._replace(chain=chain))
        self.reader.transaction.append(chained)
        self.seen = Progress(position, chain, after.totals, after.sums)

    def check_end(self) -> None:
        """Refuse to commit where the last row is another one than was added last.

        Raises
        ------
        LedgerError
            If that is the case.
        """
        # a program may have swallowed the error of a statement that added some rows
        select = "SELECT position, chain, (SELECT max(position) FROM entry) FROM head"
        found, seen = self.reader.transaction.execute(select).fetchone(), self.seen
        if found != (seen.position, seen.chain, seen.position or None):
            raise LedgerError(
                f"{self.reader.where} did not take what was written; nothing was changed."
            )
