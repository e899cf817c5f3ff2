"""Nearest public points: what integers say, record by record, whatever stands around them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secretballot import _points
from secretballot._points import NearestPoints
from secretballot.exceptions import ParameterError


def by_hand(points, record, k, largest=None):
    """Return the nearest points by integers of any length, ties by their order."""

    def bounded(row):
        return [int(v) if largest is None else max(-largest, min(largest, int(v))) for v in row]

    def distance(place):
        pairs = zip(bounded(points[place]), bounded(record), strict=True)
        return sum((a - b) ** 2 for a, b in pairs)

    return sorted(sorted(range(len(points)), key=lambda place: (distance(place), place))[:k])


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_it_finds_what_integers_say_with_ties_in_public_order(data):
    d, m = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 12))
    cells = st.integers(-3, 3)  # few values, so that many distances are equal
    points = np.array(
        data.draw(st.lists(st.lists(cells, min_size=d, max_size=d), min_size=m, max_size=m))
    )
    records = np.array(
        data.draw(st.lists(st.lists(cells, min_size=d, max_size=d), min_size=1, max_size=9))
    )
    k = data.draw(st.integers(1, m))
    found = NearestPoints(points, k).of(records)
    assert found.tolist() == [by_hand(points, record, k) for record in records]


def test_coordinates_as_large_as_are_kept_are_still_exact():
    rng = np.random.default_rng(0)
    largest = 2**20
    points = rng.integers(-largest, largest, (40, 500))
    # twins that differ by the smallest step there is, at distances near 2^50
    points[20:] = points[:20]
    points[20:, 0] += 1
    records = rng.integers(-largest, largest, (30, 500))
    nearest = NearestPoints(points, 3)
    assert nearest.of(records).tolist() == [by_hand(points, record, 3) for record in records]


def test_a_coordinate_beyond_the_bound_counts_as_the_bound():
    points = np.array([[0, 0], [2**40, 0], [2**24, 3]])
    nearest = NearestPoints(points, 1)
    largest = nearest._largest
    records = np.array([[2**60, 0], [-(2**60), 5], [2**24, 2]])
    assert nearest.of(records).tolist() == [
        by_hand(points, record, 1, largest) for record in records
    ]


@pytest.mark.parametrize("size", [1, 7, 100, 4_000_000])
def test_other_records_and_the_size_of_blocks_change_no_record_s_points(size, monkeypatch):
    monkeypatch.setattr(_points, "_BLOCK_CELLS", size)
    rng = np.random.default_rng(1)
    points, records = (
        rng.integers(-(2**14), 2**14, (50, 37)),
        rng.integers(-(2**14), 2**14, (64, 37)),
    )
    nearest = NearestPoints(points, 5)
    alone = [nearest.of(record[None])[0].tolist() for record in records]
    assert nearest.of(records).tolist() == alone
    order = rng.permutation(64)
    assert nearest.of(records[order]).tolist() == [alone[place] for place in order]
    odd = records.copy()
    odd[0] = 2**62
    assert nearest.of(odd)[1:].tolist() == alone[1:]


def test_a_point_may_be_left_out_for_each_record():
    points = np.array([[0], [1], [2], [3]])
    nearest = NearestPoints(points, 1)
    assert nearest.of(points, without=np.arange(4)).tolist() == [[1], [0], [1], [2]]
    twins = NearestPoints(np.zeros((3, 1), dtype=int), 2)
    assert twins.of(np.zeros((3, 1), dtype=int), without=np.arange(3)).tolist() == [
        [1, 2],
        [0, 2],
        [0, 1],
    ]


def test_what_does_not_fit_is_refused_without_a_value():
    points = np.array([[0, 4711], [1, 2]])
    with pytest.raises(ParameterError, match="3 nearest points are wanted, and there are 2"):
        NearestPoints(points, 3)
    assert NearestPoints(points, 1).of(np.empty((0, 2), dtype=int)).shape == (0, 1)
