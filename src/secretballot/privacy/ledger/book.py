"""An account that is open: its terms, its filter, and the one way to read or write its rows."""

import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Literal, Self

from secretballot.exceptions import LedgerError
from secretballot.privacy.ledger import file
from secretballot.privacy.ledger.chain import Account, Progress, add_checkpoint, read_account
from secretballot.privacy.ledger.checkpoints import EVERY
from secretballot.privacy.ledger.following import catch_up, start_of
from secretballot.privacy.ledger.room import give_back, is_claimed
from secretballot.privacy.ledger.terms import GivenTerms, filter_of, in_brief, utc_now

__all__ = ["Book"]


class Book:
    """Check an account from its last checkpoint but one, and remember how far that went.

    Parameters
    ----------
    path : Path or None
        Absolute path of the file; None for an account in memory.
    memory : sqlite3.Connection or None
        The one connection to an account in memory; None for a file, which gets a connection per
        transaction.
    name : str
        What messages call it.

    Attributes
    ----------
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

    def __init__(self, path: Path | None, memory: sqlite3.Connection | None, name: str) -> None:
        self.where = name
        self._path, self._memory = path, memory
        self._lock, self._process = threading.Lock(), os.getpid()
        self.after_commit: dict[str, Callable[[int, str], object]] = {}
        with file.sqlite_in_words(self.where), self._open_connection() as connection:
            connection.execute("BEGIN")
            file.check_header(connection, self.where)
            file.check_body(connection, self.where)
            self.account = read_account(connection, self.where)
            self.filter = filter_of(self.account, self.where)
            start = start_of(connection, self.account, self.filter, self.where)
            # Replaced whole, never changed in place: threads read it without a lock.
            self._seen = catch_up(connection, start, self.filter, self.where)
            connection.execute("COMMIT")

    @classmethod
    def of_file(cls, path: Path, dataset: str | None, digest: str | None) -> Self:
        """Open the file at `path`, if it is the account of `dataset` and has `digest`, where
        these are given.

        Raises
        ------
        LedgerError
            If the file is missing, damaged or another account.
        """
        with file.sqlite_in_words(f"Ledger {path}"):
            file.check_place(path)
        book = cls(path, None, f"Ledger {path}")
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

    @classmethod
    def in_memory(cls, account: Account) -> Self:
        """Make an account that dies with this process."""
        memory = file.connect(None)
        file.create_tables(memory, account)
        book = cls(None, memory, f"The ledger of {account.dataset!r} in memory")
        weakref.finalize(book, memory.close)
        return book

    @staticmethod
    def create_file(path: Path, terms: GivenTerms) -> None:
        """Make a new account at `path`, or leave the one that another process made meanwhile.

        Raises
        ------
        LedgerError
            If no budget is given for a new account.
        """
        if terms.budget is None:
            raise LedgerError(
                f"There is no ledger at {path}; give a budget to make one, or the right path."
            )
        with file.sqlite_in_words(f"Ledger {path}"):
            file.create_file(path, terms.new_account(terms.budget))

    @property
    def path(self) -> Path | None:
        """Absolute path of the file; None in memory."""
        return self._path

    @contextmanager
    def reading(self) -> Iterator[tuple[sqlite3.Connection, Progress]]:
        """Give a connection inside a transaction that only reads, and the rows checked up to its
        state.

        Raises
        ------
        LedgerError
            If the file cannot be read or trusted.
        """
        with (
            file.sqlite_in_words(self.where),
            self._open_connection() as connection,
            self._begun_transaction(connection, "DEFERRED") as seen,
        ):
            yield connection, seen

    @contextmanager
    def writing(
        self, *, answer_to: int | None = None
    ) -> Iterator[tuple[sqlite3.Connection, Progress]]:
        """Give a connection inside a transaction that may write.

        At the end it is on the disk, or nothing is changed.

        In this order: the room that was claimed for an answer is given back, in a transaction of
        its own whose lock is kept, so that nobody else takes it; the caller writes; what was
        written is read back and checked, and a checkpoint follows it when one is due; the
        transaction is committed.

        Parameters
        ----------
        answer_to : int, optional
            Number of the reservation whose answer will be written.

        Raises
        ------
        LedgerError
            If the file cannot be read, trusted or, at the end, written.
        """
        after = file.NOTHING_CHANGED if answer_to is None else file.ANSWER_NOT_STORED
        with file.sqlite_in_words(self.where, after), self._open_connection() as connection:
            if answer_to is not None and self._path is not None:
                self._make_room(connection, answer_to)
            with self._begun_transaction(connection, "IMMEDIATE") as seen:
                yield connection, seen
                written = catch_up(connection, seen, self.filter, self.where)
                if written.position - written.checkpoint >= EVERY:
                    add_checkpoint(connection, written, self.filter, utc_now())
                    written = catch_up(connection, written, self.filter, self.where)
            self._seen = written
        for work in list(self.after_commit.values()):
            work(written.position, written.chain.hex())

    def check_all(self) -> None:
        """Check every page and every row of the account, from the first one on.

        Raises
        ------
        LedgerError
            If the file is damaged, or a row was edited, removed or added by hand.
        """
        with self.reading() as (connection, _):
            file.check_pages(connection, self.where)
            self._follow_all(connection)

    def follow_all(self, connection: sqlite3.Connection, seen: Progress) -> None:
        """Check the rows that a checkpoint stood for, too, if any; it is done once."""
        if seen.start:
            self._follow_all(connection)

    def _follow_all(self, connection: sqlite3.Connection) -> None:
        self._seen = catch_up(connection, Progress(0, self.account.digest), self.filter, self.where)

    @contextmanager
    def _begun_transaction(
        self, connection: sqlite3.Connection, kind: Literal["DEFERRED", "IMMEDIATE"]
    ) -> Iterator[Progress]:
        """Begin a transaction, check what is new, give the rows checked, and commit at the end
        or roll back."""
        known = self._seen  # taken before the transaction starts: never newer than what that sees
        try:
            connection.execute(f"BEGIN {kind}")
            file.check_header(connection, self.where)
            self._seen = seen = catch_up(connection, known, self.filter, self.where)
            yield seen
            connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):  # SQLite has often rolled back by itself
                connection.execute("ROLLBACK")
            raise

    def _make_room(self, connection: sqlite3.Connection, reservation: int) -> None:
        if not is_claimed(connection, reservation):
            return
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")  # until the connection is closed
        connection.execute("BEGIN IMMEDIATE")
        give_back(connection, reservation)
        connection.execute("COMMIT")

    @contextmanager
    def _open_connection(self) -> Iterator[sqlite3.Connection]:
        if self._memory is None:
            with closing(file.connect(self._path)) as connection:
                yield connection
            return
        if os.getpid() != self._process:  # after a fork both processes would hold the whole budget
            raise LedgerError(
                f"{self.where} belongs to the process that made it; share a ledger file instead."
            )
        with self._lock:
            yield self._memory
