"""Ranges drawn without listing them: the bounds, the law, and the very choice that all digits of
the coins make."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_exponential_index import digits_of

from exact_games.statistics import outcomes_p_value
from secretballot.core import exponential
from secretballot.core.exponential import locate, range_bounds
from secretballot.core.noise import ExactNoise

ALPHA = 1e-6
PRECISION = 3000


def groups(starts, ends, scale):
    """Weights of no range, then of the ranges by last place: the definition, in many digits."""
    weights = [mpmath.mpf(1)]
    for j, end in enumerate(ends):
        weights.append(
            mpmath.fsum(
                mpmath.exp((mpmath.mpf(int(s)) - int(end)) / mpmath.mpf(scale))
                for s in starts[: j + 1]
            )
        )
    return weights


def law(starts, ends, scale):
    """Probability of every range and of none, by listing them."""
    scores = {None: 0} | {
        (i, j): int(starts[i] - ends[j]) for j in range(len(ends)) for i in range(j + 1)
    }
    best = max(scores.values())
    weights = {outcome: np.exp((score - best) / scale) for outcome, score in scores.items()}
    total = sum(weights.values())
    return {outcome: weight / total for outcome, weight in weights.items()}


places = st.integers(1, 12).flatmap(
    lambda m: st.tuples(*[st.lists(st.integers(-30, 30), min_size=m, max_size=m).map(np.array)] * 2)
)


@given(places, st.sampled_from([0.05, 0.7, 3.0, 250.0, 2.0**40]))
@settings(max_examples=40, deadline=None)
def test_bounds_hold_and_are_as_near_as_stated(sides, scale):
    starts, ends = sides
    bits = 64 + 4 * len(starts).bit_length()
    lower, upper = range_bounds(starts, ends, Fraction(scale), bits)
    with mpmath.workprec(PRECISION):
        weights = groups(starts, ends, scale)
        best = max(0, *(int(starts[i] - ends[j]) for j in range(len(ends)) for i in range(j + 1)))
        factor = mpmath.ldexp(mpmath.exp(-best / mpmath.mpf(scale)), bits)
        true = mpmath.mpf(0)
        for k, (low, high) in enumerate(zip(lower, upper, strict=True)):
            true += weights[k] * factor
            assert low <= true <= high
            assert high - low == (k + 3) ** 3


@pytest.mark.parametrize("spare", [-12, 0, 64])
@pytest.mark.parametrize("scale", [0.25, 1.5, 30.0])
def test_the_group_is_the_one_that_all_digits_of_the_uniform_real_make(monkeypatch, spare, scale):
    monkeypatch.setattr(exponential, "_SPARE_BITS", spare + 64)
    starts, ends = np.array([0, 3, -2, 5, 5]), np.array([1, 2, 0, 4, -1])
    with mpmath.workprec(PRECISION):
        weights = groups(starts, ends, scale)
        sums = [mpmath.fsum(weights[: k + 1]) / mpmath.fsum(weights) for k in range(len(weights))]
        edges = [Fraction(int(mpmath.floor(mpmath.ldexp(edge, 2000))), 2**2000) for edge in sums]
    looks = []
    monkeypatch.setattr(
        exponential, "locate", lambda *known: looks.append(known[1]) or locate(*known)
    )
    for edge in edges[:-1]:
        for away in (3, 20, 70, 200, 700):
            for real in (edge - Fraction(1, 2**away), edge + Fraction(1, 2**away)):
                if not 0 <= real < 1:
                    continue
                expected = next(k for k, end in enumerate(edges) if real < end)
                chosen = exponential.drawn_range(starts, ends, Fraction(scale), digits_of(real))
                assert (0 if chosen is None else chosen[1] + 1) == expected
    assert max(looks) > 700


@pytest.mark.parametrize(("scale", "unit"), [(0.6, 1), (2.0, 1), (9.0, 5)])
def test_ranges_follow_their_law_and_no_law_of_another_scale(scale, unit):
    starts, ends = unit * np.array([0, 2, 1, 3]), unit * np.array([1, 2, 0, 2])
    source = ExactNoise()
    sample = [source.exponential_range(starts, ends, scale) for _ in range(700)]
    assert outcomes_p_value(sample, law(starts, ends, scale)) > ALPHA
    assert outcomes_p_value(sample, law(starts, ends, scale / 3)) < ALPHA
    swapped = law(starts, ends[::-1], scale)
    assert outcomes_p_value(sample, swapped) < ALPHA
