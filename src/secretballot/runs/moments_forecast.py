"""What record moments would reach, tried on a labelled stand-in as if that were private.

The stages are those of a real run, and so is the scale of the noise; the noise itself comes from a
seed and protects nothing, as the rows are public.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from secretballot._typing import FloatArray, IntArray
from secretballot.bases import TableBasis
from secretballot.bases.integer_model import with_constant
from secretballot.ensemble.isolation import one_thread
from secretballot.ensemble.rows import as_table, n_rows, take_rows
from secretballot.exceptions import DataError
from secretballot.learners.moments import RecordMomentsClassifier
from secretballot.learners.moments.stages import MomentStages, staged_sums
from secretballot.learners.moments.targets import ClassTarget
from secretballot.planning.plan.model import Estimate, MomentsForecast, Task
from secretballot.planning.search.best_setting import FRONTIER
from secretballot.planning.simulation.seeded_noise import SeededNoise
from secretballot.privacy.accounting import PrivacyBudget
from secretballot.records import PrivateRecords
from secretballot.students.names import student_by_name

__all__ = ["forecast_moments", "noisy_sums"]

TURNS = 4  # at each epsilon, on rows that are divided anew
HERE = FRONTIER.index(1.0)
HALVED = (HERE, len(FRONTIER) - 1)  # where half of the stand-in is tried, too
TEST_PART = 4  # one row in so many is kept for scoring
POOL_PART = 3  # of the others one in so many is a public point
LEAST_HALVED = 40  # rows of a kind, below which half of them tell nothing
POINT_SHARE = 0.25  # what one over the public points counts beside one over the records
MOST_POOL, MOST_PRIVATE, MOST_TEST = 2000, 6000, 10_000
DEVIATIONS = 1.8  # to either side for nine runs of ten, of a spread that some 15 runs tell


def forecast_moments(
    task: Task,
    X: Any,
    y: IntArray,
    *,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
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
    rows = as_table(X)
    n_test = n_rows(rows) // TEST_PART
    n_pool = max(2, min(task.n_public, MOST_POOL, (n_rows(rows) - n_test) // POOL_PART))
    n_private = min(n_rows(rows) - n_test - n_pool, task.n_records, MOST_PRIVATE)
    beyond = _beyond(task, n_private, n_pool)
    halved = HALVED if beyond > 0 else ()
    done, total = 0, TURNS * (len(FRONTIER) + len(halved))
    reached, gains = np.zeros((len(FRONTIER), TURNS)), []
    for turn in range(TURNS):
        # the same rows at every epsilon, so that these can be compared
        order = np.random.default_rng([seed, turn]).permutation(n_rows(rows))
        pool, private, _, test = np.split(
            order, [n_pool, n_pool + n_private, n_rows(rows) - n_test]
        )
        test = test[:MOST_TEST]
        whole = _StandIn(task, rows, y, pool, private, test)
        for place, factor in enumerate(FRONTIER):
            budget = PrivacyBudget(task.epsilon * factor, task.delta)
            rng = np.random.default_rng([seed, turn, place])
            reached[place, turn] = whole.accuracy_of_run(budget, rng)
        if halved:
            half = _StandIn(task, rows, y, pool[: n_pool // 2], private[: n_private // 2], test)
            for place in halved:
                budget = PrivacyBudget(task.epsilon * FRONTIER[place], task.delta)
                rng = np.random.default_rng([seed, turn, place])
                gains.append(reached[place, turn] - half.accuracy_of_run(budget, rng))
        done += len(FRONTIER) + len(halved)
        if progress is not None:
            progress(done, total)
    more = beyond * max(0.0, float(np.mean(gains))) if gains else 0.0
    found = [
        (task.epsilon * factor, estimate)
        for factor, estimate in zip(FRONTIER, _estimates_of(reached, more), strict=True)
    ]
    return MomentsForecast(found[HERE][1], tuple(found), n_private, n_pool)


class _StandIn:
    """A stand-in divided into public points, rows in the place of private records, and rows to
    score on; mapped into the basis of these points."""

    def __init__(
        self, task: Task, X: Any, y: IntArray, pool: IntArray, private: IntArray, test: IntArray
    ) -> None:
        self._task, self._points, self._n_private = task, take_rows(X, pool), len(private)
        records, self._scored = take_rows(X, private), take_rows(X, test)
        with one_thread():
            self._basis = TableBasis.suited_to(self._points).fit(self._points)
            self._pool, mapped, self._test = (
                with_constant(self._basis.integers(rows))
                for rows in (self._points, records, self._scored)
            )
            beyond = ~self._basis.covered(records)
        marks = np.column_stack([np.ones(len(beyond)), beyond]).astype(np.int64)
        self._records = PrivateRecords(mapped, y[private], task.n_classes, None, marks)
        self._truth = y[test]

    def accuracy_of_run(self, budget: PrivacyBudget, rng: np.random.Generator) -> float:
        """Return the accuracy of one simulated run."""
        with one_thread():
            stages, asked = staged_sums(
                self._pool,
                ClassTarget(tuple(range(self._task.n_classes))),
                budget,
                n_stages=RecordMomentsClassifier().n_stages,
                n_records=None,
                neighbours="add-remove",
                basis=self._basis.describe(),
                expected_uncovered=self._basis.uncovered_share_,
                points_sha256="",
            )
            # to these rows it is what the real noise will be to all records
            sigma = stages.sigma * self._n_private / self._task.n_records
            fewer = replace(stages, sigma=sigma)
            sums = noisy_sums(self._records, fewer, asked.n_stages, rng)
            model: Any = fewer.fit_after(sums).model
            if self._task.student == "auto":
                said = model.labels(self._test)
            else:
                labels = model.labels(self._pool)
                said = _labels_of_student(self._task.student, self._points, labels, self._scored)
        return float(np.mean(said == self._truth))


def _beyond(task: Task, n_private: int, n_pool: int) -> float:
    """Return how far the real sizes lie beyond those of the stand-in, in steps from half of it to
    it.

    What a model misses by having few rows goes down about as the variance of its moments does: as
    one over the records, and a quarter over the public points. A line through the stand-in and its
    half tells what the rest will bring.
    """
    tried, real = (
        1 / n + POINT_SHARE / m for n, m in ((n_private, n_pool), (task.n_records, task.n_public))
    )
    enough = n_pool >= LEAST_HALVED and n_private >= LEAST_HALVED
    return max(0.0, 1 - real / tried) if enough else 0.0


def noisy_sums(
    records: PrivateRecords, stages: MomentStages, n_stages: int, rng: np.random.Generator
) -> list[IntArray]:
    """Return the sums of all stages. The rows are public: what is private passes the door alone."""
    noise, sums = SeededNoise(rng), list[IntArray]()
    for _ in range(n_stages):
        exact = records.sum_at_the_door(stages.asked_after(sums))
        sums.append(exact + noise.discrete_gaussian(stages.sigma, exact.size))
    return sums


def _labels_of_student(name: str, points: Any, labels: IntArray, test: Any) -> IntArray:
    """Return what a student that learns from the model's labels says."""
    if len(set(labels.tolist())) == 1:
        return np.full(n_rows(test), labels[0])
    try:
        fitted = clone(student_by_name(name)).fit(points, labels)
        return np.asarray(fitted.predict(test), dtype=np.int64)
    except Exception as error:  # any learner may raise anything; all that it sees is public
        raise DataError(
            f"the student {name!r} cannot learn from labels of a model ({type(error).__name__});"
            " plan with another one."
        ) from None


def _estimates_of(reached: FloatArray, more: float) -> list[Estimate]:
    """Return the mean of the runs at each epsilon and what larger numbers bring, with the range in
    which nine of ten others should fall.

    Runs differ alike at all epsilons but for the noise, so that each spread leans on all of them;
    half of what is added is uncertain, too.
    """
    own = reached.var(axis=1, ddof=1)
    spread = np.sqrt((own + 2 * own.mean()) / 3 * (1 + 1 / reached.shape[1]))
    halves = DEVIATIONS * spread + more / 2
    means = np.minimum(reached.mean(axis=1) + more, 1.0)
    return [
        Estimate(float(mean), float(max(0.0, mean - half)), float(min(1.0, mean + half)))
        for mean, half in zip(means, halves, strict=True)
    ]
