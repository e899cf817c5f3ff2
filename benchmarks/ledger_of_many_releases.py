"""How long `secretballot ledger show` and a reservation take when a ledger holds many releases.

Each release is two rows, a reservation and its closing with an answer of 300 bytes. `show` is the
whole command in a process of its own, imports included; beside it the same command with a ledger
that holds nothing. `reserve` is measured twice: with a handle that lives already, and with a new
one, as a command has it. Beside each median stands that of the processor's time alone, which other
programs on the machine lengthen less. Give the number of releases, 100,000 by default.
"""

import hashlib
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from ledger_throughput import ANSWER, BUDGET, EVENTS, PRICE
from secretballot.core.ledger import Ledger
from secretballot.core.ledger.rows import Closing, Purchase

TURNS = 9


def filled(path: Path, releases: int, composition: str) -> Ledger:
    """Return a ledger that holds so many releases, written in one transaction."""
    ledger = Ledger(path, dataset="benchmark", budget=BUDGET, composition=composition)
    purchase = Purchase(EVENTS, None, PRICE.epsilon, PRICE.delta)
    terms, costs = purchase.encode(), ledger._own_book.filter.costs(purchase.grant)
    closed = Closing(hashlib.sha256(ANSWER).hexdigest()).encode()
    with ledger._own_book.writing() as writer:
        for number in range(1, releases + 1):
            totals = writer.seen.totals.plus(costs)
            key = f"old{number}".encode()
            writer.add("reserve", number, 0, key=key, terms=terms, totals=totals)
            writer.add("close", number, 1, terms=closed, body=ANSWER)
    return ledger


def seconds(work: Callable[[int], object]) -> tuple[float, float]:
    """Return the median time of a few turns, on the clock and on the processor."""
    clock, busy = [], []
    for turn in range(TURNS):
        start, used = time.perf_counter(), processor()
        work(turn)
        clock.append(time.perf_counter() - start)
        busy.append(processor() - used)
    return median(clock), median(busy)


def processor() -> float:
    """Return the processor's time of this process and of those that it waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def show(path: Path) -> Callable[[int], object]:
    words = [sys.executable, "-m", "secretballot", "ledger", "show", str(path)]
    return lambda _: subprocess.run(words, check=True, capture_output=True)


def measure(folder: Path, releases: int, composition: str) -> None:
    place = folder / f"{composition}.sqlite"
    ledger = filled(place, releases, composition)
    empty = folder / f"{composition}-empty.sqlite"
    Ledger(empty, dataset="benchmark", budget=BUDGET, composition=composition)

    def reserve(handle: Callable[[], Ledger], name: str) -> tuple[float, float]:
        return seconds(
            lambda turn: handle().reserve(EVENTS, PRICE, request=f"{name}{turn}", purpose="")
        )

    found = {
        "show, empty": seconds(show(empty)),
        "show": seconds(show(place)),
        "reserve": reserve(lambda: ledger, "living"),
        "reserve, new handle": reserve(lambda: Ledger.open_existing(place), "new"),
    }
    words = "; ".join(
        f"{name} {1000 * clock:.0f} ({1000 * busy:.0f}) ms" for name, (clock, busy) in found.items()
    )
    size = place.stat().st_size / 1e6
    print(f"{composition}, {releases:,} releases, {size:.0f} MB: {words}", flush=True)


def main() -> None:
    releases = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    with tempfile.TemporaryDirectory() as folder:
        for composition in ("basic", "renyi"):
            measure(Path(folder), releases, composition)


if __name__ == "__main__":
    main()
