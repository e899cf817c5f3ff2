"""Certified bounds on epsilon: exact where they can be checked, valid where they are random, and
not without power."""

import math

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from secretballot.audit import clopper_pearson, epsilon_from_guesses, group_privacy, guess_p_value
from secretballot.exceptions import ParameterError

RNG = np.random.default_rng(20240619)


@pytest.mark.parametrize(("successes", "trials"), [(0, 20), (7, 20), (20, 20), (3, 500)])
def test_clopper_pearson_is_the_librarys_exact_interval(successes, trials):
    interval = binomtest(successes, trials).proportion_ci(confidence_level=0.98, method="exact")
    assert clopper_pearson(successes, trials, 0.01) == pytest.approx((interval.low, interval.high))


def test_what_delta_allows_is_not_held_against_the_program():
    assert epsilon_from_guesses(40, 40, 40, delta=0.5, alpha=0.01) == 0


def test_guesses_without_delta_are_a_binomial_tail():
    chance = 1 / (1 + math.exp(-0.7))
    assert guess_p_value(17, 20, 100, 0.7, 0.0) == pytest.approx(binom.sf(16, 20, chance))
    assert guess_p_value(0, 20, 100, 0.7, 1e-5) == 1
    with pytest.raises(ParameterError):
        guess_p_value(21, 20, 100, 0.7, 0.0)


def test_the_term_of_delta_is_the_papers():
    # theorem 5.2 by its own words: 2 m delta max over i of P(v > W >= v - i) / i
    right, guesses, coins, epsilon, delta = 15, 20, 50, 0.4, 1e-3
    chance = 1 / (1 + math.exp(-epsilon))
    tails = [
        (binom.sf(right - i - 1, guesses, chance) - binom.sf(right - 1, guesses, chance)) / i
        for i in range(1, 16)
    ]
    expected = binom.sf(right - 1, guesses, chance) + 2 * coins * delta * max(tails)
    assert guess_p_value(right, guesses, coins, epsilon, delta) == pytest.approx(expected)


def test_a_bound_is_the_epsilon_at_which_the_guesses_become_likely():
    bound = epsilon_from_guesses(38, 40, 60, delta=1e-6, alpha=0.01)
    assert guess_p_value(38, 40, 60, bound, 1e-6) == pytest.approx(0.01, rel=1e-6)
    assert epsilon_from_guesses(20, 40, 60, delta=1e-6, alpha=0.01) == 0
    # all right: (1 / (1 + e^-eps))^40 = alpha
    chance = 0.01 ** (1 / 40)
    assert epsilon_from_guesses(40, 40, 40, delta=0.0, alpha=0.01) == pytest.approx(
        math.log(chance / (1 - chance))
    )


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_bounds_exceed_the_truth_at_most_at_the_stated_rate(epsilon):
    # randomised response is the worst case: nobody leaks more at this epsilon
    alpha, n, audits = 0.1, 60, 1000
    right = RNG.binomial(n, 1 / (1 + math.exp(-epsilon)), size=audits).tolist()
    known = {k: epsilon_from_guesses(k, n, n, delta=0.0, alpha=alpha) for k in set(right)}
    bounds = np.array([known[k] for k in right])
    assert np.mean(bounds > epsilon + 1e-9) <= alpha + 4 * math.sqrt(alpha / audits)
    # and it is tight: a bound that is always 0 would be valid as well
    assert np.mean(bounds) >= epsilon - 0.6


def test_groups_pay_for_every_step():
    assert group_privacy(0.5, 1e-6, 1) == (0.5, 1e-6)
    epsilon, delta = group_privacy(0.5, 1e-6, 3)
    assert epsilon == 1.5
    assert delta == pytest.approx(1e-6 * (1 + math.exp(0.5) + math.exp(1.0)))
