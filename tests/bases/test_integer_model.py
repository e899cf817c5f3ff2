"""Predictions in integers are those of the softmax, and a row's do not depend on other rows."""

import numpy as np
import pytest
from scipy.special import softmax

from secretballot.bases.integer_model import (
    CONSTANT,
    LARGEST_COORDINATE,
    LARGEST_WEIGHT,
    PROBABILITY_UNIT,
    WEIGHT_UNIT,
    IntegerModel,
    with_constant,
)
from secretballot.bases.rotation import UNIT


def model_and_points(n_classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    weights = rng.normal(0, 2, (30, 1 if n_classes == 2 else n_classes))
    return weights, rng.integers(-2 * UNIT, 2 * UNIT, (200, 30))


@pytest.mark.parametrize("n_classes", [2, 3, 26])
def test_probabilities_are_those_of_the_softmax(n_classes: int) -> None:
    weights, points = model_and_points(n_classes)
    logits = points / UNIT @ weights
    logits = np.hstack([np.zeros((200, 1)), logits]) if n_classes == 2 else logits
    found = IntegerModel.of(weights).probabilities(points) / PROBABILITY_UNIT
    assert found.shape == (200, n_classes)
    assert np.abs(found - softmax(logits, axis=1)).max() < 1.5e-3
    assert np.abs(found.sum(axis=1) - 1).max() < 1e-4
    assert (IntegerModel.of(weights).labels(points) == logits.argmax(axis=1)).mean() > 0.99


@pytest.mark.parametrize("n_classes", [2, 5])
def test_a_row_is_predicted_alike_whatever_stands_around_it(n_classes: int) -> None:
    weights, points = model_and_points(n_classes)
    model = IntegerModel.of(weights)
    whole = model.probabilities(points)
    for size in (1, 3, 17, 64, 199):
        parts = [model.probabilities(points[at : at + size]) for at in range(0, 200, size)]
        assert (np.concatenate(parts) == whole).all()


def test_sums_are_exact_at_the_ends_of_their_ranges() -> None:
    wide = np.full((1, 1024), LARGEST_COORDINATE)
    weights = np.full((1024, 1), LARGEST_WEIGHT)
    weights[0] -= 1
    # the exact sum is below 2^53, so that one unit less is seen
    exact = LARGEST_COORDINATE * (1024 * LARGEST_WEIGHT - 1)
    assert exact < 2**53
    assert int((wide.astype(float) @ weights.astype(float))[0, 0]) == exact
    assert IntegerModel(weights).probabilities(wide).tolist() == [[0, PROBABILITY_UNIT]]


def test_weights_are_rounded_and_cut() -> None:
    found = IntegerModel.of(np.array([[0.5], [1e9], [-1e9]])).weights
    assert found.ravel().tolist() == [WEIGHT_UNIT // 2, LARGEST_WEIGHT, -LARGEST_WEIGHT]


def test_the_constant_stands_behind_cut_coordinates() -> None:
    found = with_constant(np.array([[5, 10**9], [-(10**9), 0]]))
    expected = [[5, LARGEST_COORDINATE, CONSTANT], [-LARGEST_COORDINATE, 0, CONSTANT]]
    assert found.tolist() == expected
