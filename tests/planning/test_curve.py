"""Learning curves, and the votes that are imagined from them."""

import numpy as np
import pytest

from secretballot.accounting import PrivacyBudget
from secretballot.planning.plan.model import Setting
from secretballot.planning.search.settings import Noise
from secretballot.planning.simulation.curve import CurveModel, LearningCurve, _arg_max_chances
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


def test_larger_shards_vote_better_and_agree_more() -> None:
    model = CurveModel(LearningCurve(4, 0.9), n_classes=4)
    tops = [
        model.votes(100, 100 * shard, MIDDLE).counts.max(axis=1).mean() for shard in (10, 100, 1000)
    ]
    assert tops == sorted(tops)


def test_students_learn_more_from_less_noise() -> None:
    model = CurveModel({100: 0.8}, n_classes=2)
    setting = Setting(200, "gaussian", "labels", 500)
    found = [
        model.simulate(
            setting, Noise(PrivacyBudget(epsilon, 1e-5), 2).terms(setting), 20_000, MIDDLE
        ).student
        for epsilon in (0.01, 0.1, 1.0, 10.0)
    ]
    assert found == sorted(found)
    assert found[0] < 0.6
    assert found[-1] <= vote_accuracy(model.votes(200, 20_000, MIDDLE))


@pytest.mark.parametrize("n_classes", [3, 12])
@pytest.mark.parametrize("scale", [0.1, 2.0, 50.0])
def test_the_chance_to_be_highest_is_that_of_many_draws(n_classes: int, scale: float) -> None:
    rng = np.random.default_rng(0)
    scores = scale * rng.standard_normal((20, n_classes))
    highest = np.argmax(scores[:, None, :] + rng.standard_normal((20, 20_000, n_classes)), axis=2)
    drawn = np.array([np.bincount(row, minlength=n_classes) for row in highest]) / 20_000
    chances = _arg_max_chances(scores)
    assert np.abs(chances - drawn).max() < 0.02  # above five standard errors
    assert np.allclose(chances.sum(axis=1), 1)
