"""Learn from every record by one noisy sum, in a basis that public points fix."""

import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, clone

from secretballot._validation import NEIGHBOURS, check_choice, check_count, shown
from secretballot.bases import KernelBasis, TableBasis
from secretballot.bases.integer_model import with_constant
from secretballot.door.purchase import check_keeping
from secretballot.door.vector_sums import release_sums
from secretballot.ensemble.isolation import one_thread
from secretballot.ensemble.scores import unit_numbers
from secretballot.exceptions import Argument, Parameter, ParameterError
from secretballot.learners.moments.stages import staged_sums
from secretballot.learners.training.account import account_of_fit, required_budget
from secretballot.learners.training.inputs import (
    as_matrix,
    check_same_columns,
    class_indices,
    declared_classes,
    n_columns,
    n_rows,
    with_public_types,
)
from secretballot.learners.training.learner_state import LearnerState
from secretballot.learners.training.point_digests import points_digest
from secretballot.learners.training.student_predictions import StudentPredictions
from secretballot.privacy.accounting import PrivacyBudget
from secretballot.privacy.ledger import Ledger
from secretballot.records import PrivateRecords
from secretballot.records.mapped_rows import mapped_rows
from secretballot.students.fitting import fit_student
from secretballot.students.moments_student import MomentsStudent

__all__ = ["RecordMomentsClassifier"]

MOST_STAGES = 10


# scikit-learn ships no types
class RecordMomentsClassifier(
    StudentPredictions,
    LearnerState,
    ClassifierMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Learn a publishable classifier from private records and a public pool, all records at once.

    Public points fix a basis. Every record adds its coordinates times what the model so far misses
    of its class to one sum, which is released with noise; the model is the logistic or softmax one
    whose moments on the pool meet the released ones. No record is cut off into a shard, so this is
    the most accurate learner here for tables. Use `PATEClassifier` for black-box learners, data in
    silos, and vote files.

    Parameters
    ----------
    basis : TableBasis or KernelBasis, optional
        Cloned and fitted to the public points; a `TableBasis` by default.
    student : scikit-learn classifier, optional
        Learns from the released labels of the public points. By default the model itself is the
        student (`MomentsStudent`).
    budget : PrivacyBudget
        (epsilon, delta) of this fit, with delta above 0.
    n_stages : int, default 4
        Noisy sums, each starting from the model of the one before; at most 10.
    neighbours : {"add-remove", "replace-one"}, default "add-remove"
        Relation of the promise.
    ledger : Ledger, optional
        Account of the private dataset. Without one the fit keeps an account of its own, in memory.
    request : str, optional
        Key of this fit in the ledger: the same key gets the stored answer, or goes on after an
        interruption.
    purpose : str
        Why, in a few words; public.
    random_state : int, optional
        Public seed of a `student`. Never of the noise.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    student_ : fitted classifier
    released_labels_ : ReleasedLabels
        Labels of all public points by the model; its certificate holds the released sums.
    certificate_ : dict
        What may be shown to a stranger.
    coverage_ : Coverage
        How many records have values that the public points do not show; released.
    n_features_in_ : int

    Privacy
    -------
    Unit : one record, or all records of one id where `units` is given.
    Relation : add or remove one unit, or replace one record in place.
    Sensitivity : every unit's integer vector has at most a fixed L2 norm (`PrivateRecords`); twice
        that for replace-one.
    Price : `budget`, by one `VectorSumEvent` over all stages, composed in `ledger` with everything
        else released from the same data.
    Source : the moments of a generalised linear model with unlabelled public data, as in
        arXiv:2403.03856; the price is proved in `docs/explanation/prices.md`, section 10.
    Rounding : upward; vectors, sums and noise are integers.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(3000, 2))
    >>> model = sb.RecordMomentsClassifier(budget=sb.PrivacyBudget(epsilon=1.0, delta=1e-6))
    >>> model = model.fit(
    ...     X[:2000], (X[:2000, 0] > 0).astype(int), X_public=X[2000:], classes=[0, 1])
    >>> model.predict([[-2.0, 0.0], [2.0, 0.0]]).tolist(), model.certificate_["epsilon"]
    ([0, 1], 1.0)
    """

    def __init__(
        self,
        basis: TableBasis | KernelBasis | None = None,
        student: Any = None,
        *,
        budget: PrivacyBudget | None = None,
        n_stages: int = 4,
        neighbours: str = "add-remove",
        ledger: Ledger | None = None,
        request: str | None = None,
        purpose: str = "",
        random_state: int | None = None,
    ) -> None:
        self.basis = basis
        self.student = student
        self.budget = budget
        self.n_stages = n_stages
        self.neighbours = neighbours
        self.ledger = ledger
        self.request = request
        self.purpose = purpose
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        X_public: Any = None,
        classes: Sequence[Any] | None = None,
        units: Any = None,
        unit_name: str | None = None,
    ) -> Self:
        """Learn from private records.

        Parameters
        ----------
        X : array, sparse matrix, list of rows or frame of shape (n_records, n_features)
            Private.
        y : sequence of shape (n_records,)
            Private labels, each one of `classes`.
        X_public : like X, of shape (n_public, n_features)
            Public points, unlabelled.
        classes : sequence of two or more values
            Public; never inferred from the private labels.
        units : array of shape (n_records,), optional
            Ids, such as patient numbers: all records of one id are protected together. With
            "add-remove" only, and with a `ledger` about users.
        unit_name : str, optional
            What the ids are, for the certificate.

        Raises
        ------
        ParameterError, DataError
            If something does not fit; nothing was spent, unless it is a `student` that cannot learn
            from what was released.
        BudgetError
            If the ledger does not admit the price; nothing was spent.
        """
        self.fit_labels(X, y, X_public=X_public, classes=classes, units=units, unit_name=unit_name)
        if self.student is not None:
            points = as_matrix("X_public", X_public)
            self.student_ = fit_student(
                self.student,
                with_public_types(points, points),
                self.released_labels_,
                random_state=self.random_state or 0,
            )
        return self

    def fit_labels(
        self,
        X: Any,
        y: ArrayLike,
        *,
        X_public: Any = None,
        classes: Sequence[Any] | None = None,
        units: Any = None,
        unit_name: str | None = None,
    ) -> Self:
        """Do all that `fit` does but fit a `student`: the model itself is there."""
        # Settings, then public points and the basis, then the account; private records come last,
        # and are only mapped before the purchase.
        names = declared_classes(classes)
        budget = self._checked_budget(units)
        X, X_public = as_matrix("X", X), as_matrix("X_public", X_public)
        check_same_columns(X, X_public)
        X, X_public = with_public_types(X, X_public), with_public_types(X_public, X_public)
        index = class_indices(y, names, n_rows(X))
        persons = None if units is None else unit_numbers(units, n_rows(X))
        unit = "record" if persons is None else "user"
        check_keeping(self.ledger, None, self.request)
        account = account_of_fit(self.ledger, budget, unit=unit, neighbours=self.neighbours)
        with one_thread():
            basis = clone(TableBasis() if self.basis is None else self.basis).fit(X_public)
            pool = with_constant(basis.integers(X_public))
            # under add-remove their number is private, and the sums count them
            public_number = n_rows(X) if self.neighbours == "replace-one" else None
            stages, asked = staged_sums(
                pool,
                names,
                budget,
                n_stages=self.n_stages,
                n_records=public_number,
                neighbours=self.neighbours,
                basis=basis.describe(),
                expected_uncovered=basis.uncovered_share_,
                points_sha256=points_digest(X_public),
            )
            coordinates, covered = mapped_rows(basis, X)
            beyond = ~covered
            known = [] if public_number is not None else [np.ones(len(beyond), dtype=np.int64)]
            marks = np.column_stack([*known, beyond.astype(np.int64)])
            records = PrivateRecords(coordinates, index, len(names), persons, marks)
            self.released_labels_ = release_sums(
                records,
                asked,
                account,
                request=self.request,
                purpose=self.purpose,
                declaration={
                    "unit": unit,
                    "unit_column": unit_name if units is not None else None,
                    "neighbours": self.neighbours,
                },
            )
        self.certificate_ = self.released_labels_.certificate
        sums = [np.array(one) for one in self.certificate_["mechanism"]["sums"]]
        self.coverage_ = stages.coverage_of(sums)
        if self.coverage_.is_poor:
            warnings.warn(self.coverage_.warning, UserWarning, stacklevel=2)
        weights = np.array(self.certificate_["mechanism"]["weights"][-1], dtype=np.int64)
        self.student_ = MomentsStudent(basis, weights.reshape(pool.shape[1], -1), names)
        self.classes_ = np.asarray(names)
        self.n_features_in_ = n_columns(X)
        if hasattr(X, "columns") and all(isinstance(name, str) for name in X.columns):
            self.feature_names_in_ = np.asarray(X.columns, dtype=object)
        return self

    def _checked_budget(self, units: Any) -> PrivacyBudget:
        """Return the budget, after refusing settings that cannot be."""
        if self.basis is not None and not isinstance(self.basis, TableBasis | KernelBasis):
            raise ParameterError(
                Parameter("basis"),
                f" is a {type(self.basis).__name__}; give a TableBasis or a KernelBasis, fitted"
                " to the public points here.",
            )
        if check_count("n_stages", self.n_stages) > MOST_STAGES:
            raise ParameterError(
                Parameter("n_stages"),
                f" is {self.n_stages}; more than {MOST_STAGES} only divide the budget.",
            )
        replaced = check_choice("neighbours", self.neighbours, NEIGHBOURS) == "replace-one"
        if replaced and units is not None:
            raise ParameterError(
                Parameter("units"),
                " are given with ",
                Argument("neighbours", "replace-one"),
                ", which is about single records.",
            )
        budget = required_budget(self.budget)
        if not budget.delta > 0:
            raise ParameterError(
                Parameter("delta"),
                f" is {shown(budget.delta)}; Gaussian noise needs more than 0, such as 1e-6.",
            )
        return budget

    @property
    def _student_to_fit(self) -> Any:
        return MomentsStudent if self.student is None else self.student
