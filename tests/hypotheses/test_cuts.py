"""Thresholds and stumps against their definitions, on small grids where every threshold can be
tried."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secretballot.hypotheses import DecisionStumps, Thresholds, cuts
from secretballot.hypotheses.cuts import Cut, place_between

# Points are integers, so that quarters stand for every threshold there is.
GRID = [-math.inf, *np.arange(-1, 5.25, 0.25).tolist(), math.inf]
ALL_POINTS = np.arange(-1, 5.5, 0.5)

DIRECTIONS = {"up": ("up",), "down": ("down",), "either": ("up", "down")}


def all_cuts(n_features, directions=("up", "down")):
    return [
        Cut(t, way, f, n_features) for f in range(n_features) for way in directions for t in GRID
    ]


@st.composite
def samples(draw, n_features, at_least=1, at_most=8):
    n = draw(st.integers(at_least, at_most))
    cell = st.integers(0, 4)
    X = draw(st.lists(st.tuples(*[cell] * n_features), min_size=n, max_size=n))
    y = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    weights = draw(
        st.none() | st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0]), min_size=n, max_size=n)
    )
    return np.array(X, dtype=float), np.array(y), weights


def mistakes(h, X, y, weights=None):
    return float(((h.predict(X) != y) * (1 if weights is None else np.asarray(weights))).sum())


def survivors(cuts, X, y, slack, weights):
    counts = [mistakes(h, X, y, weights) for h in cuts]
    return [h for h, count in zip(cuts, counts, strict=True) if count - min(counts) <= slack]


def disagree(cuts, X):
    labels = np.array([h.predict(X) for h in cuts])
    return (labels != labels[0]).any(axis=0)


CLASSES = [
    (Thresholds(), 1, ("up",)),
    (Thresholds("down"), 1, ("down",)),
    (Thresholds("either"), 1, ("up", "down")),
    (DecisionStumps(2), 2, ("up", "down")),
]


@pytest.mark.parametrize(("family", "d", "directions"), CLASSES)
def test_erm_has_the_fewest_mistakes_and_is_the_first_dichotomy_among_equals(family, d, directions):
    cuts = all_cuts(d, directions)

    @given(samples(d))
    @settings(max_examples=20, deadline=None)
    def check(sample):
        X, y, weights = sample
        best = family.erm(X, y, weights)
        assert mistakes(best, X, y, weights) == min(mistakes(h, X, y, weights) for h in cuts)
        dichotomies = family.dichotomies(X)
        in_order = [
            mistakes(dichotomies.hypothesis(i), X, y, weights) for i in range(len(dichotomies))
        ]
        assert best == dichotomies.hypothesis(int(np.argmin(in_order)))
        assert best == family.version_space().restrict(X, y, 0, weights).hypothesis()

    check()


@pytest.mark.parametrize(("family", "d", "directions"), CLASSES)
def test_dichotomies_are_the_distinct_labellings_once_each(family, d, directions):
    cuts = all_cuts(d, directions)

    @given(samples(d))
    @settings(max_examples=20, deadline=None)
    def check(sample):
        X, y, _ = sample
        dichotomies = family.dichotomies(X)
        listed = [tuple(h.predict(X)) for h in dichotomies]
        assert len(set(listed)) == len(listed) == len(dichotomies)
        assert set(listed) == {tuple(h.predict(X)) for h in cuts}
        np.testing.assert_array_equal(
            dichotomies.errors(y), [(np.array(labels) != y).sum() for labels in listed]
        )
        assert dichotomies.errors(y).dtype == np.int64

    check()


@pytest.mark.parametrize(("family", "d", "directions"), CLASSES)
def test_version_space_is_the_definition_after_several_restricts(family, d, directions):
    everything = all_cuts(d, directions)
    nowhere_else = np.array(np.meshgrid(*[ALL_POINTS] * d)).reshape(d, -1).T

    @given(
        st.lists(st.tuples(samples(d), st.sampled_from([0.0, 0.5, 1.0, 2.0, math.inf])), max_size=4)
    )
    @settings(max_examples=20, deadline=None)
    def check(rounds):
        space, cuts = family.version_space(), everything
        for (X, y, weights), slack in rounds:
            space, cuts = (
                space.restrict(X, y, slack, weights),
                survivors(cuts, X, y, slack, weights),
            )
            fewest = min(mistakes(h, X, y, weights) for h in cuts)
            assert mistakes(space.hypothesis(), X, y, weights) == fewest
        np.testing.assert_array_equal(
            space.disagreement_region(nowhere_else), disagree(cuts, nowhere_else)
        )
        json.dumps(space.describe(), allow_nan=False)

    check()


def test_numbers_of_labellings_in_general_position():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((9, 1))
    assert len(Thresholds().dichotomies(x)) == len(Thresholds("down").dichotomies(x)) == 10
    assert len(Thresholds("either").dichotomies(x)) == 18
    X = rng.standard_normal((40, 3))
    stumps = DecisionStumps(3).dichotomies(X)
    assert len({tuple(h.predict(X)) for h in stumps}) == len(stumps) <= 2 * 3 * 39 + 2
    copies = DecisionStumps(3).dichotomies(np.column_stack([x, -x, x**3]))
    assert len(copies) == 18


def test_vc_dimensions():
    assert [Thresholds(way).vc_dimension for way in DIRECTIONS] == [1, 1, 2]
    found = [DecisionStumps(d).vc_dimension for d in (1, 2, 4, 5, 9, 10, 17, 18, 1000)]
    assert found == [2, 3, 4, 5, 5, 6, 6, 7, 13]


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (1.0, np.nextafter(1.0, 2)),
        (0.0, 5e-324),
        (-5e-324, 0.0),
        (5e-324, 1e-323),
        (-1.7e308, 1.7e308),
        (1e308, 1.7e308),
        (1.7e308, np.nextafter(1.7e308, math.inf)),
        (-1.0, 3.0),
    ],
)
def test_a_threshold_separates_neighbours_however_close(low, high):
    t = place_between(float(low), float(high))
    assert low < t <= high
    X, y = [low, high], [0, 1]
    for h in (Thresholds().erm(X, y), Thresholds().version_space().restrict(X, y, 0).hypothesis()):
        assert h.predict(X).tolist() == y
    assert t < high or high == np.nextafter(low, math.inf)
    space = Thresholds().version_space().restrict(X, y, 0)
    assert not space.disagreement_region(X).any()


def test_a_point_alone_and_equal_points():
    space = Thresholds().version_space().restrict([2.0], [1], 0)
    assert space.disagreement_region([1.0, 2.0, 3.0]).tolist() == [True, False, False]
    contradiction = Thresholds().version_space().restrict([2.0, 2.0], [1, 0], 0)
    assert contradiction.disagreement_region([1.0, 2.0, 3.0]).all()
    assert len(Thresholds().dichotomies([2.0, 2.0, 2.0])) == 2
    assert Thresholds().dichotomies([2.0, 2.0, 2.0]).errors([1, 1, 0]).tolist() == [1, 2]


def test_survivors_may_fall_apart():
    """Two thresholds are equally good, the one between them worse: it must not come back."""
    X, y = [1.0, 2.0], [1, 0]
    space = Thresholds().version_space().restrict(X, y, 0)
    assert [line["segments"] for line in space.describe()["thresholds"]] == [2]
    again = space.restrict([1.0, 2.0, 2.0], [0, 1, 1], 0)  # would choose 1 < t <= 2
    assert again.hypothesis() == Cut(-math.inf)


def test_weights_that_floats_cannot_add_exactly_drop_nothing(monkeypatch):
    """From 0 on every point has two ones and a zero of their joint weight: equally good thresholds,
    but for rounding.

    Heavy zeros below make the prefix sums large and coarse, while few mistakes are left.
    """
    rng = np.random.default_rng(1)
    # their sums are exact, those with the zeros below not
    pairs = rng.integers(1, 2**40, (1000, 2)) * 2.0**-50
    X = np.concatenate([np.full(1000, -1.0), np.repeat(np.arange(1000.0), 3)])
    weights = np.concatenate(
        [rng.random(1000), np.column_stack([pairs, pairs.sum(axis=1)]).ravel()]
    )
    y = np.concatenate([np.zeros(1000, dtype=int), np.tile([1, 1, 0], 1000)])
    space = Thresholds().version_space().restrict(X, y, 0.0, weights)
    np.testing.assert_array_equal(space.disagreement_region(X), X >= 0)
    assert space.describe()["thresholds"][0]["segments"] == 1
    strict = Thresholds().version_space().restrict(X, y, 0.0, weights + 1e-3 * y)
    assert not strict.disagreement_region(X).any()
    monkeypatch.setattr(cuts, "rounding_allowance", lambda weights: 0.0)
    naive = Thresholds().version_space().restrict(X, y, 0.0, weights)
    assert not naive.disagreement_region(X[X >= 0]).all(), (
        "rounding does no harm here: the test shows nothing"
    )


def test_an_unbounded_slack_keeps_everything():
    for slack in (math.inf, 10**400):
        space = Thresholds().version_space().restrict([1.0, 2.0], [1, 1], slack)
        assert space.disagreement_region([1.0, 2.0]).all()
