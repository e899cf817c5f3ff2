"""The region of disagreement by constrained fits."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from secretballot.exceptions import ParameterError
from secretballot.hypotheses import Thresholds
from secretballot.queries import DisagreementSampling, PublicPool
from secretballot.queries.base import LabelledRows
from secretballot.queries.disagreement import OracleRegion
from secretballot.queries.uncertainty import PoolLearner

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
    region = OracleRegion(PoolLearner(LINEAR, pool_of(X)))
    region.update(LabelledRows(rows, labels, np.ones(20), rows), slack)
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
