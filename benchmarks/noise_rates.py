"""Excess error against private records, public points and epsilon under known noise: slopes beside
the theorems'.

    python benchmarks/noise_rates.py [runs per cell, 30; 100 for the full grid] [folder]
    python benchmarks/noise_rates_figures.py [runs per cell] [folder]    # tables of what was run

Thresholds of uniform points whose labels hold the Tsybakov noise condition with exponent tau and no
larger one (`data.TsybakovThresholds`), in two worlds: "asymmetric", where labels are half as
clear to the left of the best threshold, so that teachers err alike, and "even", where their errors
cancel in a vote.

Four learners: Gaussian voting on all labelled points, Gaussian voting with disagreement-based
queries, sparse-vector voting, and, for reference, the best threshold on all private records without
privacy. Teachers, labels and students are the best thresholds on their records, found exactly;
every private label comes through the library's door with exact noise and a ledger. Numbers of
teachers, labels and abstentions follow the theorems of Liu et al. 2021 in n, m and epsilon; the
constants that the theorems hide were tuned once for every learner and tau, at n = 300,000 and
epsilon 1 in the asymmetric world, and stay fixed over the grid.

A finished cell is kept in cells.json of the folder, build/noise-rates; the same command later goes
on where this one was stopped.
"""

import json
import math
import os
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

# one BLAS thread, as in every benchmark here
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np

from samples import TsybakovThresholds
from secretballot import (
    Ledger,
    PrivacyBudget,
    label_actively,
    release,
    votes_of_counts,
)
from secretballot.accounting import WeakSignalWarning, sparse_vector
from secretballot.core.mechanisms import NoisyVotes, SparseVector
from secretballot.hypotheses import Thresholds
from secretballot.queries import DisagreementSampling, InRounds

DELTA = 1e-8  # below 1 / n for all n here, as the theorems have it
TAUS = (0.25, 0.5, 1.0)
NOISE = 0.1  # far from the threshold
LEFT_MARGIN = {"asymmetric": 0.5, "even": 1.0}
N_RECORDS = (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000)
N_FULL = 10_000_000  # from 100 runs per cell on
EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
N_PUBLIC = (10, 30, 100, 300, 1000, 3000, 10_000, 30_000)
N_FIXED, EPSILON_FIXED = 300_000, 1.0
N_POOL = 30_000  # public points for active queries where m does not vary
MOST_QUERIES = 1_000_000  # of a sparse vector
LEAST_SHARD = 20  # records; with smaller shards a cell is left out
BLOCK = 500_000  # records drawn at once


@dataclass(frozen=True)
class Constants:
    """What the theorems hide.

    Attributes
    ----------
    teachers : float
        K, in sigma (Gaussian) or in thresholds w (sparse vector).
    labels : float
        Factor of the number of labels.
    unstable : int
        T of the sparse vector at the number of labels that its theorem likes best.
    slack : float or None
        Constant of the active strategy's slack that does not grow along the stream; None: the
        library's default.
    """

    teachers: float
    labels: float
    unstable: int = 0
    slack: float | None = None


CONSTANTS = {
    ("passive", 0.25): Constants(4, 64),
    ("passive", 0.5): Constants(4, 16),
    ("passive", 1.0): Constants(4, 0.1),
    ("active", 0.25): Constants(8, 2, slack=0.5),
    ("active", 0.5): Constants(4, 2, slack=0.5),
    ("active", 1.0): Constants(4, 1, slack=0.5),
    ("sparse vector", 0.25): Constants(2.5, 8, 10),
    ("sparse vector", 0.5): Constants(2.5, 25, 10),
    ("sparse vector", 1.0): Constants(4, 0.01, 3),
}
LEARNERS = ("passive", "active", "sparse vector", "without privacy")


@dataclass(frozen=True)
class Cell:
    """A place of the grid: m is 0 where the theorem chooses it."""

    learner: str
    world: str
    tau: float
    sweep: str
    n: int
    m: int
    epsilon: float

    @property
    def name(self) -> str:
        return (
            f"{self.learner} | {self.world} | tau {self.tau:g} | n {self.n} | m {self.m} | epsilon"
            f" {self.epsilon:g}"
        )

    @property
    def key(self) -> str:
        """Name of the finished cell; runs under other constants are other cells."""
        return f"{self.name} | {CONSTANTS.get((self.learner, self.tau))}"

    @property
    def x(self) -> float:
        return {"n": self.n, "m": self.m, "epsilon": self.epsilon}[self.sweep]

    @property
    def distribution(self) -> TsybakovThresholds:
        return TsybakovThresholds(self.tau, noise=NOISE, left_margin=LEFT_MARGIN[self.world])

    @property
    def budget(self) -> PrivacyBudget:
        return PrivacyBudget(self.epsilon, DELTA)


@dataclass(frozen=True)
class Plan:
    """K teachers, `labels` planned labels of `points` public points, and T."""

    teachers: int
    labels: int
    points: int
    unstable: int = 0
    slack: float | None = None

    def fits(self, n: int) -> bool:
        return self.teachers * LEAST_SHARD <= n and self.labels <= self.points


def plan_of(cell: Cell, constants: Constants | None = None) -> Plan | None:
    """Return K, l, m and T as the learner's theorem has them in n, m and epsilon; None without
    privacy."""
    if cell.learner == "without privacy":
        return None
    planner = {"passive": passive, "active": active, "sparse vector": sparse}[cell.learner]
    return planner(cell, constants or CONSTANTS[cell.learner, cell.tau])


def printed_sigma(n_labels: int, budget: PrivacyBudget) -> float:
    """Return sigma of Algorithm 1, to which the theorems set K in proportion."""
    spread = 2 * n_labels * math.log(1 / budget.delta)
    return (math.sqrt(spread) + math.sqrt(spread + 2 * budget.epsilon * n_labels)) / (
        2 * budget.epsilon
    )


def passive(cell: Cell, constants: Constants) -> Plan:
    """Theorem C.5: all m points are labelled, K is proportional to sigma; m where the two terms
    are equal."""
    best = (cell.n * cell.epsilon) ** (2 * cell.tau / (4 - cell.tau))
    m = cell.m or math.ceil(constants.labels * best)
    return Plan(math.ceil(constants.teachers * printed_sigma(m, cell.budget)), m, m)


def active(cell: Cell, constants: Constants) -> Plan:
    """Theorem 15: labels grow with log(1 / alpha), K is proportional to sigma."""
    alpha = min(0.3, (cell.n * cell.epsilon) ** (-cell.tau / (2 - cell.tau)))
    points = cell.m or N_POOL
    # Lemma D.7 with a disagreement coefficient of 2, d = 1, beta = .05 and no best error
    rounds = math.log(1 / alpha)
    asked = 2 * max(1.0, rounds) * (1 + math.log(max(1.0, rounds) / 0.05))
    labels = min(points, math.ceil(constants.labels * asked))
    teachers = math.ceil(constants.teachers * printed_sigma(labels, cell.budget))
    return Plan(teachers, labels, points, slack=constants.slack)


def sparse(cell: Cell, constants: Constants) -> Plan:
    """Theorem 5: T follows from m, and K from T; T is constant at the m where the two terms are
    equal."""
    best = constants.labels * (cell.n * cell.epsilon) ** (cell.tau / (2 - cell.tau))
    m = cell.m or math.ceil(best)
    unstable = math.ceil(
        constants.unstable * (m / best) ** ((4 - 2 * cell.tau) / (4 - 3 * cell.tau))
    )
    threshold = sparse_noise(cell.epsilon, unstable).threshold
    return Plan(math.ceil(constants.teachers * threshold), m, m, unstable)


@cache
def sparse_noise(epsilon: float, unstable: int) -> SparseVector:
    """Return the sparse vector with the least noise at the budget; finding it takes longer than a
    run.

    Its number of queries costs nothing.
    """
    budget = PrivacyBudget(epsilon, DELTA)
    return sparse_vector(budget, MOST_QUERIES, max_abstentions=unstable)


def best_thresholds(
    distribution: TsybakovThresholds, n_shards: int, size: int, rng: np.random.Generator
) -> np.ndarray:
    """Return the threshold with the fewest mistakes on each of `n_shards` fresh shards, shape
    (n_shards,).

    Among equals the first, in the middle between its neighbours, as `Thresholds.erm` has it.
    Uniform points in ascending order are sums of exponential gaps over their total, so that nothing
    is sorted.
    """
    found, rows = np.empty(n_shards), max(1, BLOCK // size)
    for start in range(0, n_shards, rows):
        count = min(rows, n_shards - start)
        sums = np.cumsum(rng.standard_exponential((count, size + 1)), axis=1)
        x = sums[:, :-1] / sums[:, -1:]
        ones = rng.random((count, size)) < distribution.probability(x)
        # mistakes of a threshold above k points, less a constant: ones below minus zeros below
        more = np.cumsum(np.where(ones, 1, -1).astype(np.int8), axis=1, dtype=np.int32)
        best = more.argmin(axis=1)
        row = np.arange(count)
        above = np.where(best + 1 < size, x[row, np.minimum(best + 1, size - 1)], np.inf)
        placed = np.where(np.isinf(above), np.inf, (x[row, best] + above) / 2)
        found[start : start + count] = np.where(more[row, best] < 0, placed, -np.inf)
    return found


def private_threshold(
    cell: Cell, plan: Plan, teachers: np.ndarray, rng: np.random.Generator
) -> float:
    """Return the threshold of the student that learns from what the door releases."""
    X = rng.random((plan.points, 1))
    ones = np.searchsorted(np.sort(teachers), X[:, 0], side="right")
    votes = votes_of_counts(np.column_stack([plan.teachers - ones, ones]), [0, 1], plan.teachers)
    ledger = Ledger.in_memory(dataset="synthetic", budget=cell.budget)
    if cell.learner == "sparse vector":
        sparse = sparse_noise(cell.epsilon, plan.unstable)
        released = release(votes, sparse, ledger, cell.budget)
    else:
        noise = NoisyVotes(scale=printed_sigma(plan.labels, cell.budget))
        if cell.learner == "passive":
            released = release(votes, noise, ledger, cell.budget)
        else:
            slack = {} if plan.slack is None else {"noise_rate": 0.0, "slack_constant": plan.slack}
            asking = DisagreementSampling(Thresholds(), **slack)
            random_state = int(rng.integers(2**31))
            query_run = label_actively(
                votes,
                X,
                noise,
                ledger,
                cell.budget,
                InRounds(asking, plan.labels),
                n_queries=plan.labels,
                random_state=random_state,
            )
            released = query_run.released
    answered = released.labels >= 0
    if not answered.any():
        return math.inf
    return float(
        Thresholds().erm(X[released.queries[answered]], released.labels[answered]).threshold
    )


def one_run(cell: Cell, plan: Plan | None, run: int) -> list[float]:
    """Return disagreement and excess of the student, the same of the vote without noise, a
    teacher's disagreement."""
    rng = np.random.default_rng([run, *cell.name.encode()])
    distribution = cell.distribution
    if plan is None:
        threshold = best_thresholds(distribution, 1, cell.n, rng)[0]
        return [float(distribution.disagreement(threshold)), float(distribution.excess(threshold))]
    teachers = best_thresholds(distribution, plan.teachers, cell.n // plan.teachers, rng)
    student = private_threshold(cell, plan, teachers, rng)
    vote = np.sort(teachers)[(plan.teachers - 1) // 2]
    both = [
        float(of(threshold))
        for threshold in (student, vote)
        for of in (distribution.disagreement, distribution.excess)
    ]
    return [*both, float(distribution.disagreement(teachers).mean())]


def grid(full: bool) -> list[Cell]:
    """Return the cells, of all learners and both worlds, whose plan fits."""
    cells = []
    for learner, world, tau in product(LEARNERS, LEFT_MARGIN, TAUS):
        sizes = (*N_RECORDS, N_FULL) if full else N_RECORDS
        cells += [Cell(learner, world, tau, "n", n, 0, EPSILON_FIXED) for n in sizes]
        if learner != "without privacy":
            cells += [
                Cell(learner, world, tau, "epsilon", N_FIXED, 0, epsilon) for epsilon in EPSILONS
            ]
            cells += [Cell(learner, world, tau, "m", N_FIXED, m, EPSILON_FIXED) for m in N_PUBLIC]
    return cells


def runs_of(cells: list[Cell], done: list[int], n_runs: int) -> list[dict[str, Any] | None]:
    """Return plan and runs of some cells, from the run on that each has reached; None where the
    plan does not fit.

    Cells of one plan come together, so that its price is found once.
    """
    warnings.simplefilter("ignore", WeakSignalWarning)  # some cells are hopeless; that is a finding
    results: list[dict[str, Any] | None] = []
    for cell, first in zip(cells, done, strict=True):
        plan = plan_of(cell)
        if plan is not None and not plan.fits(cell.n):
            results.append(None)
            continue
        runs = [one_run(cell, plan, run) for run in range(first, n_runs)]
        results.append({"plan": None if plan is None else asdict(plan), "runs": runs})
    return results


def read_cells(folder: Path) -> dict[str, Any]:
    """Return what is finished: plan and runs by key, None for cells without a plan that fits."""
    path = folder / "cells.json"
    return json.loads(path.read_text()) if path.exists() else {}


def write_cells(folder: Path, cells: dict[str, Any]) -> None:
    """Write all finished cells; whoever stops this finds the old file or the new one."""
    temporary = folder / "cells.json.part"
    temporary.write_text(json.dumps(cells))
    temporary.replace(folder / "cells.json")


def study(cells: list[Cell], n_runs: int, folder: Path, n_jobs: int = 2) -> None:
    """Run what is missing, cell by cell, and keep it."""
    folder.mkdir(parents=True, exist_ok=True)
    found = read_cells(folder)
    groups: dict[tuple[Any, ...], list[Cell]] = {}
    for cell in {cell.name: cell for cell in cells}.values():  # sweeps cross
        groups.setdefault((cell.learner, cell.tau, cell.n, cell.m, cell.epsilon), []).append(cell)
    with ProcessPoolExecutor(n_jobs) as workers:
        jobs = {}
        for group in groups.values():
            done = [len((found.get(cell.key) or {"runs": []})["runs"]) for cell in group]
            if any(
                cell.key not in found or 0 < count < n_runs
                for cell, count in zip(group, done, strict=True)
            ):
                jobs[workers.submit(runs_of, group, done, n_runs)] = group
        for number, job in enumerate(as_completed(jobs), start=1):
            for cell, result in zip(jobs[job], job.result(), strict=True):
                if result is not None and found.get(cell.key):
                    result["runs"] = found[cell.key]["runs"] + result["runs"]
                found[cell.key] = result
            write_cells(folder, found)
            print(f"{number} of {len(jobs)}: {jobs[job][0].name}", flush=True)


def main(arguments: list[str]) -> None:
    n_runs = int(arguments[0]) if arguments else 30
    folder = Path(arguments[1]) if len(arguments) > 1 else Path("build/noise-rates")
    study(grid(full=n_runs >= 100), n_runs, folder)


if __name__ == "__main__":
    main(sys.argv[1:])
