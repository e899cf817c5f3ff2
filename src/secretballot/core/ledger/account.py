"""The ledger as its users hold it: a handle on one account.

Where the end of a transaction is unknown, the last row that it wrote is looked up on a new
connection, behind the lock: found, the call goes on; absent, the work is done once more; and where
nobody can look, `UnknownEndError` says so.
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

from secretballot.core.errors import (
    COMPOSITIONS,
    NEIGHBOURS,
    UNITS,
    BudgetError,
    LedgerError,
    Parameter,
    ParameterError,
    check_choice,
    check_count,
    check_name,
    check_relation,
    name_part,
    shown,
)
from secretballot.core.events import BinaryLabels, ClassLabels, Counts, Event
from secretballot.core.filters import Totals, filter_for
from secretballot.core.ledger import rows, sqlite
from secretballot.core.ledger.rows import (
    Account,
    BrokenOffError,
    Closing,
    Progress,
    Purchase,
    Reader,
    Row,
    Store,
    UnknownEndError,
    Writer,
    in_brief,
    repeated,
)
from secretballot.core.ledger.urls import DatabasePlace, is_database
from secretballot.core.price import PrivacyBudget, delta_upper
from secretballot.core.types import Guarantee

State = Literal["reserved", "committed", "forfeited"]
Place = Path | DatabasePlace

LONGEST_REQUEST = (
    240  # characters; more than a name has, since learners make several keys of one name
)
_NOT_STORED = "the answer was not stored, and what was reserved for it stays spent"
_KNOWN = {
    "committed": "was answered already; use the stored answer, which is public",
    "reserved": (
        "is being drawn or was interrupted, and stays spent; ask under another key to pay for it"
        " again"
    ),
    "forfeited": "was forfeited and stays spent; ask under another key to pay for it again",
}


class Amount(NamedTuple):
    """An (epsilon, delta) that may be zero, unlike a budget.

    Examples
    --------
    >>> ledger = sb.Ledger.in_memory(dataset="people", budget=sb.PrivacyBudget(1.0, 1e-6))
    >>> ledger.spent()
    Amount(epsilon=0.0, delta=0.0)
    """

    epsilon: float
    delta: float


@dataclass(frozen=True)
class LedgerEntry:
    """One reservation and what became of it; public parameters only.

    Attributes
    ----------
    id : int
        Number of the reservation, from 1.
    request : str
        Key of the request; one reservation per request, for ever.
    purpose : str
        What the release was for, in the words of the one who asked.
    events : tuple of Event
        What was allowed to be drawn.
    epsilon, delta : float
        Its price; spent in every state.
    state : {"reserved", "committed", "forfeited"}
        Reserved: being drawn, or interrupted.
    reserved_at, closed_at : str
        UTC, ISO 8601; `closed_at` is None while reserved.
    released_sha256 : str or None
        SHA-256 of the released bytes, in hexadecimal, once committed.
    reason : str or None
        Why it was forfeited.
    parts : int
        Answers given one by one so far; 0 where the answer is given as a whole.
    queries : int or None
        How many answers were reserved, where that was stated.
    terms : dict
        Public, as JSON values: what a request that goes on must state again.
    facts : dict or None
        What drew the answers, once it is committed.
    spent_after : tuple of float
        Epsilon and delta that were spent just after the reservation.

    Examples
    --------
    >>> ledger = sb.Ledger.in_memory(dataset="people", budget=sb.PrivacyBudget(1.0, 0.0))
    >>> votes = sb.votes_of_counts([[3, 97]])
    >>> paid = sb.estimate_stability(
    ...     votes, ledger, fraction=0.5, epsilon=0.5, request="how stable"
    ... )
    >>> entry = ledger.entry("how stable")
    >>> entry.id, entry.state, entry.epsilon
    (1, 'committed', 0.5)
    """

    id: int
    request: str
    purpose: str
    events: tuple[Event, ...]
    epsilon: float
    delta: float
    state: State
    reserved_at: str
    closed_at: str | None
    released_sha256: str | None
    reason: str | None
    parts: int
    queries: int | None = None
    terms: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, Any] | None = None
    spent_after: tuple[float, float] = (0.0, 0.0)


# --- an account that is open ---


class _Book:
    """The terms and the filter of an account, how far it was read, and the one way to read or write
    its rows.

    Attributes
    ----------
    after_commit : dict of str to callable
        Called with the position and the hash of the last row after every transaction that wrote.
    """

    def __init__(self, store: Store) -> None:
        self.where, self._store = store.where, store
        self.after_commit: dict[str, Callable[[int, str], object]] = {}
        self._lasting = 0  # rows that are known to survive a power cut
        with store.reading() as transaction:
            store.check(transaction, pages=False)
            self.account = account = rows.account_in(transaction, self.where)
            try:
                budget = PrivacyBudget(account.epsilon, account.delta)
                self.filter = filter_for(account.composition, budget, account.filter_order)
            except (ParameterError, TypeError, ValueError, LookupError, RecursionError) as error:
                raise LedgerError(
                    f"{self.where} composes releases in a way unknown to this program:"
                    f" {in_brief(error)}"
                ) from error
            # replaced whole, never changed in place: threads read it without a lock
            self._seen = self._reader(transaction).start()

    def _reader(self, transaction: rows.Transaction) -> Reader:
        return Reader(transaction, self.account.digest, self.filter, self.where)

    @contextmanager
    def reading(self) -> Iterator[tuple[Reader, Progress]]:
        """Give a transaction that only reads, and the rows checked up to its state.

        Raises
        ------
        LedgerError
            If the account cannot be read or trusted.
        """
        known = self._seen  # taken before the transaction starts: never newer than what that sees
        with self._store.reading() as transaction:
            reader = self._reader(transaction)
            self._seen = seen = reader.follow(known)
            yield reader, seen

    @contextmanager
    def writing(
        self, *, closes: int | None = None, after: str = "nothing was changed"
    ) -> Iterator[Writer]:
        """Give a transaction that may write; parameters are those of `Store.writing`.

        At the end it is durable, or nothing is changed.

        Raises
        ------
        BrokenOffError
            If it broke off and nothing was stored.
        UnknownEndError
            If that cannot be looked up.
        LedgerError
            If the account cannot be read, trusted or, at the end, written.
        """
        known, writer, began, ended = self._seen, None, 0, False
        try:
            with self._store.writing(closes=closes, after=after) as transaction:
                reader = self._reader(transaction)
                self._seen = seen = reader.follow(known)
                writer, began = Writer(reader, seen), seen.position
                yield writer
                writer.check_end()
                ended = True
        except UnknownEndError as error:
            if writer is None or not ended or not self._is_stored(writer.seen, error):
                raise
        written = writer.seen
        if written.position > began:  # a commit without writes makes nothing certain
            self._lasting = written.position
        self._seen = written
        for work in list(self.after_commit.values()):
            work(written.position, written.chain.hex())

    def _is_stored(self, written: Progress, unknown: UnknownEndError) -> bool:
        """Return whether a transaction of unknown end is durable, False where nobody can look.

        Behind the lock: what still works on that transaction has ended.

        Raises
        ------
        BrokenOffError
            If nothing was stored.
        """
        found = None
        try:
            with self._store.writing() as transaction:
                found = self.has_row(transaction, written.position, written.chain.hex())
                if found:
                    transaction.confirm_earlier()
        except LedgerError:
            if found is not False:  # else nothing is to be made certain of
                return False
        if not found:
            raise BrokenOffError(unknown.otherwise)
        return True

    def has_row(self, transaction: rows.Transaction, position: int, chain: str) -> bool:
        """Return whether the row at a position has this SHA-256, in hexadecimal; that of no row is
        the account's."""
        if not position:
            return chain == self.account.digest.hex()
        select = "SELECT chain FROM entry WHERE position = ?"
        row = transaction.execute(select, (position,)).fetchone()
        return row is not None and isinstance(row[0], bytes) and row[0].hex() == chain

    def make_lasting(self, seen: Progress) -> None:
        """Make certain that the rows up to there survive a power cut, before an answer among them
        is given out: who wrote them may have ended before the last write to the disk did.

        Raises
        ------
        LedgerError
            If nothing can be written.
        """
        if seen.position > self._lasting:
            with self._store.writing() as transaction:
                transaction.confirm_earlier()
            self._lasting = seen.position

    def keep_open(self) -> None:
        """Keep what a transaction needs at hand for the next ones."""
        self._store.keep_open()

    def check_all(self) -> None:
        """Check every page and every row of the account, from the first one on.

        Raises
        ------
        LedgerError
            If it is damaged, or a row was edited, removed or added by hand.
        """
        with self.reading() as (reader, _):
            self._store.check(reader.transaction, pages=True)
            reader.check_all()


class AnswerPage:
    """The answers of one reservation, held against everyone else until the transaction ends where
    some may be added.

    What is added here is on the disk when the transaction ends, and not at all if it does not:
    draw, add, leave, and only then return an answer to the world.

    Parameters
    ----------
    reader : Reader
        Inside a transaction.
    reservation : int
        Number of a reservation that is there.
    writer : Writer, optional
        Where the reservation is open and answers may be added.
    """

    def __init__(self, reader: Reader, reservation: int, writer: Writer | None = None) -> None:
        self._reader: Reader | None = reader
        self._reservation, self._writer = reservation, writer

    def close(self) -> None:
        """Let go of the ledger.

        The transaction is over, and a row that was added now would be checked by nobody.
        """
        self._reader = None

    @property
    def _open(self) -> Reader:
        if self._reader is None:
            raise LedgerError(
                f"The answers of reservation {self._reservation} are no longer held; ask for them "
                "again, and use them inside of the with."
            )
        return self._reader

    @property
    def count(self) -> int:
        """Number of answers given so far."""
        return self._open.last_number(self._reservation)[0]

    @property
    def closed(self) -> bool:
        """Whether the reservation is settled: stored answers are all that comes."""
        return self._open.last_number(self._reservation)[1]

    def find(self, questions: Iterable[bytes]) -> dict[bytes, bytes]:
        """Return the stored answers to those of `questions` that were asked before."""
        return {row.key: row.body for row in self._open.answers(self._reservation, list(questions))}

    def parts(self) -> list[tuple[bytes, bytes]]:
        """Return every (question, answer), in the order in which they were answered."""
        return [(row.key, row.body) for row in self._open.parts(self._reservation)]

    def last(self) -> bytes | None:
        """Return the answer given last, None where there is none yet."""
        reader, number = self._open, self.count
        row = reader.one("reservation = ? AND number = ?", self._reservation, number)
        return None if row is None or not number else row.body

    def add(self, parts: Sequence[tuple[bytes, bytes]]) -> None:
        """Store answers as (question, answer); none of the questions may have an answer yet."""
        first = self.count + 1
        assert self._writer is not None
        self._writer.add_parts(self._reservation, first, parts)

    def commit(self, facts: Mapping[str, Any], used: tuple[Event, ...] | None = None) -> None:
        """Close the reservation with the answers that were given.

        Parameters
        ----------
        facts : mapping
            Public, as JSON values, of what drew them.
        used : tuple of Event, optional
            What the answers given cost by themselves, where the rest goes back into the budget.
        """
        writer, totals = self._writer, None
        assert writer is not None
        if used is not None:
            totals = writer.reader.after_closing(writer.seen.totals, self._reservation, used)
        ended = Closing(facts=dict(facts), used=used)  # type: ignore[arg-type]  # pydantic checks
        number = self.count + 1
        writer.add("close", self._reservation, number, terms=ended.encode(), totals=totals)


class Ledger:
    """Open the account of a private dataset, or make it if there is none at `path`.

    One SQLite file per private dataset, or one schema of a PostgreSQL database. Every operation
    runs in one transaction that is on the disk when the call returns, so all threads and processes
    of a machine share one account, and all machines that reach the database. The object itself is a
    handle: a pickled one carries path and name only, never a password, and a copy is the same
    account.

    Parameters
    ----------
    path : path-like or DatabasePlace
        The file, kept on a local disk. A new one gets mode 0600. Or the URL of a database,
        ``postgresql://USER@HOST:PORT/DATABASE?schema=NAME``, which needs `secretballot[postgres]`;
        its role must own a ledger that is made, and may otherwise be a writer (`grant`).
    dataset : str
        Name of the private dataset; a file made for another one is refused.
    budget : PrivacyBudget, optional
        All that may ever be spent on the dataset. Needed where there is no file yet; where there is
        one it may be omitted, and must be equal if given, because a ledger's budget is fixed at
        creation.
    composition : {"basic", "renyi"}, optional
        How releases add up, fixed at creation: "basic" sums epsilons and deltas; "renyi" sums Renyi
        divergences at one order and admits more small releases. None takes what the file says,
        "basic" for a new one.
    unit : {"record", "user", "label"}, optional
        Whose data the total is a promise about, fixed at creation: one record, all records of one
        user, or the label of one record, whose features are public ("replace-one" only). None takes
        what the file says, "record" for a new one.
    neighbours : {"add-remove", "replace-one"}, optional
        Relation that the total is a promise about, fixed at creation. None takes what the file
        says, "add-remove" for a new one.

    Attributes
    ----------
    path : Path or None
        Absolute path; None in memory and in a database.
    place : str or None
        What opens it again: path, or URL without any password; None in memory.
    dataset, budget, composition, unit, neighbours
        As fixed at creation.
    durable : bool
        Whether the account outlives the process.

    Raises
    ------
    ParameterError
        If an argument is of the wrong type or out of range.
    LedgerError
        If the file cannot be made, opened, read or trusted, or is the account of something else.

    Privacy
    -------
    Unit, relation : as fixed at creation. Under "add-remove" an account about records also takes
        releases by user; under "replace-one" one about labels takes releases by record. Any other
        unit or relation is refused by `check_promise`, which the door asks before it reserves. What
        makes a user (which column) is not known here, and must be the same for every release.
    Price : the releases of all reservations together, chosen adaptively and even overlapping in
        time (Haney et al. 2023, arXiv:2309.05901), satisfy the budget, by the filter that is asked
        inside the transaction that reserves. A reservation is admitted only if `delta_upper`
        certifies its events at its price, whatever the caller says.
    Contents : public parameters, times and released bytes; nothing that was computed from private
        data otherwise.
    Limits : the rows form a hash chain, so that an edit by hand, or an older copy put in place
        under a living handle, is noticed: of the newest rows when a ledger is opened, of an older
        one when it is read, of all by `check`. What is spent stands in the newest row. The chain is
        no signature: who can write the file can forge it whole, delete it, restore an old copy
        before the next start (vaults that used it notice), or keep two ledgers for the same data.
        Guard the vault accordingly. In a database the owner of the tables can do all that; a writer
        can add rows, which are believed where they continue the chain. Where storing breaks off at
        its very end, what was written is looked up on a new connection; where that is impossible,
        an error says that the end is unknown: then nothing was returned, and what is found later
        counts.

    Examples
    --------
    >>> ledger = sb.Ledger("people.ledger", dataset="people", budget=sb.PrivacyBudget(2.0, 1e-6))
    >>> votes = sb.votes_of_counts([[3, 97], [60, 40]])
    >>> paid = sb.estimate_stability(votes, ledger, fraction=0.5, epsilon=0.5)
    >>> ledger.spent().epsilon, ledger.remaining().epsilon
    (0.5, 1.5)
    >>> [entry.state for entry in ledger.history()]
    ['committed']
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | DatabasePlace,
        *,
        dataset: str,
        budget: PrivacyBudget | None = None,
        composition: str | None = None,
        unit: str | None = None,
        neighbours: str | None = None,
    ) -> None:
        _check_terms(dataset, budget, composition, unit, neighbours)
        place = _place_of(path)
        if not self.exists(place):
            if budget is None:
                raise LedgerError(
                    f"There is no ledger at {_name_of(place)}; give a budget to make one, or the"
                    " right path."
                )
            account = _new_account(dataset, budget, composition, unit, neighbours)
            try:
                _create(place, account)
            except (BrokenOffError, UnknownEndError):  # one that is there by now is left
                _create(place, account)
        self._hold_place(place, dataset, None)
        _refuse_other_terms(self._own_book, budget, composition, unit, neighbours)

    @classmethod
    def in_memory(
        cls,
        *,
        dataset: str,
        budget: PrivacyBudget,
        composition: str | None = None,
        unit: str | None = None,
        neighbours: str | None = None,
    ) -> Self:
        """Return an account under the same rules that dies with this process.

        Raises
        ------
        ParameterError
            If an argument is of the wrong type or out of range.
        """
        _check_terms(dataset, budget, composition, unit, neighbours)
        if budget is None:
            raise ParameterError(
                Parameter("budget"),
                " is None; a ledger in memory is always new and needs a PrivacyBudget.",
            )
        account = _new_account(dataset, budget, composition, unit, neighbours)
        # not by the constructor, which makes or opens an account in some place
        ledger = cls.__new__(cls)
        ledger._hold_place(None, dataset, None)
        ledger._opened = _Book(sqlite.SqliteStore(None, account))
        return ledger

    @classmethod
    def open_existing(cls, path: str | os.PathLike[str] | DatabasePlace) -> Self:
        """Open the ledger at `path` with the dataset and the budget that it names.

        Raises
        ------
        LedgerError
            If there is none, or it cannot be opened, read or trusted.
        """
        ledger = cls.__new__(cls)
        ledger._hold_place(_place_of(path), None, None)
        ledger._dataset = ledger._own_book.account.dataset
        return ledger

    @staticmethod
    def exists(path: str | os.PathLike[str] | DatabasePlace) -> bool:
        """Return whether something is at a place, so that no ledger is made there.

        Raises
        ------
        ParameterError
            If it is no path and no URL of a PostgreSQL database.
        LedgerError
            If the database cannot be asked.
        """
        place = _place_of(path)
        if isinstance(place, Path):
            return os.path.lexists(place)
        return bool(repeated(_postgres(place).has_account)(place))

    @staticmethod
    def grant(path: str | os.PathLike[str] | DatabasePlace, role: str) -> None:
        """Let a role of the database read a ledger and add rows, and nothing else.

        Called by the role that owns the ledger. Programs that pay and answer then use the other
        one, which cannot change or remove a row.

        Raises
        ------
        LedgerError
            If there is no such ledger or role, it is not this role's to grant, or the other one
            could change rows anyway.
        """
        _check_text("role", role)
        place = _place_of(path)
        if isinstance(place, Path):
            raise LedgerError(
                f"The ledger {place} is a file, whose rights are those of the file system; give the"
                " URL of a PostgreSQL database."
            )
        _postgres(place).grant_writer(place, role)

    # --- the account ---

    @property
    def path(self) -> Path | None:
        """Absolute path of the file; None in memory and in a database."""
        return self._place if isinstance(self._place, Path) else None

    @property
    def place(self) -> str | None:
        """What opens the ledger again: the path of its file, or its URL without any password; None
        in memory."""
        return None if self._place is None else str(self._place)

    @property
    def durable(self) -> bool:
        """Whether the account outlives the process."""
        return self._place is not None

    @property
    def dataset(self) -> str:
        """Name of the private dataset."""
        return self._dataset if self._dataset is not None else self._own_book.account.dataset

    @property
    def account(self) -> str:
        """What tells this account from every other one: the SHA-256 of its terms, in
        hexadecimal."""
        return self._own_book.account.digest.hex()

    @property
    def budget(self) -> PrivacyBudget:
        """All that may ever be spent."""
        return self._own_book.filter.budget

    @property
    def composition(self) -> str:
        """How releases add up: "basic" or "renyi"."""
        return self._own_book.account.composition

    @property
    def unit(self) -> str:
        """Whose data the total is a promise about: "record" or "user"."""
        return self._own_book.account.unit

    @property
    def neighbours(self) -> str:
        """Relation that the total is a promise about: "add-remove" or "replace-one"."""
        return self._own_book.account.neighbours

    @property
    def guarantee(self) -> Guarantee:
        """Whose data it is about, and how neighbouring datasets differ."""
        return Guarantee(unit=self.unit, relation=self.neighbours)  # type: ignore[arg-type]

    def check_promise(self, unit: str, neighbours: str) -> None:
        """Refuse a release about this unit and relation if it does not add to what the ledger
        promises.

        Raises
        ------
        ParameterError
            If the unit or the relation is unknown.
        LedgerError
            If they are others than the ledger's, and not "user" in an account about records under
            "add-remove".
        """
        check_choice("unit", unit, UNITS)
        check_choice("neighbours", neighbours, NEIGHBOURS)
        check_relation(unit, neighbours)
        released, promised = (unit, neighbours), (self.unit, self.neighbours)
        # One record more or less is in the one shard of its user, whom the release by user protects
        # at the same price. A record that is replaced by another user's is in two shards, so this
        # ends with add-remove.
        #
        # Datasets that differ in one label differ in one record, replaced in place by one with the
        # same features. What is (epsilon, delta)-indistinguishable for every replaced record is so
        # for these pairs too, and the events of all releases compose pair by pair. Not the other
        # way: a release about labels says nothing of changed features.
        covered = (released, promised) in (
            (("user", "add-remove"), ("record", "add-remove")),
            (("record", "replace-one"), ("label", "replace-one")),
        )
        if released != promised and not covered:
            raise LedgerError(
                f"{self._own_book.where} adds up a promise about unit {self.unit!r} under"
                f" {self.neighbours!r}, and this release is about unit {unit!r} under"
                f" {neighbours!r}; together they would promise neither, so release under the"
                " ledger's unit and relation. Nothing was spent."
            )

    @repeated
    def spent(self) -> Amount:
        """Return what is spent, every reservation in whatever state counted, rounded up."""
        with self._own_book.reading() as (_, seen):
            return Amount(*self._own_book.filter.spent(seen.totals))

    @repeated
    def remaining(self) -> Amount:
        """Return what is left, rounded down.

        With basic composition a release at just this price is admitted.
        """
        with self._own_book.reading() as (_, seen):
            return Amount(*self._own_book.filter.left(seen.totals))

    @repeated
    def releases(self) -> int:
        """Return how many reservations there are, in whatever state."""
        with self._own_book.reading() as (_, seen):
            return seen.totals.grants

    @repeated
    def history(self) -> list[LedgerEntry]:
        """Return every reservation, oldest first."""
        with self._own_book.reading() as (reader, seen):
            return [
                _entry_of(reader, *pair)
                for start in range(0, seen.totals.grants, rows.AT_ONCE)
                for pair in reader.ends(start, start + rows.AT_ONCE)
            ]

    @repeated
    def check(self) -> None:
        """Check every page of the file and every row of the account, from the first one on.

        Raises
        ------
        LedgerError
            If the file is damaged, or a row was edited, removed or added by hand.
        """
        self._own_book.check_all()

    def keep_open(self) -> None:
        """Keep the file open from one transaction to the next, for a program that has many of them.

        Opening it costs as much as a short transaction. A file that is put in its place is noticed.
        """
        self._own_book.keep_open()

    @repeated
    def head(self) -> tuple[int, str]:
        """Return the number of rows, and the SHA-256 of the last one, in hexadecimal.

        It stands for all of them.
        """
        with self._own_book.reading() as (_, seen):
            return seen.position, seen.chain.hex()

    @repeated
    def contains(self, position: int, chain: str) -> bool:
        """Return whether the row at this position has this SHA-256.

        Whether the ledger goes on from where that was.
        """
        number = check_count("position", position, minimum=0)
        with self._own_book.reading() as (reader, _):
            return self._own_book.has_row(reader.transaction, number, chain)

    @repeated
    def entry(self, request: str) -> LedgerEntry | None:
        """Return the reservation of a request, None where there is none."""
        _check_text("request", request)
        with self._own_book.reading() as (reader, _):
            number = _number_of(reader, request)
            return None if number is None else _entry_at(reader, number)

    def call_after_commits(self, name: str, work: Callable[[int, str], object]) -> None:
        """Let `work` have what `head` returns after everything that this handle writes.

        One of each name.
        """
        self._own_book.after_commit[name] = work

    # --- buying ---

    @repeated
    def reserve(
        self,
        events: Sequence[Event],
        price: PrivacyBudget,
        *,
        request: str,
        purpose: str,
        queries: int | None = None,
        terms: Mapping[str, Any] | None = None,
        room: int = 0,
    ) -> int:
        """Reserve `events` at `price` and return the number of the reservation.

        Only then may noise be drawn.

        Parameters
        ----------
        events : sequence of Event
            What will be drawn, at least one.
        price : PrivacyBudget
            (epsilon, delta) at which the events are priced.
        request : str
            Key of the request, unique in the ledger: a repeated request is answered from
            `released`.
        purpose : str
            What for; may be empty.
        queries : int, optional
            How many answers the events are for, each of them the same share of every event. Where
            it is stated, what was not used can be computed and given back.
        terms : mapping, optional
            Public, as JSON values: what a request that goes on must state again.
        room : int
            Bytes that the answer may need at most. They are taken on the disk together with the
            purchase, so that a disk that fills up in the meantime does not cost the answer.

        Raises
        ------
        ParameterError
            If an argument is of the wrong type or empty, or the request is no name on one line.
        BudgetError
            If the events cost more than the price, or the budget does not admit them; nothing was
            spent.
        LedgerError
            If the request is known already, or the ledger cannot be read or written; nothing may be
            drawn.
        """
        text, purchase = _certified(events, price, queries)
        check_name("request", request, longest=LONGEST_REQUEST)
        _check_text("purpose", purpose, empty=True)
        body = rows.intention_text(purpose, terms or {})
        size, book = check_count("room", room, minimum=0), self._own_book
        # the filter is asked and the row written in one transaction: two processes cannot both
        # spend the rest
        with book.writing() as writer:
            reader, totals = writer.reader, writer.seen.totals
            known = _number_of(reader, request)
            if known is not None:
                state = _entry_at(reader, known).state
                raise LedgerError(f"Request {in_brief(request)!r} {_KNOWN[state]}.")
            costs = book.filter.costs(purchase.events, price)
            if not book.filter.admits(totals, purchase.events, price):
                raise BudgetError(self._refusal_of(price, totals, totals.plus(costs)))
            number = totals.grants + 1
            writer.add(
                "reserve",
                number,
                0,
                key=request.encode(),
                terms=text,
                body=body,
                totals=totals.plus(costs),
            )
            # in the same transaction: where the answer has no room, nothing is reserved
            if size:
                reader.transaction.claim_room(number, size)
        return number

    @repeated
    def check_admits(self, events: Sequence[Event], price: PrivacyBudget) -> None:
        """Refuse, with `BudgetError`, what `reserve` would refuse now; nothing is spent."""
        book = self._own_book
        with book.reading() as (_, seen):
            if not book.filter.admits(seen.totals, events, price):
                after = seen.totals.plus(book.filter.costs(events, price))
                raise BudgetError(self._refusal_of(price, seen.totals, after))

    @contextmanager
    def answering(self, reservation: int, *, closes: bool = False) -> Iterator[AnswerPage]:
        """Hold the answers of an open reservation while some are added.

        They are on the disk at the end, or not at all, in one transaction however many they are:
        who has several questions at once holds the page once. Where it breaks off and nothing was
        stored, the work may be done once more (`rows.repeated`).

        Parameters
        ----------
        reservation : int
            Number that `reserve` returned.
        closes : bool
            Whether the page will be committed.

        Raises
        ------
        LedgerError
            If the reservation is unknown or closed, or the ledger cannot be written; no answer may
            then leave.
        """
        number = check_count("reservation", reservation)
        with self._own_book.writing(closes=number if closes else None) as writer:
            _answered_open(writer, number)
            with closing(AnswerPage(writer.reader, number, writer)) as page:
                yield page

    @contextmanager
    def reading(self, reservation: int) -> Iterator[AnswerPage]:
        """Show the answers given so far under a reservation, open or closed; nothing can be
        added."""
        number = check_count("reservation", reservation)
        with (
            self._own_book.reading() as (reader, _),
            closing(AnswerPage(reader, number)) as page,
        ):
            yield page

    def commit(
        self,
        reservation: int,
        released: bytes,
        *,
        parts: int | None = None,
        used: Sequence[Event] | None = None,
    ) -> None:
        """Close a reservation with the bytes that will be released.

        Return them to the world only afterwards.

        Parameters
        ----------
        reservation : int
            Number that `reserve` returned.
        released : bytes
            The answer, public; a repeated request gets exactly these bytes.
        parts : int, optional
            How many answers were given in parts, all of them in `released`: with others the
            reservation stays open. By default none were, and `released` is the whole answer, for
            which all that was reserved is spent.
        used : sequence of Event, optional
            The reserved events with as many queries as were really answered; the rest goes back
            into the budget. Only where the composition is "renyi", and, for counts, where the
            purchase stated its number of queries. By default all that was reserved is spent.

        Raises
        ------
        ParameterError
            If an argument is of the wrong type, or `used` is no beginning of what was reserved, or
            is given without `parts`.
        LedgerError
            If the reservation is unknown or closed or has other parts, `used` is given under
            another composition, or the ledger cannot be written; the bytes must then not leave.
        """
        if not isinstance(released, bytes):
            raise ParameterError(
                Parameter("released"), f" is a {type(released).__name__}; it must be bytes."
            )
        if used is not None and parts is None:
            raise ParameterError(
                Parameter("used"),
                " goes with ",
                Parameter("parts"),
                ", how many answers were given one by one; an answer that is given whole spends all"
                " that was reserved.",
            )
        number = check_count("reservation", reservation)
        self._store_answer(number, released, parts or 0, None if used is None else tuple(used))

    @repeated
    def _store_answer(
        self, number: int, released: bytes, parts: int, used: tuple[Event, ...] | None
    ) -> None:
        book = self._own_book
        with book.writing(closes=number, after=_NOT_STORED) as writer:
            answered = _answered_open(writer, number)
            # an answer that another process gave meanwhile would be missing from what is closed
            if answered != parts:
                raise LedgerError(
                    f"Reservation {number} has given {answered} answers in parts, not {parts}; read"
                    " again."
                )
            totals = None
            if used is not None:
                purchase = writer.reader.purchase(writer.reader.reserved(number))
                _check_used(book.account, purchase, used, answered)
                totals = writer.reader.after_closing(writer.seen.totals, number, used)
            digest = hashlib.sha256(released).hexdigest()
            ended = Closing(sha256=digest, used=used)  # type: ignore[arg-type]  # pydantic checks
            writer.add(
                "close", number, answered + 1, terms=ended.encode(), body=released, totals=totals
            )

    @repeated
    def forfeit(self, reservation: int, reason: str) -> None:
        """Close a reservation without an answer; drawn or not, it stays spent.

        Parameters
        ----------
        reservation : int
            Number that `reserve` returned.
        reason : str
            Why, in words that tell nothing about private data.

        Raises
        ------
        ParameterError
            If an argument is of the wrong type or empty.
        LedgerError
            If the reservation is unknown or closed, or the ledger cannot be written.
        """
        _check_text("reason", reason)
        number = check_count("reservation", reservation)
        with self._own_book.writing(closes=number) as writer:
            answered = _answered_open(writer, number)
            writer.add("close", number, answered + 1, terms=Closing(reason=reason).encode())

    @repeated
    def released(self, request: str) -> bytes | None:
        """Return the released bytes of a committed request, None where there is no answer, or one
        in parts.

        Raises
        ------
        LedgerError
            If the bytes are not the ones that were committed, or the ledger cannot be read, or, at
            the first answer that another handle wrote, not be written.
        """
        _check_text("request", request)
        with self._own_book.reading() as (reader, seen):
            number = _number_of(reader, request)
            entry = None if number is None else _entry_at(reader, number)
            if entry is None or entry.state != "committed" or entry.facts:
                return None
            select = "SELECT body FROM entry WHERE reservation = ? AND number = ?"
            place = (number, entry.parts + 1)
            (body,) = reader.transaction.execute(select, place).fetchone()
            digest = hashlib.sha256(body).hexdigest() if isinstance(body, bytes) else None
            if digest != entry.released_sha256:
                raise LedgerError(
                    f"{reader.where} had an answer changed by hand; restore it from a copy."
                )
        self._own_book.make_lasting(seen)
        return bytes(body)

    # --- handles ---

    def __repr__(self) -> str:
        place = "in memory" if self._place is None else repr(_name_of(self._place))
        try:
            budget, spent = self.budget, self.spent()
        except LedgerError:  # a repr is for looking, often at what is broken
            return f"Ledger({place}, dataset={self._dataset!r}, unreadable)"
        return (
            f"Ledger({place}, dataset={self.dataset!r}, unit={self.unit!r},"
            f" neighbours={self.neighbours!r}, budget=({budget.epsilon:g}, {budget.delta:g}),"
            f" spent=({spent.epsilon:g}, {spent.delta:g}))"
        )

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # a second account with the same budget would be a second budget

    def __getstate__(self) -> dict[str, str]:
        if self._place is None:
            raise LedgerError(
                "A ledger in memory cannot be pickled, since a copy would be a second budget; give"
                " a path instead."
            )
        return {"path": str(self._place), "dataset": self.dataset, "account": self.account}

    def __setstate__(self, state: dict[str, str]) -> None:
        self._hold_place(_place_of(state["path"]), state["dataset"], state["account"])

    # --- inside ---

    def _hold_place(self, place: Place | None, dataset: str | None, account: str | None) -> None:
        """Become a handle that has not looked at the account yet."""
        self._place, self._dataset, self._expected = place, dataset, account
        self._opened: _Book | None = None

    @property
    def _own_book(self) -> _Book:
        if self._opened is None:
            assert self._place is not None  # an account in memory is open from the start
            self._opened = repeated(_book_at)(self._place, self._dataset, self._expected)
        return self._opened

    def _refusal_of(self, price: PrivacyBudget, before: Totals, with_it: Totals) -> str:
        budget, rule = self.budget, self._own_book.filter
        spent, after = Amount(*rule.spent(before)), Amount(*rule.spent(with_it))
        sums = (
            " in Renyi divergences of one order, which is how it adds up,"
            if self.composition == "renyi"
            else ""
        )
        return (
            f"A release at epsilon {price.epsilon:g}, delta {price.delta:g} does not fit the ledger"
            f" of {self.dataset!r}: of its budget ({budget.epsilon:g}, {budget.delta:g}),"
            f" ({spent.epsilon:g}, {spent.delta:g}) is spent, and with the release it would"
            f" be{sums} ({after.epsilon:g}, {after.delta:g}); ask for a smaller release."
        )


# --- places ---


def _place_of(given: object) -> Place:
    """Return the place that somebody names by a path, a URL or a `DatabasePlace`; a path is made
    absolute, so that a change of folder does not lead a handle to another file.

    Raises
    ------
    ParameterError
        If it is none of these.
    """
    if isinstance(given, DatabasePlace):
        return given
    if isinstance(given, str) and is_database(given):
        return DatabasePlace(given)
    text = os.fspath(given) if isinstance(given, str | os.PathLike) else None
    if not isinstance(text, str) or not text or "\0" in text:
        raise ParameterError(
            Parameter("path"),
            f" is {shown(given)}; it must be the path of a file, or the URL of a PostgreSQL"
            " database.",
        )
    return Path(os.path.abspath(text))


def _name_of(place: Place) -> str:
    return place.name if isinstance(place, DatabasePlace) else str(place)


def _postgres(place: DatabasePlace) -> Any:
    """Return the module for databases, which needs a driver."""
    if find_spec("psycopg") is None:
        raise LedgerError(
            f"The ledger {place.name} is in a PostgreSQL database, and psycopg is not installed;"
            " install secretballot[postgres]."
        )
    from secretballot.core.ledger import postgres

    return postgres


def _create(place: Place, account: Account) -> None:
    """Make an account, complete or not at all; leave one that another program made meanwhile."""
    if isinstance(place, Path):
        sqlite.create_file(place, account)
    else:
        _postgres(place).create_account(place, account)


def _book_at(place: Place, dataset: str | None, digest: str | None) -> _Book:
    """Open an account, if it is that of `dataset` and has `digest`, where these are given."""
    store = (
        sqlite.SqliteStore(place)
        if isinstance(place, Path)
        else _postgres(place).PostgresStore(place)
    )
    book = _Book(store)
    if dataset is not None and book.account.dataset != dataset:
        raise LedgerError(
            f"{book.where} is the account of {in_brief(book.account.dataset)!r}, not of"
            f" {in_brief(dataset)!r}; give the path of the right ledger."
        )
    if digest is not None and book.account.digest.hex() != digest:
        raise LedgerError(
            f"{book.where} is not the one this handle was made for; restore that one."
        )
    return book


# --- terms ---


def _check_terms(
    dataset: str,
    budget: object,
    composition: str | None,
    unit: str | None,
    neighbours: str | None,
) -> None:
    """Refuse what no ledger can have; None leaves a term to the account, or to the default of a new
    one."""
    _check_text("dataset", dataset)
    if budget is not None and not isinstance(budget, PrivacyBudget):
        raise ParameterError(
            Parameter("budget"), f" is {shown(budget)}; it must be a PrivacyBudget."
        )
    for name, given, allowed in (
        ("composition", composition, COMPOSITIONS),
        ("unit", unit, UNITS),
        ("neighbours", neighbours, NEIGHBOURS),
    ):
        if given is not None:
            check_choice(name, given, allowed)


def _new_account(
    dataset: str,
    budget: PrivacyBudget,
    composition: str | None,
    unit: str | None,
    neighbours: str | None,
) -> Account:
    """Return the terms of a new ledger; the order of its filter is fixed here, for ever."""
    composition = composition or COMPOSITIONS[0]
    unit, neighbours = unit or UNITS[0], neighbours or NEIGHBOURS[0]
    check_relation(unit, neighbours)
    order = filter_for(composition, budget).order
    pair = budget.epsilon, budget.delta
    return Account(dataset, unit, neighbours, *pair, composition, order, rows.utc_now())


def _refuse_other_terms(
    book: _Book,
    budget: PrivacyBudget | None,
    composition: str | None,
    unit: str | None,
    neighbours: str | None,
) -> None:
    """Refuse terms that are given and differ from the ones fixed at creation."""
    own = book.filter.budget
    if budget is not None and budget != own:
        raise LedgerError(
            f"{book.where} has budget ({own.epsilon}, {own.delta}) and ({budget.epsilon},"
            f" {budget.delta}) was given; a ledger's budget is fixed at creation, so leave it out"
            " or give the same."
        )
    given = {"composition": composition, "unit": unit, "neighbours": neighbours}
    for name, value in given.items():
        fixed = getattr(book.account, name)
        if value is not None and value != fixed:
            raise LedgerError(
                f"{book.where} has {name} {in_brief(fixed)!r} and {value!r} was given; it is fixed"
                " at creation, so leave it out or give the same."
            )


def _check_text(name: str, value: object, *, empty: bool = False) -> None:
    """Refuse anything but text that an account can hold, and blank text unless `empty`."""
    if not isinstance(value, str):
        raise ParameterError(name_part(name), f" is a {type(value).__name__}; it must be text.")
    if not empty and not value.strip():
        raise ParameterError(name_part(name), " is empty; give at least one character.")
    # NUL ends a string in other SQLite programs; half a surrogate pair cannot be written at all
    if any(character == "\0" or "\ud800" <= character <= "\udfff" for character in value):
        raise ParameterError(
            name_part(name), " has NUL or lone surrogates in it; give Unicode text without."
        )


# --- reservations ---


def _certified(events: object, price: PrivacyBudget, queries: int | None) -> tuple[str, Purchase]:
    """Return a purchase as the text to store, and as it is read back from that text.

    Raises
    ------
    ParameterError
        If there is no event, or something is of the wrong type.
    BudgetError
        If `delta_upper` does not certify the events at `price`.
    """
    if not isinstance(price, PrivacyBudget):
        raise ParameterError(Parameter("price"), f" is {shown(price)}; it must be a PrivacyBudget.")
    given = tuple(events) if isinstance(events, Iterable) else (events,)
    if not given or not all(isinstance(event, Event) for event in given):
        raise ParameterError(
            Parameter("events"),
            " must be a sequence of one or more events of `core.events`.",
        )
    counted = None if queries is None else check_count("queries", queries)
    stated = {"events": given, "queries": counted, **price.to_json()}
    text = Purchase(**stated).encode()  # type: ignore[arg-type]  # pydantic checks
    # what is priced is what is stored, whatever class the caller's events have
    purchase = Purchase.decode(text)
    delta = delta_upper(purchase.events, price.epsilon)
    if not delta <= price.delta:
        raise BudgetError(
            f"The events cost delta {delta:g} at epsilon {price.epsilon:g}, more than the delta"
            f" {price.delta:g} they are to be reserved at; calibrate them to the price."
        )
    return text, purchase


def _number_of(reader: Reader, request: str) -> int | None:
    """Return the number of the reservation of a request, None where there is none."""
    row = reader.one("kind = 'reserve' AND key = ?", request.encode())
    return None if row is None else row.reservation


def _entry_at(reader: Reader, number: int) -> LedgerEntry:
    """Return the entry of a reservation that is there."""
    (ends,) = reader.ends(number - 1, number)
    return _entry_of(reader, *ends)


def _entry_of(reader: Reader, first: Row, last: Row) -> LedgerEntry:
    """Return an entry from the first and the last row of a reservation."""
    purchase, closed = reader.purchase(first), last.kind == "close"
    ended = reader.closing(last) if closed else None
    purpose, terms = reader.intention(first)
    return LedgerEntry(
        id=first.reservation,
        request=first.key.decode(),
        purpose=purpose,
        events=purchase.events,
        epsilon=purchase.epsilon,
        delta=purchase.delta,
        state="reserved" if ended is None else ended.state,
        reserved_at=first.at,
        closed_at=last.at if closed else None,
        released_sha256=None if ended is None else ended.sha256,
        reason=None if ended is None else ended.reason,
        parts=last.number - closed,
        queries=purchase.queries,
        terms=terms,
        facts=None if ended is None else ended.facts,
        spent_after=reader.spent_after(first),
    )


def _answered_open(writer: Writer, reservation: int) -> int:
    """Return the number of answers of a reservation that takes further ones.

    Raises
    ------
    LedgerError
        If there is none of that number, or it is closed.
    """
    reader = writer.reader
    if reservation > writer.seen.totals.grants:
        raise LedgerError(
            f"{reader.where} has no reservation {reservation}; give a number from reserve."
        )
    answered, closed = reader.last_number(reservation)
    if closed:
        state = _entry_at(reader, reservation).state
        raise LedgerError(
            f"Reservation {reservation} is {state} already; a reservation is closed once."
        )
    return answered


_STEPPED = (BinaryLabels, ClassLabels, Counts)


def _check_used(
    account: Account, purchase: Purchase, used: tuple[Event, ...], answered: int
) -> None:
    """Refuse what cannot be all that a reservation used of what it holds.

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
    if account.composition != "renyi":
        raise LedgerError(
            f"The ledger of {in_brief(account.dataset)!r} composes by"
            f" {in_brief(account.composition)!r}, where stopping early costs as much as the"
            " whole reservation; keep the rest of it open, or use a ledger with composition"
            " 'renyi'."
        )
    if not used and not answered and all(isinstance(one, _STEPPED) for one in purchase.events):
        return
    # what is kept must cover every answer that was given: less would give back privacy that was
    # spent
    if len(used) != len(purchase.events) or not all(
        _is_stopped_after(part, whole, purchase.queries, answered)
        for part, whole in zip(used, purchase.events, strict=True)
    ):
        raise ParameterError(
            "The used events must be the reserved ones with as many queries as were answered, of a"
            " number of queries that was stated when they were reserved; count them again, or leave"
            " used out."
        )


def _is_stopped_after(part: Event, whole: Event, queries: int | None, answered: int) -> bool:
    """Return whether `part` is the beginning of `whole` with at least the steps that this many of
    so many answers took; events without steps are kept whole."""
    if not isinstance(whole, _STEPPED):
        return part == whole
    steps = answered
    if isinstance(whole, Counts):
        # a histogram takes two steps and a count one: without the queries nobody knows which
        known = queries is not None and whole.times % queries == 0
        steps = whole.times // queries * answered if queries and known else whole.times
    fits = isinstance(part, type(whole)) and steps <= part.times <= whole.times
    return fits and part == whole.repeated(part.times)
