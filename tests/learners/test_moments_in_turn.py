"""Stages whose scales and trees follow from the sums before: as private as any, and made again."""

import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from made_stages import stages_of, sums_of

import secretballot as sb
from secretballot.accounting import VectorSum, delta_upper
from secretballot.bases import TableBasis
from secretballot.bases.integer_model import (
    PROBABILITY_UNIT,
    IntegerLabels,
    IntegerLine,
    IntegerModel,
    Smoothed,
)
from secretballot.core.types import Guarantee
from secretballot.learners.moment_stages import CLIPPED
from secretballot.learners.moment_vectors import SCALE_UNIT, Records, Residuals
from tiny_sums import records_of, sum_of, true_delta

BOUND, UNIT, SIGMA, EPSILON = 3, 2, 4.5, 1.0
LEVELS = np.array([True])
#: Rows of two coordinates and one cell, a level.
POOL = np.array([[2, 2, 0], [-2, 2, 1], [0, 2, 0], [2, 2, 1], [2, 0, 2], [-2, 0, 2]] * 4)
SCALES = {-1: np.array([1, 3]) * SCALE_UNIT, 1: np.array([2 * SCALE_UNIT, SCALE_UNIT // 2])}
ALPHABET = [
    (a, b, cell, label) for a in (-2, 2) for b in (0, 2) for cell in (0, 1) for label in (0, 1)
]


@functools.cache
def staged(sign):
    """Return what the first stage asks, or the second: other scales and trees by the first sum."""
    nothing = np.zeros((2, 1), dtype=np.int64)
    if sign is None:
        return Residuals(IntegerModel(nothing), UNIT, BOUND)
    first = IntegerModel(np.array([[sign * 2**31], [0]]))
    before = Smoothed.of(first, POOL, LEVELS, 1)
    return Residuals(IntegerModel(nothing, before), UNIT, BOUND, scales=SCALES[sign])


@functools.cache
def counted(sign):
    """Return what is asked where the first sum counts classes."""
    if sign is None:
        return Residuals(staged(1).model, 1, BOUND, count_weight=BOUND)
    return staged(sign)


@functools.cache
def of_line(sign):
    weights = [0, 0] if sign is None else [2**28 if sign > 0 else -(2**28), 2**28]
    return Residuals(IntegerLine(np.array(weights).reshape(2, 1)), 4, BOUND)


@functools.cache
def of_labels(sign):
    weights = [0, 0] if sign is None else [2**28 if sign > 0 else -(2**28), 2**28]
    return Residuals(IntegerLabels(np.array([weights])), 4, BOUND)


@dataclass(frozen=True)
class World:
    """What is asked, which records there are, and the noise of the first sum."""

    asked: Callable[[int | None], Residuals]
    alphabet: list[tuple[int, ...]]
    parts: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    first: float = SIGMA

    def of(self, rows, persons=None):
        table = np.array(rows, dtype=np.int64).reshape(-1, len(self.alphabet[0]))
        ids = None if persons is None else np.array(persons, dtype=np.int64)
        return records_of(*self.parts(table), ids)

    def delta(self, one, other, share=1.0):
        """Return the true delta, with a share of the noise."""
        noise = {"first_sigma": share * self.first}
        return true_delta(one, other, self.asked, share * SIGMA, EPSILON, 28, **noise)


#: Targets of a number are low, in the middle, high or missing; of two labels each is there or not.
NUMBERS = [
    (*place, target)
    for place in itertools.product((-2, 1), (0, 2))
    for target in (0, PROBABILITY_UNIT // 4, PROBABILITY_UNIT, -1)
]
LABELLED = list(itertools.product((-3, 1, 2), (0, 1), (0, 1)))
WORLDS = {
    "moments": World(staged, ALPHABET, lambda table: (table[:, :3], table[:, 3])),
    "counts": World(counted, ALPHABET, lambda table: (table[:, :3], table[:, 3]), 6.0),
    "number": World(of_line, NUMBERS, lambda table: (table[:, :2], table[:, 2:])),
    "labels": World(
        of_labels, LABELLED, lambda table: (table[:, :1], table[:, 1:] * PROBABILITY_UNIT)
    ),
}
IN_ALL = pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)


def promised(first, squared):
    event = VectorSum(sigmas=(first, SIGMA), squared_sensitivity=squared, coordinates=2)
    return delta_upper([event], EPSILON)


def test_a_record_adds_one_bounded_vector_to_the_counts_of_labels():
    weight = math.isqrt(BOUND**2 // 3)
    model = IntegerLabels(np.zeros((2, 3), dtype=np.int64))
    asked = Residuals(model, 1, BOUND, count_weight=weight)
    # -1 is a label that is missing, and the largest none that is read
    for labels in itertools.product((-1, 0, PROBABILITY_UNIT, 2**40), repeat=3):
        rows = np.array([[2**40, -3]]), np.array([labels]), np.empty((1, 0), dtype=np.int64)
        total = sum_of(Records(*rows), asked)
        assert total[:3].tolist() == [weight * (one > 0) for one in labels]
        assert not total[3:].any()
        assert total @ total <= BOUND**2


def test_the_second_stage_asks_something_else_by_what_the_first_released():
    low, high = staged(-1), staged(1)
    asked = [one.model.parts_of(POOL, UNIT).ravel().tolist() for one in (low, high)]
    assert asked[0] != asked[1]
    record = WORLDS["moments"].of([ALPHABET[7]])
    assert (sum_of(record, low) != sum_of(record, high)).any()


@IN_ALL
def test_one_record_more_or_less_stays_within_the_promise(world):
    promise, alphabet = promised(world.first, BOUND**2), world.alphabet
    others = [alphabet[3], alphabet[-4]]
    found = {
        (own, more): world.delta(*pair)
        for own in alphabet[::3]
        for more, pair in enumerate(
            itertools.permutations((world.of([own, *others]), world.of(others)))
        )
    }
    assert promise / 10 < max(found.values()) <= promise
    own = max(found, key=found.__getitem__)[0]
    assert world.delta(world.of([own]), world.of([]), 0.6) > promise


@IN_ALL
def test_one_record_for_another_stays_within_twice_the_bound(world):
    promise = promised(world.first, 4 * BOUND**2)
    pairs = itertools.permutations(world.alphabet[::5], 2)
    found = [world.delta(world.of([a]), world.of([b])) for a, b in pairs]
    assert promise / 10 < max(found) <= promise


@IN_ALL
def test_all_records_of_one_person_stay_within_the_promise(world):
    promise, alphabet = promised(world.first, BOUND**2), world.alphabet
    for rows in itertools.combinations_with_replacement(alphabet[1::5], 2):
        one, other = world.of([*rows, alphabet[5]], [0, 0, 1]), world.of([alphabet[5]], [1])
        for pair in ((one, other), (other, one)):
            assert world.delta(*pair) <= promise


def test_counts_come_first_and_are_those_of_the_classes():
    one = table_stages()
    assert one.sigmas[1:] == (one.sigma,) * 3
    # a fiftieth of what all sums tell
    told = np.array(one.sigmas) ** -2.0
    assert told[0] / told.sum() == pytest.approx(0.02)
    asked, rows = one.asked_after([]), one.pool[:50]
    classes = np.arange(50) % 5 // 4
    records = records_of(rows, classes, None, np.array([[1, 0]] * 45 + [[1, 1]] * 5))
    total = sum_of(records, asked)
    counts = np.bincount(classes)
    assert total[:2].tolist() == (asked.count_weight * counts).tolist()
    assert not total[2:-2].any()
    assert total[-2:].tolist() == [50 * one.mark_weight, 5 * one.mark_weight]
    # the first stage begins at these shares
    start = one.asked_after([total]).model.predictions(one.pool) / PROBABILITY_UNIT
    assert start == pytest.approx(counts[1] / 50, abs=1e-3)
    assert one.asked_after([total - 10**9]).model.predictions(one.pool).min() > 0


def table_stages(seed=0, **more):
    """Return stages with trees, on a pool of three hundred points."""
    points = np.random.default_rng(seed).normal(size=(300, 4))
    basis = TableBasis().fit(points)
    return stages_of(basis.rows(points), levels=basis.levels_, **more)


def test_the_event_covers_every_stage_and_both_marks():
    stages = table_stages()
    asked = stages.asked_after([])
    assert asked.n_coordinates == stages.shape.coordinates == stages.n_coordinates + 2
    rest = asked.bound**2 - 2 * asked.mark_weight**2
    # what is left for the moments is the bound that was meant for them
    assert rest > 0
    assert asked.mark_weight == pytest.approx(0.1 * np.sqrt(rest), rel=0.01)
    later = stages.asked_after([sums_of(stages, 5000, 0.0, 1)])
    assert (later.bound, later.n_coordinates) == (asked.bound, asked.n_coordinates)
    # a record's vector is cut shorter than that of a person, who may have several
    person = table_stages(about=Guarantee(unit="user", relation="add-remove"))
    lengths = [one.bound / one.units[0] for one in (stages, person)]
    assert lengths[0] == pytest.approx(0.8 * lengths[1], rel=0.01)


def test_stages_begin_anew_once_more_is_uncovered_than_chance_explains():
    stages = table_stages(expected_uncovered=0.3)
    counts = sums_of(stages, 50_000, 0.31, 4)
    usual, poor = (sums_of(stages, 50_000, share, 1) for share in (0.31, 0.8))
    for before in ([], [counts], [counts, usual]):
        assert not stages.asked_after(before).without_marked
    # the counts may tell it before the first stage
    assert stages.asked_after([poor]).without_marked
    asked = stages.asked_after([counts, poor])
    assert asked.without_marked
    assert not asked.model.weights[:-1].any()  # what the first stage learnt is put aside
    later = sums_of(stages, 50_000, 0.8, 2)
    alone = stages.after([counts, poor, later]).fit.weights
    assert not np.allclose(alone, 0)
    other = sums_of(stages, 50_000, 0.8, 3)
    # but for the marks, the first stage has no say any more
    assert np.allclose(stages.after([counts, other, later]).fit.weights, alone, rtol=1e-6)


def test_what_a_stage_asks_follows_from_the_sums_and_the_pool_alone():
    rng, one, again = np.random.default_rng(1), table_stages(), table_stages()
    counts = np.zeros(one.shape.coordinates, dtype=np.int64)
    counts[:2] = one.mark_weight * 15_000, one.mark_weight * 9000
    sums = [counts]
    for _ in range(3):
        asked, other = one.asked_after(sums), again.asked_after(sums)
        assert np.array_equal(asked.scales, other.scales)
        assert np.array_equal(asked.model.predictions(one.pool), other.model.predictions(one.pool))
        # the bound holds for the same share of the pool, whatever the scales
        plain = np.linalg.norm(one.pool[:, : one.n_coordinates], axis=1)
        scaled = np.linalg.norm(asked.scaled(one.pool), axis=1)
        cut = np.quantile(plain, 1 - CLIPPED)
        assert np.quantile(scaled, 1 - CLIPPED) == pytest.approx(cut, rel=0.01)
        assert asked.bound == one.bound
        assert (asked.scales != SCALE_UNIT).any()
        total = rng.integers(-(10**8), 10**8, one.shape.coordinates)
        total[-2:] = one.mark_weight * 3000, 0
        sums.append(total)


def test_the_last_weights_correct_what_trees_smoothed_and_are_no_model_by_themselves():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(12_000, 2))
    y = (np.square(X).sum(axis=1) > 1.4).astype(int)
    learner = sb.RecordMomentsClassifier(TableBasis(n_bins=4), epsilon=2.0, delta=1e-5)
    model = learner.fit(X[:8000], y[:8000], X_public=X[8000:10_000], classes=[0, 1])
    last = model.student_
    assert len(model.certificate_["public"]["weights"]) == 4 + 1
    alone = sb.MomentsStudent(last.basis, last.weights, [0, 1])
    assert model.score(X[10_000:], y[10_000:]) > 0.8
    assert not np.array_equal(alone.predict(X[10_000:]), model.predict(X[10_000:]))
