"""Confident and interactive voting: what they draw, where they stop, and what short runs really
cost."""

import itertools
import math
import warnings

import numpy as np
import pytest
from secretballot.aggregation import ConfidentAggregator, InteractiveAggregator

from made_events import admits, class_event, confident_event, counts_event, label_event
from secretballot.accounting import (
    BinaryLabels,
    PrivacyBudget,
    delta_upper,
    epsilon_upper,
    event_in,
    filter_for,
)
from secretballot.audit import (
    ScriptedNoise,
    all_counts,
    discrete_gaussian_distribution,
    frequency_p_value,
    neighbouring_counts,
)
from secretballot.core.noise import ExactNoise
from secretballot.exceptions import DataError, ParameterError
from secretballot.students.confirmed import predicted_votes
from sessions import labels_drawn

BUDGET = PrivacyBudget(1.0, 1e-6)
LOOSE = PrivacyBudget(1e4, 0.5)  # for noise that promises nothing
ALPHA = 1e-6
TAIL = 1e-9


def binary(ones, n_teachers):
    ones = np.asarray(ones)
    return np.column_stack([n_teachers - ones, ones])


def built(threshold=5, threshold_sigma=1.5, sigma=1.0, n_queries=4, **settings):
    return ConfidentAggregator(
        threshold, threshold_sigma, sigma, n_queries, **{"budget": LOOSE, **settings}
    )


# -- the definition, with injected noise
# --------------------------------------------------------------------------------------------------


def drawn(aggregator, votes, noise, state=None, predicted=None):
    mechanism = aggregator.core_mechanism(int(votes[0].sum()))
    return labels_drawn(mechanism, votes, ScriptedNoise(noise), state, predicted)


def test_a_query_is_answered_where_the_noisy_top_reaches_the_threshold():
    votes = binary([4, 6, 2, 8], 8)
    # highest counts 4, 6, 6, 8; noise on them first, then one draw for each label
    labels, _ = drawn(built(threshold=5), votes, [1, -1, -2, -3, 0, -1, 5])
    # noisy tops 5, 5, 4, 5; noisy counts of class 1: 4 + 0, 6 - 1, 8 + 5
    assert labels == [1, 1, -1, 1]


def test_more_classes_draw_on_every_count_and_ties_go_to_the_lowest():
    votes = np.array([[3, 3, 2], [0, 1, 7]])
    assert drawn(built(threshold=3, n_classes=3), votes, [0, -4, 0, 0, 1, 0, 0, 0])[0] == [0, 2]


def test_nothing_is_told_after_the_last_answer():
    votes = binary([8, 8, 0, 8, 8], 8)
    aggregator = built(n_queries=5, max_answers=2)
    # the first is refused, the next two answered
    assert drawn(aggregator, votes, [-9, 0, 0, 0, 0, 0, 0])[0] == [-1, 1, 0]
    first, state = drawn(aggregator, votes[:2], [-9, 0, 0])
    assert (first, state.used) == ([-1, 1], 1)
    then, state = drawn(aggregator, votes[2:3], [0, 0], state)
    assert (then, state.used) == ([0], 2)
    assert drawn(aggregator, votes[3:], [], state) == ([], state)


def test_interactive_voting_compares_with_what_the_student_predicts():
    votes = binary([7, 7, 7, 1], 8)
    aggregator = InteractiveAggregator(4, 1.5, 1.0, 4, budget=LOOSE)
    student = [[0.0, 1.0], [1.0, 0.0], [0.5, 0.5], [0.9, 0.1]]
    # predicted votes (0, 8), (8, 0), (4, 4), (7, 0): the tops of the differences are 1, 7, 3, 1
    predicted = predicted_votes(student, votes.shape, 8)
    labels, _ = drawn(aggregator, votes, [0, 0, 1, 2, 0, 0], predicted=predicted)
    assert labels == [-1, 1, 1, -1]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_difference_from_any_prediction_moves_by_one_vote_at_most(n_classes):
    here, there = neighbouring_counts(6, n_classes)
    rng = np.random.default_rng(0)
    for predicted in rng.dirichlet(np.ones(n_classes), 40):
        against = predicted_votes([predicted], (1, n_classes), 6)
        tops = [(votes - against).max(axis=1) for votes in (here, there)]
        assert np.abs(tops[0] - tops[1]).max() == 1


# -- the price of short runs, enumerated
# --------------------------------------------------------------------------------------------------


def one_query(aggregator, row, n_teachers, laws, against=None):
    """Return the chances of a refusal and of each label for one row of votes, by the aggregator's
    own code under all noise that is listed."""
    first, second = laws
    classes = aggregator.n_classes
    draws = 1 if classes == 2 else classes
    labels = np.array(list(itertools.product(second.support, repeat=draws)))
    weights = np.prod([second.pmf[labels[:, i] - second.low] for i in range(draws)], axis=0)
    chances = np.zeros(classes + 1)
    top = max(row) if against is None else int((np.array(row) - against).max())
    # the noise of the threshold matters by its side alone, the labels' noise only where it passes
    for noise, chance in zip(first.support.tolist(), first.pmf, strict=True):
        script = [noise]
        if top + noise >= aggregator.threshold:
            continue
        predicted = None if against is None else np.array([against])
        assert drawn(aggregator, np.array([row]), script, predicted=predicted)[0] == [-1]
        chances[0] += chance
    passing = next((n for n in first.support.tolist() if top + n >= aggregator.threshold), None)
    if passing is None:
        return chances
    many = type(aggregator).from_description(
        {**aggregator.describe(), "n_queries": len(labels), "max_answers": len(labels)}
    )
    rows = np.tile(row, (len(labels), 1))
    script = np.concatenate([np.full(len(labels), passing), labels.ravel()])
    found = np.array(drawn(many, rows, script)[0])
    passes = float(first.pmf[first.support >= passing].sum())
    for label in range(classes):
        chances[label + 1] = passes * float(weights[found == label].sum())
    return chances


def query_steps(aggregator, n_teachers, laws=None):
    """Return the outcome distributions of one query on all neighbouring votes."""
    laws = laws or [
        discrete_gaussian_distribution(sigma, 1e-11)
        for sigma in (aggregator.threshold_sigma, aggregator.sigma)
    ]
    classes = aggregator.n_classes
    outcomes = {
        tuple(row): one_query(aggregator, row, n_teachers, laws)
        for row in all_counts(n_teachers, classes).tolist()
    }
    here, there = neighbouring_counts(n_teachers, classes)
    pairs = {
        (tuple(a), tuple(b)): (outcomes[tuple(a)], outcomes[tuple(b)])
        for a, b in zip(here.tolist(), there.tolist(), strict=True)
    }
    return list(pairs.values())


def true_delta(steps, queries, answers, epsilon):
    """Return the exact delta of a run that stops at a number of queries or of answers, against an
    adversary who chooses every query from all that was told."""
    p = np.array([step[0] for step in steps])
    with np.errstate(divide="ignore", invalid="ignore"):
        moves = np.where(p > 0, np.log(np.array([step[1] for step in steps])) - np.log(p), 0.0)
    moves = np.where(np.isneginf(moves), -800.0, moves)
    unlisted = np.maximum(0.0, 1 - p.sum(axis=1))

    def value(x, left, most):
        """Largest mean of (1 - x')_+ from log ratios x, an array."""
        if not left or not most:
            return np.maximum(0.0, -np.expm1(np.minimum(x, 700.0)))
        after = (x[:, None, None] + moves).ravel()
        refused = after.reshape(len(x), *moves.shape)[:, :, 0]
        best = np.tile(unlisted, (len(x), 1))
        best += p[:, 0] * merged(refused, left - 1, most)
        for label in range(1, p.shape[1]):
            told = after.reshape(len(x), *moves.shape)[:, :, label]
            best += p[:, label] * merged(told, left - 1, most - 1)
        return best.max(axis=1)

    def merged(x, left, most):
        distinct, where = np.unique(np.round(x, 10), return_inverse=True)
        return value(distinct, left, most)[where].reshape(x.shape)

    return float(value(np.array([epsilon]), queries, answers)[0])


RUNS = [(9, 5, 1.5, 1.0), (8, 4, 2.0, 2.0), (8, 6, 3.0, 1.2), (5, 3, 0.8, 0.8)]


@pytest.mark.parametrize(("n_teachers", "threshold", "threshold_sigma", "sigma"), RUNS)
@pytest.mark.parametrize(("queries", "answers"), [(1, 1), (2, 1), (3, 1), (3, 3)])
def test_short_runs_of_two_classes_keep_the_promise(
    n_teachers, threshold, threshold_sigma, sigma, queries, answers
):
    aggregator = built(threshold, threshold_sigma, sigma, queries, max_answers=answers)
    steps = query_steps(aggregator, n_teachers)
    for epsilon in (0.3, 1.0, 2.0):
        true = true_delta(steps, queries, answers, epsilon)
        assert true <= delta_upper(aggregator.events(n_teachers), epsilon) + TAIL


def test_the_price_is_not_far_above_the_truth():
    # one vote moves the top and the label at once only where both are near; what is charged for
    # both together is within a small factor of what the worst of all adaptive runs loses
    aggregator = built(5, 3.0, 2.0, 4, max_answers=2)
    steps = query_steps(aggregator, 9)
    for epsilon in (0.3, 0.8):
        true = true_delta(steps, 4, 2, epsilon)
        promised = delta_upper(aggregator.events(9), epsilon)
        assert promised / 1.6 < true <= promised + TAIL


@pytest.mark.parametrize(("threshold_sigma", "sigma"), [(1.5, 1.0), (1.0, 1.0)])
def test_short_runs_of_three_classes_keep_the_promise(threshold_sigma, sigma):
    aggregator = built(3, threshold_sigma, sigma, 2, max_answers=1, n_classes=3)
    laws = [discrete_gaussian_distribution(s, 1e-9) for s in (threshold_sigma, sigma)]
    steps = query_steps(aggregator, 4, laws)
    for epsilon in (0.5, 1.5):
        true = true_delta(steps, 2, 1, epsilon)
        promised = delta_upper(aggregator.events(4), epsilon)
        assert 0.2 * promised < true <= promised + 1e-7


def test_broken_variants_are_caught():
    sound = built(5, 2.0, 1.5, 3, max_answers=1)
    steps, k = query_steps(sound, 9), 9
    promised = delta_upper(sound.events(k), 0.5)
    assert true_delta(steps, 3, 1, 0.5) <= promised
    # a cap that is not kept: every query is answered that passes
    assert true_delta(steps, 3, 3, 0.5) > 1.03 * promised
    # a threshold for free, as where its cost is overwritten by that of the label
    free = delta_upper([label_event(1.5, 1)], 0.5)
    assert true_delta(steps, 3, 1, 0.5) > 1.3 * free
    # too little noise on the one, on the other, or on both
    sound = built(5, 3.0, 3.0, 3)
    promised = delta_upper(sound.events(8), 0.5)
    for less in ((1.0, 0.5), (0.5, 1.0), (0.7, 0.7)):
        laws = [discrete_gaussian_distribution(3.0 * factor, 1e-11) for factor in less]
        assert true_delta(query_steps(sound, 8, laws), 3, 3, 0.5) > 1.5 * promised
    laws = [discrete_gaussian_distribution(3.0, 1e-11)] * 2
    assert true_delta(query_steps(sound, 8, laws), 3, 3, 0.5) <= promised


def test_drawn_answers_follow_their_law_and_less_noise_would_show():
    trials, row = 20_000, [6, 3]
    aggregator = built(6, 3.0, 2.5, trials)
    mechanism = aggregator.core_mechanism(9)
    labels = np.array(labels_drawn(mechanism, np.tile(row, (trials, 1)), ExactNoise())[0])
    found = {}
    for factor in (1.0, 0.7):
        laws = [discrete_gaussian_distribution(factor * sigma) for sigma in (3.0, 2.5)]
        exact = one_query(aggregator, row, 9, laws)
        found[factor] = [
            frequency_p_value(int((labels == label).sum()), trials, float(exact[label + 1]))
            for label in (-1, 0, 1)
        ]
    assert min(found[1.0]) > ALPHA
    assert min(found[0.7]) < ALPHA


# -- prices
# --------------------------------------------------------------------------------------------------


def test_published_parameters_cost_less_than_as_noisy_counts():
    # the continuous Gaussian's epsilon of the papers' parameters was measured
    event, delta, gaussian = confident_event(150.0, 40.0, 640, 286, 10), 1e-5, 2.543
    found = epsilon_upper([event], delta)
    labels = epsilon_upper([counts_event(event.sigma, 2 * event.answers)], delta)
    # below the labels alone where these count as their counts, and not below what labels of two
    # classes, under the noise of the difference of two counts, cost alone
    two = epsilon_upper([label_event(event.sigma / math.sqrt(2), event.answers)], delta)
    assert two < found < labels < gaussian
    assert found < 0.88 * gaussian


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


def test_two_games_beside_each_other_agree_with_one_game():
    # with one scale a single game prices both kinds of labels; two games composed are no cheaper
    # and, over an equal number of labels, hardly dearer
    one = delta_upper([label_event(30.0, 200)], 1.0)
    two = delta_upper([label_event(30.0, 100), label_event(30.0 + 1e-9, 100)], 1.0)
    assert one * 0.999 <= two <= one * 1.06


def test_refused_queries_cost_the_threshold_alone():
    many = delta_upper([confident_event(100.0, 20.0, 1000, 50, 10)], 1.0)
    few = delta_upper([confident_event(100.0, 20.0, 50, 50, 10)], 1.0)
    answered = delta_upper([confident_event(100.0, 20.0, 1000, 1000, 10)], 1.0)
    assert few < many < 0.03 * answered


def test_a_renyi_account_adds_up_both_kinds():
    event = confident_event(100.0, 20.0, 300, 50, 10)
    for order in (2.0, 11.0):
        parts = sum(float(part.renyi(np.array([order]))[0]) for part in event.parts())
        assert float(event.renyi(np.array([order]))[0]) == pytest.approx(parts)
    budget = PrivacyBudget(4.0, 1e-5)
    grant = ((event,), PrivacyBudget(epsilon_upper([event], 1e-6), 1e-6))
    rule = filter_for("renyi", budget)
    assert admits(rule, [], grant)
    assert not admits(rule, [grant] * 50, grant)


def test_the_event_goes_through_json_and_refuses_what_cannot_be():
    event = confident_event(100.0, 20.0, 300, 50, 10)
    assert event_in(event.model_dump(mode="json")) == event
    assert event.parts()[1] == class_event(20.0, 50)
    assert isinstance(confident_event(9.0, 9.0, 3, 3, 2).parts()[1], BinaryLabels)
    good = {"threshold_sigma": 9.0, "sigma": 9.0, "queries": 3, "answers": 2, "n_classes": 2}
    for change in (
        {"answers": 4},
        {"answers": 0},
        {"n_classes": 1},
        {"sigma": 1e-7},
        {"threshold_sigma": -1.0},
        {"queries": 10**13, "answers": 1},
    ):
        with pytest.raises(ParameterError):
            confident_event(**{**good, **change})


@pytest.mark.parametrize(("n_classes", "epsilon"), [(2, 1.0), (10, 6.0)])
def test_calibrated_noise_spends_the_budget(n_classes, epsilon):
    # at the larger epsilon the noise is too small for games of ten classes, which take seconds
    budget, terms = PrivacyBudget(epsilon, 1e-6), {"threshold": 100, "n_classes": n_classes}
    found = ConfidentAggregator.calibrate(budget, 120, max_answers=20, **terms)
    delta = delta_upper(found.events(250), epsilon)
    assert 0.99 * budget.delta < delta <= budget.delta
    more = ConfidentAggregator.calibrate(budget, 120, max_answers=40, **terms)
    assert more.sigma > 1.3 * found.sigma
    interactive = InteractiveAggregator.calibrate(
        budget, 120, max_answers=20, confidence=0.8, **terms
    )
    assert interactive.sigma == found.sigma
    assert interactive.confidence == 0.8
    assert interactive.events(250) == found.events(250)


# -- usefulness
# --------------------------------------------------------------------------------------------------


def test_a_threshold_above_the_teachers_is_refused():
    aggregator = built(threshold=300)
    for call in (
        lambda: aggregator.events(250),
        lambda: aggregator.check_useful(250),
    ):
        with pytest.raises(ParameterError, match="threshold is 300, more votes than 250 teachers"):
            call()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        built(threshold=300).check_useful(300)


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"threshold": 0}, "threshold"),
        ({"threshold": 2.5}, "threshold"),
        ({"threshold_sigma": float("nan")}, "threshold_sigma"),
        ({"sigma": 1e-8}, "sigma"),
        ({"max_answers": 5}, "max_answers"),
        ({"n_classes": 1}, "n_classes"),
        ({"calibration": "paper"}, "calibration"),
    ],
)
def test_parameters_out_of_range_are_refused(settings, name):
    for kind in (ConfidentAggregator, InteractiveAggregator):
        with pytest.raises(ParameterError, match=name):
            kind(
                **{
                    "threshold": 5,
                    "threshold_sigma": 9.0,
                    "sigma": 5.0,
                    "n_queries": 4,
                    "budget": LOOSE,
                    **settings,
                }
            )


def test_a_delta_of_0_and_shares_without_meaning_are_refused():
    with pytest.raises(ParameterError, match="delta is 0"):
        ConfidentAggregator.calibrate(PrivacyBudget(1.0, 0.0), 10, threshold=5)
    for share in (0.0, 1.0, -0.1):
        with pytest.raises(ParameterError, match="threshold_share"):
            ConfidentAggregator.calibrate(BUDGET, 10, threshold=5, threshold_share=share)
    with pytest.raises(ParameterError, match="max_answers"):
        ConfidentAggregator.calibrate(BUDGET, 10, threshold=5, max_answers=11)
    with pytest.raises(ParameterError, match="confidence"):
        InteractiveAggregator(5, 9.0, 5.0, 4, confidence=1.5, budget=LOOSE)


def test_predictions_that_do_not_fit_are_refused():
    for bad in (
        [[0.5, 0.5]],
        [[0.5, 0.6], [0, 0]],
        [[-0.1, 0.5], [0, 0]],
        [["a", "b"]] * 2,
        [[math.nan, 0.5], [0, 0]],
    ):
        with pytest.raises(DataError, match="predictions"):
            predicted_votes(bad, (2, 2), 8)
