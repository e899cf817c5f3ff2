"""The ledger under kill -9, crowds and full disks: spent never falls, nothing is answered
unreserved. What dies, crowds or runs out of space is forked here."""

import multiprocessing
import os
import resource
import signal
import sqlite3
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from ledger_answers import answer, answer_of
from ledger_backends import BUDGET, FileLedgers, Ledgers, buy
from secretballot.accounting import PrivacyBudget
from secretballot.core.ledger import Ledger, postgres
from secretballot.core.ledger.urls import DatabasePlace
from secretballot.exceptions import BudgetError, LedgerError

WHOLE = PrivacyBudget(100.0, 1e-5)  # enough for all deaths
Say = Callable[[str], None]


def forked(work: Callable[[Say], None]) -> tuple[list[str], int]:
    """Run `work` in a child and return the words it got out before it ended, and the signal that
    ended it (0: none)."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        ended = 1
        try:
            work(lambda word: os.write(writer, f"{word}\n".encode()))
            ended = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(ended)
    os.close(writer)
    with os.fdopen(reader) as words:
        said = words.read().split("\n")[:-1]
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert ended in (0, -signal.SIGKILL), "see the standard error"
    return said, ended


def at_once(work: Callable[[str, int], list[str]], place: str, count: int) -> list[str]:
    """Run `work` in `count` processes, let go together, and return all their words."""
    context = multiprocessing.get_context("fork")
    with context.Pool(count, context.Barrier(count).wait) as pool:
        given = [(place, number) for number in range(count)]
        return [word for words in pool.starmap(work, given, chunksize=1) for word in words]


def settle(place: str) -> None:
    """Wait until a server has done what a victim told it last: that one held the head, or the name
    of the account, before it wrote anything."""
    if "postgresql:" in place:
        found = DatabasePlace(place)
        store = postgres.PostgresStore(found)
        with store.begun(write=True) as connection:
            connection.execute(postgres._LOCK.format(schema=found.schema))
            if not postgres._is_there(connection):
                return
        with store.transaction(write=True):
            pass


class Mortal(sqlite3.Connection):
    """A connection that kills its process with signal 9 at a step: before a statement, and after
    one that ends a transaction. After others all is as before the next one."""

    left = 0

    @classmethod
    def step(cls) -> None:
        if cls.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        cls.left -= 1

    @classmethod
    def possess(cls, steps: int) -> None:
        """Let this process live for `steps` more steps of any connection it opens."""
        connect, link, tell = sqlite3.connect, os.link, psycopg.Connection.execute
        sqlite3.connect = lambda *a, **k: connect(*a, **{**k, "factory": cls})
        psycopg.Connection.execute = lambda self, sql, *a, **k: cls.around(
            sql, lambda: tell(self, sql, *a, **k)
        )
        os.link = lambda *a: (cls.step(), link(*a), cls.step())
        cls.left = steps

    @classmethod
    def around(cls, sql: Any, work: Callable[[], Any]) -> Any:
        """Run a statement with its steps; those that come many at a time have none."""
        text = sql.decode() if isinstance(sql, bytes) else str(sql)
        many = ("CREATE TRIGGER", "REVOKE ALL ON", "CREATE FUNCTION", "CREATE TABLE ")
        if text.startswith(many):
            return work()
        cls.step()
        found = work()
        if text.startswith("COMMIT"):
            cls.step()
        return found

    def execute(self, sql: str, *arguments: object) -> sqlite3.Cursor:
        return Mortal.around(sql, lambda: super(Mortal, self).execute(sql, *arguments))

    def executemany(self, sql: str, rows: Any) -> sqlite3.Cursor:
        return Mortal.around(sql, lambda: super(Mortal, self).executemany(sql, rows))


def test_kill_at_every_statement_never_refunds_and_never_answers_unreserved(
    ledgers: Ledgers,
) -> None:
    place = ledgers.place()
    Ledger(place, dataset="registry", budget=WHOLE)
    before, entries, ends, ended = 0.0, 0, [], -signal.SIGKILL
    while ended:  # killed at the first step of reserve and commit, the second, ...
        steps = len(ends)
        content = f"r{steps}".encode() * 3000  # several pages, so that a commit writes several

        def work(say: Say, steps: int = steps, content: bytes = content) -> None:
            Mortal.possess(steps)
            ledger = Ledger.open_existing(place)
            number = buy(ledger, f"r{steps}", len(content))
            say("drawn")  # from here on noise may have been drawn
            answer(ledger, number, content)
            say("answered")  # from here on the answer may have left

        said, ended = forked(work)
        settle(place)
        fresh = Ledger.open_existing(place)
        entry, released, spent = (
            fresh.entry(f"r{steps}"),
            answer_of(fresh, f"r{steps}"),
            fresh.spent(),
        )
        fresh.check()
        assert spent.epsilon >= before
        assert len(fresh.history()) == entries + (entry is not None)
        before, entries = spent.epsilon, len(fresh.history())
        assert round(10 * before) == entries
        assert released == (content if entry and entry.state == "committed" else None)
        ends.append((tuple(said), entry and entry.state))
    assert len(ends) > 20
    # each stage was hit: before the reservation, paid but not returned, drawn, on the books but not
    # returned, done; drawn only what is paid, and what left the house is on the books
    assert list(dict.fromkeys(ends)) == [
        ((), None),
        ((), "reserved"),
        (("drawn",), "reserved"),
        (("drawn",), "committed"),
        (("drawn", "answered"), "committed"),
    ]


def test_kill_during_creation_leaves_no_half_made_ledger(ledgers: Ledgers) -> None:
    made, ended = [], -signal.SIGKILL
    while ended:
        place, steps = ledgers.place(str(len(made))), len(made)

        def work(_: Say, place: str = place, steps: int = steps) -> None:
            Mortal.possess(steps)
            Ledger(place, dataset="registry", budget=BUDGET)

        _, ended = forked(work)
        settle(place)
        made.append(Ledger.exists(place))
        buy(Ledger(place, dataset="registry", budget=None if made[-1] else BUDGET), "next")
        assert Ledger.open_existing(place).spent().epsilon == 0.1
    assert len(made) > 15
    assert made == sorted(made)
    assert not made[0]
    assert made[-1]


@pytest.mark.parametrize("size", [100, 5_000, 60_000, 500_000])
def test_an_answer_whose_room_was_claimed_is_stored_on_a_full_disk(
    tmp_path: Path, size: int
) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite", dataset="registry", budget=BUDGET)
    for room in (size, 0):
        number = buy(ledger, f"{room}", room)
        # files grow to the size of the largest and no further
        full = max(file.stat().st_size for file in tmp_path.iterdir())

        def work(say: Say, number: int = number, full: int = full) -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (full, full))
            try:
                answer(Ledger.open_existing(ledger.path), number, bytes(size))
                say("stored")
            except LedgerError as error:
                say(str(error))

        ((words,), _) = forked(work)
        if room:
            assert words == "stored"
        elif size > 60_000:
            assert "Nothing was changed" in words
    assert ledger.spent().epsilon == 0.2


def buy_much(place: str, number: int) -> list[str]:
    ledger, words = Ledger.open_existing(place), []
    for attempt in range(5):
        try:
            buy(ledger, f"{number}-{attempt}")
            words.append("bought")
        except BudgetError:
            words.append("refused")
    return words


def test_crowd_of_processes_cannot_overspend(ledgers: Ledgers) -> None:
    place = ledgers.place()
    ledger = Ledger(place, dataset="registry", budget=BUDGET)
    words = at_once(buy_much, place, 4)
    assert (words.count("bought"), words.count("refused")) == (10, 10)
    assert (len(ledger.history()), ledger.spent().epsilon) == (10, 1.0)


def found(place: str, number: int) -> list[str]:
    try:
        ledger = Ledger(place, dataset="registry", budget=PrivacyBudget(1.0 + number % 2, 1e-5))
        buy(ledger, str(number))
    except LedgerError as error:
        return [f"refused {'fixed at creation' in str(error)}"]
    return [f"made {ledger.budget.epsilon}"]


def test_processes_that_create_at_once_agree(ledgers: Ledgers, tmp_path: Path) -> None:
    place = ledgers.place()
    words = at_once(found, place, 8)  # every other one with another budget
    ledger = Ledger.open_existing(place)
    assert words.count(f"made {ledger.budget.epsilon}") == words.count("refused True") == 4
    assert len(ledger.history()) == 4
    if isinstance(ledgers, FileLedgers):
        assert sorted(os.listdir(tmp_path)) == ["ledger.sqlite", "ledger.sqlite-journal"]


def test_ledger_without_write_permission_can_be_read_but_not_charged() -> None:
    # not in pytest's own folder, which nobody but its owner may enter
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.sqlite"
        buy(Ledger(path, dataset="registry", budget=BUDGET), "first")
        for file in Path(folder).iterdir():
            file.chmod(0o444)
        path.parent.chmod(0o755)

        def work(say: Say) -> None:
            if os.geteuid() == 0:
                os.setuid(65534)  # root may write everything; nobody may not
            reader = Ledger.open_existing(path)
            assert reader.spent().epsilon == 0.1
            with pytest.raises(LedgerError, match="readonly"):
                buy(reader, "second")
            if os.geteuid() == 65534:
                with pytest.raises(LedgerError, match="Permission denied"):
                    Ledger(path.with_name("new.sqlite"), dataset="registry", budget=BUDGET)
            say("done")

        assert forked(work) == (["done"], 0)
        assert sorted(os.listdir(folder)) == ["ledger.sqlite", "ledger.sqlite-journal"]
