"""Try the teacher on public points with made-up labels, before it meets private data.

A shard that cannot train votes by a fixed rule and says nothing, because an error would tell about the data. A teacher
that can never train would thus buy worthless labels in silence. A rehearsal that knows no private value may speak.
"""

import re
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone

from secretballot._validation import shown
from secretballot.exceptions import ParameterError
from secretballot.learners.inputs import n_rows, take_rows

__all__ = ["rehearse", "rehearse_with_holes"]

ROWS = 60


def rehearse(teacher: Any, X_public: Any, n_classes: int) -> None:
    """Fit a clone of the teacher on the first public points under labels 0, 1, ..., in turn, and predict them.

    Raises
    ------
    ParameterError
        If it cannot be fitted or does not predict one of the labels for every point.
    """
    if not (hasattr(teacher, "fit") and hasattr(teacher, "predict")):
        raise ParameterError(f"teacher is {shown(teacher)}; it must be a classifier with fit and predict.")
    problem = _attempt(teacher, _points(X_public, n_classes), n_classes)
    if problem is not None:
        raise ParameterError(
            f"The teacher cannot be trained on the public points with made-up labels ({problem}); it would fail on "
            "every shard. Mend the teacher or its preprocessing."
        )


def rehearse_with_holes(teacher: Any, X_public: Any, n_classes: int, columns: NDArray[np.int64]) -> bool:
    """Return whether the teacher also takes points in which every seventh value of the given columns is missing."""
    points = _points(X_public, n_classes)
    if sparse.issparse(points):
        return False
    holes = np.zeros(points.shape, dtype=bool)
    holes[::7, columns] = True
    if hasattr(points, "iloc"):
        return _attempt(teacher, points.mask(holes), n_classes) is None
    return _attempt(teacher, np.where(holes, np.nan, points.astype(float)), n_classes) is None


def _points(X_public: Any, n_classes: int) -> Any:
    """Return the first public points, repeated where they are too few for every class."""
    return take_rows(X_public, np.resize(np.arange(min(ROWS, n_rows(X_public))), max(ROWS, 4 * n_classes)))


def _attempt(teacher: Any, points: Any, n_classes: int) -> str | None:
    """Return what went wrong, None if nothing did."""
    labels = np.arange(n_rows(points)) % n_classes
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            predicted = np.asarray(clone(teacher).fit(points, labels).predict(points))
    except Exception as error:  # any learner may raise anything; the points are public, the labels made up
        return f"{type(error).__name__}: {_first_sentence(str(error))}"
    if predicted.shape != labels.shape or not np.isin(predicted, labels).all():
        return f"it predicts shape {predicted.shape} for {len(labels)} points, or values that are no labels"
    return None


def _first_sentence(text: str) -> str:
    """Return what a message begins with; learners go on with paragraphs and addresses."""
    first = re.split(r"\n|(?<=[.:;])\s", text.strip(), maxsplit=1)[0]
    return first.rstrip(".:;")
