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
from secretballot.exceptions import DataError

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

    def column_shares(self, X: Any) -> FloatArray:
        """Return how much of what the model says on these points comes from each column.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_points, n_features)
            Public points.

        Returns
        -------
        ndarray of shape (n_features,)
            Share of the variance of the logits, as the covariance of a column's part with the
            whole; together 1, or all 0 where the model says the same of all points. A share is
            below 0 where a column's part mostly takes back what others say.

        Raises
        ------
        DataError
            If the basis mixes all columns, as a `KernelBasis` does.
        """
        check_is_fitted(self.basis)
        if not isinstance(self.basis, TableBasis):
            raise DataError(
                f"A {type(self.basis).__name__} mixes all columns, so none has a share of its own;"
                " use a TableBasis."
            )
        effects = self.basis.effects(self.weights[:-1])
        # of more than two classes only differences between logits mean something
        effects -= effects.mean(axis=1, keepdims=True) if effects.shape[1] > 1 else 0.0
        inputs, columns = self.basis.features(X)
        logits = inputs @ effects
        logits -= logits.mean(axis=0)
        covariances = inputs.T @ logits / len(logits)
        shares = np.bincount(
            columns, (effects * covariances).sum(axis=1), minlength=self.n_features_in_
        )
        total = shares.sum()
        parts: FloatArray = shares / total if total > 0 else np.zeros(self.n_features_in_)
        return parts

    @property
    def _model(self) -> IntegerModel:
        return IntegerModel(self.weights)

    def _coordinates(self, X: Any) -> IntArray:
        check_is_fitted(self.basis)
        return with_constant(self.basis.integers(X))
