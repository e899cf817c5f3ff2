"""Record votes on UCI Adult at equal (epsilon, delta = 1e-5), beside votes of shards.

    python benchmarks/record_votes.py [n_runs]

First a study on adult.data alone, by which the number of votes of a record was chosen: 20,000 rows
stand for the private records, 6,000 others, without labels, for the public pool, and the rest is
scored. Then, with that choice, the split of adult_students.py: private adult.data; of adult.test
one half is the public pool, whose labels are never read, and the other is only scored. All releases
pass the door, with exact noise, and differ from run to run by it alone.
"""

import os

# one BLAS thread, so that figures do not depend on the machine
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import sys
import time

import numpy as np
import pandas as pd

from adult_students import DELTA, SPLIT_SEED, STATED_RECORDS, encoded
from public_data import ADULT_CLASSES, ADULT_TARGET, adult
from secretballot import PATEClassifier, PrivacyBudget, RecordVotesClassifier
from secretballot.learners.pate.mechanisms import choose_teachers
from secretballot.learners.record_votes.classifier import default_votes

EPSILONS = (0.1, 0.5, 1.0, 2.0)
VOTES = (1, 5, 20, None)  # None: the default
N_PRIVATE, N_PUBLIC = 20_000, 6_000


def accuracy(
    private: pd.DataFrame,
    pool: pd.DataFrame,
    scored: pd.DataFrame,
    epsilon: float,
    votes: int | None = None,
) -> float:
    """Return the accuracy of one run, in percent."""
    model = RecordVotesClassifier(epsilon=epsilon, delta=DELTA, votes_per_record=votes)
    model.fit(
        private.drop(columns=ADULT_TARGET),
        private[ADULT_TARGET],
        X_public=pool.drop(columns=ADULT_TARGET),
        classes=list(ADULT_CLASSES),
    )
    found = model.predict(scored.drop(columns=ADULT_TARGET))
    return 100 * float((found == scored[ADULT_TARGET]).mean())


def accuracy_of_shards(epsilon: float, run: int) -> float:
    """Return the accuracy of one run of `PATEClassifier` on the second split, in percent."""
    X, y, X_public, X_test, y_test = encoded()
    budget = PrivacyBudget(epsilon=epsilon, delta=DELTA)
    n_teachers = choose_teachers(budget, STATED_RECORDS, X.shape[1])
    model = PATEClassifier(
        n_teachers=n_teachers,
        epsilon=budget.epsilon,
        delta=budget.delta,
        mechanism="counts",
        random_state=run,
    )
    model.fit(X, y, X_public=X_public, classes=[0, 1])
    return 100 * float((model.predict(X_test) == y_test).mean())


def text_of(scores: list[float]) -> str:
    """Return mean and standard deviation."""
    spread = np.std(scores, ddof=1) if len(scores) > 1 else 0.0
    return f"{np.mean(scores):.2f} ({spread:.2f})"


def print_study(n_runs: int) -> None:
    """Print the accuracies on adult.data alone, by the number of votes of a record."""
    table = adult().train
    order = np.random.default_rng(0).permutation(len(table))
    parts = [table.iloc[rows] for rows in np.split(order, (N_PRIVATE, N_PRIVATE + N_PUBLIC))]
    names = [f"{default_votes(N_PUBLIC)} (default)" if k is None else f"{k}" for k in VOTES]
    print(f"| epsilon | {' | '.join(names)} |\n|---|{'---|' * len(VOTES)}")
    for epsilon in EPSILONS:
        cells = [text_of([accuracy(*parts, epsilon, k) for _ in range(n_runs)]) for k in VOTES]
        print(f"| {epsilon:g} | {' | '.join(cells)} |", flush=True)


def print_held_out(n_runs: int) -> None:
    """Print the accuracies on the held-out half of adult.test, with the default votes."""
    data = adult()
    halves = np.array_split(np.random.default_rng(SPLIT_SEED).permutation(len(data.test)), 2)
    pool, held_out = (data.test.iloc[half] for half in halves)
    print("| epsilon | record votes | votes of shards | seconds of a fit |")
    print("|---|---|---|---|")
    for epsilon in EPSILONS:
        begin = time.perf_counter()
        own = [accuracy(data.train, pool, held_out, epsilon) for _ in range(n_runs)]
        seconds = (time.perf_counter() - begin) / n_runs
        shards = [accuracy_of_shards(epsilon, run) for run in range(n_runs)]
        print(f"| {epsilon:g} | {text_of(own)} | {text_of(shards)} | {seconds:.0f} |", flush=True)


if __name__ == "__main__":
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    print("adult.data alone: accuracy (sd) by votes of a record\n")
    print_study(runs)
    print("\nprivate adult.data, pool and held-out the halves of adult.test\n")
    print_held_out(runs)
