"""Estimates over a whole pool: one teacher changes its votes on all points, and all such changes
are enumerated."""

import itertools

import numpy as np
import pytest

from exact_games.worlds import ScriptedNoise, neighbouring_counts
from secretballot.core.exponential import least_quotient
from secretballot.core.mechanisms import StabilityQuantile, State, stability
from secretballot.core.types import VoteShape
from secretballot.teachers.votes import guarantee_of


def exact_quantile(counts, fraction=0.4):
    """Return what the mechanism draws without noise."""
    shape = VoteShape(
        guarantee=guarantee_of("record", "add-remove"),
        n_queries=len(counts),
        n_classes=counts.shape[1],
        n_teachers=int(counts[0].sum()),
        moved=len(counts),
    )
    mechanism = StabilityQuantile(epsilon=0.9, fraction=fraction)
    return int(mechanism.draw(shape, (counts,), ScriptedNoise([0]), State())[0][0, 0])


@pytest.mark.parametrize(
    ("n_teachers", "n_classes", "n_points"), [(5, 2, 3), (8, 2, 4), (6, 3, 3), (7, 3, 4)]
)
def test_every_order_statistic_of_the_stability_moves_by_one(n_teachers, n_classes, n_points):
    here, there = (stability(side).tolist() for side in neighbouring_counts(n_teachers, n_classes))
    pairs = sorted({*zip(here, there, strict=True), *zip(here, here, strict=True)})
    # the other teachers' votes at one point do not restrict those at another, so every combination
    # of moves point by point occurs
    both = np.sort(np.array(list(itertools.product(pairs, repeat=n_points))), axis=1)
    assert np.abs(both[:, :, 0] - both[:, :, 1]).max(axis=0).tolist() == [1] * n_points


@pytest.mark.parametrize(("n_teachers", "n_classes", "n_points"), [(5, 2, 3), (4, 3, 2)])
def test_the_released_laws_lose_epsilon_and_no_more_on_all_neighbouring_tables(
    n_teachers, n_classes, n_points
):
    counts, neighbours = neighbouring_counts(n_teachers, n_classes)
    moves = np.stack(
        [np.concatenate([counts, counts]), np.concatenate([neighbours, counts])], axis=1
    )
    moves = np.unique(moves, axis=0)
    outcomes = np.arange(-6, 12)
    chosen = [list(row) for row in itertools.product(range(len(moves)), repeat=n_points)]
    losses = [
        np.abs(
            np.abs(outcomes - exact_quantile(there)) - np.abs(outcomes - exact_quantile(here))
        ).max()
        / least_quotient(1, 0.9)
        for here, there in ((moves[row, 0], moves[row, 1]) for row in chosen)
    ]
    assert max(losses) == pytest.approx(0.9, rel=1e-9)
    assert max(losses) <= 0.9 * (1 + 1e-9)


def test_the_promised_share_of_points_lies_at_the_quantile_or_beyond():
    rng = np.random.default_rng(11)
    for n_points in (1, 2, 7, 10, 30):
        counts = rng.multinomial(40, [0.6, 0.3, 0.1], size=n_points)
        distances = np.sort(stability(counts))
        for fraction in (0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.999):
            quantile = exact_quantile(counts, fraction)
            assert (distances >= quantile).mean() >= 1 - fraction
            # and no larger distance has that many points
            assert (distances > quantile).sum() < n_points - np.floor(fraction * n_points - 1e-9)
