"""Prices of noisy vector sums: never below the truth, near it, and beside other accountants."""

import itertools
import math

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent
from dp_accounting.pld import PLDAccountant

from exact_games.distributions import discrete_gaussian_distribution
from made_events import counts_event, label_event, sums_event
from secretballot.accounting import PrivacyBudget, delta_upper, epsilon_upper
from secretballot.accounting.calibration import calibrate_vector_sum


def true_delta(epsilon: float, sigma: float, shift: tuple[int, ...]) -> float:
    """Return the hockey-stick divergence of a discrete Gaussian vector and its shift, summed over
    all outcomes."""
    law = discrete_gaussian_distribution(sigma, 1e-40)
    grids = np.meshgrid(*[law.support] * len(shift), indexing="ij")
    chance = math.prod(np.meshgrid(*[law.pmf] * len(shift), indexing="ij"))
    squared = sum(one * one for one in shift)
    projection = sum(s * grid for s, grid in zip(shift, grids, strict=True))
    loss = (squared + 2 * projection) / (2 * sigma**2)
    return float(np.sum(chance * -np.expm1(np.minimum(0.0, epsilon - loss))))


@pytest.mark.parametrize("sigma", [4.0, 7.3, 20.0])
@pytest.mark.parametrize("shift", [(1, 0), (1, 1), (3, 4), (0, 7)])
def test_the_price_is_at_least_the_truth_and_near_it(sigma: float, shift: tuple[int, int]) -> None:
    squared = sum(one * one for one in shift)
    event = sums_event(sigma, squared, 2)
    for epsilon in (0.0, 0.3, 1.0):
        truth, promised = true_delta(epsilon, sigma, shift), delta_upper([event], epsilon)
        assert truth <= promised
        if truth > 1e-9:
            # the noise that the rounding takes, and the kink on the lattice, each to first order
            score = (epsilon + 1) * sigma / math.sqrt(squared) + 1
            assert promised <= truth * (1 + 6 * score**2 / sigma**2)


@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_all_neighbours_of_a_tiny_world_stay_within_the_promise(epsilon: float) -> None:
    """Three records with vectors of squared norm at most 4 in two dimensions; one comes or goes,
    or is replaced."""
    vectors = [v for v in itertools.product(range(-2, 3), repeat=2) if v[0] ** 2 + v[1] ** 2 <= 4]
    sigma = 5.0
    gone = delta_upper([sums_event(sigma, 4, 2)], epsilon)
    replaced = delta_upper([sums_event(sigma, 16, 2)], epsilon)
    worlds = {(0, 0), *vectors}
    assert max(true_delta(epsilon, sigma, v) for v in worlds) <= gone
    shifts = {(a[0] - b[0], a[1] - b[1]) for a, b in itertools.product(vectors, repeat=2)}
    assert max(true_delta(epsilon, sigma, shift) for shift in shifts) <= replaced
    # power: with seven tenths of the noise, or priced as a record that goes, the promise is broken
    assert max(true_delta(epsilon, 0.7 * sigma, v) for v in worlds) > gone
    assert max(true_delta(epsilon, sigma, shift) for shift in shifts) > gone


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-5), (1.0, 1e-6), (4.0, 1e-10)])
@pytest.mark.parametrize("count", [1, 2, 7])
def test_the_price_is_that_of_another_accountant(epsilon: float, delta: float, count: int) -> None:
    sigma = calibrate_vector_sum(PrivacyBudget(epsilon, delta), 2**40, 300, count)
    other = PLDAccountant()
    other.compose(GaussianDpEvent(sigma / 2**20), count)
    assert epsilon_upper([sums_event(sigma, 2**40, 300, count)], delta) == pytest.approx(
        other.get_epsilon(delta), rel=2e-3
    )


def test_sums_of_several_scales_are_one_gaussian() -> None:
    parts = [sums_event(300.0, 10_000, 50), sums_event(600.0, 40_000, 50)]
    together = sums_event(300.0, 20_000, 100)
    assert delta_upper(parts, 1.0) == pytest.approx(delta_upper([together], 1.0), rel=1e-4)
    mixed = [sums_event(300.0, 10_000, 50), counts_event(30.0, 100)]
    assert delta_upper(mixed, 1.0) == pytest.approx(delta_upper([together], 1.0), rel=0.02)
    with_labels = [sums_event(300.0, 10_000, 50), label_event(30.0, 100, 250)]
    # labels tell about 2 / pi of their counts, which is as if fewer of these were released
    fewer = [sums_event(300.0, 10_000, 50), counts_event(30.0, 63)]
    found = delta_upper(with_labels, 1.0)
    assert delta_upper(fewer, 1.0) < found < 1.15 * delta_upper(fewer, 1.0)
