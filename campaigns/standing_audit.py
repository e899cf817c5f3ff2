"""The standing audit: attacks on whole commands, and on a whole `learn` with canaries.

Each case makes small tables and runs `secretballot audit` on them.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from campaigns.cases import Case, Found

JOBS = str(min(2, os.cpu_count() or 1))
# of each case, so that a sound program passes all of them but once in a hundred standing audits
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

# The neighbouring file, and the command that `audit release` attacks.
RELEASES: dict[str, tuple[str, tuple[str, ...]]] = {
    "learn, counts, a record with a missing value more": ("missing.csv", LEARN),
    "learn, labels, a record more": ("more.csv", (*LEARN, *LABELS, "--student", "forest")),
    "choose, a record more": (
        "more.csv",
        (
            *("learn", *TABLES, "--epsilon", "0.5", "--ledger", "own"),
            *("--set", "hypotheses=stumps", "--set", "n_cover=20"),
        ),
    ),
    "label, one teacher's votes changed": (
        "votes-neighbour.csv",
        ("label", "votes.csv", "--kind", "votes", "--classes", "no,yes", *OWN),
    ),
    "learn, labels, a record replaced": (
        "replaced.csv",
        (*LEARN, *LABELS, "--set", "relation=replace-one"),
    ),
    "learn, sparse vector, a record less": ("crowd-less.csv", SPARSE_VECTOR),
    "learn, rounds by margin, a record more": (
        "more.csv",
        (*LEARN, *LABELS, "--set", "strategy=margin:round_size=10"),
    ),
}
# Options of `audit canaries`, at a price that the default number of runs can refute.
CANARIES: dict[str, tuple[str, ...]] = {"learn, counts, canaries": ("--epsilon", "0.5")}


def write_tables(folder: Path) -> None:
    """Write the private, public and vote files that the cases name, the same every time."""
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

    def neighbour(name: str, of: str, *, dropped: int = 0, added: Sequence[str] = ()) -> None:
        head, *rows = (folder / of).read_text().splitlines()
        (folder / name).write_text("\n".join([head, *rows[dropped:], *added]) + "\n")

    # far away, so that its teacher does not overlook it
    far = "1000000,-1000000,yes"
    neighbour("more.csv", "private.csv", added=[far])
    neighbour("missing.csv", "private.csv", added=[",0.5,yes"])
    neighbour("replaced.csv", "private.csv", dropped=1, added=[far])
    neighbour("crowd-less.csv", "crowd.csv", dropped=1)


def words_of(name: str, runs: int) -> list[str]:
    """Return the words of a case after `secretballot audit`."""
    same = ["--confidence", CONFIDENCE, "--n-jobs", JOBS, "--runs", str(runs), "--json"]
    if name in CANARIES:
        return ["canaries", *same, *CANARIES[name]]
    neighbour, command = RELEASES[name]
    private = next(word for word in command if word.endswith(".csv"))
    return ["release", *same, "--private", private, "--neighbour", neighbour, "--", *command]


def attacked(name: str, runs: int, _: int, folder: Path) -> Found:
    """Attack a command, and return what was guessed and certified."""
    write_tables(folder)
    kind, *words = words_of(name, runs)
    command = [sys.executable, "-m", "secretballot", "audit", kind, *words]
    ended = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=False)
    # 6 is a finding; with any other code it was not run, and is run again
    if ended.returncode not in (0, 6):
        raise RuntimeError(f"not run: {ended.stdout}")
    result: dict[str, Any] = json.loads(ended.stdout)
    counted, promise = result.get("verdict"), result.get("epsilon")
    if kind == "release":
        counted, promise = result["channels"][0]["verdict"], result["promise"]["epsilon"]
    counts = {"guesses": counted["guesses"], "right": counted["right"]}
    counts |= {"is the certified epsilon": counted["bound"], "the promised one": promise}
    counts |= {"the power": counted["power"]}
    if counted["power"] <= promise:
        counts["case of too few runs to fail"] = 1
    return counts, [] if result["passed"] else [f"{name}: {json.dumps(counted)}"]


CASES = {name: Case(partial(attacked, name), 30, 10**6) for name in [*RELEASES, *CANARIES]}
