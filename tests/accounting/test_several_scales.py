"""Lists of Gaussian noise of several kinds: composed losses against all orders of asking."""

import itertools

import numpy as np
import pytest

from exact_games.distributions import discrete_gaussian_distribution
from made_events import class_event, counts_event, label_event, sums_event
from secretballot.accounting import delta_upper, price
from secretballot.core.losses import ORDERS, delta_of


def delta_by_divergences(events, epsilon):
    total = sum(event.renyi(ORDERS) for event in events)
    return float(delta_of(total, ORDERS, np.array(epsilon)))


@pytest.mark.parametrize(
    "scales", [(1.5, 2.5), (0.8, 3.0), pytest.param((2.0, 9.0), marks=pytest.mark.slow)]
)
def test_counts_of_two_scales_cost_exactly_what_both_tell(scales):
    events = [counts_event(scales[0], 3), counts_event(scales[1], 4)]
    for epsilon in (0.5, 3.0):
        losses, chances = np.zeros(1), np.ones(1)
        for event in events:
            for _ in range(event.shifts):
                law = discrete_gaussian_distribution(event.sigma, 1e-17)
                each = (2 * law.support + 1) / (2 * event.sigma**2)
                losses = np.round(np.add.outer(losses, each).ravel(), 12)
                chances = np.multiply.outer(chances, law.pmf).ravel()
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
