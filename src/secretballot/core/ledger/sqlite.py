"""An account in an SQLite file, or in memory.

A transaction is on the disk when COMMIT returns: a rollback journal with synchronous=EXTRA. Not
WAL, which before SQLite 3.51.3 may corrupt a file that two connections write.

A purchase takes as many pages of the file as its answer can need and fills them with zeros; the
transaction that closes it gives them back and writes the answer into them, so that the file need
not grow. The journal needs a little space of its own at that moment: it keeps the size that it once
had (mode "persist"), and `claim_room` makes it large enough.
"""

import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from secretballot.core.drafts import draft_file, release_above, sweep_drafts, sync_folder
from secretballot.core.errors import LedgerError
from secretballot.core.ledger.rows import (
    APPLICATION_ID,
    INSERT,
    TABLES,
    VERSION,
    Account,
    Row,
    Transaction,
    UnknownEndError,
    in_brief,
)

WAIT_S = 30.0  # how long an operation waits for other programs' locks, in seconds
_SPARE = 1 << 14  # bytes for what a commit writes beside the answer: its row, the indices, the head
_BALLAST = 1 << 16  # bytes whose pages a claim rewrites so that the journal grows once
_FORSAKEN = timedelta(days=7)  # a claim this old belongs to a process that died before its answer
_FEW_PAGES = 2000  # 8 MB: reading them takes some hundredths of a second

_REFUSED = "BEGIN SELECT RAISE(ABORT, 'a ledger is append-only: {} is refused'); END"
# INSERT OR REPLACE deletes without firing delete triggers, so a row may take no place that is taken
_NEXT = """CREATE TRIGGER entry_next BEFORE INSERT ON entry
WHEN new.position <> (SELECT coalesce(max(position), 0) + 1 FROM entry)
    OR EXISTS (
        SELECT 1 FROM entry WHERE reservation = new.reservation AND number >= new.number
    )
    OR (new.number > 0 AND NOT EXISTS (
        SELECT 1 FROM entry
        WHERE reservation = new.reservation AND number = new.number - 1 AND kind <> 'close'
    ))
    OR (new.kind = 'part' AND EXISTS (
        SELECT 1 FROM entry
        WHERE kind = 'part' AND reservation = new.reservation AND key = new.key
    ))
    OR (new.kind = 'reserve' AND (
        EXISTS (SELECT 1 FROM entry WHERE kind = 'reserve' AND key = new.key)
        OR new.reservation <> (SELECT coalesce(max(reservation), 0) + 1 FROM entry)
    ))
"""
_HEAD_STEP = """CREATE TRIGGER head_no_UPDATE BEFORE UPDATE ON head
WHEN new.id <> old.id OR new.position <= old.position
    OR new.position <> (SELECT max(position) FROM entry)
    OR new.chain <> (SELECT chain FROM entry WHERE position = new.position)
"""
SCHEMA = (
    *(text.format(integer="INTEGER", real="REAL", bytes="BLOB") for text in TABLES),
    "CREATE TABLE room (reservation INTEGER PRIMARY KEY, filler BLOB NOT NULL)",
    _NEXT + _REFUSED.format("this row on entry"),
    _HEAD_STEP + _REFUSED.format("UPDATE on head"),
    *(
        f"CREATE TRIGGER {table}_no_{verb} BEFORE {verb} ON {table}\n"
        + _REFUSED.format(f"{verb} on {table}")
        for table, verb in (
            ("account", "UPDATE"),
            ("entry", "UPDATE"),
            ("account", "DELETE"),
            ("entry", "DELETE"),
            ("head", "DELETE"),
        )
    ),
    *(
        f"CREATE TRIGGER {table}_no_INSERT BEFORE INSERT ON {table}\n"
        f"WHEN EXISTS (SELECT 1 FROM {table})\n" + _REFUSED.format(f"INSERT on {table}")
        for table in ("account", "head")
    ),
)


# --- the file ---


def connect(path: Path | None) -> sqlite3.Connection:
    """Return a connection to an existing file, never making one, or to memory if `path` is None.

    Parameters
    ----------
    path : Path or None
        Absolute path.

    Raises
    ------
    sqlite3.Error
        If the file cannot be opened.
    LedgerError
        If it cannot be written with the durability that a ledger needs.
    """
    target = ":memory:" if path is None else f"{path.as_uri()}?mode=rw"
    journal = "memory" if path is None else "persist"
    # closed, perhaps, by the garbage collector of another thread
    connection = sqlite3.connect(
        target, uri=True, timeout=WAIT_S, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA fullfsync = ON")  # macOS: a plain fsync does not reach the disk
        connection.execute("PRAGMA synchronous = EXTRA")
        # pages of a claim are given back without being written again
        connection.execute("PRAGMA secure_delete = OFF")
        mode = connection.execute(f"PRAGMA journal_mode = {journal}").fetchone()[0]
        if mode != journal:
            raise LedgerError(
                f"Ledger {path} keeps its journal in mode {in_brief(mode)!r} and will not leave it;"
                " close the programs that hold it open, then try again."
            )
    except BaseException:
        connection.close()
        raise
    return connection


def create_tables(connection: sqlite3.Connection, account: Account) -> None:
    """Write the tables of a new account, all or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {VERSION}")
    for statement in SCHEMA:
        connection.execute(statement)
    marks = ", ".join("?" * len(account.values))
    connection.execute(f"INSERT INTO account VALUES ({marks})", account.values)
    connection.execute("INSERT INTO head VALUES (1, 0, ?)", (account.digest,))
    connection.execute(f"INSERT INTO room VALUES (0, zeroblob({_BALLAST}))")
    connection.execute("COMMIT")


def create_file(path: Path, account: Account) -> bool:
    """Make a ledger file, complete or not at all.

    If another process made one meanwhile, leave that one. Return whether it was made here.

    The file is written under a passing name and then linked, so that nobody ever finds a half-made
    or empty one: an empty file at `path` is damage, not a fresh start.

    Raises
    ------
    LedgerError
        If the folder is missing or published, or an old ledger was lost there.
    """
    journal = path.with_name(f"{path.name}-journal")
    with _in_words(f"Ledger {path}"):
        if not path.parent.is_dir():
            raise LedgerError(
                f"The folder {path.parent} does not exist; make it, or give another path."
            )
        released = release_above(path.parent)
        if released is not None:
            raise LedgerError(
                f"The ledger {path} would lie in the release {released}, which is published; give a"
                " path outside of it."
            )
        # A new account where an old one was lost would grant its whole budget again. A ledger
        # leaves its journal beside it; seen in this order, nobody who is creating deceives us.
        if journal.exists() and not path.exists():
            raise LedgerError(
                f"The ledger {path} is gone and its journal {journal.name} is left; restore it from"
                " a copy, or remove the journal too if nothing was ever released under it."
            )
        sweep_drafts(path.parent, path.name)
        with draft_file(path) as (_, draft):
            try:
                with closing(connect(draft)) as connection:
                    create_tables(connection, account)
                made = True
                # a link takes the name at once or not at all: two processes make no two ledgers
                try:
                    os.link(draft, path)
                except FileExistsError:
                    made = False
            finally:
                draft.with_name(f"{draft.name}-journal").unlink(missing_ok=True)
        sync_folder(path.parent)
    return made


def _check_place(path: Path) -> None:
    """Refuse a place where no ledger can be, before SQLite would say so in fewer words."""
    if not path.exists():
        raise LedgerError(
            f"There is no ledger at {path}; give the right path, or restore it from a copy."
        )
    if not path.is_file():
        raise LedgerError(
            f"{path} is a folder or a device, not a file; give the path of a ledger file."
        )
    if path.stat().st_size == 0:
        raise LedgerError(
            f"{path} is empty, which a ledger never is; restore it from a copy, or remove it if"
            " nothing was ever released under it."
        )


# --- transactions ---


class SqliteTransaction:
    """A transaction of a file, or of an account in memory, which has no journal.

    Parameters
    ----------
    connection : sqlite3.Connection
        Inside a transaction.
    journal : Path or None
        Of the file.
    """

    def __init__(self, connection: sqlite3.Connection, journal: Path | None, where: str) -> None:
        self._connection, self._journal = connection, journal
        if self._value("PRAGMA application_id") != APPLICATION_ID:
            raise LedgerError(
                f"{where} is an SQLite file but no ledger; give the path of the ledger."
            )
        version = self._value("PRAGMA user_version")
        if version != VERSION:
            raise LedgerError(
                f"{where} has format version {version} and this program reads version {VERSION};"
                " use the version of secretballot that made it."
            )
        self.head = connection.execute("SELECT position, chain FROM head").fetchone()

    def _value(self, statement: str) -> Any:
        return self._connection.execute(statement).fetchone()[0]

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Any:
        """Run one statement."""
        return self._connection.execute(statement, values)

    def count(self) -> int:
        """Return the number of rows."""
        return int(self._value("SELECT count(*) FROM entry"))

    def append(self, rows: Sequence[Row]) -> None:
        """Add rows and move the head."""
        if len(rows) == 1:
            self._connection.execute(INSERT, rows[0])
        elif rows:
            self._connection.executemany(INSERT, rows)
        if rows:
            last = rows[-1]
            self.execute("UPDATE head SET position = ?, chain = ?", (last.position, last.chain))

    def claim_room(self, reservation: int, size: int) -> None:
        """Take pages of the file for an answer, or fail with the purchase; in memory nothing is
        taken."""
        if self._journal is None:
            return
        long_ago = (datetime.now(UTC) - _FORSAKEN).isoformat(timespec="microseconds")
        self.execute(
            "DELETE FROM room WHERE (SELECT at FROM entry WHERE number = 0"
            " AND entry.reservation = room.reservation) < ?",
            (long_ago,),
        )
        self.execute("INSERT INTO room VALUES (?, zeroblob(?))", (reservation, size + _SPARE))
        if not self._journal.exists() or self._journal.stat().st_size < _BALLAST:
            # other bytes than before, as SQLite leaves pages alone that do not change
            self.execute(
                "UPDATE room SET filler = randomblob(?) WHERE reservation = 0", (_BALLAST,)
            )

    def confirm_earlier(self) -> None:
        """Write the version of the file over itself: this commit's journal replaces the one whose
        end is unknown."""
        self.execute(f"PRAGMA user_version = {VERSION}")


class _Opened(NamedTuple):
    """A connection, the process that opened it, and the file that it leads to."""

    connection: sqlite3.Connection
    process: int
    file: tuple[int, int] | None


_INHERITED: list[sqlite3.Connection] = []


def _close(kept: list[_Opened]) -> None:
    for opened in kept:
        if opened.process == os.getpid():
            opened.connection.close()
        else:  # SQLite forbids using and closing a connection on the other side of a fork
            _INHERITED.append(opened.connection)
    kept.clear()


class SqliteStore:
    """An account in a file, or in memory.

    Between two transactions no connection stays open, or one where that was asked for; one with
    which something went wrong is never kept.

    Parameters
    ----------
    path : Path or None
        Absolute path of an existing file; None for a new account in memory.
    account : Account, optional
        The account in memory.
    """

    def __init__(self, path: Path | None, account: Account | None = None) -> None:
        self.where = f"Ledger {path}"
        self._path, self._lock = path, threading.Lock()
        self._keeps, self._kept = False, list[_Opened]()  # none or one
        self._journal = None if path is None else path.with_name(f"{path.name}-journal")
        weakref.finalize(self, _close, self._kept)
        if path is not None:
            with _in_words(self.where):
                _check_place(path)
            return
        assert account is not None
        self.where = f"The ledger of {account.dataset!r} in memory"
        self._memory = connect(None)
        create_tables(self._memory, account)
        self._process = os.getpid()
        weakref.finalize(self, self._memory.close)

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """Begin a transaction that only reads."""
        with (
            _in_words(self.where),
            self._connection() as connection,
            _rolled_back_on_errors(connection),
        ):
            connection.execute("BEGIN")
            yield SqliteTransaction(connection, self._journal, self.where)
            connection.execute("COMMIT")

    @contextmanager
    def writing(
        self, *, closes: int | None = None, after: str = "nothing was changed"
    ) -> Iterator[Transaction]:
        """Begin a transaction that writes.

        The room of a reservation that it closes is given back before, in a transaction of its own
        whose lock is kept, so that nobody else takes it.
        """
        with _in_words(self.where, after), self._connection() as connection:
            if closes is not None and self._path is not None:
                _give_room_back(connection, closes)
            with _rolled_back_on_errors(connection):
                connection.execute("BEGIN IMMEDIATE")
                connection.execute("PRAGMA locking_mode = NORMAL")  # from the end of this one on
                yield SqliteTransaction(connection, self._journal, self.where)
                self._commit(connection, after)

    def _commit(self, connection: sqlite3.Connection, after: str) -> None:
        try:
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            # the last write to the disk may have been done and its end not confirmed; where others
            # hold the file, nothing was written yet
            if _code_of(error) == sqlite3.SQLITE_BUSY:
                raise
            raise UnknownEndError.of(
                f"{self.where} met an error at the end of storing ({in_brief(error)}), so check the"
                " disk and its free space",
                _sentence(error, self.where, after),
            ) from None

    def keep_open(self) -> None:
        """Keep a connection open from one transaction to the next."""
        self._keeps = True

    def check(self, transaction: Transaction, *, pages: bool) -> None:
        """Refuse tables or triggers that were changed by hand, and damaged pages: of a small file
        always, of a large one if `pages`."""
        if pages or transaction.execute("PRAGMA page_count").fetchone()[0] <= _FEW_PAGES:
            report = transaction.execute("PRAGMA integrity_check(1)").fetchone()[0]
            if report != "ok":
                raise LedgerError(
                    f"{self.where} is damaged ({in_brief(report)}); restore it from the newest"
                    " copy."
                )
        found = transaction.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
        if {sql for (sql,) in found} != set(SCHEMA):
            raise LedgerError(
                f"{self.where} has tables or triggers that were changed by hand; restore it from a"
                " copy."
            )

    # --- connections ---

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        if self._path is None:
            if os.getpid() != self._process:  # both processes would hold the whole budget
                raise LedgerError(
                    f"{self.where} belongs to the process that made it; share a ledger file"
                    " instead."
                )
            with self._lock:
                yield self._memory
            return
        # before it is opened: if the file is replaced meanwhile, the next use sees it
        file = self._file_identity()
        opened = self._take_kept(file) or _Opened(connect(self._path), os.getpid(), file)
        try:
            yield opened.connection
        except BaseException:
            opened.connection.close()
            raise
        with self._lock:
            if self._keeps and not self._kept and file is not None:
                self._kept.append(opened)
                return
        _close([opened])

    def _take_kept(self, file: tuple[int, int] | None) -> _Opened | None:
        with self._lock:
            if not self._kept:
                return None
            opened = self._kept.pop()
        if (opened.process, opened.file) == (os.getpid(), file):
            return opened
        _close([opened])
        return None

    def _file_identity(self) -> tuple[int, int] | None:
        assert self._path is not None
        try:
            found = self._path.stat()
        except OSError:  # opening it says why, in words
            return None
        return found.st_dev, found.st_ino


def _give_room_back(connection: sqlite3.Connection, reservation: int) -> None:
    claimed = "FROM room WHERE reservation = ?"
    if connection.execute(f"SELECT 1 {claimed}", (reservation,)).fetchone() is None:
        return
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(f"DELETE {claimed}", (reservation,))
    connection.execute("COMMIT")


@contextmanager
def _rolled_back_on_errors(connection: sqlite3.Connection) -> Iterator[None]:
    try:
        yield
    except BaseException:
        with suppress(sqlite3.Error):  # SQLite has often rolled back by itself
            connection.execute("ROLLBACK")
        raise


# --- errors in words ---

_WORDS = {
    sqlite3.SQLITE_BUSY: (
        "is locked by another program; {}, so try again when that one has finished"
    ),
    sqlite3.SQLITE_LOCKED: (
        "is locked by another program; {}, so try again when that one has finished"
    ),
    sqlite3.SQLITE_READONLY: (
        "cannot be written; {}, so give yourself write permission on the file and its folder"
    ),
    sqlite3.SQLITE_PERM: "may not be opened; give yourself read and write permission on it",
    sqlite3.SQLITE_CANTOPEN: (
        "cannot be opened; check that the file is still there and that you may read and write it"
        " and its folder"
    ),
    sqlite3.SQLITE_FULL: (
        "could not grow because the disk is full; {}, so free some space and try again"
    ),
    sqlite3.SQLITE_IOERR: (
        "could not be read or written by the system; {}, so check the disk, its free space and its"
        " quota"
    ),
    sqlite3.SQLITE_TOOBIG: "cannot hold a value this large; release it in parts",
    sqlite3.SQLITE_NOTADB: (
        "is not a ledger or is damaged; give the path of the ledger or restore it from a copy"
    ),
    sqlite3.SQLITE_CORRUPT: "is damaged; restore it from the newest copy",
}


def _code_of(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", -1) & 0xFF


def _sentence(error: sqlite3.Error, where: str, after: str) -> str:
    words = _WORDS.get(_code_of(error), "cannot be trusted any further; check the file")
    return f"{where} {words.format(after)} ({in_brief(error)})."


@contextmanager
def _in_words(where: str, after: str = "nothing was changed") -> Iterator[None]:
    """Turn every error of SQLite and of the system into a `LedgerError` of one sentence, with how
    things stand then.

    Raises
    ------
    LedgerError
        For every error of SQLite and of the system.
    """
    try:
        yield
        return
    except sqlite3.Error as error:  # its words may quote the file, which anybody may have written
        said = _sentence(error, where, after)
    except UnicodeDecodeError:  # the message would quote the bytes
        said = f"{where} holds bytes that are no text; restore it from a copy."
    except OSError as error:
        detail = error.strerror or type(error).__name__
        raise LedgerError(
            f"{where} could not be made or reached ({detail}); check the folder and its disk."
        ) from error
    refusal = LedgerError(said)
    try:
        raise refusal
    finally:
        # leaving `with` sets it, and a traceback would print what the other error quotes
        refusal.__context__ = None
