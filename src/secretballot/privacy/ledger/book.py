"""An account that is open: its terms, its filter, and the one way to read or write its rows."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Self

from secretballot.exceptions import LedgerError
from secretballot.privacy.ledger.chain import Progress, read_account
from secretballot.privacy.ledger.following import catch_up, contains_row
from secretballot.privacy.ledger.store import (
    BrokenOffError,
    Store,
    Transaction,
    UnknownEndError,
)
from secretballot.privacy.ledger.terms import filter_of, in_brief


class Book:
    """Check every row of an account, and remember how far that went.

    Parameters
    ----------
    store : Store
        Where it is kept.

    Attributes
    ----------
    where : str
        What messages call it.
    account : Account
        The terms, fixed at creation.
    filter : Filter
        What admits reservations under these terms.
    after_commit : dict of str to callable
        Called with the position and the hash of the last row after every transaction that wrote.

    Raises
    ------
    LedgerError
        If the account cannot be opened, read or trusted.
    """

    def __init__(self, store: Store) -> None:
        self.where, self._store = store.where, store
        self.after_commit: dict[str, Callable[[int, str], object]] = {}
        self._lasting = 0  # rows that are known to survive a power cut
        with store.reading() as transaction:
            store.check_tables(transaction)
            self.account = read_account(transaction, self.where)
            self.filter = filter_of(self.account, self.where)
            start = Progress(0, self.account.digest)
            # Replaced whole, never changed in place: threads read it without a lock.
            self._seen = catch_up(transaction, start, self.filter, self.where)

    @classmethod
    def of(cls, store: Store, dataset: str | None, digest: str | None) -> Self:
        """Open an account, if it is that of `dataset` and has `digest`, where these are given.

        Raises
        ------
        LedgerError
            If it cannot be trusted or is another account.
        """
        book = cls(store)
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

    @contextmanager
    def reading(self) -> Iterator[tuple[Transaction, Progress]]:
        """Give a transaction that only reads, and the rows checked up to its state.

        Raises
        ------
        LedgerError
            If the account cannot be read or trusted.
        """
        known = self._seen  # taken before the transaction starts: never newer than what that sees
        with self._store.reading() as transaction:
            self._seen = seen = catch_up(transaction, known, self.filter, self.where)
            yield transaction, seen

    @contextmanager
    def writing(self, *, answer_to: int | None = None) -> Iterator[tuple[Transaction, Progress]]:
        """Give a transaction that may write.

        At the end it is durable, or nothing is changed.

        In this order: what is new is checked; the caller writes; what was written is read back and
        checked; the transaction is committed. Where the end of that is unknown, the last row is
        looked up on a new connection.

        Parameters
        ----------
        answer_to : int, optional
            Number of the reservation whose answer will be written.

        Raises
        ------
        BrokenOffError
            If it broke off and nothing was stored.
        UnknownEndError
            If that cannot be looked up.
        LedgerError
            If the account cannot be read, trusted or, at the end, written.
        """
        known, written = self._seen, None
        try:
            with self._store.writing(answer_to=answer_to) as transaction:
                self._seen = seen = catch_up(transaction, known, self.filter, self.where)
                yield transaction, seen
                written = catch_up(transaction, seen, self.filter, self.where)
        except UnknownEndError as error:
            if written is None or not self._is_stored(written, error):
                raise
        if written.position > seen.position:  # a commit without writes makes nothing certain
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
                found = contains_row(
                    transaction, written.position, written.chain.hex(), self.account
                )
                if found:
                    transaction.confirm_earlier()
        except LedgerError:
            if found is not False:  # else nothing is to be made certain of
                return False
        if not found:
            raise BrokenOffError(unknown.otherwise)
        return True

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
        with self.reading() as (transaction, _):
            self._store.check_pages(transaction)
            start = Progress(0, self.account.digest)
            self._seen = catch_up(transaction, start, self.filter, self.where)
