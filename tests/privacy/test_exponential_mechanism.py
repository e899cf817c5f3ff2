"""The exponential mechanism: its loss on all neighbouring scores, its law, and the ways to break
it."""

import itertools

import numpy as np
import pytest

from made_events import pure_event
from secretballot.audit import Distribution, sample_p_value
from secretballot.core.noise import ExactNoise
from secretballot.exceptions import DataError, ParameterError
from secretballot.privacy.accounting import delta_upper
from secretballot.privacy.mechanisms import ExponentialMechanism

ALPHA = 1e-6
SCORES = [np.array(row) for row in itertools.product(range(4), repeat=3)]
BOTH_WAYS = [np.array(move) for move in itertools.product((-1, 0, 1), repeat=3)]
ONE_WAY = [np.array(move) for move in itertools.product((0, 1), repeat=3)]


class SpyNoise:
    """Answer with index 0 and write down what was asked."""

    exact = False
    description = "for a test"

    def __init__(self):
        self.asked = []

    def exponential_index(self, scores, scale):
        self.asked.append((scores.tolist(), scale))
        return 0


def loss(mechanism, scores, move, sizes=1):
    """Return the largest log ratio between the laws at two neighbours, in both directions, where
    each candidate stands for so many equal ones."""
    here, there = (
        mechanism.distribution(np.repeat(table, sizes)) for table in (scores, scores + move)
    )
    return np.abs(np.log(here / there)).max()


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize(("monotone", "moves"), [(False, BOTH_WAYS), (True, ONE_WAY)])
@pytest.mark.parametrize("sizes", [1, np.array([1, 50, 3])])
def test_no_neighbours_lose_more_than_epsilon(epsilon, monotone, moves, sizes):
    mechanism = ExponentialMechanism(epsilon, monotone)
    worst = max(loss(mechanism, scores, move, sizes) for scores in SCORES for move in moves)
    assert 0.5 * epsilon < worst <= epsilon * (1 + 1e-12)


@pytest.mark.parametrize(("monotone", "others"), [(False, -1), (True, 0)])
def test_epsilon_is_attained_by_one_candidate_against_many(monotone, others):
    scores, move = np.zeros(2, dtype=int), np.array([1, others])
    worst = loss(ExponentialMechanism(1.0, monotone), scores, move, np.array([1, 2000]))
    assert 0.998 < worst <= 1.0


def test_forgetting_the_half_loses_twice_epsilon_where_a_record_is_replaced():
    # errata 6: 1.99 instead of 1; a mistake of one record moves to another, so scores move both
    # ways
    half_forgotten = ExponentialMechanism(1.0, monotone=True)
    worst = max(loss(half_forgotten, scores, move) for scores in SCORES for move in BOTH_WAYS)
    assert worst > 1.5
    assert (
        loss(half_forgotten, np.zeros(2, dtype=int), np.array([1, -1]), np.array([1, 2000])) > 1.99
    )


def test_scores_that_move_by_two_are_beyond_the_promise():
    worst = max(
        loss(ExponentialMechanism(1.0, False), scores, 2 * move)
        for scores in SCORES
        for move in BOTH_WAYS
    )
    assert worst > 1.5


@pytest.mark.parametrize("monotone", [True, False])
@pytest.mark.parametrize("sizes", [1, np.array([9, 1, 4, 2])])
def test_what_is_released_follows_the_law_and_the_law_of_no_other_epsilon(monotone, sizes):
    scores, source = np.repeat(np.array([-3, 0, -1, 0]), sizes), ExactNoise()
    mechanism = ExponentialMechanism(1.5, monotone)
    sample = np.array([mechanism.release(scores, source) for _ in range(2500)])
    assert sample_p_value(sample, Distribution(0, mechanism.distribution(scores), 0.0)) > ALPHA
    for factor in (0.5, 2.0):
        other = ExponentialMechanism(factor * 1.5, monotone)
        assert sample_p_value(sample, Distribution(0, other.distribution(scores), 0.0)) < ALPHA


def test_the_scale_has_the_half_exactly_where_scores_move_both_ways():
    spy, scores = SpyNoise(), np.array([4, 2])
    assert ExponentialMechanism(0.5, True).release(scores, spy) == 0
    assert ExponentialMechanism(0.5, False).release(scores, spy) == 0
    assert spy.asked == [([4, 2], 2.0), ([4, 2], 4.0)]


def test_the_law_of_counts_of_errors_is_the_papers():
    # Nandi, Bassily 2020, algorithm 7: exp(-epsilon * errors / 2)
    errors = np.array([3, 0, 10])
    weights = np.exp(-0.8 * errors / 2)
    np.testing.assert_allclose(
        ExponentialMechanism(0.8, False).distribution(-errors), weights / weights.sum()
    )


def test_the_bound_on_the_score_lost_holds_and_is_not_idle():
    mechanism, scores = ExponentialMechanism(1.0, False), -np.arange(1000)
    for beta in (0.3, 0.01, 1e-5):
        short = mechanism.score_loss(len(scores), beta)
        assert mechanism.distribution(scores)[-scores > short].sum() <= beta
    # many candidates just beyond the bound attain it up to what the best one and beta leave
    short = int(mechanism.score_loss(10**6, 0.1))
    assert 1 - mechanism.distribution(np.append(0, np.full(10**6, -short)))[0] > 0.05
    for beta in (0.0, 1.0, float("nan")):
        with pytest.raises(ParameterError, match="beta"):
            mechanism.score_loss(10, beta)


def test_the_price_agrees_with_opendp_and_dp_accounting():
    import opendp.prelude as dp
    from dp_accounting.pld import common, privacy_loss_distribution

    dp.enable_features("contrib")
    for monotone in (True, False):
        mechanism = ExponentialMechanism(0.3, monotone)
        space = dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(T=int, monotonic=monotone)
        assert dp.m.make_noisy_max(*space, dp.max_divergence(), scale=mechanism.scale).map(
            1
        ) == pytest.approx(0.3)
    five = privacy_loss_distribution.from_privacy_parameters(
        common.DifferentialPrivacyParameters(0.3, 0.0), value_discretization_interval=0.3
    ).self_compose(5)
    for epsilon in (0.3, 0.9, 1.4):
        expected = five.get_delta_for_epsilon(epsilon)
        found = delta_upper([ExponentialMechanism(0.3, False).event(5)], epsilon)
        assert expected * (1 - 1e-9) <= found <= expected * 1.01


def test_choices_of_several_are_parts_of_one_event():
    assert ExponentialMechanism(0.3, True).event(5) == pure_event(0.3, 5)


@pytest.mark.parametrize("monotone", [0, 1, None, "no", np.True_])
def test_monotone_must_be_said(monotone):
    with pytest.raises(ParameterError, match="monotone"):
        ExponentialMechanism(1.0, monotone)


@pytest.mark.parametrize(
    "scores", [np.zeros(3), np.zeros(0, dtype=int), np.zeros((1, 2), dtype=int)]
)
def test_scores_that_do_not_fit_are_refused(scores):
    for ask in (
        ExponentialMechanism(1.0, True).distribution,
        lambda s: ExponentialMechanism(1.0, True).release(s, ExactNoise()),
    ):
        with pytest.raises(DataError):
            ask(scores)
