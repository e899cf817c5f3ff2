"""Durable ledger transactions per second, beside a bare SQLite append under the same settings in
the same run.

The bare append is the floor: one open connection, one table, one row per transaction, as durable. A
ledger transaction opens a connection, looks for new rows, asks the filter and appends. Rounds take
turns, so that both meet the same disk. On a slow disk the ratio is near one; TMPDIR=/dev/shm takes
the disk away and shows the ledger's own work. `rows` is how many reservations the ledger holds
already.
"""

import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from secretballot.accounting import Counts, PrivacyBudget
from secretballot.core.ledger import Ledger
from secretballot.core.ledger.rows import Purchase

BUDGET = PrivacyBudget(100.0, 2e-5)
EVENTS = (Counts(sigma=50_000.0, shifts=1),)
PRICE = PrivacyBudget(5e-4, 1e-10)
ANSWER = bytes(300)
ROUNDS, PER_ROUND = 9, 10


def bare_append(path: Path) -> Callable[[str], None]:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = TRUNCATE")
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, request TEXT UNIQUE, body BLOB)")

    def append(request: str) -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO rows (request, body) VALUES (?, ?)", (request, ANSWER))
        connection.execute("COMMIT")

    return append


def filled(path: Path, rows: int, composition: str) -> Ledger:
    """Return a ledger that holds `rows` reservations already, written in one transaction."""
    ledger = Ledger(path, dataset="benchmark", budget=BUDGET, composition=composition)
    purchase = Purchase(EVENTS, None, PRICE.epsilon, PRICE.delta)
    terms, costs = purchase.encode(), ledger._own_book.filter.costs(purchase.grant)
    with ledger._own_book.writing() as writer:
        for number in range(1, rows + 1):
            totals = writer.seen.totals.plus(costs)
            key = f"old{number}".encode()
            writer.add("reserve", number, 0, key=key, terms=terms, totals=totals)
    return ledger


def rate(work: Callable[[str], object], name: str) -> float:
    start = time.perf_counter()
    for number in range(PER_ROUND):
        work(f"{name}-{number}")
    return PER_ROUND / (time.perf_counter() - start)


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def compare(folder: Path, rows: int, composition: str) -> None:
    ledger = filled(folder / f"{composition}{rows}.sqlite", rows, composition)
    append = bare_append(folder / f"bare-{composition}{rows}.sqlite")
    numbers: list[int] = []
    rates: dict[str, list[float]] = {"append": [], "reserve": [], "commit": []}
    for turn in range(ROUNDS):
        rates["append"].append(rate(append, str(turn)))
        rates["reserve"].append(
            rate(
                lambda r: numbers.append(ledger.reserve(EVENTS, PRICE, request=r, purpose="")),
                str(turn),
            )
        )
        rates["commit"].append(rate(lambda _: ledger.commit(numbers.pop(), ANSWER), str(turn)))
    append_rate, reserve, commit = (median(rates[name]) for name in ("append", "reserve", "commit"))
    place = folder / f"{composition}{rows}.sqlite"
    opening = seconds(lambda: Ledger.open_existing(place))
    fresh = seconds(
        lambda: Ledger.open_existing(place).reserve(EVENTS, PRICE, request="fresh", purpose="")
    )
    show = seconds(
        lambda: (Ledger.open_existing(place).spent(), Ledger.open_existing(place).releases())
    )
    history = seconds(lambda: Ledger.open_existing(place).history())
    check = seconds(lambda: Ledger.open_existing(place).check())
    print(
        f"{composition:>11} {rows:>7} {append_rate:>12.0f} {reserve:>10.0f} {commit:>9.0f}"
        f" {reserve / append_rate:>13.2f} {commit / append_rate:>12.2f} {opening * 1000:>11.0f}"
        f" {fresh * 1000:>16.0f} {show * 1000:>8.0f} {history * 1000:>10.0f} {check * 1000:>8.0f}",
        flush=True,
    )


def main() -> None:
    print(
        f"{'composition':>11} {'rows':>7} {'append/s':>12} {'reserve/s':>10} {'commit/s':>9}"
        f" {'reserve ratio':>13} {'commit ratio':>12} {'opening ms':>11}"
        f" {'new reserve ms':>16} {'show ms':>8} {'history ms':>10} {'check ms':>8}"
    )
    with tempfile.TemporaryDirectory() as folder:
        for composition in ("basic", "renyi"):
            for rows in (0, 1000, 10_000, 100_000):
                compare(Path(folder), rows, composition)


if __name__ == "__main__":
    main()
