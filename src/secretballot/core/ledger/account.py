"""The ledger as its users hold it: a handle on one account.

Where the end of a transaction is unknown, the last row that it wrote is looked up on a new
connection, behind the lock: found, the call goes on; absent, the work is done once more; and where
nobody can look, `UnknownEndError` says so.
"""

import functools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, TypeAlias

from secretballot.core.errors import (
    COMPOSITIONS,
    RELATIONS,
    UNITS,
    BrokenOffError,
    BudgetError,
    Json,
    JsonView,
    LedgerError,
    UnknownEndError,
    check_name,
    wrong,
)
from secretballot.core.events import Event
from secretballot.core.filters import Totals
from secretballot.core.ledger import rows, sqlite
from secretballot.core.ledger.rows import Result, repeated
from secretballot.core.ledger.urls import DatabasePlace, file_or_database
from secretballot.core.price import PrivacyBudget, delta_upper
from secretballot.core.types import Guarantee

if TYPE_CHECKING:
    from secretballot.core.ledger.postgres import PostgresStore

_Place = Path | DatabasePlace
_Named = str | os.PathLike[str] | DatabasePlace
_Store: TypeAlias = "sqlite.SqliteStore | PostgresStore"

# characters; more than a name has, since learners make several keys of one name
_LONGEST_REQUEST = 240
_DEFAULTS = {"composition": COMPOSITIONS[0], "unit": UNITS[0], "relation": RELATIONS[0]}
# as a place; None is none, so that nothing is in memory by mistake
_MEMORY: Any = object()


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
    reserved_at : str
        UTC, ISO 8601.
    reason : str or None
        Why it was forfeited.
    parts : int
        Answers, or stages of one, that were stored so far.
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
    state: Literal["reserved", "committed", "forfeited"]
    reserved_at: str
    reason: str | None
    parts: int
    terms: Json
    facts: Json | None
    spent_after: tuple[float, float]

    def to_json(self) -> Json:
        """Return all of it as JSON values."""
        return {**vars(self), "events": [event.model_dump(mode="json") for event in self.events]}

    @classmethod
    def of(cls, found: rows.Rows, first: rows.Row) -> Self:
        """Return an entry from the row that reserves."""
        last = found.last(first.reservation) or first
        purchase = found.read(rows.purchase_in, first.terms)
        intention = found.read(rows.Intention.model_validate_json, first.body)
        closed, ended = last.kind == "close", rows.Closing()
        if closed:
            ended = found.read(rows.Closing.model_validate_json, last.terms)
        return cls(
            id=first.reservation,
            request=first.key.decode(),
            purpose=intention.purpose,
            events=purchase.events,
            epsilon=purchase.price.epsilon,
            delta=purchase.price.delta,
            state="forfeited" if ended.reason else "committed" if closed else "reserved",
            reserved_at=first.at,
            reason=ended.reason,
            parts=last.number - closed,
            terms=intention.terms,
            facts=ended.facts,
            spent_after=found.rule.spent(found.sums_of(first)),
        )


class AnswerPage:
    """The answers of one reservation, held against everyone else until the transaction ends where
    some may be added.

    What is added here is on the disk when the block of the page ends, and not at all if it does
    not, and what is read here is on the disk then, whoever wrote it: draw, add, leave, and only
    then return an answer to the world.

    Parameters
    ----------
    found : Rows
        Inside a transaction, which must be one that writes where answers are added.
    reservation : int
        Number of a reservation that is there.

    Attributes
    ----------
    count : int
        Number of answers given so far.
    closed : bool
        Whether the reservation is settled: stored answers are all that comes.
    furthest : int
        Position of the last row of which an answer was read.
    """

    def __init__(self, found: rows.Rows, reservation: int) -> None:
        self._rows, self._reservation, self.furthest = found, reservation, 0
        last = found.last(reservation)
        self._newest = [] if last is None else [last]
        self.closed = last is not None and last.kind == "close"
        self.count = last.number - self.closed if last else 0

    def close(self) -> None:
        """Let go of the ledger.

        The transaction is over, and a row that was added now would be checked by nobody.
        """
        del self._rows

    def _read(self, found: Iterable[rows.Row]) -> list[tuple[bytes, bytes]]:
        read = []
        for row in found:
            if row.kind == "part":
                self.furthest = max(self.furthest, row.position)
                read.append((row.key, row.body))
        return read

    def find(self, questions: Iterable[bytes]) -> dict[bytes, bytes]:
        """Return the stored answers to those of `questions` that were asked before."""
        return dict(self._read(self._rows.answers(self._reservation, list(questions))))

    def parts(self, after: int = 0) -> list[tuple[bytes, bytes]]:
        """Return every (question, answer) after the first so many, in the order in which they were
        answered."""
        which = "AND reservation = ?"
        return self._read(self._rows.walk("number", after + 1, which, self._reservation))

    def last(self) -> bytes | None:
        """Return the answer given last, None where there is none yet."""
        found = self.parts(self.count - 1) if self.closed else self._read(self._newest)
        return found[0][1] if found else None

    def add(self, parts: Sequence[tuple[bytes, bytes]]) -> None:
        """Store answers as (question, answer); none of the questions may have an answer yet."""
        number, first = self._reservation, self.count + 1
        added = [
            rows.Row(0, "part", number, place, question, body=answer)
            for place, (question, answer) in enumerate(parts, first)
        ]
        self._append(added)
        self._newest, self.count = added[-1:] or self._newest, self.count + len(added)

    def _append(self, added: Iterable[rows.Row], totals: Totals | None = None) -> None:
        if self.closed:
            raise LedgerError(
                f"Reservation {self._reservation} is closed already; a reservation is closed once."
            )
        self._rows.add(added, totals)

    def commit(self, facts: JsonView, used: tuple[Event, ...] | None = None) -> None:
        """Close the reservation with the answers that were given.

        Parameters
        ----------
        facts : mapping
            Public, as JSON values, of what drew them.
        used : tuple of Event, optional
            What all answers given cost by themselves, where the rest goes back into the budget.
        """
        self.settle(rows.Closing(facts=dict(facts), used=used))  # type: ignore[arg-type]

    def settle(self, ended: rows.Closing) -> None:
        """Close the reservation as is stated, with answers or for a public reason."""
        found, number = self._rows, self._reservation
        totals = found.seen.totals
        if ended.used is not None:
            totals = found.after_closing(totals, number, ended.used)
        text, place = ended.model_dump_json(), self.count + 1
        self._append([rows.Row(0, "close", number, place, terms=text, at=rows.utc_now())], totals)


class Ledger:
    """Open the account of a private dataset, or make it if there is none at `path`.

    One SQLite file per private dataset, or one schema of a PostgreSQL database. Every operation
    runs in one transaction that is on the disk when the call returns, so all threads and processes
    of a machine share one account, and all machines that reach the database. The object itself is a
    handle: a pickled one carries path and terms only, never a password, and a copy is the same
    account.

    Parameters
    ----------
    path : path-like or DatabasePlace
        The file, kept on a local disk. A new one gets mode 0600. Or the URL of a database,
        ``postgresql://USER@HOST:PORT/DATABASE?schema=NAME``, which needs `secretballot[postgres]`.
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
    relation : {"add-remove", "replace-one"}, optional
        Relation that the total is a promise about, fixed at creation. None takes what the file
        says, "add-remove" for a new one.

    Attributes
    ----------
    path : Path or None
        Absolute path; None in memory and in a database.
    place : str or None
        What opens it again: path, or URL without any password; None in memory.
    dataset, budget, composition, unit, relation, guarantee
        As fixed at creation.
    account : str
        What identifies this account: the SHA-256 of its terms, in hexadecimal.
    durable : bool
        Whether the account outlives the process.
    after_commit : dict of str to callable
        What gets all that `head` returns after everything that this handle writes, by its name.

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
        unit or relation is refused by `check_promise`, before anything is reserved. What makes a
        user (which column) is not known here, and must be the same for every release.
    Price : the releases of all reservations together, chosen adaptively and even overlapping in
        time (Haney et al. 2023, arXiv:2309.05901), satisfy the budget, by the filter that is asked
        inside the transaction that reserves. A reservation is admitted only if `delta_upper`
        certifies its events at its price, whatever the caller says.
    Contents : public parameters, times and released bytes; nothing that was computed from private
        data otherwise.
    Limits : the rows form a hash chain, so that an edit by hand, or an older copy put in place
        under a living handle, is noticed: of the newest rows when a ledger is opened, of an older
        one when it is read, of all by `check`. What is spent is in the newest row. The chain is
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
        path: _Named,
        *,
        dataset: str,
        budget: PrivacyBudget | None = None,
        composition: str | None = None,
        unit: str | None = None,
        relation: str | None = None,
    ) -> None:
        self._place = None if path is _MEMORY else _place_of(path)
        terms = {"composition": composition, "unit": unit, "relation": relation}
        stated = {name: term for name, term in terms.items() if term is not None}
        if not repeated(self._store.exists)():
            if budget is None:
                raise LedgerError(
                    f"There is no ledger at {self._place}; give a budget for one, or another path."
                )
            if not isinstance(budget, PrivacyBudget):
                raise wrong("budget", budget, "a PrivacyBudget")
            made: Json = {**_DEFAULTS, **stated}
            how = made.pop("composition")
            account = rows.Account.new(
                dataset=dataset, guarantee=Guarantee(**made), budget=budget, composition=how
            )
            with suppress(UnknownEndError):  # it is looked at below
                repeated(self._store.create)(account)
        self._open()
        for name, value in {"dataset": dataset, **stated, "budget": budget or self.budget}.items():
            fixed = getattr(self, name)
            if value != fixed:
                raise LedgerError(
                    f"{self._store.where} has {name} {fixed!r} and {value!r} was given; it is fixed"
                    " at creation, so leave it out, or give the path of the right ledger."
                )

    @classmethod
    def in_memory(cls, *, dataset: str, budget: PrivacyBudget, **terms: str | None) -> Self:
        """Return an account under the same rules that dies with this process.

        Parameters
        ----------
        dataset, budget, **terms
            As for `Ledger`.

        Raises
        ------
        ParameterError
            If an argument is of the wrong type or out of range.
        """
        return cls(_MEMORY, dataset=dataset, budget=budget, **terms)

    @classmethod
    def open_existing(cls, path: _Named) -> Self:
        """Open the ledger at `path` with the dataset and the budget that it names.

        Raises
        ------
        LedgerError
            If there is none, or it cannot be opened, read or trusted.
        """
        ledger = cls.__new__(cls)
        ledger._place = _place_of(path)
        ledger._open()
        return ledger

    @staticmethod
    def exists(path: _Named) -> bool:
        """Return whether something is at a place, so that no ledger is made there.

        Raises
        ------
        ParameterError
            If it is no path and no URL of a PostgreSQL database.
        LedgerError
            If the database cannot be asked.
        """
        return repeated(_store_at(_place_of(path)).exists)()

    # --- the account ---

    def account_terms(self) -> Json:
        """Return what distinguishes the account from another one, as certificates state it."""
        return {
            "kind": self.composition,
            "dataset": self.dataset,
            **self.guarantee.model_dump(),
            "budget": self.budget.to_json(),
        }

    def check_promise(self, unit: str, relation: str, *, by_teachers: bool = True) -> None:
        """Refuse a release about this unit and relation if it does not add to what the ledger
        promises (`Guarantee.adds_to`).

        Raises
        ------
        ParameterError
            If the unit or the relation is unknown.
        LedgerError
            If it does not.
        """
        released = Guarantee(unit=unit, relation=relation)  # type: ignore[arg-type]
        if not released.adds_to(self.guarantee, by_teachers=by_teachers):
            raise LedgerError(
                f"{self._store.where} is about unit {self.unit!r} under {self.relation!r}, and a"
                f" release about unit {unit!r} under {relation!r} does not add to that: together"
                " they would promise neither; release under the ledger's. Nothing was spent."
            )

    def spent(self) -> Amount:
        """Return what is spent, every reservation in whatever state counted, rounded up."""
        return self._read(lambda found: Amount(*found.rule.spent(found.seen.totals)))

    def remaining(self) -> Amount:
        """Return what is left, rounded down.

        With basic composition a release at just this price is admitted.
        """
        return self._read(lambda found: Amount(*found.rule.left(found.seen.totals)))

    def releases(self) -> int:
        """Return how many reservations there are, in whatever state."""
        return self._read(lambda found: found.seen.totals.grants)

    def history(self) -> list[LedgerEntry]:
        """Return every reservation, oldest first."""

        def entries(found: rows.Rows) -> list[LedgerEntry]:
            # each by its number: in a range, every answer of each would be looked at
            numbers = range(1, found.seen.totals.grants + 1)
            return [LedgerEntry.of(found, found.first(number)) for number in numbers]

        return self._read(entries)

    def check(self) -> None:
        """Check every page of the file and every row of the account, from the first one on.

        Raises
        ------
        LedgerError
            If the file is damaged, or a row was edited, removed or added by hand.
        """

        def check_all(found: rows.Rows) -> None:
            self._store.check(found.transaction, pages=True)
            found.check_all()

        self._read(check_all)

    def head(self) -> tuple[int, str]:
        """Return the number of rows, and the SHA-256 of the last one, in hexadecimal.

        It represents all of them.
        """
        return self._read(lambda found: (found.seen.position, found.seen.chain.hex()))

    def contains(self, position: int, chain: str) -> bool:
        """Return whether the row at this position has this SHA-256.

        Whether the ledger goes on from where that was.
        """
        return self._read(lambda found: found.has(position, bytes.fromhex(chain)))

    def entry(self, request: str) -> LedgerEntry | None:
        """Return the reservation of a request, None where there is none."""
        check_name("request", request, longest=_LONGEST_REQUEST)
        return self._read(lambda found: _entry_in(found, request))

    # --- buying ---

    def check_admits(self, events: Sequence[Event], price: PrivacyBudget) -> None:
        """Refuse events and a price that `reserve` would refuse now; nothing is spent."""
        purchase = _certified(events, price)
        self._read(lambda found: self._check_admitted(purchase, found.seen.totals))

    @repeated
    def reserve(
        self,
        events: Sequence[Event],
        price: PrivacyBudget,
        *,
        request: str,
        purpose: str,
        terms: JsonView | None = None,
        space: int = 0,
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
            Key of the request, unique in the ledger.
        purpose : str
            What for; may be empty.
        terms : mapping, optional
            Public, as JSON values: what a request that goes on must state again.
        space : int
            Bytes that the answer may need at most. They are taken on the disk before the purchase,
            so that one that fills up in the meantime does not keep the answer out.

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
        purchase = _certified(events, price)
        intention = rows.Intention(purpose=purpose, terms=dict(terms or {}))
        check_name("request", request, longest=_LONGEST_REQUEST)
        text, body = purchase.model_dump_json(), intention.model_dump_json().encode()
        if space:
            self._store.claim_space(space + len(text) + len(body))
        # the filter is asked and the row written in one transaction: two processes cannot both
        # spend the rest
        with self._transaction(write=True) as found:
            known = _entry_in(found, request)
            if known is not None:
                raise LedgerError(
                    f"Request {request!r} is {known.state} already and stays spent; go on with the"
                    " same terms, or ask under another key, which is a new charge."
                )
            totals = self._check_admitted(purchase, found.seen.totals)
            number, key = totals.grants, request.encode()
            found.add([rows.Row(0, "reserve", number, 0, key, text, body, rows.utc_now())], totals)
        return number

    # --- answering ---

    @contextmanager
    def answering(self, reservation: int, *, write: bool = True) -> Iterator[AnswerPage]:
        """Hold the answers of a reservation while some are added.

        They are on the disk at the end, or not at all, in one transaction however many they are:
        who has several questions at once holds the page once. Where it breaks off and nothing was
        stored, the work may be done once more (`rows.repeated`).

        Parameters
        ----------
        reservation : int
            Number that `reserve` returned.
        write : bool
            Whether answers are added; else see `reading`.

        Raises
        ------
        LedgerError
            If the ledger cannot be written, or something is added to a reservation that is unknown
            or closed; no answer may then leave.
        """
        with (
            self._transaction(write=write) as found,
            closing(AnswerPage(found, reservation)) as page,
        ):
            yield page
        self._make_lasting(page.furthest)

    def reading(self, reservation: int) -> AbstractContextManager[AnswerPage]:
        """Show the answers given so far under a reservation, open or closed; nothing can be
        added.

        Raises
        ------
        LedgerError
            If the ledger cannot be read, or, at the first answer that another handle wrote, not be
            written; no answer may then leave.
        """
        return self.answering(reservation, write=False)

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
            If the reason is empty.
        LedgerError
            If the reservation is unknown or closed, or the ledger cannot be written.
        """
        with self.answering(reservation) as page:
            page.settle(rows.Closing(reason=reason))

    # --- handles ---

    def __repr__(self) -> str:
        place = "in memory" if self._place is None else repr(str(self._place))
        return (
            f"Ledger({place}, dataset={self.dataset!r}, unit={self.unit!r},"
            f" relation={self.relation!r}, budget=({self.budget.epsilon:g}, {self.budget.delta:g}))"
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # a second account with the same budget would be a second budget

    def __getstate__(self) -> dict[str, str]:
        if self._place is None:
            raise LedgerError(
                "A ledger in memory is not pickled: a copy would be a second budget; give a path."
            )
        return {"path": str(self._place), "terms": self._terms.model_dump_json()}

    def __setstate__(self, state: dict[str, str]) -> None:
        self._place = _place_of(state["path"])
        self._hold(rows.Account.model_validate_json(state["terms"]))

    # --- transactions ---

    def _hold(self, terms: rows.Account) -> None:
        """Become a handle on the account with these terms, which is opened when it is used."""
        self._terms, self._digest, self._filter = terms, terms.digest, terms.filter()
        self.path = self._place if isinstance(self._place, Path) else None
        self.place = None if self._place is None else str(self._place)
        self.durable, self.account = self._place is not None, self._digest.hex()
        self.dataset, self.budget, self.composition = terms.dataset, terms.budget, terms.composition
        self.guarantee = terms.guarantee
        self.unit, self.relation = terms.guarantee.unit, terms.guarantee.relation
        # replaced whole, never changed in place: threads read it without a lock
        self._seen: rows.Progress | None = None
        self._lasting = 0  # rows that are known to survive a power cut
        self.after_commit: dict[str, Callable[[int, str], object]] = {}

    @repeated
    def _open(self) -> None:
        """Become a handle on the account that is in its place."""
        with self._store.transaction(write=False) as transaction:
            self._hold(rows.account_in(transaction))
            self._seen = self._rows(transaction, None).seen

    @functools.cached_property
    def _store(self) -> _Store:
        return _store_at(self._place)

    def _rows(self, transaction: rows.Transaction, known: rows.Progress | None) -> rows.Rows:
        where = self._store.where
        if known is None:
            self._store.check(transaction, pages=False)
            if rows.account_in(transaction) != self._terms:
                raise LedgerError(
                    f"{where} is not the one this handle was made for; restore that one."
                )
        return rows.Rows(transaction, self._digest, self._filter, known)

    @repeated
    def _read(self, work: Callable[[rows.Rows], Result]) -> Result:
        with self._transaction(write=False) as found:
            return work(found)

    @contextmanager
    def _transaction(self, *, write: bool) -> Iterator[rows.Rows]:
        """Give a transaction, and the rows checked up to its state. At the end of one that may
        write it is durable, or nothing is changed.

        Raises
        ------
        BrokenOffError
            If it broke off and nothing was stored.
        UnknownEndError
            If that cannot be looked up.
        LedgerError
            If the account cannot be read, trusted or, at the end, written.
        """
        # taken before the transaction starts: never newer than what that sees
        known, found, began, ended = self._seen, None, 0, False
        try:
            with self._store.transaction(write=write) as transaction:
                found = self._rows(transaction, known)
                self._seen, began = found.seen, found.seen.position
                yield found
                if write:
                    found.check_end()
                    ended = True
        except UnknownEndError:
            if found is None or not ended or not self._is_stored(found.seen):
                raise
        if not write:
            return
        written = found.seen
        if written.position > began:  # a commit without writes makes nothing certain
            self._lasting = written.position
        self._seen = written
        for work in list(self.after_commit.values()):
            work(written.position, written.chain.hex())

    def _is_stored(self, written: rows.Progress) -> bool:
        """Return whether a transaction of unknown end is durable, False where nobody can look.

        Behind the lock: what still works on that transaction has ended.

        Raises
        ------
        BrokenOffError
            If nothing was stored.
        """
        try:
            with self._store.transaction(write=True) as transaction:
                # an account that went on from what was seen before
                stored = self._rows(transaction, self._seen).has(written.position, written.chain)
                if stored:
                    self._store.confirm_earlier(transaction)
        except LedgerError:
            return False
        if not stored:
            raise BrokenOffError(
                f"{self._store.where} broke off while it was storing; check the disk, its free"
                " space and its quota, or the server, and try again. Nothing was changed."
            )
        return True

    def _make_lasting(self, position: int) -> None:
        """Make certain that the rows up to there survive a power cut, before an answer among them
        is given out: who wrote them may have ended before the last write to the disk did.

        Raises
        ------
        LedgerError
            If nothing can be written.
        """
        if position > self._lasting:
            with self._store.transaction(write=True) as transaction:
                self._store.confirm_earlier(transaction)
            self._lasting = max(position, self._lasting)

    def _check_admitted(self, purchase: rows.Purchase, totals: Totals) -> Totals:
        """Return the sums with a purchase, or refuse it with `BudgetError`."""
        events, price, rule = purchase.events, purchase.price, self._filter
        after = totals.plus(rule.costs(events, price))
        if rule.admits(totals, events, price):
            return after
        budget, spent, with_it = rule.budget, rule.spent(totals), rule.spent(after)
        sums = " in Renyi divergences of one order, which is how it adds up," * bool(rule.order)
        raise BudgetError(
            f"A release at epsilon {price.epsilon:g}, delta {price.delta:g} does not fit the ledger"
            f" of {rows.in_brief(self.dataset)!r}: of its budget ({budget.epsilon:g},"
            f" {budget.delta:g}), ({spent[0]:g}, {spent[1]:g}) is spent, and with the release it"
            f" would be{sums} ({with_it[0]:g}, {with_it[1]:g}); ask for less. Nothing was spent."
        )


# --- places ---


def _place_of(given: object) -> _Place:
    """Return the place that somebody names by a path, a URL or a `DatabasePlace`; a path is made
    absolute, so that a change of folder does not lead a handle to another file.

    Raises
    ------
    ParameterError
        If it is none of these.
    """
    place = file_or_database(given) if isinstance(given, str) else given
    if isinstance(place, DatabasePlace):
        return place
    if not isinstance(place, os.PathLike) or "\0" in os.fspath(place):
        raise wrong("path", given, "the path of a file, or the URL of a PostgreSQL database")
    return Path(os.path.abspath(place))


def _store_at(place: _Place | None) -> _Store:
    """Return what keeps an account in memory, a file, or a database, which needs a driver."""
    if not isinstance(place, DatabasePlace):
        return sqlite.SqliteStore(place)
    try:
        from secretballot.core.ledger.postgres import PostgresStore
    except ImportError:
        raise LedgerError(
            f"The ledger {place} is in a PostgreSQL database, and psycopg is not installed;"
            " install secretballot[postgres]."
        ) from None
    return PostgresStore(place)


# --- reservations ---


def _certified(events: Sequence[Event], price: PrivacyBudget) -> rows.Purchase:
    """Return a purchase as it is read back from what is stored of it.

    Raises
    ------
    ParameterError
        If there is no event, or something is of the wrong type.
    BudgetError
        If `delta_upper` does not certify the events at `price`.
    """
    # what is priced is what is stored, whatever class the caller's events have
    given = rows.Purchase(events=tuple(events), price=price)  # type: ignore[arg-type]
    purchase = rows.Purchase.model_validate_json(given.model_dump_json())
    delta = delta_upper(purchase.events, price.epsilon)
    if not delta <= price.delta:
        raise BudgetError(
            f"The events cost delta {delta:.6g} at epsilon {price.epsilon:.6g}, more than the"
            f" {price.delta:.6g} of their reservation; calibrate it again. Nothing was spent."
        )
    return purchase


def _entry_in(found: rows.Rows, request: str) -> LedgerEntry | None:
    """Return the entry of a request, None where there is none."""
    row = found.one("kind = 'reserve' AND key = ?", request.encode())
    return None if row is None else LedgerEntry.of(found, row)
