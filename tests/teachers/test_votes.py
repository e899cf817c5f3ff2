import stat

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from secretballot import read_votes, votes_of_counts, votes_of_teachers, write_votes
from secretballot.data import tally
from secretballot.exceptions import DataError, ParameterError

VOTES = np.array([[0, 1, 1, 1], [0, 0, 0, 1], [1, 1, 1, 1]])
COUNTS = np.array([[1, 3], [3, 1], [0, 4]])


def opened(counts):
    return counts._unseal()[0].tolist()


def test_votes_become_counts():
    counts = votes_of_teachers(VOTES, [0, 1])
    assert (counts.shape.n_queries, counts.shape.n_classes, counts.shape.n_teachers) == (3, 2, 4)
    assert counts.classes == (0, 1)
    assert opened(counts) == COUNTS.tolist()
    assert opened(votes_of_teachers(VOTES, [1, 0])) == COUNTS[:, ::-1].tolist()


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
    assert opened(votes_of_teachers(votes, classes)) == COUNTS.tolist()


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
    with pytest.raises(DataError, match="2 columns; there must be 3"):
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
