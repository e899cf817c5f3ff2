"""Excess error of disagreement-based queries against random ones, on classes whose best member is
known.

    python benchmarks/active_rates.py [n_runs]

Thresholds and intervals of uniform points, Massart noise of 10 %: votes of 250 teachers with 1,000
records each, on a pool of 4,000 points, released as labels alone with exact noise at (epsilon,
1e-6), the plan priced whole. The student is the same for every way of asking: the hypothesis of the
class with the fewest mistakes on the answers. Beside it passive learning from noisy counts of the
whole pool.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from cells import head_of, number_given, row_of
from secretballot import (
    LabelingSession,
    Ledger,
    PrivacyBudget,
    TrainedTeachers,
    ask_actively,
    train_teachers,
)
from secretballot.accounting import noisy_votes, teacher_shape
from secretballot.hypotheses import HypothesisClass, Intervals, Thresholds
from secretballot.queries import DisagreementSampling, InRounds, PassiveSampling, QueryStrategy
from secretballot.students import HypothesisStudent, fit_student

DELTA, NOISE = 1e-6, 0.1
N_TEACHERS, SHARD, POOL, PLANNED = 250, 1_000, 4_000, 160
EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0)
TEST = np.random.default_rng(2026).random((1 << 15, 1))

Concept = Callable[[np.ndarray], np.ndarray]
World = tuple[Concept, np.ndarray, TrainedTeachers]


def threshold(rng: np.random.Generator) -> Concept:
    t = rng.uniform(0.3, 0.7)
    return lambda X: X[:, 0] >= t


def interval(rng: np.random.Generator) -> Concept:
    low, high = rng.uniform(0.2, 0.4), rng.uniform(0.6, 0.8)
    return lambda X: (low <= X[:, 0]) & (X[:, 0] <= high)


TASKS = {"thresholds": (Thresholds(), threshold), "intervals": (Intervals(), interval)}


def ways(hypotheses: HypothesisClass) -> dict[str, tuple[QueryStrategy, str, int]]:
    """Return strategies, what is released, and how many labels are planned."""
    return {
        "passive": (PassiveSampling(), "labels", PLANNED),
        "active": (DisagreementSampling(hypotheses), "labels", PLANNED),
        "passive, all counts": (PassiveSampling(), "counts", POOL),
    }


def voted(hypotheses: HypothesisClass, draw: Any, run: int) -> World:
    """Return a concept, a pool of public points, and teachers that learnt from private records."""
    rng = np.random.default_rng([run, 1])
    concept = draw(rng)
    X = rng.random((N_TEACHERS * SHARD, 1))
    y = (concept(X) ^ (rng.random(len(X)) < NOISE)).astype(int)
    teacher = HypothesisStudent(hypotheses)
    teachers = train_teachers(teacher, X, y, classes=[0, 1], n_teachers=N_TEACHERS)
    pool = rng.random((POOL, 1))
    return concept, pool, teachers


def excess(
    hypotheses: HypothesisClass, world: World, way: tuple[QueryStrategy, str, int], epsilon: float
) -> float:
    """Return the excess error of one private run."""
    (concept, pool, teachers), (strategy, release, planned) = world, way
    budget = PrivacyBudget(epsilon=epsilon, delta=DELTA)
    noise = noisy_votes(budget, teacher_shape(planned, 2, N_TEACHERS), release=release)
    ledger = Ledger.in_memory(dataset="synthetic", budget=budget)
    asking = InRounds(strategy, planned if release == "counts" else None)
    session = LabelingSession(teachers, noise, ledger, budget, n_queries=planned)
    asked = ask_actively(session, pool, asking, n_queries=planned)
    student = fit_student(HypothesisStudent(hypotheses), pool, asked)
    return float((1 - 2 * NOISE) * np.mean(student.predict(TEST) != concept(TEST)))


def main(n_runs: int) -> None:
    """Print one row for each task, way and epsilon."""
    print(head_of("task", "asking", "epsilon", "excess error", "standard error"))
    for task, (hypotheses, draw) in TASKS.items():
        worlds = [voted(hypotheses, draw, run) for run in range(n_runs)]
        for name, way in ways(hypotheses).items():
            for epsilon in EPSILONS:
                found = [excess(hypotheses, world, way, epsilon) for world in worlds]
                error = np.std(found, ddof=1) / n_runs**0.5
                print(row_of(task, name, epsilon, f"{np.mean(found):.4f}", f"{error:.4f}"))


if __name__ == "__main__":
    main(number_given(20))
