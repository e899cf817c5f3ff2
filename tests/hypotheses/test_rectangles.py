from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from secretballot.hypotheses import Rectangles

CLASS = Rectangles()

small = st.integers(0, 3)
grids = st.lists(st.tuples(small, small), min_size=1, max_size=7).map(lambda rows: np.array(rows, dtype=float))


def brute(X):
    """All labellings of the rows by rectangles with sides through coordinates of the rows, and the empty one."""
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
    weights = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(X), max_size=len(X))), dtype=float)
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
