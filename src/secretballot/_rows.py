"""Rows of public points, whatever table they are in.

Private tables have their own module for this (`teachers.rows`), where every part is a copy that
depends on no other row; what is public may be shared.
"""

from typing import Any

import numpy as np

from secretballot._typing import IntArray


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
