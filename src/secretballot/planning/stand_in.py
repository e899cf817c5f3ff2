"""A task known from a labelled stand-in, another year's data or synthetic records: simulated votes,
what a mechanism makes of them under seeded noise, and whole simulated runs.

No private data are read.
"""

import copy
import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import sklearn

from secretballot._seeded import seed_of
from secretballot._typing import FloatArray, IntArray
from secretballot._validation import check_count, refusal, shown
from secretballot.accounting.recipes import Terms, deviation_of_counts
from secretballot.core.mechanisms import State, plurality
from secretballot.exceptions import DataError, Parameter
from secretballot.foreign_code import isolated, one_thread
from secretballot.learners.inputs import as_matrix
from secretballot.planning.plan_model import Setting
from secretballot.queries import CheckedSelector, PublicPool, default_round_size, strategy_by_name
from secretballot.released import ReleasedLabels, labels_in
from secretballot.students import default_student, fit_student
from secretballot.teachers.ensemble import Poll, Recipe, count_ballots, train_shard
from secretballot.teachers.rows import n_rows, take_rows

# The part of the variance of shares that lies between points; the ends stand for points that are
# all alike, and for points on which all teachers agree.
_LEAST_PART, _MOST_PART = 1e-3, 1 - 1e-3


@dataclass(frozen=True, eq=False)
class VoteSample:
    """Simulated votes of K teachers of one shard size on points like the public ones; no secret.

    Attributes
    ----------
    n_teachers : int
        K.
    counts : ndarray of int64, shape (n_points, n_classes)
        Votes; every row sums to K.
    truth : ndarray of int64, shape (n_points,)
        Index of the true class of each point, the label that a record there would carry.
    """

    n_teachers: int
    counts: IntArray
    truth: IntArray


def drawn_votes(
    n_teachers: int, counts: IntArray, truth: IntArray, rng: np.random.Generator
) -> IntArray:
    """Draw votes of K teachers on disjoint shards.

    Parameters
    ----------
    n_teachers : int
        K.
    counts : ndarray of int64, shape (n_points, n_classes)
        Votes of some teachers.
    truth : ndarray of int64, shape (n_points,)
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of int64, shape (n_points, n_classes)
        Every row sums to K.

    Notes
    -----
    Teachers on disjoint shards vote independently at a point, each by the point's own shares. The
    shares are drawn from their posterior: multinomial votes, and for the points of each true class
    a Dirichlet prior whose mean and spread are read off the counts. (The counted shares themselves
    spread too widely: those of R teachers already stray by the sampling of R votes, and votes drawn
    by them stray once more.)
    """
    prior = np.empty(counts.shape)
    for label in np.unique(truth):
        here = truth == label
        prior[here] = _moment_fit(counts[here])
    shares = _rows_summing_to_one(rng.standard_gamma(prior + counts))
    return np.asarray(rng.multinomial(n_teachers, shares), dtype=np.int64)


def _rows_summing_to_one(weights: FloatArray) -> FloatArray:
    totals = weights.sum(axis=1, keepdims=True)
    # gamma draws of tiny shapes may all be 0; then nothing is known of the point, and any class is
    # as good
    return np.asarray(
        np.where(totals > 0, weights / np.where(totals > 0, totals, 1.0), 1.0 / weights.shape[1])
    )


def _moment_fit(counts: IntArray) -> FloatArray:
    """Return the Dirichlet weights with the mean and the spread of the shares, shape (n_classes,).

    With mean shares m and S = 1 - sum m^2, shares of a Dirichlet of total weight a have the summed
    variance S b where b = 1 / (a + 1), and the shares of R votes have S (b + (1 - b) / R).
    """
    seen = counts[counts.sum(axis=1) > 0]
    if not len(seen):
        return np.ones(counts.shape[1])
    totals = seen.sum(axis=1, keepdims=True)
    shares = seen / totals
    mean = shares.mean(axis=0)
    spread = 1.0 - float(mean @ mean)
    by_sampling = float((1.0 / totals).mean())
    if not spread > 0 or not by_sampling < 1:
        return np.asarray(mean)
    # what sampling alone spreads is no difference between points
    between = (float(shares.var(axis=0).sum()) / spread - by_sampling) / (1.0 - by_sampling)
    between = min(max(between, _LEAST_PART), _MOST_PART)
    return np.asarray(mean * (1.0 / between - 1.0))


class SeededNoise:
    """Draw noise for simulated runs from a seed; it protects nothing.

    It has the methods and the distributions of `core.types.Noise`, so that a simulated run goes
    through the very mechanisms of a real one. Whoever knows the seed can subtract every draw: it
    may be added to simulated votes, which are public, and to nothing else. Planning cannot import
    what releases, so what is drawn here never reaches a release; nor does it say what a certificate
    states of noise.

    Parameters
    ----------
    rng : numpy.random.Generator
        Public randomness.

    Notes
    -----
    A discrete Laplace draw is the difference of two geometric ones. A discrete Gaussian draw is a
    discrete Laplace draw y of scale t = floor(sigma) + 1, kept with probability exp(-(|y| - sigma^2
    / t)^2 / (2 sigma^2)) (Canonne, Kamath, Steinke 2020, Algorithm 3), in floating point.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def discrete_laplace(self, scale: float, size: int) -> IntArray:
        """Draw `size` integers with P(x) proportional to exp(-|x| / scale)."""
        stop = -np.expm1(-1.0 / scale)
        first, second = (self._rng.geometric(stop, size) for _ in range(2))
        return np.asarray(first - second, dtype=np.int64)

    def discrete_gaussian(self, sigma: float, size: int) -> IntArray:
        """Draw `size` integers with P(x) proportional to exp(-x^2 / (2 sigma^2))."""
        # places that were refused draw again, so that each keeps its first accepted offer
        drawn = np.empty(size, dtype=np.int64)
        waiting = np.arange(size)
        scale = np.floor(sigma) + 1.0
        while len(waiting):
            offered = self.discrete_laplace(scale, len(waiting))
            distance = np.abs(offered) - sigma**2 / scale
            kept = self._rng.random(len(waiting)) < np.exp(-(distance**2) / (2 * sigma**2))
            drawn[waiting[kept]] = offered[kept]
            waiting = waiting[~kept]
        return drawn

    def uniform_integers(self, bits: int, size: int) -> IntArray:
        """Draw `size` integers, uniform on 0, ..., 2^bits - 1."""
        return self._rng.integers(2**bits, size=size, dtype=np.int64)


_COUNTS = 20_000  # that are noised for a forecast where every query is answered by itself
_LEAST_POINTS = 200
_STREAMS = 8  # drawn of a mechanism that stops at some number of answers


@dataclass(frozen=True)
class Forecast:
    """What one setting should lead to on one sample of votes.

    Attributes
    ----------
    answered : float
        Queries that get an answer, on average.
    vote_accuracy : float
        Share of points whose exact plurality is the true class.
    label_accuracy : float
        Share of released labels that are the true class; of noisy counts, of the labels read off
        them.
    information : float
        Labels without noise that would tell a student about as much: each released value counts by
        its squared correlation with the truth. Good for ranking settings, not for predicting
        students.
    """

    answered: float
    vote_accuracy: float
    label_accuracy: float
    information: float


def forecast(sample: VoteSample, terms: Terms, seed: int = 0) -> Forecast:
    """Return what a mechanism makes of votes like these, asked about points among them at random.

    Parameters
    ----------
    sample : VoteSample
    terms : Terms
    seed : int
        Of points and noise.
    """
    rng = np.random.default_rng(seed)
    noise: Any = SeededNoise(rng)
    mechanism, shape = terms.mechanism, terms.shape
    stops = mechanism.stops_at is not None
    n_points = shape.n_queries
    if not stops:  # so many points that chance hardly matters
        n_points = max(_LEAST_POINTS, _COUNTS // shape.n_classes)
    given, right = 0, 0
    told_by_counts = None
    for _ in range(_STREAMS if stops else 1):
        rows = _queries_at_random(rng, len(sample.truth), n_points)
        votes = sample.counts[rows]
        drawn = _answers(terms, votes, noise)
        labels, counts = labels_in(mechanism, shape, drawn)
        truth = sample.truth[rows[: len(labels)]]
        given += int((labels >= 0).sum())
        right += int((labels == truth).sum())
        if counts is not None:
            told_by_counts = _told_by_counts(counts, truth, sample.n_teachers)
    asked = n_points * (_STREAMS if stops else 1)
    answered, vote = shape.n_queries * given / asked, vote_accuracy(sample)
    accuracy = right / given if given else vote
    useful = _told_by_label(accuracy, shape.n_classes) if told_by_counts is None else told_by_counts
    return Forecast(answered, vote, accuracy, answered * useful)


def _answers(terms: Terms, votes: IntArray, noise: Any) -> IntArray:
    """Return what a mechanism answers to votes of shape (n_queries, n_classes), one row each, up to
    where it stops."""
    drawn, _ = terms.mechanism.draw(terms.shape, (votes, np.zeros_like(votes)), noise, State())
    return drawn


def _queries_at_random(rng: np.random.Generator, n_points: int, n_queries: int) -> IntArray:
    """Return places of points that are asked: all equally often, but for one more here and there,
    as real queries are all at distinct points."""
    turns = -(-n_queries // n_points)
    return np.concatenate([rng.permutation(n_points) for _ in range(turns)])[:n_queries]


def vote_accuracy(sample: VoteSample) -> float:
    """Return the share of points whose plurality, without noise, is the true class."""
    return float(np.mean(plurality(sample.counts) == sample.truth))


def _told_by_label(accuracy: float, n_classes: int) -> float:
    """Return (1 - eta C / (C - 1))^2, eta the share of wrong labels: 1 for the truth, 0 for a
    guess."""
    return max(0.0, (accuracy - 1 / n_classes) / (1 - 1 / n_classes)) ** 2


def _told_by_counts(counts: IntArray, truth: IntArray, n_teachers: int) -> float:
    """Return the squared correlation of the true class's noisy lead over the mean of the others
    with the truth."""
    lead: FloatArray
    if counts.ndim == 1:  # of two classes the votes for class 1 alone
        lead = np.where(truth == 1, 1.0, -1.0) * (2.0 * counts - n_teachers)
    else:
        own = counts[np.arange(len(truth)), truth].astype(np.float64)
        lead = own - (counts.sum(axis=1) - own) / (counts.shape[1] - 1)
    return max(0.0, float(lead.mean())) ** 2 / max(1e-300, float(np.mean(lead**2)))


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
        asked = _queries_at_random(rng, len(counts), setting.n_queries)
        given = _answers(terms, counts[asked], noise)
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
        given = np.concatenate([given, _answers(terms, counts[places[proposed]], noise)])
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
_TRAINED = 40
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
    sizes = np.minimum(np.random.default_rng([seed, 0]).poisson(size, _TRAINED), largest)
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
        raise refusal(
            "like", f" is {shown(like)}; give a pair (X, y) of labelled rows that are not private."
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
        raise refusal(
            "like",
            f" has {len(values)} classes and n_classes is {given}; give at least as many, and at"
            f" most {MOST_CLASSES:,}.",
        )
    if len(values) == given:
        return X, places.astype(np.int64), given
    if labels.dtype.kind not in "iu" or values.min() < 0 or values.max() >= given:
        raise refusal(
            "like",
            f" has {len(values)} of {given} classes; then give y as indices from 0 to"
            f" {given - 1}, so that it is clear which.",
        )
    return X, labels.astype(np.int64), given
