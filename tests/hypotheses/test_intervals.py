"""Intervals against their definition, on small grids where every interval can be tried."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secretballot.exceptions import ParameterError
from secretballot.hypotheses import Intervals
from secretballot.hypotheses.intervals import EMPTY, Interval

# Points are integers, asked or not; ends at quarters stand for all there are, pairs inside one
# gap included.
ENDS = [-math.inf, *np.arange(-1, 5.25, 0.25).tolist(), math.inf]
ALL_INTERVALS = [EMPTY, *(Interval(a, b) for a in ENDS for b in ENDS if a <= b)]
ALL_POINTS = np.arange(-1, 5.5, 0.5)
LABELS_OF_ALL = np.array([h.predict(ALL_POINTS) for h in ALL_INTERVALS])

FAMILY = Intervals()


@st.composite
def samples(draw, at_most=8):
    n = draw(st.integers(1, at_most))
    X = draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))
    y = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    weights = draw(
        st.none() | st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0]), min_size=n, max_size=n)
    )
    return np.array(X, dtype=float), np.array(y), weights


def counts_of(X, y, weights):
    """Mistakes of all intervals at once."""
    labels = LABELS_OF_ALL[:, np.searchsorted(ALL_POINTS, X)]
    return ((labels != y) * (1 if weights is None else np.asarray(weights))).sum(axis=1)


def mistakes(h, X, y, weights):
    return float(((h.predict(X) != y) * (1 if weights is None else np.asarray(weights))).sum())


@given(samples())
@settings(max_examples=30, deadline=None)
def test_erm_has_the_fewest_mistakes_and_is_the_first_dichotomy_among_equals(sample):
    X, y, weights = sample
    best = FAMILY.erm(X, y, weights)
    assert mistakes(best, X, y, weights) == counts_of(X, y, weights).min()
    dichotomies = FAMILY.dichotomies(X)
    in_order = [mistakes(h, X, y, weights) for h in dichotomies]
    assert best == dichotomies.hypothesis(int(np.argmin(in_order)))
    assert best == FAMILY.version_space().restrict(X, y, 0, weights).hypothesis()


@given(samples())
@settings(max_examples=30, deadline=None)
def test_dichotomies_are_the_distinct_labellings_once_each(sample):
    X, y, _ = sample
    dichotomies = FAMILY.dichotomies(X)
    listed = [tuple(h.predict(X)) for h in dichotomies]
    assert len(set(listed)) == len(listed) == len(dichotomies)
    assert set(listed) == {
        tuple(labels) for labels in LABELS_OF_ALL[:, np.searchsorted(ALL_POINTS, X)]
    }
    errors = dichotomies.errors(y)
    np.testing.assert_array_equal(errors, [(np.array(labels) != y).sum() for labels in listed])
    base, starts, ends = dichotomies.prefix_mistakes_on(X, y)
    for index in range(1, len(dichotomies)):
        first, last = dichotomies.ends(index)
        assert dichotomies.index(first, last) == index
        assert base + ends[last] - starts[first] == errors[index]


@given(st.lists(st.tuples(samples(), st.sampled_from([0.0, 0.5, 1.0, 2.0, math.inf])), max_size=4))
@settings(max_examples=60, deadline=None)
def test_version_space_is_the_definition_after_several_restricts(rounds):
    space, alive = FAMILY.version_space(), np.ones(len(ALL_INTERVALS), dtype=bool)
    for (X, y, weights), slack in rounds:
        counts = counts_of(X, y, weights)
        least = counts[alive].min()
        alive &= counts - least <= slack
        space = space.restrict(X, y, slack, weights)
        assert mistakes(space.hypothesis(), X, y, weights) == least
    labels = LABELS_OF_ALL[alive]
    np.testing.assert_array_equal(
        space.disagreement_region(ALL_POINTS), (labels != labels[0]).any(axis=0)
    )
    assert space.describe()["empty"] == alive[0]
    json.dumps(space.describe(), allow_nan=False)


def test_numbers_of_labellings_go_back_and_forth_at_any_size():
    dichotomies = FAMILY.dichotomies(np.arange(100_000.0))
    n = len(dichotomies)
    assert n == 100_000 * 100_001 // 2 + 1
    for index in (1, 2, 100_000, 100_001, n // 2, n - 2, n - 1):
        assert dichotomies.index(*dichotomies.ends(index)) == index
    assert dichotomies.ends(0) is None
    assert dichotomies.hypothesis(0) == EMPTY
    assert dichotomies.hypothesis(n - 1) == Interval(99_998.5, math.inf)
    with pytest.raises(ParameterError, match="prefix_mistakes"):
        dichotomies.errors(np.zeros(100_000))


def test_one_interval_is_found_among_many_points_and_its_space_is_small():
    rng = np.random.default_rng(0)
    X = rng.random(20_000)
    y = ((X > 0.3) & (X < 0.6)).astype(int) ^ (rng.random(20_000) < 0.1)
    best = FAMILY.erm(X, y)
    assert abs(best.lower - 0.3) < 0.01
    assert abs(best.upper - 0.6) < 0.01
    space = FAMILY.version_space().restrict(X, y, 30.0)
    region = space.disagreement_region(X)
    assert 0 < region.mean() < 0.02
    assert not region[np.abs(X - 0.45) < 0.1].any()
    again = space.restrict(X[region], y[region], 5.0)
    assert 0 < again.disagreement_region(X).sum() < region.sum()
    assert again.hypothesis() == best


def test_a_space_too_large_to_hold_is_refused():
    X = np.arange(30_000.0)
    with pytest.raises(ParameterError, match="smaller slack"):
        FAMILY.version_space().restrict(X, np.zeros(30_000), 30_000.0)


def test_intervals_between_asked_points_disagree_there():
    """No asked point is inside, and still nothing is known of what lies between."""
    space = FAMILY.version_space().restrict([0.0, 1.0], [0, 0], 0)
    assert space.disagreement_region([0.0, 0.5, 1.0, 7.0]).tolist() == [False, True, False, True]
    close = np.nextafter(1.0, 2)
    assert (
        not FAMILY.version_space()
        .restrict([1.0, close], [0, 0], 0)
        .disagreement_region([1.0, close])
        .any()
    )


@pytest.mark.parametrize("labels", [[0, 1, 0], [1, 0, 0], [0, 0, 1], [1, 1, 0], [1, 1, 1]])
def test_ends_separate_neighbours_however_close(labels):
    for centre in (1.0, 0.0, -1.0, 1.7e308):
        X = [np.nextafter(centre, -math.inf), centre, np.nextafter(centre, math.inf)]
        assert FAMILY.erm(X, labels).predict(X).tolist() == labels
        space = FAMILY.version_space().restrict(X, labels, 0)
        assert space.hypothesis().predict(X).tolist() == labels
        assert not space.disagreement_region(X).any()


def test_a_point_alone():
    space = FAMILY.version_space().restrict([2.0], [1], 0)
    assert space.disagreement_region([1.0, 2.0, 3.0]).tolist() == [True, False, True]
    assert FAMILY.erm([2.0, 2.0], [1, 0]) == EMPTY
    assert FAMILY.erm([2.0, 2.0], [1, 0], [2, 1]) == Interval(-math.inf, math.inf)
    assert len(FAMILY.dichotomies([2.0, 2.0])) == 2


def test_weights_that_floats_cannot_add_exactly_drop_nothing():
    X = np.repeat(np.arange(40.0), 3)
    weights, y = np.tile([0.1, 0.2, 0.3], 40), np.tile([1, 1, 0], 40)
    space = FAMILY.version_space().restrict(X, y, 0.0, weights)
    assert space.describe()["cells"] == 41 * 42 // 2
    assert space.disagreement_region(X).all()
