"""Is a student that is contradicted better than one that asks? Simulated runs as a plan makes them.

    python benchmarks/interactive_plans.py [TASK ...]

Adult and normal classes: teachers and students are tried on the stand-in of 2,500 rows of
`plan_accuracy.py`, eight folds. MNIST: the published votes of 250 teachers on 9,000 test images,
the student a logistic regression on 40 principal components of the gradients' orientations
(`mnist_students.py`), scored on the last 1,000 images, four runs. Delta 1e-5, 250 teachers. Labels
at random, labels asked by a strategy, and corrections asked by the same one. Each line is the mean
of the students' accuracies with its standard error; settings of one recipe differ by chance, so the
best of each is a little too good, and of all recipes alike.
"""

import os
import sys
from collections.abc import Callable, Iterator

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
from sklearn.decomposition import PCA

from mnist_students import orientation_histograms
from plan_accuracy import DELTA, Job, adult_job, normal, synthetic_job
from public_data import mnist, mnist_votes
from secretballot.named_learners import teacher_by_name
from secretballot.planning import Setting, Task
from secretballot.planning.search.settings import terms_of
from secretballot.planning.simulation.more_teachers import VoteSample
from secretballot.planning.simulation.simulated_run import RunOutcome, SimulatedRun
from secretballot.planning.simulation.stand_in import StandInModel

K = 250
EPSILONS = {"adult": (0.5, 2.0), "normal": (0.5, 2.0), "mnist": (1.0, 2.0)}
STRATEGY = {"adult": "margin", "normal": "margin", "mnist": "cluster"}
LABELS, ANSWERS, SHARES = (60, 120, 240, 480), (30, 90, 270), (0.25, 0.5)
FOLDS, RUNS = 8, 4
Runs = Callable[[Setting, Task], list[RunOutcome]]


def runs_on_stand_in(job: Job) -> Runs:
    """Return what simulates a setting in every fold of a job's stand-in."""
    X, y = job.known["like"]
    model = StandInModel(
        X,
        y,
        n_classes=job.n_classes,
        teacher=teacher_by_name(job.teacher, job.n_classes),
        n_public=len(job.X_public),
        n_folds=FOLDS,
    )
    return lambda setting, task: [
        model.simulate(setting, terms_of(task, setting), job.n_records, fold)
        for fold in range(FOLDS)
    ]


def runs_on_mnist() -> Runs:
    """Return what simulates a setting on the published votes, several times."""
    images, votes = mnist(), np.asarray(mnist_votes(), dtype=np.int64)
    known, truth = len(votes), np.asarray(images.y_test, dtype=np.int64)
    pixels = np.asarray(images.X_test, dtype=float).reshape(-1, 28, 28) / 255
    points = 5 * PCA(40, random_state=0).fit_transform(orientation_histograms(pixels))
    world = SimulatedRun(
        points[:known],
        VoteSample(K, votes, truth[:known]),
        points[known:],
        truth[known:],
        known,
    )
    return lambda setting, task: [
        world.run(setting, terms_of(task, setting), seed) for seed in range(RUNS)
    ]


def settings(strategy: str) -> Iterator[tuple[str, Setting]]:
    """Yield recipes and settings."""
    for n in LABELS:
        yield "labels at random", Setting(K, "gaussian", "labels", n)
    for n in LABELS:
        yield "labels asked", Setting(K, "gaussian", "labels", n, strategy=strategy)
    for most in ANSWERS:
        for share in SHARES:
            yield (
                "corrections asked",
                Setting(
                    K,
                    "interactive",
                    "labels",
                    2 * most,
                    strategy=strategy,
                    threshold=round(share * K),
                    max_answers=most,
                ),
            )


def main() -> None:
    """Print a line for each setting, and the best of each recipe."""
    for task in sys.argv[1:] or list(EPSILONS):
        if task == "mnist":
            runs, classes = runs_on_mnist(), 10
        else:
            job = (
                adult_job(False)
                if task == "adult"
                else synthetic_job(task, normal, 20_000, "logistic")
            )
            runs, classes = runs_on_stand_in(job), job.n_classes
        for epsilon in EPSILONS[task]:
            public = Task(20_000, 5000, classes, epsilon, DELTA)
            best: dict[str, tuple[float, str]] = {}
            for recipe, setting in settings(STRATEGY[task]):
                found = runs(setting, public)
                scores = 100 * np.array([one.student for one in found])
                answered = np.mean([one.answered for one in found])
                line = (
                    f"{task} epsilon {epsilon:g} {recipe}: {scores.mean():.1f} +-"
                    f" {scores.std(ddof=1) / len(scores) ** 0.5:.1f}, {answered:.0f} answers of"
                    f" {setting.n_queries} queries, threshold {setting.threshold}"
                )
                print(line, flush=True)
                best[recipe] = max(best.get(recipe, (0.0, "")), (float(scores.mean()), line))
            for _, line in best.values():
                print("best:", line, flush=True)


if __name__ == "__main__":
    main()
