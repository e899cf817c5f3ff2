"""The sparse vector's game against plain enumeration of threshold noise, strategies and answers."""

import math

import numpy as np
import pytest

from exact_games.distributions import discrete_laplace_distribution
from exact_games.threshold_game import StreamQuery, ThresholdGame, stream_law
from made_events import sparse_event


def plain_value(mechanism, queries, weights, below, left, epsilon):
    """Every strategy, by recursion on the joint weights of answers and threshold noise, label
    shown on "above"."""
    if left == 0 or below == mechanism.abstentions:
        return max(0.0, weights[0].sum() - math.exp(epsilon) * weights[1].sum())
    hidden = discrete_laplace_distribution(mechanism.threshold_scale)
    noise = discrete_laplace_distribution(mechanism.query_scale)
    best = 0.0
    for query in queries:
        sides = []
        for weight, distance in zip(
            weights, (query.distance, query.neighbour_distance), strict=True
        ):
            above = np.array(
                [noise.at_least(mechanism.threshold + y + 1 - distance) for y in hidden.support]
            )
            sides.append((weight * above, weight * (1 - above)))
        (above_p, below_p), (above_q, below_q) = sides
        if query.label_differs:
            value = above_p.sum()
        else:
            value = plain_value(mechanism, queries, (above_p, above_q), below, left - 1, epsilon)
        after = (below_p.sum() * hidden.pmf, below_q.sum() * hidden.pmf)
        value += plain_value(mechanism, queries, after, below + 1, left - 1, epsilon)
        best = max(best, float(value))
    return best


@pytest.mark.parametrize("max_below", [1, 2])
@pytest.mark.parametrize("epsilon", [0.2, 1.1])
def test_the_game_is_the_maximum_over_all_adaptive_strategies(max_below, epsilon):
    mechanism = sparse_event(0.8, 1.2, 1, max_below)
    queries = [StreamQuery(0, 1, False), StreamQuery(2, 1, False), StreamQuery(0, 0, True)]
    pmf = discrete_laplace_distribution(0.8).pmf
    expected = plain_value(mechanism, queries, (pmf, pmf), 0, 3, epsilon)
    assert ThresholdGame(mechanism, queries).delta(3, epsilon) == pytest.approx(
        expected, rel=1e-8, abs=1e-11
    )


def test_stream_law_of_one_query_is_the_difference_of_two_laplace():
    # errata, notation: equal scales s, P(X - Y > w) near e^(-w / s) (1 + w / (2 s)) / 2 for the
    # continuous law
    mechanism = sparse_event(20.0, 20.0, 60, 1)
    law = stream_law(mechanism, np.array([0]))
    assert law[(True,)] == pytest.approx(math.exp(-3.025) * (1 + 3.025 / 2) / 2, rel=0.01)
    assert law[(True,)] + law[(False,)] == pytest.approx(1)
