"""Every verb once on small real data, and what its run means: exit code, promise, answers, files.

Today's words of each command stand in `COMMANDS`; what is recorded does not depend on them.
"""

import csv
import io
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from typer.testing import CliRunner

from secretballot.cli import app

PROGRAM = Path(__file__).parents[1] / "audit" / "planted_faults.py"
TABLES = "private.csv public.csv --target benign --classes no,yes"
PRICE = "--epsilon 4 --delta 1e-4"
ANYWAY = "--confirm epsilon,delta,records,teachers,noise,target,unit --json"
LEARN = f"learn {TABLES} {PRICE} {ANYWAY} --evaluate test.csv"
VOTES = "--method pate --n-teachers 20 --set n_queries=60 --teacher naive-bayes"
COMMANDS: dict[str, str] = {
    "plan: schema": f"plan public.csv {PRICE} --out columns",
    "plan: price": f"plan 100 {PRICE} --classes 2 --method pate --n-teachers 20 "
    "--set n_queries=60 --json",
    "plan": f"plan 100 --n-records 350 --like test.csv --target benign {PRICE} --json "
    "--set mechanism=labels --n-teachers 20",
    "check": f"check {TABLES} --json",
    "learn: nothing spent": f"{LEARN} --dry-run",
    "ledger: create": "ledger create all.ledger --dataset private --total 20,1e-2",
    "learn: record moments": f"{LEARN} --ledger all.ledger --out moments",
    "learn: repeated": f"{LEARN} --ledger all.ledger --out moments",
    "learn: votes": f"{LEARN} {VOTES} --ledger all.ledger --out votes",
    "learn: record votes": f"{LEARN} --method record-votes --ledger all.ledger --out record-votes",
    "learn: semi-private": f"learn {TABLES} --set hypotheses=stumps --epsilon 2 {ANYWAY} "
    "--ledger all.ledger --out chosen",
    "learn: a number": "learn numbers.csv public.csv --target size --bounds 0,30 "
    f"{PRICE} {ANYWAY} --method pate --ledger own --out numbers",
    "learn: too dear": f"{LEARN} --epsilon 99 --ledger all.ledger --out dear",
    "label": f"label votes.csv --kind votes --header no --classes no,yes {PRICE} {ANYWAY} "
    "--ledger own --out labels",
    "sign: a key": "sign --new-key key.pem",
    "sign": "sign moments --key key.pem --json",
    "predict": "predict moments test.csv --out predictions.csv",
    "evaluate": "evaluate moments votes test.csv --target benign --json",
    "verify": "verify moments --independent --json --key key.pem.pub",
    "verify: votes": "verify votes --independent --json",
    "verify: record votes": "verify record-votes --independent --json",
    "verify: semi-private": "verify chosen --independent --json",
    "verify: a number": "verify numbers --independent --json",
    "verify: labels": "verify labels --independent --json",
    "verify: changed": "verify changed --json",
    "ledger: show": "ledger show all.ledger --json",
    "ledger: check": "ledger check all.ledger --json",
    "serve: prepare": f"serve prepare {TABLES} {PRICE} {ANYWAY} --n-teachers 20 --n-queries 8 "
    "--teacher naive-bayes --dataset registry --ledger service.ledger --total 4,1e-4",
    "serve: key": "serve key add --role analyst --dataset registry --config service/service.toml "
    "--json",
    "audit": f"audit release --private rows.json --neighbour more.json --runs 6 --random-state 3 "
    f"--program @{sys.executable}@-S@{PROGRAM}@ --json -- none rows.json --out released",
    "demo": "demo --out demonstration",
}
LONG = ("demo", "plan")  # seconds; `make golden` alone
# where today's JSON has what a run found or spent
NUMBERS: dict[str, tuple[str, ...]] = {
    "plan: price": ("sigma", "queries", "teachers"),
    "plan": ("recommended/setting/n_teachers", "recommended/setting/release", "task/epsilon"),
    "check": ("releasable", "rows/private", "rows/public", "classes/yes"),
    "learn: nothing spent": ("method", "epsilon", "delta", "account/releases"),
    "verify": ("ok", "signature"),
    "verify: changed": ("ok",),
    "ledger: show": ("spent/epsilon", "spent/delta", "left/epsilon"),
    "ledger: check": ("ok", "rows"),
    "serve: prepare": ("epsilon", "delta", "queries", "left"),
    "serve: key": ("role", "datasets"),
    "audit": ("passed", "promise/epsilon", "runs"),
}


def recorded_verbs(*, long: bool) -> dict[str, dict[str, Any]]:
    """Run every command in turn, and return what each of them means."""
    found = {}
    with in_tables() as folder:
        for name, command in COMMANDS.items():
            if name in LONG and not long:
                continue
            before(name, folder)
            words = [word.replace("@", " ").strip() for word in command.split()]
            done = CliRunner().invoke(app, words)
            out = words[words.index("--out") + 1] if "--out" in words else ""
            found[name] = {"exit": done.exit_code, **release_in(folder / out / "release")}
            if name in NUMBERS and done.stdout.startswith("{"):
                said = json.loads(done.stdout)
                found[name] |= {path: value_at(said, path) for path in NUMBERS[name]}
        predicted = pd.read_csv(folder / "predictions.csv")
        found["predict"] |= {"rows": len(predicted), "columns": list(predicted.columns)}
        schema = json.loads((folder / "columns" / "plan.schema.json").read_text())["columns"]
        found["plan: schema"]["columns"] = {name: one["kind"] for name, one in schema.items()}
    return dict(json.loads(json.dumps(found)))  # as it is read again


def before(name: str, folder: Path) -> None:
    """Prepare what a command needs beside the tables."""
    if name == "verify: changed":
        shutil.copytree(folder / "moments" / "release", folder / "changed")
        labels = (folder / "changed" / "labels.csv").read_text()
        (folder / "changed" / "labels.csv").write_text(labels.replace("yes", "no", 1))
    if name == "audit":
        rows = [[age, 0.5] for age in range(60)]
        (folder / "rows.json").write_text(json.dumps(rows))
        (folder / "more.json").write_text(json.dumps([*rows, [None, 0.5]]))


def value_at(said: Any, path: str) -> Any:
    for name in path.split("/"):
        said = said.get(name) if isinstance(said, dict) else None
    return said


def release_in(release: Path) -> dict[str, Any]:
    """Return what a release folder promises and holds."""
    if not release.is_dir():
        return {}
    certificate = json.loads((release / "certificate.json").read_text())
    found: dict[str, Any] = {
        "promise": [certificate["price"][name] for name in ("epsilon", "delta")],
        "unit": [certificate["unit"], certificate["relation"]],
        "files": sorted(path.name for path in release.iterdir()),
    }
    for path in (release / "labels.csv", release / "answers.csv"):
        if path.is_file():
            rows = list(csv.reader(io.StringIO(path.read_text())))
            found |= {"answers": len(rows) - 1, "columns": rows[0]}
    return found


@contextmanager
def in_tables() -> Iterator[Path]:
    """Change to a new folder with small real tables, for as long as the block lasts."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    cells = X[["mean radius", "mean texture", "mean concavity", "worst area"]].round(3)
    cells.columns = ["radius", "texture", "concavity", "area"]
    order = np.random.RandomState(32).permutation(len(cells))
    whole = cells.assign(benign=np.where(y == 1, "yes", "no")).iloc[order]
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        whole[:350].to_csv(folder / "private.csv", index=False)
        whole[350:450].drop(columns="benign").to_csv(folder / "public.csv", index=False)
        whole[450:].to_csv(folder / "test.csv", index=False)
        numbers = whole[:350].drop(columns="benign")
        numbers.assign(size=whole["radius"][:350]).to_csv(folder / "numbers.csv", index=False)
        votes = np.random.RandomState(33).randint(2, size=(40, 20))
        text = pd.DataFrame(np.where(votes == 1, "yes", "no"))
        text.to_csv(folder / "votes.csv", index=False, header=False)
        os.chdir(folder)
        try:
            yield folder
        finally:
            os.chdir(here)
