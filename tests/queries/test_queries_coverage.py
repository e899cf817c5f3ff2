import numpy as np
import pytest
from scipy import sparse

from secretballot.queries import ClusterSampling, PublicPool
from secretballot.queries.coverage import spread_over


def groups(*sizes):
    """Return points around four places, and which."""
    centres = np.array([(0, 0), (10, 0), (0, 10), (10, 10)])
    group = np.repeat(np.arange(4), sizes)
    return np.random.default_rng(0).normal(centres[group], 0.05), group


@pytest.mark.parametrize("wrap", [np.asarray, sparse.csr_matrix])
def test_clusters_are_represented_by_size_and_by_their_middle(wrap):
    X, group = groups(10, 40, 20, 30)
    pool = PublicPool(X=wrap(X), classes=(0, 1), n_queries=4, random_state=0)
    rows = ClusterSampling().start(pool).propose(8)
    assert group[rows].tolist() == [1, 3, 2, 0] * 2
    for row in rows[:4]:
        members = X[group == group[row]]
        gaps = np.linalg.norm(members - members.mean(axis=0), axis=1)
        assert np.linalg.norm(X[row] - members.mean(axis=0)) == pytest.approx(gaps.min(), rel=0.3)


def test_spread_takes_the_heaviest_of_each_group_and_fills_up():
    X, group = groups(5, 5, 5, 5)
    weights = np.arange(20.0)
    places = spread_over(X, weights, 4, seed=0)
    assert places.tolist() == [4, 9, 14, 19]
    same = np.zeros((6, 2))
    assert spread_over(same, np.array([1.0, 5, 2, 9, 3, 4]), 3, seed=0).tolist() == [1, 3, 5]
    assert spread_over(same, np.zeros(6), 6, seed=0).tolist() == list(range(6))
    assert set(group[places]) == {0, 1, 2, 3}
