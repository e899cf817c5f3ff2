"""Mistakes of the labellings of public points on other points, against trying every
representative."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secretballot.exceptions import DataError, ParameterError
from secretballot.hypotheses import DecisionStumps, FiniteClass, Intervals, Thresholds, base
from secretballot.hypotheses.cuts import SortedColumn, place_between, places_between
from secretballot.hypotheses.intervals import interval_between, upper_ends

# On quarters, so that private points fall on ends midway between public ones.
quarters = st.integers(-4, 24).map(lambda k: k / 4)
wholes = st.integers(0, 5).map(float)


@st.composite
def worlds(draw, n_features):
    def points(numbers, least):
        n = draw(st.integers(least, 8))
        rows = st.lists(numbers, min_size=n_features, max_size=n_features)
        return np.array(draw(st.lists(rows, min_size=n, max_size=n)))

    public, X = points(wholes, 1), points(quarters, 1)
    return public, X, np.array(draw(st.lists(st.integers(0, 1), min_size=len(X), max_size=len(X))))


def tried(dichotomies, X, y):
    return np.array([(found.predict(X) != y).sum() for found in dichotomies])


CLASSES = [(Thresholds(), 1), (Thresholds("either"), 1), (Intervals(), 1), (DecisionStumps(2), 2)]


@pytest.mark.parametrize(
    ("family", "n_features"), CLASSES, ids=lambda value: getattr(value, "name", str(value))
)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_errors_on_other_points_are_those_of_the_representatives(family, n_features, data):
    public, X, y = data.draw(worlds(n_features))
    dichotomies = family.dichotomies(public)
    np.testing.assert_array_equal(dichotomies.errors_on(X, y), tried(dichotomies, X, y))


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=9))
@settings(max_examples=40, deadline=None)
def test_thresholds_and_ends_are_the_same_all_at_once(numbers):
    column = SortedColumn.sort(np.array(numbers) + 0.0)
    m = len(column.values)
    assert column.cuts.tolist() == [column.cut(k) for k in range(m + 1)]
    assert upper_ends(column).tolist() == [interval_between(column, k, k).upper for k in range(m)]
    low, high = np.sort(np.random.default_rng(1).normal(size=(50, 2))).T
    assert places_between(low, high).tolist() == [
        place_between(a, b) for a, b in zip(low, high, strict=True)
    ]


def test_too_many_labellings_and_points_of_another_dimension_are_refused(monkeypatch):
    members = [Thresholds().erm([[0.0], [1.0]], labels) for labels in ([0, 1], [1, 1])]
    dichotomies = FiniteClass(members).dichotomies([[0.0], [1.0]])
    with pytest.raises(DataError, match="columns"):
        DecisionStumps(2).dichotomies(np.zeros((3, 2))).errors_on(np.zeros((3, 1)), [0, 1, 0])
    monkeypatch.setattr(base, "MOST_TRIED", 1)
    with pytest.raises(ParameterError, match=r"2 labellings .* at most 1 .* sample"):
        dichotomies.errors_on(np.zeros((3, 1)), [0, 1, 0])
    many = Intervals().dichotomies(np.arange(10_000.0))
    with pytest.raises(ParameterError, match="prefix_mistakes_on"):
        many.errors_on([0.0], [1])
