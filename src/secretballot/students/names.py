"""Students by name, as a plan and the command line know them."""

from collections.abc import Callable
from typing import Any

from sklearn.linear_model import LogisticRegression

from secretballot._validation import shown
from secretballot.exceptions import Parameter, ParameterError
from secretballot.named_learners import (
    REGRESSOR_NAMES,
    TEACHER_NAMES,
    regressor_by_name,
    teacher_by_name,
    with_settings,
)
from secretballot.students.voting import VotingStudent

_OWN: dict[str, Callable[[], Any]] = {
    "logistic": lambda: LogisticRegression(max_iter=1000),
    "boosted": lambda: VotingStudent(random_state=0),
}


def student_by_name(name: str) -> Any:
    """Return a new learner of that name; None for "auto", the best measured for what is released.

    Parameters
    ----------
    name : str
        "auto", "boosted", a teacher's name, with settings or without, or "package.module:Class".

    Raises
    ------
    ParameterError
        If the name or one of its settings is unknown, or not taken by the learner, or the class
        cannot be imported, made or used as a classifier.
    """
    head, colon, settings = name.partition(":") if isinstance(name, str) else ("", "", "")
    if name == "auto":
        return None
    if head == "auto" or not (colon or head in (*_OWN, *TEACHER_NAMES)):
        raise ParameterError(
            Parameter("student"),
            f" is {shown(name)}; it must be one of auto, which takes no settings, boosted,"
            f" {', '.join(TEACHER_NAMES)}, or package.module:Class.",
        )
    try:
        if head not in _OWN:
            return teacher_by_name(name)
        learner = _OWN[head]()
        return with_settings(learner, name, settings) if colon else learner
    except ParameterError as error:
        # students and teachers share their names, and the message begins with which of them it is
        reason = error.parts[1:]
    raise ParameterError(Parameter("student"), *reason)


def student_of_numbers(name: str) -> Any:
    """Return a new student of numbers by its name; None for "auto", the one that measured best.

    Parameters
    ----------
    name : str
        "auto", a regressor's name, with settings or without, or "package.module:Class".

    Raises
    ------
    ParameterError
        As for `student_by_name`.
    """
    if name == "auto":
        return None
    try:
        return regressor_by_name(name)
    except ParameterError as error:
        reason = error.parts[1:]  # in the name of a teacher
    if not isinstance(name, str) or name.partition(":")[0] in ("auto", *TEACHER_NAMES):
        reason = (
            f" is {shown(name)}; of numbers give auto, {', '.join(REGRESSOR_NAMES)}, or"
            " package.module:Class.",
        )
    raise ParameterError(Parameter("student"), *reason)
