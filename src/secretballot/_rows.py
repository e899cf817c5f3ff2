"""Rows of public points, whatever table they are in.

Private tables have their own module for this (`teachers.rows`), where every part is a copy that
depends on no other row; what is public may be shared.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from secretballot._typing import FloatArray, IntArray


def take_rows(X: Any, rows: IntArray) -> Any:
    """Return the given rows of an array, sparse matrix or frame, in their order.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n_rows, n_features)
        Public.
    rows : ndarray of int64, shape (n_taken,)
        Places of rows.

    Returns
    -------
    array, sparse matrix or frame of shape (n_taken, n_features)
    """
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    if hasattr(X, "tocsr"):
        return X.tocsr()[rows]
    return np.asarray(X)[rows]


def class_shares(student: Any, X: Any, classes: Sequence[Any]) -> FloatArray:
    """Return a fitted classifier's probabilities of classes at rows of X, shape (n_rows,
    n_classes); 0 for a class that it never learnt."""
    found = np.asarray(student.predict_proba(X), dtype=np.float64)
    places = {
        str(value): place for place, value in enumerate(np.asarray(student.classes_).tolist())
    }
    table = np.zeros((len(found), len(classes)))
    for place, value in enumerate(classes):
        if str(value) in places:
            table[:, place] = found[:, places[str(value)]]
    return table
