"""Learn from public features and private labels by one noisy sum."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin

from secretballot.accounting import PrivacyBudget
from secretballot.bases import Basis
from secretballot.bases.integer_model import with_constant
from secretballot.core.ledger import Ledger
from secretballot.ensemble.rows import n_rows
from secretballot.foreign_code import one_thread
from secretballot.learners.moments.base import (
    checked_basis_and_budget,
    last_weights,
    student_of_labels,
    try_student_of_labels,
    unfitted_basis,
)
from secretballot.learners.moments.private_input import note_columns
from secretballot.learners.moments.release import release_moments
from secretballot.learners.moments.stages import label_sums
from secretballot.learners.moments.targets import ClassTarget
from secretballot.learners.training.account import account_of_fit, check_keeping
from secretballot.learners.training.inputs import as_matrix, with_public_types
from secretballot.learners.training.learner_state import LearnerState
from secretballot.learners.training.point_digests import points_digest
from secretballot.learners.training.student_predictions import StudentPredictions
from secretballot.learners.training.surroundings import warn_inside_sklearn
from secretballot.records import label_records
from secretballot.released import ReleasedLabels
from secretballot.students.moments_student import MomentsStudent


# scikit-learn ships no types
class LabelPrivateMomentsClassifier(
    StudentPredictions,
    LearnerState,
    ClassifierMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Learn a publishable classifier from public features and private labels, all at once.

    As `RecordMomentsClassifier`, where everybody may know who is in the data and all that is
    written of them, and the label alone is private: the records without their labels are the public
    points, so no pool is needed, and one sum is enough. Choose this only where all features of all
    records may be known to everybody: what they tell of a label is not protected.
    `LabelPrivateClassifier` takes any black-box teacher instead.

    Parameters
    ----------
    basis : basis of `secretballot.bases`, optional
        Cloned and fitted to the features; `TableBasis.suited_to` by default.
    student : scikit-learn classifier, optional
        Learns from the released labels of all records. By default the model itself is the student
        (`MomentsStudent`).
    budget : PrivacyBudget
        (epsilon, delta) of this fit, with delta above 0. Left out with a ledger that has a list:
        its noise is the list's.
    ledger : Ledger, optional
        Account of the private labels, made with ``unit="label"`` and ``neighbours="replace-one"``.
        Without one the fit keeps an account of its own, in memory.
    request, purpose, random_state
        As for `RecordMomentsClassifier`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    student_ : fitted classifier
    released_labels_ : ReleasedLabels
        Labels of all rows of `X` by the model, not those that were given; its certificate holds the
        released sum.
    certificate_ : dict
        What may be shown to a stranger.
    n_features_in_ : int

    Privacy
    -------
    Unit : one label.
    Relation : replace one label by another; the features and the number of records are public.
    Sensitivity : a label moves the sum by its record's coordinates, shortened by a rule that looks
        at features alone, times sqrt(2) (of two classes: times 1), in L2 norm
        (`secretballot.records.label_records`).
    Price : `budget`, by one `VectorSum`, composed in `ledger` with everything else released of
        the same labels.
    Source : the sufficient statistics of logistic regression, with noise; the price is proved in
        `docs/explanation/prices.md`, section 10.
    Rounding : upward; vectors, sums and noise are integers.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> model = sb.LabelPrivateMomentsClassifier(
    ...     budget=sb.PrivacyBudget(epsilon=1.0, delta=1e-5))
    >>> model = model.fit(X, (X[:, 0] > 0).astype(int), classes=[0, 1])
    >>> model.predict([[-2.0, 0.0], [2.0, 0.0]]).tolist(), model.certificate_["unit"]
    ([0, 1], 'label')
    """

    def __init__(
        self,
        basis: Basis | None = None,
        student: Any = None,
        *,
        budget: PrivacyBudget | None = None,
        ledger: Ledger | None = None,
        request: str | None = None,
        purpose: str = "",
        random_state: int | None = None,
    ) -> None:
        self.basis = basis
        self.student = student
        self.budget = budget
        self.ledger = ledger
        self.request = request
        self.purpose = purpose
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike, *, classes: Sequence[Any] | None = None) -> Self:
        """Learn from public features and private labels.

        Parameters
        ----------
        X : array, sparse matrix, list of rows or frame of shape (n_records, n_features)
            Public.
        y : sequence of shape (n_records,)
            Private labels, each one of `classes`.
        classes : sequence of two or more values
            Public; never inferred from the private labels.

        Raises
        ------
        ParameterError, DataError
            If something does not fit, or a `student` cannot learn from the points with dummy
            labels; nothing was spent.
        BudgetError
            If the ledger does not admit the price; nothing was spent.
        """
        warn_inside_sklearn(alone=self.ledger is None)
        target = ClassTarget.declared(classes)
        budget = checked_basis_and_budget(self.basis, self.budget)
        X = as_matrix("X", X)
        typed = with_public_types(X, X)
        # on dummy labels, before the private ones are read and anything is paid
        try_student_of_labels(self.student, typed, target.classes)
        labels = target.read(y, n_rows(X))
        check_keeping(self.ledger, None, self.request)
        account = account_of_fit(self.ledger, budget, unit="label", neighbours="replace-one")
        with one_thread():
            basis = unfitted_basis(self.basis, typed).fit(typed)
            points = with_constant(basis.integers(typed))
            released = release_moments(
                label_records(points, labels, len(target.classes)),
                label_sums(points, target, budget),
                account,
                budget,
                basis=basis.describe(),
                points_sha256=points_digest(typed),
                request=self.request,
                purpose=self.purpose,
                declaration={
                    "unit": "label",
                    "neighbours": "replace-one",
                    "assumptions": ["The features of all records are public."],
                },
            )
        assert isinstance(released, ReleasedLabels)
        self.released_labels_ = released
        self.certificate_ = released.certificate
        self.classes_ = np.asarray(list(target.classes))
        note_columns(self, X)
        weights = last_weights(self.certificate_["public"], points.shape[1])
        model = MomentsStudent(basis, weights, list(target.classes))
        self.student_ = student_of_labels(self.student, model, typed, released, self.random_state)
        return self

    @property
    def _student_to_fit(self) -> Any:
        return MomentsStudent if self.student is None else self.student
