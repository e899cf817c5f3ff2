"""VotingStudent: the votes of AdaBoost, and their shares."""

import itertools

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from secretballot.students import VotingStudent


def _rings(n, classes, seed=0):
    """Return points whose class is how far out they are: no stump knows it, a vote of stumps
    does."""
    X = np.random.default_rng(seed).uniform(-1, 1, (n, 2))
    return X, np.minimum((np.abs(X).max(axis=1) * classes).astype(int), classes - 1)


@pytest.mark.filterwarnings("ignore:divide by zero")  # AdaBoost's own, at weights of zero
@parametrize_with_checks([VotingStudent(n_estimators=3, random_state=0)])
def test_follows_the_conventions_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    ("classes", "base"), [(2, None), (2, LinearSVC()), (3, GaussianNB())], ids=str
)
def test_probabilities_are_shares_of_the_vote(classes, base):
    X, y = _rings(400, classes)
    student = VotingStudent(base, n_estimators=20, random_state=0).fit(X, y)
    points = np.random.default_rng(2).uniform(-1, 1, (500, 2))
    shares = np.zeros((500, classes))
    for one, weight in zip(student.estimators_, student.estimator_weights_, strict=False):
        shares += weight * (one.predict(points)[:, None] == np.arange(classes))
    shares /= shares.sum(axis=1, keepdims=True)
    assert np.allclose(student.predict_proba(points), shares)
    assert np.array_equal(student.predict(points), shares.argmax(axis=1))


def test_labels_no_better_than_a_guess_yield_a_student_too():
    X, y = [[0.0], [1.0], [0.0], [1.0]], ["a", "a", "b", "b"]
    student = VotingStudent(random_state=0).fit(X, y)
    assert student.predict_proba(X).tolist() == [[1.0, 0.0]] * 4
    assert set(student.predict(X)) == {"a"}
    with pytest.raises(ValueError, match="NaN"):
        student.fit([[np.nan]], ["a"])


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
