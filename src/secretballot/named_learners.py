"""Learners by name, with settings that suit shards of some hundred records.

Their columns have one scale. The settings were chosen on training rows of UCI Adult alone: 164
shards of 146 rows, voting on other training rows. Others may be given after the name:
"boosting:max_depth=3,class_weight=balanced".
"""

import importlib
import math
import re
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from secretballot._validation import shown
from secretballot.exceptions import Parameter, ParameterError

#: Names of students that are no teachers.
STUDENTS_ALONE = ("auto", "boosted")


def teacher_by_name(name: str, n_classes: int = 2) -> Any:
    """Return a new, unfitted learner.

    Parameters
    ----------
    name : str
        One of `TEACHER_NAMES`, with settings or without ("tree:max_depth=3"), or
        "package.module:Class" for a class with scikit-learn's fit, predict and get_params that can
        be made without arguments.
    n_classes : int
        Number of classes that it will meet; "logistic" differs for two and for more.

    Raises
    ------
    ParameterError
        If the name is unknown, a setting is none of that learner or is not one that it takes, or
        the class cannot be imported, made or used as a classifier.
    """
    if isinstance(name, str):
        head, colon, settings = name.partition(":")
        if head in _MAKERS:
            several = head == "logistic" and n_classes > 2
            learner = _multinomial_teacher() if several else _MAKERS[head]()
            return with_settings(learner, name, settings, n_classes) if colon else learner
        if colon:
            return _imported_learner(name)
    raise ParameterError(
        Parameter("teacher"),
        f" is {shown(name)}; it must be one of {', '.join(TEACHER_NAMES)}, or"
        " package.module:Class.",
    )


def regressor_by_name(name: str) -> Any:
    """Return a new, unfitted learner of numbers.

    Parameters
    ----------
    name : str
        One of `REGRESSOR_NAMES`, with settings or without, or "package.module:Class", as for
        `teacher_by_name`.

    Raises
    ------
    ParameterError
        As for `teacher_by_name`.
    """
    if isinstance(name, str):
        head, colon, settings = name.partition(":")
        if head in _REGRESSORS:
            learner = _REGRESSORS[head]()
            return with_settings(learner, name, settings) if colon else learner
        if colon and head not in _MAKERS:
            return _imported_learner(name)
    raise ParameterError(
        Parameter("teacher"),
        f" is {shown(name)}; of numbers it must be one of {', '.join(REGRESSOR_NAMES)}, or"
        " package.module:Class.",
    )


def imports_a_class(name: str) -> bool:
    """Return whether a learner's name has code imported, rather than naming one of ours."""
    ours = (*TEACHER_NAMES, *REGRESSOR_NAMES, *STUDENTS_ALONE)
    return ":" in name and name.partition(":")[0] not in ours


def with_settings(learner: Any, name: str, text: str, n_classes: int = 2) -> Any:
    """Return a learner with settings as they stand after its name: ``max_depth=3,criterion=gini``.

    Values are integers, decimal numbers, True, False, None or words. A setting of a pipeline is one
    of its last step.

    Parameters
    ----------
    learner : classifier
        New and unfitted; it is changed.
    name : str
        The whole name, for messages.
    text : str
        What follows the colon.
    n_classes : int
        Number of classes that it will meet.

    Raises
    ------
    ParameterError
        In the name of the teacher: if the text is no such list, a setting is not one of the
        learner, or the learner cannot learn with it from points that are made here.
    """
    inner = learner.steps[-1][1] if hasattr(learner, "steps") else learner
    known = sorted(set(inner.get_params(deep=False)) - _NOT_FOR_NAMES)
    settings = _settings_of(name, text)
    unknown = [setting for setting in settings if setting not in known]
    if unknown:
        raise ParameterError(
            Parameter("teacher"),
            f" is {shown(name)}, and that learner has no setting {shown(unknown[0])}; it has"
            f" {', '.join(known)}.",
        )
    # tried on points that are made here, before the learner meets private ones
    refused = _refused_settings(inner, settings, n_classes)
    if refused:
        raise ParameterError(
            Parameter("teacher"),
            f" is {shown(name)}, and {type(inner).__name__} does not take {refused}; see what"
            " scikit-learn says of its settings.",
        )
    inner.set_params(**settings)
    return learner


def refused_setting(error: BaseException) -> str | None:
    """Return in words which setting scikit-learn's validation refused; None for any other error.

    Its own words differ between its versions, and go on about types.
    """
    if type(error).__name__ != "InvalidParameterError":
        return None
    found = _INVALID.match(str(error))
    if found is None:
        return "one of its settings cannot be"
    return f"{found[2]} does not take its setting {found[1]}"


_INVALID = re.compile(r"The '(\w+)' parameter of (\w+) must be")
#: Seeds follow from the run's, workers are the run's, and nothing of a fit is printed or carried
#: over to another; no word can be a learner.
_NOT_FOR_NAMES = frozenset({"base", "n_jobs", "random_state", "verbose", "warm_start"})
_SETTING = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*([^\s=,]+)\s*", re.ASCII)
_INTEGER = re.compile(r"[+-]?\d{1,18}", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_WORD = re.compile(r"[A-Za-z][\w.-]*", re.ASCII)
_CONSTANTS = {"true": True, "false": False, "none": None}


def _settings_of(name: str, text: str) -> dict[str, Any]:
    """Return settings by name from their text, each once."""
    settings: dict[str, Any] = {}
    for part in text.split(","):
        found = _SETTING.fullmatch(part)
        if found is None:
            raise ParameterError(
                Parameter("teacher"),
                f" is {shown(name)}, and {shown(part.strip())} is no setting; write"
                " name=value,name=value after the colon.",
            )
        if found[1] in settings:
            raise ParameterError(
                Parameter("teacher"),
                f" is {shown(name)}, which says {found[1]} twice; say it once.",
            )
        settings[found[1]] = _value_of(name, *found.groups())
    return settings


def _value_of(name: str, setting: str, text: str) -> int | float | str | bool | None:
    """Return the value that a text stands for: a number, a constant or a word."""
    if _INTEGER.fullmatch(text):
        return int(text)
    if _DECIMAL.fullmatch(text) and math.isfinite(float(text)):
        return float(text)
    if text.lower() in _CONSTANTS:
        return _CONSTANTS[text.lower()]
    if _WORD.fullmatch(text):
        return text
    raise ParameterError(
        Parameter("teacher"),
        f" is {shown(name)}, and {setting} cannot be {shown(text)}; give a number, True, False,"
        " None or a word.",
    )


def _refused_settings(learner: Any, settings: Mapping[str, Any], n_classes: int) -> str | None:
    """Return in words what a learner does not take, None if it takes all of it."""
    # each alone first, to tell which; a setting may also need another one beside it
    if _learns_with(learner, settings, n_classes):
        return None
    for setting, value in settings.items():
        if not _learns_with(learner, {setting: value}, n_classes):
            return f"{setting}={value}"
    return "these settings together"


def _learns_with(learner: Any, settings: Mapping[str, Any], n_classes: int) -> bool:
    """Return whether a learner learns with these settings from points that are made here."""
    import numpy as np
    from sklearn.base import clone

    from secretballot._seeded import own_global_states

    rows, columns = max(60, 4 * n_classes), 12
    labels = np.arange(rows) % n_classes
    points = np.random.default_rng(0).normal(size=(rows, columns)) + labels[:, None]
    # any learner may refuse in any way; points, labels and settings are public
    try:
        with own_global_states(0):
            warnings.simplefilter("ignore")
            clone(learner).set_params(**settings).fit(points, labels)
    except Exception:
        return False
    return True


def _imported_learner(path: str) -> Any:
    """Return a new learner of the class at "package.module:Class"."""
    # Importing runs code of others, which may raise anything; the message says no more than its
    # type, since what it says may quote data that the code has read.
    module, _, attribute = path.partition(":")
    try:
        learner = getattr(importlib.import_module(module), attribute)()
    except Exception as error:
        raise ParameterError(
            Parameter("teacher"),
            f" {path!r} cannot be imported and made without arguments"
            f" ({type(error).__name__}); name an installed class as package.module:Class, or say"
            " with PYTHONPATH where its module lies.",
        ) from None
    if not all(hasattr(learner, method) for method in ("fit", "predict", "get_params")):
        raise ParameterError(
            Parameter("teacher"),
            f" {path!r} must have fit, predict and get_params, as scikit-learn's classifiers have.",
        )
    return learner


def _logistic_teacher() -> Any:
    from sklearn.linear_model import LogisticRegression

    # Hardly regularised, since a vote averages variance away but not bias. Except for the
    # intercept, which liblinear shrinks too: a free one follows the base rate of some dozen
    # records, and the vote falls to the majority class.
    return LogisticRegression(C=10.0, solver="liblinear")


def _multinomial_teacher() -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=100.0, max_iter=1000)


def _tree_teacher() -> Any:
    from sklearn.tree import DecisionTreeClassifier

    # Fully grown: the vote averages out what a single tree overfits.
    return DecisionTreeClassifier()


def _forest_teacher() -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(n_estimators=30, min_samples_leaf=2, max_features=0.3)


def _boosting_teacher() -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    # No early stopping: it would set aside a tenth of a small shard.
    return HistGradientBoostingClassifier(max_iter=50, min_samples_leaf=5, early_stopping=False)


def _gaussian_naive_bayes() -> Any:
    from sklearn.naive_bayes import GaussianNB

    # Rare categories have next to no variance in a small shard; without this much they would
    # outvote all others.
    return GaussianNB(var_smoothing=0.3)


def _neighbours_teacher() -> Any:
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    # Not centred, which distances do not feel, so that sparse tables stay sparse.
    return make_pipeline(StandardScaler(with_mean=False), KNeighborsClassifier(n_neighbors=5))


_MAKERS: dict[str, Callable[[], Any]] = {
    "logistic": _logistic_teacher,
    "tree": _tree_teacher,
    "forest": _forest_teacher,
    "boosting": _boosting_teacher,
    "naive-bayes": _gaussian_naive_bayes,
    "knn": _neighbours_teacher,
}

TEACHER_NAMES: tuple[str, ...] = tuple(_MAKERS)


def _ridge_regressor() -> Any:
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), Ridge())


def _tree_regressor() -> Any:
    from sklearn.tree import DecisionTreeRegressor

    return DecisionTreeRegressor()


def _forest_regressor() -> Any:
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(n_estimators=30, min_samples_leaf=2, max_features=0.3)


def _boosting_regressor() -> Any:
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(max_iter=50, min_samples_leaf=5, early_stopping=False)


def _neighbours_regressor() -> Any:
    from sklearn.neighbors import KNeighborsRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(with_mean=False), KNeighborsRegressor(n_neighbors=5))


#: Of numbers, with the settings of the classifiers of the same name.
_REGRESSORS: dict[str, Callable[[], Any]] = {
    "ridge": _ridge_regressor,
    "tree": _tree_regressor,
    "forest": _forest_regressor,
    "boosting": _boosting_regressor,
    "knn": _neighbours_regressor,
}

REGRESSOR_NAMES: tuple[str, ...] = tuple(_REGRESSORS)
