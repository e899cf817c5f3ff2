"""Learners by name, with settings that suit shards of some hundred records.

Their columns have one scale. The settings were chosen on training rows of UCI Adult alone: 164
shards of 146 rows, voting on other training rows.
"""

import importlib
from collections.abc import Callable
from typing import Any

from secretballot._validation import shown
from secretballot.exceptions import Parameter, ParameterError

__all__ = ["TEACHER_NAMES", "teacher_by_name"]


def teacher_by_name(name: str, n_classes: int = 2) -> Any:
    """Return a new, unfitted learner.

    Parameters
    ----------
    name : str
        One of `TEACHER_NAMES`, or "package.module:Class" for a class with scikit-learn's fit,
        predict and get_params that can be made without arguments.
    n_classes : int
        Number of classes that it will meet; "logistic" differs for two and for more.

    Raises
    ------
    ParameterError
        If the name is unknown, or the class cannot be imported, made or used as a classifier.
    """
    if name == "logistic" and n_classes > 2:
        return _multinomial_teacher()
    if isinstance(name, str) and name in _MAKERS:
        return _MAKERS[name]()
    if isinstance(name, str) and ":" in name:
        return _imported_learner(name)
    raise ParameterError(
        Parameter("teacher"),
        f" is {shown(name)}; it must be one of {', '.join(TEACHER_NAMES)}, or"
        " package.module:Class.",
    )


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
            f" ({type(error).__name__}); name an installed class as package.module:Class.",
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
