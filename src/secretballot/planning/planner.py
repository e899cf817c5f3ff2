"""Plans: public numbers and what is known of the task in, a plan out."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from secretballot._typing import IntArray
from secretballot._validation import check_count, check_instance, shown
from secretballot.accounting import PrivacyBudget
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.named_learners import teacher_by_name
from secretballot.planning.plan.model import Plan, Task
from secretballot.planning.search.best_setting import make_plan
from secretballot.planning.simulation.curve import CurveModel, LearningCurve
from secretballot.planning.simulation.stand_in import StandInModel
from secretballot.planning.simulation.votes import VoteModel
from secretballot.students.names import student_by_name
from secretballot.teachers.rows import n_rows

LEAST_ROWS = 100
MOST_CLASSES = 1000  # work and memory grow with them
FOLDS = 4  # of a stand-in, which score on disjoint parts


def plan(
    n_records: int,
    n_public: int,
    *,
    budget: PrivacyBudget,
    n_classes: int | None = None,
    like: tuple[Any, Any] | None = None,
    curve: LearningCurve | Mapping[int, float] | None = None,
    n_teachers: int | None = None,
    teacher: str = "logistic",
    student: str = "auto",
    mechanism: str | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Plan:
    """Say before anything private is touched what votes to choose, and what to expect of them.

    Parameters
    ----------
    n_records : int
        Publicly stated number n of private records.
    n_public : int
        Number m of public points.
    budget : PrivacyBudget
        Of the release; with a delta of 0 votes under Laplace noise are planned, and nothing else.
    n_classes : int, optional
        By default as many as occur in `like`, else two.
    like : (X, y), optional
        Labelled rows that may be shown to anyone, encoded as the private ones will be: another
        year's data, or synthetic ones; X of shape (n_rows, n_features), y of shape (n_rows,).
        Teachers and students are tried on them.
    curve : LearningCurve or mapping of int to float, optional
        Instead: accuracy of one learner after so many records, measured elsewhere or believed; one
        figure is enough. With neither, a guess is made and stated.
    n_teachers : int, optional
        K, where votes or silos exist already.
    teacher, student : str
        Names as for `secretballot learn`.
    mechanism : str, optional
        Plan for this one alone, by its name; by default all are weighed.
    seed : int
        Of the simulation; it never touches noise that protects anything.
    progress : callable, optional
        Takes steps done and steps in all.

    Returns
    -------
    Plan

    Raises
    ------
    ParameterError
        If a number is out of its range, both `like` and `curve` are given, a name is unknown, or
        the task is impossible; then the message says about which epsilon or number of records would
        do.
    DataError
        If the stand-in is not a table with one class for each of at least 100 rows.

    Privacy
    -------
    Takes no private data and spends nothing. Give no private rows as `like`: the plan would tell of
    them.
    """
    check_instance("budget", budget, PrivacyBudget)
    if like is not None and curve is not None:
        raise ParameterError(
            "both like and curve are given; give a stand-in or a learning curve, not both."
        )
    if n_classes is not None and check_count("n_classes", n_classes, minimum=2) > MOST_CLASSES:
        raise ParameterError(
            Parameter("n_classes"),
            f" is {shown(n_classes)}; plans are made for at most {MOST_CLASSES:,} classes.",
        )
    X, y = None, None
    classes: int = getattr(curve, "n_classes", 2) if n_classes is None else n_classes
    if like is not None:
        X, y, classes = checked_stand_in(like, n_classes)
    sizes, price = (n_records, n_public, classes), (budget.epsilon, budget.delta)
    task = Task(*sizes, *price, teacher, student, mechanism=mechanism)
    # names are looked up before anything is simulated: a typing error should cost no minutes
    learner, pupil = teacher_by_name(teacher, classes), student_by_name(student)
    model: VoteModel
    if y is None:
        model = CurveModel(curve, n_classes=classes, seed=seed)
    else:
        model = StandInModel(
            X,
            y,
            n_classes=classes,
            teacher=learner,
            student=pupil,
            n_public=n_public,
            seed=seed,
            n_folds=FOLDS,
        )
    return make_plan(task, model, n_teachers=n_teachers, seed=seed, progress=progress)


def checked_stand_in(like: object, n_classes: int | None) -> tuple[Any, IntArray, int]:
    """Return the rows of a stand-in, their classes as indices, and the number of classes.

    Raises
    ------
    ParameterError, DataError
        If it is no pair of rows and classes, has too few rows, or does not fit the number of
        classes.
    """
    if not isinstance(like, tuple | list) or len(like) != 2:
        raise ParameterError(
            Parameter("like"),
            f" is {shown(like)}; give a pair (X, y) of labelled rows that are not private.",
        )
    X, y = like
    labels = np.asarray(y)
    if labels.ndim != 1 or n_rows(X) != len(labels):
        raise DataError(
            Parameter("like"),
            f" has {n_rows(X)} rows and y the shape {labels.shape}; give one class for each row.",
        )
    if not len(labels) >= LEAST_ROWS:
        raise DataError(
            Parameter("like"),
            f" has {len(labels)} rows; give at least {LEAST_ROWS}, or a learning curve instead.",
        )
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise DataError("y of like has missing or infinite values; give a class for each row.")
    try:
        values, places = np.unique(labels, return_inverse=True)
    except TypeError:
        raise DataError(
            "y of like holds values of several kinds; give classes of one kind."
        ) from None
    if len(values) < 2:
        raise DataError(
            "y of like holds one class only; give a stand-in in which at least two occur."
        )
    # with all classes present their sorted order is their index; with fewer, only the caller knows
    given = len(values) if n_classes is None else check_count("n_classes", n_classes, minimum=2)
    if len(values) > given:
        raise ParameterError(
            Parameter("like"),
            f" has {len(values)} classes and n_classes is {given}; give the same number.",
        )
    if len(values) == given:
        return X, places.astype(np.int64), given
    if labels.dtype.kind not in "iu" or values.min() < 0 or values.max() >= given:
        raise ParameterError(
            Parameter("like"),
            f" has {len(values)} of {given} classes; then give y as indices from 0 to"
            f" {given - 1}, so that it is clear which.",
        )
    return X, labels.astype(np.int64), given
