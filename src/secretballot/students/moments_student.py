"""A linear model in a public basis, as released moments have fixed it."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import ClassifierTags, RegressorTags, Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from secretballot._typing import FloatArray, IntArray
from secretballot.bases import Basis, TableBasis
from secretballot.bases.integer_model import (
    PROBABILITY_UNIT,
    IntegerLabels,
    IntegerLine,
    IntegerModel,
    LinearModel,
    Smoothed,
)
from secretballot.exceptions import DataError


# scikit-learn ships no types
class ReleasedStudent(BaseEstimator):  # type: ignore[misc]
    """What students of released values have in common: they are fitted from the start, and learn
    nothing further."""

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: Any, y: Any = None) -> Self:
        """Return the student as it is: what it knows was released."""
        return self


def _has_classes(student: Any) -> bool:
    return student.bounds is None


@dataclass(eq=False, repr=False)
class MomentsStudent(ReleasedStudent):
    """Predict by released weights in a basis that public points have fixed.

    Made by `RecordMomentsClassifier` and `RecordMomentsRegressor`; it is fitted from the start, and
    learns nothing further.

    Parameters
    ----------
    basis : basis of `secretballot.bases`
        Fitted to public points.
    weights : ndarray of int64, shape (n_coordinates, n_columns)
        Released; of the basis's directions, and of the constant.
    classes : sequence of two or more values
    labels : sequence of str
        In their place, names of labels, each of which is there or not.
    bounds : tuple of two floats
        In their place, bounds of a number.
    before : Smoothed, optional
        The prediction that the weights correct.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,), or a list of n_labels ndarrays of 0 and 1
    n_features_in_ : int

    Examples
    --------
    >>> basis = sb.bases.TableBasis().fit([[age] for age in range(60)])
    >>> weights = np.zeros((basis.n_directions_ + 1, 1), dtype=np.int64)
    >>> student = sb.MomentsStudent(basis, weights, ["no", "yes"])
    >>> student.predict_proba([[30]]).tolist()
    [[0.5, 0.5]]
    >>> sb.MomentsStudent(basis, weights, bounds=(0, 40)).predict([[30]]).tolist()
    [20.0]
    """

    basis: Basis
    weights: IntArray
    classes: Sequence[Any] | None = None
    _: KW_ONLY
    labels: Sequence[str] | None = None
    bounds: tuple[float, float] | None = None
    before: Smoothed | None = None

    @property
    def n_features_in_(self) -> int:
        """Columns of the points."""
        return int(self.basis.n_features_in_)

    @property
    def classes_(self) -> Any:
        """Class values, shape (n_classes,); of several labels 0 and 1 for each."""
        if self.labels is not None:
            return [np.array([0, 1]) for _ in self.labels]
        return np.asarray(self.classes)

    @property
    def model(self) -> LinearModel:
        """The model in integers."""
        kind = IntegerLine if self.bounds else IntegerLabels if self.labels else IntegerModel
        return kind(self.weights, self.before)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of every row of `X`, shape (n_points,); which labels are
        more probable than not, 0 and 1 of shape (n_points, n_labels); or the number, within its
        bounds, shape (n_points,)."""
        model, rows = self.model, self._rows(X)
        if isinstance(model, IntegerModel):
            return np.asarray(self.classes_[model.labels(rows)])
        shares = model.predictions(rows)
        if self.bounds is None:
            return (shares > PROBABILITY_UNIT // 2).astype(np.int64)
        low, high = self.bounds
        return np.asarray(low + (high - low) * (shares[:, 0] / PROBABILITY_UNIT))

    # scikit-learn ships no types
    @available_if(_has_classes)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of every class, or label, for every row of `X`, shape (n_points,
        n_classes) or (n_points, n_labels)."""
        model, rows = self.model, self._rows(X)
        if not isinstance(model, IntegerModel):
            return model.predictions(rows) / PROBABILITY_UNIT
        counts = model.probabilities(rows)
        shares: FloatArray = counts / counts.sum(axis=1, keepdims=True)
        return shares

    def score(self, X: Any, y: Any) -> float:
        """Return the accuracy on points of shape (n_points, n_features); of a number the
        coefficient of determination."""
        measure = accuracy_score if self.bounds is None else r2_score
        return float(measure(y, self.predict(X)))

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
        weights = self.weights.astype(np.float64)
        if self.before is not None:
            # what it says, as nearly as linear functions of the coordinates say it
            rows = self._rows(X)
            logits = self.before.logits(rows)
            weights += np.linalg.lstsq(rows[:, : len(weights)].astype(np.float64), logits)[0]
        # of more than two classes only differences between logits mean something
        if self.labels is None and self.weights.shape[1] > 1:
            weights -= weights.mean(axis=1, keepdims=True)
        return self.basis.column_shares(X, weights[:-1])

    def _rows(self, X: Any) -> IntArray:
        check_is_fitted(self.basis)
        return self.basis.rows(X)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if self.bounds is None:
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        else:
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        return tags
