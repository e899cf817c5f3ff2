"""A classifier for learners that want the classes as 0, 1, ..., whatever their names."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import Tags, assert_all_finite, column_or_1d, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from secretballot._typing import FloatArray
from secretballot.exceptions import DataError


def _has_probabilities(model: Any) -> bool:
    return hasattr(getattr(model, "classifier_", model.classifier), "predict_proba")


# scikit-learn ships no types
class NumberedClassesClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Number the classes that occur 0, 1, ... for a learner, and answer with the classes.

    Some learners, such as XGBoost's, refuse classes by name, and labels among which one number is
    missing. `fit_student` and the teachers put this around a learner that does.

    Parameters
    ----------
    classifier : classifier or pipeline
        Cloned and fitted to the numbers; it must predict them.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes that occurred, ascending: class number i is ``classes_[i]``.
    classifier_ : the fitted learner

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> student = sb.students.NumberedClassesClassifier(LogisticRegression())
    >>> student = student.fit([[0.0], [1.0], [2.0], [3.0]], ["low", "low", "high", "high"])
    >>> student.predict([[0.0], [3.0]]).tolist(), student.classifier_.classes_.tolist()
    (['low', 'high'], [0, 1])
    """

    def __init__(self, classifier: Any) -> None:
        self.classifier = classifier

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Fit a clone of the learner to the numbers of the classes.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_points, n_features)
        y : array of shape (n_points,)
        """
        labels = column_or_1d(y, warn=True)
        assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
        self.classes_, numbers = np.unique(labels, return_inverse=True)
        self.classifier_ = clone(self.classifier).fit(X, numbers.astype(np.int64))
        for name in ("n_features_in_", "feature_names_in_"):
            known = getattr(self.classifier_, name, None)
            if known is not None:
                setattr(self, name, known)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of every row of `X`, an array of shape (n_points,).

        Raises
        ------
        DataError
            If the learner answers with something else than the numbers that it was given.
        """
        check_is_fitted(self, "classifier_")
        # some learners answer with one column, or with whole floating-point numbers
        answers = np.asarray(self.classifier_.predict(X)).ravel()
        if not np.isin(answers, np.arange(len(self.classes_))).all():
            raise DataError(
                f"{type(self.classifier_).__name__} predicts values that are no number of a class;"
                " take a classifier that predicts the labels that it was fitted to."
            )
        values: NDArray[Any] = self.classes_[answers.astype(np.int64)]
        return values

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the learner's class probabilities, in the order of `classes_`, shape
        (n_points, n_classes)."""
        check_is_fitted(self, "classifier_")
        return np.asarray(self.classifier_.predict_proba(X))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.classifier).input_tags
        tags.input_tags.sparse, tags.input_tags.allow_nan = inner.sparse, inner.allow_nan
        return tags
