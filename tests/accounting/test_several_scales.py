"""Lists of Gaussian noise of several kinds: composed losses against all orders of asking."""

import functools
import itertools
import math

import numpy as np
import pytest

from made_events import class_event, counts_event, label_event, sums_event
from secretballot.accounting import (
    delta_upper,
    price,
)
from secretballot.core.renyi import ORDERS, delta_of


def delta_by_divergences(events, epsilon):
    total = sum(event.renyi(ORDERS) for event in events)
    return float(delta_of(total, ORDERS, np.array(epsilon)))


def law_of(sigma):
    reach = math.ceil(9 * sigma) + 1
    weights = [math.exp(-(x**2) / (2 * sigma**2)) for x in range(-reach, reach + 1)]
    return reach, np.array(weights) / math.fsum(weights)


def shifted_pair(sigma):
    """Return the chances of a noisy count under neighbours; what lies past nine deviations is left
    out, which only lowers a delta."""
    _, pmf = law_of(sigma)
    return tuple(pmf[1:].tolist()), tuple(pmf[:-1].tolist())


def label_pairs(sigma, n_teachers):
    reach, pmf = law_of(sigma)
    tail = np.cumsum(pmf[::-1])[::-1]

    def chance(votes):
        return float(tail[math.ceil(n_teachers / 2) - votes + reach])

    for votes, moved in itertools.pairwise(range(n_teachers + 1)):
        p, q = chance(votes), chance(moved)
        yield from (((p, 1 - p), (q, 1 - q)), ((q, 1 - q), (p, 1 - p)))


def best_delta(kinds, epsilon):
    """Return the largest delta of steps of several kinds, in any order, each chosen from all that
    was told."""
    pairs = [listed for listed, _ in kinds]

    @functools.cache
    def value(left, x):
        found = max(0.0, 1 - x)
        for kind, number in enumerate(left):
            if not number:
                continue
            rest = (*left[:kind], number - 1, *left[kind + 1 :])
            for p, q in pairs[kind]:
                found = max(
                    found, sum(a * value(rest, x * b / a) for a, b in zip(p, q, strict=True))
                )
        return found

    return value(tuple(number for _, number in kinds), math.exp(epsilon))


@pytest.mark.parametrize("epsilon", [0.3, 1.5])
def test_labels_beside_loud_counts_cost_at_least_what_any_order_reaches(epsilon):
    kinds = [(list(label_pairs(3.0, 4)), 2), ([shifted_pair(1.5)], 1)]
    events = [label_event(3.0, 2, 4), counts_event(1.5, 1)]
    best, found = best_delta(kinds, epsilon), price(events, epsilon=epsilon)
    assert found.method == "losses"
    assert best <= found.delta <= 1.05 * best
    # as counts, and by divergences, it was dearer
    assert found.delta < 0.96 * delta_upper([counts_event(3.0, 2), counts_event(1.5, 1)], epsilon)
    assert found.delta < 0.8 * delta_by_divergences(events, epsilon)


@pytest.mark.parametrize(
    "scales", [(1.5, 2.5), (0.8, 3.0), pytest.param((2.0, 9.0), marks=pytest.mark.slow)]
)
def test_counts_of_two_scales_cost_exactly_what_both_tell(scales):
    events = [counts_event(scales[0], 3), counts_event(scales[1], 4)]
    for epsilon in (0.5, 3.0):
        losses, chances = np.zeros(1), np.ones(1)
        for event in events:
            for _ in range(event.shifts):
                reach, pmf = law_of(event.sigma)
                each = (2 * np.arange(-reach, reach + 1) + 1) / (2 * event.sigma**2)
                losses = np.round(np.add.outer(losses, each).ravel(), 12)
                chances = np.multiply.outer(chances, pmf).ravel()
                losses, place = np.unique(losses, return_inverse=True)
                chances = np.bincount(place, chances)
        true = float(chances @ np.maximum(0.0, -np.expm1(epsilon - losses)))
        found = price(events, epsilon=epsilon)
        assert found.method == "losses"
        assert true <= found.delta * (1 + 1e-9) <= 1.002 * true
        assert found.delta < delta_by_divergences(events, epsilon)


def test_more_events_never_cost_less():
    events = [
        counts_event(3.0, 5),
        label_event(12.0, 3, 250),
        class_event(12.0, 2),
        counts_event(50.0, 9),
        sums_event(60.0, 4, 3),
        label_event(15.0, 4),
        label_event(45.0, 5),
        counts_event(2.0, 1),
        counts_event(1.5, 1),
    ]
    costs = [delta_upper(events[: i + 1], 2.0) for i in range(len(events))]
    assert all(more >= less * (1 - 1e-9) for less, more in itertools.pairwise(costs))
