"""The ledger as its users hold it: a handle on one account."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Self

from secretballot._databases import DatabasePlace
from secretballot._validation import check_count, check_name
from secretballot.exceptions import BudgetError, LedgerError, Parameter, ParameterError
from secretballot.privacy.accounting import (
    Event,
    Grant,
    PrivacyBudget,
)
from secretballot.privacy.ledger.answering import AnswerPage, check_used, refuse_unknown_or_closed
from secretballot.privacy.ledger.book import Book
from secretballot.privacy.ledger.chain import Progress, add_closing, add_reservation
from secretballot.privacy.ledger.entries import (
    answer_of,
    entries_of,
    entry_of,
    refuse_known,
)
from secretballot.privacy.ledger.following import contains_row, reserved_of
from secretballot.privacy.ledger.places import (
    Place,
    create_at,
    grant_at,
    is_taken,
    name_of,
    place_of,
    store_at,
)
from secretballot.privacy.ledger.sqlite_store import SqliteStore
from secretballot.privacy.ledger.store import BrokenOffError, UnknownEndError, repeated
from secretballot.privacy.ledger.terms import (
    Amount,
    GivenTerms,
    LedgerEntry,
    budget_of,
    certified_grant,
    check_text,
    refuse_other_promise,
    utc_now,
)

LONGEST_REQUEST = (
    240  # characters; more than a name has, since learners make several keys of one name
)


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
        under a living handle, is noticed. A new handle follows every row. The chain is no
        signature: who can write the file can forge it whole, delete it, restore an old copy before
        the next start (vaults that used it notice), or keep two ledgers for the same data. Guard
        the vault accordingly. In a database the owner of the tables can do all that; a writer can
        add rows, which are believed where they continue the chain. Where storing breaks off at its
        very end, what was written is looked up on a new connection; where that is impossible, an
        error says that the end is unknown: then nothing was returned, and what is found later
        counts.

    Examples
    --------
    >>> ledger = sb.Ledger("people.ledger", dataset="people", budget=sb.PrivacyBudget(2.0, 1e-6))
    >>> votes = sb.VoteCounts.from_counts([[3, 97], [60, 40]])
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
        terms = GivenTerms(dataset, budget, composition, unit, neighbours)
        place = place_of(path)
        if not is_taken(place):
            _make_account(place, terms)
        self._hold_place(place, dataset, None)
        terms.refuse_other(self._own_book.account, self._own_book.where)

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
        terms = GivenTerms(dataset, budget, composition, unit, neighbours)
        if budget is None:
            raise ParameterError(
                Parameter("budget"),
                " is None; a ledger in memory is always new and needs a PrivacyBudget.",
            )
        # not by the constructor, which makes or opens an account in some place
        ledger = cls.__new__(cls)
        ledger._hold_place(None, dataset, None)
        ledger._opened = Book(SqliteStore.in_memory(terms.new_account(budget)))
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
        ledger._hold_place(place_of(path), None, None)
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
        return is_taken(place_of(path))

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
        check_text("role", role)
        grant_at(place_of(path), role)

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
        return budget_of(self._own_book.account)

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
        refuse_other_promise(self._own_book.account, unit, neighbours, self._own_book.where)

    @repeated
    def spent(self) -> Amount:
        """Return what is spent, every reservation in whatever state counted, rounded up."""
        with self._own_book.reading() as (_, seen):
            return Amount(*self._own_book.filter.spent_of(seen.totals))

    @repeated
    def remaining(self) -> Amount:
        """Return what is left, rounded down.

        With basic composition a release at just this price is admitted.
        """
        with self._own_book.reading() as (_, seen):
            return Amount(*self._own_book.filter.left_of(seen.totals))

    @repeated
    def releases(self) -> int:
        """Return how many reservations there are, in whatever state."""
        with self._own_book.reading() as (_, seen):
            return seen.reservations

    @repeated
    def history(self) -> list[LedgerEntry]:
        """Return every reservation, oldest first."""
        with self._own_book.reading() as (transaction, _):
            return entries_of(transaction, self._own_book.where)

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
        with self._own_book.reading() as (transaction, _):
            return contains_row(
                transaction,
                check_count("position", position, minimum=0),
                chain,
                self._own_book.account,
            )

    @repeated
    def entry(self, request: str) -> LedgerEntry | None:
        """Return the reservation of a request, None where there is none."""
        check_text("request", request)
        with self._own_book.reading() as (transaction, _):
            return entry_of(transaction, request, self._own_book.where)

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
            it is stated, what was not used can be told, and given back.
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
        text, grant = certified_grant(events, price, queries)
        check_name("request", request, longest=LONGEST_REQUEST)
        check_text("purpose", purpose, empty=True)
        size = check_count("room", room, minimum=0)
        # the filter is asked and the row written in one transaction: two processes cannot both
        # spend the rest
        with self._own_book.writing() as (transaction, seen):
            refuse_known(transaction, request)
            if not self._own_book.filter.admits_after(seen.totals, grant):
                raise BudgetError(self._refusal_of(grant, seen))
            number = add_reservation(
                transaction, seen, request, purpose, text, grant=grant, at=utc_now()
            )
            # in the same transaction: where the answer has no room, nothing is reserved
            if size:
                transaction.claim_room(number, size)
        return number

    @contextmanager
    def answering(self, reservation: int) -> Iterator[AnswerPage]:
        """Hold the answers of an open reservation while some are added.

        They are on the disk at the end, or not at all, in one transaction however many they are:
        who has several questions at once holds the page once. Where it breaks off and nothing was
        stored, the work may be done once more (`store.repeated`).

        Parameters
        ----------
        reservation : int
            Number that `reserve` returned.

        Raises
        ------
        LedgerError
            If the reservation is unknown or closed, or the ledger cannot be written; no answer may
            then leave.
        """
        number = check_count("reservation", reservation)
        with self._own_book.writing() as (transaction, seen):
            refuse_unknown_or_closed(transaction, seen, number, self._own_book.where)
            with closing(AnswerPage(transaction, seen, number, self._own_book.where)) as page:
                yield page

    @contextmanager
    def reading(self, reservation: int) -> Iterator[AnswerPage]:
        """Show the answers given so far under a reservation, open or closed; nothing can be
        added."""
        number = check_count("reservation", reservation)
        with (
            self._own_book.reading() as (transaction, seen),
            closing(AnswerPage(transaction, seen, number, self._own_book.where)) as page,
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
        self._close_reservation(reservation, released=released, parts=parts or 0, used=used)

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
        check_text("reason", reason)
        self._close_reservation(reservation, reason=reason)

    @repeated
    def released(self, request: str) -> bytes | None:
        """Return the released bytes of a committed request, None where there is no answer.

        Raises
        ------
        LedgerError
            If the bytes are not the ones that were committed, or the ledger cannot be read, or, at
            the first answer that another handle wrote, not be written.
        """
        check_text("request", request)
        with self._own_book.reading() as (transaction, seen):
            found = answer_of(transaction, request, self._own_book.where)
        if found is not None:
            self._own_book.make_lasting(seen)
        return found

    # --- handles ---

    def __repr__(self) -> str:
        place = "in memory" if self._place is None else repr(name_of(self._place))
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
        self._hold_place(place_of(state["path"]), state["dataset"], state["account"])

    # --- inside ---

    def _hold_place(self, place: Place | None, dataset: str | None, account: str | None) -> None:
        """Become a handle that has not looked at the account yet."""
        self._place, self._dataset, self._expected = place, dataset, account
        self._opened: Book | None = None

    @property
    def _own_book(self) -> Book:
        if self._opened is None:
            assert self._place is not None  # an account in memory is open from the start
            opened = repeated(Book.of)
            self._opened = opened(store_at(self._place), self._dataset, self._expected)
        return self._opened

    @repeated
    def _close_reservation(
        self,
        reservation: int,
        *,
        released: bytes | None = None,
        reason: str | None = None,
        parts: int = 0,
        used: Sequence[Event] | None = None,
    ) -> None:
        number = check_count("reservation", reservation)
        with self._own_book.writing(answer_to=None if released is None else number) as (
            transaction,
            seen,
        ):
            refuse_unknown_or_closed(transaction, seen, number, self._own_book.where)
            answered = AnswerPage(transaction, seen, number, self._own_book.where).count
            # an answer that another process gave meanwhile would be missing from what is closed
            if released is not None and answered != parts:
                raise LedgerError(
                    f"Reservation {number} has given {answered} answers in parts, not {parts}; read"
                    " again."
                )
            text = None
            if used is not None:
                reserved = reserved_of(transaction, number, self._own_book.where)
                text = check_used(self._own_book.account, reserved, used, answered)
            # the room kept for the answer goes first: it is what the answer is written into
            transaction.give_room_back(number)
            add_closing(
                transaction, seen, number, released=released, reason=reason, used=text, at=utc_now()
            )

    def _refusal_of(self, grant: Grant, seen: Progress) -> str:
        budget, rule = self.budget, self._own_book.filter
        spent = Amount(*rule.spent_of(seen.totals))
        after = Amount(*rule.spent_of(seen.totals.plus(rule.costs(grant))))
        sums = (
            " in Renyi divergences of one order, which is how it adds up,"
            if self.composition == "renyi"
            else ""
        )
        return (
            f"A release at epsilon {grant.epsilon:g}, delta {grant.delta:g} does not fit the ledger"
            f" of {self.dataset!r}: of its budget ({budget.epsilon:g}, {budget.delta:g}),"
            f" ({spent.epsilon:g}, {spent.delta:g}) is spent, and with the release it would"
            f" be{sums} ({after.epsilon:g}, {after.delta:g}); ask for a smaller release."
        )


def _make_account(place: Place, terms: GivenTerms) -> None:
    """Make a new account, or leave the one that another process made meanwhile."""
    if terms.budget is None:
        raise LedgerError(
            f"There is no ledger at {name_of(place)}; give a budget to make one, or the right path."
        )
    account = terms.new_account(terms.budget)
    try:
        create_at(place, account)
    except (BrokenOffError, UnknownEndError):  # one that is there by now is left
        create_at(place, account)
