"""Students in a class of hypotheses: the one that the released labels agree with most, and a
weighted vote of K, by K rounds of AdaBoost."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import AdaBoostClassifier
from sklearn.utils import Tags, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from secretballot._typing import FloatArray
from secretballot.exceptions import DataError, Parameter
from secretballot.hypotheses import DecisionStumps, Hypothesis, HypothesisClass


# scikit-learn ships no types
class HypothesisStudent(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Learn the hypothesis of a class with the fewest mistakes on the released labels, exactly.

    The natural student where queries are chosen by disagreement within the same class: it is the
    output of Algorithm 7 of Liu et al. 2021 (supplement, appendix E).

    Parameters
    ----------
    hypotheses : HypothesisClass, optional
        By default the decision stumps on all columns.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Two classes, or one where the labels are all alike.
    hypothesis_ : Hypothesis
        Says 1 where the student says ``classes_[1]``.
    n_features_in_ : int

    Examples
    --------
    >>> student = sb.HypothesisStudent(sb.hypotheses.Thresholds())
    >>> student = student.fit([[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "yes"])
    >>> student.hypothesis_.describe()
    {'threshold': 1.5, 'direction': 'up', 'feature': 0}
    """

    def __init__(self, hypotheses: HypothesisClass | None = None) -> None:
        self.hypotheses = hypotheses

    @classmethod
    def of(
        cls,
        hypothesis: Hypothesis,
        hypotheses: HypothesisClass,
        classes: Sequence[Any],
        n_features: int,
    ) -> Self:
        """Return the student whose hypothesis was found in another way than by `fit`, fitted.

        Parameters
        ----------
        hypothesis : Hypothesis
        hypotheses : HypothesisClass
            Its class.
        classes : sequence of two values
            What 0 and 1 stand for.
        n_features : int
        """
        student = cls(hypotheses)
        student.classes_, student.hypothesis_ = np.asarray(classes), hypothesis
        student.n_features_in_ = n_features
        return student

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Search the class.

        Parameters
        ----------
        X : array of shape (n_points, n_features)
        y : array of shape (n_points,)
            Of at most two classes.
        sample_weight : array of shape (n_points,), optional
            What a mistake on each point counts, at least 0.

        Returns
        -------
        self

        Raises
        ------
        DataError
            If there are more than two classes, all weights are zero, or points or weights do not
            fit the class of hypotheses.
        """
        points, labels = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(labels)
        self.classes_, index = np.unique(labels, return_inverse=True)
        if len(self.classes_) > 2:
            raise DataError(
                "Only binary classification is supported: a hypothesis distinguishes two classes,"
                f" and there are {len(self.classes_)}; use another student."
            )
        if sample_weight is not None and not np.asarray(sample_weight).any():
            raise DataError(
                Parameter("sample_weight"),
                " is zero for every point; give some of them a positive weight.",
            )
        hypotheses = DecisionStumps(points.shape[1]) if self.hypotheses is None else self.hypotheses
        self.hypothesis_ = hypotheses.erm(points, index, sample_weight)
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the class of every row of `X`, shape (n_points,)."""
        check_is_fitted(self)
        labels = self.hypothesis_.predict(validate_data(self, X, dtype=np.float64, reset=False))
        # where one class alone was seen, a hypothesis that is constant on its points may say 1
        # elsewhere
        values: NDArray[Any] = self.classes_[np.minimum(labels, len(self.classes_) - 1)]
        return values

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


# scikit-learn ships no types
class VotingStudent(AdaBoostClassifier):  # type: ignore[misc]
    """Learn a weighted vote of at most K hypotheses of a class H, by AdaBoost.

    For many classes it is SAMME. K is `n_estimators`, and the learner of H is `estimator`, by
    default a decision stump. Probabilities are shares of the vote: how clear it is, which is not
    the chance of the class.

    What the teachers' vote looks like is seldom in the student's class H itself, however simple the
    teachers are; it is in Vote_K(H), the class of votes of K hypotheses, where learning from
    released labels is realisable.

    Notes
    -----
    For two classes, d the VC dimension of H and K, d >= 3, Shalev-Shwartz and Ben-David 2014, Lemma
    10.3:

        VC(Vote_K(H)) <= K (d + 1) (3 log(K (d + 1)) + 2) = O(K d log(K d)).

    Liu et al. 2021 print K d before Theorem 13, which is false: lines in the plane have VC
    dimension 2, and votes of two of them, ties to class 1, shatter five points. Their bound holds
    with the right dimension in its place, a logarithm more.

    Examples
    --------
    >>> points = [[0.0], [1.0], [2.0], [3.0]]
    >>> student = sb.VotingStudent(n_estimators=3)
    >>> student.fit(points, [0, 1, 1, 0]).predict(points).tolist()  # no one threshold does
    [0, 1, 1, 0]
    """

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: Any = None) -> Self:
        """Fit the vote; where AdaBoost finds its first hypothesis no better than a guess, that one
        votes alone, since a release is paid for and must yield a student."""
        try:
            super().fit(X, y, sample_weight)
        except ValueError as error:
            if "worse than random" not in str(error):
                raise
            seeds = check_random_state(self.random_state)
            self._make_estimator(random_state=seeds).fit(X, y, sample_weight=sample_weight)
            self.estimator_weights_ = np.ones(1)
        return self

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Return the share of the vote for each class, shape (n_points, n_classes)."""
        # a class with the share s has (C s - 1) / (C - 1), and of two the difference is given
        scores, n_classes = self.decision_function(X), self.n_classes_
        if n_classes == 2:
            scores = np.column_stack([-scores, scores]) / 2
        return np.asarray((scores * (n_classes - 1) + 1) / n_classes)
