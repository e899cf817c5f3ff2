"""Individual budgets on UCI Adult: sums over records of three groups against one budget for all.

    python benchmarks/individual_budgets.py [n_runs]

Private: adult.data, all of it or 3,000 rows drawn anew in every run. Pool: a half of adult.test,
drawn anew; the other half is scored. delta 1e-6 throughout. Each record is put into a group at
random: a fifth at epsilon 0.1, three fifths at 0.5, a fifth at 2. Beside individual budgets stand
the ways to respect the same wishes with one budget: everybody at the strictest one, or leaving out
whoever allows less. Everybody at the loosest one respects the wish of the last fifth alone: it is
the upper end.

The noise is never seeded, so that digits differ from run to run.
"""

import os

# one BLAS thread, so that figures do not depend on the machine
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import sys
import warnings
from typing import NamedTuple

import numpy as np
import pandas as pd

from secretballot import PrivacyBudget, RecordMomentsClassifier
from secretballot.datasets import ADULT_TARGET, adult

DELTA = 1e-6
SHARES = {"strict": 0.2, "middle": 0.6, "open": 0.2}
BUDGETS = {
    "strict": PrivacyBudget(0.1, DELTA),
    "middle": PrivacyBudget(0.5, DELTA),
    "open": PrivacyBudget(2.0, DELTA),
}
FEW = 3000
#: Who takes part, at which single budget; None stands for a budget of each group's own.
WAYS: dict[str, tuple[tuple[str, ...], str | None]] = {
    "everybody at 0.1": (tuple(SHARES), "strict"),
    "four fifths at 0.5, the strict left out": (("middle", "open"), "middle"),
    "a fifth at 2, all others left out": (("open",), "open"),
    "individual budgets": (tuple(SHARES), None),
    "everybody at 2": (tuple(SHARES), "open"),
}


class Parts(NamedTuple):
    """Private records with their groups, the public pool, and scored rows."""

    X: pd.DataFrame
    y: np.ndarray
    groups: np.ndarray
    pool: pd.DataFrame
    X_test: pd.DataFrame
    y_test: np.ndarray


def parts_of(run: int, few: bool) -> Parts:
    """Return the split and the groups of a run."""
    rng = np.random.default_rng(run)
    train, test = adult()
    rows = rng.permutation(len(train))[: FEW if few else None]
    pool, scored = np.array_split(rng.permutation(len(test)), 2)
    X, X_test = (table.drop(columns=[ADULT_TARGET]) for table in (train, test))
    y, y_test = (
        table[ADULT_TARGET].astype(str).str.startswith(">").to_numpy().astype(int)
        for table in (train, test)
    )
    groups = rng.choice(list(SHARES), size=len(rows), p=list(SHARES.values()))
    return Parts(
        X.iloc[rows], y[rows], groups, X_test.iloc[pool], X_test.iloc[scored], y_test[scored]
    )


def accuracy(parts: Parts, way: str) -> tuple[float, list[float]]:
    """Return the accuracy on the scored rows in per cent, and the weights of the groups."""
    taking_part, single = WAYS[way]
    rows = np.isin(parts.groups, taking_part)
    told = {"X_public": parts.pool, "classes": [0, 1]}
    model = RecordMomentsClassifier(budget=None if single is None else BUDGETS[single])
    if single is None:
        told |= {"budget_groups": parts.groups, "group_budgets": BUDGETS, "groups_are_public": True}
    model.fit(parts.X[rows], parts.y[rows], **told)
    mechanism = model.certificate_["mechanism"]
    weights = [one["bound"] / mechanism["bound"] for one in mechanism.get("groups", ())]
    return 100 * float((model.predict(parts.X_test) == parts.y_test).mean()), weights


def main(n_runs: int) -> None:
    """Print the table as Markdown."""
    splits = {few: [parts_of(run, few) for run in range(n_runs)] for few in (False, True)}
    print(f"Mean accuracy of {n_runs} runs in per cent, standard deviation in brackets\n")
    print(f"| | {len(splits[False][0].X):,} records | {FEW:,} records |")
    print("|---|---|---|")
    weights: list[float] = []
    for way in WAYS:
        cells = []
        for few in (False, True):
            found = [accuracy(parts, way) for parts in splits[few]]
            scores = np.array([score for score, _ in found])
            cells.append(f"{scores.mean():.2f} ({scores.std(ddof=1):.2f})")
            weights = found[0][1] or weights
        print(f"| {way} | {' | '.join(cells)} |", flush=True)
    told = ", ".join(f"{name} {weight:.3f}" for name, weight in zip(BUDGETS, weights, strict=True))
    majority = np.mean([1 - parts.y_test.mean() for parts in splits[False]])
    print(f"\nWeights of a record: {told}. Always naming one class: {100 * majority:.2f}.")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
