"""Accuracy of students that choose their queries, on Adult and MNIST, at equal budget (delta =
1e-5) and equal plans.

    python benchmarks/active_students.py [n_runs]

Data, encoding and held-out rows are those of `adult_students.py` and `mnist_students.py`, which
tell what was looked at; here nothing was chosen on any labels: strategies, students and mechanisms
are the defaults, the number of teachers and the length of plans follow from public numbers (Adult),
or are 300 queries, the middle of the reference's 200 to 400 (MNIST). Within a run all strategies
ask the same teachers; partition, noise and random seeds differ from run to run.

"All counts" is passive learning from noisy counts of the whole pool, the default of
`PATEClassifier`: for one price many answers under much noise.
"""

import sys
from collections.abc import Iterator

import numpy as np
from sklearn.linear_model import LogisticRegression

from adult_students import DELTA, STATED_RECORDS, encoded
from mnist_students import N_POOL, orientation_histograms
from public_data import mnist, mnist_votes
from secretballot import (
    Ledger,
    NoisyCountsClassifier,
    PrivacyBudget,
    Votes,
    label_actively,
    train_teachers,
    votes_of_counts,
)
from secretballot.accounting import noisy_votes, teacher_shape
from secretballot.learners.pate.mechanisms import choose_label_queries, choose_teachers
from secretballot.queries import InRounds, strategy_by_name
from secretballot.released import ReleasedLabels
from secretballot.students import GraphCountsClassifier, fit_student

ADULT_EPSILONS = (0.1, 0.5, 1.0, 2.0)
ADULT_STRATEGIES = ("passive", "margin", "committee", "disagreement", "cluster")
STUDENTS = {
    "labels": LogisticRegression(max_iter=1000),
    "counts": NoisyCountsClassifier(random_state=0),
}
# figures of the reference: label spreading from 200 to 400 cluster medoids
MNIST_REFERENCE = {0.5: 87.5, 1.0: 94.8, 1.97: 95.8}
MNIST_STRATEGIES = ("passive", "cluster", "margin")
MNIST_PLAN = 300


def released_by(
    votes: Votes,
    pool: np.ndarray,
    budget: PrivacyBudget,
    plan: int,
    release: str,
    strategy: str,
    run: int,
) -> tuple[ReleasedLabels, float]:
    """Return what one run released, and the percentage of its labels that are the plurality,
    which no user learns."""
    noise = noisy_votes(budget, votes.shape.first(plan), release=release)
    ledger = Ledger.in_memory(dataset="benchmark", budget=budget)
    rounds = plan if plan == len(pool) else None
    released = label_actively(
        votes,
        pool,
        noise,
        ledger,
        budget,
        InRounds(strategy_by_name(strategy), rounds),
        n_queries=None if plan == len(pool) else plan,  # equal points are asked once
        random_state=run,
    )
    plurality = votes.take(released.queries)._unseal()[0].argmax(axis=1)
    return released, 100 * float(np.mean(released.labels == plurality))


def row_of(cells: list[object], results: list[tuple[int, float, float]]) -> str:
    """Return a row of the table: used queries, share of labels that are the plurality, accuracy
    and its spread."""
    used, right, scores = (np.array(column) for column in zip(*results, strict=True))
    deviation = scores.std(ddof=1) if len(scores) > 1 else 0.0
    found = [
        f"{used.mean():.0f}",
        f"{right.mean():.0f}",
        f"{scores.mean():.2f}",
        f"{deviation:.2f}",
    ]
    return "| " + " | ".join([*map(str, cells), *found]) + " |"


def adult_rows(n_runs: int) -> Iterator[str]:
    """Yield the rows for Adult."""
    X, y, pool, X_test, y_test = encoded()
    for epsilon in ADULT_EPSILONS:
        budget = PrivacyBudget(epsilon=epsilon, delta=DELTA)
        K = choose_teachers(budget, STATED_RECORDS, X.shape[1])
        ensembles = [
            train_teachers("logistic", X, y, classes=[0, 1], n_teachers=K, random_state=run)
            for run in range(n_runs)
        ]
        voted = [teachers.vote(pool) for teachers in ensembles]
        plan = choose_label_queries(budget, teacher_shape(len(pool), 2, K))
        settings = [
            (release, strategy, plan) for release in STUDENTS for strategy in ADULT_STRATEGIES
        ]
        for release, strategy, planned in [*settings, ("counts", "passive", len(pool))]:
            results = []
            for run, votes in enumerate(voted):
                released, right = released_by(votes, pool, budget, planned, release, strategy, run)
                student = fit_student(STUDENTS[release], pool, released)
                results.append((len(released.queries), right, 100 * student.score(X_test, y_test)))
            name = "all counts" if planned == len(pool) else strategy
            yield row_of([f"{epsilon:g}", K, release, name, planned], results)


def mnist_rows(n_runs: int) -> Iterator[str]:
    """Yield the rows for MNIST."""
    data = mnist()
    features = orientation_histograms(data.X_test.reshape(-1, 28, 28) / 255.0)
    pool, X_test, y_test = features[:N_POOL], features[N_POOL:], data.y_test[N_POOL:]
    votes = votes_of_counts(mnist_votes(), classes=list(range(10)))
    for epsilon, reference in MNIST_REFERENCE.items():
        budget = PrivacyBudget(epsilon=epsilon, delta=DELTA)
        for strategy in MNIST_STRATEGIES:
            results = []
            for run in range(n_runs):
                released, right = released_by(
                    votes, pool, budget, MNIST_PLAN, "counts", strategy, run
                )
                student = fit_student(GraphCountsClassifier(), pool, released)
                results.append((len(released.queries), right, 100 * student.score(X_test, y_test)))
            yield row_of([f"{epsilon:g}", strategy, reference], results)


def main(n_runs: int) -> None:
    """Print both tables, row by row."""
    print(
        "Adult\n\n| epsilon | K | release | asking | planned | used | label is plurality, % |"
        " accuracy | sd |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for row in adult_rows(n_runs):
        print(row, flush=True)
    print(f"\nMNIST, {MNIST_PLAN} queries planned, GraphCountsClassifier\n")
    print(
        "| epsilon | asking | label spreading, reference | used | label is plurality, % | accuracy"
        " | sd |"
    )
    print("|---|---|---|---|---|---|---|")
    for row in mnist_rows(n_runs):
        print(row, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
