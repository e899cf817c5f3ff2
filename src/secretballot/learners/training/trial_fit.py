"""Try the teacher on public points with dummy labels, before it meets private data.

A shard that cannot train votes by a fixed rule and says nothing, because an error would tell about
the data. A teacher that can never train would thus pay for worthless labels in silence. A trial fit
that knows no private value may speak. What is tried follows from public inputs alone, and it runs
on global states of its own: nothing that comes after it can tell whether the private table has
missing values.
"""

import warnings
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import clone

from secretballot._seeded import own_global_states, with_own_seeds
from secretballot._validation import shown_error
from secretballot.exceptions import ParameterError
from secretballot.learners.training.inputs import n_columns, refuse_unfit
from secretballot.named_learners import check_learner, teacher_by_name
from secretballot.students import NumberedClassesClassifier
from secretballot.teachers.rows import n_rows, take_rows

ROWS = 60


def check_teacher(teacher: Any, X: Any, X_public: Any, n_classes: int) -> Any:
    """Return the learner to clone for every shard, after it was tried with dummy labels.

    It is tried with missing values too, whatever the private table holds.

    Parameters
    ----------
    teacher : classifier, regressor or str
    X : array, sparse matrix or frame of shape (n_records, n_features)
    X_public : like X, of shape (n_public, n_features)
    n_classes : int
        0 for a teacher of numbers.

    Raises
    ------
    ParameterError
        If it cannot be trained on them.
    DataError
        If values are missing and it does not take such.
    """
    learner = tried_teacher(named_teacher(teacher, n_classes), X_public, n_classes)
    # before it is known whether any are missing
    taken = columns_with_missing_taken(learner, X_public, n_classes)
    refuse_unfit("X", X, taken)
    refuse_unfit("X_public", X_public, taken)
    return learner


def named_teacher(teacher: Any, n_classes: int) -> Any:
    """Return the unfitted learner that a name stands for; others as they are. Of 0 classes it is
    one of numbers."""
    return teacher_by_name(teacher, n_classes) if isinstance(teacher, str) else teacher


def tried_teacher(teacher: Any, X_public: Any, n_classes: int) -> Any:
    """Fit a clone of the teacher on the first public points under labels 0, 1, ... in turn, and
    return a teacher that takes shards without some of the classes too.

    That is the teacher itself, or, where it refuses labels without the first class, as XGBoost
    does, a `NumberedClassesClassifier` around it: every such shard would be lost without a word.

    Parameters
    ----------
    teacher : classifier
    X_public : array, sparse matrix or frame of shape (n_public, n_features)
    n_classes : int
        0 for a teacher of numbers, which are dummies then.

    Returns
    -------
    classifier or regressor
        Unfitted.

    Raises
    ------
    ParameterError
        If it cannot be fitted or does not predict one of the labels for every point.
    """
    check_learner("teacher", teacher)
    points = _trial_points(X_public, n_classes)
    problem = problem_of_fit(teacher, points, n_classes)
    if problem is not None:
        raise ParameterError(
            "The teacher cannot be trained on the public points with dummy"
            f" {'labels' if n_classes else 'numbers'} ({problem}); it would fail on every shard."
            " Fix the teacher or its preprocessing. Nothing was spent."
        )
    if n_classes <= 2 or problem_of_fit(teacher, points, n_classes, first=1) is None:
        return teacher
    numbered = NumberedClassesClassifier(teacher)
    helps = problem_of_fit(numbered, points, n_classes, first=1) is None
    return numbered if helps else teacher


def columns_with_missing_taken(teacher: Any, X_public: Any, n_classes: int) -> list[int]:
    """Return the columns in which the teacher takes missing values, by trial fits.

    All columns are tried together; where that fails those of numbers, then the others: a pipeline
    may impute one kind alone.

    Returns
    -------
    list of int
        Empty for sparse points.
    """
    points = _trial_points(X_public, n_classes)
    if sparse.issparse(points):
        return []
    numbers = [True] * n_columns(points)
    if hasattr(points, "iloc"):
        numbers = [pd.api.types.is_numeric_dtype(kind) for kind in points.dtypes]
    kinds = range(len(numbers)), np.flatnonzero(numbers), np.flatnonzero(~np.array(numbers))
    for columns in map(list, kinds):
        missing = _with_missing(points, columns)
        if columns and problem_of_fit(teacher, missing, n_classes) is None:
            return columns
    return []


def _with_missing(points: Any, columns: list[int]) -> Any:
    """Return points in which every seventh value of the given columns is missing."""
    missing = np.zeros(points.shape, dtype=bool)
    missing[::7, columns] = True
    if hasattr(points, "iloc"):
        return points.mask(missing)
    numbers = points.astype(float) if points.dtype.kind in "biuf" else points.astype(object)
    return np.where(missing, np.nan, numbers)


def _trial_points(X_public: Any, n_classes: int) -> Any:
    """Return the first public points, repeated where they are too few for every class."""
    return take_rows(
        X_public, np.resize(np.arange(min(ROWS, n_rows(X_public))), max(ROWS, 4 * n_classes))
    )


def problem_of_fit(teacher: Any, points: Any, n_classes: int, first: int = 0) -> str | None:
    """Return what went wrong with the labels from the first class on, None if nothing did."""
    order = np.arange(n_rows(points))
    labels = first + order % (n_classes - first) if n_classes else order % 7 / 7.0
    try:
        with own_global_states(0):
            warnings.simplefilter("ignore")
            learner = with_own_seeds(clone(teacher), 0)
            predicted = np.asarray(learner.fit(points, labels).predict(points))
    except Exception as error:  # it may raise anything; the points are public, the labels dummies
        return shown_error(error)
    if not n_classes and predicted.size == labels.size and predicted.dtype.kind in "biuf":
        return None if np.isfinite(predicted).all() else "it predicts what is no number"
    if predicted.shape != labels.shape or not np.isin(predicted, labels).all():
        return (
            f"it predicts shape {predicted.shape} for {len(labels)} points, or values that are no"
            f" {'labels' if n_classes else 'numbers'}"
        )
    return None
