"""The file behind a ledger: made whole or not at all, opened with full durability, its failures
told in words."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import astuple
from pathlib import Path

from secretballot._drafts import draft_file, sweep_drafts, sync_folder
from secretballot.exceptions import LedgerError
from secretballot.privacy.ledger.chain import Account
from secretballot.privacy.ledger.room import BALLAST_STATEMENT
from secretballot.privacy.ledger.schema import APPLICATION_ID, SCHEMA_VERSION, STATEMENTS
from secretballot.privacy.ledger.terms import in_brief
from secretballot.vault import release_above

WAIT_S = 30.0  # how long an operation waits for other programs' locks, in seconds


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
    # A connection may be closed by the garbage collector of another thread, hence
    # check_same_thread.
    connection = sqlite3.connect(
        target, uri=True, timeout=WAIT_S, isolation_level=None, check_same_thread=False
    )
    try:
        _set_durability(connection, "memory" if path is None else "persist", path)
    except BaseException:
        connection.close()
        raise
    return connection


def _set_durability(connection: sqlite3.Connection, journal: str, path: Path | None) -> None:
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA fullfsync = ON")  # macOS: a plain fsync does not reach the platter
    connection.execute("PRAGMA synchronous = EXTRA")
    # pages of a claim are given back without being written again
    connection.execute("PRAGMA secure_delete = OFF")
    mode = connection.execute(f"PRAGMA journal_mode = {journal}").fetchone()[0]
    if mode != journal:
        raise LedgerError(
            f"Ledger {path} keeps its journal in mode {in_brief(mode)!r} and will not leave it;"
            " close the programs that hold it open, then try again."
        )


def create_tables(connection: sqlite3.Connection, account: Account) -> None:
    """Write the tables of a new account, all or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    for statement in STATEMENTS:
        connection.execute(statement)
    connection.execute("INSERT INTO account VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?)", astuple(account))
    connection.execute("INSERT INTO head VALUES (1, 0, ?)", (account.digest,))
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
    # a new account where an old one was lost would grant its whole budget again
    _refuse_lost_ledger(path)
    sweep_drafts(path.parent, path.name)
    with draft_file(path) as (_, draft):
        try:
            with closing(connect(draft)) as connection:
                create_tables(connection, account)
                connection.execute(BALLAST_STATEMENT)
            made = True
            # a link takes the name at once or not at all: two processes cannot make two ledgers
            try:
                os.link(draft, path)
            except FileExistsError:
                made = False
        finally:
            draft.with_name(f"{draft.name}-journal").unlink(missing_ok=True)
    sync_folder(path.parent)
    return made


def _refuse_lost_ledger(path: Path) -> None:
    # A ledger leaves its journal beside it. Seen in this order, another process that is creating
    # cannot deceive us.
    journal = path.with_name(f"{path.name}-journal")
    if journal.exists() and not path.exists():
        raise LedgerError(
            f"The ledger {path} is gone and its journal {journal.name} is left; restore it from a"
            " copy, or remove the journal too if nothing was ever released under it."
        )


def check_place(path: Path) -> None:
    """Refuse a place where no ledger can be, before SQLite would say so in fewer words.

    Raises
    ------
    LedgerError
        If there is nothing, a folder, a device, or an empty file.
    """
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


def check_header(connection: sqlite3.Connection, where: str) -> None:
    """Refuse a file that is no ledger or has another format version.

    Raises
    ------
    LedgerError
        In either case.
    """
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise LedgerError(f"{where} is an SQLite file but no ledger; give the path of the ledger.")
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version != SCHEMA_VERSION:
        raise LedgerError(
            f"{where} has format version {version} and this program reads version {SCHEMA_VERSION};"
            " use the version of secretballot that made it."
        )


def check_body(connection: sqlite3.Connection, where: str) -> None:
    """Refuse a file that is damaged, as far as a short look tells, or has lost the triggers that
    keep it append-only.

    Raises
    ------
    LedgerError
        In either case.
    """
    if connection.execute("PRAGMA page_count").fetchone()[0] <= _FEW_PAGES:
        check_pages(connection, where)
    found = {
        sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
    }
    if found != set(STATEMENTS):
        raise LedgerError(
            f"{where} has tables or triggers that were changed by hand; restore it from a copy."
        )


_FEW_PAGES = 2000  # 8 MB: reading them takes some hundredths of a second


def check_pages(connection: sqlite3.Connection, where: str) -> None:
    """Refuse a file with a damaged page, with `LedgerError`; it reads all of them.

    Raises
    ------
    LedgerError
        If a page is damaged.
    """
    report = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if report != "ok":
        raise LedgerError(
            f"{where} is damaged ({in_brief(report)}); restore it from the newest copy."
        )


NOTHING_CHANGED = "nothing was changed"
ANSWER_NOT_STORED = "the answer was not stored, and what was reserved for it stays spent"

_IN_WORDS = {
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


@contextmanager
def sqlite_in_words(where: str, after: str = NOTHING_CHANGED) -> Iterator[None]:
    """Turn every error of SQLite and of the system into a `LedgerError` of one sentence that
    begins.

    Parameters
    ----------
    where : str
        Name of the ledger.
    after : str
        How things stand then: that nothing was changed, unless an answer was to be stored.

    Raises
    ------
    LedgerError
        For every error of SQLite and of the system.
    """
    try:
        yield
        return
    except sqlite3.Error as error:  # its words may quote the file, which anybody may have written
        said = error_sentence(error, where, after)
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


def error_sentence(error: sqlite3.Error, where: str, after: str) -> str:
    """Return an error of SQLite in words, with how things stand then."""
    code = getattr(error, "sqlite_errorcode", -1) & 0xFF
    words = _IN_WORDS.get(code, "cannot be trusted any further; check the file").format(after)
    return f"{where} {words} ({in_brief(error)})."
