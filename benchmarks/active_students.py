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

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from adult_students import DELTA, STATED_RECORDS, half
from cells import head_of, number_given, row_of, text_of
from mnist_students import EPSILONS, N_POOL, orientation_histograms
from public_data import mnist, mnist_votes
from secretballot import (
    Ledger,
    NoisyCountsClassifier,
    PrivacyBudget,
    Votes,
    train_teachers,
    votes_of_counts,
)
from secretballot.accounting import noisy_votes, teacher_shape
from secretballot.learners.inputs import distinct_points
from secretballot.learners.pate import _ask_in_rounds, _QueryRounds
from secretballot.learners.pate_mechanisms import (
    _choose_label_queries,
    choose_teachers,
    choose_terms,
)
from secretballot.queries import InRounds, strategy_by_name
from secretballot.students import GraphCountsClassifier, fit_student

ADULT_EPSILONS = (0.1, 0.5, 1.0, 2.0)
ADULT_STRATEGIES = ("passive", "margin", "committee", "disagreement", "cluster")
MNIST_STRATEGIES = ("passive", "cluster", "margin")
MNIST_PLAN = 300


@dataclass(frozen=True)
class Task:
    """A pool with the votes on it of every run, what is asked, and what the student is scored on;
    a plan of the whole pool asks it at once."""

    voted: list[Votes]
    pool: np.ndarray
    held_out: tuple[np.ndarray, np.ndarray]
    budget: PrivacyBudget
    plan: int
    release: str
    student: Any

    def row(self, cells: list[object], strategy: str) -> str:
        """Return a row of the table: accuracy and its spread."""
        scores = [self.run(strategy, run) for run in range(len(self.voted))]
        return row_of(*cells, text_of(scores, 2))

    def run(self, strategy: str, run: int) -> float:
        """Return the accuracy of one run, in percent."""
        votes, whole = self.voted[run], self.plan == len(self.pool)
        noise = noisy_votes(self.budget, votes.shape.first(self.plan), release=self.release)
        ledger = Ledger.in_memory(dataset="benchmark", budget=self.budget)
        asking = InRounds(strategy_by_name(strategy), self.plan if whole else None)
        n_queries = None if whole else self.plan  # equal points are asked once
        row_of = distinct_points(self.pool)
        pool = votes.shape.first(len(row_of))
        terms = choose_terms(noise, self.budget, pool, n_queries=n_queries, rounds=asking)
        public = self.pool, row_of, votes.classes
        begun = _QueryRounds(asking, *public, terms.shape.n_queries, run)
        about = {"classes": votes.classes, "request": "benchmark"}
        asked = _ask_in_rounds(begun, terms, votes.take, ledger, **about)
        return 100 * fit_student(self.student, self.pool, asked).score(*self.held_out)


def adult_rows(n_runs: int) -> Iterator[str]:
    """Yield the rows for Adult."""
    X, y, pool, *held_out = half().linear
    for epsilon in ADULT_EPSILONS:
        budget = PrivacyBudget(epsilon=epsilon, delta=DELTA)
        K = choose_teachers(budget, STATED_RECORDS, X.shape[1])
        given = {"classes": [0, 1], "n_teachers": K}
        voted = [
            train_teachers("logistic", X, y, random_state=run, **given).vote(pool)
            for run in range(n_runs)
        ]
        plan = _choose_label_queries(budget, teacher_shape(len(pool), 2, K))
        student, given = LogisticRegression(max_iter=1000), (voted, pool, tuple(held_out), budget)
        for strategy in ADULT_STRATEGIES:
            yield Task(*given, plan, "labels", student).row([epsilon, K, strategy, plan], strategy)
        task = Task(*given, len(pool), "counts", NoisyCountsClassifier(random_state=0))
        yield task.row([epsilon, K, "all counts", len(pool)], "passive")


def mnist_rows(n_runs: int) -> Iterator[str]:
    """Yield the rows for MNIST."""
    data = mnist()
    features = orientation_histograms(data.X_test.reshape(-1, 28, 28) / 255.0)
    pool, held_out = features[:N_POOL], (features[N_POOL:], data.y_test[N_POOL:])
    voted = [votes_of_counts(mnist_votes(), classes=list(range(10)))] * n_runs
    for epsilon in EPSILONS:
        budget = PrivacyBudget(epsilon=epsilon, delta=DELTA)
        student = GraphCountsClassifier()
        task = Task(voted, pool, held_out, budget, MNIST_PLAN, "counts", student)
        for strategy in MNIST_STRATEGIES:
            yield task.row([epsilon, strategy], strategy)


def main(n_runs: int) -> None:
    """Print both tables, row by row."""
    print("Adult\n\n" + head_of("epsilon", "K", "asking", "planned", "accuracy (sd)"))
    for row in adult_rows(n_runs):
        print(row, flush=True)
    print(f"\nMNIST, {MNIST_PLAN} queries planned, GraphCountsClassifier\n")
    print(head_of("epsilon", "asking", "accuracy (sd)"))
    for row in mnist_rows(n_runs):
        print(row, flush=True)


if __name__ == "__main__":
    main(number_given(5))
