"""Streams of the length and noise that are used in earnest: attacks against the price.

Adaptive games cannot be enumerated there, but some attacks can. Gaussian labels: one query asked
again and again, so that the labels are binomial. The sparse vector: in every epoch `n` queries
whose value rises by one at the neighbour, then one whose value falls, then queries that are
withheld. How many epochs withhold the second kind first is binomial; all else is lumped together,
which only weakens the attack: what it finds is really lost.
"""

import itertools

import numpy as np
import pytest
from scipy.stats import binom

from exact_games.distributions import discrete_gaussian_distribution, discrete_laplace_distribution
from exact_games.games import hockey_stick
from made_events import label_event
from secretballot.accounting import (
    PrivacyBudget,
    calibrate_sparse_vector,
    delta_upper,
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


def repeated_label_delta(sigma, n_queries, epsilon):
    """The worst query to repeat, over all distances of the vote from even."""
    law, ones = discrete_gaussian_distribution(sigma), np.arange(n_queries + 1)
    found = 0.0
    for away in range(round(3 * sigma)):
        p, q = (binom.pmf(ones, n_queries, float(law.at_least(away + side))) for side in (0, 1))
        found = max(found, hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon))
    return found


@pytest.mark.parametrize(("n_queries", "sigma"), [(20, 16.0), (50, 24.5)])
def test_one_query_repeated_loses_most_of_what_gaussian_labels_promise(n_queries, sigma):
    # errata 3: no accountant can certify more than 8 % further labels at 50 queries, 1 % at 299
    promised = delta_upper([label_event(sigma, n_queries, 250)], BUDGET.epsilon)
    true = repeated_label_delta(sigma, n_queries, BUDGET.epsilon)
    assert 0.6 * promised < true <= promised
    assert repeated_label_delta(0.7 * sigma, n_queries, BUDGET.epsilon) > promised
