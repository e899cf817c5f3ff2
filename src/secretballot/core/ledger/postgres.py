"""An account in a schema of a PostgreSQL database.

Three things make the promises of a file true here, too.

A writer locks the row `head` before it looks at anything, in a statement of its own under READ
COMMITTED: whatever it reads afterwards is what the one before it left. Under an isolation level
with one snapshot the wait would come after the snapshot, which would be stale. The lock ends with
the transaction, so that it holds through a pooler that gives each transaction another session. Two
programs that took no lock would still write no two rows of one place: the keys are unique.

What is acknowledged is on the disk: `synchronous_commit` is set in each transaction, a server that
runs without `fsync` is refused, and a standby, which may be behind, is no place to look.

A server that says nothing for some seconds is given up, since a connection may hang without being
closed. What it may still hold on the server is ended over the next connection.
"""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from uuid import uuid4

import psycopg
from psycopg import errors
from psycopg.abc import PQGen

from secretballot.core.errors import BrokenOffError, LedgerError, UnknownEndError
from secretballot.core.ledger import rows
from secretballot.core.ledger.urls import DatabasePlace

_WAIT_S = 30.0  # how long an operation waits for other programs' locks, in seconds
_SILENCE_S = 6.0  # how long a server may be silent beside such a wait, in seconds
# a program that hangs inside a transaction must not keep all others out for longer, in seconds
_IDLE_S = 120.0
_KEPT, _KEPT_S = 8, 60.0  # connections at rest, and how long a connection rests at most, in seconds

# --- tables, and what guards them ---

# asked once of all rows that a statement has added
_NOT_NEXT = f"EXISTS (SELECT 1 FROM fresh WHERE {rows.NOT_NEXT.replace('new.', 'fresh.')})"
_TABLES = ("account", "head", "entry")
#: Each guard: the name of trigger and function, when it is asked, and what it refuses.
_GUARDS = (
    (
        "entry_no_insert",
        "AFTER INSERT ON entry REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT",
        _NOT_NEXT,
    ),
    *(
        (f"{table}_no_{verb}".lower(), f"BEFORE {verb} ON {table} FOR EACH ROW", refused)
        for verb, table, refused in rows.GUARDS
    ),
    *((f"{t}_no_truncate", f"BEFORE TRUNCATE ON {t} FOR EACH STATEMENT", "true") for t in _TABLES),
)


def _statements(schema: str) -> Iterator[str]:
    """Give the statements that make all tables, functions and triggers in a schema."""
    for text in rows.TABLES:
        yield text.format(integer="BIGINT", bytes="BYTEA")
    yield from rows.KEYS
    for name, when, refused in _GUARDS:
        # names inside mean these tables, whoever calls it
        yield f"""CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql
            SET search_path = "{schema}", pg_temp AS $body$
            BEGIN
                IF {refused} THEN
                    RAISE EXCEPTION 'a ledger is append-only: {name}'
                        USING ERRCODE = 'integrity_constraint_violation';
                END IF;
                RETURN new;
            END $body$"""
        yield f"CREATE TRIGGER {name} {when} EXECUTE FUNCTION {name}()"


#: Where there is no row yet to lock.
_LOCK = f"SELECT pg_advisory_xact_lock({rows.APPLICATION_ID}, hashtext('{{schema}}'))"


# --- connections ---


class _Connection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that is closed where its server is silent for too long.

    Attributes
    ----------
    name : str
        By which the server knows it, and no other one.
    limit : float
        How long the server may be silent, in seconds.
    warnings : list of str
        What it warned of.
    """

    name, limit = "", _SILENCE_S

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.warnings: list[str] = []
        self.add_notice_handler(self._note)

    def _note(self, diagnosis: errors.Diagnostic) -> None:
        if diagnosis.severity_nonlocalized == "WARNING":
            self.warnings.append(diagnosis.message_primary or "")

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Any:  # type: ignore[override]
        """Run a statement with a question mark for each value; none has one for itself, or a %."""
        return super().execute(statement.replace("?", "%s").encode(), values or None)

    def executemany(self, statement: str, added: Sequence[Any]) -> None:
        """Add rows to `entry`, all in one statement."""
        if len(added) == 1:
            self.execute(statement, added[0])
            return
        with self.cursor() as cursor, cursor.copy(b"COPY entry FROM STDIN") as copy:
            for row in added:
                copy.write_row(row)

    def wait(self, gen: PQGen[Any], *rest: Any, **more: Any) -> Any:
        """Wait for the server as the driver does, for so long as it says anything."""
        return super().wait(self._while_heard(gen), *rest, **more)

    def _while_heard(self, work: PQGen[Any]) -> PQGen[Any]:
        try:
            wanted, heard = next(work), time.monotonic()
            while True:
                # nothing, several times a second, where the socket is not ready
                ready = yield wanted
                if ready:
                    heard = time.monotonic()
                elif time.monotonic() - heard > self.limit:
                    self.close()
                    raise psycopg.OperationalError("the server does not answer")
                wanted = work.send(ready)
        except StopIteration as end:
            return end.value


class PostgresStore:
    """An account in a schema.

    Connections rest for the next transaction, each used by one thread at a time, and by the process
    alone that opened them; one with which something went wrong never does.

    Parameters
    ----------
    place : DatabasePlace
    """

    def __init__(self, place: DatabasePlace) -> None:
        self.where, self._place = f"Ledger {place}", place
        self._resting = rows.Resting(self, _KEPT)
        self._lost: set[str] = set()  # connections that the server may still take for open

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[rows.Transaction]:
        """Begin a transaction that reads the primary server, or holds the head of the account."""
        with self.begun(write=write) as connection:
            connection.limit = _SILENCE_S + _WAIT_S * write  # others may hold the head
            lock = " FOR UPDATE OF head" if write else ""
            transaction = rows.Transaction(connection, self.where, lock=lock)
            connection.limit = _SILENCE_S
            yield transaction

    def claim_space(self, size: int) -> None:
        """Claim no space, which a database cannot be asked to keep."""

    def confirm_earlier(self, transaction: rows.Transaction) -> None:
        """Do nothing: the lock on the row `head` is in the log, whose order is that of the commits,
        so that a commit confirms all earlier ones."""

    def check(self, transaction: rows.Transaction, *, pages: bool) -> None:
        """Refuse nothing more: pages are the server's, which checks the sum of each that it reads,
        and tables their owner's, who could put them back; rows tell what was done without them."""

    def exists(self) -> bool:
        """Return whether there is an account, of whatever version."""
        with self.begun(write=False) as connection:
            return _is_there(connection)

    def create(self, account: rows.Account) -> None:
        """Make the account with all its tables, in a schema of its own or one that is empty."""
        schema = self._place.schema
        with self.begun(write=True) as connection:
            # another program may be making the same account
            connection.limit = _SILENCE_S + _WAIT_S
            connection.execute(_LOCK.format(schema=schema))
            if _is_there(connection):
                return
            found = connection.execute("SELECT to_regnamespace(?)", [schema]).fetchone()
            if found == (None,):  # one that was made beforehand needs no right to make another
                connection.execute(f'CREATE SCHEMA "{schema}"')
            # tables that may not be made there come to be nowhere else
            connection.execute(f'SET LOCAL search_path = "{schema}"')
            for statement in _statements(schema):
                connection.execute(statement)
            account.fill(connection.execute)

    # --- transactions ---

    @contextmanager
    def begun(self, *, write: bool) -> Iterator[_Connection]:
        """Begin a transaction, and commit it at the end or leave its connection."""
        try:
            rested = self._resting.take(lambda since: time.monotonic() - since < _KEPT_S)
            connection: _Connection = rested or _connect(self._place)
            try:
                self._end_lost(connection)
                self._begin(connection, write)
                yield connection
                self._commit(connection, write)
            except BaseException as error:
                lost = connection.closed
                connection.close()
                if lost:
                    # the others that rested may have lost their server, too
                    self._resting.take(lambda _: False)
                    self._lost.add(connection.name)
                    if isinstance(error, psycopg.OperationalError):
                        rows.refuse(rows.unusable(self.where, error, BrokenOffError))
                raise
            self._resting.put(connection, time.monotonic())
        except psycopg.Error as error:
            rows.refuse(rows.unusable(self.where, error))

    def _end_lost(self, connection: _Connection) -> None:
        """End what is left on the server of connections that were lost: it may hold locks."""
        if lost := list(self._lost):
            # where it is not allowed, the server looks for itself
            with suppress(psycopg.ProgrammingError):
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE usename = current_user AND application_name = ANY(?)",
                    [lost],
                )
            self._lost.difference_update(lost)

    def _begin(self, connection: _Connection, write: bool) -> None:
        """Begin a transaction whose commit is durable, and in which names mean the tables of the
        account."""
        connection.limit = _SILENCE_S
        kind = "READ COMMITTED" if write else "REPEATABLE READ READ ONLY"
        waits = {"wait": _WAIT_S * 1000, "idle": _IDLE_S * 1000}
        begin = _BEGIN.format(kind=kind, schema=self._place.schema, **waits)
        cursor = connection.execute(begin)
        while cursor.nextset():
            pass
        if cursor.fetchone() != (False, "on"):
            raise LedgerError(
                f"{self.where} is on a standby server, which may be behind, or on one that runs"
                " with fsync = off, which may lose a purchase; use the primary one, with fsync ="
                " on. Nothing was changed."
            )

    def _commit(self, connection: _Connection, write: bool) -> None:
        """End a transaction, and where it may write know for certain that it is durable.

        Raises
        ------
        UnknownEndError
            If nobody knows.
        LedgerError
            If it is not.
        """
        connection.warnings.clear()
        try:
            done = connection.execute("COMMIT").statusmessage
        except psycopg.OperationalError as error:
            if not write:
                raise
            broke = f"{self.where} broke off while it was storing ({rows.in_brief(error)})"
            rows.refuse(UnknownEndError.of(broke))
        if done != "COMMIT":  # of a transaction in which a statement had failed
            raise LedgerError(
                f"{self.where} took back what was written; try again. Nothing was changed."
            )
        if write and connection.warnings:  # a standby that must have it was not waited for
            said = rows.in_brief(" ".join(connection.warnings))
            raise UnknownEndError.of(f"{self.where} stored without certainty ({said})")


def _is_there(connection: _Connection) -> bool:
    # a look into the table of tables, as what another program has just made is seen by that alone
    select = "SELECT EXISTS (SELECT 1 FROM pg_class WHERE oid = to_regclass('account'))"
    return bool(connection.execute(select).fetchone() == (True,))


def _connect(place: DatabasePlace) -> _Connection:
    """Return a new connection, outside of any transaction."""
    for name in ("host", "hostaddr"):
        if "," in place.words.get(name, os.environ.get(f"PG{name.upper()}", "")):
            raise LedgerError(
                f"Ledger {place} is on several servers, and one that takes over from another"
                " may lack the last rows; name one server. Nothing was changed."
            )
    name = f"secretballot-{uuid4().hex}"
    words = {"connect_timeout": "5", **place.words, "application_name": name}
    connection = _Connection.connect(
        autocommit=True,
        prepare_threshold=None,  # another session may be behind a pooler the next time
        client_encoding="utf8",
        **words,  # type: ignore[arg-type]
    )
    connection.name = name
    return connection


# search_path: pg_catalog comes first, temporary names last, so that names mean our tables;
# client_min_messages: by a warning we learn that a standby was not waited for;
# enable_*: every question of ours has its index; where no statistics are there yet, the planner
# would read whole tables for the few rows after the last one that was followed;
# synchronous_commit: weaker than "on" is acknowledged before it is on the disk, or on a standby
# that counts.
# All end with the transaction.
_BEGIN = """BEGIN ISOLATION LEVEL {kind};
SELECT set_config(name, setting, true) FROM (VALUES
    ('search_path', '"{schema}", pg_temp'),
    ('lock_timeout', '{wait:.0f}ms'),
    ('idle_in_transaction_session_timeout', '{idle:.0f}ms'),
    ('client_min_messages', 'warning'),
    ('enable_seqscan', 'off'),
    ('enable_bitmapscan', 'off'),
    ('synchronous_commit', CASE current_setting('synchronous_commit')
        WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END)
) AS wanted (name, setting);
SELECT pg_is_in_recovery(), current_setting('fsync')"""
