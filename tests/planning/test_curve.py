"""Learning curves, and the votes that are imagined from them."""

import numpy as np
import pytest

from secretballot.accounting import PrivacyBudget
from secretballot.exceptions import ParameterError
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


def test_one_point_is_met_with_the_usual_slope() -> None:
    found = LearningCurve.fit({240: 0.839}, 10)
    assert found.accuracy(240) == pytest.approx(0.839, abs=1e-4)
    assert found.slope == pytest.approx(0.5, abs=1e-3)


@pytest.mark.parametrize(
    ("limit", "slope"), [(0.5, 0.5), (1.1, 0.5), (0.9, 0.0), (0.9, float("nan")), (0.9, 6.0)]
)
def test_curves_that_cannot_be_are_refused(limit: float, slope: float) -> None:
    with pytest.raises(ParameterError):
        LearningCurve(2, limit, slope)


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


def test_folds_of_a_guess_differ_more_than_those_of_a_measured_curve() -> None:
    points = {20: 0.7, 100: 0.8, 500: 0.84}
    guess, point, curve = (CurveModel(known, n_classes=2) for known in (None, {100: 0.8}, points))
    spreads = [
        np.std([vote_accuracy(m.votes(200, 20_000, f)) for f in range(m.n_folds)])
        for m in (guess, point, curve)
    ]
    assert spreads[0] > spreads[1] > spreads[2]


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


def test_the_same_seed_gives_the_same_votes() -> None:
    votes = [
        CurveModel(None, n_classes=3, seed=seed).votes(20, 900, 1).counts for seed in (4, 4, 5)
    ]
    assert (votes[0] == votes[1]).all()
    assert not (votes[0] == votes[2]).all()


def test_a_curve_for_other_classes_is_refused() -> None:
    with pytest.raises(ParameterError, match="10 classes"):
        CurveModel(LearningCurve(10, 0.9), n_classes=2)
    for wrong in (0.0, 1.0, float("nan"), "much"):
        with pytest.raises(ParameterError, match="constant_accuracy"):
            CurveModel(None, n_classes=2, constant_accuracy=wrong)  # type: ignore[arg-type]


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


def test_sizes_that_nobody_has_measured_are_refused() -> None:
    for size in (10**13, 10**26, 10**400):
        with pytest.raises(ParameterError, match=r"at most 1e\+12 records"):
            CurveModel({size: 0.9}, n_classes=2)
