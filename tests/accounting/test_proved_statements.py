"""Statements that `docs/explanation/prices.md` proves, each enumerated in a small world or read
against an independent library."""

import math
from collections.abc import Iterator
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from adaptive_labels import both_ways, label_chances
from exact_games.games import Outcome, delta_of_all_orders
from made_events import admits, counts_event, label_event, stable_event
from secretballot.accounting import PrivacyBudget, RenyiFilter, StableTests, delta_upper
from secretballot.core.events import Event
from secretballot.core.losses import ORDERS, delta_of, response

Pair = tuple[float, float]


def grants(*events: Event) -> list[Any]:
    return [((event,), PrivacyBudget(1.0, 0.0)) for event in events]


def test_the_filter_keeps_its_promise_with_failures_and_adaptive_choices() -> None:
    """Two tests of stability, the second chosen after the first; the worst (instances differ) is
    played exactly."""
    budget = PrivacyBudget(2.0, 0.3)
    rule = RenyiFilter(budget, 2.5)
    menu = [stable_event(2.0, 6, 1), stable_event(4.0, 12, 1), stable_event(4.0, 30, 1)]

    def outcomes(event: StableTests) -> list[Pair]:
        """A failure tells everything; otherwise the test is randomised response."""
        failure, loss = event.failure(), 1 / event.scale
        high = (1 - failure) * math.exp(loss) / (1 + math.exp(loss))
        return [(failure, 0.0), (high, 1 - failure - high), (1 - failure - high, high)]

    def questions(spent: tuple[StableTests, ...]) -> Iterator[list[Outcome]]:
        for event in menu:
            if admits(rule, grants(*spent), *grants(event)):
                yield [((*spent, event), *pair) for pair in outcomes(event)]

    game = SimpleNamespace(start=(), questions=questions)
    assert 0 < delta_of_all_orders([game], 3, budget.epsilon) <= budget.delta


def test_unused_labels_may_be_bought_again() -> None:
    """An adversary stops a run of labels when it likes and spends what is left on noise of its
    own choice."""
    budget, n_teachers = PrivacyBudget(1.5, 0.1), 3
    rule = RenyiFilter(budget, 4.0)
    planned = label_event(1.9, 2, n_teachers)
    assert admits(rule, [], *grants(planned))

    @cache
    def labelled(then: Any, sigma: float) -> list[list[Outcome]]:
        pairs = both_ways(label_chances(n_teachers, sigma))
        return [[(then, a, b), (then, 1 - a, 1 - b)] for a, b in pairs]

    def questions(state: tuple[int, tuple[float, ...]]) -> Iterator[list[Outcome]]:
        taken, bought = state
        if not bought and taken < planned.queries:
            yield from labelled((taken + 1, ()), planned.chances.sigma)
        used = [label_event(1.9, taken, n_teachers)] if taken else []
        used += [label_event(sigma, 1, n_teachers) for sigma in bought]
        for sigma in (1.6, 2.5):
            if admits(rule, grants(*used), *grants(label_event(sigma, 1, n_teachers))):
                yield from labelled((taken, (*bought, sigma)), sigma)

    game = SimpleNamespace(start=(0, ()), questions=questions)
    assert 0 < delta_of_all_orders([game], 3, budget.epsilon) <= budget.delta


@pytest.mark.parametrize(
    ("sigma", "shifts", "epsilon"), [(20.0, 100, 2.25), (60.0, 300, 1.0), (5.0, 3, 1.5)]
)
def test_the_renyi_conversion_is_that_of_an_independent_library(
    sigma: float, shifts: int, epsilon: float
) -> None:
    from dp_accounting import GaussianDpEvent, SelfComposedDpEvent
    from dp_accounting.rdp import RdpAccountant

    accountant = RdpAccountant(orders=[order for order in ORDERS.tolist() if order > 1.01])
    accountant.compose(SelfComposedDpEvent(GaussianDpEvent(sigma), shifts))
    event = counts_event(sigma, shifts)
    divergences = np.array([float(event.renyi(np.array([order]))[0]) for order in ORDERS])
    found = float(delta_of(divergences, ORDERS, np.array(epsilon)))
    assert found == pytest.approx(accountant.get_delta(epsilon), rel=1e-6)
    assert delta_upper([event], epsilon) < found


@pytest.mark.parametrize("loss", [0.01, 0.3, 3.0])
def test_randomised_response_has_the_divergence_of_an_independent_library(loss: float) -> None:
    from dp_accounting import NeighboringRelation, RandomizedResponseDpEvent
    from dp_accounting.rdp import RdpAccountant

    orders = [order for order in ORDERS.tolist() if 1.1 < order < 200]
    accountant = RdpAccountant(orders=orders, neighboring_relation=NeighboringRelation.REPLACE_ONE)
    # two buckets, of which the true one is kept with the odds e^loss
    accountant.compose(
        RandomizedResponseDpEvent(noise_parameter=2 / (1 + math.exp(loss)), num_buckets=2)
    )
    np.testing.assert_allclose(
        response(loss, np.array(orders)), accountant._rdp, rtol=1e-6, atol=1e-12
    )
