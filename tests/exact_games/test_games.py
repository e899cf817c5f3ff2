"""The exact games against plain enumeration of every strategy, and against closed forms."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exact_games.distributions import discrete_gaussian_distribution, discrete_laplace_distribution
from exact_games.games import adaptive_delta, hockey_stick, shifted_delta
from exact_games.worlds import all_counts, drawn_labels, neighbouring_counts, output_distribution
from secretballot.core.mechanisms import NoisyVotes


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
    found, expected = (
        adaptive_delta(steps, length, epsilon),
        plain_value(1.0, 1.0, steps, length, epsilon),
    )
    assert found == pytest.approx(expected, rel=1e-7, abs=1e-9)


def test_what_only_one_side_can_say_is_lost():
    step = (np.array([0.9, 0.1, 0.0]), np.array([0.9, 0.0, 0.1]))
    assert adaptive_delta([step], 1, 10.0) == pytest.approx(0.1)
    assert adaptive_delta([step], 3, 10.0) == pytest.approx(1 - 0.9**3)
    apart = (np.array([1.0, 0.0]), np.array([0.0, 1.0]))
    assert adaptive_delta([apart], 2, 5.0) == 1


def test_unlisted_noise_is_charged():
    step = (np.array([0.49, 0.5]), np.array([0.49, 0.5]))
    assert adaptive_delta([step], 1, 1.0) == pytest.approx(0.01)


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


def test_laplace_noise_keeps_its_epsilon_and_no_less():
    listed = discrete_laplace_distribution(2.0)
    assert shifted_delta(listed, 3, 1.5) < 1e-12
    assert shifted_delta(listed, 3, 1.4) > 1e-3
    assert shifted_delta(listed, 3, 1.5, distance=2) > 1e-2


# -- worlds


@pytest.mark.parametrize(("n_teachers", "n_classes"), [(1, 2), (5, 2), (4, 3), (3, 4)])
def test_all_counts_and_neighbours_are_listed_once(n_teachers, n_classes):
    counts = all_counts(n_teachers, n_classes)
    assert len(counts) == math.comb(n_teachers + n_classes - 1, n_classes - 1)
    assert (counts.sum(axis=1) == n_teachers).all()
    assert len({tuple(row) for row in counts.tolist()}) == len(counts)
    here, there = neighbouring_counts(n_teachers, n_classes)
    expected = {
        (tuple(a), tuple(b))
        for a, b in itertools.product(counts.tolist(), repeat=2)
        if sum(abs(x - y) for x, y in zip(a, b, strict=True)) == 2
    }
    listed = [(tuple(a), tuple(b)) for a, b in zip(here.tolist(), there.tolist(), strict=True)]
    assert len(listed) == len(expected)
    assert set(listed) == expected


def test_output_law_runs_the_code_on_every_noise():
    law = discrete_laplace_distribution(2.0)
    found = output_distribution(
        drawn_labels(NoisyVotes(noise="laplace", scale=2.0), 9), [6, 3], law, n_outcomes=2
    )
    assert found[1] == pytest.approx(float(law.at_least(2)))
    assert found.sum() == pytest.approx(1)
