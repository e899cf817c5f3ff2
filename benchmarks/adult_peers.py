"""Other differentially private learners on UCI Adult, beside record_moments.py: delta = 1e-5.

    build/peers/bin/python benchmarks/adult_peers.py

Private: adult.data. Pool and held out: the halves of adult.test, in both orders, as there. The
learners, what they get of the pool, and their environment are those of record_tables_peers.py;
amounts of money are on a log scale. Results go to build/adult_peers.jsonl, one line a cell, and a
run that is interrupted goes on. Where the peers are not installed, it says so.
"""

import os

# one BLAS thread, so that figures do not depend on the machine
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import functools
import importlib.util
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from cells import Cells
from real_tables import BUILD, Split
from record_tables_peers import (
    EPSILONS,
    SETTINGS,
    diffprivlib_accuracy,
    ebm_accuracy,
    opacus_accuracy,
    timed,
)

DATA = Path(os.environ.get("SECRETBALLOT_DATA", Path(__file__).parents[2] / "shared" / "data"))
SPLIT_SEED = 2026  # as in adult_students.py, which this environment cannot import
NUMBERS = (0, 2, 4, 10, 11, 12)
MONEY = [10, 11]
CLASS = 14


def read(name: str, skipped: int) -> pd.DataFrame:
    """Return a file of Adult, columns by their places, amounts of money on a log scale."""
    path = DATA / "adult" / name
    types = {place: "int64" if place in NUMBERS else str for place in range(CLASS + 1)}
    frame = pd.read_csv(path, header=None, skiprows=skipped, skipinitialspace=True, dtype=types)
    frame[MONEY] = np.log1p(frame[MONEY])
    return frame


def half(exchanged: bool) -> Split:
    """Return the split of record_moments.py."""
    train, test = read("adult.data", 0), read("adult.test", 1)
    order = np.random.default_rng(SPLIT_SEED).permutation(len(test))
    halves = [test.iloc[rows].reset_index(drop=True) for rows in np.array_split(order, 2)]
    pool, held_out = reversed(halves) if exchanged else halves
    y, y_held_out = (
        one[CLASS].str.startswith(">50K").to_numpy().astype(np.int64) for one in (train, held_out)
    )
    tables = [one.drop(columns=CLASS).rename(columns=str) for one in (train, pool, held_out)]
    return Split(tables[0], y, tables[1], tables[2], y_held_out, 2)


def main() -> None:
    """Compute all cells that are not known, and print one row for each epsilon."""
    warnings.simplefilter("ignore")
    cells = Cells(BUILD / "adult_peers.jsonl")
    print(
        "| epsilon | Opacus, best of 6 | Opacus, median of 6 | DP-EBM | diffprivlib |\n"
        + "|---" * 5
        + "|"
    )
    for epsilon in EPSILONS:
        found: dict[str, list[float]] = {}
        for run in (0, 1):
            split = half(run == 1)
            ways = {
                "DP-EBM": functools.partial(timed, ebm_accuracy, split, epsilon, run),
                **{
                    f"diffprivlib {one}": functools.partial(
                        timed, diffprivlib_accuracy, split, epsilon, run, one
                    )
                    for one in ("linear", "forest")
                },
                **{
                    f"Opacus {steps} {rate}": functools.partial(
                        timed, opacus_accuracy, split, epsilon, run, (steps, rate)
                    )
                    for steps, rate in SETTINGS
                },
            }
            for name, way in ways.items():
                cell = cells.found({"epsilon": epsilon, "run": run, "method": name}, way)
                if cell["accuracy"] is not None:
                    found.setdefault(name, []).append(cell["accuracy"])
        means = {name: float(np.mean(values)) for name, values in found.items()}
        opacus, plain = (
            [mean for name, mean in means.items() if name.startswith(kind)]
            for kind in ("Opacus", "diffprivlib")
        )
        print(
            f"| {epsilon:g} | {max(opacus):.1f} | {np.median(opacus):.1f} |"
            f" {means.get('DP-EBM', np.nan):.1f} | {max(plain):.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    absent = [
        name
        for name in ("diffprivlib", "interpret", "opacus")
        if not importlib.util.find_spec(name)
    ]
    if absent:
        sys.exit(print(f"Left out, as {', '.join(absent)} are not here; see benchmarks/peers.txt."))
    main()
