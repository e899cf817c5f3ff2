"""The two back ends of a ledger as tests see them: free places, copies, edits by hand."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg

from secretballot.core.ledger.urls import DatabasePlace

__all__ = ["DatabaseLedgers", "FileLedgers", "Ledgers"]

Run = Callable[[str], Any]


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
