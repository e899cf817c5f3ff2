"""Likeness to public landmarks, in integers: a row's coordinates are its own."""

import numpy as np
import pytest

from secretballot.bases import KernelBasis
from secretballot.bases.rotation import UNIT

POOL = np.random.default_rng(0).normal(size=(300, 6))
ROWS = np.random.default_rng(1).normal(size=(500, 6)) * 2


@pytest.mark.parametrize("ranked", [False, True])
def test_a_row_is_mapped_alike_whatever_stands_around_it(
    ranked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    basis = KernelBasis(n_landmarks=80, ranked=ranked).fit(POOL)
    whole, known = basis.integers(ROWS), basis.covered(ROWS)
    for size in (1, 7, 64, 499):
        parts = [ROWS[at : at + size] for at in range(0, 500, size)]
        assert (np.concatenate([basis.integers(part) for part in parts]) == whole).all()
        assert (np.concatenate([basis.covered(part) for part in parts]) == known).all()
    monkeypatch.setattr("secretballot.bases.integer_basis.BLOCK", 13)
    assert (basis.integers(ROWS) == whole).all()


@pytest.mark.parametrize("ranked", [False, True])
@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324])
def test_one_odd_record_moves_no_other_and_is_bounded(odd: float, ranked: bool) -> None:
    basis = KernelBasis(n_landmarks=80, ranked=ranked).fit(POOL)
    whole, changed = basis.integers(ROWS), ROWS.copy()
    changed[17, 3] = odd
    found = basis.integers(changed)
    others = np.arange(500) != 17
    assert (found[others] == whole[others]).all()
    assert np.abs(found).max() < 100 * UNIT


def test_it_is_nystroem_s_method_up_to_rounding() -> None:
    basis = KernelBasis(n_landmarks=40, whitening=1.0, n_directions=10).fit(POOL)
    coordinates = basis.transform(POOL)
    assert np.abs(coordinates.mean(axis=0)).max() < 1e-3
    covariance = np.cov(coordinates.T, bias=True)
    assert np.allclose(covariance, np.eye(10) / 10, atol=2e-3)
    assert np.sqrt(np.mean(np.sum(coordinates**2, axis=1))) == pytest.approx(1, abs=0.01)


def test_ranks_are_those_among_the_public_numbers_and_end_with_them() -> None:
    pool = POOL.copy()
    pool[:50, 2], pool[10:20, 1], pool[:, 5] = 0.0, np.nan, np.nan
    basis = KernelBasis(n_landmarks=30, ranked=True).fit(pool)
    ranks = basis._public_ranks(ROWS)
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


def test_far_points_are_not_covered_and_near_ones_are() -> None:
    basis = KernelBasis(n_landmarks=100).fit(POOL)
    assert basis.covered(POOL).mean() > 0.99
    assert basis.covered(np.random.default_rng(2).normal(size=(2000, 6))).mean() > 0.9
    assert not basis.covered(POOL[:20] + 30).any()
