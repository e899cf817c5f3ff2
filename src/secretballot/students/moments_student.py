"""A linear classifier in a public basis, as released moments have fixed it."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from secretballot._public_state import PublicState
from secretballot._typing import FloatArray, IntArray
from secretballot.bases import KernelBasis, TableBasis
from secretballot.bases.integer_model import IntegerModel, with_constant

__all__ = ["MomentsStudent"]


# scikit-learn ships no types
class MomentsStudent(PublicState, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Predict by released weights in a basis that public points have fixed.

    Made by `RecordMomentsClassifier`; it is fitted from the start, and learns nothing further.

    Parameters
    ----------
    basis : TableBasis or KernelBasis
        Fitted to public points.
    weights : ndarray of int64, shape (n_coordinates, n_columns)
        Released; of the basis's directions, and of the constant.
    classes : sequence of two or more values

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Examples
    --------
    >>> basis = sb.bases.TableBasis().fit([[age] for age in range(60)])
    >>> weights = np.zeros((basis.n_directions_ + 1, 1), dtype=np.int64)
    >>> student = sb.MomentsStudent(basis, weights, ["no", "yes"])
    >>> student.predict_proba([[30]]).tolist()
    [[0.5, 0.5]]
    """

    def __init__(
        self, basis: TableBasis | KernelBasis, weights: IntArray, classes: Sequence[Any]
    ) -> None:
        self.basis = basis
        self.weights = weights
        self.classes = classes

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: Any, y: Any = None) -> Self:
        """Return the student as it is: what it knows was released."""
        return self

    @property
    def classes_(self) -> NDArray[Any]:
        """Class values, shape (n_classes,)."""
        return np.asarray(self.classes)

    @property
    def n_features_in_(self) -> int:
        """Columns of the points."""
        return int(self.basis.n_features_in_)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of every row of `X`, shape (n_points,)."""
        values: NDArray[Any] = self.classes_[self._model.labels(self._coordinates(X))]
        return values

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of every class for every row of `X`, shape (n_points,
        n_classes)."""
        counts = self._model.probabilities(self._coordinates(X))
        shares: FloatArray = counts / counts.sum(axis=1, keepdims=True)
        return shares

    @property
    def _model(self) -> IntegerModel:
        return IntegerModel(self.weights)

    def _coordinates(self, X: Any) -> IntArray:
        check_is_fitted(self.basis)
        return with_constant(self.basis.integers(X))
