"""Durable transactions and answers per second of a ledger in a file and in a database on the same
machine.

A transaction follows the chain, asks the filter, appends, and reads back what it wrote. `answers/s`
are answers to single questions of one plan, stored so many to a transaction. Rounds take turns, so
that all meet the same disk; the median is shown.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1]))
from campaigns.postgres_server import PostgresServer, reason_for_none

from cells import head_of, row_of
from secretballot.accounting import BinaryLabels, GaussianChances, PrivacyBudget, Pure
from secretballot.core.ledger import Ledger

BUDGET = PrivacyBudget(1000.0, 1e-2)
PRICE = PrivacyBudget(1e-3, 1e-10)
ANSWER = bytes(300)
GROUPS = (1, 10, 100, 1000)
ROUNDS, SECONDS = 7, 0.5


def rate(work: Callable[[], int]) -> float:
    """Return how many a second a work does, that says how many it did."""
    done, begun = 0, time.perf_counter()
    while (spent := time.perf_counter() - begun) < SECONDS:
        done += work()
    return done / spent


def works_of(place: str) -> dict[str, Callable[[], int]]:
    """Return what is measured on one back end."""
    ledger = Ledger(place, dataset="benchmark", budget=BUDGET)
    plan = ledger.reserve(
        [BinaryLabels(chances=GaussianChances(sigma=900.0), queries=10**6)],
        PrivacyBudget(60.0, 1e-3),
        request="p",
        purpose="",
    )
    numbers = iter(range(10**9))

    def purchase() -> int:
        request = f"r{next(numbers)}"
        events = [Pure(epsilon=1e-3, count=1)]
        number = ledger.reserve(events, PRICE, request=request, purpose="")
        with ledger.answering(number) as page:
            page.add([(b"0", ANSWER)])
            page.commit({})
        return 2

    def answers(group: int) -> int:
        with ledger.answering(plan) as page:
            page.add([(b"%d" % next(numbers), ANSWER) for _ in range(group)])
        return group

    groups = {f"answers/s by {n}": lambda n=n: answers(n) for n in GROUPS}
    return {"transactions/s": purchase, **groups}


def main() -> None:
    if reason := reason_for_none():
        print(f"left out: {reason}")
        return
    server = PostgresServer()
    try:
        with tempfile.TemporaryDirectory() as folder:
            works = {
                "file": works_of(str(Path(folder) / "ledger.sqlite")),
                "database": works_of(server.url(schema="benchmark")),
            }
            found: dict[tuple[str, str], list[float]] = {}
            for _ in range(ROUNDS):
                for kind, named in works.items():
                    for name, work in named.items():
                        found.setdefault((kind, name), []).append(rate(work))
            print(head_of("", *works))
            for name in works["file"]:
                print(row_of(name, *(f"{median(found[kind, name]):,.0f}" for kind in works)))
    finally:
        server.remove()


if __name__ == "__main__":
    main()
