"""Keys, how many new questions each has asked, and who asked what: one file in the state folder."""

import base64
import functools
import hashlib
import hmac
import os
import re
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from secretballot._typing import Names
from secretballot._validation import check_name, shown
from secretballot.core.noise import entropy_bytes
from secretballot.core.types import Model
from secretballot.exceptions import LedgerError, ParameterError
from secretballot.vault import make_vault

Role = Literal["analyst", "curator", "auditor"]
FILE = "access.sqlite"

_TOKEN = re.compile(r"sb_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_WAIT_S = 5.0  # for another worker's transaction, which takes a millisecond
_TABLES = """
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = NORMAL;
    CREATE TABLE IF NOT EXISTS key (id TEXT PRIMARY KEY, sha256 TEXT NOT NULL, about TEXT NOT NULL)
        STRICT;
    CREATE TABLE IF NOT EXISTS entry (
        position INTEGER PRIMARY KEY, at TEXT NOT NULL, request_id TEXT NOT NULL,
        key TEXT NOT NULL, action TEXT NOT NULL, dataset TEXT NOT NULL, session TEXT NOT NULL,
        points INTEGER NOT NULL, new INTEGER NOT NULL, outcome TEXT NOT NULL
    ) STRICT;
    CREATE TABLE IF NOT EXISTS question (
        key TEXT NOT NULL, dataset TEXT NOT NULL, session TEXT NOT NULL, digest BLOB NOT NULL,
        PRIMARY KEY (key, dataset, session, digest)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS asked (
        key TEXT NOT NULL, dataset TEXT NOT NULL, new INTEGER NOT NULL, PRIMARY KEY (key, dataset)
    ) STRICT, WITHOUT ROWID;
    CREATE TRIGGER IF NOT EXISTS entry_stays BEFORE UPDATE ON entry
        BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
    CREATE TRIGGER IF NOT EXISTS entry_remains BEFORE DELETE ON entry
        BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
"""


class ApiKey(Model):
    """What is known of a key, which may be shown; the key itself is known to its owner alone.

    Attributes
    ----------
    id : str
        Public; in the audit log.
    role : {"analyst", "curator", "auditor"}
    datasets : tuple of str
        That it may be used for; ``*`` for all.
    owner : str
        For people.
    quota : int or None
        New questions that it may ask of each dataset; None as many as the session has.
    made_at : str
        UTC, ISO 8601.
    revoked_at : str or None
    """

    id: str
    role: Role
    datasets: Annotated[Names, Field(min_length=1)]
    owner: str = ""
    quota: Annotated[int, Field(ge=0, strict=True)] | None = None
    made_at: str
    revoked_at: str | None = None

    def covers(self, dataset: str) -> bool:
        """Return whether it may be used for a dataset."""
        return "*" in self.datasets or dataset in self.datasets


@dataclass(frozen=True)
class AuditEntry:
    """What is written of one request.

    Attributes
    ----------
    request_id : str
        As in the answer.
    key : str
        Id of the API key.
    action : str
        ``ask`` or ``download``.
    dataset, session : str
        Empty where the action is about none.
    points : int
        How many were given.
    new : int
        Questions counted against the key's quota.
    outcome : str
        ``admitted`` or ``quota-spent``.
    position : int or None
        Place in the log; None before it is there.
    at : str
        UTC, ISO 8601.
    """

    request_id: str
    key: str
    action: str
    dataset: str
    session: str = ""
    points: int = 0
    new: int = 0
    outcome: str = "admitted"
    position: int | None = None
    at: str = ""


# the same few keys ask again and again
_key_in = functools.lru_cache(maxsize=1024)(ApiKey.model_validate_json)
_COLUMNS = AuditEntry.__match_args__
_COUNT = """INSERT INTO asked VALUES (?, ?, ?)
    ON CONFLICT (key, dataset) DO UPDATE SET new = new + excluded.new RETURNING new"""
_INSERT = f"INSERT INTO entry ({', '.join(_COLUMNS)}) VALUES (:{', :'.join(_COLUMNS)})"


class Access:
    """The keys of a service with their quotas, and its audit log, shared by its workers.

    Parameters
    ----------
    state : Path
        Secret folder of the service; made if it is not there.

    Raises
    ------
    LedgerError
        If the file cannot be opened or is another one.

    Notes
    -----
    The secret part of a key has 256 random bits, so that its plain SHA-256 cannot be guessed. Keys
    are looked up at every use: one is revoked as soon as the command returns. Rows of the log are
    only added; who may write the file can forge it, so copy it to where the service cannot write.
    """

    # A write survives the end of the process, and not always that of the power: the ledger alone
    # must, since what is lost here is a count of questions, never a price.

    def __init__(self, state: Path) -> None:
        self._path = make_vault(state) / FILE
        self._lock = threading.Lock()
        with _in_words(self._path):
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
            # who looks up a key does not wait for who writes
            self._writer, self._reader = (
                sqlite3.connect(
                    self._path, timeout=_WAIT_S, isolation_level=None, check_same_thread=False
                )
                for _ in range(2)
            )
            self._writer.executescript(_TABLES)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._writer.close()
            self._reader.close()

    # --- keys ---

    def add(
        self, role: str, datasets: list[str], *, owner: str = "", quota: int | None = None
    ) -> tuple[ApiKey, str]:
        """Make a key and return it with its token, which is shown this once.

        Parameters
        ----------
        role : {"analyst", "curator", "auditor"}
        datasets : list of str
        owner : str
        quota : int, optional

        Raises
        ------
        ParameterError
            If the role is unknown, no dataset is named, or the quota is no number.
        LedgerError
            If the file cannot be written.
        """
        if owner:
            check_name("owner", owner)
        secret = base64.urlsafe_b64encode(entropy_bytes(32)).rstrip(b"=").decode()
        key = ApiKey(
            id=entropy_bytes(6).hex(),
            role=role,  # type: ignore[arg-type]  # it is checked
            datasets=tuple(datasets),
            owner=owner,
            quota=quota,
            made_at=_time_now(),
        )
        with self._writing() as connection:
            row = key.id, _sha256_hex(secret), key.model_dump_json()
            connection.execute("INSERT INTO key VALUES (?, ?, ?)", row)
        return key, f"sb_{key.id}_{secret}"

    def revoke(self, key_id: str) -> ApiKey:
        """Revoke a key for ever; one that was revoked stays as it is.

        Raises
        ------
        ParameterError
            If there is none of that id.
        """
        with self._writing() as connection:
            key = next((one for one in self.keys() if one.id == key_id), None)
            if key is None:
                raise ParameterError(
                    f"There is no key {shown(key_id)}; secretballot serve key list shows the ids."
                )
            key = key.changed(revoked_at=key.revoked_at or _time_now())
            row = key.model_dump_json(), key_id
            connection.execute("UPDATE key SET about = ? WHERE id = ?", row)
        return key

    def keys(self) -> list[ApiKey]:
        """Return all keys, revoked ones too, oldest first."""
        found = self._read("SELECT about FROM key ORDER BY rowid")
        return [ApiKey.model_validate_json(about) for (about,) in found]

    def find(self, token: str) -> ApiKey | None:
        """Return the key of a token, revoked ones too; None where it is none of these.

        Raises
        ------
        LedgerError
            If the file cannot be read.
        """
        part = _TOKEN.fullmatch(token)
        if part is None:
            return None
        found = self._read("SELECT sha256, about FROM key WHERE id = ?", part[1])
        if found and hmac.compare_digest(_sha256_hex(part[2]), found[0][0]):
            return _key_in(found[0][1])
        return None

    # --- quotas and the audit log ---

    @contextmanager
    def admitting(self) -> Iterator[Callable[[AuditEntry, Collection[bytes], int | None], bool]]:
        """Give a function that counts new questions and writes an entry, if its key has asked no
        more than a quota with them, and returns whether it does.

        A question is counted once for each key and session, however often it is asked until it has
        its answer. An entry beyond the quota is written as refused, and counts nothing. All that is
        written is one transaction.
        """
        with self._writing() as connection:

            def admit(entry: AuditEntry, new: Collection[bytes], quota: int | None) -> bool:
                place = entry.key, entry.dataset
                connection.execute("SAVEPOINT request")
                counted = connection.executemany(
                    "INSERT OR IGNORE INTO question VALUES (?, ?, ?, ?)",
                    [(*place, entry.session, question) for question in new],
                ).rowcount
                (asked,) = connection.execute(_COUNT, (*place, counted)).fetchone()
                fits = quota is None or asked <= quota
                if not fits:
                    connection.execute("ROLLBACK TO request")
                connection.execute("RELEASE request")
                row = {"at": _time_now("milliseconds"), "new": counted if fits else 0}
                row["outcome"] = "admitted" if fits else "quota-spent"
                connection.execute(_INSERT, vars(entry) | row)
                return fits

            yield admit

    def asked(self, key: str, dataset: str) -> int:
        """Return how many new questions a key has asked of a dataset."""
        query = "SELECT new FROM asked WHERE key = ? AND dataset = ?"
        return sum(new for (new,) in self._read(query, key, dataset))

    def rows(self, dataset: str | None, *, after: int, most: int) -> list[AuditEntry]:
        """Return rows behind a position, oldest first, of a dataset or of all."""
        query = (
            f"SELECT {', '.join(_COLUMNS)} FROM entry WHERE position > ?"
            " AND dataset = coalesce(?, dataset) ORDER BY position LIMIT ?"
        )
        return [AuditEntry(*row) for row in self._read(query, after, dataset, most)]

    def _read(self, query: str, *values: Any) -> list[Any]:
        with _in_words(self._path):
            return self._reader.execute(query, values).fetchall()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._lock, _in_words(self._path):
            try:
                self._writer.execute("BEGIN IMMEDIATE")
                yield self._writer
                self._writer.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._writer.execute("ROLLBACK")
                raise


def _sha256_hex(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _time_now(unit: str = "seconds") -> str:
    return datetime.now(UTC).isoformat(timespec=unit)


@contextmanager
def _in_words(path: Path) -> Iterator[None]:
    """Turn errors of SQLite and of the system into a `LedgerError` of one sentence."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        said = type(error).__name__
        raise LedgerError(
            f"The keys and the log in {path} cannot be used ({said}); check the file."
        ) from None
