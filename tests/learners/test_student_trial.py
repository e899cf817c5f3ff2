"""Every learner tries its student before anything is reserved, and its teacher on all shards."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import secretballot as sb
from secretballot.teachers.ensemble import TeacherEnsemble
from sessions import in_rounds
from strict_learners import LearnsAndNeverPredicts, NeverLearns, NumbersAlone

RNG = np.random.default_rng(0)
X, X_PUBLIC = RNG.normal(size=(1500, 3)), RNG.normal(size=(200, 3))
NAMES = np.array(["no", "yes"])
Y = NAMES[(X[:, 0] > 0).astype(int)]
BUDGET = sb.PrivacyBudget(epsilon=4.0, delta=1e-5)
TEACHERS = {"n_teachers": 60}


class LabelsAlone(sb.PATEClassifier):
    """Of public features."""


LEARNERS = [
    (sb.PATEClassifier, {**TEACHERS, "n_queries": 100}),
    (sb.PATEClassifier, {**TEACHERS, "mechanism": "counts"}),
    (sb.PATEClassifier, {**TEACHERS, "n_queries": "estimate:epsilon=0.5"}),
    (in_rounds, {**TEACHERS, "n_queries": 60, "round_size": 30}),
    (LabelsAlone, TEACHERS),
    (sb.RecordMomentsClassifier, {}),
    (sb.RecordVotesClassifier, {}),
]


def fit(model, **more):
    points = {"public_features": True} if type(model) is LabelsAlone else {"X_public": X_PUBLIC}
    return model.fit(X, Y, classes=NAMES.tolist(), **points, **more)


OF_COUNTS = (sb.RecordMomentsClassifier, {}, sb.NoisyCountsClassifier(), "counts")


@pytest.mark.parametrize(
    ("learner", "settings", "student", "words"),
    [
        *((*one, NeverLearns(), r"RuntimeError: no .*Nothing was spent") for one in LEARNERS),
        (*LEARNERS[0], LearnsAndNeverPredicts(), r"RuntimeError: it .*Nothing was spent"),
        OF_COUNTS,
    ],
)
def test_a_student_that_cannot_work_costs_nothing(learner, settings, student, words):
    terms = {"unit": "label", "relation": "replace-one"} if learner is LabelsAlone else {}
    ledger = sb.Ledger.in_memory(dataset="people", budget=BUDGET, **terms)
    model = learner(student=student, **BUDGET.to_json(), ledger=ledger, **settings)
    with pytest.raises(sb.ParameterError, match=words):
        fit(model)
    assert ledger.history() == []
    assert not hasattr(model, "released_")


def test_a_release_that_is_stored_is_not_tried_again():
    ledger = sb.Ledger.in_memory(dataset="people", budget=BUDGET)
    settings = {**TEACHERS, "mechanism": "counts", "n_queries": 100}
    model = sb.PATEClassifier(**BUDGET.to_json(), ledger=ledger, **settings)
    fit(model, request="one")
    # it is about labels that were paid for long ago, so the release's own sentence is the right one
    with pytest.raises(sb.DataError, match=r"end the program .*stays paid for"):
        fit(model.set_params(student=LearnsAndNeverPredicts()), request="one")


def failed_shards(teacher, monkeypatch):
    """Return how many shards became fixed votes, where every second one lacks the first class."""
    found = []
    first = TeacherEnsemble.fit

    def noted(*given, **more):
        found.append(first(*given, **more))
        return found[-1]

    monkeypatch.setattr(TeacherEnsemble, "fit", noted)
    y = np.arange(len(X)) // 2 % 3
    shards = np.arange(len(X)) % 20
    y[(shards % 2 == 0) & (y == 0)] = 1
    monkeypatch.setattr("secretballot.learners.table.assign_shards", lambda *_, **__: shards)
    sb.PATEClassifier(teacher, n_teachers=20, **BUDGET.to_json(), n_queries=20).fit(
        X, np.array(["a", "b", "c"])[y], X_public=X_PUBLIC, classes=["a", "b", "c"]
    )
    (ensemble,) = found
    return sum(one is None for one in ensemble._teachers)


def test_a_teacher_of_numbers_works_on_shards_without_a_class(monkeypatch):
    assert failed_shards(NumbersAlone(), monkeypatch) == 0
    assert failed_shards(LogisticRegression(max_iter=1000), monkeypatch) == 0
