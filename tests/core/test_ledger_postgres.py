"""What a database alone can do to a ledger: roles, settings, standbys, broken connections, other
versions."""

import pickle
import re
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from campaigns.postgres_proxy import PostgresProxy
from campaigns.postgres_server import PostgresServer
from typer.testing import CliRunner

import secretballot as sb
from ledger_answers import answer, answer_of
from ledger_backends import BUDGET, DatabaseLedgers, buy
from secretballot.cli import app
from secretballot.core.ledger import Ledger, postgres
from secretballot.core.ledger.rows import BrokenOffError
from secretballot.core.ledger.urls import DatabasePlace
from secretballot.core.noise import ExactNoise
from secretballot.exceptions import LedgerError

SECRET = "hunter2"


@pytest.fixture
def databases(postgres_server: PostgresServer) -> DatabaseLedgers:
    return DatabaseLedgers(postgres_server.url)


@pytest.fixture
def place(databases: DatabaseLedgers) -> str:
    return databases.place()


@pytest.fixture
def ledger(place: str) -> Ledger:
    return Ledger(place, dataset="registry", budget=BUDGET)


def refused(work: Any, match: str) -> str:
    """Return the one sentence with which something is refused."""
    with pytest.raises(LedgerError, match=match) as error:
        work()
    said = str(error.value)
    assert said.endswith(".")
    assert "\n" not in said
    return said


def wait_until(server: PostgresServer, query: str, *, rows: bool) -> None:
    """Wait until a query finds rows, or none."""
    while bool(server.run(query)) != rows:
        time.sleep(0.01)


def test_a_lock_that_lasts_is_one_sentence(
    place: str, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "_WAIT_S", 0.1)
    number = buy(ledger, "plan")
    other = Ledger.open_existing(place)
    with ledger.answering(number):
        refused(lambda: buy(other, "second"), "lock timeout.*Nothing was changed")
        assert other.spent().epsilon == 0.1  # who reads waits for nobody
    buy(other, "second")


def test_a_program_that_hangs_loses_its_hold_and_stores_nothing(
    postgres_server: PostgresServer, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = buy(ledger, "plan")
    monkeypatch.setattr(postgres, "_IDLE_S", 0.2)

    def hang() -> None:
        with ledger.answering(number) as page:
            page.add([(b"a", b"1")])
            held = "SELECT 1 FROM pg_stat_activity WHERE state = 'idle in transaction'"
            wait_until(postgres_server, held, rows=False)

    refused(hang, "Nothing was changed")
    monkeypatch.undo()
    with ledger.answering(number) as page:
        assert page.count == 0


@pytest.mark.parametrize(
    ("given", "inside"), [("off", "on"), ("local", "on"), ("remote_write", "on"),
                          ("on", "on"), ("remote_apply", "remote_apply")]
)  # fmt: skip
def test_commits_are_durable_whatever_the_role_has_set(
    postgres_server: PostgresServer, databases: DatabaseLedgers, given: str, inside: str
) -> None:
    ledger = Ledger(databases.place(), dataset="registry", budget=BUDGET)
    postgres_server.run(f"ALTER ROLE postgres SET synchronous_commit = '{given}'")
    try:
        late = Ledger.open_existing(str(ledger.place))
        with late._transaction(write=True) as rows_there:
            look = "SELECT current_setting('synchronous_commit')"
            found = rows_there.transaction.execute(look).fetchone()
        assert found == (inside,)
    finally:
        postgres_server.run("ALTER ROLE postgres RESET synchronous_commit")


@contextmanager
def setting(server: PostgresServer, name: str, value: str) -> Iterator[None]:
    def apply(*statements: str) -> None:
        server.run(*statements, "SELECT pg_reload_conf()")

    def wait_for(text: str) -> None:
        while server.run(f"SHOW {name}") != [(text,)]:
            time.sleep(0.02)
        # a new session begins when those at rest have had the signal
        server.run("SELECT 1")

    ((usual,),) = server.run(f"SHOW {name}")
    apply(f"ALTER SYSTEM SET {name} = '{value}'")
    try:
        wait_for(value)
        yield
    finally:
        apply(f"ALTER SYSTEM RESET {name}")
        wait_for(usual)


def test_a_server_that_forgets_is_refused(
    postgres_server: PostgresServer, databases: DatabaseLedgers, ledger: Ledger
) -> None:
    with setting(postgres_server, "fsync", "off"):
        refused(lambda: buy(ledger, "a"), "runs with fsync = off, which may lose a purchase")
        refused(
            lambda: Ledger(databases.place("new"), dataset="registry", budget=BUDGET), "fsync = on"
        )
    assert buy(ledger, "a") == 1


def test_a_standby_that_was_not_waited_for_is_no_certainty(
    postgres_server: PostgresServer, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cancel() -> None:
        waits = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        wait_until(postgres_server, waits, rows=True)
        ((pid,),) = postgres_server.run(waits)
        postgres_server.run(f"SELECT pg_cancel_backend({pid})")

    monkeypatch.setattr(postgres, "_SILENCE_S", 3.0)  # a look at it waits for a standby, too
    # warnings that a role does not want to see are seen all the same
    postgres_server.run("ALTER ROLE postgres SET client_min_messages = 'error'")
    ledger = Ledger.open_existing(str(ledger.place))
    with setting(postgres_server, "synchronous_standby_names", "nobody"):
        thread = threading.Thread(target=cancel)
        thread.start()
        refused(lambda: buy(ledger, "a"), "without certainty .*unknown whether that was stored")
        thread.join()
    postgres_server.run("ALTER ROLE postgres RESET client_min_messages")
    assert ledger.spent().epsilon == 0.1


def test_a_standby_is_refused(postgres_server: PostgresServer) -> None:
    with PostgresServer() as standby:
        place = DatabaseLedgers(standby.url).place()
        ledger = Ledger(place, dataset="registry", budget=BUDGET)
        buy(ledger, "a")
        standby.stop()
        (standby.data / "standby.signal").touch()
        standby.start()
        for use in (
            ledger.spent,
            lambda: buy(ledger, "b"),
            lambda: Ledger.open_existing(place),
            lambda: Ledger(place, dataset="registry", budget=BUDGET),
        ):
            refused(use, "is on a standby server, which may be behind, or .* use the primary one")


def test_several_servers_are_refused_whoever_names_them(
    postgres_server: PostgresServer, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = f"{postgres_server.folder},{postgres_server.folder}"
    monkeypatch.setenv("PGHOST", two)
    ending = f"/postgres?schema={DatabasePlace(place).schema}&port={postgres_server.port}"
    for url in (f"postgresql://postgres@{ending}", f"postgresql://postgres@{ending}&host={two}"):
        refused(lambda url=url: Ledger(url, dataset="registry", budget=BUDGET), "several servers")


def test_nothing_of_a_transaction_stays_with_its_session(
    postgres_server: PostgresServer, ledger: Ledger
) -> None:
    # a pooler may give the session to anybody next
    buy(ledger, "a")
    ledger._store.create(ledger._terms)  # which another program has just made
    assert ledger.spent().epsilon == 0.1
    ((connection, _, _),) = ledger._store._resting._kept
    changed = "SELECT name FROM pg_settings WHERE source = 'session' AND name <> 'TimeZone'"
    left = {name for (name,) in connection.execute(changed)}
    assert left <= {"application_name", "client_encoding"}
    assert connection.execute("SELECT * FROM pg_prepared_statements").fetchall() == []
    locks = f"SELECT * FROM pg_locks WHERE pid = {connection.info.backend_pid}"
    assert postgres_server.run(locks) == []


def _end_session(server: PostgresServer, pid: int) -> None:
    server.run(f"SELECT pg_terminate_backend({pid})")
    wait_until(server, f"SELECT 1 FROM pg_stat_activity WHERE pid = {pid}", rows=False)


@pytest.fixture
def proxy(postgres_server: PostgresServer) -> Iterator[PostgresProxy]:
    between = PostgresProxy(postgres_server)
    yield between
    between.close()


@pytest.fixture
def far(proxy: PostgresProxy, place: str, ledger: Ledger) -> Ledger:
    """The same account by way of the proxy."""
    return Ledger.open_existing(proxy.url(DatabasePlace(place).schema))


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a connection up soon that hangs."""
    monkeypatch.setattr(postgres, "_SILENCE_S", 1.6)


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize(
    ("when", "purchase", "hang"),
    [
        *(("statement", True, False), ("statement", False, True), ("commit", True, True)),
        *(("commit", False, False), ("acknowledgement", True, False)),
        *(("acknowledgement", False, True), ("acknowledgement", True, True)),
    ],
)
def test_what_is_bought_or_answered_is_stored_once_wherever_its_connection_breaks(
    proxy: PostgresProxy, far: Ledger, when: Any, purchase: bool, hang: bool
) -> None:
    number = buy(far, "a")
    proxy.lose(b"INSERT INTO entry", when, hang=hang)
    if purchase:
        assert buy(far, "b") == 2
    else:
        answer(far, number, b"answer")
    assert proxy.broken.is_set()
    assert far.spent().epsilon == (0.2 if purchase else 0.1)
    assert answer_of(far, "a") == (None if purchase else b"answer")
    far.check()


def test_a_ledger_is_made_where_the_end_of_that_is_lost(
    proxy: PostgresProxy, databases: DatabaseLedgers
) -> None:
    proxy.lose(b"INSERT INTO head", "acknowledgement")
    schema = DatabasePlace(databases.place()).schema
    assert Ledger(proxy.url(schema), dataset="registry", budget=BUDGET).releases() == 0
    assert proxy.broken.is_set()


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("hang", [False, True])
def test_what_a_lost_connection_holds_is_ended_and_nothing_else(
    proxy: PostgresProxy, far: Ledger, ledger: Ledger, hang: bool
) -> None:
    number = buy(far, "plan")
    with ledger.reading(number) as page:  # a session of the same role
        proxy.lose(b"INSERT INTO entry", "commit", hang=hang)
        with pytest.raises(BrokenOffError), far.answering(number) as answers:
            answers.add([(b"a", b"1")])
        assert buy(far, "next") == 2
        assert page.count == 0


@pytest.mark.parametrize("broken", [b"FROM entry", b"COMMIT"])
def test_a_read_that_breaks_is_done_again(proxy: PostgresProxy, far: Ledger, broken: bytes) -> None:
    buy(far, "a")
    proxy.lose(broken, "statement")
    assert far.entry("a") is not None
    assert proxy.broken.is_set()


@pytest.mark.parametrize("purchase", [True, False])
def test_an_end_that_nobody_can_look_up_is_said_to_be_unknown(
    proxy: PostgresProxy, far: Ledger, monkeypatch: pytest.MonkeyPatch, purchase: bool
) -> None:
    connect = postgres._connect

    def unreachable(*given: Any) -> Any:
        if proxy.broken.is_set():
            raise psycopg.OperationalError("refused")
        return connect(*given)

    number = None if purchase else buy(far, "a")
    with monkeypatch.context() as patch:
        patch.setattr(postgres, "_connect", unreachable)
        proxy.lose(b"INSERT INTO", "acknowledgement")
        refused(
            lambda: buy(far, "a") if purchase else answer(far, number, b"answer"),
            "unknown whether that was stored, nothing was returned.*charged once when it is repea",
        )
    assert far.spent().epsilon == 0.1
    assert answer_of(far, "a") == (None if purchase else b"answer")


def test_a_missing_driver_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "secretballot.core.ledger.postgres", None)
    refused(lambda: Ledger.open_existing("postgresql://h/d"), "psycopg is not installed; install")


def test_a_commit_that_took_all_back_is_an_error(ledger: Ledger) -> None:
    def end_broken() -> None:
        with ledger._store.begun(write=True) as connection, pytest.raises(psycopg.Error):
            connection.execute("SELECT 1 / 0")

    refused(end_broken, "took back what was written.*Nothing was changed")


def test_a_connection_that_ended_at_rest_costs_nothing(
    postgres_server: PostgresServer, ledger: Ledger
) -> None:
    buy(ledger, "a")
    ((connection, _, _),) = ledger._store._resting._kept
    _end_session(postgres_server, connection.info.backend_pid)
    assert buy(ledger, "b") == 2


def test_connections_of_many_threads_come_to_rest_and_are_few(ledger: Ledger) -> None:
    with ThreadPoolExecutor(12) as pool:
        assert set(pool.map(lambda _: ledger.releases(), range(60))) == {0}
    assert 1 <= len(ledger._store._resting._kept) <= postgres._KEPT


def test_a_database_that_is_down_is_one_sentence_and_nothing_is_drawn(
    postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = []

    def watched(name: str, draw: Any) -> Any:
        return lambda *words, **more: drawn.append(name) or draw(*words, **more)

    for name, draw in vars(ExactNoise).items():
        if not name.startswith("_") and callable(draw):
            monkeypatch.setattr(ExactNoise, name, watched(name, draw))
    with PostgresServer() as server:
        place = DatabaseLedgers(server.url).place()
        ledger = Ledger(place, dataset="registry", budget=BUDGET)
        votes = sb.votes_of_counts([[3, 97], [60, 40]])
        estimate = {"fraction": 0.5, "epsilon": 0.25}
        server.stop()
        for use in (
            lambda: sb.estimate_stability(votes, ledger, request="one", **estimate),
            ledger.spent,
            lambda: Ledger.open_existing(place),
            lambda: Ledger(place, dataset="registry", budget=BUDGET),
        ):
            begun = time.monotonic()
            refused(use, "cannot be reached.*Nothing was changed")
            assert time.monotonic() - begun < 20  # it would wait longer for another's lock
        assert drawn == []
        server.start()
        sb.estimate_stability(votes, ledger, request="one", **estimate)
        assert drawn
        assert ledger.spent().epsilon == 0.25


@pytest.fixture
def roles(postgres_server: PostgresServer) -> Iterator[tuple[str, str]]:
    names = ("curator", "asker")
    for name in names:
        postgres_server.run(f"CREATE ROLE {name} LOGIN PASSWORD '{SECRET}'")
    postgres_server.run("GRANT CREATE ON DATABASE postgres TO curator")
    yield names
    for name in names:
        postgres_server.run(f"DROP OWNED BY {name} CASCADE", f"DROP ROLE {name}")


def test_a_writer_with_the_rights_of_the_guide_buys_and_answers_and_may_do_nothing_else(
    postgres_server: PostgresServer, roles: tuple[str, str]
) -> None:
    owner = postgres_server.url(user="curator", schema="patients")
    writer = postgres_server.url(user="asker", schema="patients")
    Ledger(owner, dataset="registry", budget=BUDGET)
    refused(lambda: Ledger.open_existing(writer), "may write there")
    refused(lambda: Ledger(writer, dataset="registry", budget=BUDGET), "may write there")
    guide = (Path(__file__).parents[2] / "docs" / "guides" / "service.md").read_text()
    rights = re.findall(r'-c "(GRANT [^"]*)"', guide)
    assert rights
    postgres_server.run(*(text.replace("TO service", "TO asker") for text in rights))
    ledger = Ledger.open_existing(writer)
    answer(ledger, buy(ledger, "a"), b"answer")
    with ledger.answering(buy(ledger, "plan")) as page:
        page.add([(b"a", b"1"), (b"b", b"1")])
    ledger.forfeit(2, "enough")
    found = DatabasePlace(writer)
    without_rights = [
        "UPDATE entry SET chain = chain",
        *(f"DELETE FROM {t}" for t in ("account", "head", "entry")),
        *(f"TRUNCATE {t}" for t in ("account", "head", "entry")),
        *(f"ALTER TABLE {t} DISABLE TRIGGER ALL" for t in ("account", "head", "entry")),
        "UPDATE account SET terms = terms",
        "INSERT INTO account SELECT * FROM account",
        "INSERT INTO head VALUES (2, 0, '')",
        "SET session_replication_role = replica",
        "CREATE TABLE patients.other (id INTEGER)",
        "CREATE OR REPLACE FUNCTION entry_no_update() RETURNS trigger LANGUAGE sql AS ''",
        "DROP SCHEMA patients CASCADE",
        "UPDATE head SET id = 2",
    ]
    guarded = ["UPDATE head SET position = position", "UPDATE head SET position = 99"]
    for statement in (*without_rights, *guarded):
        kind = psycopg.IntegrityError if statement in guarded else psycopg.ProgrammingError
        with psycopg.connect(**found.words) as connection:
            connection.execute(b'SET search_path = "patients"')
            with pytest.raises(kind):
                connection.execute(statement.encode())
    ledger.check()


def test_a_schema_that_was_made_beforehand_is_taken(
    postgres_server: PostgresServer, roles: tuple[str, str]
) -> None:
    postgres_server.run(
        "REVOKE CREATE ON DATABASE postgres FROM curator",
        "CREATE SCHEMA given AUTHORIZATION curator",
        "CREATE SCHEMA used AUTHORIZATION curator",
        "CREATE TABLE used.something (id INTEGER)",
    )
    place = postgres_server.url(user="curator", schema="given")
    assert not Ledger.exists(place)
    buy(Ledger(place, dataset="registry", budget=BUDGET), "a")
    used = postgres_server.url(user="curator", schema="used")
    assert not Ledger.exists(used)
    buy(Ledger(used, dataset="registry", budget=BUDGET), "a")
    postgres_server.run("DROP SCHEMA used CASCADE")


@pytest.mark.parametrize(
    ("change", "edit"),
    [
        (
            "DROP TRIGGER entry_no_update ON entry",
            "UPDATE entry SET sums = '0 0 0' WHERE position = 1",
        ),
        ("ALTER TABLE entry DISABLE TRIGGER entry_no_delete", "DELETE FROM entry"),
        ("DROP TRIGGER head_no_update ON head", "UPDATE head SET position = 0"),
        ("SELECT 1", "CREATE RULE forget AS ON INSERT TO entry DO INSTEAD NOTHING"),
    ],
)
def test_what_is_done_without_a_guard_is_noticed(
    databases: DatabaseLedgers, place: str, ledger: Ledger, change: str, edit: str
) -> None:
    buy(ledger, "a")
    with databases.open(place) as run:
        run(change)
        run(edit)
    with pytest.raises(LedgerError):
        buy(Ledger.open_existing(place), "b")


def test_a_password_is_told_to_nobody_but_the_server(
    postgres_server: PostgresServer, roles: tuple[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    right = f"postgresql://curator:{SECRET}@127.0.0.1:{postgres_server.port}/postgres?schema=p"
    wrong = right.replace(SECRET, SECRET[::-1])
    ledger = Ledger(right, dataset="registry", budget=BUDGET)
    buy(ledger, "a")
    shown = [repr(ledger), str(ledger.place), repr(pickle.dumps(ledger)), repr(vars(ledger))]
    for url in (wrong, right.replace("127.0.0.1", "127.0.0.2"), right.replace("/postgres?", "/x?")):
        with pytest.raises(LedgerError) as error:
            Ledger.open_existing(url)
        assert error.value.__context__ is None  # the driver's error holds the connection
        shown += [str(error.value), "".join(traceback.format_exception(error.value))]
    copy = pickle.loads(pickle.dumps(ledger))
    # without its password it gets in nowhere, and says so
    shown.append(refused(copy.spent, "cannot be reached"))
    for words in (
        ["ledger", "show", right],
        ["ledger", "show", wrong, "--json"],
        ["ledger", "show", right.replace(f":{SECRET}", f":{SECRET}@")],
        ["ledger", "history", wrong],
        ["ledger", "create", right, "--dataset", "x", "--total", "1,1e-6"],
    ):
        result = CliRunner().invoke(app, words)
        shown += [result.output, repr(result.exception)]
    text = "\n".join([*shown, caplog.text])
    assert "curator" in text
    for secret in (SECRET, SECRET[::-1]):
        assert secret not in text
