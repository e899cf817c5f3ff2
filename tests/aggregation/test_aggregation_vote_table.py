"""Voting by a table of chances: what is drawn, in fractions; what it costs; what it is good for."""

import itertools
import json
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binomtest

import secretballot as sb
from made_events import table_event
from secretballot.aggregation import aggregator_from_description
from secretballot.audit import ScriptedNoise
from secretballot.core.noise import ExactNoise
from secretballot.exceptions import DataError, ParameterError
from secretballot.privacy.accounting import delta_upper
from secretballot.privacy.mechanisms import VoteTableMajority

HALF, ONE = 2**52, 2**53
WEIGHTS = (HALF, HALF // 2, HALF // 8, HALF // 64)
BUDGET = sb.PrivacyBudget(1.0, 1e-6)


def rows(votes: list[int], n_teachers: int) -> np.ndarray:
    return np.array([[n_teachers - one, one] for one in votes])


def law_of(mechanism: VoteTableMajority, votes: int) -> Fraction:
    """P(label 1) of the very code, from one draw between each two chances of the table."""
    cuts = sorted({0, *mechanism.weights})
    ends = [*cuts[1:], ONE]
    counts = rows([votes] * len(cuts), mechanism.n_teachers)
    first = mechanism.release(counts, ScriptedNoise(cuts))
    last = mechanism.release(counts, ScriptedNoise([end - 1 for end in ends]))
    # nothing changes between two chances
    assert (first == last).all()
    lengths = (Fraction(end - cut, ONE) for cut, end in zip(cuts, ends, strict=True))
    return sum((length for length, label in zip(lengths, first, strict=True) if label), Fraction(0))


@pytest.mark.parametrize("n_teachers", [7, 9, 8])
def test_a_label_has_the_chance_that_the_table_gives(n_teachers: int) -> None:
    weights = WEIGHTS if n_teachers % 2 == 0 else WEIGHTS[1:]
    mechanism = VoteTableMajority(weights, n_teachers)
    chances = [law_of(mechanism, votes) for votes in range(n_teachers + 1)]
    for votes, chance in enumerate(chances):
        margin = abs(2 * votes - n_teachers)
        minority = Fraction(weights[min(margin // 2, len(weights) - 1)], ONE)
        assert chance == (minority if 2 * votes < n_teachers else 1 - minority)
        # neither class is preferred, and more votes never make a label rarer
        assert chance + chances[n_teachers - votes] == 1
    assert chances == sorted(chances)
    # what is priced is what is drawn
    priced = [Fraction(chance, ONE) for chance in mechanism.event().chances.chances]
    assert set(priced) == set(chances)


def true_delta(chances: list[Fraction], queries: int, epsilon: float) -> float:
    """The best adaptive attack on labels with these chances of 1, vote by vote, in fractions."""
    ratio = Fraction(math.exp(epsilon))
    steps = {pair for a, b in itertools.pairwise(chances) for pair in ((a, b), (b, a))}

    def value(p: Fraction, q: Fraction, left: int) -> Fraction:
        if left == 0:
            return max(Fraction(0), p - ratio * q)
        return max(
            value(p * a, q * b, left - 1) + value(p * (1 - a), q * (1 - b), left - 1)
            for a, b in steps
        )

    return float(value(Fraction(1), Fraction(1), queries))


@pytest.mark.parametrize("n_teachers", [2, 5, 8, 9])
@pytest.mark.parametrize("queries", [1, 2])
def test_calibrated_tables_keep_the_budget_and_broken_ones_do_not(
    n_teachers: int, queries: int
) -> None:
    budget = sb.PrivacyBudget(1.0, 1e-2)
    aggregator = sb.VoteTableAggregator.calibrate(budget, queries, n_teachers=n_teachers)
    mechanism = VoteTableMajority(aggregator.weights, n_teachers)
    chances = [law_of(mechanism, votes) for votes in range(n_teachers + 1)]
    truth = true_delta(chances, queries, 1.0)
    assert 0.9 * budget.delta < truth <= budget.delta
    # a teacher that moves the count by two, and a table read one vote too far out, are caught
    assert true_delta(chances[::2], queries, 1.0) > budget.delta
    if n_teachers > 2:
        half = len(chances) // 2
        sharper = [*chances[: half - 1], *chances[half + (n_teachers % 2 == 0) :]]
        assert true_delta(sharper, queries, 1.0) > budget.delta


def test_draws_follow_the_table_and_no_other() -> None:
    aggregator = sb.VoteTableAggregator(WEIGHTS, 40_000, n_teachers=10, budget=BUDGET)
    for votes in (2, 4, 5, 7, 10):
        counts = rows([votes] * 40_000, 10)
        labels = aggregator.answer(counts, 10, ExactNoise()).labels
        ones = float(law_of(VoteTableMajority(WEIGHTS, 10), votes))
        drawn = int(labels.sum())
        assert binomtest(drawn, 40_000, ones).pvalue > 1e-6
        for wrong in (ones - 0.03, ones + 0.03):
            if 0 < wrong < 1:
                assert binomtest(drawn, 40_000, wrong).pvalue < 1e-6


def test_labels_alone_leave_and_every_query_is_answered() -> None:
    aggregator = sb.VoteTableAggregator(WEIGHTS, 3, n_teachers=10, budget=BUDGET)
    # draws below the weight give the minority's label
    noise = ScriptedNoise([HALF // 2 - 1, HALF // 2, HALF - 1])
    answers = aggregator.answer(rows([6, 6, 5], 10), 10, noise)
    assert answers.labels.tolist() == [0, 1, 0]
    assert answers.noisy_counts is None
    assert answers.n_reached == 3
    run = aggregator.start(10, ScriptedNoise([0, ONE - 1]))
    assert run.answer(rows([0], 10)).labels.tolist() == [1]
    assert run.answer(rows([0], 10)).labels.tolist() == [0]
    assert run.secret_state is None
    assert not run.stopped


def test_the_budget_is_that_of_the_table() -> None:
    given = sb.VoteTableAggregator(WEIGHTS, 5, n_teachers=10, delta=1e-5)
    (event,) = given.events(10)
    assert event == table_event(WEIGHTS, 5, 10)
    assert delta_upper([event], given.budget.epsilon) <= 1e-5
    with pytest.raises(ParameterError):
        given.events(11)
    with pytest.raises(ParameterError, match="budget"):
        sb.VoteTableAggregator(WEIGHTS, 5, n_teachers=10)


def test_it_is_rebuilt_from_its_description() -> None:
    aggregator = sb.VoteTableAggregator.calibrate(BUDGET, 5, n_teachers=41)
    described = json.loads(json.dumps(aggregator.describe()))
    assert aggregator_from_description(described) == aggregator
    assert pickle.loads(pickle.dumps(aggregator)) == aggregator
    assert hash(aggregator_from_description(described)) == hash(aggregator)
    assert len(repr(aggregator)) < 200
    for change in ({"n_classes": 3}, {"weights": [1, 2]}, {"sigma": 3.0}, {"calibration": "paper"}):
        with pytest.raises(ParameterError):
            aggregator_from_description(described | change)
    # what is no list of integers is refused as such, and not by an error of Python's
    for weights in (None, 5, "12", {}, [], [[1]], [2**52, -1], [2**60], [math.nan], [True]):
        with pytest.raises(ParameterError):
            aggregator_from_description(described | {"weights": weights})


def test_what_is_set_later_is_drawn_and_priced_alike() -> None:
    sharp, votes = (HALF, 1), rows([4] * 3, 10)
    aggregator = sb.VoteTableAggregator(WEIGHTS, 3, n_teachers=10, budget=BUDGET)
    aggregator.weights = sharp
    assert aggregator.events(10) == (table_event(sharp, 3, 10),)
    assert aggregator.answer(votes, 10, ScriptedNoise([1] * 3)).labels.tolist() == [0] * 3
    ledger = sb.Ledger.in_memory(dataset="votes", budget=BUDGET)
    counts = sb.votes_of_counts(votes, ["a", "b"])
    with pytest.raises(sb.exceptions.BudgetError):
        sb.release(counts, aggregator, ledger)
    assert ledger.releases() == 0


def test_counts_that_do_not_fit_are_refused_without_naming_a_vote() -> None:
    aggregator = sb.VoteTableAggregator(WEIGHTS, 3, n_teachers=10, budget=BUDGET)
    for counts in (np.array([[7, 7]]), np.array([[3, 3, 4]]), rows([1] * 4, 10)):
        with pytest.raises(DataError) as caught:
            aggregator.answer(counts, 10, ExactNoise())
        assert "7" not in str(caught.value)
    with pytest.raises(DataError, match="one vote"):
        VoteTableMajority(WEIGHTS, 10).release(np.array([[6, 6]]), ExactNoise())
    with pytest.raises(ParameterError, match="n_teachers"):
        aggregator.answer(rows([3], 12), 12, ExactNoise())
    with pytest.raises(ParameterError, match="n_classes"):
        sb.VoteTableAggregator.calibrate(BUDGET, 3, n_teachers=10, n_classes=3)
