"""Prices of the sparse vector and of distance-to-instability tests: closed forms, suprema, the
errata's figures, and what calibrations answer."""

import math

import numpy as np
import pytest
from mpmath import mp, mpf

from made_events import pure_event, sparse_event
from secretballot.accounting import (
    PrivacyBudget,
    calibrate_sparse_vector,
    delta_upper,
    needed_distance,
    sparse_vector,
)
from secretballot.accounting.recipes import (
    _liu_noise,
    answer_chance,
    bassily_noise,
    check_answerable,
)
from secretballot.core import streams as room
from secretballot.exceptions import ParameterError


def one_vote_charge(order: float, loss: float) -> float:
    """Return what one abstention is charged, the threshold given."""
    event = sparse_event(1.0, 1 / loss, 0, 1)
    return float(room.one_vote_charges(event, 1, np.array([order]))[0]) * (order - 1)


def test_figures_of_the_errata() -> None:
    # errata 11a: T = 50: lambda 59.7, w 2149; T = 1: both scales 3, w 46
    assert delta_upper([sparse_event(59.8, 119.6, 2149, 50)], 1.0) <= 1.05e-6
    assert delta_upper([sparse_event(3.0, 3.0, 46, 1)], 1.0) <= 1e-6
    assert room.false_answer(sparse_event(3.0, 3.0, 44, 1)) > 1e-6


def test_ten_unstable_answers_at_the_tight_price() -> None:
    """Errata 11: K = 250, every tenth query unstable: ten queries on average, nine of them
    stable."""
    event = calibrate_sparse_vector(PrivacyBudget(1.0, 1e-6), 1)
    answered = room.false_answer(event, 74)  # margin .6 K, distance 74
    assert answered > 0.999
    abstain = 0.9 * (1 - answered) + 0.1 * (1 - room.false_answer(event))
    assert 1 / abstain == pytest.approx(10, abs=0.3)


def test_a_threshold_without_noise_has_no_pure_price_and_one_by_its_abstentions() -> None:
    # a threshold scale near 0 stands for "no threshold noise": its loss is unbounded
    event = sparse_event(1e-3, 100.0, 500, 1)
    assert delta_upper([pure_event(room.epoch_loss(event), 1)], 1.0) > 0.99
    # but large losses are rare: what is left is a wrong answer, as one vote moves little
    found = delta_upper([event], 1.0)
    assert event.failure() <= found * (1 + 1e-9) < 1.001 * event.failure()
    # at an epsilon where the pattern counts, streams of one query asked for ever tell less than
    # the price: how many answers come before the abstention is geometric on both sides
    small = sparse_event(1e-3, 8.0, 10**6, 1)
    answers = np.arange(8_000)
    for epsilon in (0.3, 0.6):
        worst = 0.0
        for distance in range(-20, 40):
            f, g = (1 - room.laplace_above(-d, 8.0) for d in (distance, distance + 1))
            for p, q in ((f, g), (g, f)):
                here, there = p * (1 - p) ** answers, q * (1 - q) ** answers
                loss = np.maximum(0.0, here - math.exp(epsilon) * there)
                worst = max(worst, float(loss.sum()))
        assert 0 < worst <= delta_upper([small], epsilon) < 1


@pytest.mark.parametrize(
    ("n", "first", "second"),
    [
        (2_180_905, 22072.729557226612, 22072.72992767927),
        *((27_067, 855.3940870524, 855.3940581302974), (100, 3.0, 4.0)),
        *((10**9, 1e8, 1e8 * math.sqrt(2)), (10**13, 1e12, 2e12), (5, 0.01, 2.0)),
    ],
)
def test_tails_keep_their_digits_where_scales_nearly_meet_or_are_huge(
    n: int, first: float, second: float
) -> None:
    with mp.workdps(60):
        a, b = mp.exp(-1 / mpf(max(first, second))), mp.exp(-1 / mpf(min(first, second)))
        f_a, f_b = (x ** (n + 1) / ((1 - x**2) * (1 - x)) for x in (a, b))
        exact = (1 - a) ** 2 * (1 - b) ** 2 * (f_a - f_b) / ((a - b) * (1 - a * b))
        assert abs(room._sum_tail(n, first, second) / exact - 1) < 1e-12


@pytest.mark.parametrize(
    ("scale", "order"), [(1e5, 1.001), (1e6, 8.0), (1e9, 2.0), (1e12, 8.0), (30.0, 8.0)]
)
def test_the_charge_keeps_its_digits_where_it_is_tiny(scale: float, order: float) -> None:
    with mp.workdps(80):
        loss = 1 / mpf(scale)
        p, a = mp.exp(loss) / (1 + mp.exp(loss)), mpf(order)
        exact = mp.log((1 - p) ** a * p ** (1 - a) / (1 - p**a * (1 - p) ** (1 - a)))
        assert abs(one_vote_charge(order, 1 / scale) / exact - 1) < 1e-12


def _largest_charge(order: float, loss: float) -> float:
    """Return the supremum over pairs of chances that one vote allows, by search in many digits."""
    best = mpf(0)
    with mp.workdps(40):
        a, e = mpf(order), mp.exp(loss)
        middle = 1 / (1 + e)
        for share in [mpf(i) / 200 for i in range(1, 200)] + [mpf(10) ** -i for i in range(3, 12)]:
            for f in (middle * share, middle, middle + (1 - middle) * share, 1 - share / 1000):
                s = 1 - f
                least, most = max(f / e, 1 - e * s), min(e * f, 1 - s / e)
                for other in (least, most, (least + most) / 2, (3 * most + least) / 4):
                    h = s**a * (1 - other) ** (1 - a)
                    if h >= 1:
                        return math.inf
                    best = max(best, f**a * other ** (1 - a) / (1 - h))
        return float(mp.log(best))


@pytest.mark.parametrize("order", [1.01, 1.5, 2.0, 8.0, 25.0])
@pytest.mark.parametrize("loss", [1e-3, 0.01, 0.02, 0.3, 1.5])
def test_one_vote_is_charged_the_supremum_over_what_it_may_do(order: float, loss: float) -> None:
    charged, sought = one_vote_charge(order, loss), _largest_charge(order, loss)
    if math.isinf(charged):
        # answers would have to be charged too, or nearly
        p = 1 / (1 + math.exp(-loss))
        assert math.isinf(sought) or p * math.exp((order - 1) * loss) > 0.998
    else:
        assert charged >= sought * (1 - 1e-9)
        assert charged == pytest.approx(sought, rel=1e-9)


def _largest_moment(scale: float, order: float, queries: int, stops: int) -> float:
    """Return the largest moment of runs at one threshold, each query at any distance from it."""
    below = [1 - room.laplace_above(d, scale) for d in range(-60, 61)]
    above = [room.laplace_above(d, scale) for d in range(-60, 61)]
    pairs = [(i, j) for i in range(121) for j in (i - 1, i, i + 1) if 0 <= j < 121]
    rows = np.array(
        [
            (
                below[i] ** order * below[j] ** (1 - order),
                above[i] ** order * above[j] ** (1 - order),
            )
            for i, j in pairs
        ]
    )
    values = np.ones(stops + 1)
    for _ in range(queries):
        after = values.copy()
        for left in range(1, stops + 1):
            told = rows[:, 0] * values[left - 1] + rows[:, 1] * values[left]
            after[left] = max(1.0, float(told.max()))
        values = after
    return float(values[stops])


@pytest.mark.parametrize(("scale", "order"), [(4.0, 2.0), (6.0, 4.5), (20.0, 3.0)])
def test_long_streams_at_one_threshold_keep_the_charge_and_no_smaller_one(
    scale: float, order: float
) -> None:
    charge = one_vote_charge(order, 1 / scale)
    for stops in (1, 3):
        found = math.log(_largest_moment(scale, order, 1500, stops))
        assert found <= stops * charge * (1 + 1e-9)
        # attained: less noise, or one abstention that is not charged, would break it
        assert found > 0.97 * stops * charge
    weaker = math.log(_largest_moment(0.9 * scale, order, 1500, 1))
    assert weaker > charge
    assert math.log(_largest_moment(scale, order, 1500, 4)) > 1.2 * 3 * charge


BUDGET = PrivacyBudget(1.0, 1e-6)


def test_printed_noise_is_the_papers():
    # errata 2 and 11: lambda 77.5 and w = 66.4 lambda at T = 50, l = 2000; w = 556 at T = 1, l = 10
    # (BTT: 724)
    event = _liu_noise(BUDGET, 2000, 50)
    assert event.threshold_scale == pytest.approx(77.47, abs=0.01)
    assert event.query_scale == 2 * event.threshold_scale
    assert event.threshold / event.threshold_scale == pytest.approx(66.4, abs=0.05)
    assert bassily_noise(BUDGET, 10, 1).threshold_scale == pytest.approx(21.55, abs=0.005)
    assert _liu_noise(BUDGET, 10, 1).threshold == pytest.approx(556, abs=2)
    assert bassily_noise(BUDGET, 10, 1).threshold == pytest.approx(724, abs=2)


@pytest.mark.parametrize("calibration", ["tight", "liu2021", "btt2018"])
@pytest.mark.parametrize(
    ("most", "budget"),
    [(1, PrivacyBudget(0.5, 1e-5)), (5, BUDGET), (50, PrivacyBudget(4.0, 1e-3))],
    ids=str,
)
def test_calibrated_events_keep_the_budget(calibration, most, budget):
    found = sparse_vector(budget, 100, max_abstentions=most, calibration=calibration)
    delta = delta_upper([found.stream_event()], budget.epsilon)
    assert delta <= budget.delta
    if calibration == "tight":
        assert delta > 0.2 * budget.delta
        paper = needed_distance(_liu_noise(budget, 100, most))
        assert needed_distance(found.stream_event()) < 0.5 * paper
    assert found.max_abstentions == most


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0, 40.0])
def test_bassilys_noise_keeps_its_promise_with_the_halved_margin(epsilon):
    # errata 1: with the halved margin certified for every epsilon tried; un-halved, for epsilon up
    # to 5 only
    budget = PrivacyBudget(epsilon, 1e-3)
    assert delta_upper([bassily_noise(budget, 100, 20)], epsilon) <= 0.4 * budget.delta


def test_a_threshold_that_nobody_passes_is_refused_with_its_mend():
    found = sparse_vector(BUDGET, 100, max_abstentions=10)
    with pytest.raises(ParameterError, match="250 teachers reach a distance of 124") as refusal:
        check_answerable(found, 250)
    enough = int(str(refusal.value).split("at least ")[1].split()[0])
    check_answerable(found, enough)
    assert answer_chance(found, (enough + 1) // 2 - 1) >= 0.5
    assert answer_chance(found, (enough - 2 + 1) // 2 - 2) < 0.5


def test_printed_calibrations_answer_nothing_with_250_teachers():
    # errata 11: P(answer) = 1.9e-10 for Liu, at T = 1 and l = 10
    printed = sparse_vector(BUDGET, 10, max_abstentions=1, calibration="liu2021")
    assert answer_chance(printed, 124) < 1e-8
    with pytest.raises(ParameterError, match="use a larger epsilon, or at least"):
        check_answerable(printed, 250)
