import numpy as np
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyClassifier

from secretballot.ensemble import TeacherEnsemble, teacher_by_name
from secretballot.exceptions import ParameterError
from secretballot.named_learners import TEACHER_NAMES


@pytest.mark.parametrize("name", TEACHER_NAMES)
def test_named_learner_learns_on_a_shard_of_146_records(name):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(292, 5))
    y = (X[:, 0] > 0).astype(int)
    ensemble = TeacherEnsemble.fit(
        teacher_by_name(name), X, y, np.arange(292) % 2, n_teachers=2, n_classes=2
    )
    votes = ensemble.vote_counts(X).open_at_the_door()
    assert np.mean(votes.argmax(axis=1) == y) > 0.7
    assert all(model is not None for model in ensemble._teachers)


def test_names_are_those_of_the_command_line():
    assert set(TEACHER_NAMES) == {"logistic", "tree", "forest", "boosting", "naive-bayes", "knn"}


def test_every_call_makes_a_new_learner():
    assert teacher_by_name("tree") is not teacher_by_name("tree")


def test_class_path_is_imported():
    learner = teacher_by_name("sklearn.dummy:DummyClassifier")
    assert isinstance(clone(learner), DummyClassifier)


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("svm", "must be one of logistic, tree"),
        ("", "must be one of"),
        (None, "must be one of"),
        ("nowhere.module:Class", r"ModuleNotFoundError"),
        ("sklearn.dummy:Nothing", "AttributeError"),
        ("sklearn.pipeline:Pipeline", "TypeError"),
        ("sklearn.dummy:", "cannot be imported"),
        (":Class", "cannot be imported"),
        ("sklearn.preprocessing:StandardScaler", "must have fit, predict"),
    ],
)
def test_unknown_learner_is_refused(name, match):
    with pytest.raises(ParameterError, match=match):
        teacher_by_name(name)
