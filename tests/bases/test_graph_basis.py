"""Smooth functions on the graph of public points: a row's coordinates are its own, in integers."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from secretballot.bases import GraphBasis
from secretballot.bases.rotation import UNIT

RNG = np.random.default_rng(0)
CENTRES = np.array([[0.0, 0, 0], [9, 0, 0], [0, 9, 0], [0, 0, 9]])
POOL = np.concatenate([RNG.normal(size=(80, 3)) + centre for centre in CENTRES])
ROWS = np.concatenate([RNG.normal(size=(60, 3)) + centre for centre in CENTRES])
GROUPS = np.repeat(np.arange(4), 60)


def test_a_row_is_mapped_alike_whatever_stands_around_it(monkeypatch: pytest.MonkeyPatch) -> None:
    basis = GraphBasis(n_modes=30).fit(POOL)
    whole, known = basis.integers(ROWS), basis.covered(ROWS)
    for size in (1, 7, 64, 239):
        parts = [ROWS[at : at + size] for at in range(0, len(ROWS), size)]
        assert (np.concatenate([basis.integers(part) for part in parts]) == whole).all()
        assert (np.concatenate([basis.covered(part) for part in parts]) == known).all()
    monkeypatch.setattr("secretballot.bases.integer_basis.BLOCK", 13)
    monkeypatch.setattr("secretballot.bases.graph._BLOCK_CELLS", 50)
    assert (basis.integers(ROWS) == whole).all()


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324])
def test_one_odd_record_moves_no_other_and_is_bounded(odd: float) -> None:
    basis = GraphBasis(n_modes=30).fit(POOL)
    whole, changed = basis.integers(ROWS), ROWS.copy()
    changed[17, 2] = odd
    found = basis.integers(changed)
    others = np.arange(len(ROWS)) != 17
    assert (found[others] == whole[others]).all()
    assert np.abs(found).max() < 100 * UNIT


def test_coordinates_are_the_mean_of_the_values_at_the_nearest_other_points() -> None:
    basis = GraphBasis(n_modes=12, n_nearest=4).fit(POOL)
    spread = np.maximum(POOL.std(axis=0), 0.1 * POOL.std(axis=0).max())

    def rounded(rows: np.ndarray) -> np.ndarray:
        return np.rint((rows - POOL.mean(axis=0)) / spread * 64)

    points = rounded(POOL)
    for rows in (ROWS[:40], POOL[:40]):
        squares = ((rounded(rows)[:, None] - points) ** 2).sum(axis=2)
        # a public point is no neighbour of itself
        squares = np.where(squares == 0, np.inf, squares)
        nearest = np.argsort(squares, axis=1)[:, :4]
        sums = basis._values[nearest].sum(axis=1) - basis._offset
        tied = [len(set(np.sort(one)[:5].tolist())) < 5 for one in squares]
        exact = np.abs(basis.integers(rows) - sums / 256).max(axis=1) <= 0.5
        assert (exact | tied).all()
        assert np.mean(tied) < 0.3


def test_the_first_modes_name_groups_and_lengths_are_as_promised() -> None:
    basis = GraphBasis(n_modes=3).fit(POOL)
    coordinates = basis.transform(ROWS)
    means = np.stack([coordinates[group == GROUPS].mean(axis=0) for group in range(4)])
    apart = ((coordinates[:, None] - means) ** 2).sum(axis=2)
    assert (apart.argmin(axis=1) == GROUPS).mean() > 0.99
    own = basis.transform(POOL)
    assert np.sqrt(np.mean(np.sum(own**2, axis=1))) == pytest.approx(1, abs=0.01)
    assert np.abs(own.mean(axis=0)).max() < 1e-3


def test_large_graphs_are_decomposed_step_by_step_to_the_same_space(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # one group, so that no two functions are equally smooth
    pool = np.random.default_rng(5).normal(size=(400, 2)) * [3, 1]
    dense = GraphBasis(n_modes=8).fit(pool).transform(pool)
    monkeypatch.setattr("secretballot.bases.graph.SMALL_GRAPH", 10)
    sparse = GraphBasis(n_modes=8).fit(pool)
    assert np.allclose(dense, sparse.transform(pool), atol=2e-3)
    again = GraphBasis(n_modes=8).fit(pool)
    assert (again.integers(pool) == sparse.integers(pool)).all()


def test_far_points_are_not_covered_and_near_ones_are() -> None:
    basis = GraphBasis().fit(POOL)
    assert basis.covered(POOL).mean() > 0.99
    assert basis.covered(ROWS).mean() > 0.9
    assert not basis.covered(POOL[:20] + 50).any()


def test_frames_lists_arrays_clones_and_pickles_are_alike() -> None:
    basis = GraphBasis(n_modes=20).fit(POOL)
    whole = basis.integers(ROWS[:9])
    for table in (pd.DataFrame(ROWS[:9]), ROWS[:9].tolist(), np.asfortranarray(ROWS[:9])):
        assert (basis.integers(table) == whole).all()
    again = pickle.loads(pickle.dumps(clone(basis).fit(POOL)))
    assert (again.integers(ROWS[:9]) == whole).all()
    assert basis.describe() == {
        "name": "graph",
        "n_modes": 20,
        "n_neighbours": 10,
        "n_nearest": 5,
        "scaled": True,
    }
    assert list(basis.get_feature_names_out()[:2]) == ["direction0", "direction1"]
