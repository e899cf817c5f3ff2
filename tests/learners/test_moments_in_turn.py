"""Stages whose scales and trees follow from the sums before: as private as any, and made again."""

import itertools

import numpy as np
import pytest

import secretballot as sb
from made_events import sums_event
from secretballot.accounting import delta_upper
from secretballot.bases import TableBasis
from secretballot.bases.integer_model import LARGEST_COORDINATE, IntegerModel, Smoothed
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


def of(rows: list[tuple[int, ...]], persons: list[int] | None = None) -> Records:
    table = np.array(rows, dtype=np.int64).reshape(-1, 4)
    ids = None if persons is None else np.array(persons, dtype=np.int64)
    return records_of(table[:, :3], table[:, 3], ids)


def test_the_second_stage_asks_something_else_by_what_the_first_released() -> None:
    low, high = staged(-1), staged(1)
    asked = [one.model.parts_of(POOL, UNIT).ravel().tolist() for one in (low, high)]
    assert asked[0] != asked[1]
    assert (sum_of(of([ALPHABET[7]]), low) != sum_of(of([ALPHABET[7]]), high)).any()


@pytest.mark.parametrize("others", [[], [ALPHABET[3], ALPHABET[12]]])
def test_one_record_more_or_less_stays_within_the_promise(others: list[tuple[int, ...]]) -> None:
    promise = delta_upper([sums_event(SIGMA, BOUND**2, 2, 2)], EPSILON)
    found = [
        true_delta(*pair, staged, SIGMA, EPSILON)
        for own in ALPHABET
        for pair in itertools.permutations((of([own, *others]), of(others)))
    ]
    assert promise / 10 < max(found) <= promise
    own = max(ALPHABET, key=lambda one: true_delta(of([one]), of([]), staged, SIGMA, EPSILON))
    assert true_delta(of([own]), of([]), staged, 0.7 * SIGMA, EPSILON) > promise


def test_one_record_for_another_stays_within_twice_the_bound() -> None:
    promise = delta_upper([sums_event(SIGMA, 4 * BOUND**2, 2, 2)], EPSILON)
    some = ALPHABET[::3]
    pairs = itertools.permutations(some, 2)
    found = [true_delta(of([a]), of([b]), staged, SIGMA, EPSILON) for a, b in pairs]
    assert promise / 10 < max(found) <= promise


def test_all_records_of_one_person_stay_within_the_promise() -> None:
    promise = delta_upper([sums_event(SIGMA, BOUND**2, 2, 2)], EPSILON)
    for rows in itertools.product(ALPHABET[::4], repeat=2):
        one, other = of([*rows, ALPHABET[5]], [0, 0, 1]), of([ALPHABET[5]], [1])
        for pair in ((one, other), (other, one)):
            assert true_delta(*pair, staged, SIGMA, EPSILON) <= promise


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
    sums: list[np.ndarray] = []
    for _ in range(2):
        total = rng.integers(-(10**8), 10**8, one.shape.coordinates)
        total[-2:] = one.mark_weight * 3000, 0
        sums.append(total)
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
    assert one.asked_after([]).scales.tolist() == [SCALE_UNIT] * one.n_coordinates


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
