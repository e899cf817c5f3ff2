"""Rows of public points, whatever table they stand in.

Private tables have a room of their own for this (`ensemble.rows`), where every part is a copy that
tells nothing of the other rows; what is public may be shared.
"""

from typing import Any

import numpy as np

from secretballot._typing import IntArray

__all__ = ["take_rows"]


def take_rows(X: Any, rows: IntArray) -> Any:
    """Return the given rows of an array, sparse matrix or frame."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    if hasattr(X, "tocsr"):
        return X.tocsr()[rows]
    return np.asarray(X)[rows]
