"""Proposals are checked, clusters covered, and the region of disagreement is found by constrained
fits."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from secretballot.exceptions import DataError, ParameterError
from secretballot.hypotheses import Thresholds
from secretballot.queries import (
    CheckedSelector,
    ClusterSampling,
    DisagreementSampling,
    PassiveSampling,
    PublicPool,
    QuerySelector,
    QueryStrategy,
    _LabelledRows,
    _OracleRegion,
    _PoolLearner,
    _spread_over,
)


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
    places = _spread_over(X, weights, 4, seed=0)
    assert places.tolist() == [4, 9, 14, 19]
    same = np.zeros((6, 2))
    assert _spread_over(same, np.array([1.0, 5, 2, 9, 3, 4]), 3, seed=0).tolist() == [1, 3, 5]
    assert _spread_over(same, np.zeros(6), 6, seed=0).tolist() == list(range(6))
    assert set(group[places]) == {0, 1, 2, 3}


POOL = PublicPool(X=np.zeros((10, 1)), classes=(0, 1), n_queries=5, random_state=0)


class Scripted(QueryStrategy, QuerySelector):
    """Proposes what the script says, whatever the answers are."""

    def __init__(self, *script):
        self.script = list(script)

    def start(self, pool):
        return self

    def describe(self):
        return {"name": "scripted"}

    def propose(self, n):
        return self.script.pop(0)

    def receive(self, released):
        self.received = released


@pytest.mark.parametrize(
    "rows",
    [
        *([1, 1], [2, 3], [10], [-1], [1.0], [True, False], [None], [[1, 2]], 5, [1, 2, 4, 5]),
        np.array([2**63], dtype=np.uint64),
    ],
    ids=str,
)
def test_proposals_that_cannot_be_asked_are_refused(rows):
    selector = CheckedSelector(Scripted([3], rows), POOL)
    selector.propose(3)
    with pytest.raises(DataError, match="at most 3 integers, each row from 0 to 9 once"):
        selector.propose(3)


def test_passive_rows_do_not_depend_on_the_rounds_and_follow_the_coins():
    one = PassiveSampling().start(POOL).propose(10).tolist()
    selector = PassiveSampling().start(POOL)
    assert [row for n in (3, 3, 4) for row in selector.propose(n).tolist()] == one
    other = PublicPool(X=POOL.X, classes=(0, 1), n_queries=5, random_state=1)
    assert PassiveSampling().start(other).propose(10).tolist() != one


LINEAR = LogisticRegression(C=1e4, max_iter=500)


def pool_of(X):
    return PublicPool(X=X, classes=(0, 1), n_queries=50, random_state=0)


@pytest.mark.parametrize("slack", [0.0, 2.0])
def test_on_the_line_it_is_the_region_of_the_halfspaces(slack):
    rng = np.random.default_rng(2)
    X = np.sort(rng.random((40, 1)), axis=0)
    rows = np.sort(rng.choice(40, 20, replace=False))
    labels = (X[rows, 0] >= 0.5).astype(np.int64)
    labels[[2, 17]] ^= 1
    whole = Thresholds("either").version_space()
    region = _OracleRegion(_PoolLearner(LINEAR, pool_of(X)))
    region.update(_LabelledRows(rows, labels, np.ones(20), rows), slack)
    found = region.contains(np.arange(40))
    outermost = region._most - 2.0  # the best threshold makes two
    assert slack <= outermost < slack + 1.1
    exact, outer = (
        whole.restrict(X[rows], labels, s).disagreement_region(X) for s in (slack, outermost)
    )
    # every model that was found is a halfspace within the slack of the best found
    assert not (found & ~outer).any()
    assert found.sum() >= 0.8 * exact.sum()


def test_a_learner_that_cannot_be_constrained_is_refused():
    pool = pool_of(np.random.default_rng(0).normal(size=(200, 2)))
    learner = make_pipeline(StandardScaler(), KNeighborsClassifier())
    with pytest.raises(ParameterError, match="takes no sample weights: a learner that cannot be"):
        DisagreementSampling(learner=learner).start(pool)
