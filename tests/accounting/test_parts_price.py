"""Optimal composition of parts, alone and beside Gaussian noise."""

import itertools
import math
import operator
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.stats import norm

from made_events import counts_event, pure_event, sparse_event, stable_event
from secretballot.accounting import SparseStream, StableTests, delta_upper, epsilon_upper, price
from secretballot.core.losses import (
    Losses,
    _without_ends,
    discrete_gaussian_pmf,
    fold,
    one_of_many,
    response_losses,
    response_weights,
)

Part = tuple[float, float, int]


def compose_parts(parts: list[Part], epsilon: float) -> float:
    """Return delta of (e0, d0)-DP parts, so many of each."""
    losses = fold(
        (response_losses(e0, count, one_of_many(d0, count)), 1) for e0, d0, count in parts
    )
    return float(losses.delta(np.array([epsilon]))[0])


def _enumerate(parts: list[tuple[float, float]], epsilon: float) -> float:
    """Hockey stick of (e0, d0) worst cases: each reveals everything with probability d0, else
    randomised response."""
    total = 0.0
    for outcome in itertools.product((0, 1, 2), repeat=len(parts)):
        p = q = 1.0
        for (e0, d0), bit in zip(parts, outcome, strict=True):
            high = math.exp(e0) / (1 + math.exp(e0))
            p *= (d0, (1 - d0) * high, (1 - d0) * (1 - high))[bit]
            q *= (0.0, (1 - d0) * (1 - high), (1 - d0) * high)[bit]
        total += max(0.0, p - math.exp(epsilon) * q)
    return total


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 2.5])
@pytest.mark.parametrize(
    "parts",
    [
        [(0.5, 0.0, 4)],
        [(0.2, 1e-3, 5)],
        [(0.5, 0.01, 2), (0.3, 0.0, 3)],
        [(3.0, 0.0, 1), (0.1, 0.02, 1)],
    ],
)
def test_composition_is_the_enumerated_optimum(
    parts: list[tuple[float, float, int]], epsilon: float
) -> None:
    flat = [(e0, d0) for e0, d0, count in parts for _ in range(count)]
    truth, found = _enumerate(flat, epsilon), compose_parts(parts, epsilon)
    # exact but for the grid, whose steps are some thousandths of all losses together
    assert truth * (1 - 1e-12) <= found <= truth * (1 + 3e-4) + 1e-15


@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 0.01, 1.0, 3.0, 40.0, 800.0])
@pytest.mark.parametrize("count", [0, 1, 2, 7, 1000, 199_999])
def test_weights_of_responses_are_binomial_to_all_digits_that_a_price_needs(
    count: int, epsilon: float
) -> None:
    weights = response_weights(count, epsilon)
    assert weights.shape == (count + 1,)
    assert weights.sum() == pytest.approx(1, rel=1e-12)
    counted = np.flatnonzero(weights > 1e-35)  # a price charges the others in full
    with mpmath.workdps(30):
        lie = 1 / (1 + mpmath.exp(epsilon))
        for i in {*counted[[0, -1]].tolist(), *counted[:: 1 + len(counted) // 20].tolist()}:
            exact = mpmath.binomial(count, i) * lie**i * (1 - lie) ** (count - i)
            assert abs(weights[i] / exact - 1) < 3e-12
        # and no weight is left out that is more than that
        for i in (counted[0] - 1, counted[-1] + 1):
            if 0 <= i <= count:
                exact = mpmath.binomial(count, i) * lie ** int(i) * (1 - lie) ** int(count - i)
                assert exact < 1.01e-35
    # what floats lose of a weight and of a grid is charged
    listed = response_losses(max(epsilon, 1e-12), count)
    assert listed.certain >= 1 or listed.chance.sum() > 1 + 4e-12


def test_gaussian_beside_parts_is_the_joint_enumeration() -> None:
    sigma, epsilon0, epsilon = 2.0, 0.4, 0.9
    reach, pmf = discrete_gaussian_pmf(sigma)
    shifted = np.concatenate([[0.0], pmf[:-1]])
    high = math.exp(epsilon0) / (1 + math.exp(epsilon0))
    exact = 0.0
    for first, second in itertools.product((high, 1 - high), repeat=2):
        p, q = pmf * first * second, shifted * (1 - first) * (1 - second)
        exact += float(np.maximum(0.0, p - math.exp(epsilon) * q).sum())
    found = delta_upper([counts_event(sigma, 1), pure_event(epsilon0, 2)], epsilon)
    assert reach > 0
    assert exact <= found <= exact * (1 + 1e-4)


def test_a_pure_price_is_the_sum_also_where_delta_is_tiny() -> None:
    events = [pure_event(0.7, 1), pure_event(0.7, 1)]
    assert (price(events, delta=0.0).delta, delta_upper(events, 1.4)) == (0.0, 0.0)
    assert epsilon_upper(events, 0.0) == epsilon_upper(events, 1e-9) == 1.4
    assert price(events, delta=1e-9).delta == 1e-9
    one = (math.exp(0.7) - math.exp(0.5)) / (1 + math.exp(0.7))
    assert delta_upper(events[:1], 0.5) == pytest.approx(one, rel=1e-9)
    beyond = float(3 * Fraction(0.1) - Fraction(0.3))
    tiny = delta_upper([pure_event(0.1, 3)], 0.3)
    assert tiny == pytest.approx(beyond / (1 + math.exp(-0.3)), rel=1e-9, abs=0)


@pytest.mark.parametrize("event", [stable_event(4.0, 20, 2), sparse_event(3.0, 5.0, 20, 2)])
def test_no_price_is_below_what_fails_outright(event: StableTests | SparseStream) -> None:
    for epsilon in float(event.pure()) * (1 - np.geomspace(1e-6, 0.9, 60)):
        assert delta_upper([event], epsilon) >= event.failure()
    assert epsilon_upper([event], event.failure() / 2) == math.inf


def test_the_edge_of_the_largest_loss_is_rounded_up() -> None:
    # epsilon just below 18 parts' whole loss: the difference has few digits left, and they must not
    # fall short
    from mpmath import binomial, mp, mpf

    e0, count, epsilon = 1.8166921007776209, 18, 32.70045781399539
    with mp.workdps(50):
        q = 1 / (1 + mp.exp(mpf(e0)))
        terms = (
            binomial(count, i)
            * q**i
            * (1 - q) ** (count - i)
            * max(0, 1 - mp.exp(mpf(epsilon) - (count - 2 * i) * mpf(e0)))
            for i in range(count + 1)
        )
        assert delta_upper([pure_event(e0, count)], epsilon) >= float(sum(terms))


def test_failures_of_different_events_add_up() -> None:
    one = StableTests(scale=4.0, threshold=30, count=2)
    two = SparseStream(threshold_scale=5.0, query_scale=5.0, threshold=45, abstentions=1)
    both = one.failure() + two.failure() - one.failure() * two.failure()
    assert both > 1.05 * max(one.failure(), two.failure())
    assert both <= delta_upper([one, two], 30.0) <= 1.001 * (one.failure() + two.failure())


def test_losses_and_failures_of_two_add_as_enumerated() -> None:
    """Below the lowest loss and above the highest one too."""
    one = np.array([-1.0, 0.25, 2.0]), np.array([0.3, 0.4, 0.29]), 0.01
    two = np.array([-0.7, 0.1, 1.3]), np.array([0.5, 0.2, 0.28]), 0.02
    losses, chance = np.add.outer(one[0], two[0]).ravel(), np.outer(one[1], two[1]).ravel()
    at = np.linspace(-4.0, 4.0, 161)
    true = np.maximum(0.0, -np.expm1(at[:, None] - losses)) @ chance + 1 - 0.99 * 0.98
    found = (Losses.of_atoms(*one) + Losses.of_atoms(*two)).delta(at)
    assert (true <= found).all()
    assert (found <= true * (1 + 1e-2)).all()


def test_ends_that_are_cut_are_charged() -> None:
    low, kept, beyond = _without_ends(np.array([3e-27, 4e-27, 1e-20, 5e-27, 2e-27]), 9)
    assert (low, len(kept)) == (2, 1)
    assert kept[0] == pytest.approx(1e-20 + 7e-27, rel=1e-12, abs=0)
    assert beyond == pytest.approx(7e-27, rel=1e-12, abs=0)
    far = Losses.of_atoms(np.array([2.0**15]), np.array([0.25]))
    assert far.delta(np.array([-1.0, 1.0])) == pytest.approx([1 - 0.75 * math.exp(-1), 0.25])


def test_no_digit_that_floats_lose_makes_a_sum_of_losses_or_its_delta_smaller() -> None:
    rng, h = np.random.default_rng(0), 2.0**-5
    one, two = (chance / chance.sum() for chance in rng.random((2, 40)))
    both = Losses(h, -9, one, 0.125) + Losses(h, -15, two, 0.25)
    exact = [Fraction(0)] * 79
    for (i, p), (j, q) in itertools.product(enumerate(one.tolist()), enumerate(two.tolist())):
        exact[i + j] += Fraction(p) * Fraction(q)
    assert (both.first, both.h) == (-24, h)
    assert all(map(operator.ge, both.chance.tolist(), exact))
    assert 1 - Fraction(both.certain) <= (1 - Fraction(0.125)) * (1 - Fraction(0.25))
    at = np.concatenate([h * np.arange(-30, 60), rng.uniform(-1, 2, 60)])
    with mpmath.workdps(40):
        losses = [mpmath.mpf(h) * (i - 24) for i in range(79)]
        for epsilon, found in zip(at.tolist(), both.delta(at).tolist(), strict=True):
            ends = [max(0, 1 - mpmath.exp(epsilon - loss)) for loss in losses]
            parts = zip(both.chance.tolist(), ends, strict=True)
            true = min(1, both.certain + mpmath.fsum(p * end for p, end in parts))
            assert true <= found <= true * (1 + 1e-8)


def test_losses_are_larger_and_epsilons_smaller_than_floats_say() -> None:
    p, below = 1 / (1 + math.exp(-1.0)), 2.0**-40
    losses = Losses.of_atoms(np.array([-1.0, 1.0]), np.array([1 - p, p]))
    found = losses.delta(np.array([1 - below]))[0]
    assert found / (p * -math.expm1(-below)) == pytest.approx(1 + 2 * 2.0**-8, rel=1e-3)


@pytest.mark.parametrize("mu", [0.01, 0.3, 4.0])
def test_a_normal_loss_and_the_hull_of_its_profile_are_above_it_everywhere(mu: float) -> None:
    at = np.concatenate([mu * mu / 2 + mu * np.linspace(-6, 8, 57), [0.0]])

    def exact(epsilon):
        return norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)

    true = exact(at)
    for found in (Losses.of_gaussian(mu), Losses.of_profile(exact, mu * mu / 2 + 9 * mu)):
        above = found.delta(at) / true
        assert above[true > 1e-12].min() > 1
        assert above[true > 1e-12].max() < 1.001
