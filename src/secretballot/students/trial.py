"""Try a student on public points with dummy labels, before anything is paid for what it will get.

A student that cannot learn would be found out after the release, when the budget is gone. What is
tried follows from public inputs alone, in the way in which the student will be fitted; the fits run
on global states of their own, so that nothing of them is left for what comes after.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from secretballot._points import take_rows
from secretballot._seeded import own_global_states
from secretballot._validation import shown_error
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.released import ReleasedLabels
from secretballot.students.fitting import fit_student

FEW_POINTS, POINTS_OF_A_CLASS = 60, 4
_MOST_POINTS = 2000  # of the longest trial
_SHARE = 0.8  # of the dummy votes of a point that go to its class


@dataclass(frozen=True)
class Teaching:
    """What a student will be taught; all public.

    Attributes
    ----------
    classes : sequence
        Class values, as they will be released.
    n_points : int
        Public points that will have an answer.
    votes : int or None
        How many votes there are at a point, where noisy counts are released; None where labels
        alone are.
    by_record : bool
        Whether records cast the votes for themselves.
    """

    classes: Sequence[Any]
    n_points: int
    votes: int | None = None
    by_record: bool = False


def try_student(student: Any, X_public: Any, teaching: Teaching, *, basis: Any = None) -> None:
    """Fit a clone of the student to the first public points under dummy labels, which are the
    classes in turn: to as many as it will get, up to two thousand.

    Parameters
    ----------
    student : classifier
    X_public : array, sparse matrix or frame of shape (n_public, n_features)
    teaching : Teaching
    basis : transformer with `integers`, optional
        As for `fit_student`.

    Raises
    ------
    ParameterError
        If it cannot learn from them, or predict them.
    """
    problem = None
    try:
        _trial_fit(student, X_public, teaching, basis)
    except Exception as error:  # any learner may raise anything; points and labels are public
        cause = error.__cause__ if isinstance(error, DataError) else error
        problem = str(error).rstrip(".") if cause is None else shown_error(cause)
    if problem is not None:
        raise ParameterError(
            Parameter("student"),
            " cannot be trained on the public points with dummy labels of the declared classes:"
            f" {problem}. Nothing was spent; fix the student, or take another one.",
        )


def _trial_fit(student: Any, X_public: Any, teaching: Teaching, basis: Any = None) -> Any:
    """Return a clone that was fitted to points, and has predicted them."""
    few = max(FEW_POINTS, POINTS_OF_A_CLASS * len(teaching.classes))
    n_points = max(few, min(teaching.n_points, _MOST_POINTS))
    n_public = X_public.shape[0] if hasattr(X_public, "shape") else len(X_public)
    # the first ones again and again, where there are fewer
    points = take_rows(X_public, np.resize(np.arange(min(n_points, n_public)), n_points))
    with own_global_states(0), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dummies = _dummy_release(teaching, n_points)
        fitted = fit_student(student, points, dummies, random_state=0, basis=basis)
        fitted.predict(points)
    return fitted


def fitted_to_dummies(student: Any, X_public: Any, classes: Sequence[Any]) -> Any:
    """Return a clone of the student, fitted to the first public points under dummy labels.

    Raises
    ------
    Exception
        Whatever it raises.

    Parameters
    ----------
    student : classifier
    X_public : array of shape (n_public, n_features)
    classes : sequence
    """
    return _trial_fit(student, X_public, Teaching(classes, len(X_public)))


def _dummy_release(teaching: Teaching, n_points: int) -> ReleasedLabels:
    """Return a release that says the classes in turn, of the kind that the student will get."""
    n_classes = len(teaching.classes)
    labels = np.arange(n_points) % n_classes
    about: dict[str, Any] = {"classes": tuple(teaching.classes), "n_teachers": 1}
    if teaching.votes is not None:
        shares = np.where(np.eye(n_classes)[labels] > 0, _SHARE, (1 - _SHARE) / (n_classes - 1))
        counts = np.rint(teaching.votes * shares).astype(np.int64)
        # of two classes teachers' votes are counted for the second alone
        about["noisy_counts"] = counts if teaching.by_record or n_classes > 2 else counts[:, 1]
        about["sigma"], about["n_teachers"] = 1.0, 0 if teaching.by_record else teaching.votes
    if teaching.by_record:
        guarantee = {"unit": "record", "relation": "add-remove"}
        shape = {"guarantee": guarantee, "moved": 1}
        about["certificate"] = {"public": {"method": "record-votes"}, "shape": shape}
    return ReleasedLabels(np.arange(n_points), labels, **about)
