"""What students of noisy counts share: counts become vote shares, these become predictions."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, check_array
from sklearn.utils.validation import validate_data

from secretballot._typing import FloatArray
from secretballot.exceptions import DataError, Parameter


# scikit-learn ships no types
class VoteShareClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Predict the class with the largest estimated vote share.

    Subclasses take part in `fit_student` by their
    `fit(X, noisy_counts, *, n_teachers, sigma, classes, pool)`, and set `classes_`.
    """

    classes_: NDArray[Any]

    def _points_and_pool(self, X: ArrayLike, pool: ArrayLike | None) -> tuple[Any, Any]:
        """Return the asked points and the whole pool, each of shape (n, n_features)."""
        points: Any = validate_data(self, X, accept_sparse="csr", dtype=np.float64)
        if pool is None:
            return points, points
        public: Any = check_array(pool, accept_sparse="csr", dtype=np.float64)
        if public.shape[1] != points.shape[1]:
            raise DataError(
                Parameter("pool"),
                f" has {public.shape[1]} columns and X has {points.shape[1]}; give the same"
                " columns.",
            )
        return points, public

    @abstractmethod
    def predict_shares(self, X: ArrayLike) -> FloatArray:
        """Return the estimated share of teachers behind each class, shape (n_points, n_classes)."""

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Return the estimated vote shares as probabilities, shape (n_points, n_classes).

        Each row is the nearest point of the simplex.

        What is estimated is the share of teachers that vote for each class, which is not the chance
        of the class.
        """
        return nearest_probabilities(self.predict_shares(X))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the class with the largest estimated share, the first on a tie, shape (n,)."""
        shares = self.predict_shares(X)
        values: NDArray[Any] = self.classes_[shares.argmax(axis=1)]
        return values

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def shares_of(
    noisy_counts: ArrayLike, n_rows: int, n_teachers: int, noise: float
) -> tuple[FloatArray, float]:
    """Return vote shares, one column for two classes or one per class, and their noise deviation.

    Parameters
    ----------
    noisy_counts : array of shape (n_rows,) or (n_rows, n_classes)
    n_rows, n_teachers : int
    noise : float
        Standard deviation on each count, as a share of the teachers.

    Returns
    -------
    shares : ndarray of shape (n_rows, 1) or (n_rows, n_classes)
    noise : float

    Raises
    ------
    DataError
        If the counts are not one for each point, or not finite.
    """
    counts = np.asarray(noisy_counts, dtype=np.float64)
    if (
        counts.ndim not in (1, 2)
        or len(counts) != n_rows
        or (counts.ndim == 2 and counts.shape[1] < 2)
    ):
        raise DataError(
            Parameter("noisy_counts"),
            f" has shape {counts.shape} for {n_rows} points; give one count for each point, or"
            " one for each point and class.",
        )
    if not np.isfinite(counts).all():
        raise DataError(
            "noisy_counts holds a value that is not finite; give the counts as they were released."
        )
    if counts.ndim == 1:
        return counts[:, None] / n_teachers, noise
    if counts.shape[1] == 2:
        # both columns tell of the same vote under independent noise: their mean has half the
        # variance
        second = (counts[:, 1] - counts[:, 0]) / n_teachers
        return (second[:, None] + 1.0) / 2, noise / math.sqrt(2)
    return counts / n_teachers, noise


def class_array(classes: Sequence[Any] | NDArray[Any] | None, n_classes: int) -> NDArray[Any]:
    """Return the class values, 0, 1, ... by default, shape (n_classes,).

    Raises
    ------
    DataError
        If there are more or fewer.
    """
    values = np.arange(n_classes) if classes is None else np.asarray(classes)
    if values.shape != (n_classes,):
        raise DataError(
            Parameter("classes"),
            f" has shape {values.shape}; these counts tell of {n_classes} classes.",
        )
    return values


def nearest_probabilities(shares: FloatArray) -> FloatArray:
    """Return the projection of rows onto the probability simplex, shape (n, n_classes)."""
    descending = -np.sort(-shares, axis=1)
    excess = (np.cumsum(descending, axis=1) - 1.0) / np.arange(1, shares.shape[1] + 1)
    last = (descending > excess).sum(axis=1) - 1
    return np.asarray(np.maximum(shares - np.take_along_axis(excess, last[:, None], axis=1), 0.0))
