"""The semi-private learner: seconds and memory of exact draws over whole classes, and private
choices on UCI Adult.

    python benchmarks/semi_private.py [largest n, default 1000000] [runs on Adult, default 5]

Speed: n private records and n public points, uniform, labels of an interval with 20 % noise,
epsilon 1. "draw" is the count of all mistakes and the choice; "fit" is the whole fit, with the
labels of all public points and the certificate. Memory is the peak of a process that does nothing
else, less what it had once everything was imported.

Adult: private are the 32,561 records of adult.data; adult.test is cut once into public points and a
held-out half, which is only scored. Stumps: on all public points, or on 500. Candidates, 200 each,
none of which saw private labels: "subsets" are logistic regressions on random parts of what one
PATE fit released at epsilon 0.5, delta 1e-5, a price to be added; "synthetic" are logistic
regressions on labels that a random sum of three columns makes up, free of any price. Runs differ in
partition, noise and random parts. Candidates are tried in one call here, where `choose_candidate`
asks them record by record.
"""

import os

# one BLAS thread, as in every benchmark here
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import resource
import subprocess
import sys
import time
import warnings
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from adult_students import encoded
from secretballot import Ledger, PATEClassifier, PrivacyBudget, SemiPrivateClassifier
from secretballot.core.noise import ExactNoise
from secretballot.core.private import Scores
from secretballot.core.types import Guarantee
from secretballot.hypotheses import DecisionStumps, HypothesisClass, Intervals, Thresholds
from secretballot.learners.selection import private_scores
from secretballot.releasing import choose_by_scores

EPSILONS = (0.05, 0.1, 0.5)
N_CANDIDATES = 200
CLASSES: dict[str, HypothesisClass] = {"thresholds": Thresholds(), "intervals": Intervals()}


def peak() -> float:
    """Return the peak memory of this process, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def speed(name: str, n: int) -> None:
    """Print a line of the table of speed."""
    ExactNoise().exponential_index(np.zeros(3, dtype=np.int64), 1.0)
    rng = np.random.default_rng(0)
    public, X = rng.random((n, 1)), rng.random((n, 1))
    y = (((X[:, 0] > 0.3) & (X[:, 0] < 0.6)) ^ (rng.random(n) < 0.2)).astype(np.int64)
    before, start = peak(), time.perf_counter()
    labellings = CLASSES[name].dichotomies(public)
    scores = private_scores(labellings, X, y, "record", "add-remove")
    ledger = Ledger.in_memory(
        dataset="speed", budget=PrivacyBudget(1.0, 0.0), unit="record", relation="add-remove"
    )
    choose_by_scores(lambda: scores, len(labellings), ledger, epsilon=1.0)
    draw, memory, start = time.perf_counter() - start, peak() - before, time.perf_counter()
    SemiPrivateClassifier(CLASSES[name], epsilon=1.0).fit(X, y, X_public=public, classes=[0, 1])
    fit = time.perf_counter() - start
    print(
        f"{name:<12} {n:>10,} {scores.n_candidates:>18,} {draw:8.2f} {fit:8.2f} {memory:8.0f}",
        flush=True,
    )


def subsets(X: np.ndarray, y: np.ndarray, X_public: np.ndarray, seed: int) -> tuple[list[Any], Any]:
    """Return candidates on parts of one release, and the student of the whole release."""
    budget = PrivacyBudget(0.5, 1e-5)
    pate = PATEClassifier(
        epsilon=budget.epsilon, delta=budget.delta, mechanism="labels", random_state=seed
    )
    pate.fit(X, y, X_public=X_public, classes=[0, 1])
    released, rng = pate.released_, np.random.default_rng(seed)
    points, labels = X_public[released.queries[released.answered]], released.label_values
    models = []
    while len(models) < N_CANDIDATES:
        part = rng.choice(len(labels), rng.integers(len(labels) // 4, len(labels)), replace=False)
        if len(set(labels[part].tolist())) == 2:
            C = float(10 ** rng.uniform(-3, 1))
            models.append(LogisticRegression(C=C, max_iter=200).fit(points[part], labels[part]))
    return models, pate


def synthetic(X_public: np.ndarray, seed: int) -> list[Any]:
    """Return candidates on labels that no data made."""
    rng, models = np.random.default_rng(seed), []
    informative = np.flatnonzero(X_public.std(axis=0) > 0)
    for _ in range(N_CANDIDATES):
        columns, signs = rng.choice(informative, 3, replace=False), rng.choice([-1.0, 1.0], 3)
        sums = (X_public[:, columns] / X_public[:, columns].std(axis=0)) @ signs
        cut = np.quantile(sums, rng.uniform(0.6, 0.9))
        labels = sums > cut if (sums > cut).any() and (sums <= cut).any() else sums >= sums.max()
        models.append(
            LogisticRegression(max_iter=200).fit(
                X_public[:500], np.append(labels[:498], [False, True])
            )
        )
    return models


def candidates_on_adult(
    name: str, models: list[Any], data: tuple[np.ndarray, ...]
) -> dict[str, float]:
    """Return held-out accuracies, in percent: of the best on the private records, and of each
    private choice."""
    X, y, _, X_test, y_test = data
    right = np.column_stack([model.predict(X) == y for model in models])
    scored = [100 * float(np.mean(model.predict(X_test) == y_test)) for model in models]
    outcome = {"best": scored[int(right.sum(axis=0).argmax())], "median": float(np.median(scored))}
    for epsilon in EPSILONS:
        ledger = Ledger.in_memory(
            dataset=name, budget=PrivacyBudget(epsilon, 0.0), unit="record", relation="add-remove"
        )
        by_record = Guarantee(unit="record", relation="add-remove")
        scores = Scores.of_candidates(right.sum(axis=0), by_record)
        found = choose_by_scores(lambda s=scores: s, len(models), ledger, epsilon=epsilon)
        outcome[f"{epsilon}"] = scored[found.values.item()]
    return outcome


def stumps_on_adult(
    data: tuple[np.ndarray, ...], n_public: int | None, seed: int
) -> dict[str, float]:
    """Return held-out accuracies, in percent: of the best stump on the private records, and of
    each private choice."""
    X, y, X_public, X_test, y_test = data
    family = DecisionStumps(X.shape[1])
    outcome = {
        "best": 100 * float(np.mean(family.erm(X, y).predict(X_test) == y_test)),
        "median": float("nan"),
    }
    for epsilon in EPSILONS:
        model = SemiPrivateClassifier(family, epsilon=epsilon, n_public=n_public, random_state=seed)
        outcome[f"{epsilon}"] = 100 * model.fit(X, y, X_public=X_public, classes=[0, 1]).score(
            X_test, y_test
        )
    return outcome


def adult_table(n_runs: int) -> None:
    """Print means over the runs, and the students' accuracy beside."""
    data, rows = encoded(), {}
    for seed in range(n_runs):
        models, pate = subsets(data[0], data[1], data[2], seed)
        rows.setdefault("PATE student, epsilon 0.5", []).append(
            {"best": 100 * pate.score(data[3], data[4])}
        )
        rows.setdefault("subsets", []).append(candidates_on_adult("subsets", models, data))
        rows.setdefault("synthetic", []).append(
            candidates_on_adult("synthetic", synthetic(data[2], seed), data)
        )
        rows.setdefault("stumps, all points", []).append(stumps_on_adult(data, None, seed))
        rows.setdefault("stumps, 500 points", []).append(stumps_on_adult(data, 500, seed))
    columns = ("best", "median", *(f"{epsilon}" for epsilon in EPSILONS))
    print(f"\n{'Adult, held-out accuracy':<28}" + "".join(f"{column:>12}" for column in columns))
    for name, found in rows.items():
        means = [np.array([run.get(column, np.nan) for run in found]) for column in columns]
        cells = [f"{m.mean():5.2f} ±{m.std():4.2f}" if np.isfinite(m).all() else "" for m in means]
        print(f"{name:<28}" + "".join(f"{cell:>12}" for cell in cells))


def main() -> None:
    """Print both tables; each line of the first in a process of its own."""
    if sys.argv[1:2] == ["--line"]:
        speed(sys.argv[2], int(sys.argv[3]))
        return
    given = [int(word) for word in sys.argv[1:3]]
    largest, n_runs = given + [1_000_000, 5][len(given) :]
    print(
        f"{'class':<12} {'n':>10} {'labellings':>18} {'draw s':>8} {'fit s':>8} {'MB':>8}",
        flush=True,
    )
    for name in CLASSES:
        for n in (10_000, 100_000, 1_000_000):
            if n <= largest:
                subprocess.run([sys.executable, __file__, "--line", name, str(n)], check=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        adult_table(n_runs)


if __name__ == "__main__":
    main()
