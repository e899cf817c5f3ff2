"""Processes that die, crowd or run out of space at a ledger: `python ledger_victim.py`.

It reads lines of JSON, [VERB, PLACE, NUMBER], where a place is the path of a file or the URL of a
database. For each it forks a process that does it and prints what was seen, as JSON, or "failed";
the tests beside judge it. Every verb forks too, so that the program is imported once and hundreds
of victims cost little.
"""

import json
import multiprocessing
import os
import resource
import signal
import sqlite3
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg

sys.path.insert(0, str(Path(__file__).parents[1]))

from ledger_answers import answer, answer_of
from secretballot.accounting import PrivacyBudget
from secretballot.core.events import Pure
from secretballot.core.ledger import Ledger, postgres
from secretballot.core.ledger.urls import DatabasePlace, file_or_database
from secretballot.exceptions import BudgetError, LedgerError

BUDGET = PrivacyBudget(1.0, 1e-5)


def buy(ledger: Ledger, request: str, epsilon: float, room: int = 0) -> int:
    price = PrivacyBudget(epsilon, 1e-12)
    return ledger.reserve(
        [Pure(epsilon=epsilon, count=1)], price, request=request, purpose="", space=room
    )


def answer_to(request: str) -> bytes:
    return request.encode() * 3000  # several pages, so that a commit writes more than one


def fork(work: Callable[[Callable[[str], None]], None]) -> tuple[list[str], int]:
    """Run `work` in a child and return the words it got out before it ended, and the signal that
    ended it (0: none)."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            work(lambda word: os.write(writer, f"{word}\n".encode()))
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as words:
        said = words.read().split("\n")[:-1]
    return said, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def at_once(work: Callable[[str, int], list[str]], place: object, count: int) -> list[str]:
    """Run `work` in `count` processes, let go together, and return all their words."""
    context = multiprocessing.get_context("fork")
    with context.Pool(count, context.Barrier(count).wait) as pool:
        given = [(str(place), number) for number in range(count)]
        return [word for words in pool.starmap(work, given, chunksize=1) for word in words]


Place = Path | DatabasePlace


def another(place: Place, number: int) -> Place:
    """Return a place beside one."""
    if isinstance(place, Path):
        return place.with_name(f"{number}.sqlite")
    return DatabasePlace(str(place).replace(place.schema, f"{place.schema}_{number}"))


def settle(place: Place) -> None:
    """Wait until a server has done what a victim told it last: that one held the head, or the name
    of the account, before it wrote anything."""
    if isinstance(place, DatabasePlace):
        store = postgres.PostgresStore(place)
        with store.begun(write=True) as connection:
            connection.execute(postgres.LOCK.format(schema=place.schema))
            if not postgres._is_there(connection):
                return
        with store.transaction(write=True):
            pass


def state_of(path: Place, request: str) -> dict[str, object]:
    """Return what a fresh reader finds after the victim's end."""
    settle(path)
    ledger = Ledger.open_existing(path)
    entries = {entry.request: entry for entry in ledger.history()}
    found = entries.get(request)
    released = answer_of(ledger, request)
    ledger.check()
    return {
        "spent": ledger.spent().epsilon,
        "entries": len(entries),
        "state": None if found is None else found.state,
        "answered": released is not None,
        "intact": released in (None, answer_to(request)),
    }


def buy_and_answer(ledger: Ledger, request: str, say: Callable[[str], None]) -> None:
    number = buy(ledger, request, 0.0001, room=len(answer_to(request)))
    say("drawn")  # from here on noise may have been drawn
    answer(ledger, number, answer_to(request))
    say("answered")  # from here on the answer may have left


class Mortal(sqlite3.Connection):
    """A connection that kills its process with signal 9 at a step; before and after a statement
    are two steps."""

    left = 0

    @classmethod
    def step(cls) -> None:
        if cls.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        cls.left -= 1

    @classmethod
    def possess(cls, steps: int) -> None:
        """Let this process live for `steps` more steps of any connection it opens."""
        connect, link = sqlite3.connect, os.link
        sqlite3.connect = lambda *a, **k: connect(*a, **{**k, "factory": cls})
        tell = psycopg.Connection.execute
        psycopg.Connection.execute = lambda self, sql, *a, **k: cls.around(
            sql if isinstance(sql, bytes | str) else b"", lambda: tell(self, sql, *a, **k)
        )
        os.link = lambda *a: (cls.step(), link(*a), cls.step())
        cls.left = steps

    @classmethod
    def around(cls, sql: bytes | str, work: Callable[[], Any]) -> Any:
        """Run a statement between two steps."""
        if sql[:13] in _ALIKE:
            return work()
        cls.step()
        found = work()
        cls.step()
        return found

    def execute(self, sql: str, *arguments: object) -> sqlite3.Cursor:
        return Mortal.around(sql, lambda: super(Mortal, self).execute(sql, *arguments))

    def executemany(self, sql: str, rows: Any) -> sqlite3.Cursor:
        return Mortal.around(sql, lambda: super(Mortal, self).executemany(sql, rows))


_ALIKE = (  # many of each
    "CREATE TRIGGE",
    b"CREATE TRIGGE",
    b"REVOKE ALL ON",
    b"CREATE FUNCTI",
    b"CREATE TABLE ",
)


def statements(path: Place, _: int) -> object:
    """Kill at the first step of reserve and commit, the second, ... until the victim survives."""
    Ledger(path, dataset="registry", budget=BUDGET)
    seen = []
    while not seen or seen[-1]["signal"]:
        request, steps = f"r{len(seen)}", len(seen)

        def work(say: Callable[[str], None], request: str = request, steps: int = steps) -> None:
            Mortal.possess(steps)
            ledger = Ledger.open_existing(path)
            buy_and_answer(ledger, request, say)

        said, ended = fork(work)
        seen.append({"said": said, "signal": ended, **state_of(path, request)})
    return seen


def creation(path: Place, _: int) -> object:
    """Kill the maker of a ledger before its first statement, the second, ... until it survives."""
    seen = []
    while not seen or seen[-1]["signal"]:
        # every second step: after a statement all is as before the next one
        place, steps = another(path, len(seen)), 2 * len(seen)

        def work(say: Callable[[str], None], place: Place = place, steps: int = steps) -> None:
            Mortal.possess(steps)
            Ledger(place, dataset="registry", budget=BUDGET)

        _, ended = fork(work)
        settle(place)
        made = Ledger.exists(place)
        ledger = Ledger(place, dataset="registry", budget=None if made else BUDGET)
        buy(ledger, "next", 0.5)
        seen.append(
            {"signal": ended, "made": made, "spent": Ledger.open_existing(place).spent().epsilon}
        )
    return seen


def room_for_answers(path: Place, _: int) -> object:
    """Buy while there is space, fill the disk, commit; with the room claimed and without."""
    ledger = Ledger(path, dataset="registry", budget=BUDGET)
    seen = []
    for size in (100, 5_000, 60_000, 500_000):
        for room in (size, 0):
            number = buy(ledger, f"{size} {room}", 0.01, room)
            # a fresh process is a small one: its files grow to the size of the largest and no
            # further
            words = [file.stat().st_size for file in path.parent.iterdir()]

            def work(
                say: Callable[[str], None],
                number: int = number,
                size: int = size,
                full: int = max(words),
            ) -> None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (full, full))
                try:
                    answer(Ledger.open_existing(path), number, bytes(size))
                    say("stored")
                except LedgerError as error:
                    say(str(error))

            seen.append([size, room, *fork(work)[0]])
    return {"seen": seen, "spent": ledger.spent().epsilon}


def buy_much(place: str, number: int) -> list[str]:
    ledger, words = Ledger.open_existing(place), []
    for attempt in range(20):
        try:
            buy(ledger, f"{number}-{attempt}", 0.03125)
            words.append("bought")
        except BudgetError:
            words.append("refused")
    return words


def crowd(path: Place, count: int) -> object:
    """Let `count` processes buy as much as they can at once."""
    Ledger(path, dataset="registry", budget=BUDGET)
    words = at_once(buy_much, path, count)
    ledger = Ledger.open_existing(path)
    return {
        "bought": words.count("bought"),
        "refused": words.count("refused"),
        "entries": len(ledger.history()),
        "spent": ledger.spent().epsilon,
    }


def found(place: str, number: int) -> list[str]:
    try:
        ledger = Ledger(place, dataset="registry", budget=PrivacyBudget(1.0 + number % 2, 1e-5))
        buy(ledger, str(number), 0.01)
    except LedgerError as error:
        return [f"refused {'fixed at creation' in str(error)}"]
    return [f"made {ledger.budget.epsilon}"]


def founders(path: Place, count: int) -> object:
    """Let `count` processes make the same ledger at once, every other one with another budget."""
    words = at_once(found, path, count)
    ledger = Ledger.open_existing(path)
    return {
        "words": words,
        "budget": ledger.budget.epsilon,
        "entries": len(ledger.history()),
        "files": sorted(os.listdir(path.parent)) if isinstance(path, Path) else [],
    }


def read_only(path: Place, _: int) -> object:
    """Read and try to write a ledger whose file, and then whose folder, may not be written."""
    ledger = Ledger(path, dataset="registry", budget=BUDGET)
    buy(ledger, "first", 0.1)
    path.chmod(0o444)
    path.with_name(f"{path.name}-journal").chmod(0o444)
    path.parent.chmod(0o755)
    if os.geteuid() == 0:
        os.setuid(65534)  # root may write everything; nobody may not
    said = []
    try:
        reader = Ledger.open_existing(path)
        spent = reader.spent().epsilon
        buy(reader, "second", 0.1)
    except LedgerError as error:
        said.append(str(error))
    try:
        Ledger(path.with_name("new.sqlite"), dataset="registry", budget=BUDGET)
    except LedgerError as error:
        said.append(str(error))
    return {"said": said, "spent": spent, "files": sorted(os.listdir(path.parent))}


VERBS = (room_for_answers, statements, creation, crowd, founders, read_only)


def say_what_was_seen(verb: str, place: str, number: int) -> None:
    chosen = {v.__name__: v for v in VERBS}[verb]
    os.write(1, f"{json.dumps(chosen(file_or_database(place), number))}\n".encode())


if __name__ == "__main__":
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                say_what_was_seen(*json.loads(line))
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        if os.waitpid(child, 0)[1]:
            os.write(1, b'"failed"\n')
