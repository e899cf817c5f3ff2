"""Gaussian prices of counts and of vector sums: reference values, other accountants, and the exact
law of the discrete noise."""

import itertools
import math

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent
from dp_accounting.pld import PLDAccountant

from exact_games.distributions import discrete_gaussian_distribution
from made_events import counts_event, label_event, sums_event
from secretballot.accounting import PrivacyBudget, calibrate_gaussian, delta_upper, epsilon_upper
from secretballot.accounting.calibration import calibrate_vector_sum
from secretballot.core.losses import _DEVIATIONS, Losses, count_losses, discrete_gaussian_pmf
from secretballot.exceptions import ParameterError


@pytest.mark.parametrize("epsilon", [0.1, 2.0])
@pytest.mark.parametrize("delta", [1e-5, 1e-8])
@pytest.mark.parametrize("queries", [1, 300])
def test_agrees_with_dp_accounting(epsilon: float, delta: float, queries: int) -> None:
    from dp_accounting.pld import privacy_loss_distribution

    sigma = calibrate_gaussian(PrivacyBudget(epsilon, delta), queries)
    pld = privacy_loss_distribution.from_gaussian_mechanism(
        sigma / math.sqrt(queries), value_discretization_interval=1e-4, use_connect_dots=True
    )
    # the library prices continuous noise, pessimistic by its grid; ours is the lattice's, dearer by
    # about this much
    lattice = 0.002 + 40 / (12 * sigma**2 * queries)
    assert (1 - lattice) * delta <= pld.get_delta_for_epsilon(epsilon) <= 1.002 * delta


def discrete_delta(epsilon: float, sigma: float, shifts: int) -> float:
    return float(count_losses(sigma, shifts).delta(np.array([epsilon]))[0])


def _brute_force_delta(epsilon: float, sigma: float, shifts: int) -> float:
    """Hockey stick of the product law of `shifts` discrete Gaussians against all of them shifted
    by one."""
    reach, pmf = discrete_gaussian_pmf(sigma)
    law = np.ones(1)
    for _ in range(shifts):
        law = np.convolve(law, pmf)
    s = np.arange(-reach * shifts, reach * shifts + 1)
    loss = (2 * s + shifts) / (2 * sigma**2)
    return float(np.sum(law * np.maximum(0.0, -np.expm1(epsilon - loss))))


@pytest.mark.parametrize("sigma", [0.7, 1.0, 3.9, 4.0, 4.1, 9.3])
@pytest.mark.parametrize("shifts", [1, 2, 7])
@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.3, 1.0, -0.5])
def test_discrete_price_is_exact(sigma: float, shifts: int, epsilon: float) -> None:
    exact = _brute_force_delta(epsilon, sigma, shifts)
    found = discrete_delta(epsilon, sigma, shifts)
    assert found >= exact * (1 - 1e-12)
    # exact but for the grid, whose steps are some thousandths of all losses together
    assert found <= exact * (1 + 1e-3) + 1e-30


@pytest.mark.parametrize(("sigma", "shifts"), [(600.0, 20_000), (20.0, 400), (4.5, 9)])
def test_a_wide_lattice_is_read_as_a_line_and_lies_above(
    monkeypatch: pytest.MonkeyPatch, sigma: float, shifts: int
) -> None:
    deviation = math.sqrt(shifts) * sigma
    s = np.arange(-math.ceil(12.5 * deviation), math.ceil(12.5 * deviation) + 1.0)
    chance = np.exp(-(s**2) / (2 * deviation**2)) / (math.sqrt(2 * math.pi) * deviation)
    monkeypatch.setattr("secretballot.core.losses._WIDE", 0.0)
    line: Losses = count_losses.__wrapped__(sigma, shifts)
    mu = math.sqrt(shifts) / sigma
    for z in (-1.0, 0.5, 2.0, 4.0, 6.0):
        epsilon = mu * mu / 2 + z * mu
        gain = np.maximum(0.0, -np.expm1(epsilon - (s + shifts / 2) / sigma**2))
        true = float(chance @ gain)
        found = float(line.delta(np.array([epsilon]))[0])
        assert true * (1 - 1e-11) <= found <= true * (1 + 1e-3 + 30 / deviation**1.5)


@pytest.mark.parametrize("sigma", [float("nan"), 0.0, -1.0, float("inf"), True, "3"])
def test_events_refuse_bad_noise(sigma: object) -> None:
    with pytest.raises(ParameterError):
        counts_event(sigma, 1)  # type: ignore[arg-type]


def test_so_large_a_budget_that_the_least_noise_fits() -> None:
    sigma = calibrate_gaussian(PrivacyBudget(1e12, 0.1), 1)
    assert delta_upper([counts_event(sigma, 1)], 1e12) <= 0.1
    assert math.isfinite(sigma)


@pytest.mark.parametrize(("epsilon", "sigma"), [(3.4, 4.0), (50.0, 4.05), (5.0, 3.9)])
def test_a_price_is_never_nothing(epsilon: float, sigma: float) -> None:
    assert discrete_delta(epsilon, sigma, 1) >= 2 * math.exp(-(_DEVIATIONS**2) / 2)


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
