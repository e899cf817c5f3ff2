"""Rectangles against their definition: all of them are tried on small sets, many with equal
coordinates."""

import json
import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secretballot.exceptions import DataError, ParameterError
from secretballot.hypotheses import Rectangles

CLASS = Rectangles()

small = st.integers(0, 3)
grids = st.lists(st.tuples(small, small), min_size=1, max_size=7).map(
    lambda rows: np.array(rows, dtype=float)
)


def brute(X):
    """All labellings of the rows by rectangles with sides through coordinates of the rows, and
    the empty one."""
    found = {(0,) * len(X)}
    for (a, b), (c, d) in product(product(set(X[:, 0]), repeat=2), product(set(X[:, 1]), repeat=2)):
        inside = (X[:, 0] >= a) & (X[:, 0] <= b) & (X[:, 1] >= c) & (X[:, 1] <= d)
        found.add(tuple(inside.astype(int)))
    return np.array(sorted(found))


def label_differs(X, alive, x):
    """Whether one more point may get both labels beside labellings of X that are alive."""
    keys = set(map(tuple, alive))
    return len({row[-1] for row in brute(np.vstack([X, [x]])) if tuple(row[:-1]) in keys}) == 2


@settings(max_examples=60, deadline=None)
@given(grids, st.data())
def test_dichotomies_are_those_of_every_rectangle_tried(X, data):
    y = np.array(data.draw(st.lists(st.integers(0, 1), min_size=len(X), max_size=len(X))))
    found = CLASS.dichotomies(X)
    rows = [tuple(h.predict(X)) for h in found]
    assert len(rows) == len(found) == len(set(rows))
    assert set(rows) == set(map(tuple, brute(X)))
    np.testing.assert_array_equal(found.errors(y), [(np.array(row) != y).sum() for row in rows])


@settings(max_examples=60, deadline=None)
@given(grids, st.data())
def test_erm_is_the_least_of_every_rectangle_tried(X, data):
    y = np.array(data.draw(st.lists(st.integers(0, 1), min_size=len(X), max_size=len(X))))
    weights = np.array(
        data.draw(st.lists(st.integers(0, 3), min_size=len(X), max_size=len(X))), dtype=float
    )
    least = ((brute(X) != y) * weights).sum(axis=1).min()
    assert ((CLASS.erm(X, y, weights).predict(X) != y) * weights).sum() == least


@settings(max_examples=60, deadline=None)
@given(grids, st.data())
def test_version_space_is_what_the_definition_leaves(X, data):
    alive, space = brute(X), CLASS.version_space()
    for n_rows in data.draw(st.lists(st.integers(1, len(X)), min_size=1, max_size=3)):
        y = np.array(data.draw(st.lists(st.integers(0, 1), min_size=n_rows, max_size=n_rows)))
        slack = data.draw(st.integers(0, 2))
        errors = (alive[:, :n_rows] != y).sum(axis=1)
        alive = alive[errors <= errors.min() + slack]
        space = space.restrict(X[:n_rows], y, slack)
        assert (space.hypothesis().predict(X[:n_rows]) != y).sum() == errors.min()
        assert tuple(space.hypothesis().predict(X)) in set(map(tuple, alive))
    pool = np.vstack([X, data.draw(grids), data.draw(grids) - 0.5, data.draw(grids) / 2])
    expected = [label_differs(X, alive, x) for x in pool]
    np.testing.assert_array_equal(space.disagreement_region(pool), expected)


def noisy(n, decimals=None, seed=0):
    """Points and labels of a square with a tenth of the labels wrong."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    X = X if decimals is None else np.round(X, decimals)
    return X, ((np.abs(X) < 0.8).all(axis=1) ^ (rng.random(n) < 0.1)).astype(int)


@pytest.mark.parametrize("decimals", [None, 1, 0])
def test_version_space_of_many_points_agrees_with_the_list_of_labellings(decimals):
    X, y = noisy(14, decimals)
    pool = np.vstack([noisy(12, decimals, seed=1)[0], X[:4], X[:4] / 2])
    space = CLASS.version_space()
    for n_rows, slack in ((4, 2), (8, 1.5), (14, 1)):
        space = space.restrict(X[:n_rows], y[:n_rows], slack)
    region = space.disagreement_region(pool)
    assert 0 < region.sum() < len(region)
    for x, differs in zip(pool, region, strict=True):
        labels = np.array(
            [h.predict(np.vstack([X, [x]])) for h in CLASS.dichotomies(np.vstack([X, [x]]))]
        )
        alive = np.ones(len(labels), dtype=bool)
        for n_rows, slack in ((4, 2), (8, 1.5), (14, 1)):
            errors = (labels[:, :n_rows] != y[:n_rows]).sum(axis=1)
            alive &= errors <= errors[alive].min() + slack
        assert differs == (len(set(labels[alive, -1])) == 2)


@pytest.mark.parametrize(("m", "decimals"), [(1, None), (2, None), (25, None), (40, 0), (30, 1)])
def test_every_labelling_is_given_by_its_own_representative(m, decimals):
    X, y = noisy(m, decimals)
    found = CLASS.dichotomies(X)
    labels = np.array([h.predict(X) for h in found])
    assert len(np.unique(labels, axis=0)) == len(found) <= (m * (m + 1) // 2) ** 2 + 1
    np.testing.assert_array_equal(found.errors(y), (labels != y).sum(axis=1))


@pytest.mark.parametrize("decimals", [None, 1])
def test_erm_of_many_points_is_the_least_of_the_list(decimals):
    X, y = noisy(60, decimals)
    for labels in (y, 1 - y):
        assert (CLASS.erm(X, labels).predict(X) != labels).sum() == CLASS.dichotomies(X).errors(
            labels
        ).min()


def test_strips_grown_in_blocks_are_those_grown_together(monkeypatch):
    X, y = noisy(60, 1)
    whole = CLASS.erm(X, y)
    monkeypatch.setattr("secretballot.hypotheses.planar_strips._BLOCK", 8 * 64 * 7)
    assert CLASS.erm(X, y) == whole


def test_points_on_a_diagonal_are_labelled_as_by_intervals():
    m = 30
    assert len(CLASS.dichotomies(np.arange(m)[:, None] * [1.0, 2.0])) == m * (m + 1) // 2 + 1


def test_a_space_that_is_decided_knows_what_all_members_hold():
    X = [[x, y] for x in range(5) for y in range(5)]
    y = [int(1 <= x <= 3 and 1 <= y <= 3) for x, y in X]
    space = CLASS.version_space().restrict(X, y, 0)
    assert space.describe() == {
        "class": "rectangles",
        "asked_points": 25,
        "held_by_all": {"low": [1, 1], "high": [3, 3]},
    }
    np.testing.assert_array_equal(
        space.disagreement_region([[1, 1], [2.5, 1.5], [0.5, 2], [0, 2], [5, 5]]), [0, 0, 1, 0, 0]
    )
    assert space.hypothesis().predict(X).tolist() == y
    json.dumps(
        [space.describe(), space.hypothesis().describe(), CLASS.erm(X, np.zeros(25)).describe()]
    )


def test_no_label_one_leaves_every_other_point_open():
    space = CLASS.version_space().restrict([[0, 0], [1, 1]], [0, 0], 0)
    np.testing.assert_array_equal(
        space.disagreement_region([[0, 0], [1, 1], [0, 1], [0.5, 0.5], [9, 9]]), [0, 0, 1, 1, 1]
    )
    assert space.hypothesis().describe() == {"low": None, "high": None}


def test_fractional_weights_do_not_lose_a_tie_to_rounding():
    X, y, weights = [[0, 0], [0, 0], [0, 0], [1, 0]], [1, 1, 1, 0], [0.1, 0.1, 0.1, 1.0]
    # the first point may be labelled 0, which costs 0.1 + 0.1 + 0.1: more than 0.3 in floats
    space = CLASS.version_space().restrict(X, y, 0.3, weights)
    assert space.disagreement_region([[0, 0]])[0]
    assert (
        not CLASS.version_space().restrict(X, y, 0.2999, weights).disagreement_region([[0, 0]])[0]
    )


def test_the_whole_class_disagrees_everywhere_and_infinite_slack_keeps_it():
    X, y = noisy(20)
    assert CLASS.disagreement_region(X).all()
    assert CLASS.version_space().restrict(X, y, math.inf).disagreement_region(X).all()


X3, Y3 = np.eye(3)[:, :2], np.array([0, 1, 1])


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: CLASS.erm(np.eye(3), Y3), DataError, "3 columns"),
        (lambda: CLASS.erm(np.empty((0, 2)), []), DataError, "at least one point"),
        (lambda: CLASS.erm(X3 * np.nan, Y3), DataError, "nan"),
        (lambda: CLASS.erm(X3, Y3[:2]), DataError, "y has shape"),
        (lambda: CLASS.erm(X3, Y3 * 2), DataError, "other than 0 and 1"),
        (lambda: CLASS.erm(X3, Y3, [-1, 1, 1]), DataError, "negative"),
        (lambda: CLASS.dichotomies(noisy(401)[0]), DataError, "up to 6,496,521,202 ways"),
        (lambda: CLASS.dichotomies(noisy(300)[0]), DataError, "at most 20,000,000 are listed"),
        (lambda: CLASS.dichotomies(X3).errors([0, 1]), DataError, "y has shape"),
        (lambda: CLASS.dichotomies(X3).hypothesis(-1), ParameterError, "from 0 to"),
        (lambda: CLASS.version_space().restrict(X3, Y3, -1), ParameterError, "slack"),
        (lambda: CLASS.version_space().restrict(X3, Y3, math.nan), ParameterError, "slack"),
        (lambda: CLASS.version_space().restrict(*noisy(501), 0), DataError, "ask fewer"),
        (lambda: CLASS.disagreement_region(np.eye(3)), DataError, "3 columns"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(call, error, words):
    with pytest.raises(error, match=words) as caught:
        call()
    assert str(caught.value).count(". ") == 0
