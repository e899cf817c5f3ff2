"""Public points as numbers on one scale, for distances between them."""

from typing import Any

import numpy as np
from scipy import sparse

from secretballot._typing import FloatArray
from secretballot.exceptions import DataError


def is_sparse(X: Any) -> bool:
    """Return whether `X` is a sparse matrix."""
    return bool(sparse.issparse(X))


def as_numbers(X: Any) -> Any:
    """Return points as a float64 array, or CSR matrix if they are sparse, of shape (m, n_features).

    Raises
    ------
    DataError
        If a column does not hold numbers, or a number is missing or infinite.
    """
    if is_sparse(X):
        matrix: Any = X.tocsr()
        values = matrix.data
    else:
        matrix = values = np.asarray(X)
    if matrix.ndim != 2:
        raise DataError(
            f"the pool has shape {matrix.shape}; give a table of points, one in each row."
        )
    try:
        if is_sparse(matrix):
            matrix = matrix.astype(np.float64)
            values = matrix.data
        else:
            # one layout, so that a frame and an array of the same numbers round alike and give the
            # same run
            matrix = values = matrix.astype(np.float64, order="C")
    except (TypeError, ValueError):
        raise DataError(
            "the pool holds values that are not numbers, and this strategy measures distances; "
            "encode them as numbers (OneHotEncoder), or use passive sampling."
        ) from None
    if not np.isfinite(values).all():
        raise DataError(
            "the pool holds missing or infinite numbers, and this strategy measures distances; "
            "fill them (SimpleImputer), or use passive sampling."
        )
    return matrix


def scaled_points(X: Any) -> Any:
    """Return points with every column at standard deviation 1, and mean 0 unless they are sparse.

    Distances are the same with and without the mean, so sparse points stay sparse. Constant columns
    become 0 or, in sparse points, keep their value.

    Parameters
    ----------
    X : array, sparse matrix or frame of numbers, shape (m, n_features)

    Raises
    ------
    DataError
        If a column does not hold numbers, or a number is missing or infinite.
    """
    matrix = as_numbers(X)
    mean = np.asarray(matrix.mean(axis=0)).ravel()
    if is_sparse(matrix):
        variance = np.asarray(matrix.multiply(matrix).mean(axis=0)).ravel() - mean**2
    else:
        matrix -= mean
        variance = np.einsum("ij,ij->j", matrix, matrix) / max(1, len(matrix))
    # below the rounding of the mean, a column is constant
    constant = ~(variance > 1e-14 * (variance + mean**2))
    scale = np.sqrt(np.where(constant, 1.0, variance))
    if is_sparse(matrix):
        scaling: Any = sparse.diags(1.0 / scale)
        return (matrix @ scaling).tocsr()
    matrix /= scale
    matrix[:, constant] = 0.0
    return matrix


def squared_norms(points: Any) -> FloatArray:
    """Return the squared length of every point, shape (m,)."""
    if is_sparse(points):
        return np.asarray(points.multiply(points).sum(axis=1), dtype=np.float64).ravel()
    return np.asarray(np.einsum("ij,ij->i", points, points), dtype=np.float64)
