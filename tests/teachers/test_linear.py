"""The stacked product casts exactly the votes of the teachers' own predict."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.linear_model import (
    LogisticRegression,
    LogisticRegressionCV,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from ensembles import ensemble_of
from secretballot.teachers import TeacherEnsemble
from secretballot.teachers.ensemble import _LinearStack

K = 12


class OwnLogistic(LogisticRegression):
    """A subclass may predict as it likes, so it is asked itself."""

    def predict(self, X):
        return 1 - super().predict(X)


def one_by_one(ensemble, X):
    """Votes with every teacher asked by its own predict."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_LinearStack, "takes", lambda *_: False)
        return ensemble.vote_counts(X)._unseal()[0]


def assert_as_one_by_one(ensemble, X):
    np.testing.assert_array_equal(ensemble.vote_counts(X)._unseal()[0], one_by_one(ensemble, X))


def assert_same_votes(ensemble, X, *, stacked=True):
    assert any(stack.takes(X) for stack in ensemble._stacks) == stacked
    assert_as_one_by_one(ensemble, X)


def fitted(learner, X, y, n_classes):
    return ensemble_of(learner, X, y, np.arange(len(y)) % K, n_teachers=K, n_classes=n_classes)


def sample(n_classes, n=360, width=6):
    rng = np.random.default_rng(n_classes)
    X = rng.normal(size=(n, width)) + 3
    y = np.digitize(X[:, 0] + rng.normal(size=n), np.linspace(2, 4, n_classes - 1))
    return X, y, rng.normal(size=(500, width)) + 3


LINEAR = [
    LogisticRegression(),
    LogisticRegressionCV(Cs=2, cv=2),
    RidgeClassifier(),
    SGDClassifier(),
    SGDClassifier(fit_intercept=False),
    LinearSVC(fit_intercept=False),
]


@pytest.mark.filterwarnings("ignore:.*(l1_ratios|use_legacy_attributes|n_alphas).*:FutureWarning")
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize(
    ("learner", "form"),
    [(one, np.asarray) for one in LINEAR]
    + [(LogisticRegression(), form) for form in (sp.csr_matrix, sp.csr_array)],
    ids=str,
)
def test_stacked_votes_equal_the_teachers_own(learner, form, n_classes):
    X, y, points = sample(n_classes)
    if form is not np.asarray:
        X, points = X * (X > 3), points * (points > 3)
    assert_same_votes(fitted(learner, form(X), y, n_classes), form(points))


def test_teachers_with_fewer_classes_vote_for_those():
    X, y, points = sample(4)
    y = np.where(np.arange(360) % K < 6, y, np.where(y > 1, 3, 1))
    ensemble = fitted(LogisticRegression(), X, y, 4)
    assert sorted(len(stack.models) for stack in ensemble._stacks) == [6, 6]
    assert_same_votes(ensemble, points)


@pytest.mark.parametrize(
    ("learner", "points"),
    [
        (OwnLogistic(), np.ones((5, 6))),
        (make_pipeline(StandardScaler(), LogisticRegression()), np.ones((5, 6))),
        (LogisticRegression(), np.ones((5, 7))),
        (LogisticRegression(), np.ones((5, 6), dtype=object)),
        (LogisticRegression(), np.ones((5, 6), dtype=np.float32)),
        (LogisticRegression(), pd.DataFrame(np.ones((5, 6)))),
    ],
    ids=["subclass", "pipeline", "other width", "objects", "single precision", "frame"],
)
def test_what_is_not_surely_linear_is_asked_itself(learner, points):
    X, y, _ = sample(2)
    assert_same_votes(fitted(learner, X, y, 2), points, stacked=False)


def test_points_that_are_not_finite_are_asked_of_every_teacher():
    X, y, _ = sample(2)
    ensemble = fitted(LogisticRegression(), X, y, 2)
    for odd in (np.nan, np.inf):
        points = np.array([[odd] * 6, [1.0] * 6])
        # predict refuses such points, so all vote their fixed class
        np.testing.assert_array_equal(ensemble.vote_counts(points)._unseal()[0], K // 2)


def _planted(weights, bias, classes):
    """An ensemble of logistic teachers with given coefficients."""
    teachers = []
    for coef, intercept in zip(weights, bias, strict=True):
        model = LogisticRegression()
        model.coef_, model.intercept_ = np.atleast_2d(coef), np.atleast_1d(intercept)
        model.classes_, model.n_features_in_ = np.arange(classes), model.coef_.shape[1]
        teachers.append(model)
    return TeacherEnsemble(teachers, classes)


# Few distinct numbers, so that sums cancel, and some that do not add exactly, so that rounding
# decides the sign.
awkward = st.sampled_from(
    [0.0, 0.1, 0.2, 0.3, -0.1, -0.3, 0.7, 1.0, -1.0, 1e16, -1e16, 1e-17, 1e-300, -1e-300, 1e300]
)


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_ties_and_cancellations_are_decided_by_the_teachers(data):
    classes = data.draw(st.sampled_from([2, 3]))
    width = data.draw(st.integers(1, 5))
    decisions = 1 if classes == 2 else classes
    tables = hnp.arrays(np.float64, st.tuples(st.integers(1, 6), st.just(width)), elements=awkward)
    weights = data.draw(hnp.arrays(np.float64, (4, decisions, width), elements=awkward))
    bias = data.draw(hnp.arrays(np.float64, (4, decisions), elements=awkward))
    points = data.draw(tables)
    ensemble = _planted(weights, bias, classes)
    assert_as_one_by_one(ensemble, points)


@pytest.mark.parametrize("classes", [2, 3])
def test_decisions_that_only_rounding_decides_are_left_to_the_teachers(classes):
    rng = np.random.default_rng(4)
    decisions, width = 1 if classes == 2 else classes, 105
    points = rng.normal(size=(40, width))
    weights = rng.normal(size=(40, decisions, width))
    # Teacher k's decision on point k cancels to nothing but rounding error.
    lead = weights[:, 0] - (0 if classes == 2 else weights[:, 1])
    rest = np.einsum("kj,kj->k", lead[:, 1:].astype(float), points[:, 1:].astype(float))
    weights[:, 0, 0] += -rest / points[:, 0] - lead[:, 0]
    ensemble = _planted(weights, np.zeros((40, decisions)), classes)
    assert_as_one_by_one(ensemble, points)


def test_teacher_that_fails_when_asked_itself_votes_its_fixed_class_and_leaves_the_others_alone():
    ensemble = _planted(np.array([[1.0, -1.0], [1.0, 2.0]]), np.zeros(2), 2)
    points = np.array([[0.1, 0.1], [0.3, 0.1]])
    # predict refuses two columns; the tie makes the stack ask
    ensemble._teachers[0].n_features_in_ = 3
    np.testing.assert_array_equal(ensemble.vote_counts(points)._unseal()[0], [[1, 1], [1, 1]])


def test_no_record_decides_whether_a_warning_of_the_program_is_shown_again():
    """A near tie is asked of its teacher, in isolation, at whose end Python forgets what it
    showed."""
    X, y = (
        np.tile([[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [-1.0, 0.0]], (20, 1)),
        np.tile([1, 1, 0, 0], 20),
    )
    X[1] = [3.0, 0.0]
    shown = []
    for first in (1.0, 3.0):
        X[0, 0] = first
        fitted = ensemble_of(RidgeClassifier(), X, y, np.arange(80) % 2, n_teachers=2, n_classes=2)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            for _ in range(3):
                warnings.warn("public", UserWarning, stacklevel=1)
                fitted.vote_counts(np.zeros((1, 2)))
        shown.append(len(caught))
    assert shown[0] == shown[1]
