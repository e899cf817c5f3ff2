"""Linear models in a public basis, as released moments have fixed them."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from secretballot._typing import FloatArray, IntArray
from secretballot.bases import Basis, TableBasis
from secretballot.bases.integer_model import PROBABILITY_UNIT, IntegerModel, with_constant
from secretballot.bases.integer_targets import IntegerLabels, IntegerLine
from secretballot.exceptions import DataError


# scikit-learn ships no types
class BasisStudent(BaseEstimator):  # type: ignore[misc]
    """A linear model in a public basis; it is fitted from the start, and learns nothing further.

    Attributes
    ----------
    basis : basis of `secretballot.bases`
        Fitted to public points.
    weights : ndarray of int64, shape (n_coordinates, n_columns)
        Released; of the basis's directions, and of the constant.
    """

    basis: Basis
    weights: IntArray

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: Any, y: Any = None) -> Self:
        """Return the student as it is: what it knows was released."""
        return self

    @property
    def n_features_in_(self) -> int:
        """Columns of the points."""
        return int(self.basis.n_features_in_)

    def column_shares(self, X: Any) -> FloatArray:
        """Return how much of what the model says on these points comes from each column.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_points, n_features)
            Public points.

        Returns
        -------
        ndarray of shape (n_features,)
            Share of the variance of the linear functions (of classes: of the logits), as the
            covariance of a column's part with the whole; together 1, or all 0 where the model says
            the same of all points. A share is below 0 where a column's part mostly takes back what
            others say.

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
        if self._columns_compete:
            effects -= effects.mean(axis=1, keepdims=True)
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
    def _columns_compete(self) -> bool:
        """Whether only differences between the columns of the weights mean something."""
        return False

    def _integer_coordinates(self, X: Any) -> IntArray:
        check_is_fitted(self.basis)
        return with_constant(self.basis.integers(X))


# scikit-learn ships no types
class MomentsStudent(ClassifierMixin, BasisStudent):  # type: ignore[misc]
    """Predict by released weights in a basis that public points have fixed.

    Made by `RecordMomentsClassifier`; it is fitted from the start, and learns nothing further.

    Parameters
    ----------
    basis : basis of `secretballot.bases`
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

    def __init__(self, basis: Basis, weights: IntArray, classes: Sequence[Any]) -> None:
        self.basis = basis
        self.weights = weights
        self.classes = classes

    @property
    def classes_(self) -> NDArray[Any]:
        """Class values, shape (n_classes,)."""
        return np.asarray(self.classes)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of every row of `X`, shape (n_points,)."""
        values: NDArray[Any] = self.classes_[
            self._integer_model.labels(self._integer_coordinates(X))
        ]
        return values

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of every class for every row of `X`, shape (n_points,
        n_classes)."""
        counts = self._integer_model.probabilities(self._integer_coordinates(X))
        shares: FloatArray = counts / counts.sum(axis=1, keepdims=True)
        return shares

    @property
    def _columns_compete(self) -> bool:
        return len(self.classes) > 2

    @property
    def _integer_model(self) -> IntegerModel:
        return IntegerModel(self.weights)


# scikit-learn ships no types
class MomentsRegressionStudent(RegressorMixin, BasisStudent):  # type: ignore[misc]
    """Predict a number by released weights in a basis that public points have fixed.

    Made by `RecordMomentsRegressor`; it is fitted from the start, and learns nothing further.

    Parameters
    ----------
    basis : basis of `secretballot.bases`
        Fitted to public points.
    weights : ndarray of int64, shape (n_coordinates, 1)
        Released; of the basis's directions, and of the constant.
    target_range : tuple of two floats
        Bounds of what is predicted.

    Attributes
    ----------
    n_features_in_ : int

    Examples
    --------
    >>> basis = sb.bases.TableBasis().fit([[age] for age in range(60)])
    >>> weights = np.zeros((basis.n_directions_ + 1, 1), dtype=np.int64)
    >>> sb.MomentsRegressionStudent(basis, weights, (0, 40)).predict([[30]]).tolist()
    [20.0]
    """

    def __init__(
        self,
        basis: Basis,
        weights: IntArray,
        target_range: tuple[float, float],
    ) -> None:
        self.basis = basis
        self.weights = weights
        self.target_range = target_range

    def predict(self, X: Any) -> FloatArray:
        """Return the predicted number of every row of `X`, within the bounds, shape
        (n_points,)."""
        low, high = self.target_range
        shares = IntegerLine(self.weights).predictions(self._integer_coordinates(X))[:, 0]
        numbers: FloatArray = low + (high - low) * (shares / PROBABILITY_UNIT)
        return numbers


# scikit-learn ships no types
class MomentsLabelsStudent(ClassifierMixin, BasisStudent):  # type: ignore[misc]
    """Predict several labels by released weights in a basis that public points have fixed.

    Made by `RecordMomentsMultiLabelClassifier`; it is fitted from the start, and learns nothing
    further.

    Parameters
    ----------
    basis : basis of `secretballot.bases`
        Fitted to public points.
    weights : ndarray of int64, shape (n_coordinates, n_labels)
        Released; of the basis's directions, and of the constant.
    labels : sequence of str

    Attributes
    ----------
    classes_ : list of n_labels ndarrays
        0 and 1, for each label.
    n_features_in_ : int

    Examples
    --------
    >>> basis = sb.bases.TableBasis().fit([[age] for age in range(60)])
    >>> weights = np.zeros((basis.n_directions_ + 1, 2), dtype=np.int64)
    >>> student = sb.MomentsLabelsStudent(basis, weights, ["ill", "old"])
    >>> student.predict_proba([[30]]).tolist(), student.predict([[30]]).tolist()
    ([[0.5, 0.5]], [[0, 0]])
    """

    def __init__(self, basis: Basis, weights: IntArray, labels: Sequence[str]) -> None:
        self.basis = basis
        self.weights = weights
        self.labels = labels

    @property
    def classes_(self) -> list[NDArray[Any]]:
        """0 and 1, for each label."""
        return [np.array([0, 1]) for _ in self.labels]

    def predict(self, X: Any) -> IntArray:
        """Return which labels are more probable than not, 0 and 1 of shape (n_points,
        n_labels)."""
        labels: IntArray = (self._integer_predictions(X) > PROBABILITY_UNIT // 2).astype(np.int64)
        return labels

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of every label, shape (n_points, n_labels)."""
        return self._integer_predictions(X) / PROBABILITY_UNIT

    def _integer_predictions(self, X: Any) -> IntArray:
        return IntegerLabels(self.weights).predictions(self._integer_coordinates(X))
