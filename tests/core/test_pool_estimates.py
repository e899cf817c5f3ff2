"""Estimates over a whole pool: one teacher changes its votes on all points, and all such changes
are enumerated; and what released estimates say about a stream."""

import itertools

import numpy as np
import pytest

from exact_games.distributions import discrete_laplace_distribution
from exact_games.worlds import ScriptedNoise, neighbouring_counts
from made_events import sparse_event
from secretballot.accounting.calibration import quantile_slack
from secretballot.core.exponential import least_quotient
from secretballot.core.mechanisms import StabilityQuantile, State, stability
from secretballot.core.types import VoteShape
from secretballot.teachers.votes import guarantee_of


def exact_quantile(counts, fraction=0.4):
    """Return what the mechanism draws without noise."""
    shape = VoteShape(
        guarantee=guarantee_of("record", "add-remove"),
        n_queries=len(counts),
        n_classes=counts.shape[1],
        n_teachers=int(counts[0].sum()),
        moved=len(counts),
    )
    mechanism = StabilityQuantile(epsilon=0.9, fraction=fraction)
    return int(mechanism.draw(shape, (counts,), ScriptedNoise([0]), State())[0][0, 0])


@pytest.mark.parametrize(
    ("n_teachers", "n_classes", "n_points"), [(5, 2, 3), (8, 2, 4), (6, 3, 3), (7, 3, 4)]
)
def test_every_order_statistic_of_the_stability_moves_by_one(n_teachers, n_classes, n_points):
    here, there = (stability(side).tolist() for side in neighbouring_counts(n_teachers, n_classes))
    pairs = sorted({*zip(here, there, strict=True), *zip(here, here, strict=True)})
    # the other teachers' votes at one point do not restrict those at another, so every combination
    # of moves point by point occurs
    both = np.sort(np.array(list(itertools.product(pairs, repeat=n_points))), axis=1)
    assert np.abs(both[:, :, 0] - both[:, :, 1]).max(axis=0).tolist() == [1] * n_points


@pytest.mark.parametrize(("n_teachers", "n_classes", "n_points"), [(5, 2, 3), (4, 3, 2)])
def test_the_released_laws_lose_epsilon_and_no_more_on_all_neighbouring_tables(
    n_teachers, n_classes, n_points
):
    counts, neighbours = neighbouring_counts(n_teachers, n_classes)
    moves = np.stack(
        [np.concatenate([counts, counts]), np.concatenate([neighbours, counts])], axis=1
    )
    moves = np.unique(moves, axis=0)
    outcomes = np.arange(-6, 12)
    chosen = [list(row) for row in itertools.product(range(len(moves)), repeat=n_points)]
    losses = [
        np.abs(
            np.abs(outcomes - exact_quantile(there)) - np.abs(outcomes - exact_quantile(here))
        ).max()
        / least_quotient(1, 0.9)
        for here, there in ((moves[row, 0], moves[row, 1]) for row in chosen)
    ]
    assert max(losses) == pytest.approx(0.9, rel=1e-9)
    assert max(losses) <= 0.9 * (1 + 1e-9)


def test_the_promised_share_of_points_lies_at_the_quantile_or_beyond():
    rng = np.random.default_rng(11)
    for n_points in (1, 2, 7, 10, 30):
        counts = rng.multinomial(40, [0.6, 0.3, 0.1], size=n_points)
        distances = np.sort(stability(counts))
        for fraction in (0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.999):
            quantile = exact_quantile(counts, fraction)
            assert (distances >= quantile).mean() >= 1 - fraction
            # and no larger distance has that many points
            assert (distances > quantile).sum() < n_points - np.floor(fraction * n_points - 1e-9)


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
        _, of_stream = quantile_slack(1.0, event, n_stable, beta)
        distance = event.threshold + of_stream + 1
        for place in (0, 3):
            values = [*[distance] * place, *unstable, *[distance] * (n_stable - place)]
            assert stable_query_fails(event, values, distance) <= beta / 2


@pytest.mark.parametrize("beta", [0.5, 0.05, 1e-4, 1e-12])
def test_the_estimates_noise_exceeds_its_slack_at_most_in_half_of_beta_and_the_slack_is_least(beta):
    estimate, _ = quantile_slack(0.4, STREAMS[0], 6, beta)
    law = discrete_laplace_distribution(least_quotient(1, 0.4), 1e-18)
    assert law.at_least(estimate + 1) <= beta / 2
    assert estimate == 0 or law.at_least(estimate) > beta / 2


def test_no_smaller_share_is_shown_than_lies_there_more_often_than_beta():
    # over the estimate's whole law: a pool with too few stable points must hardly ever be called
    # answerable
    event, epsilon, beta, n_queries = STREAMS[0], 0.8, 0.1, 10
    slack = quantile_slack(epsilon, event, n_queries, beta)
    edge, needed = event.threshold + sum(slack), event.threshold + slack[1]
    votes = 2 * (needed + 1)  # a margin of `votes` gives the distance `needed`, one short
    counts = np.array([[votes, 0]] * 4 + [[10 * votes, 0]] * 6)
    assert (stability(counts) > needed).mean() == 0.6
    # three of ten points may lie below the number
    law = discrete_laplace_distribution(least_quotient(1, epsilon), 1e-18)
    wrong = law.at_least(edge + 1 - int(np.sort(stability(counts))[3]))
    assert 0.2 * beta / 2 < wrong <= beta / 2
