"""Bases of vectors, by landmarks and by the graph of public points: a row is mapped by itself."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from secretballot.bases import GraphBasis, KernelBasis
from secretballot.bases.integer_model import UNIT

RNG = np.random.default_rng(0)
CENTRES = np.array([[0.0, 0, 0], [9, 0, 0], [0, 9, 0], [0, 0, 9]])
GROUPED = np.concatenate([RNG.normal(size=(80, 3)) + centre for centre in CENTRES])
GROUPED_ROWS = np.concatenate([RNG.normal(size=(60, 3)) + centre for centre in CENTRES])
GROUPS = np.repeat(np.arange(4), 60)
POOL = np.random.default_rng(0).normal(size=(300, 6))
ROWS = np.random.default_rng(1).normal(size=(500, 6)) * 2
FITTED = {
    "kernel": (KernelBasis(n_landmarks=80).fit(POOL), ROWS),
    "ranks": (KernelBasis(n_landmarks=80, ranked=True).fit(POOL), ROWS),
    "graph": (GraphBasis(n_modes=30).fit(GROUPED), GROUPED_ROWS),
}


@pytest.mark.parametrize("name", FITTED)
def test_a_row_is_mapped_alike_whatever_stands_around_it(name, monkeypatch):
    basis, rows = FITTED[name]
    whole, known = basis.integers(rows), basis.covered(rows)
    for size in (1, 7, 64, len(rows) - 1):
        parts = [rows[at : at + size] for at in range(0, len(rows), size)]
        assert (np.concatenate([basis.integers(part) for part in parts]) == whole).all()
        assert (np.concatenate([basis.covered(part) for part in parts]) == known).all()
    monkeypatch.setattr("secretballot.bases.integer_basis.BLOCK", 13)
    monkeypatch.setattr("secretballot._points._BLOCK_CELLS", 50)
    assert (basis.integers(rows) == whole).all()


@pytest.mark.parametrize("name", FITTED)
def test_one_odd_record_moves_no_other_and_is_bounded(name):
    basis, rows = FITTED[name]
    whole, others = basis.integers(rows), np.arange(len(rows)) != 17
    for odd in (np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324):
        changed = rows.copy()
        changed[17, 2] = odd
        found = basis.integers(changed)
        assert (found[others] == whole[others]).all()
        assert np.abs(found).max() < 100 * UNIT


def test_far_points_are_not_covered_and_near_ones_are():
    near = np.random.default_rng(2).normal(size=(2000, 6))
    for basis, pool, rows in (
        (KernelBasis(n_landmarks=100), POOL, near),
        (GraphBasis(), GROUPED, GROUPED_ROWS),
    ):
        basis.fit(pool)
        assert basis.covered(pool).mean() > 0.99
        assert basis.covered(rows).mean() > 0.9
        assert not basis.covered(pool[:20] + 50).any()


def test_frames_lists_arrays_clones_and_pickles_are_alike_and_modes_name_groups():
    basis = GraphBasis(n_modes=3).fit(GROUPED)
    again = pickle.loads(pickle.dumps(clone(basis).fit(pd.DataFrame(GROUPED))))
    assert (again.integers(GROUPED_ROWS.tolist()) == basis.integers(GROUPED_ROWS)).all()
    coordinates = basis.transform(GROUPED_ROWS)
    means = np.stack([coordinates[group == GROUPS].mean(axis=0) for group in range(4)])
    apart = ((coordinates[:, None] - means) ** 2).sum(axis=2)
    assert (apart.argmin(axis=1) == GROUPS).mean() > 0.99
    own = basis.transform(GROUPED)
    assert np.sqrt(np.mean(np.sum(own**2, axis=1))) == pytest.approx(1, abs=0.01)
    assert np.abs(own.mean(axis=0)).max() < 1e-3
    assert basis.describe()["n_modes"] == 3


def test_it_is_nystroem_s_method_up_to_rounding():
    basis = KernelBasis(n_landmarks=40, whitening=1.0, n_directions=10).fit(POOL)
    coordinates = basis.transform(POOL)
    assert np.abs(coordinates.mean(axis=0)).max() < 1e-3
    assert np.allclose(np.cov(coordinates.T, bias=True), np.eye(10) / 10, atol=2e-3)
    assert np.sqrt(np.mean(np.sum(coordinates**2, axis=1))) == pytest.approx(1, abs=0.01)


def test_ranks_are_those_among_the_public_numbers_and_end_with_them():
    pool = POOL.copy()
    pool[:50, 2], pool[10:20, 1], pool[:, 5] = 0.0, np.nan, np.nan
    basis = KernelBasis(n_landmarks=30, ranked=True).fit(pool)
    ranks, _ = basis._public_ranks(ROWS)
    for column in range(5):
        known = pool[:, column][~np.isnan(pool[:, column])]
        below, upto = (known[:, None] < ROWS[:, column]), (known[:, None] <= ROWS[:, column])
        exact = (below.sum(axis=0) + upto.sum(axis=0)) * 1024 // len(known) - 1024
        assert (ranks[:, column] == exact).all()
    assert (ranks[:, 5] == 0).all()
    outside = (ROWS[:, :5] < np.nanmin(pool[:, :5], axis=0)) | (
        ROWS[:, :5] > np.nanmax(pool[:, :5], axis=0)
    )
    assert not basis.covered(ROWS)[outside.any(axis=1)].any()
    assert basis.covered(pool).mean() > 0.99
    assert 0.03 < basis.uncovered_share_ < 0.05


def test_coordinates_are_the_mean_of_the_values_at_the_nearest_other_points():
    basis = GraphBasis(n_modes=12, n_nearest=4).fit(GROUPED)
    spread = np.maximum(GROUPED.std(axis=0), 0.1 * GROUPED.std(axis=0).max())

    def rounded(rows):
        return np.rint((rows - GROUPED.mean(axis=0)) / spread * 64)

    points = rounded(GROUPED)
    for rows in (GROUPED_ROWS[:40], GROUPED[:40]):
        squares = ((rounded(rows)[:, None] - points) ** 2).sum(axis=2)
        # a public point is no neighbour of itself
        squares = np.where(squares == 0, np.inf, squares)
        nearest = np.argsort(squares, axis=1)[:, :4]
        sums = basis._values[nearest].sum(axis=1) - basis._offset
        tied = [len(set(np.sort(one)[:5].tolist())) < 5 for one in squares]
        exact = np.abs(basis.integers(rows) - sums / 256).max(axis=1) <= 0.5
        assert (exact | tied).all()
        assert np.mean(tied) < 0.3


def test_large_graphs_are_decomposed_step_by_step_to_the_same_space(monkeypatch):
    # one group, so that no two functions are equally smooth
    pool = np.random.default_rng(5).normal(size=(400, 2)) * [3, 1]
    dense = GraphBasis(n_modes=8).fit(pool).transform(pool)
    monkeypatch.setattr("secretballot.bases.graph.SMALL_GRAPH", 10)
    sparse = GraphBasis(n_modes=8).fit(pool)
    assert np.allclose(dense, sparse.transform(pool), atol=2e-3)
    assert (GraphBasis(n_modes=8).fit(pool).integers(pool) == sparse.integers(pool)).all()
