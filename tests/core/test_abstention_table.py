"""A table of chances that is charged for its abstentions: its inequalities, all adaptive runs on
small votes, what it draws, where it stops, and how many votes it needs."""

import decimal
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf

from exact_games.games import Stream, delta_of_all_orders, stream_moves
from made_events import abstention_event, admits
from secretballot.accounting import (
    PrivacyBudget,
    TableStream,
    abstention_table,
    calibrate_abstention_table,
    calibrate_sparse_vector,
    calibrate_stream,
    delta_upper,
    needed_distance,
)
from secretballot.accounting.abstention_table import answer_weights
from secretballot.accounting.recipes import answer_chance, check_answerable, stream_mechanism
from secretballot.core import streams
from secretballot.core.filters import RenyiFilter
from secretballot.core.streams import BITS, keeps_inequalities, neighbours_keep
from secretballot.exceptions import ParameterError

BUDGET = PrivacyBudget(1.0, 1e-6)
WHOLE = 1 << BITS
ORDER = 3
#: A short table that rises within four votes.
SHORT = abstention_event(float(ORDER), 0.75, 0.01, 2)


def chances_of(event, largest=4):
    """Return the chances of an answer at distances 0 to `largest`, as fractions."""
    weights = answer_weights(event, largest).tolist()
    weights += [weights[-1]] * (largest + 1 - len(weights))
    return [Fraction(weight, WHOLE) for weight in weights]


def left_sides(s, t, order, charge):
    """Return both left sides of the inequality in fifty digits of another library."""
    with mp.workdps(50):
        p, q = mpf(int(s)) / WHOLE, mpf(int(t)) / WHOLE
        f, g, c = 1 - p, 1 - q, mp.exp(-mpf(charge))
        return (
            f**order * g ** (1 - order) * c + p**order * q ** (1 - order),
            g**order * f ** (1 - order) * c + q**order * p ** (1 - order),
        )


@pytest.mark.parametrize(
    "event",
    [
        SHORT,
        abstention_event(18.2, 0.1434, 8e-10, 50),
        abstention_event(1.3, 2.0, 0.3, 1),
        abstention_event(300.5, 1e-3, 1e-14, 1000),
        abstention_event(8000.0, 40.0, 2.0**-56, 3),
    ],
    ids=str,
)
def test_every_neighbouring_pair_keeps_both_inequalities_and_wastes_nothing(event):
    weights = answer_weights(event, 150).tolist()
    assert weights == sorted(weights)
    largest = Fraction(event.false_answer) * WHOLE
    assert 0 < weights[0] <= largest < weights[0] * (1 + 2**-30) + 1
    assert keeps_inequalities(event, tuple(weights))
    for s, t in itertools.pairwise(weights):
        assert max(left_sides(s, t, event.order, event.charge)) <= 1
        # one step further of the grid breaks it
        more = t + (1 << max(0, min(t, WHOLE - t).bit_length() - 32))
        assert more >= WHOLE or max(left_sides(s, more, event.order, event.charge)) > 1 - 1e-40


@pytest.mark.parametrize("order", [1 + 2.0**-10, 2.0**13])
@pytest.mark.parametrize("charge", [2.0**-44, 64.0])
@pytest.mark.parametrize("answer", [2.0**-56, 0.5])
def test_tables_of_extreme_terms_are_drawn_and_keep_their_inequalities(order, charge, answer):
    # of an answer with chance 2^-56 nothing is left of the other chance in floats
    event = abstention_event(order, charge, answer, 1)
    weights = answer_weights(event, 200)
    assert keeps_inequalities(event, tuple(weights.tolist()))
    assert int(weights[0]) == round(answer * 2**62)


def test_a_table_without_weights_or_with_one_of_zero_keeps_no_inequality():
    weights = answer_weights(SHORT, 4)
    assert keeps_inequalities(SHORT, tuple(weights.tolist()))
    assert not keeps_inequalities(SHORT, ())
    assert not keeps_inequalities(SHORT, (0, int(weights[1])))
    assert keeps_inequalities(SHORT, (1,))


def test_a_sum_must_keep_clear_of_one_whatever_the_callers_decimals_are(monkeypatch):
    event = abstention_event(order=18.0, charge=0.14, false_answer=1e-9, abstentions=5)
    wanted = answer_weights(event, 7)
    abstention_table._walk.cache_clear()
    odd = decimal.Context(prec=3, traps=[decimal.Inexact, decimal.FloatOperation])
    with decimal.localcontext(odd):
        found = answer_weights(event, 7)
    assert found.tolist() == wanted.tolist()
    assert 0 < streams._CLEAR < 2.0**-140
    assert neighbours_keep(18.0, 0.14, WHOLE // 2, WHOLE // 2)
    monkeypatch.setattr(streams, "_CLEAR", decimal.Decimal("0.1"))
    assert not neighbours_keep(18.0, 0.14, WHOLE // 2, WHOLE // 2)


def true_delta(chances, n_teachers, n_classes, queries, stops, epsilon):
    """Return the exact delta of all adaptive runs.

    What is told, and where, is taken from the mechanism's own code; the chances are given.
    """
    told = {at: np.array([float(chance)]) for at, chance in enumerate(chances)}
    moves = stream_moves(n_teachers, n_classes)
    stream = Stream(stops, moves, lambda at: told[min(at, len(told) - 1)], np.ones(1))
    return delta_of_all_orders([stream], queries, epsilon)


@pytest.mark.parametrize(("n_teachers", "n_classes"), [(8, 2), (9, 2), (5, 3)])
@pytest.mark.parametrize("stops", [1, 2])
def test_all_adaptive_runs_on_small_votes_keep_the_price(n_teachers, n_classes, stops):
    event = SHORT.changed(abstentions=stops)
    for epsilon in (0.5, 2.0, 4.0):
        true = true_delta(chances_of(event), n_teachers, n_classes, 4, stops, epsilon)
        assert 0 < true <= delta_upper([event], epsilon)


def test_a_table_that_rises_too_fast_at_one_distance_exceeds_the_price():
    chances = chances_of(SHORT)
    chances[2] = 1 - (1 - chances[3]) / 100
    chances[3] = chances[4] = max(chances[2:])
    assert any(
        true_delta(chances, 9, 2, 4, 2, epsilon) > delta_upper([SHORT], epsilon)
        for epsilon in (1.0, 2.0, 3.0, 4.0)
    )


def test_a_failure_that_is_not_counted_is_caught():
    # at a large epsilon the failure alone is left, and it is what the price says; it follows the
    # abstentions, not the queries
    values = [true_delta(chances_of(SHORT), 9, 2, n, 2, 30.0) for n in (1, 2, 4)]
    assert values[0] < values[1] == pytest.approx(values[2])
    true = values[2]
    failure = 1 - (1 - SHORT.false_answer) ** 2
    assert true == pytest.approx(failure, rel=1e-9)
    promised = delta_upper([SHORT], 30.0)
    assert true <= promised
    assert promised == pytest.approx(failure, rel=1e-6)
    # without it the price would be a hundred-thousandth of the truth
    alone = math.exp(2 * (2 * SHORT.charge / 2 - 30.0)) * (2 / 3) ** 3 / 2
    assert alone < 1e-5 * true
    # and charged once for a stream of two, half of it
    assert SHORT.false_answer + alone < true


def test_orders_below_its_own_have_its_divergence_and_those_above_none():
    event = abstention_event(18.2, 0.1434, 8e-10, 50)
    whole = 50 * 0.1434 / 17.2
    assert float(event.renyi(np.array([18.2]))[0]) == pytest.approx(whole, rel=1e-12)
    assert float(event.renyi(np.array([2.0]))[0]) == float(event.renyi(np.array([18.2]))[0])
    assert float(event.renyi(np.array([18.3]))[0]) == math.inf


def test_the_losses_of_divergences_have_their_profile_and_less_near_nothing():
    event = abstention_event(27.0, 0.25, 4e-9, 50)
    at = np.array([0.01, 0.1, 0.3, 0.6, 0.9, 1.2, 2.0])
    share = event.losses().delta(at) / event.profile()[0](at)
    assert (share[:3] < 0.9).all()  # as neighbours have no order
    assert share[3:] == pytest.approx(1, rel=1e-3)
    assert (share[3:] > 1).all()


def test_a_renyi_filter_admits_a_table_of_its_order():
    rule = RenyiFilter(PrivacyBudget(2.0, 1e-6))
    orders = (rule.order, rule.order + 1, rule.order - 1)
    grants = [
        ((abstention_event(order, 0.1, 1e-9, 10),), PrivacyBudget(1.0, 1e-7)) for order in orders
    ]
    assert [admits(rule, [], grant) for grant in grants] == [True, True, False]
    assert not admits(rule, 20 * grants[:1], grants[0])


@pytest.mark.parametrize(
    ("budget", "stops"),
    [(BUDGET, 30), (PrivacyBudget(0.3, 1e-8), 500), (PrivacyBudget(8.0, 1e-5), 1)],
)
def test_the_calibrated_table_spends_the_budget_and_no_neighbouring_order_is_better(budget, stops):
    event = calibrate_abstention_table(budget, stops)
    assert 0.999 * budget.delta < delta_upper([event], budget.epsilon) <= budget.delta
    best = needed_distance(event)
    for share in (0.95, 1.05):
        order = 1 + (event.order - 1) * share
        other = calibrate_abstention_table(budget, stops, order=order)
        assert best <= 1.002 * needed_distance(other)


def test_one_abstention_is_left_to_the_sparse_vector():
    assert isinstance(calibrate_stream(BUDGET, 50), TableStream)
    assert calibrate_stream(BUDGET, 1) == calibrate_sparse_vector(BUDGET, 1)


def test_tables_that_hardly_answer_are_refused():
    short = stream_mechanism(SHORT, 9)
    chances = [answer_chance(short, distance) for distance in range(5)]
    assert chances == list(map(float, chances_of(SHORT)))
    event = calibrate_abstention_table(BUDGET, 50)
    check_answerable(stream_mechanism(event, 400), 400)
    with pytest.raises(ParameterError, match="teachers"):
        check_answerable(stream_mechanism(event, 60), 60)
