"""An account in a schema of a PostgreSQL database.

Three things make the promises of a file true here, too.

A writer takes the row `head` before it looks at anything, in a statement of its own under READ
COMMITTED: whatever it reads afterwards is what the one before it left. Under an isolation level
with one snapshot the wait would come after the snapshot, which would be stale. The lock ends with
the transaction, so that it holds through a pooler that gives each transaction another session, and
it is on the very row that the trigger moves: no row comes into the chain without it.

What is acknowledged is on the disk: `synchronous_commit` is set in each transaction, a server that
runs without `fsync` is refused, and a standby, which may be behind, is no place to look.

A server that says nothing for some seconds is given up, since a connection may hang without being
closed. What it may still hold on the server is ended over the next connection.

Two roles use the tables. The owner makes them and spends nothing. A writer may read, and add
rows; it has no right to change or remove any, nor to touch `head`, which a trigger with the owner's
rights moves, and only to a row that is the next one.
"""

import hashlib
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from uuid import uuid4

import psycopg
from psycopg import errors, sql
from psycopg.abc import PQGen

from secretballot.core.errors import BrokenOffError, LedgerError, UnknownEndError
from secretballot.core.ledger import rows
from secretballot.core.ledger.urls import DatabasePlace

WAIT_S = 30.0  # how long an operation waits for other programs' locks, in seconds
SILENCE_S = 6.0  # how long a server may be silent beside such a wait, in seconds
# a program that hangs inside a transaction must not keep all others out for longer, in seconds
IDLE_S = 120.0
_KEPT, _KEPT_S = 8, 60.0  # connections at rest, and how long a connection rests at most, in seconds
_READ = "ISOLATION LEVEL REPEATABLE READ READ ONLY"
_WRITE = "ISOLATION LEVEL READ COMMITTED"

# --- tables, and what guards them ---

_REFUSED = "USING ERRCODE = 'integrity_constraint_violation'"
#: Each function in PL/pgSQL: what it returns, whether it has the owner's rights, its body.
_FUNCTIONS = {
    # waits for whoever holds it, and then has what that one left
    "take_head": (
        "TABLE (place BIGINT, link BYTEA)",
        True,
        "BEGIN RETURN QUERY SELECT head.position, head.chain FROM head FOR UPDATE; END",
    ),
    "move_head": (
        "trigger",
        True,
        f"""
DECLARE
    first BIGINT;
    last BIGINT;
    many BIGINT;
BEGIN
    SELECT min(fresh.position), max(fresh.position), count(*) INTO first, last, many FROM fresh;
    IF many = 0 THEN
        RETURN NULL;
    END IF;
    IF EXISTS (
        SELECT 1 FROM fresh LEFT JOIN entry before
        ON before.reservation = fresh.reservation AND before.number = fresh.number - 1
        WHERE fresh.number > 0 AND (before.kind IS NULL OR before.kind = 'close')
    ) THEN
        RAISE EXCEPTION 'a closed reservation takes no further row' {_REFUSED};
    END IF;
    UPDATE head SET position = last,
        chain = (SELECT fresh.chain FROM fresh WHERE fresh.position = last)
        WHERE head.position = first - 1 AND last - first + 1 = many;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'a ledger is append-only: a row comes after the last one' {_REFUSED};
    END IF;
    RETURN NULL;
END
""",
    ),
    "refuse_step": (
        "trigger",
        False,
        f"""
BEGIN
    IF pg_trigger_depth() < 2 OR new.id <> old.id OR new.position <= old.position THEN
        RAISE EXCEPTION 'a ledger is append-only: its head moves with its rows' {_REFUSED};
    END IF;
    RETURN new;
END
""",
    ),
    "refuse_change": (
        "trigger",
        False,
        f"""
BEGIN
    RAISE EXCEPTION 'a ledger is append-only: % on % is refused', TG_OP, TG_TABLE_NAME {_REFUSED};
END
""",
    ),
}
_CHANGED = "FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()"
#: As PostgreSQL writes them, too.
_TRIGGERS = (
    f"CREATE TRIGGER account_no_change BEFORE DELETE OR UPDATE OR TRUNCATE ON account {_CHANGED}",
    f"CREATE TRIGGER entry_no_change BEFORE DELETE OR UPDATE OR TRUNCATE ON entry {_CHANGED}",
    f"CREATE TRIGGER head_no_change BEFORE DELETE OR TRUNCATE ON head {_CHANGED}",
    "CREATE TRIGGER head_step BEFORE UPDATE ON head FOR EACH ROW EXECUTE FUNCTION refuse_step()",
    "CREATE TRIGGER entry_next AFTER INSERT ON entry REFERENCING NEW TABLE AS fresh"
    " FOR EACH STATEMENT EXECUTE FUNCTION move_head()",
)


def _statements(schema: str) -> Iterator[str]:
    """Give the statements that make all tables, functions and triggers in a schema."""
    for text in rows.TABLES:
        yield text.format(integer="BIGINT", bytes="BYTEA")
    yield from rows.KEYS
    for name, (returns, of_owner, body) in _FUNCTIONS.items():
        rights = "DEFINER" if of_owner else "INVOKER"
        # names inside mean these tables, whoever calls it
        yield (
            f"CREATE FUNCTION {name}() RETURNS {returns} LANGUAGE plpgsql SECURITY {rights}"
            f' SET search_path = "{schema}", pg_temp AS $body${body}$body$'
        )
        yield f"REVOKE ALL ON FUNCTION {name}() FROM PUBLIC"
    yield from _TRIGGERS


#: Everything in a schema that a promise rests on, one line each; `_EXPECTED` is what it should
#: find.
_FOUND = """
SELECT 'table ' || relname || ' ' || relkind::text || relpersistence::text || relrowsecurity::text
FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind NOT IN ('i', 'c')
UNION ALL
SELECT regexp_replace(pg_get_indexdef(indexrelid, 0, true), ' USING btree|"|::text', '', 'g')
    || CASE WHEN indisvalid THEN '' ELSE ' invalid' END
FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
WHERE relnamespace = current_schema()::regnamespace AND indisunique
UNION ALL
SELECT pg_get_triggerdef(pg_trigger.oid, true) || CASE tgenabled WHEN 'O' THEN '' ELSE ' off' END
FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
WHERE relnamespace = current_schema()::regnamespace AND NOT tgisinternal
UNION ALL
SELECT 'rule ' || relname || ' ' || rulename
FROM pg_rewrite JOIN pg_class ON pg_class.oid = ev_class
WHERE relnamespace = current_schema()::regnamespace
UNION ALL
SELECT 'function ' || proname || ' ' || prosecdef::text || ' ' || prosrc
FROM pg_proc WHERE pronamespace = current_schema()::regnamespace
"""
_EXPECTED = {
    *(f"table {name} rpfalse" for name in ("account", "head", "entry")),
    *(
        f"CREATE UNIQUE INDEX {name}_pkey ON {name} ({key})"
        for name, key in (("account", "id"), ("head", "id"), ("entry", "position"))
    ),
    *rows.KEYS,
    *_TRIGGERS,
    *(
        f"function {name} {'true' if of_owner else 'false'} {body}"
        for name, (_, of_owner, body) in _FUNCTIONS.items()
    ),
}


# --- connections ---

_USUAL = {
    "application_name": "secretballot",
    "connect_timeout": "5",
    # a server whose machine is gone is noticed in half a minute
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "4",
    "tcp_user_timeout": "30000",
}


class Connection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that is closed where its server is silent for too long.

    Attributes
    ----------
    name : str
        By which the server knows it, and no other one.
    """

    name, _patient = "", False

    @contextmanager
    def patience(self) -> Iterator[None]:
        """Let statements take as long as other programs' locks."""
        self._patient = True
        try:
            yield
        finally:
            self._patient = False

    def wait(self, gen: PQGen[Any], *rest: Any, **more: Any) -> Any:
        """Wait for the server as the driver does, for so long as it says anything."""
        return super().wait(self._while_heard(gen), *rest, **more)

    def _while_heard(self, work: PQGen[Any]) -> PQGen[Any]:
        try:
            wanted, heard = next(work), time.monotonic()
            while True:
                # nothing, several times a second, where the socket is not ready
                ready = yield wanted
                limit = SILENCE_S + WAIT_S * self._patient
                if ready:
                    heard = time.monotonic()
                elif time.monotonic() - heard > limit:
                    self.close()
                    raise psycopg.OperationalError("the server does not answer")
                wanted = work.send(ready)
        except StopIteration as end:
            return end.value


class _LostError(psycopg.OperationalError):
    """A connection was lost before a transaction was to be stored."""


class PostgresTransaction(rows.Transaction):
    """A transaction of a connection. It claims no space, which a database cannot be asked to keep;
    and the lock on the row `head` is in the log, whose order is that of the commits, so that a
    commit confirms all earlier ones."""

    connection: Connection

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Any:
        """Run one statement."""
        # nothing but these marks: no statement of ours has a question mark or a % for itself
        return self.connection.execute(statement.replace("?", "%s").encode(), values or None)

    def count(self) -> int:
        """Return the number of rows, by the one statement that reads all of a table."""
        with self.connection.patience():
            return super().count()

    def append(self, added: Sequence[rows.Row]) -> None:
        """Add rows, all in one statement; a trigger moves the head."""
        if len(added) == 1:
            self.execute(rows.INSERT, added[0])
        elif added:
            statement = f"COPY entry ({rows.COLUMNS}) FROM STDIN".encode()
            with self.connection.cursor() as cursor, cursor.copy(statement) as copy:
                for row in added:
                    copy.write_row(row)


class PostgresStore:
    """An account in a schema.

    Connections rest for the next transaction, each used by one thread at a time, and by the process
    alone that opened them.

    Parameters
    ----------
    place : DatabasePlace
    """

    def __init__(self, place: DatabasePlace) -> None:
        self.where, self._place = f"Ledger {place.name}", place
        digest = hashlib.sha256(place.schema.encode()).digest()
        key = int.from_bytes(digest[:4], "big", signed=True)
        # where there is no row yet to take: another program may be making the same account
        self._lock = f"SELECT pg_advisory_xact_lock({rows.APPLICATION_ID}, {key})"
        self._resting = rows.Resting(self, _KEPT)
        self._lost: set[str] = set()  # connections that the server may still take for open

    @contextmanager
    def transaction(self, *, write: bool, closes: int | None = None) -> Iterator[rows.Transaction]:
        """Begin a transaction that reads the primary server, or holds the head of the account."""
        head = "take_head()" if write else "(SELECT position, chain FROM head)"
        first = f"SELECT format, h.* FROM account LEFT JOIN {head} h ON true"
        with self._begun(_WRITE if write else _READ, first) as (connection, found):
            yield PostgresTransaction(connection, self._head_in(found))

    def _head_in(self, found: Any) -> tuple[int, bytes] | None:
        """Return the head of an account that this version made; None where it is gone."""
        row: tuple[Any, Any, Any] = found or (rows.VERSION, None, None)
        version, position, chain = row
        if version != rows.VERSION:
            raise rows.other_version(self.where, version)
        return None if position is None else (position, chain)

    def check(self, transaction: rows.Transaction, *, pages: bool) -> None:
        """Refuse tables, keys, triggers or functions that were changed by hand. Pages are the
        server's, which checks the sum of each that it reads."""
        if {line for (line,) in transaction.execute(_FOUND)} != _EXPECTED:
            raise rows.changed_tables(self.where)

    # --- making, rights ---

    def exists(self) -> bool:
        """Return whether there is an account, of whatever version."""
        with self._begun("READ ONLY", _IS_THERE) as (_, found):
            return bool(found[0])

    def create(self, account: rows.Account) -> None:
        """Make the account with all its tables, in a schema of its own or one that is empty."""
        with self._begun(_WRITE, self._lock) as (connection, _):
            if _one_row(connection, _IS_THERE) == (True,):
                return
            self._make_schema(connection)
            for statement in _statements(self._place.schema):
                connection.execute(statement.encode())
            account.fill(PostgresTransaction(connection, None).execute)

    def _make_schema(self, connection: Connection) -> None:
        found = connection.execute(
            "SELECT has_schema_privilege(oid, 'CREATE'),"
            " NOT EXISTS (SELECT 1 FROM pg_class WHERE relnamespace = pg_namespace.oid)"
            " FROM pg_namespace WHERE nspname = %s",
            [self._place.schema],
        ).fetchone()
        if found is None:
            schema = sql.Identifier(self._place.schema)
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(schema))
        elif found != (True, True):
            raise LedgerError(
                f"The schema {self._place.schema!r} of {self._place.name} holds something, or this"
                " role may not make tables in it; name another with ?schema=NAME, or use the role"
                " that owns it. Nothing was changed."
            )

    def grant(self, role: str) -> None:
        """Let a role read the account and add rows, and do nothing else.

        Raises
        ------
        LedgerError
            If there is no account or no such role, this role does not own the account, or the other
            one could do more by other ways.
        """
        with self._begun(_WRITE, "SELECT format, NULL, NULL FROM account") as (connection, found):
            self._head_in(found)
            # a GRANT of what is not one's own is a warning, not an error; and an owner who takes
            # rights from himself would still own the tables
            is_own, would_own = _one_row(connection, _OWNERSHIP, role)
            if not is_own:
                raise LedgerError(
                    f"{self.where} is not this role's own; use the role that made it. Nothing was"
                    " changed."
                )
            names = {"schema": self._place.schema, "role": role}
            quoted = {name: sql.Identifier(value).as_string() for name, value in names.items()}
            for statement in () if would_own else _RIGHTS_OF_WRITER:
                connection.execute(statement.format(**quoted).encode())
            if would_own or _one_row(connection, _RIGHTS_TOO_MANY, role, role, role) == (True,):
                raise LedgerError(
                    f"The role {role!r} may change rows of {self._place.name} whatever is granted"
                    " here, as its owner, a member of its owner or a superuser, or by a right of"
                    " all roles; name another role. Nothing was changed."
                )

    # --- transactions ---

    @contextmanager
    def _begun(self, kind: str, first: str) -> Iterator[tuple[Connection, Any]]:
        """Begin a transaction and commit it at the end, or roll it back.

        `first` is the statement that comes first in it, and waits while others hold what it needs;
        its first row comes with the connection.
        """
        with rows.in_words(psycopg.Error, self._refusal):
            connection = self._begun_connection(kind)
            try:
                with connection.patience():
                    found = connection.execute(first.encode()).fetchone()
                yield connection, found
                if kind.endswith("READ ONLY"):
                    connection.execute("COMMIT")
                else:
                    self._commit_durably(connection)
            except BaseException as error:
                _roll_back(connection, error)
                self._put_to_rest(connection)
                if connection.closed:
                    self._lost.add(connection.name)
                    if isinstance(error, psycopg.OperationalError):
                        raise _LostError(_brief_error(error)) from None
                raise
            self._put_to_rest(connection)

    def _put_to_rest(self, connection: Connection) -> None:
        if connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE:
            self._resting.put(connection, time.monotonic())
        else:
            connection.close()

    def _begun_connection(self, kind: str) -> Connection:
        """Return a connection inside of a transaction.

        One that has rested may have lost its server since, which says nothing about the server now,
        and much about the others that rested.
        """
        rested = self._resting.take(lambda since: time.monotonic() - since < _KEPT_S)
        if rested is not None:
            try:
                _begin_transaction(rested, self._place, kind, self.where)
            except (psycopg.Error, LedgerError):
                self._lost.add(rested.name)
                rested.close()
                self._resting.take(lambda _: False)
            else:
                return rested  # type: ignore[no-any-return]
        connection = _new_connection(self._place)
        try:
            self._end_lost(connection)
            _begin_transaction(connection, self._place, kind, self.where)
        except BaseException:
            connection.close()
            raise
        return connection

    def _end_lost(self, connection: Connection) -> None:
        """End what is left on the server of connections that were lost: it may hold locks."""
        if lost := list(self._lost):
            # where it is not allowed, the server looks for itself
            with suppress(psycopg.ProgrammingError):
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE usename = current_user AND application_name = ANY(%s)",
                    [lost],
                )
            self._lost.difference_update(lost)

    def _commit_durably(self, connection: Connection) -> None:
        """End a transaction, and know for certain that it is durable.

        Raises
        ------
        UnknownEndError
            If nobody knows.
        LedgerError
            If it is not.
        """
        warnings: list[str] = []

        def note(diagnosis: errors.Diagnostic) -> None:
            if diagnosis.severity_nonlocalized == "WARNING":
                warnings.append(diagnosis.message_primary or "")

        done, broke = None, ""
        connection.add_notice_handler(note)
        try:
            done = connection.execute("COMMIT").statusmessage
        except psycopg.OperationalError as error:
            broke = f"{self.where} broke off while it was storing ({_brief_error(error)})"
        finally:
            connection.remove_notice_handler(note)
        if done == "COMMIT" and warnings:  # a standby that must have it was not waited for
            broke = f"{self.where} stored without certainty ({rows.in_brief(' '.join(warnings))})"
        if broke:
            raise UnknownEndError.of(broke)
        if done != "COMMIT":  # of a transaction in which a statement had failed
            raise LedgerError(
                f"{self.where} took back what was written; try again. Nothing was changed."
            )

    def _refusal(self, error: psycopg.Error) -> LedgerError:
        """Return what went wrong, in words without a password."""
        detail = _brief_error(error)
        for secret in self._place.secrets:  # libpq quotes none; if ever it does, it is not shown
            detail = detail.replace(secret, "...") if secret else detail
        words = next((words for kinds, words in _IN_WORDS if isinstance(error, kinds)), _UNTRUSTED)
        kind = BrokenOffError if isinstance(error, _LostError) else LedgerError
        return kind(f"{self.where} {words} ({detail}). Nothing was changed.")


def _new_connection(place: DatabasePlace) -> Connection:
    """Return a new connection, outside of any transaction."""
    words = {**_USUAL, **place.words}
    # the server keeps 63 characters of it
    words["application_name"] = f"{words['application_name'][:30]}-{uuid4().hex}"
    if place.several_hosts:  # all but one of them may be standbys
        words = {"target_session_attrs": "read-write", **words}
    words["client_encoding"] = "utf8"
    connection = Connection.connect(
        autocommit=True,
        prepare_threshold=None,  # another session may be behind a pooler the next time
        **words,  # type: ignore[arg-type]
    )
    connection.name = words["application_name"]
    return connection


# search_path: pg_catalog comes first, temporary names last, so that names mean our tables;
# client_min_messages: by a warning we learn that a standby was not waited for;
# enable_*: every question of ours has its index; where no statistics are there yet, the planner
# would read whole tables for the few rows after the last one that was followed;
# synchronous_commit: weaker than "on" is acknowledged before it is on the disk, or on a standby
# that counts;
# tcp_*: the server, too, notices in half a minute that a machine is gone, and takes back its hold;
# where an answer is under way to it, no probe is sent. Elsewhere the last one would fill the log.
_BEGIN = """BEGIN {kind};
SELECT set_config(name, setting, true) FROM (VALUES
    ('search_path', '"{schema}", pg_temp'),
    ('lock_timeout', '{wait:.0f}ms'),
    ('idle_in_transaction_session_timeout', '{idle:.0f}ms'),
    ('client_min_messages', 'warning'),
    ('enable_seqscan', 'off'),
    ('enable_bitmapscan', 'off'),
    ('synchronous_commit', CASE current_setting('synchronous_commit')
        WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END),
    ('tcp_keepalives_idle', '10'),
    ('tcp_keepalives_interval', '5'),
    ('tcp_keepalives_count', '4'),
    ('tcp_user_timeout', CASE WHEN version() LIKE '%linux%' THEN '30000' ELSE '0' END)
) AS wanted (name, setting);
SELECT pg_is_in_recovery(), current_setting('fsync'), current_setting('server_encoding')"""


def _begin_transaction(connection: Connection, place: DatabasePlace, kind: str, where: str) -> None:
    """Begin a transaction whose commit is durable, and in which names mean the tables of the
    account."""
    waits = {"wait": WAIT_S * 1000, "idle": IDLE_S * 1000}
    cursor = connection.execute(_BEGIN.format(kind=kind, schema=place.schema, **waits).encode())
    while cursor.nextset():
        pass
    standby, fsync, encoding = cursor.fetchone() or (True, "", "")
    why = ""
    if standby:
        why = "is on a standby server, which may be behind; give the address of the primary one"
    elif fsync != "on":
        why = (
            f"is on a server that runs with fsync = {rows.in_brief(fsync)!r}, so a purchase could"
            " be lost after noise was drawn for it; set fsync = on"
        )
    elif encoding != "UTF8":
        why = (
            f"is in a database with the encoding {rows.in_brief(encoding)!r}, which cannot hold"
            " every name; make a database with the encoding 'UTF8'"
        )
    if why:
        raise LedgerError(f"{where} {why}. Nothing was changed.")


def _roll_back(connection: Connection, error: BaseException) -> None:
    # what was interrupted may be in the middle of an answer, which the next user would read as its
    if isinstance(error, Exception) and not connection.closed:
        with suppress(psycopg.Error):
            connection.execute("ROLLBACK")
            return
    with suppress(psycopg.Error):
        connection.close()


_RIGHTS_OF_WRITER = (
    "REVOKE ALL ON ALL TABLES IN SCHEMA {schema} FROM {role}",
    "REVOKE ALL ON SCHEMA {schema} FROM {role}",
    "GRANT USAGE ON SCHEMA {schema} TO {role}",
    "GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}",
    "GRANT INSERT ON {schema}.entry TO {role}",
    "GRANT EXECUTE ON FUNCTION {schema}.take_head() TO {role}",
)
_OF_ACCOUNT = "FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'"
_OWNERSHIP = (
    "SELECT bool_and(pg_has_role(relowner, 'USAGE')), bool_or(pg_has_role(%s, relowner, 'MEMBER'))"
    f" {_OF_ACCOUNT}"
)
_RIGHTS_TOO_MANY = (
    "SELECT bool_or(has_table_privilege(%s, oid, 'DELETE, TRUNCATE, TRIGGER')"
    " OR has_any_column_privilege(%s, oid, 'UPDATE') OR has_any_column_privilege(%s, oid, 'INSERT')"
    " AND relname IN ('account', 'head'))"
    f" {_OF_ACCOUNT}"
)


# a look into the table of tables first, as what another program has just made is seen by that alone
_IS_THERE = "SELECT EXISTS (SELECT 1 FROM pg_class WHERE oid = to_regclass('account'))"


def _one_row(connection: Connection, statement: str, *values: object) -> tuple[Any, ...]:
    found = connection.execute(statement.encode(), values or None).fetchone()
    assert found is not None
    return found


# --- in words ---

_UNTRUSTED = "cannot be trusted any further; check the database"
_IN_WORDS: tuple[tuple[tuple[type[psycopg.Error], ...], str], ...] = (
    (
        (errors.LockNotAvailable, errors.DeadlockDetected, errors.SerializationFailure),
        "is locked by another program; try again when that has finished",
    ),
    (
        (errors.UndefinedTable, errors.UndefinedFunction, errors.InvalidSchemaName),
        "is not there, or this role may not see it; give the right database and schema, or have its"
        " owner grant the role its rights with secretballot ledger grant",
    ),
    (
        (errors.InsufficientPrivilege, errors.ReadOnlySqlTransaction),
        "does not let this role do that; use the role that owns the ledger, or have it grant this"
        " one its rights with secretballot ledger grant",
    ),
    ((errors.DiskFull, errors.OutOfMemory), "could not grow; free some space on the server"),
    ((errors.ProgramLimitExceeded,), "cannot hold a value this large; release it in parts"),
    ((errors.IntegrityError,), "refused rows that do not follow the last one; check the ledger"),
    ((errors.UndefinedObject,), "knows no such role; have the database make it first"),
    (
        (
            psycopg.OperationalError,
            errors.InFailedSqlTransaction,
            errors.IdleInTransactionSessionTimeout,
        ),
        "cannot be reached, or broke off; see that the database runs, and that address and password"
        " are right, then try again",
    ),
)


def _brief_error(error: psycopg.Error) -> str:
    primary = error.diag.message_primary
    return rows.in_brief(primary if primary else error)
