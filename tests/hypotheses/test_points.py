"""What classes of hypotheses take in."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from secretballot.exceptions import DataError, ParameterError
from secretballot.hypotheses import Thresholds, _check_labelled, check_points

SPACE = Thresholds().version_space()


def test_points_come_in_many_forms_and_out_in_one():
    wanted = [[0.0, 1.0], [2.0, 3.0]]
    for X in (
        wanted,
        np.array(wanted, dtype=np.float32),
        pd.DataFrame(wanted),
        np.array(wanted, dtype=object),
    ):
        points = check_points(X, 2)
        assert points.dtype == np.float64
        assert points.tolist() == wanted
    assert check_points([True, False], 1).tolist() == [[1.0], [0.0]]
    assert math.copysign(1.0, check_points([-0.0], 1)[0, 0]) == 1.0
    assert check_points(wanted, None).shape == (2, 2)


def test_labels_and_weights():
    labels, weights = _check_labelled([True, False], None, 2)
    assert (labels.tolist(), weights.tolist(), weights.dtype) == ([1, 0], [1, 1], np.int64)
    labels, weights = _check_labelled(np.array([1.0, 0.0]), [2, 0.5], 2)
    assert (labels.dtype, weights.tolist()) == (np.int64, [2.0, 0.5])


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: check_points(sparse.eye(2), 2), DataError, "dense"),
        (lambda: check_points(["a", "b"], 1), DataError, "numbers"),
        (lambda: check_points([1 + 2j], 1), DataError, "real"),
        (lambda: check_points([np.datetime64("2026-01-01")], 1), DataError, "numbers"),
        (lambda: check_points(np.zeros((0, 2)), 2), DataError, "a row for each"),
        (lambda: check_points([[0.0, 1.0], [2.0, math.nan]], 2), DataError, "row 1, column 1"),
        (lambda: _check_labelled([[1], [0]], None, 2), DataError, "one label"),
        (lambda: _check_labelled(["no", "yes"], None, 2), DataError, "numbers"),
        (lambda: _check_labelled([0, 2], None, 2), DataError, "one label, 0 or 1, for each"),
        (lambda: _check_labelled([0, 1, 1], [1e308] * 3, 3), DataError, "finite sum"),
        (lambda: _check_labelled([0, 1], [1.0, math.nan], 2), DataError, "at least 0"),
        (lambda: _check_labelled([0, 1], [1.0], 2), DataError, "each of the 2 points"),
        (lambda: SPACE.restrict([1.0], [1], math.nan), ParameterError, "slack"),
    ],
)
def test_wrong_input_is_refused_in_one_sentence(call, error, words):
    with pytest.raises(error, match=words):
        call()
