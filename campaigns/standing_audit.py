"""The standing audit: attacks on whole commands, and on a whole `learn` with canaries.

    python campaigns/standing_audit.py RUNS FOLDER [NAME ...]

Makes small tables in FOLDER, runs `secretballot audit` on them line by line and writes
FOLDER/report.txt and FOLDER/report.json. RUNS is the number of runs of every line. Lines that have
a result are not run again, and a line that was interrupted goes on. Names of lines restrict the
audit to them. Ends with 1 if any line found something.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

JOBS = str(min(2, os.cpu_count() or 1))
# of each line, so that a sound program passes all of them but once in a hundred standing audits
CONFIDENCE = "0.999"
PRICE = ("--epsilon", "0.5", "--delta", "1e-6")
TABLES = ("private.csv", "public.csv", "--target", "ill", "--classes", "no,yes")
OWN = (*PRICE, "--ledger", "own", "--confirm", "records,noise")  # few records: asked about
LEARN = ("learn", *TABLES, *OWN, "--n-teachers", "10", "--set", "n_queries=20")
LABELS = ("--set", "mechanism=labels")
# At this price the threshold is about 150 votes: only a crowd of teachers that agree answers
# anything.
SPARSE_VECTOR = (
    *("learn", "crowd.csv", "crowd-public.csv", *TABLES[2:], *OWN, "--n-teachers", "400"),
    *("--teacher", "naive-bayes", "--set", "n_queries=20"),
    *("--set", "mechanism=sparse-vector:max_abstentions=1"),
)

# Name of each line: options of `audit release`, and the command after them.
RELEASES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "learn, counts, a record with a missing value more": (("--change", "add-missing"), LEARN),
    "learn, labels, a record more": (
        ("--change", "add"),
        (*LEARN, *LABELS, "--student", "forest"),
    ),
    "choose, a record more": (
        ("--change", "add"),
        (
            *("learn", *TABLES, "--epsilon", "0.5", "--ledger", "own"),
            *("--set", "hypotheses=stumps", "--set", "n_cover=20"),
        ),
    ),
    "label, one teacher's votes changed": (
        ("--neighbour", "votes-neighbour.csv"),
        ("label", "votes.csv", "--kind", "votes", "--classes", "no,yes", *OWN),
    ),
    "learn, labels, a record replaced": (
        ("--change", "replace"),
        (*LEARN, *LABELS, "--set", "relation=replace-one"),
    ),
    "learn, sparse vector, a record less": (("--change", "drop"), SPARSE_VECTOR),
    "learn, rounds by margin, a record more": (
        ("--change", "add"),
        (*LEARN, *LABELS, "--set", "strategy=margin:round_size=10"),
    ),
}
# Name of each line: options of `audit canaries`, at a price that the default number of runs can
# refute.
CANARIES: dict[str, tuple[str, ...]] = {
    "learn, counts, canaries": ("--epsilon", "0.5", "--release", "counts"),
    "learn, labels, canaries": ("--epsilon", "0.5", "--release", "labels"),
}


def write_tables(folder: Path) -> None:
    """Write the private, public and vote files that the lines name, the same every time."""
    rng = np.random.default_rng(20261122)

    def table(name: str, rows: int, *, labelled: bool, apart: float = 0.0) -> None:
        values = rng.normal(size=(rows, 2))
        if apart:
            values += apart * rng.choice([-1, 1], size=(rows, 1))
        values = values.round(3)
        classes = np.where(values.sum(axis=1) > 0, "yes", "no")
        lines = [
            f"{a},{b},{c}" if labelled else f"{a},{b}"
            for (a, b), c in zip(values, classes, strict=True)
        ]
        (folder / name).write_text(
            "\n".join(["age,dose,ill" if labelled else "age,dose", *lines]) + "\n"
        )

    table("private.csv", 200, labelled=True)
    table("public.csv", 60, labelled=False)
    votes = rng.integers(2, size=(20, 10))
    for name in ("votes.csv", "votes-neighbour.csv"):
        lines = [
            ",".join(f"t{number}" for number in range(10)),
            *(",".join(["no", "yes"][v] for v in row) for row in votes),
        ]
        (folder / name).write_text("\n".join(lines) + "\n")
        votes[:, 3] = 1 - votes[:, 3]
    table("crowd.csv", 2400, labelled=True, apart=3.0)
    table("crowd-public.csv", 60, labelled=False, apart=2.0)


def lines_of(runs: str) -> dict[str, list[str]]:
    """Return the words of every line of the audit after `secretballot audit`."""
    same = ["--confidence", CONFIDENCE, "--n-jobs", JOBS, "--runs", runs, "--json"]
    lines = {}
    for name, (options, command) in RELEASES.items():
        private = next(word for word in command if word.endswith(".csv"))
        lines[name] = ["release", *same, "--private", private, *options, "--", *command]
    for name, settings in CANARIES.items():
        lines[name] = ["canaries", *same, *settings]
    return lines


def run_line(folder: Path, number: int, name: str, words: list[str]) -> dict[str, Any]:
    """Return the result of a line: the one that is kept, or that of running it now."""
    kept = folder / f"line-{number:02d}.json"
    # an interrupted audit goes on after its last finished line
    if kept.is_file():
        return dict(json.loads(kept.read_text()))
    start = time.monotonic()
    command = [sys.executable, "-m", "secretballot", "audit", *words]
    ended = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=False)
    # 6 is a finding; any other code is a line that did not run, which is not kept, so it runs again
    if ended.returncode not in (0, 6):
        return {
            "name": name,
            "passed": False,
            "result": json.loads(ended.stdout or "{}"),
            "seconds": 0.0,
        }
    seconds = time.monotonic() - start
    result = json.loads(ended.stdout)
    found = {"name": name, "passed": result["passed"], "result": result, "seconds": seconds}
    kept.write_text(json.dumps(found, indent=1))
    return found


def told(found: dict[str, Any]) -> str:
    """Return one line of the report."""
    result = found["result"]
    if result.get("audit") == "canaries":
        text = (
            f"{result['right']} of {result['guesses']} right, {bounds(result, result['epsilon'])}"
        )
    elif result.get("audit") == "release":
        verdict = result["channels"][0]["verdict"]
        text = (
            f"{verdict['right']} of {verdict['guesses']} right,"
            f" {bounds(verdict, result['promise']['epsilon'])}"
        )
    else:
        text = f"not run: {result.get('error', 'no result')}"
    return (
        f"{'ok    ' if found['passed'] else 'FAILED'}  {found['name']:<58} {text}"
        f" ({found['seconds']:.0f} s)"
    )


def bounds(counted: dict[str, Any], promise: float) -> str:
    """Return what was certified, promised, and could have been certified."""
    weak = "" if counted["power"] > promise else " (too few runs to fail)"
    return f"epsilon >= {counted['bound']:.2f} of {promise:g}, power {counted['power']:.2f}{weak}"


def main() -> int:
    """Run the lines, print and write the report."""
    runs, folder, names = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_tables(folder)
    report = []
    for number, (name, words) in enumerate(lines_of(runs).items()):
        if names and name not in names:
            continue
        report.append(run_line(folder, number, name, words))
        print(told(report[-1]), flush=True)
    (folder / "report.json").write_text(json.dumps(report, indent=1))
    (folder / "report.txt").write_text("\n".join(map(told, report)) + "\n")
    return int(not all(found["passed"] for found in report))


if __name__ == "__main__":
    sys.exit(main())
