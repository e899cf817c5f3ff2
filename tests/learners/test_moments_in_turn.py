"""Stages whose scales and trees follow from the sums before: as private as any, and made again."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

import secretballot as sb
from secretballot.accounting import VectorSum, delta_upper
from secretballot.bases import TableBasis
from secretballot.bases.integer_model import (
    LARGEST_COORDINATE,
    PROBABILITY_UNIT,
    IntegerLabels,
    IntegerModel,
    Smoothed,
)
from secretballot.core.types import Guarantee
from secretballot.learners.moments.stages import CLIPPED, MomentStages, MomentTarget
from secretballot.learners.moments.vectors import (
    LARGEST_SCALE,
    SCALE_UNIT,
    Records,
    Residuals,
    vector_sums,
)
from tiny_sums import records_of, sum_of, true_delta

BOUND, UNIT, SIGMA, EPSILON = 3, 2, 4.5, 1.0
LEVELS = np.array([True])
#: Rows of two coordinates and one cell, a level.
POOL = np.array([[2, 2, 0], [-2, 2, 1], [0, 2, 0], [2, 2, 1], [2, 0, 2], [-2, 0, 2]] * 4)
SCALES = {-1: np.array([1, 3]) * SCALE_UNIT, 1: np.array([2 * SCALE_UNIT, SCALE_UNIT // 2])}
ALPHABET = [
    (a, b, cell, label) for a in (-2, 2) for b in (0, 2) for cell in (0, 1) for label in (0, 1)
]


def staged(sign: int | None) -> Residuals:
    """Return what the first stage asks, or the second: other scales and trees by the first sum."""
    nothing = np.zeros((2, 1), dtype=np.int64)
    if sign is None:
        return Residuals(IntegerModel(nothing), UNIT, BOUND)
    first = IntegerModel(np.array([[sign * 2**31], [0]]))
    before = Smoothed.of(first, POOL, LEVELS, 1)
    return Residuals(IntegerModel(nothing, before), UNIT, BOUND, scales=SCALES[sign])


def counted(sign: int | None) -> Residuals:
    """Return what is asked where the first sum counts classes."""
    if sign is None:
        return Residuals(staged(1).model, 1, BOUND, count_weight=BOUND)
    return staged(sign)


#: What is asked, and the noise of the first sum.
BEGUN = [pytest.param(staged, SIGMA, id="moments"), pytest.param(counted, 6.0, id="counts")]


def promised(first: float, squared: int) -> float:
    event = VectorSum(sigmas=(first, SIGMA), squared_sensitivity=squared, coordinates=2)
    return delta_upper([event], EPSILON)


def of(rows: list[tuple[int, ...]], persons: list[int] | None = None) -> Records:
    table = np.array(rows, dtype=np.int64).reshape(-1, 4)
    ids = None if persons is None else np.array(persons, dtype=np.int64)
    return records_of(table[:, :3], table[:, 3], ids)


def test_a_record_adds_one_bounded_vector_to_the_counts_of_labels() -> None:
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


def test_the_second_stage_asks_something_else_by_what_the_first_released() -> None:
    low, high = staged(-1), staged(1)
    asked = [one.model.parts_of(POOL, UNIT).ravel().tolist() for one in (low, high)]
    assert asked[0] != asked[1]
    assert (sum_of(of([ALPHABET[7]]), low) != sum_of(of([ALPHABET[7]]), high)).any()


@pytest.mark.parametrize(("asked", "first"), BEGUN)
def test_one_record_more_or_less_stays_within_the_promise(asked: Any, first: float) -> None:
    promise, others = promised(first, BOUND**2), [ALPHABET[3], ALPHABET[12]]
    found = {
        (own, more): true_delta(*pair, asked, SIGMA, EPSILON, first_sigma=first)
        for own in ALPHABET[::2] + ALPHABET[1::4]
        for more, pair in enumerate(itertools.permutations((of([own, *others]), of(others))))
    }
    assert promise / 10 < max(found.values()) <= promise
    own = max(found, key=found.__getitem__)[0]
    less = 0.7 * SIGMA
    assert true_delta(of([own]), of([]), asked, less, EPSILON, first_sigma=0.7 * first) > promise


@pytest.mark.parametrize(("asked", "first"), BEGUN)
def test_one_record_for_another_stays_within_twice_the_bound(asked: Any, first: float) -> None:
    promise = promised(first, 4 * BOUND**2)
    pairs = itertools.permutations(ALPHABET[::5], 2)
    found = [
        true_delta(of([a]), of([b]), asked, SIGMA, EPSILON, first_sigma=first) for a, b in pairs
    ]
    assert promise / 10 < max(found) <= promise


@pytest.mark.parametrize(("asked", "first"), BEGUN)
def test_all_records_of_one_person_stay_within_the_promise(asked: Any, first: float) -> None:
    promise = promised(first, BOUND**2)
    for rows in itertools.combinations_with_replacement(ALPHABET[1::5], 2):
        one, other = of([*rows, ALPHABET[5]], [0, 0, 1]), of([ALPHABET[5]], [1])
        for pair in ((one, other), (other, one)):
            assert true_delta(*pair, asked, SIGMA, EPSILON, first_sigma=first) <= promise


@pytest.mark.parametrize("unit", ["record", "user"])
def test_no_row_is_longer_than_the_bound_whatever_it_holds(unit: str) -> None:
    """Coordinates, cells and scales at their ends, and beyond."""
    guarantee = Guarantee.model_validate({"unit": unit, "relation": "add-remove"})
    ends = [-(2**40), -LARGEST_COORDINATE, -1, 0, 1, LARGEST_COORDINATE, 2**40]
    persons = np.zeros(1, dtype=np.int64) if unit == "user" else None
    marks = np.array([[1, 0]])
    before = staged(1).model.before
    for scales in ([1, LARGEST_SCALE], [LARGEST_SCALE, LARGEST_SCALE], [1, 1]):
        model = IntegerModel(np.array([[2**20], [-(2**20)]]), before)
        asked = Residuals(model, 1024, 50_000, 5000, 2, False, np.array(scales))
        for row in itertools.product(ends, ends, (-(2**40), 0, 2**40)):
            records = records_of(np.array([row]), np.array([1]), persons, marks)
            total = vector_sums([[records]], asked, guarantee)._unseal()[0]
            assert np.square(total.astype(object)).sum() <= asked.bound**2


def test_counts_come_first_and_are_those_of_the_classes() -> None:
    one = stages_of(np.random.default_rng(0).normal(size=(300, 4)))
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


def stages_of(points: np.ndarray) -> MomentStages:
    basis = TableBasis().fit(points)
    return MomentStages.of_records(
        basis.rows(points),
        MomentTarget.of_classes(range(2)),
        sb.PrivacyBudget(1.0, 1e-5),
        Guarantee(unit="record", relation="add-remove"),
        n_stages=3,
        n_records=None,
        expected_uncovered=0.0,
        levels=basis.levels_,
    )


def test_what_a_stage_asks_follows_from_the_sums_and_the_pool_alone() -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(300, 4))
    one, again = stages_of(points), stages_of(points.copy())
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


def test_the_last_weights_correct_what_trees_smoothed_and_are_no_model_by_themselves() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(12_000, 2))
    y = (np.square(X).sum(axis=1) > 1.4).astype(int)
    learner = sb.RecordMomentsClassifier(TableBasis(n_bins=4), epsilon=2.0, delta=1e-5)
    model = learner.fit(X[:8000], y[:8000], X_public=X[8000:10_000], classes=[0, 1])
    last = model.student_
    alone = sb.MomentsStudent(last.basis, last.weights, [0, 1])
    assert model.score(X[10_000:], y[10_000:]) > 0.8
    assert not np.array_equal(alone.predict(X[10_000:]), model.predict(X[10_000:]))
