"""Private scores: a unit counts once, whoever's records they are."""

import itertools

import numpy as np
import pandas as pd
import pytest

import secretballot as sb
from secretballot.teachers.records import right_units, unit_numbers


def _scores(right, units=None):
    return right_units(np.asarray(right, dtype=bool), units)


def test_records_count_where_there_are_no_ids():
    assert _scores([[True, False], [True, True], [False, False]]).tolist() == [2, 1]


def test_a_unit_counts_once_if_more_than_half_of_its_records_are_right():
    right = [[1, 1], [1, 0], [1, 0], [0, 1], [1, 0]]
    # b: one of two is not more than half
    assert _scores(right, ["a", "a", "a", "b", "b"]).tolist() == [1, 0]


def test_no_unit_moves_a_score_by_more_than_one_or_downwards():
    """All answers of two candidates on five records of three people, and each person leaving."""
    units = np.array([0, 0, 0, 1, 2])
    moved = set()
    for bits in itertools.product((False, True), repeat=10):
        right = np.array(bits).reshape(5, 2)
        for gone in range(3):
            stays = units != gone
            moved |= set((_scores(right, units) - _scores(right[stays], units[stays])).tolist())
    assert moved == {0, 1}


def test_counting_records_instead_of_units_is_caught():
    units, right = np.array([0, 0, 0, 1]), np.ones((4, 2), dtype=bool)
    stays = units != 0
    assert (_scores(right) - _scores(right[stays])).max() == 3
    assert (_scores(right, units) - _scores(right[stays], units[stays])).max() == 1


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
    with pytest.raises(sb.DataError) as caught:
        right_units(np.ones((3, 2), dtype=bool), units)
    assert "2.5" not in str(caught.value)


def test_what_does_not_fit_is_refused():
    right = np.ones((3, 2), dtype=bool)
    with pytest.raises(sb.DataError, match="2 ids for 3 records"):
        right_units(right, [1, 2])
    with pytest.raises(sb.DataError, match="single column"):
        right_units(right, np.ones((3, 1), dtype=int))
    for bad in (right.astype(int), right[:, 0], right[:, :0]):
        with pytest.raises(sb.DataError, match="give true or false"):
            right_units(bad)
