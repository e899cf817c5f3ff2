"""An account in an SQLite file, or in memory.

A transaction is on the disk when COMMIT returns: a rollback journal with synchronous=EXTRA. Not
WAL, which before SQLite 3.51.3 may corrupt a file that two connections write.

Before a purchase the file gets as many free pages as the answer can need, so that it need not grow
when that is stored. The journal needs a little space of its own at that moment: it keeps the size
that it once had (mode "persist"), and `claim_space` makes it large enough.
"""

import os
import sqlite3
import stat
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from secretballot.core.errors import LedgerError, UnknownEndError
from secretballot.core.ledger import rows

_WAIT_S = 30.0  # how long an operation waits for other programs' locks, in seconds
_SPARE = 1 << 14  # bytes for what a commit writes beside the answer: its row, the indices, the head
_BALLAST = 1 << 16  # bytes whose pages a claim rewrites, so that the journal has space for them
_FEW_PAGES = 2000  # 8 MB: reading them takes some hundredths of a second

# keys would refuse it after INSERT OR REPLACE had removed a row of the same name, for which no
# trigger is asked
_NOT_NEXT = f"""{rows.NOT_NEXT}
    OR EXISTS (SELECT 1 FROM entry WHERE position = new.position)
    OR EXISTS (SELECT 1 FROM entry WHERE reservation = new.reservation AND number = new.number)
    OR new.kind = 'reserve'
    AND EXISTS (SELECT 1 FROM entry WHERE kind = 'reserve' AND key = new.key)
    OR new.kind = 'part' AND EXISTS (
        SELECT 1 FROM entry WHERE kind = 'part' AND reservation = new.reservation AND key = new.key
    )"""
_SCHEMA = (
    *(text.format(integer="INTEGER", bytes="BLOB") for text in rows.TABLES),
    *rows.KEYS,
    "CREATE TABLE space (reservation INTEGER PRIMARY KEY, filler BLOB NOT NULL)",
    *(
        f"CREATE TRIGGER {table}_no_{verb} BEFORE {verb} ON {table}\nWHEN {refused}\n"
        f"BEGIN SELECT RAISE(ABORT, 'a ledger is append-only: {verb} on {table} is refused'); END"
        for verb, table, refused in (("INSERT", "entry", _NOT_NEXT), *rows.GUARDS)
    ),
)


# --- the file ---


def _connect(path: Path | None) -> sqlite3.Connection:
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
        target, uri=True, timeout=_WAIT_S, isolation_level=None, check_same_thread=False
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
                f"Ledger {path} keeps its journal in mode {mode!r}; close the programs"
                " that hold it open, then try again."
            )
    except BaseException:
        connection.close()
        raise
    return connection


def _create_tables(connection: sqlite3.Connection, account: rows.Account) -> None:
    """Write the tables of a new account, all or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(f"PRAGMA application_id = {rows.APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {rows.VERSION}")
    for statement in _SCHEMA:
        connection.execute(statement)
    account.fill(connection.execute)
    connection.execute(f"INSERT INTO space VALUES (0, zeroblob({_BALLAST}))")
    connection.execute("COMMIT")


def _create_file(path: Path, account: rows.Account) -> None:
    """Make a ledger file under a passing name and then link it, so that nobody ever finds a
    half-made or empty one: an empty file at `path` is damage, not a fresh start."""
    why, journal = "", _journal_of(path)
    if not path.parent.is_dir():
        why = f"the folder {path.parent} does not exist; make it, or give another path"
    elif any((above / "certificate.json").exists() for above in path.resolve().parents):
        why = "it would lie in a release, which is published; give a path outside"
    # A new account where an old one was lost would grant its whole budget again. A ledger leaves
    # its journal beside it; seen in this order, nobody who is creating deceives us.
    elif journal.exists() and not path.exists():
        why = (
            f"it is gone and its journal {journal.name} is left; restore it from a copy, or remove"
            " the journal too if nothing was ever released under it"
        )
    if why:
        raise LedgerError(f"No ledger can be made at {path}: {why}.")
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")  # of mode 0600
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        with closing(_connect(None)) as connection:
            _create_tables(connection, account)
            connection.execute("VACUUM INTO ?", (name,))
        os.fsync(handle)
        # a link takes the name at once or not at all: two processes make no two ledgers
        with suppress(FileExistsError):
            os.link(name, path)
        os.fsync(folder)
    finally:
        os.close(handle)
        os.close(folder)
        Path(name).unlink(missing_ok=True)


def _journal_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-journal")


# --- transactions ---


class SqliteStore:
    """An account in a file, or in memory.

    Between two transactions one connection rests; one with which something went wrong never does.

    Parameters
    ----------
    path : Path or None
        Absolute path; None for a new account in memory, which `create` makes.
    """

    def __init__(self, path: Path | None) -> None:
        self.where = "The ledger in memory" if path is None else f"Ledger {path}"
        self._path = path
        self._resting = rows.Resting(self, 1)
        # in memory there is one connection, for one transaction at a time
        self._alone: Any = threading.Lock() if path is None else nullcontext()

    def exists(self) -> bool:
        """Return whether anything is at the path, a link that leads nowhere, too."""
        return self._path is not None and os.path.lexists(self._path)

    def create(self, account: rows.Account) -> None:
        """Make the account."""
        if self._path is not None:
            with self._errors_named():
                _create_file(self._path, account)
            return
        connection = _connect(None)
        _create_tables(connection, account)
        self._resting.put(connection, None)

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[rows.Transaction]:
        """Begin a transaction."""
        with self._errors_named(), self._alone, self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            yield rows.Transaction(connection, self.where)
            self._commit(connection, write)

    def claim_space(self, size: int) -> None:
        """See that the file has free pages for `size` bytes, or fail; in memory nothing is taken.

        Pages that were made free for one answer may take another one before.
        """
        if self._path is None:
            return
        with self._errors_named(), self._connection() as connection:
            space, journal = size + _SPARE, _journal_of(self._path)
            (free,) = connection.execute(
                "SELECT freelist_count * page_size FROM pragma_freelist_count, pragma_page_size"
            ).fetchone()
            if free >= space and journal.exists() and journal.stat().st_size >= _BALLAST:
                return
            # Each in a transaction of its own, as pages that are free when one begins need no
            # space in the journal. The first takes that space, for it writes over its pages: other
            # bytes, as SQLite leaves pages alone that do not change. Some more than is needed lasts
            # for further answers.
            for made, more in (("random", 0), ("zero", space), ("zero", 0)):
                claim = f"UPDATE space SET filler = {made}blob(?) WHERE reservation = 0"
                connection.execute(claim, (_BALLAST + more,))

    def confirm_earlier(self, transaction: rows.Transaction) -> None:
        """Let the end of a transaction be durable, and with it all that was committed before,
        though no row is added: write the version of the file over itself, so that this commit's
        journal replaces the one whose end is unknown."""
        transaction.execute(f"PRAGMA user_version = {rows.VERSION}")

    def check(self, transaction: rows.Transaction, *, pages: bool) -> None:
        """Refuse tables or triggers that were changed by hand, and damaged pages."""
        if pages or transaction.execute("PRAGMA page_count").fetchone()[0] <= _FEW_PAGES:
            report = transaction.execute("PRAGMA integrity_check(1)").fetchone()[0]
            if report != "ok":
                raise LedgerError(
                    f"{self.where} is damaged ({rows.in_brief(report)}); restore the newest copy."
                )
        found = transaction.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
        if {sql for (sql,) in found} != set(_SCHEMA):
            raise LedgerError(
                f"{self.where} has tables or triggers that were changed by hand, or others beside"
                " them; restore it from a copy, or name an empty place."
            )

    @contextmanager
    def _errors_named(self) -> Iterator[None]:
        """Raise an error of the driver or of the system as one that names the ledger."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError, OSError) as error:
            raise rows.unusable(self.where, error) from None

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        # before it is opened: if the file is replaced meanwhile, the next use sees it
        file = None
        if self._path is not None:
            try:
                found = os.stat(self._path)
            except (FileNotFoundError, NotADirectoryError):
                raise LedgerError(
                    f"There is no ledger at {self._path}; give the right path, or restore a copy."
                ) from None
            if stat.S_ISDIR(found.st_mode):
                raise LedgerError(
                    f"{self.where} is a folder, and a ledger is a file, such as"
                    " patients.csv.ledger, or a PostgreSQL URL; give its path or its URL."
                )
            file = found.st_dev, found.st_ino
        connection = self._resting.take(lambda mark: mark == file)
        if connection is None:
            if self._path is None:  # both processes would hold the whole budget
                raise LedgerError(
                    f"{self.where} belongs to the process that made it; share a file instead."
                )
            connection = _connect(self._path)
        try:
            # of a file that was overwritten by an older copy, SQLite may know pages
            connection.execute("PRAGMA shrink_memory")
            yield connection
        except BaseException:
            with suppress(sqlite3.Error):  # SQLite has often rolled back by itself
                connection.execute("ROLLBACK")
            if self._path is None:
                self._resting.put(connection, file)
            else:
                connection.close()
            raise
        self._resting.put(connection, file)

    def _commit(self, connection: sqlite3.Connection, write: bool) -> None:
        try:
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            # the last write to the disk may have been done and its end not confirmed; where others
            # hold the file, nothing was written yet
            if not write or error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
                raise
            raise UnknownEndError.of(
                f"{self.where} met an error at the end of storing ({rows.in_brief(error)}), so"
                " check the disk and its free space"
            ) from None
