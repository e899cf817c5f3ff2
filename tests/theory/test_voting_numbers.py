"""Voting in numbers against simulation, enumeration and true empirical risk minimisers."""

import numpy as np
import pytest

from exact_games.distributions import discrete_gaussian_distribution
from secretballot import theory


@pytest.mark.parametrize("k", [7, 8])
def test_label_accuracy_by_enumeration(k):
    """The release of a binary vote: 1 if 2 (count + noise) >= K; label 0 is the harder one."""
    law = discrete_gaussian_distribution(2.3)
    for for_one in range(k + 1):
        found = theory.label_accuracy(abs(2 * for_one - k), 2.3)
        right = law.pmf[(2 * (for_one + law.support) >= k) == (2 * for_one >= k)].sum()
        assert found <= right + 1e-12
        assert found == pytest.approx(right, rel=1e-10) or 2 * for_one >= k


def test_voting_fails_with_teachers_that_minimise_the_empirical_error():
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
