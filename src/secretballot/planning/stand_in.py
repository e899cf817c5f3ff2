"""A task known from a labelled stand-in: another year's data, or synthetic records."""

import copy
import math
import zlib
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import sklearn

from secretballot._seeded import seed_of
from secretballot._typing import IntArray
from secretballot._validation import check_count, shown
from secretballot.accounting.recipes import Terms, deviation_of_counts
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.foreign_code import isolated, one_thread
from secretballot.learners.inputs import as_matrix
from secretballot.planning.plan_model import Setting
from secretballot.planning.votes_forecast import (
    SeededNoise,
    VoteSample,
    answers,
    drawn_votes,
    queries_at_random,
)
from secretballot.queries import CheckedSelector, PublicPool, default_round_size, strategy_by_name
from secretballot.released import ReleasedLabels, labels_in
from secretballot.students import default_student, fit_student
from secretballot.teachers.ensemble import Poll, Recipe, count_ballots, train_shard
from secretballot.teachers.rows import n_rows, take_rows


class RunOutcome(NamedTuple):
    """Of one simulated run, the accuracy of the student on new points, and how many queries got an
    answer."""

    student: float
    answered: float


def simulated_run(
    points: Any,
    sample: VoteSample,
    scored: tuple[Any, IntArray],
    setting: Setting,
    terms: Terms,
    seed: int,
    *,
    n_public: int,
    student: Any = None,
) -> RunOutcome:
    """Return what comes of one run.

    Parameters
    ----------
    points : array, sparse matrix or frame of shape (n_points, n_features)
        The points of `sample`.
    sample : VoteSample
    scored : (array, sparse matrix or frame, ndarray of int64)
        Points to score the student on, of shape (n_test, n_features), with their class indices.
    setting : Setting
    terms : Terms
        With the noise of the run.
    seed : int
        Fixes the public points, the noise and the student's randomness.
    n_public : int
        Public points that the run imitates; the student sees so many of `points`, or all of them.
    student : classifier or None
        None takes what is measured best for the release.

    Raises
    ------
    DataError
        If the student cannot learn from what would be released.
    """
    rng = np.random.default_rng(seed)
    public = rng.permutation(len(sample.truth))[:n_public]
    points, counts = take_rows(points, public), sample.counts[public]
    # a learner without a seed of its own draws from the global generators, which are seeded here
    with one_thread(), isolated(seed % 2**32, sklearn.get_config()):
        released = _simulated_release(points, counts, setting, terms, rng)
        learner = default_student(released) if student is None else student
        fitted = fit_student(learner, points, released, random_state=seed % 2**32)
        accuracy = float(np.mean(np.asarray(fitted.predict(scored[0])) == scored[1]))
    return RunOutcome(accuracy, float(released.answered.sum()))


def _simulated_release(
    points: Any, counts: IntArray, setting: Setting, terms: Terms, rng: np.random.Generator
) -> ReleasedLabels:
    """Answer random points, of which too few are asked again, under fresh noise; or what a strategy
    asks in rounds, every distinct point once, by a mechanism that answers everything."""
    noise, n_classes = SeededNoise(rng), counts.shape[1]

    def released(queries: IntArray, values: IntArray) -> ReleasedLabels:
        labels, noisy = labels_in(terms.mechanism, terms.shape, values)
        return ReleasedLabels(
            queries=queries,
            labels=labels,
            classes=tuple(range(n_classes)),
            n_teachers=setting.n_teachers,
            sigma=deviation_of_counts(terms.mechanism),
            noisy_counts=noisy,
            certificate={"simulated": True},
        )

    if setting.strategy == "passive":
        asked = queries_at_random(rng, len(counts), setting.n_queries)
        given = answers(terms, counts[asked], noise)
        return released(asked[: len(given)], given)
    places = _distinct_rows(points)
    # rounds as in a real run: what a strategy asks next depends on what was answered so far
    distinct, seed = take_rows(points, places), int(rng.integers(2**31))
    pool = PublicPool(distinct, tuple(range(n_classes)), setting.n_queries, seed)
    selector = CheckedSelector(strategy_by_name(setting.strategy), pool)
    asked = np.empty(0, dtype=np.int64)
    given = np.empty((0, terms.mechanism.answer_shape(terms.shape)[1]), dtype=np.int64)
    size = default_round_size(setting.n_queries)
    while len(asked) < setting.n_queries:
        proposed = selector.propose(min(size, setting.n_queries - len(asked)))
        if not len(proposed):
            break
        given = np.concatenate([given, answers(terms, counts[places[proposed]], noise)])
        asked = np.concatenate([asked, proposed])
        selector.receive(released(asked, given))
    return released(places[asked], given)


def _distinct_rows(X: Any) -> IntArray:
    """Return the places of the distinct rows of a table, of equal ones the first, in rising order.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n, n_features)
    """
    if hasattr(X, "iloc"):
        return np.flatnonzero(~X.duplicated().to_numpy())
    rows = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    return np.sort(np.unique(rows, axis=0, return_index=True)[1])


_LEAST_ROWS = 100
MOST_CLASSES = 1000  # work and memory grow with them
_TEST_PART = 4  # one row in so many is kept for scoring
_MOST_POINTS = 4000  # that teachers vote on
_MOST_TEST_ROWS = 10_000
_LARGEST_PART = 0.4  # of the stock, the mean rows of the largest shards
_LEAST_SHARD = 5  # mean rows of the smallest shards
_SIZE_STEP = 1.1  # shard sizes are rounded to a grid with this ratio
# Teachers that are trained for a forecast of any number of them: between 40 and 250 the forecast
# does not change by a quarter of its spread over stand-ins of 2,000 rows.
TRAINED = 40
_CACHE_BYTES = 2**26
_LEAST_KEPT = 16  # shard sizes and folds, however large their votes are


class StandInModel:
    """Votes and students, measured on labelled rows that may be shown to anyone.

    In every fold a quarter of the rows is kept for scoring. From the rest, shards of n / K rows are
    drawn, teachers learn from them with the learner of the real run, and at each row the votes of
    those teachers are counted that did not learn from it. These rows with their votes stand for the
    public points. Folds are as like each other as two runs of the real thing, so that the spread
    over them says how sure a forecast is.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n_rows, n_features)
        In the form in which the private records will be given.
    y : ndarray of int64, shape (n_rows,)
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

    Raises
    ------
    ParameterError
        If the teacher is no classifier.

    Attributes
    ----------
    constant_accuracy : float
        Accuracy of always saying the most frequent class.
    """

    def __init__(
        self,
        X: Any,
        y: IntArray,
        *,
        n_classes: int,
        teacher: Any,
        student: Any = None,
        n_public: int,
        seed: int = 0,
        n_folds: int = 4,
    ) -> None:
        self.n_classes, self.n_folds = n_classes, n_folds
        self._n_public, self._seed = n_public, seed
        self._X, self._y = as_matrix("X of like", X), y
        self._teacher, self._student = teacher, student
        Recipe.of(teacher, 0)  # refuses a teacher that is no classifier before anything is trained
        self.constant_accuracy = float(np.bincount(y).max() / len(y))
        self._n_stock = len(y) - len(y) // _TEST_PART
        self._n_points = min(self._n_stock, _MOST_POINTS)
        # two disjoint shards must leave rows to vote on
        self._largest_mean, self._largest = (
            int(_LARGEST_PART * self._n_stock),
            int((1 + _LARGEST_PART) / 3 * self._n_stock),
        )
        kept = max(_LEAST_KEPT, _CACHE_BYTES // (8 * self._n_points * n_classes))
        self._fold = lru_cache(n_folds)(self._stock_and_test)
        self._counted = lru_cache(kept)(self._trained_votes)
        self.votes = lru_cache(kept)(self._drawn_votes)

    def teacher_range(self, n_records: int) -> tuple[int, int]:
        """Return the numbers of teachers with shards of 5 rows to 30 % of the stand-in."""
        least = math.ceil(n_records / self._largest_mean)
        return least, max(least, n_records // _LEAST_SHARD)

    def _drawn_votes(self, n_teachers: int, n_records: int, fold: int) -> VoteSample:
        """Return votes of K teachers, a number in `teacher_range`, on shards of n / K records."""
        counted = self._counted(_on_grid(n_records / n_teachers), fold)
        rng = np.random.default_rng([self._seed, fold, 2, n_teachers, n_records])
        truth = self._y[self._fold(fold)[0][: self._n_points]]
        return VoteSample(n_teachers, drawn_votes(n_teachers, counted, truth, rng), truth)

    def can_simulate(self, setting: Setting) -> bool:
        """Return whether `simulate` can simulate a setting: an active one needs a point per query,
        and ends early where some are alike."""
        if setting.strategy == "passive":
            return True
        return setting.n_queries <= min(self._n_public, self._n_points)

    def with_public(self, n_public: int) -> "StandInModel | None":
        """Return the model for another number of public points, None beyond the stand-in's rows."""
        if n_public > self._n_points:
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
        DataError
            If the student cannot learn from what would be released.
        """
        # scored on rows that neither teachers nor public points of this fold come from
        sample = self.votes(setting.n_teachers, n_records, fold)
        stock, test = self._fold(fold)
        # Python's own `hash` of strings differs from run to run
        named = zlib.crc32(repr((setting, n_records)).encode())
        return simulated_run(
            take_rows(self._X, stock[: len(sample.truth)]),
            sample,
            (take_rows(self._X, test), self._y[test]),
            setting,
            terms,
            seed_of(self._seed, fold, 3, named),
            n_public=self._n_public,
            student=self._student,
        )

    def _stock_and_test(self, fold: int) -> tuple[IntArray, IntArray]:
        """Return the rows of a fold for shards and public points, and those that are scored."""
        turn, part = divmod(fold, _TEST_PART)
        order = np.random.default_rng([self._seed, 0, turn]).permutation(len(self._y))
        n_test = len(order) // _TEST_PART
        test = order[part * n_test : (part + 1) * n_test]
        stock = np.setdiff1d(order, test)
        return (
            np.random.default_rng([self._seed, 1, fold]).permutation(stock),
            test[:_MOST_TEST_ROWS],
        )

    def _trained_votes(self, size: int, fold: int) -> IntArray:
        """Return votes on the first points of a fold's stock, shape (n_points, n_classes), of
        teachers with shards of a mean size, each on the points that it has not seen.

        Rows differ in their sum. Shards are cut off the shuffled stock, disjoint, until it is used
        up, and it is shuffled anew. Those of one shuffling are to each other what real ones are.
        Those of two share rows, so that on all of them together teachers agree too well, by a share
        of about shard size / stock size of their variance: with shards of a tenth of the stock that
        moves the share of right votes by one or two points at most. (Drawing rows with replacement
        gives teachers the right spread, but around a model of the stock rather than of the
        distribution behind it: each of them is then less accurate than a real one.)
        """
        rows, _ = self._fold(fold)
        X, y, seed = take_rows(self._X, rows), self._y[rows], seed_of(self._seed, fold)
        recipe = Recipe.of(self._teacher, seed)
        points = take_rows(X, np.arange(self._n_points))
        ask = (self.n_classes, self._n_points, seed, sklearn.get_config())
        counts = np.zeros((self._n_points, self.n_classes), dtype=np.int64)
        with one_thread():
            for number, own in enumerate(_simulated_shards(len(y), size, self._largest, seed)):
                model = train_shard(recipe, take_rows(X, own), y[own], number)
                ballots = count_ballots({number: model}, Poll(points, *ask))
                # a teacher knows the rows that it learnt from, and would vote too well on them
                ballots[own[own < self._n_points]] = 0
                counts += ballots
        return counts


def _simulated_shards(n_rows: int, size: float, largest: int, seed: int) -> Iterator[IntArray]:
    """Yield the rows of a shard for each teacher. Sizes follow a Poisson distribution, as the
    shards of n records do under a keyed hash but for a factor 1 - 1 / K in their variance."""
    sizes = np.minimum(np.random.default_rng([seed, 0]).poisson(size, TRAINED), largest)
    shuffling, start, order = 0, 0, np.random.default_rng([seed, 1]).permutation(n_rows)
    for rows in sizes.tolist():
        if start + rows > len(order):
            shuffling, start = shuffling + 1, 0
            order = np.random.default_rng([seed, 1 + shuffling]).permutation(n_rows)
        yield order[start : start + rows]
        start += rows


def _on_grid(size: float) -> int:
    """Return a shard size within about 5 % of `size`."""
    # so that neighbouring numbers of teachers share the teachers that are trained for them
    return max(1, round(_SIZE_STEP ** round(math.log(size, _SIZE_STEP))))


def checked_stand_in(like: object, n_classes: int | None) -> tuple[Any, IntArray, int]:
    """Return the rows of a stand-in, their classes as indices, and the number of classes.

    Raises
    ------
    ParameterError, DataError
        If it is no pair of rows and classes, has too few rows, or does not fit the number of
        classes.
    """
    if not isinstance(like, tuple | list) or len(like) != 2:
        raise ParameterError(
            Parameter("like"),
            f" is {shown(like)}; give a pair (X, y) of labelled rows that are not private.",
        )
    X, y = like
    labels = np.asarray(y)
    if labels.ndim != 1 or not n_rows(X) == len(labels) >= _LEAST_ROWS:
        raise DataError(
            Parameter("like"),
            f" has {n_rows(X)} rows and y the shape {labels.shape}; give one class for each row,"
            f" and at least {_LEAST_ROWS} rows.",
        )
    try:
        values, places = np.unique(labels, return_inverse=True)
    except TypeError:  # texts among numbers
        values = labels[:0]
    if len(values) < 2 or (labels.dtype.kind == "f" and not np.isfinite(values).all()):
        raise DataError(
            "y of like holds one class only, values of several kinds, or missing or infinite ones;"
            " give classes of one kind, of which at least two occur."
        )
    # with all classes present their sorted order is their index; with fewer, only the caller knows
    given = len(values) if n_classes is None else check_count("n_classes", n_classes, minimum=2)
    if not len(values) <= given <= MOST_CLASSES:
        raise ParameterError(
            Parameter("like"),
            f" has {len(values)} classes and n_classes is {given}; give at least as many, and at"
            f" most {MOST_CLASSES:,}.",
        )
    if len(values) == given:
        return X, places.astype(np.int64), given
    if labels.dtype.kind not in "iu" or values.min() < 0 or values.max() >= given:
        raise ParameterError(
            Parameter("like"),
            f" has {len(values)} of {given} classes; then give y as indices from 0 to"
            f" {given - 1}, so that it is clear which.",
        )
    return X, labels.astype(np.int64), given
