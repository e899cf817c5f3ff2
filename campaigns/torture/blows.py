"""The cases of the campaign."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from campaigns.cases import Case, Found
from campaigns.postgres_server import PostgresServer, reason_for_none
from campaigns.torture.buyers import buyers_killed
from campaigns.torture.commands import VERBS, folder_races, full_disk, kills
from campaigns.torture.service import service_struck


def _with_server(work: Callable[..., Found], **more: Any) -> Callable[[int, int, Path], Found]:
    """Return a work that has a PostgreSQL server, and is left out where there can be none."""

    def begun(amount: int, number: int, folder: Path) -> Found:
        if reason := reason_for_none():
            return Counter({f"left out: {reason}": 1}), []
        with PostgresServer() as server:
            return work(amount, number, folder, server, **more)

    return begun


CASES: dict[str, Case] = {
    **{f"{verb}, killed": Case(partial(kills, verb), 200, 50) for verb in VERBS},
    "learn by two workers, killed": Case(
        lambda *given: kills("learn", *given, "--set", "n_jobs=2"), 50, 50
    ),
    **{f"{verb}, full disk": Case(partial(full_disk, verb), 20, 20) for verb in VERBS},
    **{f"{verb}, 4 at once": Case(partial(folder_races, verb), 5, 5) for verb in VERBS},
    "16 buyers, ledger in a file": Case(partial(buyers_killed, crowd=16), 200, 100),
    "4 buyers, ledger in a database": Case(_with_server(buyers_killed), 200, 100),
    "service, ledger in a file": Case(service_struck, 200, 40),
    "service, ledger in a database": Case(_with_server(service_struck), 200, 40),
    "two machines on one database": Case(_with_server(service_struck, machines=2), 50, 40),
}
