from itertools import combinations, product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from secretballot.hypotheses.halfspaces import Halfspaces

PLANE = Halfspaces()


def cross(a, b, c):
    (ax, ay), (bx, by), (cx, cy) = a, b, c
    return (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)


def in_hull(x, points):
    """Whether x is in the convex hull of at most a few points: in a triangle, on a segment, or one of them; exact."""
    for a, b, c in product(points, repeat=3):
        turns = cross(a, b, x), cross(b, c, x), cross(c, a, x)
        if cross(a, b, c) > 0 and min(turns) >= 0:
            return True
    return any(on_segment(x, a, b) for a, b in product(points, repeat=2))


def on_segment(x, a, b):
    return cross(a, b, x) == 0 and all(min(p, q) <= v <= max(p, q) for p, q, v in zip(a, b, x, strict=True))


def segments_meet(a, b, c, d):
    crossing = cross(a, b, c) * cross(a, b, d) < 0 and cross(c, d, a) * cross(c, d, b) < 0
    return crossing or any(
        (on_segment(c, a, b), on_segment(d, a, b), on_segment(a, c, d), on_segment(b, c, d)),
    )


def separable(points, pattern):
    """Two finite sets are separable if their hulls do not meet: no point in the other hull, no segments that meet."""
    zeros, ones = ({x for x, label in zip(points, pattern, strict=True) if label == side} for side in (0, 1))
    if any(in_hull(x, zeros) for x in ones) or any(in_hull(x, ones) for x in zeros):
        return False
    return not any(segments_meet(*ab, *cd) for ab in combinations(ones, 2) for cd in combinations(zeros, 2))


def exactly(X):
    """Return rows as whole numbers, all multiplied by the same power of two."""
    return [tuple(int(v * 2.0**10) << 60 | int(v * 2.0**10 % 1 * 2.0**60) for v in row) for row in X]


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
grids = st.lists(st.tuples(small, small), min_size=1, max_size=6).map(lambda rows: np.array(rows, dtype=float))
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
    weights = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(X), max_size=len(X))), dtype=float)
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
