"""What record moments would reach, tried on a labelled stand-in as if that were private.

The stages are those of a real run, and so is the scale of the noise; the noise itself comes from a
seed and protects nothing, as the rows are public.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from secretballot._typing import FloatArray, IntArray
from secretballot.accounting import PrivacyBudget
from secretballot.bases import Basis, unfitted_basis
from secretballot.core.types import Guarantee
from secretballot.foreign_code import one_thread
from secretballot.learners.inputs import as_matrix
from secretballot.learners.moment_stages import N_STAGES, ClassWeights, MomentStages, MomentTarget
from secretballot.learners.moment_vectors import Records, vector_sums
from secretballot.planning.best_setting import FRONTIER
from secretballot.planning.plan_model import RARE, Estimate, MomentsForecast, Task
from secretballot.planning.stand_in import SeededNoise
from secretballot.students.fitting import student_by_name
from secretballot.students.table_students import fitted_to_public
from secretballot.teachers.rows import n_rows, take_rows

_TURNS = 4  # at each epsilon, on rows that are divided anew
_HERE = FRONTIER.index(1.0)
_HALVED = (_HERE, len(FRONTIER) - 1)  # where half of the stand-in is tried, too
_TEST_PART = 4  # one row in so many is kept for scoring
_POOL_PART = 3  # of the others one in so many is a public point
_LEAST_HALVED = 40  # rows of a kind, below which half of them tell nothing
_POINT_SHARE = 0.25  # what one over the public points counts beside one over the records
MOST_POOL, MOST_PRIVATE, MOST_TEST = 2000, 6000, 10_000
_RECORD = Guarantee(unit="record", relation="add-remove")
_DEVIATIONS = 1.8  # to either side for nine runs of ten, of a spread that some 15 runs tell


def forecast_moments(
    task: Task,
    X: Any,
    y: IntArray,
    *,
    class_weights: ClassWeights | None = None,
    basis: Basis | str = "auto",
    seed: int = 0,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> MomentsForecast:
    """Return what record moments would reach at the task's epsilon and at others.

    Rows of the stand-in are divided at random into private records, public points and rows to
    score on, several times. Where they are fewer than the records of the task, the noise is as much
    smaller, so that it is to them what it would be to all.

    Parameters
    ----------
    task : Task
        Its delta above 0.
    X : array, sparse matrix or frame of shape (n_rows, n_features)
        Public.
    y : ndarray of int64, shape (n_rows,)
        Class indices.
    class_weights : ClassWeights, optional
        The weights of the task, by the order of the classes.
    basis : str or basis of `secretballot.bases`
        As for `RecordMomentsClassifier`.
    seed : int
        Of rows and noise; it protects nothing.
    progress : callable, optional
        Takes steps done and steps in all.

    Raises
    ------
    DataError
        If the public points among the rows are all alike.

    Privacy
    -------
    Takes no private data and spends nothing.
    """
    rows, n_test = as_matrix("X of like", X), len(y) // _TEST_PART
    n_pool = max(2, min(task.n_public, MOST_POOL, (len(y) - n_test) // _POOL_PART))
    n_private = min(len(y) - n_test - n_pool, task.n_records, MOST_PRIVATE)
    beyond = _steps_beyond(task, n_private, n_pool)
    # the whole stand-in at every budget, and half of it where that says something of more rows
    parts = [tuple(range(len(FRONTIER))), *([_HALVED] if beyond > 0 else [])]
    reached = np.zeros((2, len(FRONTIER), _TURNS))
    for turn in range(_TURNS):
        # the same rows at every epsilon, so that these can be compared
        order = np.random.default_rng([seed, turn]).permutation(len(y))
        ends = [n_pool, n_pool + n_private, len(order) - n_test]
        pool, private, _, test = np.split(order, ends)
        test = test[:MOST_TEST]
        for part, places in enumerate(parts):
            points, records = (one[: len(one) >> part] for one in (pool, private))
            tables = (take_rows(rows, one) for one in (points, records, test))
            labels_of = _simulated(task, class_weights, basis, y[records], *tables)
            for place in places:
                budget = PrivacyBudget(task.epsilon * FRONTIER[place], task.delta)
                rng = np.random.default_rng([seed, turn, place])
                reached[part, place, turn] = np.mean(labels_of(budget, rng) == y[test])
        progress(turn + 1, _TURNS)
    # nothing, where half of the stand-in was not tried
    gain = float((reached[0] - reached[1])[list(_HALVED)].mean())
    accuracy = _estimates_of(reached[0], beyond * max(0.0, gain))
    least = float(np.bincount(y, minlength=task.n_classes).min() / len(y))
    return MomentsForecast(
        accuracy[_HERE],
        tuple(zip((task.epsilon * factor for factor in FRONTIER), accuracy, strict=True)),
        n_private,
        n_pool,
        rare_share=least if 0 < least <= RARE else None,
    )


def _simulated(
    task: Task,
    class_weights: ClassWeights | None,
    basis: Basis | str,
    y: IntArray,
    points: Any,
    records: Any,
    scored: Any,
) -> Callable[[PrivacyBudget, np.random.Generator], IntArray]:
    """Return what says of the scored rows the student of a run on these points, and on these rows
    with their classes in the place of private records."""
    with one_thread():
        fitted = unfitted_basis(basis, points).fit(points)
        pool, asked = fitted.rows(points), fitted.rows(scored)
        mapped, covered = fitted.mapped(records)
    # the marks of a record: that it is there, and that the public points do not cover it
    marks = np.column_stack([np.ones(len(covered)), ~covered]).astype(np.int64)

    def labels_of(budget: PrivacyBudget, rng: np.random.Generator) -> IntArray:
        with one_thread():
            stages = MomentStages.of_records(
                pool,
                MomentTarget.of_classes(range(task.n_classes)),
                budget,
                _RECORD,
                n_stages=N_STAGES,
                n_records=None,
                expected_uncovered=fitted.uncovered_share_,
                class_weights=class_weights,
                levels=fitted.levels_,
            )
            # to these rows it is what the real noise will be to all records
            fewer = replace(stages, sigma=stages.sigma * len(y) / task.n_records)
            sums = _noisy_sums(Records(mapped, y, marks), fewer, rng)
            model: Any = fewer.deciding_after(sums)[0]
            if task.student == "auto":
                return np.asarray(model.labels(asked))
            return _labels_of_student(task.student, points, model.labels(pool), scored)

    return labels_of


def _steps_beyond(task: Task, n_private: int, n_pool: int) -> float:
    """Return how far the real sizes lie beyond those of the stand-in, in steps from half of it to
    it.

    What a model misses by having few rows goes down about as the variance of its moments does: as
    one over the records, and a quarter over the public points. A line through the stand-in and its
    half shows what the rest will bring.
    """
    tried, real = (
        1 / n + _POINT_SHARE / m for n, m in ((n_private, n_pool), (task.n_records, task.n_public))
    )
    enough = n_pool >= _LEAST_HALVED and n_private >= _LEAST_HALVED
    return max(0.0, 1 - real / tried) if enough else 0.0


def _noisy_sums(records: Records, stages: MomentStages, rng: np.random.Generator) -> list[IntArray]:
    """Return the sums of all stages. The rows are public; private ones go into a release alone."""
    noise, sums = SeededNoise(rng), list[IntArray]()
    for sigma in stages.sigmas:
        exact = vector_sums([[records]], stages.asked_after(sums), _RECORD)._unseal()[0]
        sums.append(exact + noise.discrete_gaussian(sigma, exact.size))
    return sums


def _labels_of_student(name: str, points: Any, labels: IntArray, test: Any) -> IntArray:
    """Return what a student that learns from the model's labels says."""
    if len(set(labels.tolist())) == 1:
        return np.full(n_rows(test), labels[0])
    fitted = fitted_to_public(student_by_name(name), points, labels, 0)
    return np.asarray(fitted.predict(test), dtype=np.int64)


def _estimates_of(reached: FloatArray, more: float) -> list[Estimate]:
    """Return the mean of the runs at each epsilon and what larger numbers bring, with the range in
    which nine of ten others should fall.

    Runs differ alike at all epsilons but for the noise, so that each spread leans on all of them;
    half of what is added is uncertain, too.
    """
    own = reached.var(axis=1, ddof=1)
    spread = np.sqrt((own + 2 * own.mean()) / 3 * (1 + 1 / reached.shape[1]))
    halves = _DEVIATIONS * spread + more / 2
    means = np.minimum(reached.mean(axis=1) + more, 1.0)
    return [
        Estimate(float(mean), float(max(0.0, mean - half)), float(min(1.0, mean + half)))
        for mean, half in zip(means, halves, strict=True)
    ]
