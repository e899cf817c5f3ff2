"""The rows of a ledger: what each one says, how they are chained, how they are read and checked.

One table, `entry`, beside `account` (the terms) and `head` (the last row). A request is one row
"reserve"; under it come its answers, each a row "part" named by its question, and at the end one
row "close". Rows are never changed nor removed. Each carries the SHA-256 of itself and of the row
before it, and the sums over all reservations up to it, so that the newest row states what is spent.

Reading: a new reader looks at `head`, at the number of rows and at the newest rows; whoever reads
an older row looks at its link; `Rows.check_all` follows all rows. A living reader follows every row
since the last one that it saw, so that it notices an older copy in place of the account.

The chain is no signature: who can write the whole account can forge the whole chain.

Statements are plain SQL that both databases know, with a question mark for each value.
"""

import functools
import hashlib
import os
import re
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from fractions import Fraction
from typing import Annotated, Any, Literal, NamedTuple, NoReturn, ParamSpec, Self, TypeVar

from pydantic import Field, JsonValue

from secretballot.core.errors import (
    BrokenOffError,
    Composition,
    LedgerError,
    check_name,
    plain_line,
)
from secretballot.core.events import AnyEvent, Event
from secretballot.core.filters import BasicFilter, Filter, RenyiFilter, Totals
from secretballot.core.price import PrivacyBudget
from secretballot.core.types import Guarantee, Model

_Given = ParamSpec("_Given")
Result = TypeVar("Result")

APPLICATION_ID = 0x53424C54  # "SBLT", in the header of a file
VERSION: Literal[8] = 8  # of the tables and of what rows say
_NEWEST = 1000  # rows that a new reader follows
_SPARE = 1 + Fraction(1, 10**9)  # times what rows say was spent
_AT_ONCE = 200  # rows that are read in one statement, of which each may hold a large answer

#: The tables and their keys, but for the names of two types.
TABLES = (
    """CREATE TABLE account (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    terms TEXT NOT NULL
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
)
KEYS = (
    "CREATE UNIQUE INDEX entry_place ON entry (reservation, number)",
    "CREATE UNIQUE INDEX entry_request ON entry (key) WHERE kind = 'reserve'",
    "CREATE UNIQUE INDEX entry_question ON entry (reservation, key) WHERE kind = 'part'",
)
#: Of a new row of `entry`: it leaves a gap, or comes after a closing. Whether it is asked before or
#: after rows are added, keys refuse what has a place or a name that is taken.
NOT_NEXT = """new.position > 1
    AND (SELECT position FROM entry WHERE position = new.position - 1) IS NULL
    OR new.number > 0 AND coalesce((
        SELECT kind FROM entry WHERE reservation = new.reservation AND number = new.number - 1
    ), 'close') = 'close'"""
#: What a trigger before each other row refuses: a verb, a table, and a condition.
GUARDS = (
    (
        "UPDATE",
        "head",
        """new.id <> old.id OR new.position <= old.position
    OR new.position <> (SELECT max(position) FROM entry)
    OR NOT EXISTS (SELECT 1 FROM entry WHERE position = new.position AND chain = new.chain)""",
    ),
    *(("INSERT", table, f"EXISTS (SELECT 1 FROM {table})") for table in ("account", "head")),
    *(("UPDATE", table, "true") for table in ("account", "entry")),
    *(("DELETE", table, "true") for table in ("account", "entry", "head")),
)


# --- what a ledger asks of the database under it ---


def repeated(work: Callable[_Given, Result]) -> Callable[_Given, Result]:
    """Have work done once more, on a new connection, where it broke off and nothing was stored."""

    @functools.wraps(work)
    def done(*given: _Given.args, **named: _Given.kwargs) -> Result:
        with suppress(BrokenOffError):
            return work(*given, **named)
        return work(*given, **named)

    return done


def unusable(where: str, error: Exception, kind: type[LedgerError] = LedgerError) -> LedgerError:
    """Return what a driver's error becomes, in its own words; raised in its place, as it may quote
    the file, which anybody may have written. None quotes a password."""
    diagnosis = getattr(error, "diag", None)  # of PostgreSQL
    said = getattr(diagnosis, "message_primary", None) or getattr(error, "strerror", None) or error
    return kind(
        f"{where} cannot be reached, read or written ({in_brief(said)}); see that the place is"
        " right and you may write there, that no other program holds it, and that its disk or"
        " server is in order, or restore it from a copy. Nothing was changed."
    )


def refuse(refused: LedgerError) -> NoReturn:
    """Raise an error in place of a driver's that is being handled: that holds the connection, and
    with it the password."""
    try:
        raise refused
    finally:
        refused.__context__ = None  # which raising sets, whatever it is raised from


def in_brief(detail: object) -> str:
    """Return what a message may say of something that was read from an account: one line, bounded,
    without control characters, as whoever can write there chose the words."""
    return plain_line(str(detail), longest=160)


class Transaction:
    """A transaction that has begun; its end is the store's.

    A store (`SqliteStore`, `PostgresStore`) has `where`, by which messages call the account, and
    raises `LedgerError` where it cannot be reached or trusted. Its `transaction` gives one of
    these, which sees one state of the whole account. Beside one that may write, nobody else writes;
    at its end it is durable, or nothing is changed.

    Parameters
    ----------
    connection
        Inside a transaction.
    where : str
    lock : str
        What the first statement ends with, so that it waits for whoever writes.

    Attributes
    ----------
    execute, executemany : callable
        Run one statement, with a sequence of values, or each of several.
    head : (int, bytes) or None
        Position and SHA-256 of the last row when it began; None where that is gone.
    """

    def __init__(self, connection: Any, where: str, *, lock: str = "") -> None:
        self.execute: Callable[..., Any] = connection.execute
        self.executemany: Callable[..., Any] = connection.executemany
        self.where = where
        self.head = self.execute(f"SELECT position, chain FROM head{lock}").fetchone()


_INHERITED: list[Any] = []  # neither used nor closed: what a fork has of its parent


class Resting:
    """Connections that rest between transactions, each for the process alone that opened it.

    They are closed when the store that has them is gone.
    """

    def __init__(self, store: object, most: int) -> None:
        self._most, self._kept = most, list[tuple[Any, int, Any]]()
        weakref.finalize(store, self.take, lambda _: False)

    def take(self, fits: Callable[[Any], bool]) -> Any:
        """Return a connection that was put here with a mark that fits, None where there is none;
        others are closed."""
        with suppress(IndexError):  # another thread may have taken the last one
            while True:
                connection, process, mark = self._kept.pop()
                if process != os.getpid():
                    _INHERITED.append(connection)
                elif fits(mark):
                    return connection
                else:
                    connection.close()
        return None

    def put(self, connection: Any, mark: Any) -> None:
        """Let a connection rest, or close it where enough do."""
        if len(self._kept) < self._most:
            self._kept.append((connection, os.getpid(), mark))
        else:
            connection.close()


# --- what rows say ---


def utc_now() -> str:
    """Return the time, UTC, ISO 8601, to the microsecond."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


class Account(Model):
    """What is fixed when a ledger is made: whose data, what is promised, how much, and how
    releases add up (`filter_order` is that of a Renyi filter, else None)."""

    dataset: str
    guarantee: Guarantee
    budget: PrivacyBudget
    composition: Composition
    filter_order: float | None = None
    created_at: str
    format: Literal[8] = VERSION

    @classmethod
    def new(cls, **terms: Any) -> Self:
        """Return the terms of a new ledger; the order of its filter is fixed here, for ever."""
        check_name("dataset", terms["dataset"])
        made = cls(created_at=utc_now(), **terms)
        return made.changed(filter_order=made.filter().order)

    def filter(self) -> Filter:
        """Return what admits releases."""
        if self.composition == "basic":
            return BasicFilter(self.budget)
        return RenyiFilter(self.budget, self.filter_order)

    @property
    def digest(self) -> bytes:
        """The SHA-256 that the chain of rows starts from."""
        return hashlib.sha256(self.model_dump_json().encode()).digest()

    def fill(self, execute: Callable[[str, Sequence[Any]], Any]) -> None:
        """Write its row, and a head before the first row, into new tables."""
        execute("INSERT INTO account VALUES (1, ?)", (self.model_dump_json(),))
        execute("INSERT INTO head VALUES (1, 0, ?)", (self.digest,))


def account_in(transaction: Transaction) -> Account:
    """Return what was fixed at creation.

    Raises
    ------
    LedgerError
        If it is gone, or this program cannot read it.
    """
    row: Sequence[Any] = transaction.execute("SELECT * FROM account").fetchone() or ("",)
    try:
        return Account.model_validate_json(row[-1])
    except _UNREADABLE as error:
        stated = re.search(r'"format":(\d+)', str(row[-1]))
        what = f"is of format {stated[1]}" if stated else "has lost its terms"
        raise LedgerError(
            f"{transaction.where} {what}, and this program reads format {VERSION}"
            f" ({type(error).__name__}); restore it from a copy, or use the version of secretballot"
            " that made it."
        ) from None


class Row(NamedTuple):
    """One row.

    `reservation` counts from 1. `number` is the place within the reservation: 0 of the row that
    reserves, then the answers, and the closing comes last.

    ======= ======== =================== ==============================
    kind    key      terms               body
    ======= ======== =================== ==============================
    reserve request  `Purchase`          `Intention`
    part    question nothing             answer
    close   nothing  `Closing`           nothing
    ======= ======== =================== ==============================
    """

    position: int
    kind: str
    reservation: int
    number: int
    key: bytes = b""
    terms: str = ""
    body: bytes = b""
    at: str = ""
    sums: str = ""
    chain: bytes = b""

    def link(self, previous: bytes) -> bytes:
        """Return the SHA-256 of this row and everything before it."""
        position, kind, reservation, number, key, terms, body, at, sums, _ = self
        # a value of a type that no ledger writes can only come from an edit by hand, and gives
        # another text
        text = (
            f"{position!a} {kind!a} {reservation!a} {number!a} {key.hex()} {terms!a}"
            f" {hashlib.sha256(body).hexdigest()} {at!a} {sums!a}"
        )
        return hashlib.sha256(previous + text.encode()).digest()


_COLUMNS = ", ".join(Row._fields)
_INSERT = f"INSERT INTO entry VALUES ({', '.join('?' * len(Row._fields))})"
_SELECT = (
    f"SELECT {_COLUMNS}, (SELECT p.chain FROM entry p WHERE p.position = e.position - 1)"
    " FROM entry e WHERE"
)


class Purchase(Model):
    """What one reservation holds: events, and the price of all together."""

    events: Annotated[tuple[AnyEvent, ...], Field(min_length=1)]
    price: PrivacyBudget


class Intention(Model):
    """What a reservation is for, and what a request that goes on must state again."""

    purpose: str
    terms: dict[str, JsonValue]


class Closing(Model):
    """How a reservation ended: with answers, of which it has what drew them and, where steps that
    were not taken are not paid, the events that were used; or without, for a reason."""

    facts: dict[str, JsonValue] | None = None
    used: tuple[AnyEvent, ...] | None = None
    reason: Annotated[str, Field(min_length=1)] | None = None


# a ledger holds the same few purchases many times
purchase_in = functools.lru_cache(maxsize=4096)(Purchase.model_validate_json)
# with `ParameterError`, which is a ValueError
_UNREADABLE = (TypeError, ValueError, LookupError, ArithmeticError, RecursionError)


class Progress(NamedTuple):
    """How far a reader has come: the last row, and the sums over all reservations up to it,
    whatever their states, less what closings gave back; the number of reservations is `grants`."""

    position: int
    chain: bytes
    totals: Totals


@functools.lru_cache(maxsize=64)  # all rows between two purchases have the same
def _totals_in(sums: str) -> Totals:
    grants, loss, failure = str.split(sums, " ")  # a TypeError where it is no text
    return Totals(int(grants), Fraction(loss), Fraction(failure))


# --- reading and writing ---


class Rows:
    """The rows within one transaction; each is held against its SHA-256 before anybody has it.

    Parameters
    ----------
    transaction : Transaction
    digest : bytes
        SHA-256 of the account.
    rule : Filter
        Of the account; it says what each purchase adds up to.
    known : Progress, optional
        How far an earlier reader has come.

    Attributes
    ----------
    seen : Progress
        The rows that were checked or added, which are all.

    Raises
    ------
    LedgerError
        If a row was edited, removed or added by hand, or the account is an older copy: of the rows
        after `known`, or of the newest ones.
    """

    def __init__(
        self, transaction: Transaction, digest: bytes, rule: Filter, known: Progress | None = None
    ) -> None:
        self.transaction, self.where = transaction, transaction.where
        self._digest, self.rule = digest, rule
        self.seen = self._follow(known or self._start(_NEWEST))

    def one(self, which: str, *values: Any) -> Row | None:
        """Return the first row of which a condition holds."""
        return next(iter(self.all(f"{which} LIMIT 1", *values)), None)

    def all(self, which: str, *values: Any) -> list[Row]:
        """Return every row of which a condition holds."""
        found = self.transaction.execute(f"{_SELECT} {which}", values).fetchall()
        return [self._checked(row) for row in found]

    def walk(self, column: str, first: int, which: str = "", *values: Any) -> Iterator[Row]:
        """Give rows in the order of a column, from a value of it on; no statement may take long."""
        which = f"{column} >= ? {which} ORDER BY {column} LIMIT {_AT_ONCE}"
        count = _AT_ONCE
        while count == _AT_ONCE:
            found = self.all(which, first, *values)
            yield from found
            count = len(found)
            first = getattr(found[-1], column) + 1 if found else first

    def answers(self, reservation: int, questions: Sequence[bytes]) -> Iterator[Row]:
        """Give the answers to those of `questions` that have one."""
        for start in range(0, len(questions), _AT_ONCE):
            block = questions[start : start + _AT_ONCE]
            marks = ", ".join("?" * len(block))
            which = f"reservation = ? AND kind = 'part' AND key IN ({marks})"
            yield from self.all(which, reservation, *block)

    def first(self, reservation: int) -> Row:
        """Return the row of a reservation that reserves."""
        row = self.one("reservation = ? AND number = 0", reservation)
        if row is None:
            raise self._forged(self.seen.position)
        return row

    def last(self, reservation: int) -> Row | None:
        """Return the row of a reservation that came last, None where there is none."""
        return self.one("reservation = ? ORDER BY number DESC", reservation)

    def has(self, position: int, chain: bytes) -> bool:
        """Return whether the row at a position has this SHA-256; that of no row is the
        account's."""
        if not position:
            return chain == self._digest
        select = "SELECT 1 FROM entry WHERE position = ? AND chain = ?"
        return self.transaction.execute(select, (position, chain)).fetchone() is not None

    # --- what they say ---

    def read(self, decode: Callable[[Any], Result], text: str | bytes) -> Result:
        """Return what a text of a row says.

        Raises
        ------
        LedgerError
            If this program cannot read it.
        """
        try:
            return decode(text)
        except _UNREADABLE as error:
            raise LedgerError(
                f"{self.where} holds a reservation that this program cannot read"
                f" ({type(error).__name__}); use the version of secretballot that made it."
            ) from None

    # --- how far it goes ---

    def check_all(self) -> None:
        """Check every row from the first one on.

        Raises
        ------
        LedgerError
            If a row was edited, removed or added by hand.
        """
        self._follow(self._start(self.seen.position))

    def _start(self, newest: int) -> Progress:
        """Return the progress from which a new reader follows so many of the newest rows."""
        head = self.transaction.head
        (count,) = self.transaction.execute("SELECT count(*) FROM entry").fetchone()
        if head is None or head[0] != count:
            raise self._forged(count)
        before = count - newest
        if before < 1:
            return Progress(0, self._digest, Totals())
        row = self.one("position = ?", before)
        if row is None:
            raise self._forged(before)
        return Progress(before, row.chain, self.sums_of(row))

    def _follow(self, seen: Progress) -> Progress:
        """Check every row after `seen` and return the new progress."""
        head = self.transaction.head
        if head == (seen.position, seen.chain):
            return seen
        if not self.has(seen.position, seen.chain):
            raise self._forged(seen.position)
        for row in self.walk("position", seen.position + 1):
            seen = self._next(seen, row)
        if head != (seen.position, seen.chain):
            raise self._forged(seen.position)
        return seen

    def _next(self, seen: Progress, row: Row) -> Progress:
        """Return the progress after one row more, which has its link."""
        known, least = 1 <= row.reservation <= seen.totals.grants, seen.totals
        if row.kind == "reserve":
            purchase = self.read(purchase_in, row.terms)
            least = least.plus(self.rule.costs(purchase.events, purchase.price))
            known = row.reservation == least.grants
        elif row.kind == "close" and known:
            used = self.read(Closing.model_validate_json, row.terms).used
            if used is not None:
                least = self.after_closing(least, row.reservation, used)
        totals = self.sums_of(row)
        # another version, or another machine's arithmetic, may have found it to cost more, or less
        # by rounding
        covered = totals == least or (
            totals.grants == least.grants
            and totals.loss * _SPARE >= least.loss
            and totals.failure * _SPARE >= least.failure
        )
        if row.position != seen.position + 1 or not known or not covered:
            raise self._forged(row.position)
        return Progress(row.position, row.chain, totals)

    def after_closing(self, totals: Totals, reservation: int, used: Sequence[Event]) -> Totals:
        """Return the sums where a reservation has turned out to be only what was used of it.

        Under a Renyi filter the divergences of one order add up over the steps that were really
        taken, whatever decided when to stop (Feldman and Zrnic 2021, Theorem 3.1), so steps that
        were not taken can be spent on something else. Sums of (epsilon, delta) pairs know no such
        thing, and give nothing back. What is taken back is what the row added, whatever this
        version would add for it.
        """
        row = self.first(reservation)
        before = self.one("position = ?", row.position - 1)
        earlier = self.sums_of(before) if before else Totals()
        reserved = self.sums_of(row).minus(earlier)
        kept = self.rule.costs(used, self.read(purchase_in, row.terms).price)
        lower = Totals(1, min(kept.loss, reserved.loss), min(kept.failure, reserved.failure))
        return totals.minus(reserved).plus(lower)

    def sums_of(self, row: Row) -> Totals:
        """Return what all reservations up to a row add up to."""
        return self.read(_totals_in, row.sums)

    def _checked(self, found: Sequence[Any]) -> Row:
        row, previous = Row(*found[:-1]), found[-1]
        try:
            sound = row.link(self._digest if row.position == 1 else previous) == row.chain
        except (AttributeError, TypeError, UnicodeError):  # a value of a type that nobody writes
            sound = False
        if not sound:
            raise self._forged(row.position)
        return row

    def _forged(self, position: object) -> LedgerError:
        return LedgerError(
            f"{self.where} was changed by hand at entry {in_brief(position)} or before it, has lost"
            " entries, or was replaced by an older copy; restore the newest copy of it."
        )

    # --- adding ---

    def add(self, rows: Iterable[Row], totals: Totals | None = None) -> None:
        """Add rows after all that is there, with their places and, where they change, new sums."""
        position, chain, before = self.seen
        after = before if totals is None else totals
        sums, placed = f"{after.grants} {after.loss} {after.failure}", list[Row]()
        for given in rows:
            position += 1
            row = given._replace(position=position, sums=sums)
            chain = row.link(chain)
            placed.append(row._replace(chain=chain))
        if placed:
            self.transaction.executemany(_INSERT, placed)
            move = "UPDATE head SET position = ?, chain = ?"
            self.transaction.execute(move, (position, chain))
        self.seen = Progress(position, chain, after)

    def check_end(self) -> None:
        """Refuse to commit where the last row is another one than was added last.

        Raises
        ------
        LedgerError
            If that is the case.
        """
        # a program may have swallowed the error of a statement that added some rows
        select = "SELECT position, chain, (SELECT max(position) FROM entry) FROM head"
        found, seen = self.transaction.execute(select).fetchone(), self.seen
        if found != (seen.position, seen.chain, seen.position or None):
            raise LedgerError(f"{self.where} did not take what was written. Nothing was changed.")
