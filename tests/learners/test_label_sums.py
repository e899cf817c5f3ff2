"""A sum over private labels with public features: its price in a world that can be listed."""

import itertools

import numpy as np
import pytest

from made_events import sums_event
from secretballot.accounting import PrivacyBudget, delta_upper
from secretballot.bases.integer_model import IntegerModel, with_constant
from secretballot.core.private import RecordSums
from secretballot.learners.moment_stages import MomentStages, MomentTarget
from secretballot.learners.moment_vectors import Residuals, label_sums
from tiny_sums import mass

BOUND, UNIT, EPSILON, SIGMA = 2, 1, 1.0, 4.5


def total_of(points, labels):
    n_classes = 3 if points.shape[1] == 1 else 2
    model = IntegerModel.of(np.zeros((points.shape[1], 1 if n_classes == 2 else n_classes)))
    return label_sums(points, np.array(labels), Residuals(model, UNIT, BOUND))._unseal()[0]


def true_delta(one, other, sigma):
    """Return delta of a noisy sum, by every outcome."""
    reach = int(10 * sigma)
    single, p, q = mass(sigma, reach), np.ones(1), np.ones(1)
    for first, second in zip(one, other, strict=True):
        p = np.outer(p, np.roll(single, int(first))).ravel()
        q = np.outer(q, np.roll(single, int(second))).ravel()
    return float(np.maximum(p - np.exp(EPSILON) * q, 0).sum())


WORLDS = {
    # two coordinates and one column; one coordinate and three columns
    "two classes": (np.array([[3, 1], [-2, 5]]), 2),
    "three classes": (np.array([[4], [-9]]), 3),
}


@pytest.mark.parametrize("world", WORLDS)
def test_all_neighbours_of_a_tiny_world_stay_within_the_promise(world):
    points, n_classes = WORLDS[world]
    promise = delta_upper([sums_event(SIGMA, 4 * BOUND**2, 3, 1)], EPSILON)
    worst, longest = 0.0, 0
    for labels in itertools.product(range(n_classes), repeat=2):
        for place, instead in itertools.product(range(2), range(n_classes)):
            other = tuple(instead if k == place else label for k, label in enumerate(labels))
            sums = [total_of(points, one) for one in (labels, other)]
            longest = max(longest, int(np.square(sums[0] - sums[1]).sum()))
            worst = max(worst, true_delta(*sums, SIGMA))
    assert 0 < longest <= 4 * BOUND**2
    assert promise / 30 < worst <= promise


def test_what_is_longer_than_is_stated_is_left_out():
    points, _ = WORLDS["three classes"]
    for one in np.clip(points, -4, 4)[:, None]:
        for stated, is_in in ((2 * int(np.square(one).sum()), True), (4 * BOUND**2, False)):
            blocks = [(one, np.array([0]), np.zeros((1, 3), dtype=int))]
            found = RecordSums.of_labels(blocks, UNIT, stated, coordinates=3)._unseal()[0]
            assert found.any() == is_in


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_a_replaced_label_moves_a_sum_by_hardly_less_than_is_paid_for(n_classes):
    rng = np.random.default_rng(0)
    points = with_constant(rng.integers(-9000, 9000, (60, 4)))
    points[:5, :-1] *= 9  # some are much longer than the rest
    labels = rng.integers(0, n_classes, 60)
    target = MomentTarget.of_classes(range(n_classes))
    stages = MomentStages.of_labels(points, target, PrivacyBudget(1.0, 1e-5))
    stage = stages.asked_after([])

    def total(told):
        return label_sums(points, told, stage)._unseal()[0]

    start, longest = total(labels), 0
    for place, instead in itertools.product(range(60), range(n_classes)):
        changed = labels.copy()
        changed[place] = instead
        moved = total(changed) - start
        longest = max(longest, int(moved @ moved))
    most = stages.shape.squared_sensitivity
    assert 0.99 * most < longest <= most
