"""Learners by name, for those who cannot pass an object."""

import importlib
from collections.abc import Callable
from typing import Any

from secretballot.exceptions import ParameterError

__all__ = ["LEARNERS", "STUDENTS", "named_student", "named_teacher"]


def _logistic() -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression()


def _tree() -> Any:
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier()


def _forest() -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier()


def _boosting() -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier()


def _naive_bayes() -> Any:
    from sklearn.naive_bayes import GaussianNB

    return GaussianNB()


def _knn() -> Any:
    from sklearn.neighbors import KNeighborsClassifier

    return KNeighborsClassifier()


#: Learners that a name stands for, with scikit-learn's own settings.
LEARNERS: dict[str, Callable[[], Any]] = {
    "logistic": _logistic,
    "tree": _tree,
    "forest": _forest,
    "boosting": _boosting,
    "naive-bayes": _naive_bayes,
    "knn": _knn,
}

#: Names of students: "auto" is the one that measured best for what is released.
STUDENTS = ("auto", *LEARNERS)


def named_teacher(name: str) -> Any:
    """Return the unfitted teacher of that name, or of a "package.module:Class" made without arguments.

    Raises
    ------
    ParameterError
        If there is none, or it is no classifier.
    """
    return _named("teacher", name, tuple(LEARNERS))


def named_student(name: str) -> Any:
    """Return the unfitted student of that name, None for "auto".

    Raises
    ------
    ParameterError
        If there is none, or it is no classifier.
    """
    return None if name == "auto" else _named("student", name, STUDENTS)


def _named(role: str, name: str, known: tuple[str, ...]) -> Any:
    if name in LEARNERS:
        return LEARNERS[name]()
    module, colon, attribute = name.partition(":")
    if not (colon and module and attribute):
        raise ParameterError(
            f"The {role} {name!r} is unknown; give one of {', '.join(known)}, or package.module:Class."
        )
    try:
        learner = getattr(importlib.import_module(module), attribute)()
    except Exception as error:  # a foreign module may raise anything while it is imported
        raise ParameterError(
            f"The {role} {name!r} cannot be made ({type(error).__name__}: {error}); it must be importable and need no "
            "arguments."
        ) from None
    if not (hasattr(learner, "fit") and hasattr(learner, "predict") and hasattr(learner, "get_params")):
        raise ParameterError(
            f"The {role} {name!r} is no scikit-learn classifier; it needs fit, predict and get_params."
        )
    return learner
