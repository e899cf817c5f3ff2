"""VotingStudent: votes as AdaBoost does, and bears what AdaBoost does not."""

import itertools

import numpy as np
import pytest
from scipy import sparse
from sklearn.ensemble import AdaBoostClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from secretballot.students import VotingStudent


def _rings(n, classes, seed=0):
    """Return points whose class is how far out they are: no stump knows it, a vote of stumps
    does."""
    X = np.random.default_rng(seed).uniform(-1, 1, (n, 2))
    return X, np.minimum((np.abs(X).max(axis=1) * classes).astype(int), classes - 1)


@parametrize_with_checks(
    [VotingStudent(n_rounds=3, random_state=0), VotingStudent(GaussianNB(), 2)]
)
def test_follows_the_conventions_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize(("classes", "base"), [(2, None), (3, GaussianNB())])
def test_votes_as_adaboost_does(classes, base):
    X, y = _rings(400, classes)
    student = VotingStudent(base, 20, random_state=0).fit(X, y)
    peer = AdaBoostClassifier(base, n_estimators=20, random_state=0).fit(X, y)
    points = np.random.default_rng(2).uniform(-1, 1, (500, 2))
    assert len(student.hypotheses_) == len(peer.estimators_) <= 20
    assert (student.weights_ > 0).all()
    assert np.array_equal(student.predict(points), peer.predict(points))
    # the definition: each hypothesis gives its weight to one class
    shares = np.zeros((500, classes))
    for hypothesis, weight in zip(student.hypotheses_, student.weights_, strict=True):
        shares += weight * (hypothesis.predict(points)[:, None] == np.arange(classes))
    assert np.allclose(student.predict_proba(points), shares / shares.sum(axis=1, keepdims=True))


def test_a_hypothesis_without_error_is_not_outvoted():
    class Late(DecisionTreeClassifier):
        """Wrong on one point until its weight makes up for it: perfect from the second round on."""

        def fit(self, X, y, sample_weight=None):
            self.max_depth = 5 if sample_weight.max() > 2 / len(y) else 1
            return super().fit(X, y, sample_weight=sample_weight)

    X, y = np.arange(20.0)[:, None], (np.arange(20) % 20 >= 10).astype(int)
    y[3] = 1
    student = VotingStudent(Late(), 10, random_state=0).fit(X, y)
    assert len(student.hypotheses_) == 1
    assert student.score(X, y) == 1
    # the trap is real
    assert AdaBoostClassifier(Late(), n_estimators=10, random_state=0).fit(X, y).score(X, y) < 1


def test_takes_sparse_points_and_learners_without_probabilities():
    X, y = _rings(300, 2)
    student, thin = VotingStudent(n_rounds=9, random_state=0), sparse.csr_array(X)
    assert np.array_equal(student.fit(X, y).predict(X), student.fit(thin, y).predict(thin))
    assert VotingStudent(LinearSVC(), 5).fit(X, y).predict_proba(X).shape == (300, 2)


def _dimension(sets, n_points):
    """Return the VC dimension of sets of points, each a bit mask."""
    for size in range(n_points, 0, -1):
        for points in itertools.combinations(range(n_points), size):
            mask = sum(1 << point for point in points)
            if len({chosen & mask for chosen in sets}) == 2**size:
                return size
    return 0


def test_the_printed_dimension_of_votes_is_too_small():
    # what lines cut out of five points, three of them on a line and no other three
    lines = {0b00111, *(1 << a for a in range(5)), 0}
    lines |= {1 << a | 1 << b for a, b in itertools.combinations(range(5), 2) if b > 2}
    assert _dimension(lines, 5) == 2
    votes = {a | b for a in lines for b in lines}  # two votes, ties to class 1
    assert _dimension(votes, 5) == 5  # printed: at most K d = 4
