"""Digests of questions: equal rows, and only they, are the same question, in whatever form they
come."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from secretballot.learners.inputs import question_digests

FLOATS = st.floats(width=64, allow_nan=True, allow_infinity=True)


@given(st.lists(st.lists(FLOATS, min_size=3, max_size=3), min_size=1, max_size=6))
@settings(max_examples=40, deadline=None)
def test_rows_are_one_question_exactly_if_all_values_are_equal(rows):
    X = np.array(rows)
    digests = question_digests(X)
    assert all(len(digest) == 16 for digest in digests)
    for i, one in enumerate(X):
        for j, other in enumerate(X):
            assert (digests[i] == digests[j]) == np.array_equal(one, other, equal_nan=True)
    assert question_digests(sparse.csr_matrix(X)) == digests
    assert question_digests(sparse.coo_matrix(X)) == digests
    assert question_digests(np.asfortranarray(X)) == digests
    assert question_digests(np.repeat(X, 2, axis=1)[:, ::2]) == digests


@pytest.mark.parametrize("dtype", ["<f8", ">f8", np.float32, np.int64, np.int8, np.uint16])
def test_the_type_of_numbers_does_not_matter(dtype):
    X = np.array([[0, 1, 2], [3, 5, 100]])
    assert question_digests(X.astype(dtype)) == question_digests(X.astype(float))


def test_zeros_and_gaps_have_one_form():
    other_nan = np.array([0x7FF8000000000123], dtype=np.uint64).view(np.float64)[0]
    one, two, three, four = question_digests(
        np.array([[0.0, np.nan], [-0.0, -np.nan], [0.0, other_nan], [1.0, 0.0]])
    )
    assert one == two == three != four
    assert question_digests(
        sparse.csr_matrix(([-0.0, 1.0], ([0, 0], [0, 1])), (1, 2))
    ) == question_digests(np.array([[0.0, 1.0]]))


def test_long_sparse_tables_are_read_in_blocks():
    X = sparse.random(9000, 3, density=0.3, format="csr", random_state=np.random.default_rng(0))
    assert question_digests(X) == question_digests(X.toarray())


def test_frames_compare_by_value():
    frame = pd.DataFrame({"age": [1, 2, 1], "city": ["a", None, "a"], "size": [0.0, 1.5, -0.0]})
    one, two, three = question_digests(frame)
    assert one == three != two
    assert question_digests(frame.assign(age=frame.age.astype(float))) == [one, two, three]
    assert question_digests(frame.assign(city=frame.city.astype("category"))) == [one, two, three]
    assert question_digests(frame.set_index(np.array([7, 8, 9]))) == [one, two, three]
    assert question_digests(frame.assign(city=["b", None, "a"]))[0] != one


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (["a", "b"], ["ab", ""]),
        (["a\0str:1:b", "c"], ["a", "b\0str:1:c"]),
        (["", "a"], ["a", ""]),
        (["1", "a"], [1, "a"]),
        (["nan", "a"], [None, "a"]),
        (["None", "a"], [None, "a"]),
        (["missing", "a"], [None, "a"]),
        ([2**53, "a"], [2**53 + 1, "a"]),
        ([0.1, "a"], [0.2, "a"]),
        ([float("inf"), "a"], [float("-inf"), "a"]),
    ],
)
def test_different_rows_of_text_are_different_questions(one, other):
    table = np.empty((2, 2), dtype=object)
    table[0], table[1] = one, other
    first, second = question_digests(table)
    assert first != second


def test_equal_cells_are_one_question_whatever_their_type():
    cells = (1, 1.0), (True, 1), (0.0, -0.0), (np.float32(0.5), 0.5), (np.int8(3), 3)
    for one, other in (*cells, (float("nan"), None), (pd.NaT, pd.NA)):
        table = np.empty((2, 2), dtype=object)
        table[0], table[1] = [one, "a"], [other, "a"]
        assert len(set(question_digests(table))) == 1
