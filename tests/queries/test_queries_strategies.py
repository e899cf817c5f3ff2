"""What every strategy keeps: public eyes only, the same walk twice, each row once, no row too
many."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from secretballot.exceptions import DataError
from secretballot.hypotheses import Thresholds
from secretballot.queries import (
    _STRATEGIES,
    CheckedSelector,
    CommitteeSampling,
    DisagreementSampling,
    EntropySampling,
    MarginSampling,
    PublicPool,
    strategy_by_name,
)
from secretballot.released import ReleasedLabels

TEACHERS = 100
PUBLIC_POOL = {"X", "classes", "n_queries", "random_state", "n_points"}
PUBLIC_RELEASE = {"queries", "labels", "classes", "n_teachers", "sigma", "noisy_counts"}
PUBLIC_RELEASE |= {"answered", "n_classes"}
ALL = {name: strategy_by_name(name) for name in _STRATEGIES} | {
    "thresholds": DisagreementSampling(Thresholds("either")),
    "disagreement of a learner": DisagreementSampling(
        learner=RandomForestClassifier(2, max_depth=2)
    ),
    "margin of a learner": MarginSampling(DecisionTreeClassifier(), spread=1),
    "unweighted": CommitteeSampling(KNeighborsClassifier(1), spread=1),
}


class SpyPool(PublicPool):
    """Writes down what is read of it."""

    def __getattribute__(self, name):
        seen.add(name)
        return super().__getattribute__(name)


class SpyRelease(ReleasedLabels):
    def __getattribute__(self, name):
        seen.add(name)
        return super().__getattribute__(name)


seen = set()


def points(name, m=40, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(m, 1 if name == "thresholds" else 2))


def answers_for(X, seed=0):
    labels = (X[:, 0] > 0).astype(np.int64)
    labels[np.random.default_rng(seed).random(len(labels)) < 0.15] = -1
    return labels


def released(rows, answers, kind=ReleasedLabels, classes=("no", "yes"), counts=False):
    rows = np.asarray(rows, dtype=np.int64)
    fields = {"sigma": 10.0, "noisy_counts": 50 + 30 * (2 * answers[rows] - 1)} if counts else {}
    return kind(queries=rows, labels=answers[rows], classes=classes, n_teachers=TEACHERS, **fields)


def walk(strategy, X, answers, *, batch=7, most=10**6, kind=ReleasedLabels, **fields):
    """Ask through the guard until nothing is proposed; return the rows and the walk."""
    classes, pool_kind = fields.pop("classes", ("no", "yes")), fields.pop("pool", PublicPool)
    pool = pool_kind(X=X, classes=classes, n_queries=fields.pop("n_queries", 20), random_state=3)
    selector, asked = CheckedSelector(strategy, pool), []
    while len(asked) < most and len(rows := selector.propose(min(batch, most - len(asked)))):
        asked += rows.tolist()
        selector.receive(released(asked, answers, kind, classes, **fields))
    return asked, selector


@pytest.mark.parametrize("name", ALL)
def test_it_sees_public_points_and_released_labels_only_and_walks_alike_on_the_same(name):
    X = points(name)
    seen.clear()
    settings = {"most": 20, "pool": SpyPool, "kind": SpyRelease, "counts": True}
    first, again = (walk(ALL[name], X, answers_for(X), **settings)[0] for _ in range(2))
    assert first == again
    assert "X" in seen
    read = {attribute for attribute in seen if not attribute.startswith("_")}
    assert read - {"certificate", "class_values"} <= PUBLIC_POOL | PUBLIC_RELEASE
    assert {
        attribute for attribute in seen if attribute.startswith("_") and attribute[1] != "_"
    } <= {"_check_rows", "_check_counts"}


@pytest.mark.parametrize("name", ALL)
def test_a_pool_is_exhausted_without_a_row_twice(name):
    X = points(name, m=16)
    asked, selector = walk(ALL[name], X, answers_for(X), batch=5)
    if not isinstance(ALL[name], DisagreementSampling):  # which may know enough before
        assert sorted(asked) == list(range(16))
    assert selector.propose(5).tolist() == []


@pytest.mark.parametrize("name", ALL)
def test_no_answer_is_no_reason_to_stop(name):
    X = points(name, m=30)
    asked, _ = walk(ALL[name], X, np.full(30, -1), most=20, batch=5)
    # whose version space says that the rest is of that class, too
    if name != "thresholds":
        assert len(asked) == 20


@pytest.mark.parametrize("name", ALL)
def test_rows_that_others_asked_are_not_asked_again(name):
    X = points(name, m=30)
    pool = PublicPool(X=X, classes=("no", "yes"), n_queries=10, random_state=0)
    selector = ALL[name].start(pool)
    selector.receive(released(np.arange(0, 30, 2), answers_for(X)))
    assert not set(selector.propose(30).tolist()) & set(range(0, 30, 2))


@pytest.mark.parametrize(
    "name", [name for name in ALL if not isinstance(ALL[name], DisagreementSampling)]
)
def test_frames_and_sparse_pools_are_walked_like_arrays(name):
    X = np.rint(2 * points(name))  # zeros for the sparse
    answers = answers_for(X)
    plain = walk(ALL[name], X, answers, most=25)[0]
    assert len(walk(ALL[name], sparse.csr_matrix(X), answers, most=25)[0]) == len(plain) == 25
    if name != "margin of a learner":
        assert walk(ALL[name], pd.DataFrame(X), answers, most=25)[0] == plain


@pytest.mark.parametrize("kind", [MarginSampling, EntropySampling, CommitteeSampling])
def test_three_classes_are_told_apart(kind):
    X = np.random.default_rng(1).normal(size=(300, 2))
    truth = np.digitize(X[:, 0], [-0.5, 0.5]).astype(np.int64)
    asked, _ = walk(kind(), X, truth, most=60, batch=10, classes=("a", "b", "c"))
    late = X[asked[20:], 0]
    gaps, others = (np.minimum(np.abs(x - 0.5), np.abs(x + 0.5)) for x in (late, X[:, 0]))
    assert np.median(gaps) < 0.6 * np.median(others)  # near the two edges


def test_noisy_counts_weigh_the_labels():
    X = np.linspace(-1, 1, 41).reshape(-1, 1)
    pool = PublicPool(X=X, classes=(0, 1), n_queries=10, random_state=0)
    labels = np.array([0, 1, 0, 1])

    def first(counts):
        selector = MarginSampling(LogisticRegression(C=1e4, max_iter=500), spread=1).start(pool)
        known = {"n_teachers": 100, "sigma": 10.0, "noisy_counts": np.array(counts)}
        selector.receive(ReleasedLabels([0, 5, 30, 40], labels, (0, 1), **known))
        return selector.propose(1)[0]

    # the doubtful answer gives way to the sure one
    assert first([0, 51, 0, 100]) > 30
    assert first([0, 100, 49, 100]) < 10


def test_a_learner_that_fails_on_the_pool_is_refused_before_anything_is_asked():
    colours = ["red", "green", "blue", "red"] * 10
    # a colour that the first answers may not hold
    frame = pd.DataFrame({"colour": [*colours, "grey", *colours, *colours]})
    pool = PublicPool(X=frame, classes=(0, 1), n_queries=5, random_state=0)
    encoded = make_pipeline(OneHotEncoder(), LogisticRegression())
    for learner, words in (
        (LogisticRegression(), "LogisticRegression fails on the public points"),
        (encoded, "unknown categories"),
    ):
        with pytest.raises(DataError, match=words):
            MarginSampling(learner, spread=1).start(pool)
