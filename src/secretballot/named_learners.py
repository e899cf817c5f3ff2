"""Learners by name, with settings that suit shards of some hundred records.

Their columns have one scale. The settings were chosen on training rows of UCI Adult alone: 164
shards of 146 rows, voting on other training rows. Others may be given after the name:
"boosting:max_depth=3,class_weight=balanced".
"""

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from secretballot._validation import Json, JsonView, named, refusal, shown, shown_kind

#: Returns a new, unfitted learner for a number of classes; None leaves the choice to the caller.
Maker = Callable[[int], Any]


def _sklearn(path: str, *, scaler: JsonView | None = None, **settings: Any) -> Maker:
    """Return what makes a learner of scikit-learn, behind a `StandardScaler` where that has
    settings."""

    def make(n_classes: int) -> Any:
        module, _, name = path.rpartition(".")
        learner = getattr(importlib.import_module(f"sklearn.{module}"), name)(**settings)
        if scaler is None:
            return learner
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        return make_pipeline(StandardScaler(**scaler), learner)

    return make


def _logistic(n_classes: int) -> Any:
    # Hardly regularised, since a vote averages variance away but not bias. Except for the
    # intercept of two classes, which liblinear shrinks too: a free one follows the base rate of
    # some dozen records, and the vote falls to the majority class.
    binary = {"C": 10.0, "solver": "liblinear"}
    settings = binary if n_classes <= 2 else {"C": 100.0, "max_iter": 1000}
    return _sklearn("linear_model.LogisticRegression", **settings)(n_classes)


_FOREST: Json = {"n_estimators": 30, "min_samples_leaf": 2, "max_features": 0.3}
# No early stopping: it would set aside a tenth of a small shard.
_BOOSTING: Json = {"max_iter": 50, "min_samples_leaf": 5, "early_stopping": False}
# Not centred, which distances do not feel, so that sparse tables stay sparse.
_NEIGHBOURS: Json = {"scaler": {"with_mean": False}, "n_neighbors": 5}

CLASSIFIERS: dict[str, Maker] = {
    "logistic": _logistic,
    # Fully grown: the vote averages out what a single tree overfits.
    "tree": _sklearn("tree.DecisionTreeClassifier"),
    "forest": _sklearn("ensemble.RandomForestClassifier", **_FOREST),
    "boosting": _sklearn("ensemble.HistGradientBoostingClassifier", **_BOOSTING),
    # Rare categories have next to no variance in a small shard; without this much they would
    # outvote all others.
    "naive-bayes": _sklearn("naive_bayes.GaussianNB", var_smoothing=0.3),
    "knn": _sklearn("neighbors.KNeighborsClassifier", **_NEIGHBOURS),
}
#: Of numbers, with the settings of the classifiers of the same name.
REGRESSORS: dict[str, Maker] = {
    "ridge": _sklearn("linear_model.Ridge", scaler={}),
    "tree": _sklearn("tree.DecisionTreeRegressor"),
    "forest": _sklearn("ensemble.RandomForestRegressor", **_FOREST),
    "boosting": _sklearn("ensemble.HistGradientBoostingRegressor", **_BOOSTING),
    "knn": _sklearn("neighbors.KNeighborsRegressor", **_NEIGHBOURS),
}


def teacher_by_name(name: str, n_classes: int = 2) -> Any:
    """Return a new, unfitted learner.

    Parameters
    ----------
    name : str
        One of `CLASSIFIERS`, with settings or without ("tree:max_depth=3"), or
        "package.module:Class" for a class with scikit-learn's fit, predict and get_params that can
        be made without arguments.
    n_classes : int
        Number of classes that it will meet; 0 for a learner of numbers, one of `REGRESSORS`.

    Raises
    ------
    ParameterError
        If the name is unknown, a setting is none of that learner, or the class cannot be imported,
        made or used as a classifier.
    """
    return learner_by_name(name, CLASSIFIERS if n_classes else REGRESSORS, "teacher", n_classes)


def learner_by_name(
    name: str, makers: Mapping[str, Maker], parameter: str, n_classes: int = 2
) -> Any:
    """Return a new, unfitted learner, as `teacher_by_name` does.

    Parameters
    ----------
    name : str
    makers : mapping of str to Maker
        What makes the learners that have names.
    parameter : str
        What messages call it.
    n_classes : int
    """
    head, colon, _ = name.partition(":") if isinstance(name, str) else ("", "", "")
    if head in makers:
        learner = makers[head](n_classes)
        # settings of a pipeline are those of its last step
        inner = learner.steps[-1][1] if hasattr(learner, "steps") else learner
        known = [] if inner is None else sorted(set(inner.get_params(deep=False)) - _NOT_FOR_NAMES)
        _, settings = named(parameter, name, {head: known})
        for key, value in settings.items():
            inner.set_params(**{key: _CONSTANTS.get(str(value).lower(), value)})
        return learner
    if colon and imports_a_class(name):
        return _imported_learner(name, parameter)
    raise refusal(
        parameter,
        f" is {shown(name)}; it must be one of {', '.join(makers)}, or package.module:Class.",
    )


def imports_a_class(name: str) -> bool:
    """Return whether a learner's name has code imported, rather than naming one of ours."""
    # the last two are students, and no teachers
    ours = (*CLASSIFIERS, *REGRESSORS, "auto", "boosted")
    return ":" in name and name.partition(":")[0] not in ours


#: Seeds follow from the run's, workers are the run's, and nothing of a fit is printed or carried
#: over to another; no word can be a learner.
_NOT_FOR_NAMES = frozenset({"base", "n_jobs", "random_state", "verbose", "warm_start"})
#: Words that are no words.
_CONSTANTS: Json = {"true": True, "false": False, "none": None}


def _imported_learner(path: str, parameter: str) -> Any:
    """Return a new learner of the class at "package.module:Class"."""
    # Importing runs code of others, which may raise anything; the message says no more than its
    # type, since what it says may quote data that the code has read.
    module, _, attribute = path.partition(":")
    try:
        learner = getattr(importlib.import_module(module), attribute)()
    except (Exception, SystemExit) as error:
        raise refusal(
            parameter,
            f" {path!r} cannot be imported and made without arguments"
            f" ({type(error).__name__}); name an installed class as package.module:Class, or say"
            " with PYTHONPATH where its module lies.",
        ) from None
    check_learner(parameter, learner)
    return learner


def check_learner(parameter: str, learner: Any) -> None:
    """Refuse what is no instance with scikit-learn's methods.

    Records in its place, say, would be quoted by what refuses to clone them.

    Raises
    ------
    ParameterError
    """
    needed = ("fit", "predict", "get_params")
    if isinstance(learner, type) or not all(hasattr(learner, name) for name in needed):
        raise refusal(
            parameter,
            f" is {shown_kind(learner)}; give a name, or an instance with fit, predict and"
            " get_params, as scikit-learn's learners have.",
        )
