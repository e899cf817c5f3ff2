"""Votes of records, and scores on records: what one record, or one unit, moves."""

import itertools

import numpy as np
import pandas as pd
import pytest

from secretballot._points import NearestPoints
from secretballot.core.types import Guarantee
from secretballot.exceptions import DataError, ParameterError
from secretballot.teachers.records import (
    record_votes_shape,
    right_units,
    unit_numbers,
    votes_of_records,
)

POINTS = np.array([[0], [2], [2], [7]])
RECORD = Guarantee(unit="record", relation="add-remove")
REPLACED = Guarantee(unit="record", relation="replace-one")
PLACES = [(place, label) for place in (-1, 1, 2, 6) for label in (0, 1, 2)]


def table(records, k, apart):
    """Return the counts of some (coordinate, class, covered) triples; below them the cells of
    uncovered records, if these are told apart."""
    coordinates = np.array([[place] for place, _, _ in records], dtype=np.int64).reshape(-1, 1)
    index = np.array([label for _, label, _ in records], dtype=np.int64)
    covered = np.array([told for _, _, told in records], dtype=np.bool_)
    given = (coordinates, index, covered) if apart else (coordinates, index)
    votes = votes_of_records(
        [given], NearestPoints(POINTS, k), [0, 1, 2], RECORD, counts_uncovered=apart
    )
    assert votes.take(np.arange(4)).shape == votes.shape
    return votes._unseal()[0]


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("k", [1, 4])
def test_a_record_that_comes_moves_k_counts_by_one_and_a_replaced_one_at_most_2_k(k, apart):
    """Over all pairs of worlds of two and three records. An uncovered one moves as many cells, and
    no public point."""
    records = [(place, label, True) for place, label in PLACES]
    if apart:
        records = [(*record[:2], told) for record in records[::3] for told in (True, False)]
    farthest = 0
    for others in itertools.combinations_with_replacement(records, 2):
        without = table(others, k, apart)
        assert without.shape == (4 + (-(-k // 3) if apart else 0), 3)
        tables = [table([*others, record], k, apart) for record in records]
        for record, one in zip(records, tables, strict=True):
            came = one - without
            assert sorted(came.ravel().tolist(), reverse=True)[:k] == [1] * k
            assert np.abs(came).sum() == k == record_votes_shape(4, 2, k, RECORD).moved
            assert (came[:4].sum(axis=1) <= 1).all()
            assert came[:4].any() == record[2]
            for other in tables:
                moved = np.abs(other - one)
                # never one count by two: a record has one vote at a point
                assert moved.max(initial=0) <= 1
                farthest = max(farthest, int(moved.sum()))
    assert farthest == 2 * k == record_votes_shape(4, 2, k, REPLACED).moved


def test_blocks_and_their_order_do_not_matter():
    rng = np.random.default_rng(0)
    coordinates, index = rng.integers(-3, 9, (50, 1)), rng.integers(0, 3, 50)
    nearest = NearestPoints(POINTS, 2)
    whole = votes_of_records([(coordinates, index)], nearest, [0, 1, 2], RECORD)._unseal()[0]
    parts = [(coordinates[part], index[part]) for part in (np.arange(30, 50), np.arange(30))]
    assert np.array_equal(votes_of_records(parts, nearest, [0, 1, 2], RECORD)._unseal()[0], whole)
    assert whole.sum() == 100
    assert votes_of_records([], nearest, [0, 1, 2], RECORD)._unseal()[0].sum() == 0


def test_points_are_taken_once_each():
    votes = votes_of_records(
        [(np.array([[2]]), np.array([1]))], NearestPoints(POINTS, 2), [0, 1], RECORD
    )
    assert votes.take([3, 1])._unseal()[0].tolist() == [[0, 0], [0, 1]]
    assert votes.take([1]).shape.moved == votes.shape.moved == 2
    # a point that stands there twice would move twice
    for rows in ([1, 1], [4], [-1], [], [0.5], [True] * 4, 1, [[0]], ["0"], None):
        with pytest.raises(ParameterError):
            votes.take(rows)


def test_a_unit_counts_once_if_more_than_half_of_its_records_are_right():
    right = np.array([[1, 1], [1, 0], [1, 0], [0, 1], [1, 0]], dtype=bool)
    assert right_units(right, None).tolist() == [4, 2]
    # b: one of two is not more than half
    assert right_units(right, ["a", "a", "a", "b", "b"]).tolist() == [1, 0]


def test_no_unit_moves_a_score_by_more_than_one_or_downwards():
    """All answers of two candidates on five records of three people, and each person leaving."""
    units = np.array([0, 0, 0, 1, 2])
    moved = set()
    for bits in itertools.product((False, True), repeat=10):
        right = np.array(bits).reshape(5, 2)
        for gone in range(3):
            stays = units != gone
            less = right_units(right[stays], units[stays])
            moved |= set((right_units(right, units) - less).tolist())
    assert moved == {0, 1}


@pytest.mark.parametrize(
    "units",
    [
        [7, "7", 7.0, " 7 ", "8"],
        np.array(["7", "7", "07", "7.0", "8"]),
        pd.Series(["7", "7", "+7", "7", "8"]),
        np.array([7.0, 7.0, 7.0, 7.0, 8.0]),
        pd.Series([7, "7", 7, 7, 8], dtype=object),
    ],
)
def test_a_unit_spelt_in_several_ways_is_one(units):
    assert unit_numbers(units, 5).tolist() == [0, 0, 0, 0, 1]


@pytest.mark.parametrize(
    "units", [[1, None, 3], [1.0, np.nan, 3.0], ["a", "", "b"], [1, 2.5, 3], [True, False, True]]
)
def test_ids_that_are_none_are_refused_by_row_and_without_their_values(units):
    with pytest.raises(DataError) as caught:
        right_units(np.ones((3, 2), dtype=bool), units)
    assert "2.5" not in str(caught.value)
    for wrong, words in (([1, 2], "2 ids for 3 records"), (np.ones((3, 1), int), "single column")):
        with pytest.raises(DataError, match=words):
            right_units(np.ones((3, 2), dtype=bool), wrong)
