"""Features of points for a Bayesian regression: linear, or landmarks of a Gaussian kernel."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist

from secretballot._typing import FloatArray

# Numbers in one dense block: 32 MB, whatever the number of columns.
_BLOCK_NUMBERS = 4_000_000
# Eigenvalues of the landmark kernel below this share of the largest carry rounding only.
_ROOT_TOLERANCE = 1e-8
# Landmarks among which the median distance is measured.
_DISTANCE_SAMPLE = 500


def dense_blocks(X: Any) -> Iterator[tuple[slice, FloatArray]]:
    """Yield slices of rows with dense blocks of a matrix of shape (n_rows, n_columns)."""
    n_rows, n_columns = X.shape
    height = max(1, _BLOCK_NUMBERS // max(1, n_columns))
    for start in range(0, n_rows, height):
        rows = slice(start, min(start + height, n_rows))
        block: Any = X[rows]
        dense = block.toarray() if hasattr(block, "toarray") else block
        yield rows, np.asarray(dense, dtype=np.float64)


@dataclass(frozen=True)
class Standardiser:
    """Centre and scale of columns, learnt from the whole public pool, labelled or not.

    Attributes
    ----------
    mean, scale : ndarray of shape (n_features,)
    """

    mean: FloatArray
    scale: FloatArray

    @classmethod
    def learn(cls, pool: Any) -> tuple["Standardiser", "Standardiser"]:
        """Return two standardisers: one scale for all columns, and one scale for each.

        The first keeps the columns' own proportions, which is right for one-hot columns and pixels,
        where a rare column should count for little; the second is right for columns in different
        units. Points come out with a mean squared norm of one.
        """
        # Shifted by the first row, because a column far from zero would lose its variance to
        # rounding.
        origin = next(dense_blocks(pool[:1]))[1][0]
        total, squares = np.zeros(pool.shape[1]), np.zeros(pool.shape[1])
        for _, block in dense_blocks(pool):
            total += (block - origin).sum(axis=0)
            squares += ((block - origin) ** 2).sum(axis=0)
        shift = total / pool.shape[0]
        variance = np.maximum(squares / pool.shape[0] - shift**2, 0.0)
        spread = np.where(variance > 1e-12 * squares / pool.shape[0], np.sqrt(variance), 0.0)
        varying = spread > 0
        common = np.sqrt(float((spread**2).sum())) if varying.any() else 1.0
        each = np.where(varying, spread * np.sqrt(max(1, int(varying.sum()))), 1.0)
        return cls(origin + shift, np.full(len(shift), common)), cls(origin + shift, each)

    def apply(self, block: FloatArray) -> FloatArray:
        """Return the block, of shape (n, n_features), centred and scaled."""
        return (block - self.mean) / self.scale


def median_distance(points: FloatArray) -> float:
    """Return the median distance between points of shape (n, n_features); 1 if all coincide.

    It is measured between the first `_DISTANCE_SAMPLE` of them.
    """
    distances = pdist(points[:_DISTANCE_SAMPLE])
    return float(np.median(distances[distances > 0])) if (distances > 0).any() else 1.0


def _gaussian_kernel(points: FloatArray, landmarks: FloatArray, length: float) -> FloatArray:
    squared = (
        (points**2).sum(axis=1)[:, None] + (landmarks**2).sum(axis=1) - 2 * points @ landmarks.T
    )
    return np.asarray(np.exp(np.maximum(squared, 0.0) / (-2 * length**2)))


def landmark_root(landmarks: FloatArray, length: float) -> FloatArray:
    """Return an inverse square root of the landmarks' Gaussian kernel, by which `map_landmarks`
    makes features of it.

    Parameters
    ----------
    landmarks : ndarray of shape (n_landmarks, n_features)
    length : float
        Length scale, in the units of the landmarks.

    Returns
    -------
    ndarray of shape (n_landmarks, rank)
    """
    values, vectors = np.linalg.eigh(_gaussian_kernel(landmarks, landmarks, length))
    kept = values > _ROOT_TOLERANCE * values.max()
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept]))


def map_landmarks(
    points: FloatArray, landmarks: FloatArray, length: float, root: FloatArray
) -> FloatArray:
    """Return the Nystroem features of the points, shape (n_points, rank)."""
    return np.asarray(_gaussian_kernel(points, landmarks, length) @ root)
