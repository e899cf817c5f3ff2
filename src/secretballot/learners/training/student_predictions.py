"""Predictions of an estimator whose fitted student makes them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from secretballot._typing import FloatArray
from secretballot.learners.training.inputs import as_matrix


def _has_probabilities(model: Any) -> bool:
    student = model.student_ if hasattr(model, "student_") else model._student_to_fit
    return hasattr(student, "predict_proba")


class StudentPredictions:
    """`predict` and `predict_proba` by `student_`, for all of `classes_`."""

    student: Any
    student_: Any
    classes_: Any

    @property
    def _student_to_fit(self) -> Any:
        """What `student_` will be like; a learner with a student of its own says which."""
        return self.student

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the student's class for every row of `X`, an array of shape (n_rows,)."""
        matrix = checked_points(self, X)
        return np.asarray(self.student_.predict(matrix))

    # scikit-learn ships no types
    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the student's class probabilities, an array of shape (n_rows, n_classes) in the
        order of `classes_`; or that of each of several labels.

        Classes that the student never saw get probability 0.
        """
        matrix = checked_points(self, X)
        shares = np.asarray(self.student_.predict_proba(matrix), dtype=np.float64)
        if isinstance(self.classes_, list):
            return shares
        known = [int(np.flatnonzero(self.classes_ == value)[0]) for value in self.student_.classes_]
        whole = np.zeros((len(shares), len(self.classes_)))
        whole[:, known] = shares
        return whole


def checked_points(model: Any, X: Any) -> Any:
    """Return points to predict as a matrix or frame of shape (n_points, n_features), of the columns
    that a fitted model learnt.

    Raises
    ------
    NotFittedError
        If the model has no student.
    DataError, ValueError
        If the points are no table, or have other columns.
    """
    check_is_fitted(model, "student_")
    matrix = as_matrix("X", X)
    validate_data(model, matrix, reset=False, skip_check_array=True)
    return matrix
