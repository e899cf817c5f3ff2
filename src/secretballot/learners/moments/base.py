"""What all learners by record moments do: settings, then public points, then one noisy sum a
stage."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from secretballot._typing import FloatArray, IntArray
from secretballot._validation import NEIGHBOURS, check_choice, check_count, shown
from secretballot.accounting import PrivacyBudget
from secretballot.bases import Basis
from secretballot.bases.integer_model import with_constant
from secretballot.core.ledger import Ledger
from secretballot.ensemble.rows import n_rows
from secretballot.ensemble.stored_table import StoredTable
from secretballot.ensemble.votes import guarantee_of
from secretballot.exceptions import Argument, Parameter, ParameterError
from secretballot.foreign_code import one_thread
from secretballot.learners.moments.class_weights import ClassWeights, suited_basis
from secretballot.learners.moments.private_input import private_input
from secretballot.learners.moments.release import release_moments
from secretballot.learners.moments.stages import staged_sums
from secretballot.learners.moments.start import check_start, released_start
from secretballot.learners.moments.targets import Target
from secretballot.learners.training.account import (
    account_of_fit,
    check_keeping,
    required_budget,
)
from secretballot.learners.training.inputs import with_public_types
from secretballot.learners.training.learner_state import LearnerState
from secretballot.learners.training.point_digests import points_digest
from secretballot.learners.training.surroundings import warn_inside_sklearn
from secretballot.released import ReleasedLabels, ReleasedSums
from secretballot.report.certificate.coverage import Coverage
from secretballot.students.fitting import fit_student
from secretballot.students.moment_links import ClassesLink
from secretballot.students.trial import Teaching, try_student

MOST_STAGES = 10


@dataclass(frozen=True, eq=False)
class LearntModel:
    """What a release came to.

    Attributes
    ----------
    basis : basis of `secretballot.bases`
        Fitted to the public points.
    weights : ndarray of int64, shape (n_coordinates, n_columns)
    released : ReleasedLabels or ReleasedSums
    """

    basis: Basis
    weights: IntArray
    released: ReleasedLabels | ReleasedSums


# scikit-learn ships no types
class MomentsLearner(LearnerState, BaseEstimator):  # type: ignore[misc]
    """Settings that all learners by record moments have, and the fit of any target."""

    basis: Basis | None
    budget: PrivacyBudget | None
    n_stages: int
    neighbours: str
    ledger: Ledger | None
    request: str | None
    purpose: str
    certificate_: dict[str, Any]
    coverage_: Coverage

    def _fit_to(
        self,
        target: Target,
        X: Any,
        y: Any,
        X_public: Any,
        units: Any,
        unit_name: str | None,
        start: Any = None,
        student: Any = None,
        class_weights: ClassWeights | None = None,
        class_shares: FloatArray | None = None,
    ) -> LearntModel:
        """Release the sums of all stages, and note certificate, coverage and columns."""
        # Settings, then public points and the basis, then the account; private records come last,
        # and are only mapped before the purchase.
        warn_inside_sklearn(alone=self.ledger is None)
        budget = self._checked_budget(X.unit_name if isinstance(X, StoredTable) else units)
        private, X_public = private_input(X, y, X_public, units, unit_name, target.classes)
        check_start(start, target.classes, X_public)
        try_student_of_labels(student, X_public, target.classes)
        private.read(target)
        check_keeping(self.ledger, None, self.request)
        account = account_of_fit(self.ledger, budget, unit=private.unit, neighbours=self.neighbours)
        private.refuse_points(X_public)
        with one_thread():
            basis = unfitted_basis(self.basis, X_public, class_shares).fit(X_public)
            pool = with_constant(basis.integers(X_public))
            begun = None
            if start is not None:
                assert isinstance(target.link, ClassesLink)  # a start has classes
                begun = released_start(start, pool, target.link)
            # under add-remove their number is private, and the sums count them
            public_number = private.n_records if self.neighbours == "replace-one" else None
            stages = staged_sums(
                pool,
                target,
                budget,
                n_stages=self.n_stages,
                n_records=public_number,
                guarantee=guarantee_of(private.unit, self.neighbours),
                expected_uncovered=basis.uncovered_share_,
                start=begun,
                class_weights=class_weights,
            )
            released = release_moments(
                private.records(basis, target, self.neighbours, counted=public_number is None),
                stages,
                account,
                budget,
                basis=basis.describe(),
                points_sha256=points_digest(X_public),
                request=self.request,
                purpose=self.purpose,
                declaration={
                    "unit": private.unit,
                    "unit_column": private.unit_name,
                    "neighbours": self.neighbours,
                },
            )
        self.certificate_ = released.certificate
        sums = [np.array(one) for one in released.certificate["released"]["values"]]
        self.coverage_ = stages.coverage_of(sums)
        if self.coverage_.is_poor:
            warnings.warn(self.coverage_.warning, UserWarning, stacklevel=4)
        private.note_columns(self)
        return LearntModel(
            basis, last_weights(released.certificate["public"], pool.shape[1]), released
        )

    def _checked_budget(self, units: Any) -> PrivacyBudget:
        """Return the budget, after refusing settings that cannot be."""
        budget = checked_basis_and_budget(self.basis, self.budget)
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
        return budget


def unfitted_basis(
    basis: Basis | None, X_public: Any, class_shares: FloatArray | None = None
) -> Basis:
    """Return a copy of a basis that was given, or one that suits the public points, of shape
    (n_public, n_features), and classes of these public shares, of shape (n_classes,)."""
    return suited_basis(X_public, class_shares) if basis is None else clone(basis)


def checked_basis_and_budget(basis: object, budget: object) -> PrivacyBudget:
    """Return the budget, after refusing a basis that is none and a delta of 0.

    Raises
    ------
    ParameterError
        If the basis is none, or there is no budget with a delta above 0.
    """
    if basis is not None and not isinstance(basis, Basis):
        raise ParameterError(
            Parameter("basis"),
            f" is a {type(basis).__name__}; give one of secretballot.bases, such as TableBasis(),"
            " which is fitted to the public points here.",
        )
    known = required_budget(budget)
    if not known.delta > 0:
        raise ParameterError(
            Parameter("delta"),
            f" is {shown(known.delta)}; Gaussian noise needs more than 0, such as 1e-6.",
        )
    return known


def last_weights(public: Mapping[str, Any], n_coordinates: int) -> IntArray:
    """Return the weights of the last stage, shape (n_coordinates, n_columns)."""
    weights: IntArray = np.array(public["weights"][-1], dtype=np.int64)
    return weights.reshape(n_coordinates, -1)


def try_student_of_labels(student: Any, points: Any, classes: Sequence[Any]) -> None:
    """Refuse a student, if there is one, that cannot learn labels of all of these points.

    Parameters
    ----------
    student : scikit-learn classifier or None
    points : array, sparse matrix or frame of shape (n_points, n_features)
        Public, with their types.
    classes : sequence

    Raises
    ------
    ParameterError
        Saying what went wrong.
    """
    if student is not None:
        try_student(student, points, Teaching(classes, n_rows(points)))


def student_of_labels(
    student: Any, model: Any, points: Any, released: ReleasedLabels, random_state: int | None
) -> Any:
    """Return the model itself, or a student that learnt from its labels of the public points.

    Parameters
    ----------
    student : scikit-learn classifier or None
        Unfitted.
    model : fitted classifier
        Returned where no student is wanted.
    points : array, sparse matrix or frame of shape (n_points, n_features)
        Public.
    released : ReleasedLabels
    random_state : int or None
    """
    if student is None:
        return model
    typed = with_public_types(points, points)
    return fit_student(student, typed, released, random_state=random_state or 0)
