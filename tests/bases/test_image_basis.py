"""Edges of images as coordinates: a row's are its own, in sums of whole numbers."""

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from sklearn.datasets import load_digits

from secretballot.bases import (
    GraphBasis,
    ImageBasis,
    KernelBasis,
    TableBasis,
    images,
    unfitted_basis,
)
from secretballot.data import Schema
from secretballot.exceptions import DataError
from secretballot.report.student_export import _add_basis
from secretballot.report.student_graph import DOUBLE, Graph

#: Digits of 8 x 8 pixels, each pixel doubled both ways.
DIGITS = np.kron(load_digits().images[:400], np.ones((2, 2))).reshape(400, 256)
POOL, ROWS = DIGITS[:200], DIGITS[200:]


@pytest.fixture(scope="module")
def basis():
    return ImageBasis(n_modes=20).fit(POOL)


@pytest.mark.parametrize("odd", [np.nan, np.inf, -1e308])
def test_a_row_is_mapped_alike_whatever_stands_around_it(basis, odd):
    rows = ROWS[:40].copy()
    rows[17, 100] = odd
    whole = basis.integers(rows)
    assert (basis.integers(ROWS[:40])[:17] == whole[:17]).all()
    assert (np.concatenate([basis.integers(rows[[place]]) for place in range(40)]) == whole).all()
    assert (basis.integers(rows[::-1]) == whole[::-1]).all()


@pytest.mark.parametrize("side", [images.LEAST_SIDE, images.LARGEST_SIDE])
def test_no_sum_of_maps_reaches_what_floats_round(side):
    smooth, slope = images.gradients(side)
    blurred, (right, below) = images.blurring(side), np.abs(images.directions()).max(axis=0)
    largest = images.BRIGHTEST * np.maximum(slope, 0).sum(axis=0).max() * smooth.sum(axis=0).max()
    part = images.WEIGHT * (right + below) * largest
    n_maps = images.ORIENTATIONS * blurred.shape[1] ** 2
    assert n_maps * part * blurred.sum(axis=0).max() ** 2 < 2.0**53


def test_coordinates_are_those_of_the_file_and_of_images_that_were_centred(basis):
    graph = Graph()
    points = graph.input("points", DOUBLE, 256)
    coordinates = _add_basis(basis, points)
    model = graph.to_bytes([(coordinates, "said", DOUBLE, basis.n_directions_)], {})
    found = onnxruntime.InferenceSession(model).run(None, {"points": ROWS})[0]
    assert (found == basis.integers(ROWS)).all()
    centre = np.round(POOL.mean(axis=0) * 8) / 8
    centred = ImageBasis(n_modes=20).fit((POOL - centre) * 4)
    assert (centred.integers((ROWS - centre) * 4) == basis.integers(ROWS)).all()


def test_public_points_alone_decide_what_are_images():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(200, 256))
    for pool in (POOL, POOL - POOL.mean(axis=0)):
        assert type(unfitted_basis("auto", pool)) is ImageBasis
    small, series = load_digits().data[:200], np.cumsum(noise, axis=1)
    for pool in (noise, series, small, [["a", "b"]] * 20):
        assert type(unfitted_basis("auto", pool)) is TableBasis
    assert type(unfitted_basis("vectors", noise)) is KernelBasis
    assert type(unfitted_basis("vectors", DIGITS[:201])) is GraphBasis
    given = ImageBasis(n_modes=3)
    assert unfitted_basis(given, noise) is not given
    with pytest.raises(DataError, match="square of a number from 16 to 48"):
        ImageBasis().fit(POOL[:, :81])


def test_levels_of_one_scale_that_lie_in_groups_are_vectors():
    rng, digits = np.random.default_rng(0), load_digits().data[:300]
    frame = pd.DataFrame(digits.astype(int).astype(str)).add_prefix("pixel")
    schema = Schema.infer(frame)
    for pool in (digits, digits / 16 - 3, digits[:, 8:40], DIGITS[:, :255], schema.encode(frame)):
        assert type(unfitted_basis("auto", pool)) is GraphBasis
    by_chance, wide = rng.permuted(digits, axis=0), digits.copy()
    wide[0, 0] = 33
    blurred = digits + rng.normal(size=digits.shape) / 100
    few, many = digits[:200], np.tile(digits, (67, 1))
    missing = np.where(digits == 16, np.nan, digits)
    for pool in (by_chance, wide, blurred, missing, few, many, digits[:, 8:39], 0 * digits):
        assert type(unfitted_basis("auto", pool)) is TableBasis
    mixed = frame.assign(kind=np.where(digits[:, 20] > 8, "a", "b"))
    assert len({one.scale for one in Schema.infer(mixed).columns if one.kind == "numeric"}) > 1
