"""Students by name, as a plan and the command line know them."""

from typing import Any

from sklearn.linear_model import LogisticRegression

from secretballot.named_learners import CLASSIFIERS, REGRESSORS, Maker, learner_by_name
from secretballot.students.voting import VotingStudent

_AUTO: dict[str, Maker] = {"auto": lambda n_classes: None}
_CLASSIFIERS: dict[str, Maker] = {
    **_AUTO,
    "boosted": lambda n_classes: VotingStudent(random_state=0),
    **CLASSIFIERS,
    "logistic": lambda n_classes: LogisticRegression(max_iter=1000),
}
_REGRESSORS: dict[str, Maker] = {**_AUTO, **REGRESSORS}


def student_by_name(name: str, *, of_numbers: bool = False) -> Any:
    """Return a new learner of that name; None for "auto", the best measured for what is released.

    Parameters
    ----------
    name : str
        "auto", "boosted", a teacher's name, with settings or without, or "package.module:Class".
    of_numbers : bool
        Whether it learns a number; then "auto" or a name of such a teacher.

    Raises
    ------
    ParameterError
        If the name or one of its settings is unknown, or not taken by the learner, or the class
        cannot be imported, made or used as a classifier.
    """
    return learner_by_name(name, _REGRESSORS if of_numbers else _CLASSIFIERS, "student")
