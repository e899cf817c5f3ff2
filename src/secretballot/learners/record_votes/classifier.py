"""Record votes: each private record gives its label to the public points nearest to it."""

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import sklearn
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin, clone
from sklearn.utils import Tags

from secretballot._nearest_points import NearestPoints
from secretballot._validation import check_count, shown
from secretballot.accounting import PrivacyBudget, noisy_votes
from secretballot.accounting.recipes import Terms
from secretballot.core.private import Votes
from secretballot.data.stored import StoredTable
from secretballot.exceptions import Parameter, ParameterError
from secretballot.foreign_code import isolated
from secretballot.learners.record_votes.coordinates import (
    expected_uncovered,
    public_basis,
    voting_records,
)
from secretballot.learners.training.inputs import (
    as_matrix,
    declared_classes,
    random_rows,
    with_public_types,
)
from secretballot.learners.training.learner import Learner
from secretballot.learners.training.point_digests import points_digest
from secretballot.learners.training.student_predictions import StudentPredictions
from secretballot.learners.training.table import private_table
from secretballot.releasing import release_labels
from secretballot.report.certificate.coverage import coverage_by_votes
from secretballot.report.certificate.methods import EXPECTED_UNCOVERED, RECORD_VOTES
from secretballot.report.certificate.terms import stated
from secretballot.students import RecordVotesStudent, fit_student, learns_from_counts
from secretballot.students.trial import Teaching, try_student
from secretballot.teachers.records import record_votes_shape, votes_of_records
from secretballot.teachers.rows import n_rows, take_rows
from secretballot.teachers.votes import guarantee_of

# one in so many public points gets a vote of a record, and five points where that many are near
_ONE_IN, _FEW_VOTES, _FEW_IN = 100, 5, 10
# at each of the points on which a student is tried; how many there will be is private
_TRIAL_VOTES = 100


def default_votes(n_points: int) -> int:
    """Return for how many of `n_points` public points a record votes unless said otherwise.

    More votes of a record are more noise and still more knowledge, as long as their points are near
    to it: one in a hundred points measured best on a table (decision 0022).
    """
    return max(1, min(_FEW_VOTES, n_points // _FEW_IN), n_points // _ONE_IN)


# scikit-learn ships no types
@dataclass(eq=False, repr=False)
class RecordVotesClassifier(
    StudentPredictions,
    ClassifierMixin,  # type: ignore[misc]
    Learner,
):
    """Learn a publishable classifier from votes that private records cast for themselves.

    Every record gives its label to the public points nearest to it. How many votes each point got
    for each class is released with noise, as one table, and a student learns from it. One
    record moves a few counts by one, however many records, points and classes there are, so no
    record's influence is lost to shards, and no teacher is trained. A record with a value that the
    public points do not show votes at none of them; how many there are is counted with them. Use it
    where you hold the records, and a pool of public points that covers them. Black-box learners,
    data in silos and files of votes need `PATEClassifier`.

    Parameters
    ----------
    student : scikit-learn classifier, optional
        By default a `RecordVotesStudent`. A `GraphCountsClassifier` or `NoisyCountsClassifier`
        learns from the noisy counts too; any other classifier learns from what the default student
        says of the whole pool.
    budget : PrivacyBudget
        (epsilon, delta) of this fit; delta above 0.
    votes_per_record : int, optional
        Number k of nearest public points that a record votes for. By default one in a hundred, and
        at least five where there are fifty points.
    basis : transformer with `integers`, optional
        Coordinates, as integers, by which distances are taken: an object such as
        `secretballot.bases.TableBasis`, the default, which maps every row by itself. It is cloned
        and fitted on the public points; an object without `fit` is taken as it is, and must not
        have seen private records.
    n_queries : int, optional
        Number of public points that take votes, drawn by the public seed; all by default.
    relation : {"add-remove", "replace-one"}, default "add-remove"
        Relation of the guarantee. "replace-one" costs twice as many counts, as a record that is
        replaced takes votes away and gives others.
    ledger : Ledger, optional
        Account of the private dataset. Without one the fit keeps an account of its own, in memory.
    request : str, optional
        Key of this fit in the ledger: a repeated fit gets the stored release for nothing.
    purpose : str
        Why, in a few words; on the certificate, so public.
    random_state : int, optional
        Public seed of the choice of points and of the student. Never of the noise.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    student_ : the fitted student
    released_labels_ : ReleasedLabels
        Everything that was released: noisy counts, one column for each class. ``n_teachers`` is 0,
        since the number of records is private.
    certificate_ : dict
        What may be shown to a stranger.
    votes_per_record_ : int
    coverage_ : Coverage or None
        How many records have values that the public points do not show; released. None where it
        was not looked at: in a basis that does not say so, or where chance alone leaves more than a
        quarter uncovered.
    n_features_in_ : int

    Privacy
    -------
    Unit : one record; with ``units`` all records of one id, of which one votes, chosen by a keyed
        hash with a fresh secret key.
    Relation : as `relation`; with ``units`` "add-remove".
    Sensitivity : a record votes at `votes_per_record` different points, once at each, by itself and
        public values alone: coordinates are integers, so that distances are exact and no other
        record has a say, and of points equally far the first ones get the votes. So that many
        counts move by one, and under "replace-one" at most twice as many.
    Price : `budget`, by discrete Gaussian noise on every count, composed in `ledger` with
        everything else released from the same data. The price knows neither the number of records
        nor that of points and classes.
    Source : Zhu et al. 2022, arXiv:2207.13253, for votes of records.
    Rounding : upward.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(2000, 2))
    >>> model = sb.RecordVotesClassifier(
    ...     budget=sb.PrivacyBudget(epsilon=1.0, delta=1e-6), votes_per_record=5)
    >>> model = model.fit(
    ...     X, (X[:, 0] > 0).astype(int), X_public=X[:200] + 0.01, classes=[0, 1])
    >>> model.predict([[-2.0, 0.0], [2.0, 0.0]]).tolist(), model.certificate_["epsilon"]
    ([0, 1], 1.0)
    """

    student: Any = None
    _: KW_ONLY
    votes_per_record: int | None = None
    basis: Any = None
    n_queries: int | None = None

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
        X : array, sparse matrix or frame of shape (n_records, n_features)
            Private. Missing and infinite values are what the basis makes of them; a record that it
            cannot map votes for nothing.
        y : array of shape (n_records,)
            Private labels, each one of `classes`.
        X_public : like X, of shape (n_public, n_features)
            Public points, unlabelled.
        classes : sequence of two or more values
            Public; never inferred from the private labels.
        units : array of shape (n_records,), optional
            Ids, such as patient numbers: all records of one id are protected together. With
            "add-remove" only.
        unit_name : str, optional
            What the ids are, for the certificate.

        Raises
        ------
        ParameterError, DataError
            If something does not fit, or the student cannot learn from public points with dummy
            labels or counts; nothing was spent.
        BudgetError
            If the ledger does not admit the price; nothing was spent.
        """
        self.fit_labels(X, y, X_public=X_public, classes=classes, units=units, unit_name=unit_name)
        points = as_matrix("X_public", X_public)
        # the release is kept by now: it stays paid for if the student cannot learn from it
        self.student_ = fit_student(
            RecordVotesStudent(self.basis) if self.student is None else clone(self.student),
            with_public_types(points, points),
            self.released_labels_,
            random_state=0 if self.random_state is None else self.random_state,
            basis=self.basis,
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
        """Do all that `fit` does but fit the student; parameters, with their shapes, and errors are
        those of `fit`."""
        # Public values first, then private records; what can be refused is refused before one is
        # mapped.
        names = declared_classes(classes)
        stored = X if isinstance(X, StoredTable) else None
        budget = self._checked_budget(
            by_unit=(units if stored is None else stored.unit_name) is not None
        )
        table, X_public = private_table(X, y, X_public, names, units, unit_name)
        asked = random_rows(n_rows(X_public), self.n_queries, self.random_state)
        basis = public_basis(self.basis, X_public)
        guarantee = guarantee_of(table.unit, self.relation)
        given = self.votes_per_record
        votes_per_record = default_votes(len(asked)) if given is None else given
        uncovered = expected_uncovered(basis)
        apart = uncovered is not None
        shape = record_votes_shape(
            len(asked), len(names), votes_per_record, guarantee, counts_uncovered=apart
        )
        share = {EXPECTED_UNCOVERED: uncovered} if apart else {}
        mechanism = noisy_votes(budget, shape, release="counts")
        terms = Terms(mechanism, shape, budget, {"method": RECORD_VOTES, **share})
        account = self._account(budget, guarantee)

        def cast() -> Votes:
            table.refuse_points(X_public)
            self._try_student(X_public, names, len(asked))
            points = basis.integers(take_rows(X_public, asked))
            # what a private cell could make a library say stays unsaid
            with isolated(0, sklearn.get_config()):
                return votes_of_records(
                    voting_records(basis, table, points.shape[1], told_apart=apart),
                    NearestPoints(points, votes_per_record),
                    names,
                    guarantee,
                    counts_uncovered=apart,
                )

        found = release_labels(
            terms,
            cast,
            account,
            classes=names,
            rows=asked,
            request=self.request,
            purpose=self.purpose,
            declaration={
                "unit": table.unit,
                "unit_column": table.unit_name,
                "relation": self.relation,
            },
            points_sha256=points_digest(take_rows(X_public, asked)),
        )
        self.released_labels_, self.certificate_ = found, found.certificate
        self.votes_per_record_ = votes_per_record
        assert found.noisy_counts is not None
        counted = coverage_by_votes(stated(found.certificate), found.noisy_counts)
        self.coverage_ = None if counted is None else counted[0]
        if self.coverage_ is not None and self.coverage_.is_poor:
            warnings.warn(self.coverage_.warning, UserWarning, stacklevel=2)
        self.classes_ = np.asarray(names)
        table.note_columns(self)
        return self

    def _checked_budget(self, *, by_unit: bool) -> PrivacyBudget:
        budget = super()._checked_budget(by_unit=by_unit)
        for name in ("votes_per_record", "n_queries"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))
        if self.student is not None and (
            isinstance(self.student, type)
            or not all(hasattr(self.student, name) for name in ("fit", "predict", "get_params"))
        ):
            raise ParameterError(
                Parameter("student"),
                f" is {shown(self.student)}; give an instance with fit, predict and get_params, as"
                " scikit-learn's classifiers have.",
            )
        return budget

    def _try_student(self, X_public: Any, names: list[Any], n_asked: int) -> None:
        """Refuse a student that cannot learn from counts of votes, or from labels of the pool."""
        if self.student is None:
            return
        if learns_from_counts(self.student):
            teaching = Teaching(names, n_asked, _TRIAL_VOTES, votes_per_record=1)
        else:
            teaching = Teaching(names, n_rows(X_public))
        try_student(self.student, X_public, teaching, basis=self.basis)

    @property
    def _student_to_fit(self) -> Any:
        return RecordVotesStudent() if self.student is None else self.student

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags
