"""What a stage asks, and what its sums come to, follows from released sums and public values."""

import numpy as np
import pytest

import secretballot as sb
from secretballot.bases import TableBasis
from secretballot.bases.integer_model import with_constant
from secretballot.core.types import Guarantee
from secretballot.learners.moments.stages import MomentStages, MomentTarget


def stages_of(
    expected: float, *, n_classes: int = 2, n_stages: int = 3
) -> tuple[MomentStages, int]:
    rng = np.random.default_rng(0)
    pool = with_constant(TableBasis().fit(points := rng.normal(size=(300, 3))).integers(points))
    stages = MomentStages.of_records(
        pool,
        MomentTarget.of_classes(range(n_classes)),
        sb.PrivacyBudget(2.0, 1e-5),
        Guarantee(unit="record", relation="add-remove"),
        n_stages=n_stages,
        n_records=None,
        expected_uncovered=expected,
    )
    return stages, stages.shape.coordinates


def sums_of(stages: MomentStages, width: int, n: int, uncovered: float, seed: int) -> np.ndarray:
    total = np.random.default_rng(seed).integers(-(10**9), 10**9, width)
    total[-2:] = stages.mark_weight * n, stages.mark_weight * int(n * uncovered)
    return total


def test_the_event_covers_every_stage_and_both_marks() -> None:
    stages, width = stages_of(0.0)
    asked = stages.asked_after([])
    assert asked.n_coordinates == width == stages.pool.shape[1] + 2
    rest = asked.bound**2 - 2 * asked.mark_weight**2
    # what is left for the moments is the bound that was meant for them
    assert rest > 0
    assert asked.mark_weight == pytest.approx(0.1 * np.sqrt(rest), rel=0.01)
    later = stages.asked_after([sums_of(stages, width, 5000, 0.0, 1)])
    assert (later.bound, later.n_coordinates) == (asked.bound, asked.n_coordinates)


def test_each_stage_asks_for_what_the_model_before_it_misses() -> None:
    stages, width = stages_of(0.0)
    sums = [sums_of(stages, width, 5000, 0.0, seed) for seed in range(3)]
    for n in range(3):
        used = stages.asked_after(sums[:n]).model.weights
        assert (used == stages.after(sums[:n]).fit.model.weights).all()
    # later sums change nothing of what earlier stages came to
    first = stages.after(sums[:1]).fit.weights
    stages.after(sums)
    assert (stages.after(sums[:1]).fit.weights == first).all()


def test_stages_begin_anew_once_more_is_uncovered_than_chance_explains() -> None:
    stages, width = stages_of(0.3)
    counts = sums_of(stages, width, 50_000, 0.31, 4)
    usual, poor = (sums_of(stages, width, 50_000, share, 1) for share in (0.31, 0.8))
    for before in ([], [counts], [counts, usual]):
        assert not stages.asked_after(before).without_marked
    # the counts may tell it before the first stage
    assert stages.asked_after([poor]).without_marked
    asked = stages.asked_after([counts, poor])
    assert asked.without_marked
    assert not asked.model.weights[:-1].any()  # what the first stage learnt is put aside
    later = sums_of(stages, width, 50_000, 0.8, 2)
    alone = stages.after([counts, poor, later]).fit.weights
    assert not np.allclose(alone, 0)
    other = sums_of(stages, width, 50_000, 0.8, 3)
    # but for the marks, the first stage has no say any more
    assert np.allclose(stages.after([counts, other, later]).fit.weights, alone, rtol=1e-6)
