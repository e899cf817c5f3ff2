"""Learners that want the classes as 0, 1, ...: inside of a NumberedClassesClassifier."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import check_estimator

import secretballot as sb
from secretballot.students import NumberedClassesClassifier, fit_student
from strict_learners import ForgetsNames, NumbersAlone

X = np.random.default_rng(0).normal(size=(300, 3)).astype(np.float32).astype(float)
ORDER = (X[:, 0] > 0).astype(int) + (X[:, 0] > 1)


def released(classes, labels=None):
    return sb.ReleasedLabels(np.arange(300), ORDER if labels is None else labels, classes, 50)


@pytest.mark.parametrize("learner", [NumbersAlone(), ForgetsNames()])
@pytest.mark.parametrize("classes", [("no", "some", "all"), (3, 5, 9), (1.0, 2.0, 3.0)])
def test_any_classes_reach_a_learner_of_numbers_and_come_back(learner, classes):
    student = fit_student(learner, X, released(classes), random_state=0)
    plain = fit_student(LogisticRegression(max_iter=1000), X, released(classes), random_state=0)
    assert np.mean(student.predict(X) == plain.predict(X)) > 0.98
    assert student.predict(X).dtype == plain.predict(X).dtype
    assert sorted(student.classes_.tolist()) == sorted(classes)
    assert not hasattr(learner, "coef_")


def test_a_class_that_was_never_released_leaves_no_gap_and_the_first_attempt_no_trace():
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    learner = make_pipeline(StandardScaler(), NumbersAlone())
    student = fit_student(learner, X, released((0, 1, 2), ORDER // 2 * 2))
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002
    assert student.classes_.tolist() == [0, 2]
    assert set(student.predict(X).tolist()) == {0, 2}


def test_probabilities_are_there_where_the_learner_has_some():
    student = NumberedClassesClassifier(LogisticRegression())
    assert not hasattr(NumberedClassesClassifier(LinearSVC()), "predict_proba")
    with pytest.raises(NotFittedError):
        student.predict(X)
    student.fit(X, np.array(["no", "some", "all"])[ORDER])
    assert student.classes_.tolist() == ["all", "no", "some"]
    assert np.allclose(student.predict_proba(X).sum(axis=1), 1)
    again = pickle.loads(pickle.dumps(clone(student).fit(X, ORDER)))
    assert (again.predict(X) == clone(student).fit(X, ORDER).predict(X)).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_finds_nothing_wrong():
    check_estimator(NumberedClassesClassifier(LogisticRegression()))
