"""Plans of votes: public numbers and a labelled stand-in in, a plan out."""

from collections.abc import Callable
from typing import Any

import numpy as np

from secretballot._typing import IntArray
from secretballot._validation import check_count, shown
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.named_learners import teacher_by_name
from secretballot.planning.plan.model import Plan, Task
from secretballot.planning.search.best_setting import make_plan
from secretballot.planning.simulation.stand_in import StandInModel
from secretballot.students.names import student_by_name
from secretballot.teachers.rows import n_rows

LEAST_ROWS = 100
MOST_CLASSES = 1000  # work and memory grow with them
FOLDS = 4  # of a stand-in, which score on disjoint parts


def plan_votes(
    task: Task,
    X: Any,
    y: IntArray,
    *,
    n_teachers: int | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Plan:
    """Say before anything private is touched what votes to choose, and what to expect of them.

    Parameters
    ----------
    task : Task
    X : array, sparse matrix or frame of shape (n_rows, n_features)
        Rows of a stand-in, as `checked_stand_in` returns them with `y`.
    y : ndarray of int64, shape (n_rows,)
    n_teachers : int, optional
        K, where votes or silos exist already.
    seed : int
        Of the simulation; it never touches noise that protects anything.
    progress : callable, optional
        Takes steps done and steps in all.

    Raises
    ------
    ParameterError
        If a name is unknown, or the task is impossible.

    Privacy
    -------
    As for `make_plan`.
    """
    # names are looked up before anything is simulated: a typing error should cost no minutes
    model = StandInModel(
        X,
        y,
        n_classes=task.n_classes,
        teacher=teacher_by_name(task.teacher, task.n_classes),
        student=student_by_name(task.student),
        n_public=task.n_public,
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
    if n_classes is not None and check_count("n_classes", n_classes, minimum=2) > MOST_CLASSES:
        raise ParameterError(
            Parameter("n_classes"),
            f" is {shown(n_classes)}; plans are made for at most {MOST_CLASSES:,} classes.",
        )
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
            f" has {len(labels)} rows; give at least {LEAST_ROWS}.",
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
    given = len(values) if n_classes is None else n_classes
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
