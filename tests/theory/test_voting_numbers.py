"""Voting in numbers against simulation, enumeration and true empirical risk minimisers."""

import math

import numpy as np
import pytest

from secretballot import theory


def _discrete_gaussian(sigma: float) -> tuple[np.ndarray, np.ndarray]:
    x = np.arange(-math.ceil(12 * sigma), math.ceil(12 * sigma) + 1)
    weight = np.exp(-(x**2) / (2 * sigma**2))
    return x, weight / weight.sum()


@pytest.mark.parametrize("k", [7, 8])
def test_label_accuracy_by_enumeration(k: int) -> None:
    """The release of a binary vote: 1 if 2 (count + noise) >= K; label 0 is the harder one."""
    x, pmf = _discrete_gaussian(2.3)
    for for_one in range(k // 2):
        exact = pmf[2 * (for_one + x) < k].sum()
        assert theory.label_accuracy(k - 2 * for_one, 2.3) == pytest.approx(exact, rel=1e-10)
    for for_one in range(k // 2 + 1, k + 1):
        assert (
            theory.label_accuracy(2 * for_one - k, 2.3) <= pmf[2 * (for_one + x) >= k].sum() + 1e-12
        )


def test_voting_fails_with_teachers_that_minimise_the_empirical_error() -> None:
    """Example 8 run as it stands: every teacher fits its own shard; ties are broken by a fair
    coin."""
    rng, k, size, class_ = np.random.default_rng(2), 2001, 6, np.array(theory.FAILING_CLASS)
    shards = rng.integers(4, size=(k, size))
    errors = (class_[:, shards] != 1).sum(axis=2).T + rng.random((k, 3)) / 2
    votes = class_[errors.argmin(axis=1)]
    example = theory.voting_fails()
    assert votes.mean(axis=0) == pytest.approx(example.agreement, abs=0.04)
    assert (votes.mean(axis=0) < 0.5).mean() == 0.75 == example.limit_error
    assert [(h != np.ones(4)).mean() for h in class_] == [0.5] * 3
    assert example.best_error == example.teacher_error == 0.5
