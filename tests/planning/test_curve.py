"""Learning curves, and the votes that are imagined from them."""

import numpy as np
import pytest

from secretballot.planning.simulation.curve import CurveModel, LearningCurve
from secretballot.planning.simulation.forecast import vote_accuracy

MIDDLE = 0  # the fold without deviation


def single_accuracy(model: CurveModel, n_teachers: int, n_records: int) -> float:
    sample = model.votes(n_teachers, n_records, MIDDLE)
    return float(sample.counts[np.arange(len(sample.truth)), sample.truth].mean() / n_teachers)


@pytest.mark.parametrize("n_classes", [2, 10])
def test_a_curve_begins_with_a_guess_and_rises_to_its_limit(n_classes: int) -> None:
    curve = LearningCurve(n_classes, 0.95, 0.4)
    assert curve.accuracy(1) == curve.accuracy(0.1) == pytest.approx(1 / n_classes)
    values = [curve.accuracy(10**k) for k in range(9)]
    assert values == sorted(values)
    assert values[-1] == pytest.approx(0.95, abs=1e-3)


def test_measured_points_are_met() -> None:
    true = LearningCurve(3, 0.9, 0.35)
    points = {size: true.accuracy(size) for size in (10, 30, 100, 400, 2000)}
    found = LearningCurve.fit(points, 3)
    assert found.limit == pytest.approx(0.9, abs=0.01)
    for size in (20, 200, 5000):
        assert found.accuracy(size) == pytest.approx(true.accuracy(size), abs=0.005)


@pytest.mark.parametrize("n_classes", [2, 3, 10])
@pytest.mark.parametrize("shard", [10, 100, 1000])
def test_teachers_are_as_accurate_as_the_curve_says(n_classes: int, shard: int) -> None:
    curve = LearningCurve(n_classes, 0.9)
    model = CurveModel(curve, n_classes=n_classes)
    assert single_accuracy(model, 100, 100 * shard) == pytest.approx(
        curve.accuracy(shard), abs=0.025
    )


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_a_vote_is_better_than_a_teacher_and_no_better_than_the_limit(n_classes: int) -> None:
    curve = LearningCurve(n_classes, 0.9)
    model = CurveModel(curve, n_classes=n_classes)
    for shard in (10, 50, 500):
        vote = vote_accuracy(model.votes(300, 300 * shard, MIDDLE))
        assert curve.accuracy(shard) < vote < 0.9 + 0.025
        few = vote_accuracy(model.votes(5, 5 * shard, MIDDLE))
        assert curve.accuracy(shard) - 0.02 < few <= vote + 0.01
