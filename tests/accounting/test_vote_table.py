"""Prices of labels drawn from a table: exact games, a program of its own, and tables that are worse
than they say."""

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

import secretballot_verify as second
from adaptive_labels import best_attack
from made_events import json_of, table_event
from secretballot.accounting import BinaryLabels, PrivacyBudget, calibrate_vote_table, delta_upper
from secretballot.accounting.abstention_table import table_weights
from secretballot.core import label_games as room

ONE, HALF = 2**53, 2**52
BUDGET = PrivacyBudget(1.0, 1e-6)


def calibrated(budget: PrivacyBudget, queries: int, n_teachers: int) -> BinaryLabels:
    chances = calibrate_vote_table(budget, queries, n_teachers)
    return BinaryLabels(chances=chances, queries=queries)


def chance_of_one(event: BinaryLabels, votes: int) -> Fraction:
    """P(label 1), straight from the definition."""
    margin = abs(2 * votes - event.chances.n_teachers)
    minority = Fraction(
        event.chances.weights[min(margin // 2, len(event.chances.weights) - 1)], ONE
    )
    return minority if 2 * votes < event.chances.n_teachers else 1 - minority


def steps_of(event: BinaryLabels) -> list[tuple[Fraction, Fraction]]:
    """All pairs of neighbouring votes, both ways round."""
    chances = [chance_of_one(event, votes) for votes in range(event.chances.n_teachers + 1)]
    return [pair for a, b in itertools.pairwise(chances) for pair in ((a, b), (b, a))]


def true_delta(event: BinaryLabels, epsilon: float) -> float:
    """Largest hockey stick over all adaptive choices of votes, in fractions."""
    return float(best_attack({*steps_of(event)}, event.queries, Fraction(math.exp(epsilon))))


def at_least_exp(epsilon: float) -> Fraction:
    """A fraction just above e^epsilon; what is reached from there is no more than at epsilon."""
    with localcontext() as context:
        context.prec = 60
        return Fraction(Decimal(epsilon).exp() * (1 + Decimal("1e-50")))


def single_delta(event: BinaryLabels, epsilon: float) -> Fraction:
    """What one label reaches at most, without any rounding downward but that of e^epsilon."""
    ratio = at_least_exp(epsilon)
    return max(
        max(Fraction(0), a - ratio * b) + max(Fraction(0), (1 - a) - ratio * (1 - b))
        for a, b in steps_of(event)
    )


def random_table(seed: int, n_teachers: int, queries: int) -> BinaryLabels:
    """A table whose chances fall at random."""
    rng = np.random.default_rng(seed)
    size = n_teachers // 2 + 1
    logs = np.cumsum(rng.uniform(0.05, 0.8, size))
    weights = [max(1, int(HALF * math.exp(-log))) for log in logs]
    if n_teachers % 2 == 0:
        weights[0] = HALF
    return table_event(tuple(weights), queries, n_teachers)


@pytest.mark.parametrize("n_teachers", [1, 2, 5, 8])
@pytest.mark.parametrize("queries", [1, 3])
@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_the_price_is_the_best_adaptive_attack_in_fractions(
    n_teachers: int, queries: int, epsilon: float
) -> None:
    if (n_teachers, queries) == (8, 3):
        queries = 2  # 16 pairs, three times over, take minutes in fractions
    event = random_table(n_teachers, n_teachers, queries)
    truth, charged = true_delta(event, epsilon), delta_upper([event], epsilon)
    assert truth <= charged
    assert charged <= 1.05 * truth + 1e-6
    # a price for one query fewer would be too small
    if queries > 1 and truth > 1e-4:
        fewer = table_event(event.chances.weights, queries - 1, n_teachers)
        assert delta_upper([fewer], epsilon) < truth


@pytest.mark.parametrize(
    ("weights", "n_teachers"),
    [
        *(((1485514557937078,), 3), ((HALF, 1639699837930636, 596992579484590), 5)),
        *(((HALF, HALF // 2), 4), ((7247434491390, 101334), 7), ((HALF - 2**34,), 1)),
    ],
)
def test_the_price_holds_where_the_largest_loss_ends_it(
    weights: tuple[int, ...], n_teachers: int
) -> None:
    event = table_event(weights, 1, n_teachers)
    largest = max(math.log1p(float((a - b) / b)) for a, b in steps_of(event) if a > b)
    for share in (1.0, 1 - 2.0**-52, 1 - 1e-13, 1 - 1e-10, 1 - 1e-6):
        epsilon = largest * share
        truth = single_delta(event, epsilon)
        assert truth <= Fraction(delta_upper([event], epsilon)), share
        found = second.price_of(json_of(event), epsilon)
        assert Fraction(found.lower) <= truth + Fraction(1, 10**60), share
        assert truth <= Fraction(found.upper) * (1 + Fraction(1, 10**6)), share
    # there is something to be paid, and no more than the last digits are charged for floats
    assert single_delta(event, largest * (1 - 1e-6)) > 0
    assert delta_upper([event], largest * (1 + 1e-10)) < 1e-13


@pytest.mark.parametrize("share", [0.25154318262237535, 0.8986746538726729, 0.940373127170601])
def test_losses_of_a_few_last_digits_are_priced_too(share: float) -> None:
    for weights, n_teachers, queries in (((HALF, HALF - 60829), 5, 2), ((HALF - 922,), 1, 4)):
        event = table_event(weights, queries, n_teachers)
        p, q = max(steps_of(event), key=lambda pair: pair[1] / pair[0])
        epsilon = share * queries * math.log1p(float((q - p) / p))
        ratio = at_least_exp(epsilon)
        # of one vote, asked again and again
        truth = sum(
            math.comb(queries, ones)
            * max(
                Fraction(0),
                (1 - p) ** (queries - ones) * p**ones
                - ratio * (1 - q) ** (queries - ones) * q**ones,
            )
            for ones in range(queries + 1)
        )
        assert 0 < truth <= Fraction(delta_upper([event], epsilon))
        upper = second.price_of(json_of(event), epsilon).upper
        assert truth <= Fraction(upper) * (1 + Fraction(1, 10**6))


def test_no_price_is_below_the_worst_pair_composed_by_dp_accounting() -> None:
    from dp_accounting.pld import privacy_loss_distribution

    def composed(p: float, q: float, queries: int) -> float:
        one = privacy_loss_distribution.from_two_probability_mass_functions(
            {0: math.log(1 - p), 1: math.log(p)},
            {0: math.log(1 - q), 1: math.log(q)},
            value_discretization_interval=1e-4,
            pessimistic_estimate=False,
        )
        return float(one.self_compose(queries).get_delta_for_epsilon(1.0))

    event = calibrated(BUDGET, 30, 120)
    pairs = sorted({(float(a), float(b)) for a, b in steps_of(event) if a < b})[::16]
    worst = max(composed(*pair, event.queries) for pair in pairs)
    charged = delta_upper([event], 1.0)
    assert 0.2 * charged < worst <= charged
    # the same, of a table for fewer labels, breaks the promise by this attack alone
    sharp = calibrated(BUDGET, 15, 120)
    p, q = (float(chance_of_one(sharp, votes)) for votes in (60, 61))
    assert composed(p, q, event.queries) > 10 * BUDGET.delta


@pytest.mark.parametrize(("n_teachers", "seed"), [(250, 1), (251, 2), (2000, 3), (40, 4)])
def test_corners_cover_every_pair(n_teachers: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = n_teachers // 2 + 1
    logs = np.cumsum(rng.gamma(0.3, 0.1, size)) * np.linspace(0.3, 1, size)
    weights = np.minimum.accumulate(
        np.append(HALF, (HALF * np.exp(-logs)).astype(np.int64))
    ).tolist()
    weights = tuple(max(1, weight) for weight in weights[:size])
    for table in (weights, table_weights(n_teachers, 20.0, 0.002)):
        event = table_event(table, 1, n_teachers)
        curve = room._table_corners(event.chances)
        p = [Fraction(value) for value in curve.p]
        q = [Fraction(a) + Fraction(b) for a, b in zip(curve.p, curve.gap, strict=True)]
        assert all(first < second for first, second in itertools.pairwise(p))
        assert np.abs(curve.p + curve.rest - 1).max() < 1e-15
        assert np.abs(curve.rest - curve.gap - curve.over).max() < 1e-15
        for a, b in steps_of(event):
            if a >= b:
                continue
            place = next(i for i, value in enumerate(p) if value >= a)
            if place == 0:
                assert a == p[0]
                assert b <= q[0] * (1 + Fraction(1, 10**14))
                continue
            low, high = place - 1, place
            line = q[low] + (q[high] - q[low]) * (a - p[low]) / (p[high] - p[low])
            assert (b - a) <= (line - a) * (1 + Fraction(1, 10**10))
    assert len(curve.p) < 250


def test_divergences_are_those_of_the_worst_pair() -> None:
    event = random_table(6, 30, 5)

    def divergence(a: float, p: float, q: float) -> float:
        return math.log(p**a * q ** (1 - a) + (1 - p) ** a * (1 - q) ** (1 - a)) / (a - 1)

    for order in (1.5, 8.0, 40.0):
        worst = max(divergence(order, float(p), float(q)) for p, q in steps_of(event))
        assert float(event.renyi(np.array([order]))[0]) == pytest.approx(5 * worst, rel=1e-9)
    # a table is made so that no pair of neighbours is above the divergence it was made for, and
    # nearly all are at it
    made = table_event(table_weights(100, 12.0, 0.01), 1, 100)
    assert float(made.renyi(np.array([12.0]))[0]) == pytest.approx(0.01, rel=1e-4)
    at = [divergence(12.0, float(p), float(q)) for p, q in steps_of(made)]
    assert np.mean([max(pair) > 0.00999 for pair in zip(at[::2], at[1::2], strict=True)]) > 0.95


@pytest.mark.parametrize(
    ("weights", "n_teachers"),
    [((HALF, HALF - 2), 3), ((HALF - 65804,), 1), ((HALF, HALF - 98745, HALF - 2**28), 45)],
)
def test_divergences_of_close_chances_keep_their_digits(
    weights: tuple[int, ...], n_teachers: int
) -> None:
    event = table_event(weights, 1, n_teachers)
    with localcontext() as context:
        context.prec = 80
        for order in (1.001, 2.0, 32.0):
            power = Decimal(order) - 1
            worst = Decimal(0)
            for a, b in steps_of(event):
                pairs = ((a, b), (1 - a, 1 - b))
                decimals = [[Decimal(x.numerator) / x.denominator for x in pair] for pair in pairs]
                moment = sum(p * (power * (p / q).ln()).exp() for p, q in decimals)
                worst = max(worst, moment.ln() / power)
            # two nearly equal terms cancel in the moment: 2 % were lost
            found = Decimal(float(event.renyi(np.array([order]))[0]))
            assert 0 < worst <= found * (1 + Decimal("1e-10"))


@pytest.mark.parametrize(
    ("weights", "n_teachers"),
    [
        ((HALF, HALF // 2, HALF // 7, 3), 8),
        ((HALF // 3, HALF // 5, 1), 9),
        ((HALF - 1, HALF - 1), 9),
        # hardly anything is told, so that ratios lie a rounding of floats above 1
        (tuple(HALF - place for place in range(5000)), 10**5),
        (tuple(HALF - 3 * place for place in range(5000)), 10**5),
    ],
)
def test_no_label_loses_more_than_the_largest_loss(
    weights: tuple[int, ...], n_teachers: int
) -> None:
    event = table_event(weights, 1, n_teachers)
    chances, whole = event.chances.chances, 2 * HALF
    with localcontext() as context:
        context.prec = 60
        worst = max(
            max(Decimal(high) / low, Decimal(whole - low) / (whole - high)).ln()
            for low, high in itertools.pairwise(chances)
        )
        found = Decimal(room.largest_loss(event.chances))
        assert worst <= found <= worst * (1 + Decimal("1e-13"))
