"""Choices with exponential weights, of one or of a range that is not listed, and flips: their
bounds, their laws, and that no digit of them rests on float arithmetic."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exact_games.statistics import outcomes_p_value
from flips import flip_law
from secretballot.core import exponential
from secretballot.core.exponential import (
    _exp_bounds,
    _locate,
    _range_bounds,
    _running_bounds,
    least_quotient,
)
from secretballot.core.noise import ExactNoise

ALPHA = 1e-6
PRECISION = 3000  # bits of the reference, beyond anything the sampler looks at here


def true_sums(scores, scale, counts=None):
    """Running sums of the normalised weights, best score first, and the indices in that order."""
    order = np.argsort(-np.asarray(scores), kind="stable")
    counts = np.ones(len(scores), dtype=int) if counts is None else counts
    with mpmath.workprec(PRECISION):
        weights = [
            int(counts[i]) * mpmath.exp(mpmath.mpf(int(scores[i])) / mpmath.mpf(scale))
            for i in order
        ]
        total = mpmath.fsum(weights)
        sums = [mpmath.fsum(weights[: k + 1]) / total for k in range(len(weights))]
    return sums, order


def digits_of(number):
    """A source of bits that hands out the binary digits of a real in [0, 1)."""
    left = [number]

    def draw(bits):
        whole, left[0] = divmod(left[0] * 2**bits, 1)
        return int(whole)

    return draw


def test_bounds_of_the_exponential_hold_and_are_two_apart():
    rng = np.random.default_rng(3)
    with mpmath.workprec(PRECISION):
        for bits in (1, 8, 64, 201, 1500):
            for _ in range(40):
                exponent = Fraction(int(rng.integers(1, 10**6)), int(rng.integers(1, 10**6)))
                true = mpmath.ldexp(
                    mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator), bits
                )
                low, high = _exp_bounds(exponent, bits)
                assert low < true < high <= low + 2
    assert _exp_bounds(Fraction(0), 70) == (1 << 70, 1 << 70)
    assert _exp_bounds(Fraction(10**9), 70) == (0, 1)
    low, high = _exp_bounds(Fraction(1, 10**30), 70)
    assert low < 1 << 70 <= high <= low + 2


@pytest.mark.parametrize("scale", [0.3, 2.0, 77.7])
def test_bounds_of_running_sums_hold_and_are_near(scale):
    gaps, sizes = np.array([0, 1, 2, 5, 11, 40, 41]), np.array([1, 3, 1, 10**6, 2, 1, 9])
    lower, upper = _running_bounds(gaps, sizes, Fraction(scale), 90)
    with mpmath.workprec(PRECISION):
        true = mpmath.mpf(0)
        for low, high, gap, size in zip(lower, upper, gaps.tolist(), sizes.tolist(), strict=True):
            true += size * mpmath.ldexp(mpmath.exp(-gap / mpmath.mpf(scale)), 90)
            assert low <= true <= high
            assert high - low <= 6 * sizes.sum()


def weights_of_ranges(starts, ends, scale):
    """Weights of no range, then of the ranges by last place: the definition, in many digits."""
    return [mpmath.mpf(1)] + [
        mpmath.fsum(
            mpmath.exp((mpmath.mpf(int(s)) - int(end)) / mpmath.mpf(scale)) for s in starts[: j + 1]
        )
        for j, end in enumerate(ends)
    ]


def chosen_index(scale):
    """Return the ends of all choices as reals, and how a source of bits chooses among them."""
    scores, counts = np.array([3, 10, 9, 0, 7, -20]), np.array([5, 1, 2, 40, 3, 1000])
    sums, order = true_sums(scores, scale, counts)
    gaps = np.repeat(scores.max() - scores, counts)
    places = {int(scores.max() - scores[i]): place for place, i in enumerate(order)}
    return sums, lambda draw: places[
        int(gaps[exponential.drawn_index(gaps, Fraction(scale), draw)])
    ]


def chosen_range(scale):
    starts, ends = np.array([0, 3, -2, 5, 5]), np.array([1, 2, 0, 4, -1])
    weights = weights_of_ranges(starts, ends, scale)
    sums = [mpmath.fsum(weights[: k + 1]) / mpmath.fsum(weights) for k in range(len(weights))]

    def choose(draw):
        chosen = exponential.drawn_range(starts, ends, Fraction(scale), draw)
        return 0 if chosen is None else chosen[1] + 1

    return sums, choose


@pytest.mark.parametrize("of", [chosen_index, chosen_range])
@pytest.mark.parametrize("spare", [-12, 0, 64])
@pytest.mark.parametrize("scale", [0.25, 1.5, 30.0])
def test_the_choice_is_the_one_that_all_digits_of_the_uniform_real_make(
    monkeypatch, of, spare, scale
):
    monkeypatch.setattr(exponential, "_SPARE_BITS", spare + (64 if of is chosen_range else 0))
    looks = []
    monkeypatch.setattr(
        exponential, "_locate", lambda *known: looks.append(known) or _locate(*known)
    )
    with mpmath.workprec(PRECISION):
        sums, choose = of(scale)
        edges = [Fraction(int(mpmath.floor(mpmath.ldexp(edge, 2000))), 2**2000) for edge in sums]
    for edge in edges[:-1]:
        # both sides of every edge, down to 2^-700 away, which no first look can tell apart
        for away in (3, 20, 70, 200, 700):
            for real in (edge - Fraction(1, 2**away), edge + Fraction(1, 2**away)):
                if 0 <= real < 1:
                    expected = next(k for k, end in enumerate(edges) if real < end)
                    assert choose(digits_of(real)) == expected
    assert max(known[1] for known in looks) > 700


def law_of(draw, given, scale):
    """Return the chance of every outcome, by the definitions, in floats."""
    if draw == "flipped_index":
        return dict(enumerate(flip_law(given[0], scale)))
    scores = dict(enumerate(given[0]))
    if draw == "exponential_range":
        starts, ends = given
        scores = {None: 0} | {
            (i, j): starts[i] - ends[j] for j in range(len(ends)) for i in range(j + 1)
        }
    best = max(scores.values())
    weights = {outcome: math.exp((score - best) / scale) for outcome, score in scores.items()}
    return {outcome: weight / sum(weights.values()) for outcome, weight in weights.items()}


COUNTS = [1, 7, 2, 9, 1, 1]
RANGES = np.array([0, 2, 1, 3]), np.array([1, 2, 0, 2])


@pytest.mark.parametrize(
    ("draw", "bits", "scale", "given"),
    [
        ("exponential_index", -5, 0.8, [[1, 0, 2, -1, 2, -9]]),
        ("exponential_index", 64, 2.0, [np.repeat([3, 1, 4, 0, 4, -9], COUNTS)]),
        ("exponential_index", -5, 25.0, [np.repeat([40, 10, 60, -20, 60, -99], COUNTS)]),
        ("exponential_range", 64, 0.6, RANGES),
        ("exponential_range", 64, 2.0, RANGES),
        ("exponential_range", 64, 9.0, [5 * side for side in RANGES]),
        # with few bits at first most coins need more of them
        ("flipped_index", 3, 0.8, [[1, 0, 2, -1]]),
        ("flipped_index", 62, 2.0, [[3, 1, 4, 4, -900]]),
        ("flipped_index", 62, 1e-6, [[5, 7, 6]]),
    ],
)
def test_choices_follow_their_law_and_no_law_of_another_scale(
    monkeypatch, draw, bits, scale, given
):
    name = "_FLIP_BITS" if draw == "flipped_index" else "_SPARE_BITS"
    monkeypatch.setattr(exponential, name, bits)
    choose, sides = getattr(ExactNoise(), draw), [np.array(side) for side in given]
    sample = [choose(*sides, scale) for _ in range(1200)]
    assert outcomes_p_value(sample, law_of(draw, given, scale)) > ALPHA
    for wrong in (0.4, 2.5) if scale > 1e-3 else ():
        assert outcomes_p_value(sample, law_of(draw, given, wrong * scale)) < ALPHA


def test_a_million_candidates_are_weighed_by_score_and_drawn_evenly_inside_one():
    scores = np.arange(1_000_000) % 1000
    source = ExactNoise()
    chosen = np.array([source.exponential_index(scores, 2.0) for _ in range(12)])
    assert (scores[chosen] > 900).all()
    assert len(set((chosen // 1000).tolist())) > 9  # of 1000 equal ones each


def test_unsigned_scores_do_not_wrap_around():
    assert ExactNoise().exponential_index(np.array([0, 255], dtype=np.uint8), 1.0) == 1


def test_scores_that_are_no_integers_are_refused():
    for draw in (ExactNoise().exponential_index, ExactNoise().flipped_index):
        with pytest.raises(TypeError):
            draw(np.array([0.0, 0.5]), 1.0)


def test_the_least_scale_keeps_its_loss_in_exact_arithmetic_and_no_smaller_float_does():
    rng = np.random.default_rng(8)
    for epsilon in [*rng.uniform(1e-3, 9, 300).tolist(), 0.1, 0.3, 1.0]:
        for sensitivity in (1, 2, 7):
            scale = least_quotient(sensitivity, epsilon)
            assert Fraction(scale) * Fraction(epsilon) >= sensitivity
            assert Fraction(float(np.nextafter(scale, 0))) * Fraction(epsilon) < sensitivity


places = st.integers(1, 12).flatmap(
    lambda m: st.tuples(*[st.lists(st.integers(-30, 30), min_size=m, max_size=m).map(np.array)] * 2)
)


@given(places, st.sampled_from([0.05, 0.7, 3.0, 250.0, 2.0**40]))
@settings(max_examples=40, deadline=None)
def test_bounds_hold_and_are_as_near_as_stated(sides, scale):
    starts, ends = sides
    bits = 64 + 4 * len(starts).bit_length()
    lower, upper = _range_bounds(starts, ends, Fraction(scale), bits)
    with mpmath.workprec(PRECISION):
        weights = weights_of_ranges(starts, ends, scale)
        best = max(0, *(int(starts[i] - ends[j]) for j in range(len(ends)) for i in range(j + 1)))
        factor = mpmath.ldexp(mpmath.exp(-best / mpmath.mpf(scale)), bits)
        true = mpmath.mpf(0)
        for k, (low, high) in enumerate(zip(lower, upper, strict=True)):
            true += weights[k] * factor
            assert low <= true <= high
            assert high - low == (k + 3) ** 3


def law_of_orders(scores, scale):
    """Return the chance of each candidate: by the order of all, as the paper states it."""
    heads = np.exp((np.asarray(scores) - max(scores)) / scale)
    found = np.zeros(len(scores))
    for order in itertools.permutations(range(len(scores))):
        left = 1.0 / math.factorial(len(scores))
        for i in order:
            found[i] += left * heads[i]
            left *= 1 - heads[i]
    return found


def test_the_mean_over_orders_is_one_of_all_heads():
    for scores, scale in (([1, 0, 2, -1], 0.8), ([3, 1, 4, 4, -90], 2.0)):
        assert flip_law(scores, scale) == pytest.approx(law_of_orders(scores, scale))


def test_every_coin_is_decided_by_all_digits_of_its_uniform_real(monkeypatch):
    monkeypatch.setattr(exponential, "_FLIP_BITS", 8)
    exponent = Fraction(3, 7)
    low, _ = exponential._exp_bounds(exponent, 4000)
    for away in (3, 20, 70, 700):
        for sign in (-1, 1):
            number = low + (sign << (4000 - away))
            heads = exponential._is_head(exponent, digits_of(Fraction(number, 2**4000)))
            assert heads is (sign < 0)


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_one_unit_changes_no_chance_by_more_than_epsilon(relation):
    epsilon, worst, widest = 0.7, 0.0, 0.0
    moves = (0, 1) if relation == "add-remove" else (-1, 0, 1)
    scale = (1 if relation == "add-remove" else 2) / epsilon
    for scores in itertools.product((0, 1, 3), repeat=3):
        for change in itertools.product(moves, repeat=3):
            here, there = flip_law(scores, scale), flip_law(np.add(scores, change), scale)
            losses = np.log(here / there)
            worst = max(worst, float(np.abs(losses).max()))
            widest = max(widest, float(np.ptp(losses)))
    assert 0.95 * epsilon < worst <= epsilon * (1 + 1e-12)
    assert widest > 1.2 * epsilon  # losses have no range of this length: the price is a pure one


def test_many_candidates_are_drawn_together():
    scores = np.random.default_rng(0).integers(-(2**30), 0, 50_000)
    scores[7] = 0
    assert ExactNoise().flipped_index(scores, 100.0) == 7
    assert ExactNoise().flipped_index(np.zeros(1000, dtype=int), 1.0) < 1000


@pytest.mark.parametrize("bits", [4, 20, 64])
@pytest.mark.parametrize("share", [1, 3, 1000])
def test_bounds_hold_where_the_exponential_is_all_but_an_integer(bits, share):
    """2^bits exp(-exponent) lies above or below n by far less than any digit that is computed."""
    largest = (2**bits - 1) // share
    for n in range(max(1, largest - 99), largest + 1):
        with mpmath.workprec(900):
            exponent = int(mpmath.floor(mpmath.ldexp(bits * mpmath.log(2) - mpmath.log(n), 800)))
        low, high = _exp_bounds(Fraction(exponent, 2**800), bits)  # above n
        assert low <= n < high
        low, high = _exp_bounds(Fraction(exponent + 1, 2**800), bits)  # below
        assert low < n <= high
