"""Record moments on UCI Adult where things are less than ideal: few or skewed public points, users
with many rows, rare positives, wrong labels.

    python benchmarks/record_conditions.py [n_runs] [pool|skewed|users|rare|noise ...]

The split of record_moments.py: private adult.data; one half of adult.test is the public pool, whose
labels are never read, and the other is only scored. Defaults throughout, delta 1e-5. Nothing was
chosen on the held-out half. Results go to build/record_conditions.jsonl, one line a cell; a run
that is interrupted goes on.

- Pool: its first rows, 100 to 10,000. For these rows alone 10,000 of adult.test are the pool, and
  the other 6,281 are scored.
- Skewed pools: men alone, people over 45 alone; everybody is scored.
- Users: the private rows, in random order, belong to users of so many rows each, and a user is
  protected as a whole.
- Rare positives: 1 % of the private records and of the pool, by leaving out others. What is scored
  is weighted so that 1 % of it is positive.
- Label noise: a share of the private labels is turned around; the true ones are scored.
"""

import os

# one BLAS thread, so that figures do not depend on the machine
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import functools
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from adult_students import SPLIT_SEED, dp_gradient_descent, encoded
from cells import Cells, text_of
from public_data import ADULT_CLASSES, ADULT_TARGET, adult
from real_tables import BUILD
from record_moments import DELTA, half
from secretballot import (
    Ledger,
    PrivacyBudget,
    RecordMomentsClassifier,
    RecordVotesClassifier,
)
from secretballot.bases import TableBasis

TABLES = ("pool", "skewed", "users", "rare", "noise")
EPSILONS = (0.5, 1.0)
POOLS = (100, 250, 1000, 2500, 5000, 10_000)
MOST_POOL = 10_000
SKEWED: dict[str, Callable[[pd.DataFrame], Any]] = {
    "everybody": lambda frame: np.ones(len(frame), dtype=bool),
    "men": lambda frame: (frame["sex"] == "Male").to_numpy(),
    "over 45": lambda frame: (frame["age"] > 45).to_numpy(),
}
ROWS_OF_A_USER = (1, 3, 10, 30, 100)
NOISE = (0.0, 0.1, 0.2, 0.3)
RARE = 0.01
Parts = tuple[pd.DataFrame, np.ndarray, pd.DataFrame, pd.DataFrame, np.ndarray]


def budget_of(epsilon: float) -> PrivacyBudget:
    """Return the budget of one run."""
    return PrivacyBudget(epsilon, DELTA)


def moments(parts: Parts, epsilon: float, units: np.ndarray | None = None) -> Any:
    """Return fitted record moments."""
    X, y, pool, _, _ = parts
    budget = budget_of(epsilon)
    ledger = None
    if units is not None:
        ledger = Ledger.in_memory(dataset="adult", budget=budget, unit="user")
    model = RecordMomentsClassifier(epsilon=budget.epsilon, delta=budget.delta, ledger=ledger)
    return model.fit(X, y, X_public=pool, classes=[0, 1], units=units)


def accuracy(model: Any, parts: Parts) -> float:
    """Return the share of held-out rows that are right, in percent."""
    return 100 * float(np.mean(model.predict(parts[3]) == parts[4]))


def in_basis(parts: Parts, learner: Any) -> float:
    """Return the accuracy of a learner without privacy, on the coordinates of the pool's basis."""
    basis = TableBasis().fit(parts[2])
    learner.fit(basis.transform(parts[0]), parts[1])
    return 100 * float(np.mean(learner.predict(basis.transform(parts[3])) == parts[4]))


def with_pool(parts: Parts, epsilon: float) -> dict[str, Any]:
    """Return what both learners make of one pool."""
    begun = time.process_time()
    model = moments(parts, epsilon)
    seconds = time.process_time() - begun
    votes = RecordVotesClassifier(**budget_of(epsilon).to_json())
    votes.fit(parts[0], parts[1], X_public=parts[2], classes=[0, 1])
    return {
        "moments": accuracy(model, parts),
        "votes": accuracy(votes, parts),
        "uncovered": 100 * model.coverage_.uncovered,
        "warned": float(model.coverage_.is_poor),
        "seconds": seconds,
    }


def pool_of(parts: Parts, n_public: int) -> Parts:
    """Return the parts with a pool of so many rows of adult.test, and the same rows to score."""
    X, y, pool, held_out, y_test = parts
    more = MOST_POOL - len(pool)
    whole = pd.concat([pool, held_out.iloc[:more]], ignore_index=True)
    return X, y, whole.iloc[:n_public], held_out.iloc[more:], y_test[more:]


def with_users(parts: Parts, epsilon: float, n_rows: int, run: int) -> dict[str, Any]:
    """Return the accuracy where users have so many rows each."""
    units = np.random.default_rng(run).permutation(len(parts[1])) // n_rows
    return {"moments": accuracy(moments(parts, epsilon, units), parts)}


def with_noise(parts: Parts, epsilon: float, share: float, run: int) -> dict[str, Any]:
    """Return the accuracy where a share of the private labels is wrong."""
    X, y, *rest = parts
    wrong = np.random.default_rng(run).random(len(y)) < share
    noisy: Parts = (X, np.where(wrong, 1 - y, y), *rest)
    return {"moments": accuracy(moments(noisy, epsilon), noisy)}


def noise_without_privacy(parts: Parts, share: float, run: int) -> dict[str, Any]:
    """Return accuracies of learners without privacy under the same noise."""
    X, y, *rest = parts
    wrong = np.random.default_rng(run).random(len(y)) < share
    noisy: Parts = (X, np.where(wrong, 1 - y, y), *rest)
    return {
        "linear": in_basis(noisy, LogisticRegression(C=10, max_iter=2000)),
        "boosting": in_basis(noisy, HistGradientBoostingClassifier(random_state=0)),
    }


def rare_rows(parts: Parts, run: int, y_pool: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return which private records and public points are kept, few positives among either."""
    rng = np.random.default_rng(run)

    def kept(y: np.ndarray) -> np.ndarray:
        positives = np.flatnonzero(y == 1)
        n_kept = round(RARE / (1 - RARE) * np.sum(y == 0))
        return np.sort(np.append(np.flatnonzero(y == 0), rng.permutation(positives)[:n_kept]))

    return kept(parts[1]), kept(y_pool)


def rare_parts(parts: Parts, run: int, y_pool: np.ndarray) -> Parts:
    """Return the parts with few positives among the private records and in the pool."""
    rows, public = rare_rows(parts, run, y_pool)
    return (parts[0].iloc[rows], parts[1][rows], parts[2].iloc[public], parts[3], parts[4])


def rare_scores(shares: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Return scores of predicted probabilities, as if 1 % of the rows were positive."""
    weights = np.where(y == 1, RARE / np.mean(y == 1), (1 - RARE) / np.mean(y == 0))
    found = shares > 0.5
    hit, rejected = np.mean(found[y == 1]), np.mean(~found[y == 0])
    order = np.argsort(-shares, kind="stable")
    among = order[np.cumsum(weights[order]) <= 0.05 * weights.sum()]
    return {
        "accuracy": 100 * np.average(found == y, weights=weights),
        "balanced": 50 * (hit + rejected),
        "recall": 100 * hit,
        "recall among 5 %": 100 * np.sum(y[among]) / np.sum(y),
        "area": 100 * roc_auc_score(y, shares),
    }


def rare_moments(parts: Parts, epsilon: float) -> dict[str, Any]:
    """Return the scores of record moments."""
    return rare_scores(moments(parts, epsilon).predict_proba(parts[3])[:, 1], parts[4])


def rare_descent(parts: Parts, epsilon: float, run: int, y_pool: np.ndarray) -> dict[str, Any]:
    """Return the scores of DP gradient descent on a linear encoding."""
    X, y, _, X_test, y_test = encoded()
    rows, _ = rare_rows(parts, run, y_pool)
    w = dp_gradient_descent(X[rows], y[rows], epsilon, np.random.default_rng(run))
    return rare_scores(expit(np.column_stack([X_test, np.ones(len(y_test))]) @ w), y_test)


def rare_without_privacy(parts: Parts) -> dict[str, Any]:
    """Return the scores of a logistic model without privacy, in the same basis."""
    basis = TableBasis().fit(parts[2])
    model = LogisticRegression(C=10, max_iter=2000).fit(basis.transform(parts[0]), parts[1])
    return rare_scores(model.predict_proba(basis.transform(parts[3]))[:, 1], parts[4])


def pool_labels() -> np.ndarray:
    """Return the classes of the pool, which no learner sees: to make a pool with few positives."""
    test = adult().test
    order = np.random.default_rng(SPLIT_SEED).permutation(len(test))
    pool = test.iloc[np.array_split(order, 2)[0]]
    return (pool[ADULT_TARGET] == ADULT_CLASSES[1]).to_numpy().astype(int)


def print_rows(title: str, heads: list[str], rows: list[tuple[str, list[list[float]]]]) -> None:
    """Print one table."""
    print(f"\n{title}\n\n| {' | '.join(heads)} |\n{'|---' * len(heads)}|")
    for name, cells in rows:
        print(f"| {name} | {' | '.join(text_of(values) for values in cells)} |", flush=True)


def print_tables(cells: Cells) -> None:
    """Print all tables."""

    def of(field: str, **wanted: Any) -> list[float]:
        return cells.values(field, **wanted)

    heads = [
        f"{name}, epsilon {epsilon:g}" for name in ("moments", "votes") for epsilon in EPSILONS
    ]
    for title, table, names in (
        ("Rows of the pool", "pool", POOLS),
        ("Who is in the pool", "skewed", tuple(SKEWED)),
    ):
        rows = [
            (
                f"{name:,}" if isinstance(name, int) else name,
                [
                    *(of("moments", table=table, of=name, epsilon=epsilon) for epsilon in EPSILONS),
                    *(of("votes", table=table, of=name, epsilon=epsilon) for epsilon in EPSILONS),
                    of("uncovered", table=table, of=name),
                    of("warned", table=table, of=name),
                ],
            )
            for name in names
        ]
        print_rows(title, [table, *heads, "uncovered, %", "warned, share of runs"], rows)
    rows = [
        (str(n), [of("moments", table="users", of=n, epsilon=epsilon) for epsilon in EPSILONS])
        for n in ROWS_OF_A_USER
    ]
    print_rows("Rows of a user", ["rows", *heads[:2]], rows)
    fields = ["accuracy", "balanced", "recall", "recall among 5 %", "area"]
    rows = [
        (f"{name}, epsilon {e:g}", [of(f, table="rare", of=key, epsilon=e) for f in fields])
        for key, name in (("moments", "moments"), ("descent", "DP gradient descent, linear"))
        for e in EPSILONS
    ]
    rows.append(("linear, no privacy", [of(f, table="rare", epsilon=None) for f in fields]))
    print_rows("1 % positives", ["", *fields], rows)
    rows = [
        (
            f"{share:.0%}",
            [
                *(of("moments", table="noise", of=share, epsilon=e) for e in EPSILONS),
                *(of(f, table="noise", of=share, epsilon=None) for f in ("linear", "boosting")),
            ],
        )
        for share in NOISE
    ]
    names = ["wrong labels", *heads[:2], "linear, no privacy", "boosting, no privacy"]
    print_rows("Label noise", names, rows)


def main(n_runs: int, wanted: list[str]) -> None:
    """Compute all cells of these tables that are not known, then print all tables."""
    warnings.simplefilter("ignore")  # of skewed pools: `warned` counts them
    cells = Cells(BUILD / "record_conditions.jsonl")
    one, y_pool = half(exchanged=False), pool_labels()
    parts: Parts = (one.X, one.y, one.pool, one.held_out, one.y_held_out)
    for run in range(n_runs):
        rare = rare_parts(parts, run, y_pool)
        for epsilon in EPSILONS:
            key = {"epsilon": epsilon, "run": run}
            jobs: list[tuple[str, Any, Callable[[], dict[str, Any]]]] = [
                *(
                    ("pool", n, functools.partial(with_pool, pool_of(parts, n), epsilon))
                    for n in POOLS
                ),
                *(
                    (
                        "skewed",
                        name,
                        functools.partial(
                            with_pool,
                            (*parts[:2], parts[2][chosen(parts[2])], *parts[3:]),
                            epsilon,
                        ),
                    )
                    for name, chosen in SKEWED.items()
                ),
                *(
                    ("users", n, functools.partial(with_users, parts, epsilon, n, run))
                    for n in ROWS_OF_A_USER
                ),
                ("rare", "moments", functools.partial(rare_moments, rare, epsilon)),
                ("rare", "descent", functools.partial(rare_descent, parts, epsilon, run, y_pool)),
                *(
                    ("noise", share, functools.partial(with_noise, parts, epsilon, share, run))
                    for share in NOISE
                ),
            ]
            for table, of, compute in jobs:
                if table in wanted:
                    cells.found({**key, "table": table, "of": of}, compute)
        key = {"epsilon": None, "run": run}
        cells.found({**key, "table": "rare"}, functools.partial(rare_without_privacy, rare))
        for share in NOISE if "noise" in wanted else ():
            cells.found(
                {**key, "table": "noise", "of": share},
                functools.partial(noise_without_privacy, parts, share, run),
            )
    print_tables(cells)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3, sys.argv[2:] or list(TABLES))
