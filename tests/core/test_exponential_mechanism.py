"""The exponential mechanism: its loss on all neighbouring scores, and the ways to break it."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from secretballot.accounting import BoundedRange, delta_upper
from secretballot.core.exponential import least_quotient
from secretballot.core.mechanisms import ExponentialChoice, State
from secretballot.core.types import ScoreShape
from secretballot.teachers.votes import guarantee_of

SCORES = [np.array(row) for row in itertools.product(range(4), repeat=3)]
BOTH_WAYS = [np.array(move) for move in itertools.product((-1, 0, 1), repeat=3)]
ONE_WAY = [np.array(move) for move in itertools.product((0, 1), repeat=3)]
PAIRS = [("add-remove", ONE_WAY), ("replace-one", BOTH_WAYS)]


def law(scores, relation, epsilon=1.0):
    """Return the chances of all candidates, by the scores and the scale that noise is asked for."""
    asked = []
    noise = SimpleNamespace(exponential_index=lambda *given: asked.append(given) or 0)
    shape = ScoreShape(guarantee=guarantee_of("record", relation))
    ExponentialChoice(epsilon=epsilon).draw(shape, (scores,), noise, State())
    ((given, scale),) = asked
    weights = np.exp((given - given.max()) / scale)
    return weights / weights.sum()


def loss(relation, scores, move, sizes=1, epsilon=1.0):
    """Return the largest log ratio between the laws at two neighbours, in both directions, where
    each candidate stands for so many equal ones."""
    here, there = (
        law(np.repeat(table, sizes), relation, epsilon) for table in (scores, scores + move)
    )
    return np.abs(np.log(here / there)).max()


@pytest.mark.parametrize("epsilon", [0.1, 3.0])
@pytest.mark.parametrize(("relation", "moves"), PAIRS)
@pytest.mark.parametrize("sizes", [1, np.array([1, 50, 3])])
def test_no_neighbours_lose_more_than_epsilon(epsilon, relation, moves, sizes):
    worst = max(loss(relation, s, move, sizes, epsilon) for s in SCORES for move in moves)
    assert 0.5 * epsilon < worst <= epsilon * (1 + 1e-12)


@pytest.mark.parametrize(("relation", "others"), [("add-remove", 0), ("replace-one", -1)])
def test_epsilon_is_attained_by_one_candidate_against_many(relation, others):
    scores, move = np.zeros(2, dtype=int), np.array([1, others])
    assert 0.998 < loss(relation, scores, move, np.array([1, 2000])) <= 1.0


def test_forgetting_the_half_loses_twice_epsilon_where_a_record_is_replaced():
    # errata 6: 1.99 instead of 1; a mistake of one record moves to another, so scores move both
    # ways
    worst = max(loss("add-remove", scores, move) for scores in SCORES for move in BOTH_WAYS)
    assert worst > 1.5
    scores, sizes = np.zeros(2, dtype=int), np.array([1, 2000])
    assert loss("add-remove", scores, np.array([1, -1]), sizes) > 1.99


def test_scores_that_move_by_two_are_beyond_the_promise():
    assert max(loss("replace-one", s, 2 * move) for s in SCORES for move in BOTH_WAYS) > 1.5


def test_the_law_of_counts_of_errors_is_the_papers():
    # Nandi, Bassily 2020, algorithm 7: exp(-epsilon * errors / 2)
    errors = np.array([3, 0, 10])
    weights = np.exp(-0.8 * errors / 2)
    np.testing.assert_allclose(law(-errors, "replace-one", 0.8), weights / weights.sum())


def test_the_price_agrees_with_opendp_and_dp_accounting():
    import opendp.prelude as dp
    from dp_accounting.pld import common, privacy_loss_distribution

    dp.enable_features("contrib")
    for moved in (1, 2):
        space = (
            dp.vector_domain(dp.atom_domain(T=int)),
            dp.linf_distance(T=int, monotonic=moved == 1),
        )
        scale = least_quotient(moved, 0.3)
        assert dp.m.make_noisy_max(*space, dp.max_divergence(), scale=scale).map(
            1
        ) == pytest.approx(0.3)
    five = privacy_loss_distribution.from_privacy_parameters(
        common.DifferentialPrivacyParameters(0.3, 0.0), value_discretization_interval=0.3
    ).self_compose(5)
    for epsilon in (0.3, 0.9, 1.4):
        # a range of 0.3 is less than a loss of 0.3 either way
        assert delta_upper([BoundedRange(epsilon=0.3, count=5)], epsilon) <= (
            five.get_delta_for_epsilon(epsilon) * 1.01
        )
