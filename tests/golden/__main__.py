"""Say what moved of all prices, runs and commands, or record them anew, with a reason.

    PYTHONPATH=tests python -m golden [--reason TEXT] [--replaces METHOD] [--proof TEXT]
        [--only runs,verbs,prices]

Not recorded are a price that fell without a section of the proofs, a price below what its list can
tell, and an integer left of the release (votes, shards, sums, encoded rows) that moved in a method
that the change does not replace. Nothing is written then.
"""

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import groupby

from golden import prices, recorded
from golden.lists import LISTS
from golden.moved import INTEGERS, Moved
from golden.verbs import recorded_verbs

CHANGES = recorded.HERE / "CHANGES.md"
LISTED = 40  # of one kind of change; of more the number and the largest are written down


def refusals(found: Sequence[Moved], replaces: Sequence[str], proof: str) -> list[str]:
    """Return why values must not be recorded, one sentence each."""
    refused = [f"{one.entry} is below what it can tell." for one in found if one.finding == "below"]
    if not proof:
        fell = [one for one in found if one.finding == "fell"]
        refused += [f"{one.entry} fell; name its section with --proof." for one in fell]
    for one in found:
        if one.finding == INTEGERS and recorded.method_of(one.entry) not in replaces:
            method = recorded.method_of(one.entry)
            refused.append(f"{one.entry} moved; declare --replaces {method} if it was meant to.")
    return refused


def entry_of(found: Sequence[Moved], reason: str, replaces: Sequence[str], proof: str) -> str:
    """Return the entry of `CHANGES.md`."""
    lines = [f"## {datetime.now(UTC).date()}: {reason}", ""]
    lines += [f"Replaces: {', '.join(replaces)}."] if replaces else []
    lines += [f"Proof: {proof}."] if proof else []
    ordered = sorted(found, key=lambda one: one.finding)
    for finding, some in groupby(ordered, key=lambda one: one.finding):
        listed = list(some)
        lines.append(f"- {finding}: {len(listed)} values")
        lines += [f"  - {str(one)[9:]}" for one in listed[:LISTED]]
    return "\n".join([*lines, "", ""])


def main() -> int:
    """Compare everything; 1 if anything moved and is not recorded, 2 if that is refused."""
    parser = argparse.ArgumentParser(prog="golden", description=__doc__)
    parser.add_argument("--reason", default="")
    parser.add_argument("--replaces", action="append", default=[], metavar="METHOD")
    parser.add_argument("--proof", default="", metavar="SECTION")
    parser.add_argument("--only", default="runs,verbs,prices")
    given = parser.parse_args()
    only, reason, found = given.only.split(","), given.reason.strip(), list[Moved]()
    every = {"runs": recorded.runs_now, "verbs": lambda: recorded_verbs(long=True)}
    values = {name: now() for name, now in every.items() if name in only}
    for name, new in values.items():
        found += recorded.moved(recorded.read(name), new)
    now = prices.priced(range(LISTS)) if "prices" in only else []
    found += prices.moved(range(len(now)), now)
    print(recorded.table(found))
    if not reason:
        return 1 if found else 0
    if refused := refusals(found, given.replaces, given.proof):
        print("\n".join(refused), "Nothing was recorded.", sep="\n", file=sys.stderr)
        return 2
    for name, new in values.items():
        recorded.write(name, new)
    if now:
        prices.write(now)
    with CHANGES.open("a") as log:
        log.write(entry_of(found, reason, given.replaces, given.proof))
    return 0


if __name__ == "__main__":
    sys.exit(main())
