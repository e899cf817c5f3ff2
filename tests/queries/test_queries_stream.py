"""Algorithm 7 as a walk in batches, against the printed pseudo-code taken one point at a time."""

import math

import numpy as np
import pytest

from secretballot.exceptions import ParameterError
from secretballot.hypotheses import Thresholds
from secretballot.hypotheses.base import FiniteDichotomies, HypothesisClass
from secretballot.queries import DisagreementSampling, PublicPool
from secretballot.released import ReleasedLabels

CLASSES = ("no", "yes")


class Step:
    """Says 1 from `edge` on."""

    def __init__(self, edge):
        self.edge = float(edge)

    def labels(self, points):
        return points[:, 0] >= self.edge

    def predict(self, X):
        return self.labels(np.asarray(X)).astype(np.int64)

    def describe(self):
        return {"edge": self.edge}


class Listed(FiniteDichotomies):
    """Every member is a labelling of its own."""

    def __init__(self, members, points):
        self.points, self._members = points, members
        self.labels = np.array([h.labels(points) for h in members])


class ListedSteps(HypothesisClass):
    __module__ = "secretballot.hypotheses.listed"  # passes for one of the package
    name = "listed steps"
    vc_dimension = 1

    def __init__(self, edges):
        self.members = [Step(edge) for edge in edges]

    def dichotomies(self, X):
        return Listed(self.members, X)


def printed(X, answers, hypotheses, slack):
    """Liu et al. 2021, supplement, Algorithm 7, line by line; updates from j = 2 on."""
    V = list(hypotheses)
    Q = []
    for j in range(1, len(X) + 1):
        x = X[j - 1 : j]
        if len({int(h.predict(x)[0]) for h in V}) > 1:
            Q.append(j - 1)
        if j >= 2 and math.log2(j).is_integer():
            answered = [row for row in Q if answers[row] >= 0]
            mistakes = [
                sum(int(h.predict(X[r : r + 1])[0]) != answers[r] for r in answered) for h in V
            ]
            V = [
                h for h, wrong in zip(V, mistakes, strict=True) if wrong - min(mistakes) <= slack(j)
            ]
    return Q, [h.edge for h in V]


def pool_of(X):
    return PublicPool(X=X, classes=CLASSES, n_queries=50, random_state=0)


def walk(selector, answers, batch):
    """Ask until nothing is proposed; return the rows in the order of asking."""
    asked = []
    while len(rows := selector.propose(batch)):
        assert len(rows) <= batch
        asked += rows.tolist()
        selector.receive(ReleasedLabels(asked, answers[asked], CLASSES, 100))
    return asked


@pytest.mark.parametrize("seed", range(5))
def test_the_walk_asks_what_the_printed_algorithm_asks(seed):
    rng = np.random.default_rng(seed)
    m = int(rng.choice([1, 2, 3, 4, 7, 64, 100, 200]))
    X = rng.random((m, 1))
    answers = (X[:, 0] >= rng.random()).astype(np.int64)
    answers = np.where(rng.random(m) < 0.1, 1 - answers, answers)
    answers[rng.random(m) < 0.1] = -1
    hypotheses = ListedSteps(np.linspace(0, 1, 41))
    settings = {
        "slack_constant": float(rng.choice([0.0, 0.05, 0.3])),
        "noise_rate": float(rng.choice([0.0, 0.1])),
    }
    strategy = DisagreementSampling(hypotheses, **settings, disagreement_coefficient=3.0)

    def slack(j):
        complexity = math.log(3.0) + math.log(math.log2(2 * j) ** 2 / 0.05)
        return settings["slack_constant"] * (
            complexity + math.sqrt(j * settings["noise_rate"] * complexity)
        )

    order = np.random.default_rng(0).permutation(m)  # of the stream
    queries, edges = printed(X[order], answers[order], hypotheses.members, slack)
    for batch in (1, 7, 1000):
        selector = strategy.start(pool_of(X))
        assert walk(selector, answers, batch) == order[queries].tolist()
        space = selector._region._space
        if space._restrictions and m & (m - 1):  # something was learnt, and no update is left out
            found, left = space._labellings(space._restrictions[-1].points)
            ends = [found.hypothesis(int(at)).edge for at in np.flatnonzero(left)[[0, -1]]]
            assert (*ends, left.sum()) == (edges[0], edges[-1], len(edges))


def test_an_update_without_its_answers_is_refused():
    X = np.random.default_rng(0).random((64, 1))
    selector = DisagreementSampling(Thresholds()).start(pool_of(X))
    selector.propose(5)
    with pytest.raises(ParameterError, match="call receive"):
        selector.propose(5)


def test_a_sorted_pool_is_walked_in_random_order_by_public_coins():
    X = np.sort(np.random.default_rng(0).random((400, 1)), axis=0)
    strategy, walks = DisagreementSampling(Thresholds(), slack_constant=0.0), []
    for state in (0, 7):
        selector = strategy.start(PublicPool(X, CLASSES, 400, state))
        walks.append(walk(selector, (X[:, 0] >= 0.3).astype(np.int64), 4))
        assert len(walks[-1]) < 40
    assert walks[0] != walks[1]
