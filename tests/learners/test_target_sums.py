"""Sums over records whose target is a number are released alike, at the same price."""

import itertools

import numpy as np
import pytest

from made_events import sums_event
from secretballot.accounting import delta_upper
from secretballot.bases.integer_model import PROBABILITY_UNIT, IntegerLabels, IntegerLine
from secretballot.learners.moments.vectors import Records, Residuals
from tiny_sums import records_of, true_delta

BOUND, UNIT = 3, 4
#: A coordinate of 1 moves the prediction by a quarter.
STEEP = 2**28
EPSILON, SIGMA = 1.0, 4.5
HALF = PROBABILITY_UNIT // 2
#: Coordinates and target of a record: low, in the middle, high, missing.
ALPHABET = [
    (a, b, target)
    for a, b in itertools.product((-2, 1), (0, 2))
    for target in (0, HALF // 2, PROBABILITY_UNIT, -1)
]


def staged(sign: int | None) -> Residuals:
    weights = [0, 0] if sign is None else [STEEP if sign > 0 else -STEEP, STEEP]
    return Residuals(IntegerLine(np.array(weights).reshape(2, 1)), UNIT, BOUND)


def numbered(rows: list[tuple[int, int, int]]) -> Records:
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    return records_of(table[:, :2], table[:, 2:])


@pytest.mark.parametrize("replaced", [False, True])
def test_all_neighbours_of_a_tiny_world_stay_within_the_promise(*, replaced: bool) -> None:
    squared = (4 if replaced else 1) * BOUND**2
    promise = delta_upper([sums_event(SIGMA, squared, 2, 2)], EPSILON)
    others = [ALPHABET[3]]
    pairs = itertools.permutations(ALPHABET, 2) if replaced else ((one, None) for one in ALPHABET)
    worst = 0.0
    for own, instead in pairs:
        one, other = (
            numbered([own, *others]),
            numbered([*([instead] if instead else []), *others]),
        )
        for pair in ((one, other), (other, one)):
            worst = max(worst, true_delta(*pair, staged, SIGMA, EPSILON))
    # the price is neither too small nor an idle bound
    assert promise / 6 < worst <= promise


def test_less_noise_than_stated_would_be_seen() -> None:
    promise = delta_upper([sums_event(SIGMA, BOUND**2, 2, 2)], EPSILON)
    one, other = numbered([(-2, 2, PROBABILITY_UNIT)]), numbered([])
    assert true_delta(one, other, staged, 0.6 * SIGMA, EPSILON) > promise


#: A record has one coordinate and two labels, either of which it has or not.
LABELLED = [(a, first, second) for a in (-3, 1, 2) for first in (0, 1) for second in (0, 1)]


def staged_labels(sign: int | None) -> Residuals:
    weights = [0, 0] if sign is None else [STEEP if sign > 0 else -STEEP, STEEP]
    return Residuals(IntegerLabels(np.array([weights])), UNIT, BOUND)


def labelled(rows: list[tuple[int, int, int]]) -> Records:
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    return records_of(table[:, :1], table[:, 1:] * PROBABILITY_UNIT)


def test_all_labels_of_a_record_together_stay_within_the_promise() -> None:
    promise = delta_upper([sums_event(SIGMA, BOUND**2, 2, 2)], EPSILON)
    worst = 0.0
    for own in LABELLED:
        one, other = labelled([own, LABELLED[0]]), labelled([LABELLED[0]])
        for pair in ((one, other), (other, one)):
            worst = max(worst, true_delta(*pair, staged_labels, SIGMA, EPSILON))
    assert promise / 6 < worst <= promise
    # each label bounded by itself would be sqrt(2) as long, which less noise stands for here
    one, other = labelled([(-3, 1, 0)]), labelled([])
    assert true_delta(one, other, staged_labels, SIGMA / np.sqrt(2), EPSILON) > promise
