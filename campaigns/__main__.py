"""Run a campaign: `python -m campaigns CAMPAIGN [CASE ...] [--scale 1] [--out build/CAMPAIGN]`.

A campaign is a table of cases. Each is done in blocks, each in a process of its own, and a finished
block is kept, so a stopped campaign goes on where it was. A table of what was counted is printed,
and written to report.txt; the exit code is 1 if any fault was found.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from campaigns.cases import Case

#: Campaigns, and the modules with their cases.
CAMPAIGNS = {
    "fuzz": "campaigns.fuzzing.parsers",
    "fuzz-service": "campaigns.service_requests",
    "torture": "campaigns.torture.blows",
    "audit": "campaigns.standing_audit",
}


def cases_of(campaign: str) -> dict[str, Case]:
    """Return the cases of a campaign by their names."""
    cases: dict[str, Case] = import_module(CAMPAIGNS[campaign]).CASES
    return cases


def blocks_of(case: Case, scale: float) -> Iterator[tuple[int, int]]:
    """Give the amount and the number of every block of a case."""
    amount = max(round(case.amount * scale), 1)
    for number, start in enumerate(range(0, amount, case.block)):
        yield min(case.block, amount - start), number


def done(campaign: str, name: str, amount: int, number: int, out: Path) -> dict[str, Any]:
    """Return what a block has found, which is done now in a process of its own unless it was
    finished before."""
    kept = _kept(name, amount, number, out)
    if not kept.exists():
        words = [sys.executable, "-m", "campaigns", campaign, name, "--out", out]
        words += ["--block", amount, number]
        said = kept.with_suffix(".said")
        with said.open("w") as file:
            code = subprocess.run([*map(str, words)], stdout=file, stderr=file, check=False)
        if not kept.exists():
            end = said.read_text(errors="replace")[-2000:]
            return {"counts": {}, "faults": [f"the process ended with {code.returncode}: {end}"]}
        said.unlink()
    return dict(json.loads(kept.read_text()))


def do_block(campaign: str, name: str, amount: int, number: int, out: Path) -> None:
    """Do a block in this process, and keep what it found."""
    kept, case = _kept(name, amount, number, out), cases_of(campaign)[name]
    folder = kept.with_suffix("")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    warnings.simplefilter("ignore")
    counts, faults = case.work(amount, number, folder)
    draft = kept.with_suffix(".draft")
    draft.write_text(json.dumps({"counts": counts, "faults": faults}, indent=1))
    shutil.rmtree(folder)
    draft.replace(kept)


def _kept(name: str, amount: int, number: int, out: Path) -> Path:
    return out / f"{re.sub(r'[^a-z0-9]+', '-', name.lower())}-{number}-{amount}.json"


def main() -> int:
    """Run a campaign and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m campaigns", description=__doc__)
    parser.add_argument("campaign", choices=CAMPAIGNS)
    parser.add_argument("cases", nargs="*", metavar="CASE", help="all by default")
    parser.add_argument("--scale", type=float, default=1.0, help="of the amount of every case")
    parser.add_argument("--out", type=Path, help="where finished blocks are kept")
    parser.add_argument("--block", type=int, nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    out = (given.out or Path("build", given.campaign)).resolve()
    if given.block:
        do_block(given.campaign, given.cases[0], *given.block, out)
        sys.stderr.flush()
        os._exit(0)  # a hostile input may have left threads behind
    cases = cases_of(given.campaign)
    if unknown := set(given.cases) - set(cases):
        parser.error(f"unknown case {min(unknown)!r}; the cases are {'; '.join(cases)}")
    out.mkdir(parents=True, exist_ok=True, mode=0o700)
    lines, broken = ["| case | counts | faults | seconds |", "|---|---|---|---|"], 0
    print("\n".join(lines))
    for name in given.cases or cases:
        begun, counts, faults = time.monotonic(), Counter[str](), list[str]()
        for amount, number in blocks_of(cases[name], given.scale):
            found = done(given.campaign, name, amount, number, out)
            counts.update(found["counts"])
            faults += found["faults"]
        counted = ", ".join(f"{count:.6g} {what}" for what, count in counts.items())
        seconds = time.monotonic() - begun
        lines.append(f"| {name} | {counted} | {len(faults)} | {seconds:.0f} |")
        print(lines[-1], flush=True)
        for fault, times in Counter(faults).items():
            print(f"  {times} x {fault}", file=sys.stderr)
        broken += len(faults)
    (out / "report.txt").write_text("\n".join(lines) + "\n")
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())
