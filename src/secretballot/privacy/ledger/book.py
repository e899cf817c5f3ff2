"""An account that is open: its terms, its filter, and the one way to read or write its rows."""

import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Literal, Self

from secretballot.exceptions import LedgerError
from secretballot.privacy.ledger import file
from secretballot.privacy.ledger.chain import Account, Progress, catch_up
from secretballot.privacy.ledger.terms import GivenTerms, filter_of

__all__ = ["Book"]


class Book:
    """Check a whole account, every row of it, and remember how far that went.

    Parameters
    ----------
    path : Path or None
        Absolute path of the file; None for an account in memory.
    memory : sqlite3.Connection or None
        The one connection to an account in memory; None for a file, which gets a connection per transaction.
    name : str
        What messages call it.

    Attributes
    ----------
    account : Account
        The terms, fixed at creation.
    filter : Filter
        What admits reservations under these terms.

    Raises
    ------
    LedgerError
        If the account cannot be opened, read or trusted.
    """

    def __init__(self, path: Path | None, memory: sqlite3.Connection | None, name: str) -> None:
        self.where = name
        self._path, self._memory = path, memory
        self._lock, self._process = threading.Lock(), os.getpid()
        with file.sqlite_in_words(self.where), self._connection() as connection:
            connection.execute("BEGIN")
            file.check_header(connection, self.where)
            file.check_body(connection, self.where)
            self.account = file.read_account(connection, self.where)
            # Replaced whole, never changed in place: threads read it without a lock.
            self._seen = catch_up(connection, Progress(0, self.account.digest), self.where)
            connection.execute("COMMIT")
        self.filter = filter_of(self.account, self.where)

    @classmethod
    def of_file(cls, path: Path, dataset: str | None, digest: str | None) -> Self:
        """Open the file at `path`, if it is the account of `dataset` and has `digest`, where these are given."""
        file.check_place(path)
        book = cls(path, None, f"Ledger {path}")
        if dataset is not None and book.account.dataset != dataset:
            raise LedgerError(
                f"{book.where} is the account of {book.account.dataset!r}, not of {dataset!r}; give the path of the"
                " right ledger."
            )
        if digest is not None and book.account.digest.hex() != digest:
            raise LedgerError(f"{book.where} is not the one this handle was made for; restore that one.")
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
        """Make a new account at `path`, or leave the one that another process made meanwhile."""
        if terms.budget is None:
            raise LedgerError(f"There is no ledger at {path}; give a budget to make one, or the right path.")
        with file.sqlite_in_words(f"Ledger {path}"):
            file.create_file(path, terms.new_account(terms.budget))

    @contextmanager
    def transaction(self, kind: Literal["DEFERRED", "IMMEDIATE"]) -> Iterator[tuple[sqlite3.Connection, Progress]]:
        """Give a connection inside a transaction and the rows checked up to now; commit at the end, or roll back.

        Raises
        ------
        LedgerError
            If the file cannot be read, trusted or, at the end, written.
        """
        known = self._seen  # taken before the transaction starts: never newer than what that sees
        with file.sqlite_in_words(self.where), self._connection() as connection:
            try:
                connection.execute(f"BEGIN {kind}")
                file.check_header(connection, self.where)
                self._seen = seen = catch_up(connection, known, self.where)
                yield connection, seen
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # SQLite has often rolled back by itself
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        if self._memory is None:
            with closing(file.connect(self._path)) as connection:
                yield connection
            return
        if os.getpid() != self._process:  # after a fork both processes would hold the whole budget
            raise LedgerError(f"{self.where} belongs to the process that made it; share a ledger file instead.")
        with self._lock:
            yield self._memory
