"""Students by name, as a plan and the command line know them."""

from typing import Any

from sklearn.linear_model import LogisticRegression

from secretballot._validation import shown
from secretballot.exceptions import Parameter, ParameterError
from secretballot.named_learners import TEACHER_NAMES, teacher_by_name
from secretballot.students.voting import VotingStudent

__all__ = ["student_by_name"]


def student_by_name(name: str) -> Any:
    """Return a new learner of that name; None for "auto", the best measured for what is released.

    Raises
    ------
    ParameterError
        If the name is unknown, or the class cannot be imported, made or used as a classifier.
    """
    if name == "auto":
        return None
    if name == "logistic":
        return LogisticRegression(max_iter=1000)
    if name == "boosted":
        return VotingStudent(random_state=0)
    if not isinstance(name, str) or (name not in TEACHER_NAMES and ":" not in name):
        raise ParameterError(
            Parameter("student"),
            f" is {shown(name)}; it must be one of auto, boosted, {', '.join(TEACHER_NAMES)}, or"
            " package.module:Class.",
        )
    try:
        return teacher_by_name(name)
    except ParameterError as error:
        # students and teachers share their names, and the message begins with which of them it is
        reason = error.parts[1:]
    raise ParameterError(Parameter("student"), *reason)
