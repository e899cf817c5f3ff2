"""Algorithm 7 as a walk in batches, against the printed pseudo-code taken one point at a time."""

import math

import numpy as np
import pytest

from secretballot.hypotheses.base import HypothesisClass, VersionSpace
from secretballot.queries import DisagreementSampling, PublicPool
from secretballot.released import ReleasedLabels

CLASSES = ("no", "yes")


class Step:
    """Says 1 from `edge` on."""

    def __init__(self, edge):
        self.edge = float(edge)

    def predict(self, X):
        return (np.asarray(X)[:, 0] >= self.edge).astype(np.int64)

    def describe(self):
        return {"edge": self.edge}


class ListedSpace(VersionSpace):
    """Every member listed, every definition spelled out."""

    def __init__(self, members, best=0):
        self.members, self.best = members, best

    def restrict(self, X, y, slack, sample_weight=None):
        weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight)
        mistakes = np.array([((h.predict(X) != y) * weight).sum() for h in self.members])
        kept = [h for h, m in zip(self.members, mistakes, strict=True) if m <= mistakes.min() + slack + 1e-9]
        return ListedSpace(kept)

    def disagreement_region(self, X):
        answers = np.array([h.predict(X) for h in self.members])
        return (answers != answers[0]).any(axis=0)

    def hypothesis(self):
        return self.members[0]

    def describe(self):
        return {"edges": [h.edge for h in self.members]}


class ListedSteps(HypothesisClass):
    name = "listed steps"

    def __init__(self, edges):
        self.members = [Step(edge) for edge in edges]

    @property
    def vc_dimension(self):
        return 1

    def erm(self, X, y, sample_weight=None):
        raise NotImplementedError

    def dichotomies(self, X):
        raise NotImplementedError

    def version_space(self):
        return ListedSpace(self.members)


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
            mistakes = [sum(int(h.predict(X[r : r + 1])[0]) != answers[r] for r in answered) for h in V]
            V = [h for h, wrong in zip(V, mistakes, strict=True) if wrong - min(mistakes) <= slack(j)]
    return Q, [h.edge for h in V]


def pool_of(X, n_queries=50, classes=CLASSES):
    return PublicPool(X=X, classes=classes, n_queries=n_queries, random_state=0)


def release_of(rows, answers, classes=CLASSES, **counts):
    rows = np.asarray(rows, dtype=np.int64)
    return ReleasedLabels(queries=rows, labels=answers[rows], classes=classes, n_teachers=100, **counts)


def walk(selector, answers, batch):
    """Ask until nothing is proposed; return the rows in the order of asking."""
    asked = []
    while len(rows := selector.propose(batch)):
        assert len(rows) <= batch
        asked += rows.tolist()
        selector.receive(release_of(asked, answers))
    return asked


@pytest.mark.parametrize("seed", range(12))
def test_the_walk_asks_what_the_printed_algorithm_asks(seed):
    rng = np.random.default_rng(seed)
    m = int(rng.choice([1, 2, 3, 7, 64, 100, 200]))
    X = rng.random((m, 1))
    answers = (X[:, 0] >= rng.random()).astype(np.int64)
    answers = np.where(rng.random(m) < 0.1, 1 - answers, answers)
    answers[rng.random(m) < 0.1] = -1
    hypotheses = ListedSteps(np.linspace(0, 1, 41))
    settings = {"slack_constant": float(rng.choice([0.0, 0.05, 0.3])), "noise_rate": float(rng.choice([0.0, 0.1]))}
    strategy = DisagreementSampling(
        hypotheses, **settings, disagreement_coefficient=3.0, vc_dimension=2, failure_probability=0.1
    )

    def slack(j):
        complexity = 2 * math.log(3.0) + math.log(math.log2(2 * j) ** 2 / 0.1)
        return settings["slack_constant"] * (complexity + math.sqrt(j * settings["noise_rate"] * complexity))

    queries, edges = printed(X, answers, hypotheses.members, slack)
    for batch in (1, 7, 1000):
        selector = strategy.start(pool_of(X))
        assert walk(selector, answers, batch) == queries
        assert selector.explain()["version_space"]["edges"] == edges
