"""Products are exact, however many columns there are and however large the weights."""

import numpy as np
import pytest
import scipy.sparse as sp

from secretballot.bases.integer_model import LARGEST_COORDINATE, LARGEST_WEIGHT, IntegerModel
from secretballot.bases.rotation import Rotation, exact_products

RNG = np.random.default_rng(0)


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
