"""Predictions in integers are near the real ones, their products are exact, and a row's do not
depend on other rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit, softmax

from secretballot.bases.integer_model import (
    CONSTANT,
    LARGEST_COORDINATE,
    LARGEST_WEIGHT,
    PROBABILITY_UNIT,
    UNIT,
    WEIGHT_UNIT,
    IntegerLabels,
    IntegerLine,
    IntegerModel,
    Rotation,
    exact_products,
    with_constant,
)


def model_and_points(n_classes, seed=0):
    rng = np.random.default_rng(seed)
    weights = rng.normal(0, 2, (30, 1 if n_classes == 2 else n_classes))
    return weights, rng.integers(-2 * UNIT, 2 * UNIT, (200, 30))


@pytest.mark.parametrize("n_classes", [2, 26])
def test_probabilities_are_those_of_the_softmax(n_classes):
    weights, points = model_and_points(n_classes)
    logits = points / UNIT @ weights
    logits = np.hstack([np.zeros((200, 1)), logits]) if n_classes == 2 else logits
    found = IntegerModel.of(weights).probabilities(points) / PROBABILITY_UNIT
    assert found.shape == (200, n_classes)
    assert np.abs(found - softmax(logits, axis=1)).max() < 1.5e-3
    assert np.abs(found.sum(axis=1) - 1).max() < 1e-4
    assert (IntegerModel.of(weights).labels(points) == logits.argmax(axis=1)).mean() > 0.99


def test_weights_and_coordinates_are_cut_and_the_constant_stands_behind():
    found = IntegerModel.of(np.array([[0.5], [1e9], [-1e9]])).weights
    assert found.ravel().tolist() == [WEIGHT_UNIT // 2, LARGEST_WEIGHT, -LARGEST_WEIGHT]
    cut = with_constant(np.array([[5, 10**9, -(10**9)]])).tolist()
    assert cut == [[5, LARGEST_COORDINATE, -LARGEST_COORDINATE, CONSTANT]]


RNG = np.random.default_rng(0)
POINTS = with_constant(np.rint(RNG.normal(0, 0.5, (200, 4)) * UNIT).astype(np.int64))
POINTS[0, :-1] = LARGEST_COORDINATE
POINTS[1, :-1] = -LARGEST_COORDINATE
WEIGHTS = RNG.normal(0, 1, (5, 3))


def test_they_are_near_the_functions_that_they_stand_for():
    linear = POINTS / UNIT @ WEIGHTS
    line = IntegerLine.of(WEIGHTS).predictions(POINTS) / PROBABILITY_UNIT
    assert np.abs(line - np.clip(0.5 + linear, 0, 1)).max() < 5e-4
    assert set(line[:2].ravel()) <= {0.0, 1.0}
    labels = IntegerLabels.of(WEIGHTS).predictions(POINTS) / PROBABILITY_UNIT
    assert np.abs(labels - expit(linear)).max() < 1e-3


def test_each_label_is_predicted_as_one_of_two_classes_is():
    model = IntegerLabels.of(WEIGHTS)
    for k in range(3):
        alone = IntegerModel(model.weights[:, [k]]).probabilities(POINTS)
        assert (model.predictions(POINTS)[:, k] == alone[:, 1]).all()


@pytest.mark.parametrize(
    ("kind", "n_columns"),
    [(IntegerLine, 3), (IntegerLabels, 3), (IntegerModel, 1), (IntegerModel, 3)],
)
def test_a_row_is_predicted_alike_whatever_stands_around_it(kind, n_columns):
    model = kind.of(WEIGHTS[:, :n_columns])
    whole = model.predictions(POINTS)
    for size in (1, 3, 17, 199):
        parts = [model.predictions(POINTS[at : at + size]) for at in range(0, 200, size)]
        assert (np.concatenate(parts) == whole).all()
    assert whole.min() >= 0
    assert whole.max() <= PROBABILITY_UNIT


def exact_sums(rows, weights):
    return [
        [sum(a * b for a, b in zip(row, column, strict=True)) for column in weights.T.tolist()]
        for row in rows.tolist()
    ]


@pytest.mark.parametrize("width", [30, 3000, 6000])
@pytest.mark.parametrize("kept", [np.asarray, sp.csr_array])
def test_sums_on_both_sides_of_what_floats_hold_are_exact(width, kept):
    weights = RNG.integers(LARGEST_WEIGHT // 2, LARGEST_WEIGHT, (width, 2))
    rows = RNG.integers(LARGEST_COORDINATE // 2, LARGEST_COORDINATE, (8, width))
    found = exact_products(kept(rows), weights, LARGEST_COORDINATE)
    assert found.dtype == np.int64
    assert found.tolist() == exact_sums(rows, weights)


def test_sparse_rows_have_the_products_of_dense_ones():
    rows = RNG.integers(-1024, 1024, (50, 30)) * (RNG.random((50, 30)) < 0.3)
    for width in (1, 64, 130):
        weights = RNG.integers(-(2**20), 2**20, (30, width))
        assert (exact_products(sp.csr_array(rows), weights, 1024) == rows @ weights).all()


def test_a_row_has_the_same_logits_and_coordinates_whatever_stands_around_it():
    """Six thousand coordinates at their ends add up to more than 2^53."""
    weights = RNG.integers(LARGEST_WEIGHT - 2**10, LARGEST_WEIGHT, (6000, 2))
    rows = RNG.integers(LARGEST_COORDINATE - 2**10, LARGEST_COORDINATE, (40, 6000))
    rotation = Rotation(weights, np.zeros(2, dtype=np.int64), 1, LARGEST_COORDINATE)
    whole = rotation.coordinates(rows)
    assert whole.tolist() == [[(one + 1) >> 1 for one in row] for row in exact_sums(rows, weights)]
    assert all((rotation.coordinates(rows[[i]])[0] == whole[i]).all() for i in range(40))
    model = IntegerModel(weights)
    labels = [int(first < second) for first, second in exact_sums(rows, weights)]
    assert model.labels(rows).tolist() == labels
