"""Votes of teachers and of records, and scores on records: what is counted, what one record or unit
moves, and what is refused."""

import itertools
import stat

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from secretballot import read_votes, votes_of_counts, votes_of_teachers, write_votes
from secretballot._points import NearestPoints
from secretballot.core.types import Guarantee
from secretballot.data import tally
from secretballot.exceptions import DataError, ParameterError
from secretballot.learners.selection import _right_units
from secretballot.teachers.rows import unit_numbers
from secretballot.teachers.votes import record_votes_shape, votes_of_records

VOTES = np.array([[0, 1, 1, 1], [0, 0, 0, 1], [1, 1, 1, 1]])
COUNTS = np.array([[1, 3], [3, 1], [0, 4]])


def opened(counts):
    return counts._unseal()[0].tolist()


@pytest.mark.parametrize(
    ("votes", "classes"),
    [
        (VOTES.astype(np.uint16), [np.int64(0), np.int64(1)]),
        (VOTES.astype(float), [0, 1]),
        (VOTES, [0.0, 1.0]),
        (VOTES.astype(bool), [False, True]),
        (VOTES.tolist(), np.array([0, 1])),
        (np.where(VOTES, "yes", "no"), ["no", "yes"]),
        (pd.DataFrame(VOTES), [0, 1]),
        (VOTES * 300 - 200, [-200, 100]),
        (VOTES.astype(str), [0, 1]),
        (VOTES, ["0", "1"]),
    ],
)
def test_votes_of_every_type_are_counted(votes, classes):
    counts = votes_of_teachers(votes, classes)
    assert opened(counts) == COUNTS.tolist()
    assert (counts.shape.n_queries, counts.shape.n_classes, counts.shape.n_teachers) == (3, 2, 4)


@settings(max_examples=40, deadline=None)
@given(
    votes=hnp.arrays(
        np.int8, st.tuples(st.integers(1, 40), st.integers(1, 9)), elements=st.integers(0, 3)
    ),
    block_cells=st.integers(1, 100),
)
def test_blocks_do_not_change_the_counts(votes, block_cells):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tally, "_BLOCK_CELLS", block_cells)
        counts = votes_of_teachers(votes, [0, 1, 2, 3])
    assert opened(counts) == [np.bincount(row, minlength=4).tolist() for row in votes]
    assert counts.shape.n_teachers == votes.shape[1]


@pytest.mark.parametrize(
    ("votes", "classes", "match"),
    [
        (
            [[0, 1], [7, 1]],
            [0, 1],
            r"^votes: 1 rows with .* missing, or no declared class \(row 1, counted from 0\)\.$",
        ),
        ([[0, 1], [-1, 1]], [0, 1], "no declared class"),
        ([[0, 1], [0.5, 1]], [0, 1], "no declared class"),
        ([[np.nan, 1], [0, 1]], [0, 1], r"no declared class \(row 0"),
        ([["no", None]], ["no", "yes"], "no declared class"),
        ([["no", "perhaps"]], ["no", "yes"], "no declared class"),
        ([[0, 1j]], [0, 1], "no declared class"),
        ([0, 1], [0, 1], "1 dimensions"),
        (np.zeros((0, 3)), [0, 1], "no rows"),
        (np.zeros((3, 0)), [0, 1], "0 columns"),
        ([[0, 1], [0]], [0, 1], "ragged"),
        (np.ma.masked_equal([[0, 1]], 1), [0, 1], "masked"),
    ],
)
def test_inconsistent_votes_are_refused_by_name(votes, classes, match):
    with pytest.raises(DataError, match=match) as caught:
        votes_of_teachers(votes, classes)
    assert "7" not in str(caught.value)
    assert "perhaps" not in str(caught.value)


@pytest.mark.parametrize(
    "classes",
    [None, 5, "ab", [], [0], [0, 0], [0, True, 1], [0, "a"], [0, np.nan], [None, 1], [[0], [1]]],
)
def test_classes_must_be_distinct_numbers_or_text(classes):
    with pytest.raises(ParameterError, match="classes"):
        votes_of_teachers(VOTES, classes)


def test_counts_of_floats_are_whole_numbers_and_agree_with_what_was_stated():
    counts = votes_of_counts(COUNTS.astype(float), classes=["no", "yes"], n_teachers=4)
    assert opened(counts) == COUNTS.tolist()
    assert (counts.classes, counts.shape.n_teachers) == (("no", "yes"), 4)
    with pytest.raises(DataError, match="3 rows with a sum that is not the number of teachers"):
        votes_of_counts(COUNTS, n_teachers=5)
    with pytest.raises(DataError, match="2 columns; there must be 3, one for each class"):
        votes_of_counts(COUNTS, classes=[0, 1, 2])


@pytest.mark.parametrize(
    ("counts", "match"),
    [
        (
            [[1, 3], [3, 2]],
            r"^counts: 1 rows with a sum that is not the number of teachers"
            r" \(row 1, counted from 0\)\.$",
        ),
        ([[1, 3], [5, -1]], r"no whole number .* \(row 1"),
        ([[1, 3], [np.nan, 4]], r"no whole number .* \(row 1"),
        ([[np.nan, 3], [1, 3]], r"no whole number .* \(row 0"),
        ([[1, 3], [2**40, 4]], "no whole number"),
        ([[0, 0], [0, 0]], "at least one teacher"),
        ([["1", "x"]], "no whole number"),
        ([[1], [1]], None),
        (np.zeros((0, 2)), "no rows"),
        (np.zeros((2, 2, 2)), "3 dimensions"),
    ],
)
def test_inconsistent_counts_are_refused_by_name(counts, match):
    with pytest.raises(ParameterError if match is None else DataError, match=match):
        votes_of_counts(counts)


def test_write_goes_into_a_closed_folder_with_mode_0600(tmp_path):
    tmp_path.chmod(0o700)
    for _ in range(2):
        write_votes(votes_of_counts(COUNTS), tmp_path / "counts.npy")
    assert stat.S_IMODE((tmp_path / "counts.npy").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["counts.npy"]
    assert opened(read_votes(tmp_path / "counts.npy", "counts")) == COUNTS.tolist()


def test_write_refuses_an_open_folder(tmp_path):
    tmp_path.chmod(0o755)
    for name, error, words in (
        ("counts.npy", DataError, "open to others"),
        ("nowhere/counts.npy", DataError, "cannot be used"),
        ("counts.csv", ParameterError, r"end in \.npy"),
    ):
        with pytest.raises(error, match=words):
            write_votes(votes_of_counts(COUNTS), tmp_path / name)
    assert not list(tmp_path.iterdir())


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
    given = coordinates, index, covered
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
    records = coordinates, index, index < 3
    whole = votes_of_records([records], nearest, [0, 1, 2], RECORD)._unseal()[0]
    parts = [[one[part] for one in records] for part in (np.arange(30, 50), np.arange(30))]
    assert np.array_equal(votes_of_records(parts, nearest, [0, 1, 2], RECORD)._unseal()[0], whole)
    assert whole.sum() == 100
    assert votes_of_records([], nearest, [0, 1, 2], RECORD)._unseal()[0].sum() == 0


def test_points_are_taken_once_each():
    votes = votes_of_records(
        [(np.array([[2]]), np.array([1]), [True])], NearestPoints(POINTS, 2), [0, 1], RECORD
    )
    assert votes.take([3, 1])._unseal()[0].tolist() == [[0, 0], [0, 1]]
    assert votes.take([1]).shape.moved == votes.shape.moved == 2
    # a point that stands there twice would move twice
    for rows in ([1, 1], [4], [-1], [], [0.5], [True] * 4, 1, [[0]], ["0"], None):
        with pytest.raises(ParameterError):
            votes.take(rows)


class Says:
    """Answers a row, which is its own number, by a list."""

    def __init__(self, answers):
        self.answers = np.asarray(answers)

    def predict(self, X):
        return self.answers[X[:, 0]]


def score(right, units=None):
    rows, truth = np.arange(len(right))[:, None], np.ones(len(right), dtype=object)
    return _right_units(Says(right), rows, truth, units)


def test_a_unit_counts_once_if_more_than_half_of_its_records_are_right():
    assert (score([1, 1, 1, 0, 1]), score([1, 0, 0, 1, 0])) == (4, 2)
    # of the second unit one of two is not more than half
    units = [0, 0, 0, 1, 1]
    assert (score([1, 1, 1, 0, 1], units), score([1, 0, 0, 1, 0], units)) == (1, 0)
    # answers of another shape are wrong, and no failure
    assert (score([[1]] * 3), score([[1, 1]] * 3), score([[1, 1]] * 3, [0, 0, 1])) == (3, 0, 0)


def test_no_unit_moves_a_score_by_more_than_one_or_downwards():
    """All answers of a candidate on five records of three people, and each person leaving."""
    units = np.array([0, 0, 0, 1, 2])
    moved = set()
    for right in map(np.array, itertools.product((0, 1), repeat=5)):
        for gone in range(3):
            stays = units != gone
            moved.add(score(right, units) - score(right[stays], units[stays]))
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
        unit_numbers(units, 3)
    assert "2.5" not in str(caught.value)
    for wrong, words in (([1, 2], "2 ids for 3 records"), (np.ones((3, 1), int), "single column")):
        with pytest.raises(DataError, match=words):
            unit_numbers(wrong, 3)
