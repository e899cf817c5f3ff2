"""Algorithm 7 as a walk in batches, against the printed pseudo-code taken one point at a time."""

import math

import numpy as np
import pytest

from secretballot.exceptions import ParameterError
from secretballot.hypotheses import Thresholds
from secretballot.queries import DisagreementSampling, PublicPool
from secretballot.released import ReleasedLabels

CLASSES = ("no", "yes")


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
    return Q


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
    constant = float(rng.choice([0.0, 0.05, 0.3]))
    strategy = DisagreementSampling(Thresholds(), slack_constant=constant)

    def slack(j):
        complexity = math.log(2.0) + math.log(math.log2(2 * j) ** 2 / 0.05)
        return constant * (complexity + math.sqrt(j * 0.05 * complexity))

    order = np.random.default_rng(0).permutation(m)  # of the stream
    queries = printed(X[order], answers[order], Thresholds().dichotomies(X), slack)
    for batch in (1, 7, 1000):
        assert walk(strategy.start(pool_of(X)), answers, batch) == order[queries].tolist()


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
