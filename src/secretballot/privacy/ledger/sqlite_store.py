"""An account in an SQLite file, or in memory: its transactions, and the room that is kept in it."""

import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from secretballot.exceptions import LedgerError
from secretballot.privacy.ledger import file, room
from secretballot.privacy.ledger.chain import Account
from secretballot.privacy.ledger.schema import SCHEMA_VERSION
from secretballot.privacy.ledger.store import Found, Transaction, UnknownEndError
from secretballot.privacy.ledger.terms import in_brief


class SqliteTransaction:
    """A transaction of a file, or of an account in memory, which has no path.

    Parameters
    ----------
    connection : sqlite3.Connection
        Inside a transaction.
    path : Path or None
        Of the file.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path | None) -> None:
        self.connection, self._path = connection, path

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Found:
        """Run one statement."""
        return self.connection.execute(statement, values)

    def append(self, table: str, rows: Sequence[Mapping[str, object]]) -> None:
        """Add rows; the head moves with every one of them, as the triggers want it."""
        for row in rows:
            marks = ", ".join("?" * len(row))
            self.connection.execute(
                f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", tuple(row.values())
            )
            self.connection.execute(
                "UPDATE head SET position = ?, chain = ?", (row["position"], row["chain"])
            )

    def claim_room(self, reservation: int, size: int) -> None:
        """Take pages of the file for an answer; in memory nothing is taken."""
        room.claim(self.connection, self._path, reservation, size)

    def give_room_back(self, reservation: int) -> None:
        """Make the room of a reservation free."""
        room.give_back(self.connection, reservation)

    def confirm_earlier(self) -> None:
        """Write the version of the file over itself: this commit's journal replaces the one whose
        end is unknown."""
        self.connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


@dataclass(frozen=True)
class _Opened:
    """A connection, the process that opened it, and the file that it leads to."""

    connection: sqlite3.Connection
    process: int
    file: tuple[int, int] | None


class _Connections:
    """Connections to a file, of which one stays open between two transactions where `keeps` is set.

    One that another process opened, or that leads to another file than the path does now, is not
    used again.

    Parameters
    ----------
    path : Path
        Absolute path.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, threading.Lock()
        self._kept: _Opened | None = None
        self.keeps = False

    @contextmanager
    def taken(self) -> Iterator[sqlite3.Connection]:
        """Give a connection; one that something went wrong with is never kept."""
        opened = self._take_kept()
        if opened is None:
            # before: if the file is replaced meanwhile, the next use sees it
            place = self._file_identity()
            opened = _Opened(file.connect(self._path), os.getpid(), place)
        try:
            yield opened.connection
        except BaseException:
            opened.connection.close()
            raise
        self._put_back(opened)

    def close(self) -> None:
        """Close the one that is kept."""
        with self._lock:
            opened, self._kept = self._kept, None
        if opened is not None:
            _close_opened(opened)

    def _take_kept(self) -> _Opened | None:
        with self._lock:
            opened, self._kept = self._kept, None
        if opened is None or (opened.process, opened.file) == (os.getpid(), self._file_identity()):
            return opened
        _close_opened(opened)
        return None

    def _put_back(self, opened: _Opened) -> None:
        with self._lock:
            if self.keeps and self._kept is None and opened.file is not None:
                self._kept = opened
                return
        _close_opened(opened)

    def _file_identity(self) -> tuple[int, int] | None:
        try:
            found = self._path.stat()
        except OSError:  # opening it says why, in words
            return None
        return found.st_dev, found.st_ino


def _close_opened(opened: _Opened) -> None:
    if opened.process == os.getpid():
        opened.connection.close()
    else:  # SQLite forbids using and closing a connection on the other side of a fork
        _INHERITED.append(opened.connection)


_INHERITED: list[sqlite3.Connection] = []


class SqliteStore:
    """An account in a file, or in memory.

    Parameters
    ----------
    path : Path or None
        Absolute path of an existing file; None for an account in memory.
    memory : sqlite3.Connection or None
        The one connection to an account in memory.
    where : str
        What messages call it.
    """

    def __init__(self, path: Path | None, memory: sqlite3.Connection | None, where: str) -> None:
        self.where = where
        self._path, self._memory = path, memory
        self._connections = None if path is None else _Connections(path)
        if self._connections is not None:
            weakref.finalize(self, self._connections.close)
        self._lock, self._process = threading.Lock(), os.getpid()

    @classmethod
    def of_file(cls, path: Path) -> Self:
        """Return the store of a file.

        Raises
        ------
        LedgerError
            If there is no file that could be a ledger.
        """
        with file.sqlite_in_words(f"Ledger {path}"):
            file.check_place(path)
        return cls(path, None, f"Ledger {path}")

    @classmethod
    def in_memory(cls, account: Account) -> Self:
        """Make an account that dies with this process."""
        memory = file.connect(None)
        file.create_tables(memory, account)
        store = cls(None, memory, f"The ledger of {account.dataset!r} in memory")
        weakref.finalize(store, memory.close)
        return store

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """Begin a transaction that only reads."""
        with (
            file.sqlite_in_words(self.where),
            self._open_connection() as connection,
            self._begun_transaction(connection, "DEFERRED") as transaction,
        ):
            yield transaction

    @contextmanager
    def writing(self, *, answer_to: int | None = None) -> Iterator[Transaction]:
        """Begin a transaction that writes.

        The room that was claimed for an answer is given back before, in a transaction of its own
        whose lock is kept, so that nobody else takes it.
        """
        after = file.NOTHING_CHANGED if answer_to is None else file.ANSWER_NOT_STORED
        with (
            file.sqlite_in_words(self.where, after),
            self._open_connection(own=answer_to is not None) as connection,
        ):
            if answer_to is not None and self._path is not None:
                _make_room(connection, answer_to)
            with self._begun_transaction(connection, "IMMEDIATE", after) as transaction:
                yield transaction

    def keep_open(self) -> None:
        """Keep a connection open from one transaction to the next."""
        if self._connections is not None:
            self._connections.keeps = True

    def check_tables(self, transaction: Transaction) -> None:
        """Refuse tables or triggers that were changed by hand."""
        assert isinstance(transaction, SqliteTransaction)
        file.check_body(transaction.connection, self.where)

    def check_pages(self, transaction: Transaction) -> None:
        """Refuse a damaged page; it reads all of them."""
        assert isinstance(transaction, SqliteTransaction)
        file.check_pages(transaction.connection, self.where)

    @contextmanager
    def _begun_transaction(
        self,
        connection: sqlite3.Connection,
        kind: Literal["DEFERRED", "IMMEDIATE"],
        after: str = file.NOTHING_CHANGED,
    ) -> Iterator[Transaction]:
        """Begin, and commit at the end or roll back."""
        broken = None
        try:
            connection.execute(f"BEGIN {kind}")
            file.check_header(connection, self.where)
            yield SqliteTransaction(connection, self._path)
            try:
                connection.execute("COMMIT")
            except sqlite3.Error as error:
                # the last write to the disk may have been done and its end not confirmed; where
                # others hold the file, nothing was written yet
                code = getattr(error, "sqlite_errorcode", -1) & 0xFF
                if kind == "DEFERRED" or code == sqlite3.SQLITE_BUSY:
                    raise
                broken = in_brief(error), file.error_sentence(error, self.where, after)
        except BaseException:
            with suppress(sqlite3.Error):  # SQLite has often rolled back by itself
                connection.execute("ROLLBACK")
            raise
        if broken is not None:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            detail, otherwise = broken
            raise UnknownEndError.of(
                f"{self.where} met an error at the end of storing ({detail}), so check the disk and"
                " its free space",
                otherwise,
            )

    @contextmanager
    def _open_connection(self, *, own: bool = False) -> Iterator[sqlite3.Connection]:
        if self._connections is not None:
            # one that is closed afterwards may keep a lock from one transaction to the next
            given = closing(file.connect(self._path)) if own else self._connections.taken()
            with given as connection:
                yield connection
            return
        assert self._memory is not None
        if os.getpid() != self._process:  # after a fork both processes would hold the whole budget
            raise LedgerError(
                f"{self.where} belongs to the process that made it; share a ledger file instead."
            )
        with self._lock:
            yield self._memory


def _make_room(connection: sqlite3.Connection, reservation: int) -> None:
    if not room.is_claimed(connection, reservation):
        return
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")  # until the connection is closed
    connection.execute("BEGIN IMMEDIATE")
    room.give_back(connection, reservation)
    connection.execute("COMMIT")
