"""Run the campaign:
`python -m campaigns.torture [--kills 200] [--steps 20] [--purchases 3200] [PART ...]`.

Parts: kills, disk, races, database, service, machines. A table of counts is
printed; the exit code is 1 if anything was found.
"""

import argparse
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from campaigns.postgres_server import PostgresServer, reason_for_none
from campaigns.torture.broken_service import DEFECTS
from campaigns.torture.commands import VERBS
from campaigns.torture.full_disk import full_disk
from campaigns.torture.kills import kills_of_commands
from campaigns.torture.races import folder_races, ledger_races

_Found = tuple[Counter[str], list[str]]
PARTS = ("kills", "disk", "races", "database", "service", "machines")
_BROKEN_KILLS = 6  # of a service that is broken on purpose


def _all_jobs(
    given: argparse.Namespace, place: Path
) -> Iterator[tuple[str, str, Callable[[], _Found]]]:
    """Give the part, name and work of every line of the table."""
    work, disk, kills, steps = place / "work", place / "disk", given.kills, given.steps
    for verb in VERBS:
        yield "kills", f"{verb}, killed", partial(kills_of_commands, verb, kills, work)
    two = partial(kills_of_commands, "learn", kills // 4, work, "--set", "n_jobs=2")
    yield "kills", "learn, 2 workers, killed", two
    for verb in VERBS:
        yield "disk", f"{verb}, full disk", partial(full_disk, verb, steps, disk)
    yield "races", "one ledger, 16 processes", partial(ledger_races, given.purchases, work)
    for verb in VERBS:
        race = partial(folder_races, verb, steps // 4, work)
        yield "races", f"{verb}, 4 at once in one folder", race
    database = partial(_database_kills, kills, work / "database")
    yield "database", "buyers and server, killed", database
    for where in ("file", "database"):
        killed = partial(_service_kills, where, kills, work / "service" / where)
        yield "service", f"service with its ledger in a {where}, killed", killed
    for number, defect in enumerate(DEFECTS):
        broken = partial(_broken_service, defect, work / f"broken{number}")
        yield "service", f"service that {defect}", broken
    machines = partial(_service_kills, "two", kills // 4, work / "machines")
    yield "machines", "two machines on one database", machines


def _database_kills(kills: int, folder: Path) -> _Found:
    from campaigns.torture.database import database_kills

    if reason := reason_for_none():
        return Counter({f"left out: {reason}": 1}), []
    return database_kills(kills, folder)


def _service_kills(where: str, kills: int, folder: Path) -> _Found:
    from campaigns.torture.service import service_kills

    if where == "file":
        return service_kills(kills, folder)
    if reason := reason_for_none():
        return Counter({f"left out: {reason}": 1}), []
    server = PostgresServer()
    try:
        return service_kills(kills, folder, server=server, machines=2 if where == "two" else 1)
    finally:
        server.remove()


def _broken_service(defect: str, folder: Path) -> _Found:
    """Have the campaign look at a service that is broken on purpose: to find nothing is a fault."""
    from campaigns.torture.service import service_kills

    _, faults = service_kills(_BROKEN_KILLS, folder, defect=defect)
    counts = Counter({"faults found, as there should be": len(faults)})
    return counts, [] if faults else [f"a service that {defect} passes"]


def main() -> int:
    """Run the campaign and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m campaigns.torture", description=__doc__)
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all by default"
    )
    parser.add_argument("--kills", type=int, default=200, help="kills of each verb")
    parser.add_argument(
        "--steps", type=int, default=20, help="amounts of free disk space for each verb"
    )
    parser.add_argument(
        "--purchases", type=int, default=3200, help="purchases of the race at one ledger"
    )
    given = parser.parse_args()
    if set(given.parts) - set(PARTS):
        parser.error(f"the parts are {', '.join(PARTS)}")
    # once, before anything forks: children would each pay for the imports and be killed inside them
    _import_everything()
    found = 0
    print("| what | counts | faults | seconds |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as place:
        for part, name, job in _all_jobs(given, Path(place)):
            if given.parts and part not in given.parts:
                continue
            begun = time.monotonic()
            counts, faults = job()
            told = ", ".join(f"{count} {what}" for what, count in counts.items())
            print(
                f"| {name} | {told} | {len(faults)} | {time.monotonic() - begun:.0f} |", flush=True
            )
            found += len(faults)
            for fault, times in Counter(faults).items():
                print(f"  {times} x {fault}", file=sys.stderr)
    return 1 if found else 0


def _import_everything() -> None:
    """Import what commands import, once, before children are forked.

    And draw, so that the sampler is loaded.
    """
    warnings.simplefilter("ignore")
    from secretballot.core.noise import ExactNoise

    ExactNoise().discrete_laplace(1.0, 1)


if __name__ == "__main__":
    sys.exit(main())
