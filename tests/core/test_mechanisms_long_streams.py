"""Streams of the length and noise that are used in earnest: attacks against the price.

Adaptive games cannot be enumerated there, but some attacks can: in every epoch `n` queries whose
value rises by one at the neighbour, then one whose value falls, then queries that are withheld. How
many epochs withhold the second kind first is binomial; all else is lumped together, which only
weakens the attack: what it finds is really lost.
"""

import itertools

import numpy as np
import pytest
from scipy.stats import binom

from exact_games.distributions import discrete_laplace_distribution
from exact_games.games import hockey_stick
from secretballot.accounting import (
    PrivacyBudget,
    calibrate_sparse_vector,
    epsilon_upper,
)

BUDGET = PrivacyBudget(1.0, 1e-6)


def epoch_chances(event, n, values, step):
    """The chances on both sides that an epoch answers `n` queries and withholds the next one."""
    hidden, noise = (
        discrete_laplace_distribution(event.threshold_scale),
        discrete_laplace_distribution(event.query_scale),
    )
    needed, found = event.threshold + hidden.support, []
    for side in (0, step):
        answered = noise.at_least(needed + 1 - values[0] - side)
        found.append(float(hidden.pmf * answered**n @ noise.at_most(needed - values[1] + side)))
    return found


def worst_delta(event, epsilon):
    found, epochs = 0.0, np.arange(event.abstentions + 1)
    near = [event.threshold + round(f * event.query_scale) for f in (-1.5, -0.5, 0.0, 0.5, 1.5)]
    for n, *values, step in itertools.product((1, 4, 16), near, near, (1, -1)):
        chances = epoch_chances(event, n, values, step)
        here, there = (binom.pmf(epochs, event.abstentions, chance) for chance in chances)
        found = max(found, hockey_stick(here, there, epsilon), hockey_stick(there, here, epsilon))
    return found


@pytest.mark.parametrize("max_abstentions", [1, 5, 20])
def test_two_phase_streams_stay_below_the_price_and_lose_half_of_it(max_abstentions):
    event = calibrate_sparse_vector(BUDGET, max_abstentions)
    epsilon = epsilon_upper([event], BUDGET.delta)
    assert worst_delta(event, epsilon) <= BUDGET.delta
    # the attack is a real one: at half the promised epsilon it is above the promised delta
    assert worst_delta(event, epsilon / 2) > BUDGET.delta


def test_the_same_attack_breaks_noise_calibrated_for_fewer_abstentions():
    event = calibrate_sparse_vector(BUDGET, 3)
    assert worst_delta(event.changed(abstentions=20), BUDGET.epsilon) > BUDGET.delta
    less = calibrate_sparse_vector(BUDGET, 5).changed(threshold_scale=2.0, query_scale=3.0)
    assert worst_delta(less, BUDGET.epsilon) > BUDGET.delta
