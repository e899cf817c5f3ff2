"""Permute-and-flip: its law, and what one unit can change."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from test_exponential_index import digits_of

from exact_games.distributions import Distribution
from exact_games.statistics import sample_p_value
from flips import flip_law
from secretballot.core import exponential
from secretballot.core.noise import ExactNoise

ALPHA = 1e-6


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


def drawn(scores, scale, size):
    source = ExactNoise()
    return np.array([source.flipped_index(np.array(scores), scale) for _ in range(size)])


def test_the_mean_over_orders_is_one_of_all_heads():
    for scores, scale in (([1, 0, 2, -1], 0.8), ([3, 1, 4, 4, -90], 2.0)):
        assert flip_law(scores, scale) == pytest.approx(law_of_orders(scores, scale))


@pytest.mark.parametrize(
    ("bits", "scale", "scores"),
    [(3, 0.8, [1, 0, 2, -1]), (62, 2.0, [3, 1, 4, 4, -900]), (62, 1e-6, [5, 7, 6])],
)
def test_choices_follow_their_law_and_no_other(monkeypatch, bits, scale, scores):
    # with few bits at first most coins need more of them
    monkeypatch.setattr(exponential, "_FLIP_BITS", bits)
    sample = drawn(scores, scale, 1500)
    assert sample_p_value(sample, Distribution(0, flip_law(scores, scale), 0.0)) > ALPHA
    if scale > 1e-3:
        wrong = Distribution(0, flip_law(scores, 2 * scale), 0.0)
        assert sample_p_value(sample, wrong) < ALPHA


def test_every_coin_is_decided_by_all_digits_of_its_uniform_real(monkeypatch):
    monkeypatch.setattr(exponential, "_FLIP_BITS", 8)
    exponent = Fraction(3, 7)
    low, _ = exponential.exp_bounds(exponent, 4000)
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
    assert drawn(np.zeros(1000, dtype=int), 1.0, 3).max() < 1000
