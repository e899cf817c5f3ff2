"""Labels needed to reach an excess error: disagreement-based active learning against random labels,
known Bayes error.

    python benchmarks/active_rates.py [n_runs]

Thresholds and intervals of uniform points; labels without noise, and with Massart noise of 10 %.
The student is the same for every way of asking: the hypothesis of the class with the fewest
mistakes on the answers (`HypothesisStudent`). The walk is tried with the default slack and with one
that does not grow along the stream ("constant slack": noise_rate 0, slack_constant 0.5).

First without privacy, to see the algorithm: labels come from the distribution. Labels needed for
alpha are those at which the mean excess error of the runs falls to alpha for good; intervals are 95
% of bootstraps over the runs.

Then privately, at (epsilon, delta = 1e-6), with Massart noise: votes of 250 teachers with 1,000
records each, on a pool of 4,000 points, released as labels alone with exact noise, the plan priced
whole. Beside it passive learning from noisy counts of the whole pool, in which a mistake counts by
how clear the vote is. All settings are the same for all tasks.
"""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

# one BLAS thread, as in every benchmark here
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np

from samples import synthetic_massart
from secretballot import (
    Ledger,
    PrivacyBudget,
    Votes,
    label_actively,
    train_teachers,
)
from secretballot.accounting import noisy_votes, teacher_shape
from secretballot.hypotheses import HypothesisClass, Intervals, Thresholds
from secretballot.queries import (
    CheckedSelector,
    DisagreementSampling,
    InRounds,
    PassiveSampling,
    PublicPool,
    QueryStrategy,
)
from secretballot.released import ReleasedLabels
from secretballot.students import HypothesisStudent, fit_student

N_TEST = 1 << 15

CHECKPOINTS = np.unique(np.rint(2 ** np.arange(0, 11.01, 1 / 3)).astype(int))
MOST = 2048  # labels
ALPHAS = np.geomspace(0.1, 0.003, 7)
N_BOOTSTRAPS = 1000
NOISE = 0.1  # Massart
POOL_ON_LINE = 20_000

DELTA = 1e-6
N_TEACHERS, SHARD, POOL = 250, 1_000, 4_000
EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0)
PLANS = (10, 20, 40, 80, 160, 320)
PLANNED, SWEEP_EPSILON = 160, 0.25

Concept = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Task:
    """A class, how its points and concepts are drawn, and the noise of labels."""

    name: str
    hypotheses: HypothesisClass
    concept: Callable[[np.random.Generator], Concept]
    noise: float

    def excess(self, concept: Concept, student: Any) -> float:
        """Return the student's excess error, on points of its own."""
        test = on_line(np.random.default_rng(2026), N_TEST)
        return float((1 - 2 * self.noise) * np.mean(student.predict(test) != concept(test)))


def on_line(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.random((n, 1))


def threshold(rng: np.random.Generator) -> Concept:
    t = rng.uniform(0.3, 0.7)
    return lambda X: X[:, 0] >= t


def interval(rng: np.random.Generator) -> Concept:
    low, high = rng.uniform(0.2, 0.4), rng.uniform(0.6, 0.8)
    return lambda X: (low <= X[:, 0]) & (X[:, 0] <= high)


def tasks(noise: float) -> list[Task]:
    """Return the two tasks."""
    return [
        Task("thresholds", Thresholds(), threshold, noise),
        Task("intervals", Intervals(), interval, noise),
    ]


def strategies(hypotheses: HypothesisClass) -> dict[str, QueryStrategy]:
    """Return the ways of asking."""
    return {
        "passive": PassiveSampling(),
        "active, constant slack": DisagreementSampling(
            hypotheses, noise_rate=0.0, slack_constant=0.5
        ),
        "active, default slack": DisagreementSampling(hypotheses),
    }


def answers(queries: np.ndarray, labels: np.ndarray) -> ReleasedLabels:
    """Return labels that nobody protects, in the form that strategies and students take."""
    return ReleasedLabels(queries, labels[queries], (0, 1), 1)


def learning_curve(task: Task, strategy: QueryStrategy, run: int) -> np.ndarray:
    """Return the excess error after every number of labels in `CHECKPOINTS`; a walk that has
    ended stands still."""
    rng = np.random.default_rng([run, 0])
    concept = task.concept(rng)
    sample = synthetic_massart(on_line(rng, POOL_ON_LINE), concept, noise=task.noise, seed=run)
    selector = CheckedSelector(strategy, PublicPool(sample.X, (0, 1), MOST, run))
    asked, curve = np.empty(0, dtype=np.int64), []
    for goal in CHECKPOINTS:
        before = len(asked)
        while len(asked) < goal and len(rows := selector.propose(int(goal) - len(asked))):
            asked = np.concatenate([asked, rows])
            selector.receive(answers(asked, sample.y))
        if len(asked) > before:
            student = fit_student(
                HypothesisStudent(task.hypotheses), sample.X, answers(asked, sample.y)
            )
            excess = task.excess(concept, student)
        curve.append(excess)
    return np.array(curve)


def labels_needed(curves: np.ndarray) -> np.ndarray:
    """Return, for every alpha, the labels at which the mean curve falls to it for good; nan
    where it never does."""
    mean = curves.mean(axis=0)
    worst_after = np.maximum.accumulate(mean[::-1])[::-1]
    needed = np.full(len(ALPHAS), np.nan)
    for place, alpha in enumerate(ALPHAS):
        below = np.flatnonzero(worst_after <= alpha)
        if not len(below):
            continue
        last = below[0]
        if last == 0:
            needed[place] = CHECKPOINTS[0]
            continue
        high, low = np.log(worst_after[last - 1]), np.log(max(worst_after[last], 1e-6))
        share = (high - np.log(alpha)) / (high - low)
        needed[place] = CHECKPOINTS[last - 1] * (CHECKPOINTS[last] / CHECKPOINTS[last - 1]) ** share
    return needed


def bootstrapped(curves: np.ndarray, figure: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Return a figure of the runs and the ends of its 95 % interval, shape (3, ...)."""
    rng = np.random.default_rng(0)
    again = [
        figure(curves[rng.integers(len(curves), size=len(curves))]) for _ in range(N_BOOTSTRAPS)
    ]
    return np.array([figure(curves), *np.nanquantile(again, (0.025, 0.975), axis=0)])


def growth_fits(needed: np.ndarray) -> np.ndarray:
    """Return the exponent s of labels ~ alpha^-s, the labels that each halving of alpha costs, and
    the misfits of both.

    Misfits are root mean squares of relative errors: of the power law, and of a straight line in
    log(1 / alpha).
    """
    known = np.isfinite(needed)
    if known.sum() < 3:
        return np.full(4, np.nan)
    x, labels = np.log(1 / ALPHAS[known]), needed[known]
    power, line = np.polyfit(x, np.log(labels), 1), np.polyfit(x, labels, 1, w=1 / labels)
    misfits = [np.exp(np.polyval(power, x)) / labels - 1, np.polyval(line, x) / labels - 1]
    return np.array([power[0], line[0] * np.log(2), *(np.sqrt(np.mean(m**2)) for m in misfits)])


def rates(n_runs: int) -> None:
    """Print labels needed without privacy."""
    columns = " | ".join(f"{alpha:.2g}" for alpha in ALPHAS)
    print(
        f"| task | label noise | asking | {columns} | exponent of 1/alpha | labels per halving |"
        " misfit power, log |"
    )
    print("|---|---|---|" + "---|" * (len(ALPHAS) + 3))
    for noise in (0.0, NOISE):
        for task in tasks(noise):
            for name, strategy in strategies(task.hypotheses).items():
                curves = np.array([learning_curve(task, strategy, run) for run in range(n_runs)])
                needed = bootstrapped(curves, labels_needed)
                fits_of_task = bootstrapped(curves, lambda some: growth_fits(labels_needed(some)))
                cells = " | ".join(f"{count:.0f}" for count in needed[0])
                spans = [
                    f"{value:.3g} [{low:.3g}, {high:.3g}]"
                    for value, low, high in fits_of_task.T[:2]
                ]
                fits = f"{100 * fits_of_task[0, 2]:.0f} %, {100 * fits_of_task[0, 3]:.0f} %"
                print(
                    f"| {task.name} | {noise:g} | {name} | {cells} | {' | '.join(spans)} |"
                    f" {fits} |",
                    flush=True,
                )


def voted(task: Task, run: int) -> tuple[Concept, np.ndarray, Votes]:
    """Return a concept, a pool of public points, and the votes on them of teachers that learnt
    from private records."""
    rng = np.random.default_rng([run, 1])
    concept = task.concept(rng)
    sample = synthetic_massart(
        on_line(rng, N_TEACHERS * SHARD), concept, noise=task.noise, seed=run
    )
    pool = on_line(rng, POOL)
    teacher = HypothesisStudent(task.hypotheses)
    teachers = train_teachers(teacher, sample.X, sample.y, classes=[0, 1], n_teachers=N_TEACHERS)
    return concept, pool, teachers.vote(pool)


def private_excess(
    task: Task, world: Any, strategy: QueryStrategy, epsilon: float, release: str, plan: int
) -> float:
    """Return the excess error of one private run."""
    concept, pool, votes = world
    budget = PrivacyBudget(epsilon=epsilon, delta=DELTA)
    shape = teacher_shape(plan, 2, N_TEACHERS)
    noise = noisy_votes(budget, shape, release=release)
    ledger = Ledger.in_memory(dataset="synthetic", budget=budget)
    rounds = plan if release == "counts" else None
    asking = InRounds(strategy, rounds)
    query_run = label_actively(votes, pool, noise, ledger, budget, asking, n_queries=plan)
    return task.excess(
        concept, fit_student(HypothesisStudent(task.hypotheses), pool, query_run.released)
    )


def private(n_runs: int) -> None:
    """Print excess errors under privacy."""
    print(
        f"\n| task | asking | epsilon | planned labels | excess error at delta {DELTA:g}, with 95 %"
        " interval |"
    )
    print("|---|---|---|---|---|")
    settings = [(e, PLANNED) for e in EPSILONS] + [
        (SWEEP_EPSILON, plan) for plan in PLANS if plan != PLANNED
    ]
    for task in tasks(NOISE):
        worlds = [voted(task, run) for run in range(n_runs)]
        ways = [(name, s, "labels", settings) for name, s in strategies(task.hypotheses).items()]
        ways.append(
            ("passive, all counts", PassiveSampling(), "counts", [(e, POOL) for e in EPSILONS])
        )
        for name, strategy, release, asked in ways:
            for epsilon, plan in asked:
                runs = [
                    private_excess(task, world, strategy, epsilon, release, plan)
                    for world in worlds
                ]
                mean, low, high = bootstrapped(np.array(runs), lambda some: some.mean())
                print(
                    f"| {task.name} | {name} | {epsilon:g} | {plan} | {mean:.4f} [{low:.4f},"
                    f" {high:.4f}] |",
                    flush=True,
                )


if __name__ == "__main__":
    n_runs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    rates(n_runs)
    private(n_runs)
