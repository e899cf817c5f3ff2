"""Halfspaces against their definition: every pattern of labels is tried on small sets, many of
them degenerate."""

import json
import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secretballot.exceptions import DataError, ParameterError
from secretballot.hypotheses import Halfspaces, Thresholds
from secretballot.hypotheses.planar import Plane

PLANE = Halfspaces()


def cross(a, b, c):
    (ax, ay), (bx, by), (cx, cy) = a, b, c
    return (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)


def in_hull(x, points):
    """Whether x is in the convex hull of at most a few points: in a triangle, on a segment, or
    one of them; exact."""
    for a, b, c in product(points, repeat=3):
        turns = cross(a, b, x), cross(b, c, x), cross(c, a, x)
        if cross(a, b, c) > 0 and min(turns) >= 0:
            return True
    return any(on_segment(x, a, b) for a, b in product(points, repeat=2))


def on_segment(x, a, b):
    return cross(a, b, x) == 0 and all(
        min(p, q) <= v <= max(p, q) for p, q, v in zip(a, b, x, strict=True)
    )


def segments_meet(a, b, c, d):
    crossing = cross(a, b, c) * cross(a, b, d) < 0 and cross(c, d, a) * cross(c, d, b) < 0
    return crossing or any(
        (on_segment(c, a, b), on_segment(d, a, b), on_segment(a, c, d), on_segment(b, c, d)),
    )


def separable(points, pattern):
    """Two finite sets are separable if their hulls do not meet: no point in the other hull, no
    segments that meet."""
    zeros, ones = (
        {x for x, label in zip(points, pattern, strict=True) if label == side} for side in (0, 1)
    )
    if any(in_hull(x, zeros) for x in ones) or any(in_hull(x, ones) for x in zeros):
        return False
    return not any(
        segments_meet(*ab, *cd) for ab in combinations(ones, 2) for cd in combinations(zeros, 2)
    )


def exactly(X):
    """Return rows as integers, all multiplied by the same power of two."""
    return [
        tuple(int(v * 2.0**10) << 60 | int(v * 2.0**10 % 1 * 2.0**60) for v in row) for row in X
    ]


def brute(X):
    """All labellings of the rows by halfspaces, by trying every pattern."""
    points = exactly(X)
    return np.array([p for p in product((0, 1), repeat=len(X)) if separable(points, p)])


def label_differs(X, alive, x):
    """Whether one more point may get both labels beside labellings of X that are alive."""
    points = exactly(np.vstack([X, [x]]))
    patterns = {tuple(row) for row in alive}
    return all(any(separable(points, (*p, label)) for p in patterns) for label in (0, 1))


small = st.integers(0, 3)
grids = st.lists(st.tuples(small, small), min_size=1, max_size=6).map(
    lambda rows: np.array(rows, dtype=float)
)
# tenths are no binary fractions: lines that look straight are bent in the last place
tenths = grids.map(lambda rows: rows / 10 + 0.1 * rows[:, ::-1])


@settings(max_examples=60, deadline=None)
@given(st.one_of(grids, tenths))
def test_dichotomies_are_those_of_every_pattern_tried(X):
    found = PLANE.dichotomies(X)
    rows = [tuple(h.predict(X)) for h in found]
    assert len(rows) == len(found) == len(set(rows))
    assert set(rows) == set(map(tuple, brute(X)))
    y = np.arange(len(X)) % 2
    np.testing.assert_array_equal(found.errors(y), [(np.array(row) != y).sum() for row in rows])


@settings(max_examples=60, deadline=None)
@given(st.one_of(grids, tenths), st.data())
def test_erm_is_the_least_of_every_pattern_tried(X, data):
    y = np.array(data.draw(st.lists(st.integers(0, 1), min_size=len(X), max_size=len(X))))
    weights = np.array(
        data.draw(st.lists(st.integers(0, 3), min_size=len(X), max_size=len(X))), dtype=float
    )
    least = ((brute(X) != y) * weights).sum(axis=1).min()
    assert ((PLANE.erm(X, y, weights).predict(X) != y) * weights).sum() == least


@settings(max_examples=60, deadline=None)
@given(st.one_of(grids, tenths), st.data())
def test_version_space_is_what_the_definition_leaves(X, data):
    alive, space = brute(X), PLANE.version_space()
    for n_rows in data.draw(st.lists(st.integers(1, len(X)), min_size=1, max_size=3)):
        y = np.array(data.draw(st.lists(st.integers(0, 1), min_size=n_rows, max_size=n_rows)))
        slack = data.draw(st.integers(0, 2))
        errors = (alive[:, :n_rows] != y).sum(axis=1)
        alive = alive[errors <= errors.min() + slack]
        space = space.restrict(X[:n_rows], y, slack)
        assert (space.hypothesis().predict(X[:n_rows]) != y).sum() == errors.min()
        assert tuple(space.hypothesis().predict(X)) in set(map(tuple, alive))
    pool = np.vstack([X, data.draw(grids), data.draw(grids) / 2])
    expected = [label_differs(X, alive, x) for x in pool]
    np.testing.assert_array_equal(space.disagreement_region(pool), expected)


def noisy(n, decimals=None, seed=0):
    """Points and labels of a line with a tenth of the labels wrong."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    X = X if decimals is None else np.round(X, decimals)
    return X, ((X @ [1.0, 0.5] > 0.1) ^ (rng.random(n) < 0.1)).astype(int)


@pytest.mark.parametrize("decimals", [None, 1, 0])
def test_version_space_of_many_points_agrees_with_the_list_of_labellings(decimals):
    X, y = noisy(14, decimals)
    pool = np.vstack([noisy(12, decimals, seed=1)[0], X[:4], X[:4] / 2])
    for k, x in enumerate(pool):
        labels = np.array(
            [h.predict(np.vstack([X, [x]])) for h in PLANE.dichotomies(np.vstack([X, [x]]))]
        )
        alive = np.ones(len(labels), dtype=bool)
        space = PLANE.version_space()
        for n_rows, slack in ((4, 2), (8, 1.5), (14, 1)):
            errors = (labels[:, :n_rows] != y[:n_rows]).sum(axis=1)
            alive &= errors <= errors[alive].min() + slack
            space = space.restrict(X[:n_rows], y[:n_rows], slack)
        expected = len(set(labels[alive, -1])) == 2
        assert space.disagreement_region(pool)[k] == expected
        assert space.describe()["labellings"] == len({tuple(row) for row in labels[alive, :-1]})
        if k % 10 == 9:
            assert space.disagreement_region([x])[0] == expected


@pytest.mark.parametrize(("m", "decimals"), [(1, None), (2, None), (3, None), (40, None), (50, 1)])
def test_every_labelling_is_given_by_its_own_representative(m, decimals):
    X, y = noisy(m, decimals)
    found = PLANE.dichotomies(X)
    labels = np.array([h.predict(X) for h in found])
    assert len(np.unique(labels, axis=0)) == len(found)
    np.testing.assert_array_equal(found.errors(y), (labels != y).sum(axis=1))
    if decimals is None:
        assert len(found) == m * (m - 1) + 2


@pytest.mark.parametrize("decimals", [None, 1, 0])
def test_of_equally_good_halfspaces_the_first_in_the_list_is_chosen(decimals):
    X, y = noisy(25, decimals)
    found = PLANE.dichotomies(X)
    for labels in (y, 1 - y, np.arange(25) % 2, np.zeros(25, dtype=int)):
        first = found.hypothesis(int(found.errors(labels).argmin()))
        assert PLANE.erm(X, labels) == first
        assert PLANE.version_space().restrict(X, labels, 2).hypothesis() == first


def test_points_on_one_line_are_labelled_as_by_thresholds():
    X = np.arange(7.0)[:, None] * [1.0, -2.0]
    assert len(PLANE.dichotomies(X)) == 14
    assert {tuple(h.predict(X)) for h in PLANE.dichotomies(X)} == {
        tuple(h.predict(X[:, 0])) for h in Thresholds(direction="either").dichotomies(X[:, 0])
    }


def test_cells_thinner_than_floats_have_fractions():
    X = np.arange(1, 9)[:, None] * [0.1, 1 / 3]  # on one line, but for the last binary places
    found = list(PLANE.dichotomies(X))
    exact = [h for h in found if isinstance(h.b, Fraction)]
    assert exact
    for h in exact:
        values = [
            Fraction(h.w[0]) * Fraction(x) + Fraction(h.w[1]) * Fraction(y) + h.b for x, y in X
        ]
        assert h.predict(X).tolist() == [value >= 0 for value in values]
    json.dumps([h.describe() for h in found])


@pytest.mark.parametrize("scale", [1e-90, 1e-3, 1e90])
@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_scale_and_place_do_not_matter(scale, shift):
    X, y = noisy(40, 1)
    plain = np.round(X * 10) + shift
    moved = plain * 2.0 ** round(math.log2(scale))  # exact, or else the points would bend
    np.testing.assert_array_equal(
        PLANE.dichotomies(moved).errors(y), PLANE.dichotomies(plain).errors(y)
    )
    np.testing.assert_array_equal(
        PLANE.erm(moved, y).predict(moved), PLANE.erm(plain, y).predict(plain)
    )


@pytest.mark.parametrize("decimals", [None, 1, 0])
def test_rays_are_counted_as_turns_say(decimals):
    plane = Plane(np.unique(noisy(60, decimals)[0], axis=0))
    everything = np.arange(len(plane))
    whole, _ = plane.scaled
    for pivot in range(len(plane)):
        ahead = np.delete(everything, pivot)
        u, v = whole[ahead] - whole[pivot], whole - whole[pivot]
        turns = u[:, :1] * v[:, 1] - u[:, 1:] * v[:, 0]
        along = u[:, :1] * v[:, 0] + u[:, 1:] * v[:, 1]
        expected = ((turns > 0) | ((turns == 0) & (along <= 0))).sum(axis=0)
        np.testing.assert_array_equal(plane.count_left(pivot, ahead, everything), expected)


def test_two_constants_alone_disagree_even_on_asked_points():
    X = [[0.0, 0.0], [1.0, 0.0]]
    space = PLANE.version_space().restrict(X, [0, 1], 1).restrict(X, [1, 0], 0)
    assert space.describe()["labellings"] == 2
    assert space.disagreement_region([*X, [0.5, 0.0], [3.0, 3.0]]).all()


def test_equal_points_with_opposite_labels_weigh_against_each_other():
    X, y, weights = [[0.0, 0.0], [0.0, -0.0], [1.0, 0.0]], [0, 1, 0], [1.0, 1.5, 2.0]
    np.testing.assert_array_equal(PLANE.erm(X, y, weights).predict(X), [1, 1, 0])
    assert len(PLANE.dichotomies(X)) == 4


def test_fractional_weights_do_not_lose_a_tie_to_rounding():
    X, y, weights = [[0, 0], [0, 0], [0, 0], [1, 0]], [1, 1, 1, 0], [0.1, 0.1, 0.1, 1.0]
    # the first point may be labelled 0, which costs 0.1 + 0.1 + 0.1: more than 0.3 in floats
    space = PLANE.version_space().restrict(X, y, 0.3, weights)
    assert space.disagreement_region([[0, 0]])[0]
    assert (
        not PLANE.version_space().restrict(X, y, 0.2999, weights).disagreement_region([[0, 0]])[0]
    )


def test_tiny_and_huge_weights_count():
    X, y = noisy(30)
    for factor in (1e-300, 1e300):
        assert (PLANE.erm(X, y, np.full(30, factor)).predict(X) == PLANE.erm(X, y).predict(X)).all()


def test_the_whole_class_disagrees_everywhere_and_infinite_slack_keeps_it():
    X, y = noisy(20)
    assert PLANE.disagreement_region(X).all()
    assert PLANE.version_space().restrict(X, y, math.inf).disagreement_region(X).all()


def test_restricting_leaves_the_old_space_as_it_was():
    X, y = noisy(20)
    space = PLANE.version_space().restrict(X, y, 3)
    before = space.disagreement_region(X)
    space.restrict(X, 1 - y, 0)
    np.testing.assert_array_equal(space.disagreement_region(X), before)


def test_weights_of_zero_ask_nothing():
    X, y = noisy(20)
    assert PLANE.version_space().restrict(X, y, 0, np.zeros(20)).disagreement_region(X).all()


def test_on_the_line_halfspaces_are_thresholds():
    line, X, y = Halfspaces(n_features=1), np.arange(6.0)[:, None], np.array([1, 1, 0, 1, 0, 0])
    assert line.vc_dimension == 2
    assert len(line.dichotomies(X)) == 12
    assert (line.erm(X, y).predict(X) != y).sum() == 1
    space = line.version_space().restrict(X, y, 0)
    np.testing.assert_array_equal(
        space.disagreement_region(X),
        Thresholds("either").version_space().restrict(X, y, 0).disagreement_region(X),
    )


X3, Y3 = np.eye(3)[:, :2], np.array([0, 1, 1])


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: Halfspaces(3), ParameterError, "FiniteClass"),
        (lambda: Halfspaces(0), ParameterError, "n_features is 0"),
        (lambda: PLANE.erm(np.eye(3), Y3), DataError, "3 columns"),
        (lambda: PLANE.erm(np.empty((0, 2)), []), DataError, "at least one point"),
        (lambda: PLANE.erm(X3 * np.nan, Y3), DataError, "nan"),
        (lambda: PLANE.erm(X3 * 1e200, Y3), DataError, "rescale"),
        (lambda: PLANE.erm(X3, Y3[:2]), DataError, "y has shape"),
        (lambda: PLANE.erm(X3, Y3 * 2), DataError, "other than 0 and 1"),
        (lambda: PLANE.erm(X3, Y3, [-1, 1, 1]), DataError, "negative"),
        (
            lambda: PLANE.dichotomies(np.random.default_rng(0).random((10_001, 2))),
            DataError,
            "100,010,002 ways",
        ),
        (lambda: PLANE.dichotomies(X3).errors([0, 1]), DataError, "y has shape"),
        (lambda: PLANE.dichotomies(X3).hypothesis(8), ParameterError, "from 0 to 7"),
        (lambda: PLANE.version_space().restrict(X3, Y3, -1), ParameterError, "slack"),
        (lambda: PLANE.version_space().restrict(X3, Y3, math.nan), ParameterError, "slack"),
        (lambda: PLANE.disagreement_region(np.eye(3)), DataError, "3 columns"),
        (
            lambda: PLANE.version_space().restrict(X3, Y3, 0).disagreement_region(X3 * 1e200),
            DataError,
            "rescale",
        ),
    ],
)
def test_bad_input_is_refused_in_one_sentence(call, error, words):
    with pytest.raises(error, match=words) as caught:
        call()
    assert str(caught.value).count(". ") == 0
