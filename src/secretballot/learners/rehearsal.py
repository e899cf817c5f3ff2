"""Try the teacher on public points with made-up labels, before it meets private data.

A shard that cannot train votes by a fixed rule and says nothing, because an error would tell about the data. A teacher
that can never train would thus buy worthless labels in silence. A rehearsal that knows no private value may speak.
"""

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone

from secretballot.exceptions import ParameterError
from secretballot.learners.inputs import n_rows, take_rows

__all__ = ["rehearse"]

ROWS = 60


def rehearse(teacher: Any, X_public: Any, n_classes: int) -> None:
    """Fit a clone of the teacher on the first public points under labels 0, 1, ..., in turn, and predict them.

    Raises
    ------
    ParameterError
        If it cannot be fitted or does not predict one of the labels for every point.
    """
    if not (hasattr(teacher, "fit") and hasattr(teacher, "predict")):
        raise ParameterError(f"teacher is {teacher!r}; it must be a classifier with fit and predict.")
    # enough rows for every class, repeated if the public pool is that small
    rows = np.resize(np.arange(min(ROWS, n_rows(X_public))), max(ROWS, 4 * n_classes))
    points = take_rows(X_public, rows)
    labels = np.arange(len(rows)) % n_classes
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            predicted = np.asarray(clone(teacher).fit(points, labels).predict(points))
    except Exception as error:  # any learner may raise anything; the points are public and the labels made up
        raise ParameterError(
            f"The teacher cannot be trained on the public points with made-up labels ({type(error).__name__}: {error}); "
            "it would fail on every shard. Mend the teacher or its preprocessing."
        ) from error
    if predicted.shape != (len(rows),) or not np.isin(predicted, np.arange(n_classes)).all():
        raise ParameterError(
            f"The teacher predicts shape {predicted.shape} for {len(rows)} points, or values that are no labels; "
            "it must be a classifier that predicts one label per point."
        )
