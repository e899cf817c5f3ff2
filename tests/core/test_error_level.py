"""What released estimates say about a stream: each bound against the exact law or all tables of
a small world."""

import numpy as np
import pytest

from exact_games.distributions import discrete_laplace_distribution
from made_events import sparse_event
from secretballot.accounting.calibration import quantile_slack
from secretballot.core.exponential import least_quotient
from secretballot.core.mechanisms import stability

STREAMS = [sparse_event(2.0, 3.0, 10, t) for t in (1, 2, 3)]


def stable_query_fails(event, values, stable_from):
    """Exact probability that some query at `stable_from` or beyond is below, before the stream
    stops at its last abstention."""
    hidden = discrete_laplace_distribution(event.threshold_scale)
    noise = discrete_laplace_distribution(event.query_scale)

    def failed(weight, place, left):
        if place == len(values) or not left:
            return 0.0
        passing = noise.at_least(event.threshold + hidden.support + 1 - values[place])
        below = float(weight @ (1 - passing))
        if values[place] < stable_from:
            below *= failed(hidden.pmf, place + 1, left - 1)
        return below + failed(weight * passing, place + 1, left)

    return failed(hidden.pmf, 0, event.abstentions)


@pytest.mark.parametrize("event", STREAMS, ids=str)
@pytest.mark.parametrize("beta", [0.5, 0.05, 1e-4])
def test_queries_beyond_the_stream_slack_are_answered_but_for_half_of_beta(event, beta):
    for unstable in ([], [0], [9], [0, 11, 9]):
        n_stable = 7 - len(unstable)
        slack = quantile_slack(1.0, event, n_stable, beta)
        distance = event.threshold + slack.stream + 1
        for place in (0, 3):
            values = [*[distance] * place, *unstable, *[distance] * (n_stable - place)]
            assert stable_query_fails(event, values, distance) <= beta / 2


@pytest.mark.parametrize("beta", [0.5, 0.05, 1e-4, 1e-12])
def test_the_estimates_noise_exceeds_its_slack_at_most_in_half_of_beta_and_the_slack_is_least(beta):
    slack = quantile_slack(0.4, STREAMS[0], 6, beta)
    law = discrete_laplace_distribution(least_quotient(1, 0.4), 1e-18)
    assert law.at_least(slack.estimate + 1) <= beta / 2
    assert slack.estimate == 0 or law.at_least(slack.estimate) > beta / 2


def test_no_smaller_share_is_shown_than_lies_there_more_often_than_beta():
    # over the estimate's whole law: a pool with too few stable points must hardly ever be called
    # answerable
    event, epsilon, beta, n_queries = STREAMS[0], 0.8, 0.1, 10
    slack = quantile_slack(epsilon, event, n_queries, beta)
    edge, needed = event.threshold + sum(slack), event.threshold + slack.stream
    votes = 2 * (needed + 1)  # a margin of `votes` gives the distance `needed`, one short
    counts = np.array([[votes, 0]] * 4 + [[10 * votes, 0]] * 6)
    assert (stability(counts) > needed).mean() == 0.6
    # three of ten points may lie below the number
    law = discrete_laplace_distribution(least_quotient(1, epsilon), 1e-18)
    wrong = law.at_least(edge + 1 - int(np.sort(stability(counts))[3]))
    assert 0.2 * beta / 2 < wrong <= beta / 2
