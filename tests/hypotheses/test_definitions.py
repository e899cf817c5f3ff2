"""Classes of hypotheses against their definitions, on small grids where every member can be
tried."""

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secretballot.exceptions import DataError, ParameterError
from secretballot.hypotheses import (
    EMPTY,
    Cut,
    DecisionStumps,
    FiniteClass,
    Interval,
    Intervals,
    Thresholds,
    disagreement_coefficient,
)

# Points are integers, so that quarters stand for every threshold and end there is, pairs of ends
# inside one gap included.
GRID = [-math.inf, *np.arange(-1, 5.25, 0.25).tolist(), math.inf]
ALL_POINTS = np.arange(-1, 5.5, 0.5)


@dataclass(frozen=True)
class Table:
    """Predicts by the first column, a place in a list of answers."""

    answers: tuple

    def predict(self, X):
        return np.array(self.answers)[(2 * np.asarray(X)[:, 0]).astype(int) + 2]


def cuts(d, directions=("up", "down")):
    return [Cut(t, way, f, d) for f in range(d) for way in directions for t in GRID]


TABLES = FiniteClass(
    [Table(tuple(row)) for row in np.random.default_rng(0).integers(0, 2, (9, len(ALL_POINTS)))]
)
FAMILIES = {
    "up": (Thresholds(), 1, cuts(1, ("up",))),
    "down": (Thresholds("down"), 1, cuts(1, ("down",))),
    "either": (Thresholds("either"), 1, cuts(1)),
    "stumps": (DecisionStumps(2), 2, cuts(2)),
    "intervals": (
        Intervals(),
        1,
        [EMPTY, *(Interval(a, b) for a, b in itertools.combinations_with_replacement(GRID, 2))],
    ),
    "tables": (TABLES, 1, list(TABLES.members)),
}
each_family = pytest.mark.parametrize("name", FAMILIES)
few_examples = settings(max_examples=12, deadline=None)


@st.composite
def samples(draw, d, numbers=None):
    n, numbers = draw(st.integers(1, 8)), st.integers(0, 4) if numbers is None else numbers
    X = draw(st.lists(st.tuples(*[numbers] * d), min_size=n, max_size=n))
    y = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    weights = draw(
        st.none() | st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0]), min_size=n, max_size=n)
    )
    return np.array(X, dtype=float), np.array(y), weights


def mistakes(labels, y, weights=None):
    """Weighted mistakes of every row of labels."""
    return ((labels != y) * (1 if weights is None else np.asarray(weights))).sum(axis=1)


def labels_of(members, X):
    return np.array([h.predict(X) for h in members])


@each_family
def test_dichotomies_are_the_distinct_labellings_and_erm_is_the_first_of_the_best(name):
    family, d, members = FAMILIES[name]

    @given(samples(d))
    @few_examples
    def check(sample):
        X, y, weights = sample
        dichotomies = family.dichotomies(X)
        listed = labels_of(dichotomies, X)
        rows = list(map(tuple, listed))
        assert len(set(rows)) == len(rows) == len(dichotomies)
        assert set(rows) == set(map(tuple, labels_of(members, X)))
        errors = dichotomies.errors(y)
        assert errors.dtype == np.int64
        np.testing.assert_array_equal(errors, mistakes(listed, y))
        np.testing.assert_array_equal(dichotomies.errors(y, weights), mistakes(listed, y, weights))
        best = dichotomies.hypothesis(int(np.argmin(mistakes(listed, y, weights))))
        assert best == family.erm(X, y, weights)

    check()


@each_family
def test_version_space_is_the_definition_after_several_restricts(name):
    family, d, members = FAMILIES[name]
    everywhere = np.array(np.meshgrid(*[ALL_POINTS] * d)).reshape(d, -1).T
    labels = labels_of(members, everywhere)

    @given(
        st.lists(st.tuples(samples(d), st.sampled_from([0.0, 0.5, 1.0, 2.0, math.inf])), max_size=4)
    )
    @few_examples
    def check(rounds):
        space, left = family.version_space(), np.ones(len(members), dtype=bool)
        for (X, y, weights), slack in rounds:
            counts = mistakes(labels_of(members, X), y, weights)
            fewest = counts[left].min()
            left &= counts - fewest <= slack
            space = space.restrict(X, y, slack, weights)
        np.testing.assert_array_equal(
            space.disagreement_region(everywhere), (labels[left] != labels[left][0]).any(axis=0)
        )

    check()


@each_family
def test_errors_on_other_points_are_those_of_the_representatives(name):
    family, d, _ = FAMILIES[name]
    # on quarters, so that they fall on ends midway between the others
    quarters = st.integers(-4, 24).map(lambda k: k / 4)

    @given(samples(d), samples(d, quarters))
    @few_examples
    def check(public, private):
        dichotomies, (X, y, _) = family.dichotomies(public[0]), private
        tried = mistakes(labels_of(dichotomies, X), y)
        np.testing.assert_array_equal(dichotomies.errors_on(X, y), tried)
        if name == "intervals":
            starts, ends = dichotomies.prefix_mistakes_on(X, y)
            places = itertools.combinations_with_replacement(range(len(starts)), 2)
            for index, (first, last) in enumerate(places, 1):
                assert dichotomies.between(first, last) == dichotomies.hypothesis(index)
                assert tried[0] + ends[last] - starts[first] == tried[index]

    check()


def coefficient_by_definition(labellings, best, alpha):
    """Return theta(alpha) from all labellings of the points, by trying every radius from alpha
    on."""
    m = len(best)
    distances, ratios = (labellings != best).sum(axis=1), [1.0]
    for k in range(m + 1):
        ball = labellings[distances <= k]
        mass = (ball != ball[0]).any(axis=0).mean()
        ratios += [mass / r for r in (k / m, alpha) if r >= alpha and r > 0 and k / m <= r]
    return max(ratios)


@each_family
def test_the_disagreement_coefficient_is_the_definition(name):
    family, d, _ = FAMILIES[name]
    rng = np.random.default_rng(0)
    for X in (rng.random((9, d)), rng.integers(0, 3, size=(9, d)).astype(float)):
        labellings = labels_of(family.dichotomies(X), X)
        for y in rng.integers(0, 2, size=(2, 9)):
            best = family.erm(X, y)
            for alpha in (0.0, 0.05, 1 / 9, 0.2, 1 / 3, 0.5, 0.77, 1.0):
                expected = coefficient_by_definition(labellings, best.predict(X), alpha)
                found = disagreement_coefficient(family, best, X, alpha)
                assert found == pytest.approx(expected, rel=1e-12)


def test_floats_that_miss_a_whole_number_of_points_do_not_lose_one():
    # 0.29 * 100 is 28.999999999999996
    found = disagreement_coefficient(Thresholds(), Cut(0.5), np.linspace(0, 1, 100), 0.29)
    assert found == pytest.approx(2.0)


def test_numbers_of_labellings_and_vc_dimensions():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((9, 1))
    assert len(Thresholds().dichotomies(x)) == len(Thresholds("down").dichotomies(x)) == 10
    assert len(Thresholds("either").dichotomies(x)) == 18
    assert len(DecisionStumps(3).dichotomies(np.column_stack([x, -x, x**3]))) == 18
    assert [Thresholds(way).vc_dimension for way in ("up", "down", "either")] == [1, 1, 2]
    found = [DecisionStumps(d).vc_dimension for d in (1, 2, 4, 5, 9, 10, 17, 18, 1000)]
    assert found == [2, 3, 4, 5, 5, 6, 6, 7, 13]
    many = Intervals().dichotomies(np.arange(100_000.0))
    n = len(many)
    assert n == 100_000 * 100_001 // 2 + 1
    assert many.hypothesis(0) == EMPTY
    assert many.hypothesis(100_001) == Interval(0.5, 1.5)
    assert many.hypothesis(n - 1) == Interval(99_998.5, math.inf)


def test_points_of_another_dimension_are_refused():
    with pytest.raises(DataError, match="columns"):
        DecisionStumps(2).dichotomies(np.zeros((3, 2))).errors_on(np.zeros((3, 1)), [0, 1, 0])


@pytest.mark.parametrize("labels", [[0, 1], [0, 1, 0], [1, 1, 0]])
def test_neighbours_are_told_apart_however_close(labels):
    families = (Thresholds(), Intervals()) if labels == [0, 1] else (Intervals(),)
    for centre in (1.0, 0.0, -1.0, 5e-324, 1.7e308):
        X = [np.nextafter(centre, -math.inf), centre, np.nextafter(centre, math.inf)][: len(labels)]
        for family in families:
            assert family.erm(X, labels).predict(X).tolist() == labels
            space = family.version_space().restrict(X, labels, 0)
            assert not space.disagreement_region(X).any()
    wide = Thresholds().erm([-1.7e308, 1.7e308], [0, 1])
    assert wide.threshold == 0


def test_weights_that_floats_cannot_add_exactly_drop_nothing():
    """From 0 on every point has two ones and a zero of their joint weight: equally good thresholds,
    but for rounding. Heavy zeros below make the prefix sums large and coarse."""
    rng = np.random.default_rng(1)
    pairs = rng.integers(1, 2**40, (1000, 2)) * 2.0**-50
    X = np.concatenate([np.full(1000, -1.0), np.repeat(np.arange(1000.0), 3)])
    weights = [rng.random(1000), np.column_stack([pairs, pairs.sum(axis=1)]).ravel()]
    y = np.concatenate([np.zeros(1000, dtype=int), np.tile([1, 1, 0], 1000)])
    space = Thresholds().version_space().restrict(X, y, 0.0, np.concatenate(weights))
    np.testing.assert_array_equal(space.disagreement_region(X), X >= 0)
    assert space._labellings(X[:, None])[1].sum() == 1001


def test_estimators_of_other_classes_are_refused():
    from sklearn.tree import DecisionTreeClassifier

    X = np.random.default_rng(0).standard_normal((200, 2))
    models = [DecisionTreeClassifier(max_depth=1).fit(X, step * X[:, 0] > 0) for step in (1, -1)]
    best = FiniteClass(models).erm(X, X[:, 0] > 0)
    assert best.estimator is models[0]
    assert best.describe() == {"place": 0, "estimator": "DecisionTreeClassifier"}
    words = np.where(X[:, 0] > 0, "yes", "no")
    with pytest.raises(ParameterError, match="mapped to 0 and 1"):
        FiniteClass([*models, DecisionTreeClassifier().fit(X, words)])
