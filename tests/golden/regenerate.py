"""Record golden values anew, with a reason, and write down what moved.

    PYTHONPATH=tests python -m golden.regenerate --reason TEXT [--replaces METHOD] [--proof TEXT]
        [--only runs,verbs,prices]

Refused are a price that fell without a section of the proofs, a price below what its list can tell,
and an integer left of the release (votes, shards, sums, encoded rows) that moved in a method that
the change does not replace. Nothing is written then.
"""

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import groupby

from golden import prices, recorded
from golden.moved import INTEGERS, Moved

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


def main(words: Sequence[str] | None = None) -> int:
    """Record what the library has now; 2 if that is refused."""
    parser = argparse.ArgumentParser(prog="golden.regenerate", description=__doc__)
    parser.add_argument("--reason", required=True)
    parser.add_argument("--replaces", action="append", default=[], metavar="METHOD")
    parser.add_argument("--proof", default="", metavar="SECTION")
    parser.add_argument("--only", default="runs,verbs,prices")
    given = parser.parse_args(words)
    if not given.reason.strip():
        parser.error("the reason is empty; say in one sentence why the values move.")
    only = given.only.split(",")
    runs = recorded.runs_now() if "runs" in only else None
    verbs = recorded.verbs_now(long=True) if "verbs" in only else None
    rows = prices.new_rows() if "prices" in only else None
    found: list[Moved] = []
    found += recorded.moved(recorded.read("runs"), runs) if runs is not None else []
    found += recorded.moved(recorded.read("verbs"), verbs) if verbs is not None else []
    found += prices.rows_moved(rows) if rows is not None else []
    print(recorded.table(found))
    if refused := refusals(found, given.replaces, given.proof):
        print("\n".join(refused), "Nothing was recorded.", sep="\n", file=sys.stderr)
        return 2
    if runs is not None:
        recorded.write("runs", runs)
    if verbs is not None:
        recorded.write("verbs", verbs)
    if rows is not None:
        prices.write(rows)
    with CHANGES.open("a") as log:
        log.write(entry_of(found, given.reason.strip(), given.replaces, given.proof))
    return 0


if __name__ == "__main__":
    sys.exit(main())
