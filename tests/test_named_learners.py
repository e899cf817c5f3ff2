import numpy as np
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyClassifier

from secretballot.ensemble import TeacherEnsemble, teacher_by_name
from secretballot.exceptions import ParameterError
from secretballot.named_learners import TEACHER_NAMES, imports_a_class


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


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        (
            "boosting:max_depth=3,class_weight=balanced",
            {"max_depth": 3, "class_weight": "balanced", "max_iter": 50},
        ),
        ("tree:max_depth=None,min_samples_leaf=0.1", {"max_depth": None, "min_samples_leaf": 0.1}),
        ("logistic:C=1e-2,fit_intercept=false", {"C": 0.01, "fit_intercept": False}),
        ("forest:n_estimators=3,bootstrap=True", {"n_estimators": 3, "bootstrap": True}),
        ("naive-bayes:var_smoothing=.5", {"var_smoothing": 0.5}),
        ("tree: max_depth = 2 , criterion = entropy", {"max_depth": 2, "criterion": "entropy"}),
    ],
)
def test_settings_stand_after_the_name(name, settings):
    learner = teacher_by_name(name)
    assert type(learner) is type(teacher_by_name(name.partition(":")[0]))
    for setting, value in settings.items():
        found = learner.get_params()[setting]
        assert (found, type(found)) == (value, type(value))


def test_settings_of_a_pipeline_are_those_of_its_last_step():
    learner = teacher_by_name("knn:n_neighbors=3,weights=distance")
    assert learner.steps[-1][1].n_neighbors == 3
    assert learner.steps[0][1].with_mean is False


def test_settings_hold_for_many_classes_too():
    learner = teacher_by_name("logistic:C=0.5", n_classes=4)
    assert (learner.C, learner.solver, learner.max_iter) == (0.5, "lbfgs", 1000)
    with pytest.raises(ParameterError, match="LogisticRegression does not take solver=liblinear"):
        teacher_by_name("logistic:solver=liblinear", n_classes=4)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ("depth=3", r"no setting 'depth'; it has ccp_alpha, .*max_depth.*, splitter\.$"),
        ("max_depth=-3", r"does not take max_depth=-3; see what scikit-learn says"),
        ("max_depth=3,criterion=best", r"does not take criterion=best;"),
        ("max_depth=3,max_depth=4", "says max_depth twice"),
        ("max_depth=", "is no setting; write name=value"),
        ("max_depth", "is no setting; write name=value"),
        ("", "is no setting; write name=value"),
        ("max_depth=3,", "is no setting; write name=value"),
        ("max_depth=3;criterion=gini", "is no setting; write name=value"),
        ("max_depth=__import__('os')", "cannot be .*give a number, True, False, None or a word"),
        ("max_depth=1e999", "give a number, True, False, None or a word"),
        ("max_depth=${HOME}", "give a number, True, False, None or a word"),
        ("class_weight={0:1}", "give a number, True, False, None or a word"),
        # the seed is the run's, and a learner prints nothing
        ("random_state=3", "no setting 'random_state'"),
        ("verbose=1", "no setting 'verbose'"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_in_our_words(settings, match):
    with pytest.raises(ParameterError, match=match) as refused:
        teacher_by_name(f"tree:{settings}")
    assert str(refused.value).startswith("teacher is ")
    assert "InvalidParameterError" not in str(refused.value)
    # no chain leads to the words of scikit-learn
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None


def test_what_is_tried_draws_from_nobody_elses_generator():
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    teacher_by_name("forest:n_estimators=2")
    assert np.array_equal(np.random.get_state()[1], state)  # noqa: NPY002


def test_only_foreign_names_import_a_class():
    assert imports_a_class("sklearn.dummy:DummyClassifier")
    assert imports_a_class("mymodel:Class")
    for name in ("tree", "tree:max_depth=3", "boosted:n_rounds=5", "auto"):
        assert not imports_a_class(name)
