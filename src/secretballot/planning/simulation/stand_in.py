"""A task known from a labelled stand-in: another year's data, or synthetic records."""

import copy
import math
import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.svm import LinearSVC

from secretballot._typing import IntArray
from secretballot._validation import check_count
from secretballot.accounting.recipes import Terms
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.planning.plan.model import Setting
from secretballot.planning.simulation.more_teachers import drawn_votes
from secretballot.planning.simulation.shard_votes import ShardVotes, Stock, out_of_shard_votes
from secretballot.planning.simulation.simulated_run import SimulatedRun, distinct_rows
from secretballot.planning.simulation.votes import RunOutcome, VoteModel, VoteSample
from secretballot.teachers.rows import as_table, n_rows, take_rows
from secretballot.teachers.training import Recipe

LEAST_ROWS = 40
TEST_PART = 4  # one row in so many is kept for scoring
MOST_POINTS = 4000  # that teachers vote on
MOST_TEST_ROWS = 10_000
LARGEST_PART = 0.4  # of the stock, the mean rows of the largest shards
LEAST_SHARD = 5  # mean rows of the smallest shards
SIZE_STEP = 1.04  # shard sizes are rounded to a grid with this ratio
# Between 40 and 250 teachers the forecast does not change by a quarter of its spread over stand-ins
# of 2,000 rows.
QUICK_TEACHERS, SLOW_TEACHERS = 100, 40
CACHE_BYTES = 2**26
LEAST_KEPT = 16  # shard sizes and folds, however large their votes are


class StandInModel(VoteModel):
    """Votes and students, measured on labelled rows that may be shown to anyone.

    In every fold a quarter of the rows is kept for scoring. From the rest, shards of n / K rows are
    drawn, teachers learn from them with the learner of the real run, and at each row the votes of
    those teachers are counted that did not learn from it. These rows with their votes stand for the
    public points.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n_rows, n_features)
        In the form in which the private records will be given.
    y : array of int, shape (n_rows,)
        Class indices from 0 to n_classes - 1.
    n_classes : int
    teacher : classifier
    student : classifier or None
        None takes what is measured best for the release.
    n_public : int
        Public points of the real run.
    seed : int
    n_folds : int
        The first four folds score on disjoint parts.
    n_trained : int or None
        Teachers that are trained for a forecast of any number of them; None: 100 where the learner
        is linear and there are two classes, else 40.

    Raises
    ------
    ParameterError
        If a number is out of its range, or the teacher is no classifier.
    DataError
        If X and y do not fit together, there are too few rows, or there is one class only.
    """

    source = "stand-in"

    def __init__(
        self,
        X: Any,
        y: Any,
        *,
        n_classes: int,
        teacher: Any,
        student: Any = None,
        n_public: int,
        seed: int = 0,
        n_folds: int = 4,
        n_trained: int | None = None,
    ) -> None:
        self.n_classes = check_count("n_classes", n_classes, minimum=2)
        self.n_folds = check_count("n_folds", n_folds)
        self._n_public = check_count("n_public", n_public)
        self._seed = check_count("seed", seed, minimum=0)
        self._X = as_table(X)
        self._y = _class_indices(y, n_rows(self._X), self.n_classes)
        self._teacher, self._student = teacher, student
        Recipe.of(teacher, 0)  # refuses a teacher that is no classifier before anything is trained
        quick = n_classes == 2 and _is_linear(teacher)
        default = QUICK_TEACHERS if quick else SLOW_TEACHERS
        trained = default if n_trained is None else n_trained
        self._n_trained = check_count("n_trained", trained, minimum=2)
        self.constant_accuracy = float(np.bincount(self._y).max() / len(self._y))
        self._n_stock = len(self._y) - len(self._y) // TEST_PART
        # two disjoint shards must leave rows to vote on
        self._largest_mean, self._largest = (
            int(LARGEST_PART * self._n_stock),
            int((1 + LARGEST_PART) / 3 * self._n_stock),
        )
        n_points = min(self._n_stock, MOST_POINTS)
        self.assumptions = _assumption_sentences(len(self._y), n_points, self._n_public)
        kept = max(LEAST_KEPT, CACHE_BYTES // (8 * n_points * self.n_classes))
        self._fold: Callable[[int], tuple[IntArray, IntArray]] = lru_cache(self.n_folds)(
            self._stock_and_test
        )
        self._counted: Callable[[int, int], ShardVotes] = lru_cache(kept)(self._trained_votes)

    def teacher_range(self, n_records: int) -> tuple[int, int]:
        """Return the numbers of teachers with shards of 5 rows to 30 % of the stand-in."""
        n = check_count("n_records", n_records)
        least = math.ceil(n / self._largest_mean)
        return least, max(least, n // LEAST_SHARD)

    def votes(self, n_teachers: int, n_records: int, fold: int) -> VoteSample:
        """Return votes of K teachers on shards of n / K records each.

        Raises
        ------
        ParameterError
            If K is out of `teacher_range`, or there is no such fold.
        """
        K = self._checked_teachers(n_teachers, n_records, fold)
        counted = self._counted(_on_grid(n_records / K), fold)
        rng = np.random.default_rng([self._seed, fold, 2, K, n_records])
        return VoteSample(K, drawn_votes(K, counted, rng), counted.truth)

    def can_simulate(self, setting: Setting) -> bool:
        """Return whether `simulate` can simulate a setting: an active one needs a distinct point
        per query."""
        if setting.strategy == "passive":
            return True
        n_points = min(self._n_stock, MOST_POINTS)
        repeated = max(n_points - self._n_distinct(fold) for fold in range(self.n_folds))
        return setting.n_queries <= min(self._n_public, n_points) - repeated

    def with_public(self, n_public: int) -> "StandInModel | None":
        """Return the model for another number of public points, None beyond the stand-in's rows."""
        if n_public > min(self._n_stock, MOST_POINTS):
            return None
        # shallow, so that votes already counted are shared: they do not depend on the pool's size
        other = copy.copy(self)
        other._n_public = n_public
        return other

    def simulate(self, setting: Setting, terms: Terms, n_records: int, fold: int) -> RunOutcome:
        """Return what comes of one simulated run, its student scored on the fold's held-out rows.

        Passive settings with more queries than there are stand-in points ask points several times.

        Raises
        ------
        ParameterError
            If K is out of `teacher_range`, there is no such fold, or not `can_simulate`.
        DataError
            If the student cannot learn from what would be released.
        """
        # scored on rows that neither teachers nor public points of this fold come from
        sample = self.votes(setting.n_teachers, n_records, fold)
        stock, test = self._fold(fold)
        simulated = SimulatedRun(
            take_rows(self._X, stock[: len(sample.truth)]),
            sample,
            take_rows(self._X, test),
            self._y[test],
            self._n_public,
            self._student,
        )
        seed = self._run_seed(setting, n_records, fold)
        whole = simulated.run(setting, terms, seed)
        return (
            whole
            if setting.strategy == "passive"
            else self._outcome_in_larger_pool(simulated, whole, setting, terms, seed)
        )

    def _outcome_in_larger_pool(
        self,
        simulated: SimulatedRun,
        whole: RunOutcome,
        setting: Setting,
        terms: Terms,
        seed: int,
    ) -> RunOutcome:
        """Return the outcome, its labels as they would be in a pool of the real run's size, and so
        the number of answers.

        The more points there are to choose from, the harder those that a strategy asks. Shares of
        right labels go down about linearly with the share of the pool that is asked; a pool of two
        thirds tells how steeply.
        """
        known = len(simulated.sample.truth)
        part = 2 * known // 3
        if whole.labels is None or not setting.n_queries < part or not self._n_public > known:
            return whole
        # a straight line through the two pools that can be simulated, read off at the real size
        fewer = replace(simulated, n_public=part).run(setting, terms, seed)
        if fewer.labels is None or fewer.answered is None or whole.answered is None:
            return whole
        steps = (1 - known / self._n_public) / (known / part - 1)
        labels = whole.labels - (fewer.labels - whole.labels) * steps
        answered = whole.answered - (fewer.answered - whole.answered) * steps
        most = setting.max_answers or setting.n_queries
        return replace(
            whole,
            labels=float(np.clip(labels, 0.0, 1.0)),
            answered=float(np.clip(answered, 0.0, most)),
        )

    def _checked_teachers(self, n_teachers: int, n_records: int, fold: int) -> int:
        K = check_count("n_teachers", n_teachers)
        least, most = self.teacher_range(n_records)
        if not least <= K <= most:
            raise ParameterError(
                Parameter("n_teachers"),
                f" is {K}; with {n_records} records a stand-in of {len(self._y)} rows speaks of"
                f" {least} to {most} teachers.",
            )
        if not check_count("fold", fold, minimum=0) < self.n_folds:
            raise ParameterError(
                Parameter("fold"),
                f" is {fold}; the folds of this model are 0 to {self.n_folds - 1}.",
            )
        return K

    def _stock_and_test(self, fold: int) -> tuple[IntArray, IntArray]:
        """Return the rows of a fold for shards and public points, and those that are scored."""
        turn, part = divmod(fold, TEST_PART)
        order = np.random.default_rng([self._seed, 0, turn]).permutation(len(self._y))
        n_test = len(order) // TEST_PART
        test = order[part * n_test : (part + 1) * n_test]
        stock = np.setdiff1d(order, test)
        return (
            np.random.default_rng([self._seed, 1, fold]).permutation(stock),
            test[:MOST_TEST_ROWS],
        )

    def _trained_votes(self, size: int, fold: int) -> ShardVotes:
        rows, _ = self._fold(fold)
        stock = Stock(
            take_rows(self._X, rows), self._y[rows], self.n_classes, min(len(rows), MOST_POINTS)
        )
        seed = int(np.random.SeedSequence([self._seed, fold]).generate_state(1)[0])
        return out_of_shard_votes(self._teacher, stock, size, self._n_trained, self._largest, seed)

    def _n_distinct(self, fold: int) -> int:
        stock, _ = self._fold(fold)
        return len(distinct_rows(take_rows(self._X, stock[:MOST_POINTS])))

    def _run_seed(self, setting: Setting, n_records: int, fold: int) -> int:
        """Return a seed of the setting's values."""
        # Python's own `hash` of strings differs from run to run
        names = zlib.crc32(
            "/".join((setting.mechanism, setting.release, setting.strategy)).encode()
        )
        numbers = (setting.n_teachers, setting.n_queries, setting.max_abstentions or 0, n_records)
        return int(
            np.random.SeedSequence([self._seed, fold, 3, names, *numbers]).generate_state(1)[0]
        )


def _class_indices(y: Any, n: int, n_classes: int) -> IntArray:
    labels = np.asarray(y)
    if labels.shape != (n,) or labels.dtype.kind not in "iu":
        raise DataError(
            Parameter("y"),
            f" has dtype {labels.dtype} and shape {labels.shape}; give the index of a class for"
            f" each of {n} rows.",
        )
    if not n >= LEAST_ROWS:
        raise DataError(f"the stand-in has {n} rows; give at least {LEAST_ROWS}.")
    if not (labels.min() >= 0 and labels.max() < n_classes):
        raise DataError(
            f"y holds numbers outside of 0 to {n_classes - 1}; give indices of the {n_classes}"
            " classes."
        )
    if (labels == labels[0]).all():
        raise DataError("y holds one class only; give a stand-in in which at least two occur.")
    return labels.astype(np.int64)


def _assumption_sentences(n_rows: int, n_points: int, n_public: int) -> tuple[str, ...]:
    taken = (
        f"The {n_rows} stand-in rows are like the private records and like the public points.",
        "The stand-in's labels are public or synthetic.",
    )
    if n_public <= n_points:
        return taken
    # Measured where 900 to 1,900 points stand for 2,000 to 8,000: on isotropic normal classes of 30
    # and 104 features, students of labels are forecast half a point of accuracy low, of counts one
    # to two; on Adult neither.
    few = (
        f"{n_points} stand-in points stand for {n_public} public ones and are asked again where"
        " more are to be asked, "
    )
    return (
        *taken,
        few + "so students that see more points may do a point or two of accuracy better.",
    )


def _is_linear(teacher: Any) -> bool:
    steps = getattr(teacher, "steps", None)
    return isinstance(
        steps[-1][1] if steps else teacher, LogisticRegression | RidgeClassifier | LinearSVC
    )


def _on_grid(size: float) -> int:
    """Return a shard size within about 2 % of `size`."""
    # so that neighbouring numbers of teachers share the teachers that are trained for them
    return max(1, round(SIZE_STEP ** round(math.log(size, SIZE_STEP))))
