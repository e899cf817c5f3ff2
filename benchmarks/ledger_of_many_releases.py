"""How long a ledger takes when it holds many releases, or one release of many answers.

Each release is three rows: a reservation, an answer of 300 bytes and the closing. `open` is a new
handle, `reserve` and `answer` are durable transactions of a handle that lives already, beside a
bare append to an SQLite file under the same settings, which is the floor on this disk;
TMPDIR=/dev/shm takes the disk away. `show` is the whole command in a process of its own. Give the
number of releases, 100,000 by default.
"""

import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

from secretballot.accounting import Counts, PrivacyBudget
from secretballot.core.ledger import Ledger
from secretballot.core.ledger.rows import Closing, Intention, Purchase, Row

BUDGET = PrivacyBudget(100.0, 2e-5)
EVENTS = (Counts(sigma=50_000.0, shifts=1),)
PRICE = PrivacyBudget(5e-4, 1e-10)
ANSWER = bytes(300)
TURNS = 9


def filled(path: Path, releases: int, answers: int, composition: str) -> Ledger:
    """Return a ledger that holds so many releases of so many answers, written in one
    transaction."""
    ledger = Ledger(path, dataset="benchmark", budget=BUDGET, composition=composition)
    purchase = Purchase(events=EVENTS, **PRICE.to_json())
    terms, body = purchase.encode(), Intention(purpose="", terms={}).encode().encode()
    costs, closed = ledger._own_book.filter.costs(EVENTS, PRICE), Closing(facts={}).encode()
    with ledger._own_book.writing() as rows:
        for number in range(1, releases + 1):
            key = f"old{number}".encode()
            reserved = Row(0, "reserve", number, 0, key, terms, body)
            rows.add([reserved], rows.seen.totals.plus(costs))
            parts = range(1, answers + 1)
            rows.add([Row(0, "part", number, k, b"%d" % k, body=ANSWER) for k in parts])
            rows.add([Row(0, "close", number, answers + 1, terms=closed)])
    return ledger


def append_to(path: Path) -> Callable[[], object]:
    """Return one durable append to a bare file."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = PERSIST")
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, body BLOB)")
    return lambda: connection.execute("INSERT INTO rows (body) VALUES (?)", (ANSWER,))


def works_of(place: Path, ledger: Ledger) -> Iterator[tuple[str, Callable[[], object]]]:
    """Give what is measured, by its name."""
    requests, bought = iter(range(10**9)), list[int]()

    def reserve() -> None:
        request = f"new{next(requests)}"
        bought.append(ledger.reserve(EVENTS, PRICE, request=request, purpose=""))

    def answer() -> None:
        with ledger.answering(bought.pop(), closes=True) as page:
            page.add([(b"0", ANSWER)])
            page.commit({})

    words = [sys.executable, "-m", "secretballot", "ledger", "show", str(place)]
    yield "bare append", append_to(place.with_suffix(".bare"))
    yield "open", lambda: Ledger.open_existing(place)
    yield "reserve", reserve
    yield "answer", answer
    yield "show", lambda: subprocess.run(words, check=True, capture_output=True)


def seconds(work: Callable[[], object], turns: int = TURNS) -> float:
    """Return the median time of a few turns."""
    found = []
    for _ in range(turns):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return median(found)


def main() -> None:
    releases = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    for composition in ("basic", "renyi"):
        for many, answers in ((0, 0), (releases, 1), (1, releases)):
            with tempfile.TemporaryDirectory() as folder:
                place = Path(folder) / "ledger.sqlite"
                ledger = filled(place, many, answers, composition)
                found = {name: seconds(work) for name, work in works_of(place, ledger)}
                found["history"] = seconds(ledger.history, 1)
                found["check"] = seconds(ledger.check, 1)
                shown = ", ".join(f"{name} {1000 * spent:.1f}" for name, spent in found.items())
                print(f"{composition}, {many:,} releases of {answers:,}: ms {shown}", flush=True)


if __name__ == "__main__":
    main()
