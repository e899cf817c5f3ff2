"""Who asked what, and how many new questions each key has had: append-only, before any answer."""

import hashlib
import json
import os
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from secretballot.exceptions import LedgerError
from secretballot.vault import make_vault

_FILE = "audit.sqlite"
_WAIT_S = 5.0  # for another worker's transaction, which takes a millisecond
_FIRST = hashlib.sha256(b"secretballot audit log 1").hexdigest()

_TABLES = (
    """CREATE TABLE IF NOT EXISTS entry (
        position INTEGER PRIMARY KEY, at TEXT NOT NULL, request_id TEXT NOT NULL,
        key TEXT NOT NULL, action TEXT NOT NULL, dataset TEXT NOT NULL, session TEXT NOT NULL,
        points INTEGER NOT NULL, new INTEGER NOT NULL, outcome TEXT NOT NULL, chain TEXT NOT NULL
    ) STRICT""",
    """CREATE TABLE IF NOT EXISTS asked (
        key TEXT NOT NULL, dataset TEXT NOT NULL, new INTEGER NOT NULL,
        PRIMARY KEY (key, dataset)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TRIGGER IF NOT EXISTS entry_stays BEFORE UPDATE ON entry
        BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END""",
    """CREATE TRIGGER IF NOT EXISTS entry_remains BEFORE DELETE ON entry
        BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END""",
)
_COLUMNS = "position, at, request_id, key, action, dataset, session, points, new, outcome"


@dataclass(frozen=True)
class AuditEntry:
    """What is written of one request.

    Attributes
    ----------
    request_id : str
        As in the answer and in the log.
    key : str
        Id of the API key.
    action : str
        ``ask``, ``return`` (new questions that were counted and not answered), ``download``.
    dataset, session : str
        Empty where the action is about none.
    points : int
        How many were given.
    new : int
        Questions counted against the key's quota; negative where they are returned.
    outcome : str
        ``admitted`` or the kind of the problem.
    """

    request_id: str
    key: str
    action: str
    dataset: str
    session: str = ""
    points: int = 0
    new: int = 0
    outcome: str = "admitted"


@dataclass(frozen=True)
class AuditRow(AuditEntry):
    """An entry with its place in the log."""

    position: int = 0
    at: str = ""


class AuditLog:
    """The audit log of a service, shared by its workers.

    Rows are only added, each with the hash of the one before. Who may write the file can forge it
    whole; copy it to where the service cannot write.

    Parameters
    ----------
    state : Path
        Secret folder of the service.

    Raises
    ------
    LedgerError
        If the file cannot be opened or is no audit log.
    """

    # A write survives the end of the process, and not always that of the power: the ledger alone
    # must, since what is lost here is a count of questions, never a price.

    def __init__(self, state: Path) -> None:
        self._path = make_vault(state) / _FILE
        self._lock = threading.Lock()
        with _in_words(self._path):
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            os.close(handle)
            self._connection = sqlite3.connect(
                self._path, timeout=_WAIT_S, isolation_level=None, check_same_thread=False
            )
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = NORMAL")
            for statement in _TABLES:
                self._connection.execute(statement)

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def admitting(self) -> Iterator[Callable[[AuditEntry, int | None], bool]]:
        """Give a function that writes an entry and counts its new questions, if its key has asked
        no more than a quota with them, and returns whether it does.

        One that is beyond the quota is written as refused, and counts nothing. All that is written
        is one transaction.
        """
        with self._transaction("BEGIN IMMEDIATE") as connection:

            def admit(entry: AuditEntry, quota: int | None) -> bool:
                asked = _n_new_questions(connection, entry.key, entry.dataset) if entry.new else 0
                fits = quota is None or not entry.new or asked + entry.new <= quota
                _append(connection, entry if fits else replace(entry, new=0, outcome="quota-spent"))
                return fits

            yield admit

    def write(self, *entries: AuditEntry) -> None:
        """Write entries; what they count is counted whatever the quotas say."""
        with self._transaction("BEGIN IMMEDIATE") as connection:
            for entry in entries:
                _append(connection, entry)

    def newest(self) -> str | None:
        """Return the latest time of any row, None where there is none."""
        with self._lock, _in_words(self._path):
            (found,) = self._connection.execute("SELECT max(at) FROM entry").fetchone()
        return None if found is None else str(found)

    def asked(self, key: str, dataset: str) -> int:
        """Return how many new questions a key has asked of a dataset."""
        with self._lock, _in_words(self._path):
            return _n_new_questions(self._connection, key, dataset)

    def rows(self, dataset: str | None, *, after: int, most: int) -> list[AuditRow]:
        """Return rows behind a position, oldest first, of a dataset or of all."""
        query = (
            f"SELECT {_COLUMNS} FROM entry WHERE position > ? AND dataset = coalesce(?, dataset)"
            " ORDER BY position LIMIT ?"
        )
        with self._lock, _in_words(self._path):
            found = self._connection.execute(query, (after, dataset, most)).fetchall()
        names = _COLUMNS.split(", ")
        return [AuditRow(**dict(zip(names, row, strict=True))) for row in found]

    def check(self) -> int:
        """Return the number of rows, after following the chain through all of them.

        Raises
        ------
        LedgerError
            If a row was edited, removed or added by hand, or a count is not that of its rows.
        """
        chain, counts, number = _FIRST, Counter[tuple[str, str]](), 0
        # rows and counts of one moment: another worker may write between two reads
        with self._transaction("BEGIN") as connection:
            rows = connection.execute(
                f"SELECT {_COLUMNS}, chain FROM entry ORDER BY position"
            ).fetchall()
            stored = connection.execute("SELECT key, dataset, new FROM asked").fetchall()
        for number, row in enumerate(rows, 1):
            chain = _next_chain(chain, row[:-1])
            if row[0] != number or chain != row[-1]:
                raise LedgerError(
                    f"The audit log {self._path} was changed by hand at row {number}; put back a"
                    " copy."
                )
            counts[row[3], row[5]] += row[8]
        # rows cut off at the end leave the chain whole, but not the counts
        if counts != Counter({(key, dataset): new for key, dataset, new in stored}):
            raise LedgerError(
                f"The audit log {self._path} counts other questions than its rows; put back a copy."
            )
        return number

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        with self._lock, _in_words(self._path):
            try:
                self._connection.execute(begin)
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                raise


def _append(connection: sqlite3.Connection, entry: AuditEntry) -> None:
    """Add a row at the end of the log, and count what it counts."""
    last = connection.execute(
        "SELECT position, chain FROM entry ORDER BY position DESC LIMIT 1"
    ).fetchone()
    position, chain = (0, _FIRST) if last is None else last
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    about = {**vars(entry), "position": position + 1, "at": now}
    row = [about[name] for name in _COLUMNS.split(", ")]
    connection.execute(_INSERT, (*row, _next_chain(chain, row)))
    if entry.new:
        connection.execute(_COUNT, (entry.key, entry.dataset, entry.new))


_INSERT = f"INSERT INTO entry VALUES ({', '.join('?' * 11)})"
_COUNT = (
    "INSERT INTO asked VALUES (?, ?, ?)"
    " ON CONFLICT (key, dataset) DO UPDATE SET new = new + excluded.new"
)


def _n_new_questions(connection: sqlite3.Connection, key: str, dataset: str) -> int:
    found = connection.execute(
        "SELECT new FROM asked WHERE key = ? AND dataset = ?", (key, dataset)
    ).fetchone()
    return 0 if found is None else int(found[0])


def _next_chain(chain: str, row: Sequence[Any]) -> str:
    return hashlib.sha256(f"{chain} {json.dumps(list(row))}".encode()).hexdigest()


@contextmanager
def _in_words(path: Path) -> Iterator[None]:
    """Turn errors of SQLite and of the system into a `LedgerError` of one sentence."""
    try:
        yield
        return
    except (sqlite3.Error, OSError) as error:
        said = type(error).__name__
    raise LedgerError(f"The audit log {path} cannot be used ({said}); check the disk and the file.")
