"""Confident voting priced as one: above every adaptive run on neighbouring votes, enumerated, and
beside other prices."""

import itertools
import math

import numpy as np
import pytest

import secretballot_verify as second_verifier
from exact_games.distributions import discrete_gaussian_distribution
from exact_games.games import adaptive_delta
from exact_games.worlds import ScriptedNoise, neighbouring_counts
from made_events import confident_event, counts_event, json_of
from noisy_plans import confident as built
from secretballot.accounting import delta_upper, teacher_shape
from secretballot.core import label_games
from secretballot.core.events import Confident
from secretballot.core.losses import ORDERS, delta_of
from secretballot.core.mechanisms import State
from secretballot.core.price import price
from secretballot.students.fitting import predicted_votes
from secretballot_verify import games


def event_of(mechanism, n_teachers, n_queries):
    return mechanism.event(teacher_shape(n_queries, 2, n_teachers))


def law_of(mechanism, votes, predicted, scale=1.0):
    """Return the chances of a refusal, of label 0 and of label 1, by the mechanism's own draws."""
    n_teachers, shape = sum(votes), teacher_shape(1, 2, sum(votes))
    first, second = (
        discrete_gaussian_distribution(scale * sigma, 1e-13)
        for sigma in (mechanism.threshold_sigma, mechanism.sigma)
    )
    opened = [np.array([votes]), np.array([predicted])]

    def drawn(*noise):
        return mechanism.draw(shape, opened, ScriptedNoise(list(noise)), State())[0][0, 0]

    # each noise decides by where it crosses one place
    passes = _tail(first, lambda noise: drawn(noise, n_teachers) != -1)
    one = _tail(second, lambda noise: drawn(10**6, noise) == 1)
    return 1 - passes, passes * (1 - one), passes * one


def _tail(law, holds):
    low, high = int(law.support[0]), int(law.support[-1])
    if not holds(high):
        return 0.0
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return float(law.pmf[law.support >= low].sum())


def steps_of(mechanism, n_teachers, interactive, scale=1.0):
    """Return all pairs of laws of one query: of all votes, with all predictions if asked."""
    against = itertools.product(range(n_teachers + 1), repeat=2) if interactive else [(0, 0)]
    pairs = set()
    for predicted in against:
        laws = [
            law_of(mechanism, (n_teachers - ones, ones), predicted, scale)
            for ones in range(n_teachers + 1)
        ]
        for one, other in itertools.pairwise(laws):
            pairs |= {(one, other), (other, one)}
    return np.array(sorted(pairs))


def true_delta(steps, queries, answers, epsilon):
    """Return the exact delta of all adaptive runs, which stop at the last answer."""
    return adaptive_delta(steps, queries, epsilon, counted=(1, 2), most=answers)


CASES = [
    (9, 6, 1.5, 1.0, False),
    (12, 10, 1.2, 3.0, False),
    (12, 6, 0.3, 1.0, False),
    (5, 4, 0.8, 0.8, True),
    (7, 3, 2.0, 1.2, True),
]


@pytest.mark.parametrize(("n_teachers", "threshold", "first", "second", "interactive"), CASES)
def test_each_bound_is_above_every_adaptive_run(n_teachers, threshold, first, second, interactive):
    mechanism = built(threshold, first, second, 3)
    steps = steps_of(mechanism, n_teachers, interactive)
    for queries, answers in ((1, 1), (2, 1), (2, 2)):
        event = event_of(mechanism.model_copy(update={"max_answers": answers}), n_teachers, queries)
        game = label_games.joint_losses(event.groups(), queries)
        orders = ORDERS[1 + 4 * min(first, second) >= ORDERS]
        charges = label_games.joint_renyi(event.groups(), queries, answers, orders)
        for epsilon in (0.2, 1.0, 2.0):
            true = true_delta(steps, queries, answers, epsilon) - 1e-11
            assert true <= delta_upper([event], epsilon)
            assert true <= games.passing_delta(json_of(event), epsilon, 50, 0.16)
            assert true <= game.delta(np.array([epsilon]))[0]
            assert true <= delta_of(charges, orders, np.array([epsilon]))[0]


def test_the_price_is_near_the_truth_and_less_noise_would_show():
    mechanism = built(11, 3.0, 2.0, 2)
    event = event_of(mechanism, 12, 2)
    steps = steps_of(mechanism, 12, interactive=False)
    apart = event.model_copy(update={"threshold": None})
    for epsilon in (0.2, 0.5):
        promised, true = delta_upper([event], epsilon), true_delta(steps, 2, 2, epsilon)
        assert true <= promised < 1.5 * true < delta_upper([apart], epsilon)
    less = steps_of(mechanism, 12, interactive=False, scale=0.7)
    assert true_delta(less, 2, 2, 0.5) > 1.3 * delta_upper([event], 0.5)


def test_a_higher_count_than_the_votes_is_not_made_of_predictions():
    # the price rests on it: predictions that raised the highest count would let even votes pass
    mechanism = built(11, 3.0, 2.0, 2)
    assert law_of(mechanism, (6, 6), (-5, -5)) == law_of(mechanism, (6, 6), (0, 0))
    raised = steps_of(built(6, 3.0, 2.0, 2), 12, interactive=False)
    assert true_delta(raised, 2, 2, 0.5) > 1.4 * delta_upper([event_of(mechanism, 12, 2)], 0.5)


@pytest.mark.parametrize(
    ("event", "share"),
    [((80, 20.0, 10.0, 60, 25, 100), 0.9), ((125, 60.0, 30.0, 20, 10, 250), 1.0)],
)
def test_it_costs_less_where_the_threshold_keeps_uncertain_labels_back(event, share):
    threshold, first, second, queries, answers, n_teachers = event
    apart = Confident(
        threshold_sigma=first, sigma=second, queries=queries, answers=answers, n_classes=2
    )
    whole = apart.model_copy(update={"threshold": threshold, "n_teachers": n_teachers})
    found, least = price([apart], delta=1e-5), price([whole], delta=1e-5)
    assert least.epsilon <= share * found.epsilon * (1 + 1e-9)
    assert (whole.renyi(ORDERS) <= apart.renyi(ORDERS)).all()


def test_the_second_program_confirms_it_and_no_less_noise():
    event = event_of(built(90, 12.0, 9.0, 12), 100, 12)
    delta = delta_upper([event], 1.0)
    own = second_verifier.price_of(json_of(event), 1.0, delta)
    assert 0.8 * delta <= own.upper <= delta * (1 + second_verifier.ERROR)
    assert own.lower <= own.upper
    assert own.method == "a game of both"
    event = event_of(built(45, 8.0, 6.0, 6), 50, 6)
    delta = delta_upper([event], 1.0)
    for weaker in ({"sigma": 4.7}, {"threshold_sigma": 4.7}):
        broken = json_of(event) | weaker
        assert second_verifier.price_of(broken, 1.0, delta).upper > 1.1 * delta


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_difference_from_any_prediction_moves_by_one_vote_at_most(n_classes):
    here, there = neighbouring_counts(6, n_classes)
    rng = np.random.default_rng(0)
    for predicted in rng.dirichlet(np.ones(n_classes), 40):
        against = predicted_votes([predicted], 6)
        tops = [(votes - against).max(axis=1) for votes in (here, there)]
        assert np.abs(tops[0] - tops[1]).max() == 1


@pytest.mark.parametrize("n_classes", [2, 10])
def test_the_price_lies_between_two_that_dp_accounting_gives(n_classes):
    from dp_accounting.pld import privacy_loss_distribution

    event = confident_event(60.0, 20.0, 120, 40, n_classes)
    shifts = 40 * (1 if n_classes == 2 else 2)
    gaussian = privacy_loss_distribution.from_gaussian_mechanism
    threshold = gaussian(60.0 / math.sqrt(120), value_discretization_interval=1e-4)
    counts = gaussian(20.0 / math.sqrt(shifts), value_discretization_interval=1e-4)
    whole = threshold.compose(counts)
    for epsilon in (1.0, 2.0):
        above = whole.get_delta_for_epsilon(epsilon)
        found = delta_upper([event], epsilon)
        assert found < above * 1.02  # answers about the threshold tell less than the top itself
        assert found > 0
        # counts of both scales cost what the library says: the composition itself is the same
        both = delta_upper([counts_event(60.0, 120), counts_event(20.0, shifts)], epsilon)
        # but for the rounding, which costs a relative 2 / sigma^2 of sigma
        assert 0.999 * above < both < 1.2 * above
