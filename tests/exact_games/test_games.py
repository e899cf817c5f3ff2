"""The exact games against plain enumeration of every strategy."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exact_games.games import Steps, Stream, adaptive_delta, delta_of_all_orders

side = st.lists(st.integers(0, 5), min_size=3, max_size=3).filter(any)


def plain_value(p, q, steps, left, most, epsilon):
    """Every strategy, by recursion on the two probabilities of the answers so far; the last outcome
    ends a run where it comes as often as may be."""
    if left == 0 or most == 0:
        return max(0.0, p - math.exp(epsilon) * q)
    return max(
        sum(
            plain_value(p * a, q * b, steps, left - 1, most - (place == 2), epsilon)
            for place, (a, b) in enumerate(zip(*step, strict=True))
        )
        for step in steps
    )


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(side, side), min_size=1, max_size=3),
    st.integers(1, 3),
    st.integers(1, 3),
    st.floats(-1, 3),
)
def test_the_game_is_right_for_any_outcome_laws_zeros_included(pairs, length, most, epsilon):
    steps = [tuple(np.array(side) / sum(side) for side in pair) for pair in pairs]
    found = adaptive_delta(steps, length, epsilon, counted=[2], most=most)
    expected = plain_value(1.0, 1.0, steps, length, most, epsilon)
    assert found == pytest.approx(expected, rel=1e-7, abs=1e-8)
    endless = plain_value(1.0, 1.0, steps, length, 9, epsilon)
    assert adaptive_delta(steps, length, epsilon) == pytest.approx(endless, rel=1e-7, abs=1e-8)
    in_turn = delta_of_all_orders([Steps(length, steps)], length, epsilon)
    assert in_turn == pytest.approx(endless, rel=1e-7, abs=1e-8)


def test_a_stream_keeps_its_hidden_threshold_until_it_abstains():
    # two thresholds of equal chance: the first answer tells which it is, and so does the second
    chances = {0: np.array([0.9, 0.1]), 1: np.array([0.8, 0.3])}
    stream = Stream(1, [(0, 1, False)], chances.__getitem__, np.array([0.5, 0.5]))
    answered = (np.mean(chances[0] ** 2), np.mean(chances[1] ** 2))
    abstained = (np.mean(1 - chances[0]), np.mean(1 - chances[1]))
    between = (np.mean(chances[0] * (1 - chances[0])), np.mean(chances[1] * (1 - chances[1])))
    expected = sum(max(0.0, p - q) for p, q in (answered, abstained, between))
    assert delta_of_all_orders([stream], 2, 0.0) == pytest.approx(expected)
