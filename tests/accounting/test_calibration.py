"""The contract of every calibration: what it returns keeps the budget, wastes little, and moves
with the budget."""

import itertools
import math

import pytest

from made_events import counts_event, label_event
from secretballot.accounting import (
    PrivacyBudget,
    calibrate_gaussian,
    calibrate_label_gaussian,
    calibrate_sparse_vector,
    delta_upper,
    price,
)
from secretballot.exceptions import ParameterError

EPSILONS = (0.01, 0.1, 1.0, 4.0, 20.0)
DELTAS = (1e-12, 1e-6, 1e-2)


def _check_labels(budget: PrivacyBudget, queries: int, n_teachers: int | None) -> float:
    """Return the calibrated sigma after checking that it keeps the budget and is next to the
    least."""
    sigma = calibrate_label_gaussian(budget, queries, n_teachers)
    assert delta_upper([label_event(sigma, queries, n_teachers)], budget.epsilon) <= budget.delta
    assert sigma <= calibrate_gaussian(budget, queries) * 1.005
    less = [label_event(0.995 * sigma, queries, n_teachers)]
    found = price(less, epsilon=budget.epsilon)
    if found.method == "losses" and sigma > 1 and queries > 3:
        assert found.delta > budget.delta
    return sigma


@pytest.mark.slow
@pytest.mark.parametrize("n_teachers", [None, 2, 10, 250, 5000])
@pytest.mark.parametrize("queries", [1, 2, 3, 10, 100, 1000, 5000])
def test_calibrated_labels_keep_every_budget_of_a_wide_grid(
    n_teachers: int | None, queries: int
) -> None:
    found = {
        (epsilon, delta): _check_labels(PrivacyBudget(epsilon, delta), queries, n_teachers)
        for epsilon, delta in itertools.product((*EPSILONS, 0.3, 9.0), (*DELTAS, 1e-9))
    }
    for (epsilon, delta), sigma in found.items():
        for (other_epsilon, other_delta), other in found.items():
            if epsilon <= other_epsilon and delta <= other_delta:
                assert sigma >= other * 0.995


@pytest.mark.parametrize(("epsilon", "delta"), [(0.01, 1e-12), (20.0, 1e-2), (4.0, 1e-10)])
def test_calibrated_streams_keep_the_budget_and_need_more_for_more_stops(
    epsilon: float, delta: float
) -> None:
    found = []
    for stops in (1, 40):
        event = calibrate_sparse_vector(PrivacyBudget(epsilon, delta), stops)
        assert event.abstentions == stops
        assert delta_upper([event], epsilon) <= delta
        found.append(event.threshold)
    assert found == sorted(found)


def test_a_budget_that_no_noise_keeps_is_refused_in_a_sentence() -> None:
    with pytest.raises(ParameterError, match="No noise fits"):
        calibrate_gaussian(PrivacyBudget(1e-13, 1e-300), 10**12)
    with pytest.raises(ParameterError, match="No noise fits"):
        calibrate_label_gaussian(PrivacyBudget(1e-13, 1e-300), 10**12)


def test_so_large_a_budget_that_the_least_noise_fits() -> None:
    sigma = calibrate_gaussian(PrivacyBudget(1e12, 0.1), 1)
    assert delta_upper([counts_event(sigma, 1)], 1e12) <= 0.1
    assert math.isfinite(sigma)
