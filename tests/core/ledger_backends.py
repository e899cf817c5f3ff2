"""The two back ends of a ledger as tests see them: free places, edits by hand; and a small
ledger."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from ledger_answers import answer
from made_events import pure_event
from secretballot.accounting import PrivacyBudget
from secretballot.core.ledger import Ledger, sqlite
from secretballot.core.ledger.urls import DatabasePlace
from secretballot.exceptions import LedgerError

Run = Callable[[str], Any]
BUDGET = PrivacyBudget(1.0, 1e-5)
PRICE = PrivacyBudget(0.1, 1e-9)


def buy(ledger: Ledger, request: str, space: int = 0) -> int:
    events = [pure_event(0.1, 1)]
    return ledger.reserve(events, PRICE, request=request, purpose="test", space=space)


def make_three(place: str | Path) -> None:
    """Make a ledger with an answered, a forfeited and an open reservation."""
    ledger = Ledger(place, dataset="registry", budget=BUDGET)
    for request in ("answered", "forfeited", "open"):
        buy(ledger, request)
    answer(ledger, 1)
    ledger.forfeit(2, "broken off")
    with ledger.answering(3) as page:
        page.add([(b"first", b"0"), (b"second", b"1")])


def refusal(place: str | Path) -> str:
    """Return the one sentence with which opening is refused, the same for both ways to open."""
    said = set()
    for opener in (
        lambda: Ledger(place, dataset="registry", budget=BUDGET),
        lambda: Ledger.open_existing(place),
    ):
        with pytest.raises(LedgerError) as error:
            opener()
        said.add(str(error.value))
    (sentence,) = said
    assert sentence.endswith(".")
    assert "\n" not in sentence
    return sentence


def fill_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no file of SQLite have more pages than it has now."""
    connect = sqlite._connect

    def connect_to_full_disk(place: Path | None) -> sqlite3.Connection:
        connection = connect(place)
        connection.execute("PRAGMA max_page_count = 1")
        return connection

    monkeypatch.setattr(sqlite, "_connect", connect_to_full_disk)


class FileLedgers:
    """Ledgers in the files of a folder."""

    refusal: type[Exception] = sqlite3.IntegrityError

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def place(self, name: str = "ledger") -> str:
        """Return a place where nothing is."""
        return str(self._folder / f"{name}.sqlite")

    def literal(self, value: bytes) -> str:
        """Return bytes as they stand in a statement."""
        return f"x'{value.hex()}'"

    @contextmanager
    def open(self, place: str) -> Iterator[Run]:
        """Run statements, guarded by the triggers."""
        with closing(sqlite3.connect(place, isolation_level=None)) as connection:
            yield lambda statement: connection.execute(statement).fetchall()

    @contextmanager
    def edited(self, place: str) -> Iterator[Run]:
        """Take the triggers away for an edit and put the same ones back, as a careful forger
        would."""
        with closing(sqlite3.connect(place, isolation_level=None)) as connection:
            triggers = connection.execute(
                "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
            ).fetchall()
            connection.execute("PRAGMA ignore_check_constraints = ON")
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute("BEGIN")
            for name, _ in triggers:
                connection.execute(f"DROP TRIGGER {name}")
            yield lambda statement: connection.execute(statement).fetchall()
            for _, sql in triggers:
                connection.execute(sql)
            connection.execute("COMMIT")


class DatabaseLedgers:
    """Ledgers in the schemas of a database, by the URL of each."""

    refusal: type[Exception] = psycopg.IntegrityError

    def __init__(self, url: Callable[..., str]) -> None:
        self._url, self._names = url, dict[str, str]()

    def place(self, name: str = "ledger") -> str:
        """Return a place where nothing is."""
        self._names.setdefault(name, f"t{uuid4().hex[:20]}")
        return self._url(schema=self._names[name])

    def literal(self, value: bytes) -> str:
        """Return bytes as they stand in a statement."""
        return f"'\\x{value.hex()}'::bytea"

    @contextmanager
    def open(self, place: str) -> Iterator[Run]:
        """Run statements, guarded by the triggers."""
        found = DatabasePlace(place)
        with psycopg.connect(**found.words, autocommit=True) as connection:
            connection.execute(f'SET search_path = "{found.schema}"'.encode())
            yield lambda statement: _rows_of(connection.execute(statement.encode()))

    @contextmanager
    def edited(self, place: str) -> Iterator[Run]:
        """Run statements without triggers, as a superuser who forges may."""
        with self.open(place) as run:
            run("SET session_replication_role = replica")
            yield run

    def drop_all(self) -> None:
        """Remove all that was made."""
        for name in self._names.values():
            words = DatabasePlace(self._url(schema=name)).words
            with psycopg.connect(**words, autocommit=True) as connection:
                connection.execute(f'DROP SCHEMA IF EXISTS "{name}" CASCADE'.encode())


def _rows_of(cursor: "psycopg.Cursor[Any]") -> list[Any]:
    return cursor.fetchall() if cursor.description else []


Ledgers = FileLedgers | DatabaseLedgers
