"""The exact games against plain enumeration of every strategy, and against closed forms."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exact_games.distributions import discrete_gaussian_distribution, discrete_laplace_distribution
from exact_games.games import adaptive_delta, hockey_stick, shifted_delta


def plain_value(p, q, steps, left, epsilon):
    """Every strategy, by recursion on the two probabilities of the answers so far."""
    if left == 0:
        return max(0.0, p - math.exp(epsilon) * q)
    return max(
        sum(plain_value(p * a, q * b, steps, left - 1, epsilon) for a, b in zip(*step, strict=True))
        for step in steps
    )


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.lists(st.integers(0, 5), min_size=3, max_size=3),
            st.lists(st.integers(0, 5), min_size=3, max_size=3),
        ).filter(lambda pair: sum(pair[0]) > 0 and sum(pair[1]) > 0),
        min_size=1,
        max_size=3,
    ),
    st.integers(1, 3),
    st.floats(-1, 3),
)
def test_the_game_is_right_for_any_outcome_laws_zeros_included(pairs, length, epsilon):
    steps = [tuple(np.array(side) / sum(side) for side in pair) for pair in pairs]
    found = adaptive_delta(steps, length, epsilon)
    expected = plain_value(1.0, 1.0, steps, length, epsilon)
    assert found == pytest.approx(expected, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize(
    ("law", "scale"), [(discrete_gaussian_distribution, 1.3), (discrete_laplace_distribution, 1.3)]
)
@pytest.mark.parametrize("distance", [1, 2])
def test_shifted_noise_is_the_product_law(law, scale, distance):
    listed, shifts, epsilon = law(scale, 1e-9), 2, 0.8
    wide = np.pad(listed.pmf, distance)
    p, q = wide, np.roll(wide, distance)
    expected = hockey_stick(np.multiply.outer(p, p), np.multiply.outer(q, q), epsilon)
    found = shifted_delta(listed, shifts, epsilon, distance=distance)
    # what the shifted side cannot say counts as lost: for Laplace exact, for the tails of both at
    # most a little more
    assert expected <= found + 1e-12
    assert found == pytest.approx(expected, abs=1e-6)
