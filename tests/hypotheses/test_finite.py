"""A finite list of estimators against its definition."""

import json
from dataclasses import dataclass

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from secretballot.hypotheses import FiniteClass


@dataclass(frozen=True)
class Table:
    """Predicts by the first column, a place in a list of answers."""

    answers: tuple

    def predict(self, X):
        return np.array(self.answers)[np.asarray(X)[:, 0].astype(int)]


tables = st.lists(st.tuples(*[st.integers(0, 1)] * 4), min_size=1, max_size=9)


@st.composite
def samples(draw):
    n = draw(st.integers(1, 12))
    X = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    y = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    weights = draw(
        st.none() | st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0]), min_size=n, max_size=n)
    )
    return np.array(X, dtype=float)[:, None], np.array(y), weights


def mistakes(h, X, y, weights):
    return float(((h.predict(X) != y) * (1 if weights is None else np.asarray(weights))).sum())


@given(tables, samples())
@settings(max_examples=30, deadline=None)
def test_learner_and_dichotomies_are_the_definition(answers, sample):
    X, y, weights = sample
    family = FiniteClass([Table(row) for row in answers])
    counts = [mistakes(h, X, y, weights) for h in family.members]
    assert family.erm(X, y, weights) == family.members[int(np.argmin(counts))]
    dichotomies = family.dichotomies(X)
    listed = [tuple(h.predict(X)) for h in dichotomies]
    assert len(set(listed)) == len(listed) == len(dichotomies)
    assert listed == list(dict.fromkeys(tuple(h.predict(X)) for h in family.members))
    np.testing.assert_array_equal(
        dichotomies.errors(y), [(np.array(row) != y).sum() for row in listed]
    )


@given(tables, st.lists(st.tuples(samples(), st.sampled_from([0.0, 0.5, 1.0])), max_size=3))
@settings(max_examples=30, deadline=None)
def test_version_space_is_the_definition_after_several_restricts(answers, rounds):
    family = FiniteClass([Table(row) for row in answers])
    space, left = family.version_space(), list(family.members)
    for (X, y, weights), slack in rounds:
        counts = [mistakes(h, X, y, weights) for h in left]
        space = space.restrict(X, y, slack, weights)
        assert space.hypothesis() == left[int(np.argmin(counts))]
        left = [h for h, count in zip(left, counts, strict=True) if count - min(counts) <= slack]
    everywhere = np.arange(4.0)[:, None]
    labels = np.array([h.predict(everywhere) for h in left])
    np.testing.assert_array_equal(
        space.disagreement_region(everywhere), (labels != labels[0]).any(axis=0)
    )
    assert json.loads(json.dumps(space.describe()))["places"] == [h.place for h in left]


def test_fitted_estimators_with_classes_of_their_own():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 2))
    words = np.where(X[:, 0] > 0, "yes", "no")
    models = [
        DecisionTreeClassifier(max_depth=1).fit(X, words),
        LogisticRegression().fit(X[:, ::-1], words),
    ]
    family = FiniteClass(models, positive="yes")
    best = family.erm(X, words == "yes")
    assert best.estimator is models[0]
    assert best.describe() == {"place": 0, "estimator": "DecisionTreeClassifier"}
    assert family.version_space().restrict(X, words == "yes", 0).mask.tolist() == [True, False]
    assert family.disagreement_region(X).any()
