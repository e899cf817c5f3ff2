"""How good a model is on labelled points, against figures worked out by hand and by simulation."""

import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from secretballot.report.metrics import (
    metrics_of,
    metrics_of_student,
    paired_difference,
    wilson_interval,
)

TRUTH = np.array([0, 0, 0, 0, 0, 0, 1, 1, 1, 2])
ANSWERS = np.array([0, 0, 0, 0, 0, 1, 1, 1, 0, 0])


def test_shares_are_those_counted_by_hand() -> None:
    found = metrics_of(TRUTH, ANSWERS, ["a", "b", "c"])
    assert found.accuracy == pytest.approx(0.7)
    assert found.confusion == ((5, 1, 0), (1, 2, 0), (1, 0, 0))
    assert [one.recall for one in found.classes] == pytest.approx([5 / 6, 2 / 3, 0])
    assert [one.precision for one in found.classes[:2]] == pytest.approx([5 / 7, 2 / 3])
    assert found.classes[2].precision is None  # nobody answered it
    assert found.balanced_accuracy == pytest.approx((5 / 6 + 2 / 3) / 3)
    assert (found.majority, found.majority_accuracy) == ("a", 0.6)
    assert found.auc is None
    assert found.calibration is None


def test_area_and_calibration_of_two_classes() -> None:
    truth = np.array([0, 0, 1, 1])
    second = np.array([0.1, 0.6, 0.4, 0.9])
    answers = (second > 0.5).astype(int)
    found = metrics_of(truth, answers, ["no", "yes"], np.column_stack([1 - second, second]))
    assert found.auc == pytest.approx(0.75)  # of the four pairs three are in order
    assert found.calibration is not None
    assert found.calibration.said == pytest.approx((0.9 + 0.6 + 0.6 + 0.9) / 4)
    assert found.calibration.brier == pytest.approx((0.01 + 0.36 + 0.36 + 0.01) / 4)
    # 0.6 is said twice and never right, 0.9 twice and always right
    assert found.calibration.error == pytest.approx((2 * 0.6 + 2 * 0.1) / 4)


def test_wilson_interval_has_the_known_values() -> None:
    # Newcombe 1998, table I, method 3
    for found, low, high in (
        (wilson_interval(81, 263), 0.2553, 0.3662),
        (wilson_interval(0, 20), 0.0, 0.1611),
    ):
        assert (found.low, found.high) == pytest.approx((low, high), abs=5e-5)
    assert wilson_interval(7, 7).high == 1.0


def test_intervals_of_differences_hold_as_often_as_they_say() -> None:
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1], [150, 50])
    held, held_balanced = 0, 0
    for _ in range(1000):
        first = rng.random(200) < np.where(truth == 0, 0.9, 0.4)
        # right where the first is, mostly: the pairs are far from independent
        second = np.where(rng.random(200) < 0.8, first, rng.random(200) < 0.5)
        expected = np.where(truth == 0, 0.9 - (0.8 * 0.9 + 0.1), 0.4 - (0.8 * 0.4 + 0.1))
        plain = paired_difference(first, second).interval
        balanced = paired_difference(first, second, truth).interval
        held += plain.low <= expected.mean() <= plain.high
        held_balanced += balanced.low <= np.mean([0.08, -0.02]) <= balanced.high
    assert 930 <= held <= 985
    assert 930 <= held_balanced <= 995


def test_a_student_is_measured_by_declared_classes_it_may_not_all_know() -> None:
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    student = LogisticRegression().fit(X, ["a", "a", "c", "c"])
    found = metrics_of_student(student, X, np.array([0, 1, 2, 2]), ["a", "b", "c"])
    assert found.accuracy == 0.75
    assert found.auc is not None
    assert found.classes[1].recall == 0
    assert json.loads(json.dumps(found.to_json()))["confusion"] == [[1, 0, 0], [1, 0, 0], [0, 0, 2]]
