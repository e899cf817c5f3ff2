"""Which back end keeps an account: a path means an SQLite file, a URL a PostgreSQL database."""

import os
from importlib.util import find_spec
from pathlib import Path

from secretballot._databases import DatabasePlace, is_database
from secretballot.exceptions import LedgerError
from secretballot.privacy.ledger.chain import Account
from secretballot.privacy.ledger.file import create_file, sqlite_in_words
from secretballot.privacy.ledger.sqlite_store import SqliteStore
from secretballot.privacy.ledger.store import Store, repeated
from secretballot.privacy.ledger.terms import absolute_path

Place = Path | DatabasePlace


def place_of(given: object) -> Place:
    """Return the place that somebody names by a path, a URL or a `DatabasePlace`.

    Raises
    ------
    ParameterError
        If it is none of these.
    """
    if isinstance(given, DatabasePlace):
        return given
    if isinstance(given, str) and is_database(given):
        return DatabasePlace(given)
    return absolute_path(given)


def name_of(place: Place) -> str:
    """Return what messages call a place."""
    return place.name if isinstance(place, DatabasePlace) else str(place)


def is_taken(place: Place) -> bool:
    """Return whether something stands at a place, so that no account can be made there.

    Raises
    ------
    LedgerError
        If a database cannot be asked.
    """
    if isinstance(place, Path):
        return os.path.lexists(place)
    _need_driver(place)
    from secretballot.privacy.ledger.postgres_store import has_account

    return repeated(has_account)(place)


def store_at(place: Place) -> Store:
    """Return the back end of an account that is there.

    Raises
    ------
    LedgerError
        If there is no file that could be one, or no driver for the database.
    """
    if isinstance(place, Path):
        return SqliteStore.of_file(place)
    _need_driver(place)
    from secretballot.privacy.ledger.postgres_store import PostgresStore

    return PostgresStore(place)


def create_at(place: Place, account: Account) -> bool:
    """Make an account, complete or not at all; leave one that another program made meanwhile.

    Return whether it was made here.

    Raises
    ------
    LedgerError
        If none can be made there.
    """
    if isinstance(place, Path):
        with sqlite_in_words(f"Ledger {place}"):
            return create_file(place, account)
    _need_driver(place)
    from secretballot.privacy.ledger.postgres_store import create_account

    return create_account(place, account)


def grant_at(place: Place, role: str) -> None:
    """Give a role of a database the rights of a writer.

    Raises
    ------
    LedgerError
        If the place is a file, which has no roles, or the rights cannot be given.
    """
    if isinstance(place, Path):
        raise LedgerError(
            f"The ledger {place} is a file, whose rights are those of the file system; give the URL"
            " of a PostgreSQL database."
        )
    _need_driver(place)
    from secretballot.privacy.ledger.postgres_store import grant_writer

    grant_writer(place, role)


def _need_driver(place: DatabasePlace) -> None:
    if find_spec("psycopg") is None:
        raise LedgerError(
            f"The ledger {place.name} is in a PostgreSQL database, and psycopg is not installed;"
            " install secretballot[postgres]."
        )
