"""Sums in which groups of records have budgets of their own: each group's promise holds, exactly.

Two stages of two numbers in a world so small that every outcome can be listed, on all neighbours of
each group.
"""

import itertools
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from tiny_sums import true_delta

from secretballot.bases.integer_model import (
    LARGEST_COORDINATE,
    PROBABILITY_UNIT,
    IntegerModel,
)
from secretballot.bases.integer_targets import IntegerLine
from secretballot.exceptions import DataError
from secretballot.privacy.accounting import (
    PrivacyBudget,
    VectorSumEvent,
    delta_upper,
    largest_vector_bound,
)
from secretballot.records import PrivateRecords, Residuals, vector_sums
from secretballot.records.vector_sums import PrivateTargets

SIGMA, EPSILON, REACH = 9.0, 0.5, 75
BOUND, UNIT, WEIGHT = 16, 2, 4
GROUPS = (5, 16)  # bounds: of the strict, and of the open
#: A coordinate of 2 is a logit of 4.
STEEP = 2**31
#: Coordinate, class and group of a record; long ones are cut to the bound first.
ALPHABET = [(a, label, group) for a in (-20, -7, 1, 15) for label in (0, 1) for group in (0, 1)]
OTHERS = [ALPHABET[0], ALPHABET[7], ALPHABET[13]]

Row = tuple[int, int, int]


def staged(sign: int | None) -> Residuals:
    """Return what the first stage asks, or the second, by the sign of the first sum."""
    weights = [0] if sign is None else [STEEP if sign > 0 else -STEEP]
    model = IntegerModel(np.array(weights).reshape(1, 1))
    return Residuals(model, UNIT, BOUND, WEIGHT, 1, group_bounds=GROUPS)


def records_of(rows: Sequence[Row], persons: Sequence[int] | None = None) -> PrivateRecords:
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    owners = None if persons is None else np.array(persons, dtype=np.int64)
    marks = np.ones((len(table), 1), dtype=np.int64)
    return PrivateRecords(table[:, :1], table[:, 1], 2, owners, marks, table[:, 2])


def promised(group: int, *, replaced: bool = False) -> float:
    squared = (4 if replaced else 1) * GROUPS[group] ** 2
    return delta_upper([VectorSumEvent(SIGMA, squared, 2, 2)], EPSILON)


def worst_of(group: int, make: Callable[..., PrivateRecords] = records_of) -> float:
    """Return the largest delta of neighbours that differ in one record of a group."""
    return max(
        true_delta(*pair, staged, SIGMA, EPSILON, REACH)
        for own in ALPHABET
        if own[2] == group
        for pair in itertools.permutations((make([own, *OTHERS]), make(OTHERS)))
    )


@pytest.mark.parametrize("group", [0, 1])
def test_all_neighbours_of_a_group_stay_within_its_promise(group: int) -> None:
    worst = worst_of(group)
    # the price is neither too small nor an idle bound
    assert promised(group) / 2 < worst <= promised(group)
    # and the groups differ: what the open are promised would be too little for the strict
    assert group == 0 or worst > 4 * promised(0)


@pytest.mark.parametrize("group", [0, 1])
def test_a_record_replaced_by_another_of_its_group_stays_within_the_promise(group: int) -> None:
    own = [row for row in ALPHABET if row[2] == group]
    worst = max(
        true_delta(
            records_of([one, OTHERS[0]]),
            records_of([other, OTHERS[0]]),
            staged,
            SIGMA,
            EPSILON,
            100,
        )
        for one, other in itertools.permutations(own, 2)
    )
    assert promised(group, replaced=True) / 8 < worst <= promised(group, replaced=True)


def test_all_records_of_a_person_together_stay_within_the_promise() -> None:
    rows = [(15, 1, 0), (20, 1, 0), (7, 1, 0)]
    for rest in ([], OTHERS):
        one = records_of([*rows, *rest], [0, 0, 0, *range(1, 1 + len(rest))])
        other = records_of(rest, range(len(rest)))
        for pair in ((one, other), (other, one)):
            assert true_delta(*pair, staged, SIGMA, EPSILON, REACH) <= promised(0)
    # counted as three records they would break it
    apart = records_of(rows), records_of([])
    assert true_delta(*apart, staged, SIGMA, EPSILON, REACH) > promised(0)


def test_a_person_in_two_groups_is_refused_without_a_name() -> None:
    rows = [(15, 1, 0), (15, 1, 1), (2, 0, 1)]
    with pytest.raises(DataError, match="more than one budget group") as refused:
        records_of(rows, [7, 7, 8])
    assert "7" not in str(refused.value)
    # bounded by either group's bound, that person would not have the other's promise
    wide = records_of([(15, 1, 1), (15, 1, 1), (2, 0, 1)], [7, 7, 8])
    assert true_delta(wide, records_of([(2, 0, 1)], [8]), staged, SIGMA, EPSILON, REACH) > promised(
        0
    )


@pytest.mark.parametrize("bound", [7, 1000, vector_sums.LARGEST_BOUND])
@pytest.mark.parametrize("kind", [PrivateRecords, PrivateTargets])
def test_no_unit_of_a_group_is_longer_than_its_bound(kind: type, bound: int) -> None:
    rng = np.random.default_rng(bound)
    bounds = (max(1, bound // 11), max(1, bound // 3), bound)
    n_rows, width = 5, 4
    longest = 0.0
    for trial in range(60):
        columns = 3
        size = LARGEST_COORDINATE if trial % 2 else 40
        coordinates = rng.integers(-size, size + 1, (n_rows, width))
        model: IntegerModel | IntegerLine
        if kind is PrivateRecords:
            targets, model = (
                rng.integers(0, columns, n_rows),
                IntegerModel.of(np.zeros((width, columns))),
            )
        else:
            targets = rng.integers(-1, PROBABILITY_UNIT + 1, (n_rows, columns))
            model = IntegerLine.of(np.zeros((width, columns)))
        unit = int(rng.choice([1, 64, vector_sums.LARGEST_UNIT]))
        asked = Residuals(model, unit, bound, bound // 5, 2, bool(trial % 3), bounds)
        for group in range(3):
            for persons in (None, np.zeros(n_rows, dtype=np.int64)):
                rows = slice(0, 1) if persons is None else slice(None)
                count = len(coordinates[rows])
                marks, own = rng.integers(0, 2, (count, 2)), np.full(count, group)
                classes = (columns,) if kind is PrivateRecords else ()
                records = kind(
                    coordinates[rows],
                    targets[rows],
                    *classes,
                    persons=persons,
                    marks=marks,
                    groups=own,
                )
                total = records.sum_at_the_door(asked)
                squared = sum(int(entry) ** 2 for entry in total)
                assert squared <= bounds[group] ** 2
                longest = max(longest, squared / bounds[group] ** 2)
    # the bound is no idle one
    assert longest > 0.5


def test_a_record_that_is_not_shrunk_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_sums, "_kept_of_groups", lambda kept, *rest: kept)
    assert worst_of(0) > promised(0)


def test_marks_that_are_not_shrunk_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = vector_sums._shrunk_rows

    def whole_marks(values: np.ndarray, bounds: np.ndarray, whole: int) -> np.ndarray:
        return values if values.ndim == 1 else honest(values, bounds, whole)

    monkeypatch.setattr(vector_sums, "_shrunk_rows", whole_marks)
    # the check in integers leaves such a record no room for anything else
    assert worst_of(0) <= promised(0)

    def unchecked(
        kept: np.ndarray,
        residuals: np.ndarray,
        bounds: np.ndarray,
        weights: np.ndarray,
        asked: Residuals,
    ) -> np.ndarray:
        return honest(kept, bounds, asked.bound)

    monkeypatch.setattr(vector_sums, "_kept_of_groups", unchecked)
    assert worst_of(0) > promised(0)


def test_less_noise_than_stated_would_be_seen() -> None:
    one, other = records_of([(-20, 1, 0), *OTHERS]), records_of(OTHERS)
    assert true_delta(one, other, staged, 0.5 * SIGMA, EPSILON, REACH) > promised(0)


def test_the_bound_of_a_group_is_the_largest_that_its_budget_allows() -> None:
    event = VectorSumEvent(4e5, 4 * 10**10, 30, 4)
    whole = delta_upper([event], 1.0)
    for epsilon in (0.05, 0.3, 0.99):
        budget = PrivacyBudget(epsilon, whole)
        found = largest_vector_bound(budget, event, 10**5)
        assert delta_upper([VectorSumEvent(4e5, 4 * found**2, 30, 4)], epsilon) <= whole
        assert delta_upper([VectorSumEvent(4e5, 4 * (found + 1) ** 2, 30, 4)], epsilon) > whole
    assert largest_vector_bound(PrivacyBudget(1.0, whole), event, 10**5) == 10**5
    assert largest_vector_bound(PrivacyBudget(1e-9, 1e-12), event, 10**5) == 0
