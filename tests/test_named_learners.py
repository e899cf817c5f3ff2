import numpy as np
import pytest

from ensembles import ensemble_of
from secretballot.exceptions import ParameterError
from secretballot.named_learners import CLASSIFIERS, teacher_by_name


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_named_learner_learns_on_a_shard_of_146_records(name):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(292, 5))
    y = (X[:, 0] > 0).astype(int)
    ensemble = ensemble_of(
        teacher_by_name(name), X, y, np.arange(292) % 2, n_teachers=2, n_classes=2
    )
    votes = ensemble.vote_counts(X)._unseal()[0]
    assert np.mean(votes.argmax(axis=1) == y) > 0.7
    assert all(model is not None for model in ensemble._teachers)


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("svm", "must be one of logistic, tree"),
        (["tree"], "must be one of"),
        ("nowhere.module:Class", r"ModuleNotFoundError"),
        ("sklearn.dummy:Nothing", "AttributeError"),
        ("sklearn.pipeline:Pipeline", "TypeError"),
        (":Class", "cannot be imported"),
        ("sklearn.preprocessing:StandardScaler", "instance with fit, predict"),
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
        ("naive-bayes:var_smoothing=.5", {"var_smoothing": 0.5}),
        ("tree: max_depth = 2 , criterion = entropy", {"max_depth": 2, "criterion": "entropy"}),
    ],
)
def test_settings_stand_after_the_name(name, settings):
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    learner = teacher_by_name(name)
    assert np.array_equal(np.random.get_state()[1], state)  # noqa: NPY002
    assert type(learner) is type(teacher_by_name(name.partition(":")[0]))
    for setting, value in settings.items():
        found = learner.get_params()[setting]
        assert (found, type(found)) == (value, type(value))
