"""Individual budgets on UCI Adult by votes: weighted teachers of three groups against one budget.

    python benchmarks/individual_votes.py [n_runs] ["boenisch" or "far apart"]

Private: adult.data, all of it or 3,000 rows drawn anew in every run. Pool: a half of adult.test,
drawn anew; the other half is scored. delta 1e-5 throughout. Each record is put into a group at
random, with the shares and budgets of Boenisch et al. 2022 (arXiv:2202.10517), 54 % at epsilon 1,
37 % at 2 and 9 % at 3, or with budgets that are far apart, a fifth at 0.1, three fifths at 0.5 and
a fifth at 2. Beside individual budgets stand the ways to respect the same wishes with one budget:
everybody at the strictest one, or leaving out whoever allows less. Everybody at the loosest one
respects the wish of the open alone: it is the upper end. The number of teachers follows
from the stated number of records by the rule of the package, for the budget of the release and
what the groups weigh.

The noise is never seeded, so that digits differ from run to run.
"""

import os

# one BLAS thread: teachers are small and many
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import sys
import warnings
from typing import NamedTuple

import numpy as np
import pandas as pd

from secretballot import PATEClassifier, PrivacyBudget
from secretballot.datasets.schema import Schema
from secretballot.datasets.uci_adult import ADULT_SCHEMA, ADULT_TARGET, adult
from secretballot.learners.pate.defaults import choose_teachers
from secretballot.learners.pate.voters import teachers_for_groups

DELTA = 1e-5
GROUPS = ("strict", "middle", "open")
#: Shares of the groups, and the epsilon of each.
WISHES = {
    "boenisch": ((0.54, 0.37, 0.09), (1.0, 2.0, 3.0)),
    "far apart": ((0.2, 0.6, 0.2), (0.1, 0.5, 2.0)),
}
FEW = 3000
SKEWED = ["capital-gain", "capital-loss"]  # amounts of money: on a log scale, by public knowledge
#: Who takes part, at whose budget; None stands for a budget of each group's own.
WAYS: dict[str, tuple[tuple[str, ...], str | None]] = {
    "everybody at the strict budget": (GROUPS, "strict"),
    "the strict left out, all others at the middle one": (("middle", "open"), "middle"),
    "the open alone": (("open",), "open"),
    "individual budgets": (GROUPS, None),
    "everybody at the open budget": (GROUPS, "open"),
}
COLUMNS = [(few, release) for few in (False, True) for release in ("counts", "labels")]


class Parts(NamedTuple):
    """Private records with their groups, the public pool, and scored rows."""

    X: np.ndarray
    y: np.ndarray
    groups: np.ndarray
    pool: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def on_log_scale(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the features with amounts of money on a log scale."""
    features = frame.drop(columns=ADULT_TARGET)
    return features.assign(**{name: np.log1p(features[name]) for name in SKEWED})


def parts_of(run: int, few: bool, shares: dict[str, float]) -> Parts:
    """Return the split and the groups of a run."""
    rng = np.random.default_rng(run)
    train, test = adult()
    rows = rng.permutation(len(train))[: FEW if few else None]
    pool, scored = np.array_split(rng.permutation(len(test)), 2)
    tables = [train.iloc[rows], test.iloc[pool], test.iloc[scored]]
    frames = [on_log_scale(table) for table in tables]
    schema = Schema.from_json(ADULT_SCHEMA, public=frames[1])
    X, X_public, X_test = (schema.encode(frame) for frame in frames)
    centre = X_public.mean(axis=0)
    y, _, y_test = ((table[ADULT_TARGET] == ">50K").to_numpy().astype(int) for table in tables)
    groups = rng.choice(list(shares), size=len(rows), p=list(shares.values()))
    return Parts(X - centre, y, groups, X_public - centre, X_test - centre, y_test)


def accuracy(
    parts: Parts,
    way: str,
    release: str,
    run: int,
    shares: dict[str, float],
    budgets: dict[str, PrivacyBudget],
) -> tuple[float, list[float]]:
    """Return the accuracy on the scored rows in per cent, and the weights of the groups."""
    taking_part, single = WAYS[way]
    rows = np.isin(parts.groups, taking_part)
    stated = round(len(parts.X) * sum(shares[name] for name in taking_part))
    budget = budgets["open" if single is None else single]
    told: dict[str, object] = {"X_public": parts.pool, "classes": [0, 1]}
    if single is None:
        told |= {
            "budget_groups": parts.groups,
            "group_budgets": budgets,
            "groups_are_public": True,
            "group_shares": shares,
        }
    teachers = choose_teachers(budget, stated, parts.X.shape[1])
    if single is None:
        teachers = teachers_for_groups(teachers, budgets, shares, stated)
    model = PATEClassifier(n_teachers=teachers, budget=budget, release=release, random_state=run)
    model.fit(parts.X[rows], parts.y[rows], **told)
    groups = model.certificate_["mechanism"].get("groups", ())
    weights = [one["weight"] / 100 for one in groups]
    return 100 * float((model.predict(parts.X_test) == parts.y_test).mean()), weights


def main(n_runs: int, wishes: str) -> None:
    """Print the table as Markdown."""
    fractions, epsilons = WISHES[wishes]
    shares = dict(zip(GROUPS, fractions, strict=True))
    budgets = {
        name: PrivacyBudget(epsilon, DELTA) for name, epsilon in zip(GROUPS, epsilons, strict=True)
    }
    splits = {few: [parts_of(run, few, shares) for run in range(n_runs)] for few in (False, True)}
    print(f"Mean accuracy of {n_runs} runs in per cent, standard deviation in brackets\n")
    sizes = {few: f"{len(splits[few][0].X):,} records" for few in splits}
    heads = [f"{sizes[few]}, {release}" for few, release in COLUMNS]
    print(f"| | {' | '.join(heads)} |\n|---{'|---' * len(heads)}|")
    weights: list[float] = []
    for way in WAYS:
        cells = []
        for few, release in COLUMNS:
            found = [
                accuracy(parts, way, release, run, shares, budgets)
                for run, parts in enumerate(splits[few])
            ]
            scores = np.array([score for score, _ in found])
            cells.append(f"{scores.mean():.2f} ({scores.std(ddof=1):.2f})")
            weights = weights or found[0][1]
        print(f"| {way} | {' | '.join(cells)} |", flush=True)
    told = ", ".join(f"{name} {weight:.2f}" for name, weight in zip(GROUPS, weights, strict=True))
    majority = np.mean([1 - parts.y_test.mean() for parts in splits[False]])
    print(f"\nWeights of a vote: {told}. Always naming one class: {100 * majority:.2f}.")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(
        int(sys.argv[1]) if len(sys.argv) > 1 else 10,
        sys.argv[2] if len(sys.argv) > 2 else "boenisch",
    )
