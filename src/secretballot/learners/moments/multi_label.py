"""Learn several labels from every record by one noisy sum, in a basis that public points fix."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from secretballot._typing import FloatArray, IntArray
from secretballot.accounting import PrivacyBudget
from secretballot.bases import Basis
from secretballot.core.ledger import Ledger
from secretballot.learners.moments.base import MomentsLearner
from secretballot.learners.moments.targets import LabelsTarget
from secretballot.learners.training.student_predictions import checked_points
from secretballot.released import ReleasedSums
from secretballot.students.moments_student import MomentsLabelsStudent


# scikit-learn ships no types
class RecordMomentsMultiLabelClassifier(ClassifierMixin, MomentsLearner):  # type: ignore[misc]
    """Learn several labels, each there or not, from private records and a public pool, all at once.

    As `RecordMomentsClassifier`, with a logistic function for each label. A record's vector is
    bounded over all labels together, so the noise on each grows with the square root of their
    number, and no budget is to be divided by hand.

    Parameters
    ----------
    basis : basis of `secretballot.bases`, optional
        Cloned and fitted to the public points; `TableBasis.suited_to` by default.
    budget : PrivacyBudget
        (epsilon, delta) of this fit, all labels together, with delta above 0. Left out with a
        ledger that has a list: its noise is the list's.
    n_stages : int, default 4
        Noisy sums, each starting from the model of the one before; at most 10.
    neighbours, ledger, request, purpose
        As for `RecordMomentsClassifier`.

    Attributes
    ----------
    labels_ : ndarray of shape (n_labels,)
        Their names.
    classes_ : list of n_labels ndarrays
        0 and 1, for each label, as scikit-learn has it.
    student_ : MomentsLabelsStudent
        The model, without anything private; it can be pickled.
    released_sums_ : ReleasedSums
        What left the door. `write_release` does not take it: publish certificate and student.
    certificate_ : dict
        What may be shown to a stranger; it holds the released sums.
    coverage_ : Coverage
        How many records have values that the public points do not show; released.
    n_features_in_ : int

    Privacy
    -------
    Unit : one record with all its labels, or all records of one id where `units` is given.
    Relation : add or remove one unit, or replace one record in place.
    Sensitivity : every unit's integer vector, over all labels together, has at most a fixed L2 norm
        (`secretballot.core.private.RecordSums`); twice that for replace-one.
    Price : `budget`, by one `VectorSum` over all stages, composed in `ledger` with everything
        else released from the same data.
    Source : as for `RecordMomentsClassifier`; the price is proved in
        `docs/explanation/prices.md`, section 10.
    Rounding : upward; vectors, sums and noise are integers.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(3000, 2))
    >>> Y = (X > 0).astype(int)
    >>> model = sb.RecordMomentsMultiLabelClassifier(
    ...     budget=sb.PrivacyBudget(epsilon=1.0, delta=1e-6))
    >>> model = model.fit(X[:2000], Y[:2000], X_public=X[2000:], labels=["tall", "old"])
    >>> model.predict([[-2.0, 2.0], [2.0, 2.0]]).tolist(), model.certificate_["epsilon"]
    ([[0, 1], [1, 1]], 1.0)
    """

    def __init__(
        self,
        basis: Basis | None = None,
        *,
        budget: PrivacyBudget | None = None,
        n_stages: int = 4,
        neighbours: str = "add-remove",
        ledger: Ledger | None = None,
        request: str | None = None,
        purpose: str = "",
    ) -> None:
        self.basis = basis
        self.budget = budget
        self.n_stages = n_stages
        self.neighbours = neighbours
        self.ledger = ledger
        self.request = request
        self.purpose = purpose

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        X_public: Any = None,
        labels: Sequence[str] | None = None,
        units: Any = None,
        unit_name: str | None = None,
    ) -> Self:
        """Learn from private records.

        Parameters
        ----------
        X : array, sparse matrix, list of rows or frame of shape (n_records, n_features)
            Private.
        y : array, sparse matrix, list of rows or frame of shape (n_records, n_labels)
            Private; 1 where a record has the label, else 0. A frame has the labels as its columns.
        X_public : like X, of shape (n_public, n_features)
            Public points, unlabelled.
        labels : sequence of distinct str
            Public names of the labels.
        units : array of shape (n_records,), optional
            Ids, such as patient numbers: all records of one id are protected together. With
            "add-remove" only, and with a `ledger` about users.
        unit_name : str, optional
            What the ids are, for the certificate.

        Raises
        ------
        ParameterError, DataError
            If something does not fit; nothing was spent.
        BudgetError
            If the ledger does not admit the price; nothing was spent.
        """
        target = LabelsTarget.named(labels)
        learnt = self._fit_to(target, X, y, X_public, units, unit_name)
        # no classes are declared here, so the sums alone come out, and no labels of public points
        assert isinstance(learnt.released, ReleasedSums)
        self.released_sums_ = learnt.released
        self.labels_ = np.array(target.labels)
        self.student_ = MomentsLabelsStudent(learnt.basis, learnt.weights, list(target.labels))
        return self

    @property
    def classes_(self) -> list[NDArray[Any]]:
        """0 and 1, for each label."""
        return self.student_.classes_

    def predict(self, X: Any) -> IntArray:
        """Return which labels are more probable than not, 0 and 1 of shape (n_rows, n_labels)."""
        points = checked_points(self, X)
        return self.student_.predict(points)

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of every label, shape (n_rows, n_labels)."""
        points = checked_points(self, X)
        return self.student_.predict_proba(points)
