"""Learn from every record by one noisy sum a stage, in a basis that public points fix."""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import sklearn
from sklearn.base import ClassifierMixin, RegressorMixin, clone

from secretballot._typing import FloatArray
from secretballot._validation import check_count, shown
from secretballot.accounting import PrivacyBudget
from secretballot.bases import Basis
from secretballot.bases.integer_model import with_constant
from secretballot.core.private import RecordSums
from secretballot.core.types import Guarantee
from secretballot.exceptions import Parameter, ParameterError
from secretballot.foreign_code import isolated, one_thread
from secretballot.learners.moments.class_weights import (
    ClassWeights,
    checked_shares,
    checked_weights,
    suited_basis,
)
from secretballot.learners.moments.release import release_moments
from secretballot.learners.moments.stages import MomentStages
from secretballot.learners.moments.start import check_start, released_start
from secretballot.learners.moments.targets import Target
from secretballot.learners.moments.vectors import Records, Residuals, label_sums, vector_sums
from secretballot.learners.training.basis_rows import mapped_rows
from secretballot.learners.training.inputs import as_matrix, with_public_types
from secretballot.learners.training.learner import Learner
from secretballot.learners.training.point_digests import points_digest
from secretballot.learners.training.student_predictions import StudentPredictions, checked_points
from secretballot.learners.training.table import Block, Table, note_columns, private_table
from secretballot.released import ReleasedLabels, ReleasedSums
from secretballot.report.certificate.coverage import Coverage
from secretballot.students.fitting import fit_student
from secretballot.students.moments_student import MomentsStudent
from secretballot.students.trial import Teaching, try_student
from secretballot.teachers.rows import n_rows
from secretballot.teachers.stored_table import StoredTable
from secretballot.teachers.votes import guarantee_of

MOST_STAGES = 10
#: Coordinates, of four bytes each, that are kept; more are mapped anew for every stage.
MOST_KEPT = 2**29
_BLOCK_ENTRIES = 2**21  # coordinates that are mapped at a time


@dataclass(frozen=True, eq=False)
class _Classes:
    """What is said of classes beside their values; all public."""

    weights: ClassWeights | None = None
    shares: FloatArray | None = None
    start: ReleasedLabels | None = None


@dataclass(eq=False, repr=False)
class MomentsLearner(Learner):
    """A learner by record moments, of any target.

    Parameters
    ----------
    basis : basis of `secretballot.bases`, optional
        Cloned and fitted to the public points; `TableBasis.suited_to` by default.
    n_stages : int, default 4
        Noisy sums, each starting from the model of the one before; at most 10. Where labels alone
        are private there is one.

    Attributes
    ----------
    coverage_ : Coverage or None
        How many records have values that the public points do not show; released. None where
        labels alone are private.
    """

    basis: Basis | None = None
    _: KW_ONLY
    n_stages: int = 4

    def _learn(
        self,
        target: Target,
        X: Any,
        y: Any,
        X_public: Any,
        units: Any,
        unit_name: str | None,
        about: _Classes,
        *,
        public_features: bool = False,
    ) -> ReleasedLabels | ReleasedSums:
        """Prepare, open the account, release, and make the student."""
        # Settings and public points come first, private records last: they are read before the
        # account is looked at, and mapped after it.
        budget = self._checked_budget(
            by_unit=(X.unit_name if isinstance(X, StoredTable) else units) is not None
        )
        table: Table | None = None
        if public_features:
            points = as_matrix("X", X)
            points = with_public_types(points, points)
            labels = target.read(y, n_rows(points))
            guarantee = Guarantee(unit="label", relation="replace-one")
            declared: dict[str, Any] = {"assumptions": ["The features of all records are public."]}
        else:
            public = as_matrix("X_public", X_public)
            check_start(about.start, target.classes, with_public_types(public, public))
            given = X, y, X_public, target.classes, units, unit_name
            table, points = private_table(*given, target.read)
            guarantee = guarantee_of(table.unit, self.relation)
            declared = {"unit_column": table.unit_name}
        self._try_student(points, target)
        account = self._account(budget, guarantee)
        with one_thread():
            basis = unfitted_basis(self.basis, points, about.shares).fit(points)
            pool = with_constant(basis.integers(points))
            if table is None:
                stages = MomentStages.of_labels(pool, target, budget, class_weights=about.weights)
                sums: Callable[[Residuals], RecordSums] = partial(label_sums, pool, labels)
            else:
                # under add-remove their number is private, and the sums count them
                counted = guarantee.relation == "add-remove"
                stages = MomentStages.of_records(
                    pool,
                    target,
                    budget,
                    guarantee,
                    n_stages=self.n_stages,
                    n_records=None if counted else table.n_records,
                    expected_uncovered=basis.uncovered_share_,
                    start=released_start(about.start, pool, target.link),
                    class_weights=about.weights,
                )
                sums = _Sums(table, points, basis, guarantee, counted=counted)
            released = release_moments(
                sums,
                stages,
                account,
                budget,
                basis=basis.describe(),
                points_sha256=points_digest(points),
                request=self.request,
                purpose=self.purpose,
                declaration={
                    "unit": guarantee.unit,
                    "relation": guarantee.relation,
                    **declared,
                },
            )
        self.certificate_ = released.certificate
        values = [np.array(one) for one in released.certificate["released"]["values"]]
        self.coverage_: Coverage | None = stages.counted(values)[0] if stages.marks else None
        if self.coverage_ is not None and self.coverage_.is_poor:
            warnings.warn(self.coverage_.warning, UserWarning, stacklevel=4)
        if table is None:
            note_columns(self, points)
        else:
            table.note_columns(self)
        weights = np.array(released.certificate["public"]["weights"][-1], dtype=np.int64)
        self.student_: Any = MomentsStudent(
            basis,
            weights.reshape(pool.shape[1], -1),
            list(target.classes) or None,
            labels=list(target.labels) or None,
            bounds=target.bounds,
        )
        return released

    def _try_student(self, points: Any, target: Target) -> None:
        """Refuse a student that cannot learn what will be released about public points."""

    def _checked_budget(self, *, by_unit: bool) -> PrivacyBudget:
        if self.basis is not None and not isinstance(self.basis, Basis):
            raise ParameterError(
                Parameter("basis"),
                f" is a {type(self.basis).__name__}; give one of secretballot.bases, such as"
                " TableBasis(), which is fitted to the public points here.",
            )
        budget = super()._checked_budget(by_unit=by_unit)
        if not budget.delta > 0:
            raise ParameterError(
                Parameter("delta"),
                f" is {shown(budget.delta)}; Gaussian noise needs more than 0, such as 1e-6.",
            )
        if check_count("n_stages", self.n_stages) > MOST_STAGES:
            raise ParameterError(
                Parameter("n_stages"),
                f" is {self.n_stages}; more than {MOST_STAGES} only divide the budget.",
            )
        return budget


# scikit-learn ships no types
@dataclass(eq=False, repr=False)
class RecordMomentsClassifier(
    StudentPredictions,
    ClassifierMixin,  # type: ignore[misc]
    MomentsLearner,
):
    """Learn a publishable classifier from private records and a public pool, all records at once.

    Public points fix a basis. Every record adds its coordinates times what the model so far misses
    of its class to one sum, which is released with noise; the model is the logistic or softmax one
    whose moments on the pool meet the released ones. No record is cut off into a shard, so this is
    the most accurate learner here for tables. Use `PATEClassifier` for black-box learners, data in
    silos, and vote files.

    With `labels` in the place of `classes` it learns several labels, each there or not, by a
    logistic function for each. A record's vector is bounded over all labels together, so the noise
    on each grows with the square root of their number, and no budget is to be divided by hand.

    With `public_features` everybody may know who is in the data and all that is written of them,
    and the class alone is private: the records without it are the public points, so no pool is
    needed, and one sum is enough. Choose this only where all features of all records may be known
    to everybody: what they tell of a class is not protected. `LabelPrivateClassifier` takes any
    black-box teacher instead.

    Parameters
    ----------
    basis : basis of `secretballot.bases`, optional
        Cloned and fitted to the public points; `TableBasis.suited_to` by default.
    student : scikit-learn classifier, optional
        Learns from the released labels of the public points. By default the model itself is the
        student (`MomentsStudent`).
    budget : PrivacyBudget
        (epsilon, delta) of this fit, with delta above 0; all labels together.
    n_stages : int, default 4
        Noisy sums, each starting from the model of the one before; at most 10. With
        `public_features` there is one.
    class_weight : "balanced" or mapping of class to float, optional
        What the decisions of the model count each class for, after the release and for no price.
        "balanced" counts all as if they were equally frequent: find a rare class, and call more
        points so by mistake. Probabilities and released labels are those of the weighted model.
    class_shares : mapping of class to float, optional
        A public statement of how frequent the classes are; one may be left out. Where one has 1
        record in 20 or fewer, the default basis has fewer bins and no whitening: weak directions
        would be all noise.
    relation : {"add-remove", "replace-one"}, default "add-remove"
        Relation of the guarantee. With `public_features` labels are replaced.
    ledger : Ledger, optional
        Account of the private dataset. Without one the fit keeps an account of its own, in memory.
        With `public_features` it is made with ``unit="label"`` and ``relation="replace-one"``.
    request : str, optional
        Key of this fit in the ledger: the same key gets the stored answer, or goes on after an
        interruption.
    purpose : str
        Why, in a few words; public.
    random_state : int, optional
        Public seed of a `student`. Never of the noise.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,), or a list of n_labels ndarrays of 0 and 1
    labels_ : ndarray of shape (n_labels,)
        Names of several labels.
    student_ : fitted classifier
    released_labels_ : ReleasedLabels
        Labels of all public points by the model, not those that were given; its certificate holds
        the released sums.
    released_sums_ : ReleasedSums
        The same of several labels, without labels of public points.
    certificate_ : dict
        What may be shown to a stranger.
    coverage_ : Coverage or None
        How many records have values that the public points do not show; released. None with
        `public_features`.
    n_features_in_ : int

    Privacy
    -------
    Unit : one record with all its labels, or all records of one id where `units` is given; with
        `public_features` one label.
    Relation : add or remove one unit, or replace one record in place. Labels are replaced, and the
        number of records is public.
    Sensitivity : every unit's integer vector, over all labels together, has at most a fixed L2 norm
        (`RecordSums.of_products`); twice that for replace-one. A label moves the sum by its
        record's coordinates, shortened by a rule that looks at features alone, times sqrt(2) (of
        two classes: times 1), in L2 norm (`RecordSums.of_labels`).
    Price : `budget`, by one `VectorSum` over all stages, composed in `ledger` with everything
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

    Several labels:

    >>> model = model.fit(
    ...     X[:2000], (X[:2000] > 0).astype(int), X_public=X[2000:], labels=["tall", "old"])
    >>> model.predict([[-2.0, 2.0], [2.0, 2.0]]).tolist()
    [[0, 1], [1, 1]]

    Public features:

    >>> model = model.fit(X, (X[:, 0] > 0).astype(int), classes=[0, 1], public_features=True)
    >>> model.certificate_["unit"]
    'label'
    """

    student: Any = None
    _: KW_ONLY
    class_weight: str | Mapping[Any, float] | None = None
    class_shares: Mapping[Any, float] | None = None

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        X_public: Any = None,
        classes: Sequence[Any] | None = None,
        labels: Sequence[str] | None = None,
        public_features: bool = False,
        units: Any = None,
        unit_name: str | None = None,
        start: ReleasedLabels | None = None,
    ) -> Self:
        """Learn from private records.

        Parameters
        ----------
        X : array, sparse matrix, list of rows or frame of shape (n_records, n_features)
            Private; with `public_features` public.
        y : sequence of shape (n_records,)
            Private classes, each one of `classes`. Of several labels an array, sparse matrix, list
            of rows or frame of shape (n_records, n_labels): 1 where a record has the label, else 0.
            A frame has the labels as its columns.
        X_public : like X, of shape (n_public, n_features)
            Public points, unlabelled; left out with `public_features`.
        classes : sequence of two or more values
            Public; never inferred from private ones.
        labels : sequence of distinct str
            In their place, public names of several labels.
        public_features : bool, default False
            Whether the classes of `y` alone are private.
        units : array of shape (n_records,), optional
            Ids, such as patient numbers: all records of one id are protected together. With
            "add-remove" only, and with a `ledger` about users.
        unit_name : str, optional
            What the ids are, for the certificate.
        start : ReleasedLabels, optional
            An earlier release about the same public points and classes, by any learner: the stages
            start from a model of its labels instead of from nothing. It may come from another
            ledger; the certificate names it. What it cost comes on top.

        Raises
        ------
        ParameterError, DataError
            If something does not fit, or a `student` cannot learn from public points with dummy
            labels; nothing was spent.
        BudgetError
            If the ledger does not admit the price; nothing was spent.
        """
        self.fit_labels(
            X,
            y,
            X_public=X_public,
            classes=classes,
            labels=labels,
            public_features=public_features,
            units=units,
            unit_name=unit_name,
            start=start,
        )
        if self.student is not None:
            points = as_matrix("X_public", X if public_features else X_public)
            # everything released is kept by now, so a student that fails does not cost the model
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
        y: Any,
        *,
        X_public: Any = None,
        classes: Sequence[Any] | None = None,
        labels: Sequence[str] | None = None,
        public_features: bool = False,
        units: Any = None,
        unit_name: str | None = None,
        start: ReleasedLabels | None = None,
    ) -> Self:
        """Do all that `fit` does but fit a `student`, which is only tried: the model itself is
        there; parameters, with their shapes, and errors are those of `fit`."""
        if public_features:
            of_records = {"X_public": X_public, "units": units, "start": start, "labels": labels}
            _refuse_beside("public_features", of_records)
        given = X, y, X_public, units, unit_name
        if labels is not None:
            names = ("student", "class_weight", "class_shares")
            of_classes = {name: getattr(self, name) for name in names}
            _refuse_beside("labels", of_classes | {"classes": classes, "start": start})
            target = Target.of_labels(labels)
            released = self._learn(target, *given, _Classes())
            # without classes the sums alone come out, and no labels of public points
            assert isinstance(released, ReleasedSums)
            self.released_sums_, self.labels_ = released, np.array(target.labels)
            self.classes_: Any = self.student_.classes_
            return self
        target = Target.of_classes(classes)
        # settings by class are public, and refused before a private label is read
        about = _Classes(
            checked_weights(self.class_weight, target.classes),
            checked_shares(self.class_shares, target.classes),
            start,
        )
        learnt = self._learn(target, *given, about, public_features=public_features)
        assert isinstance(learnt, ReleasedLabels)
        self.released_labels_, self.classes_ = learnt, np.asarray(list(target.classes))
        return self

    def _try_student(self, points: Any, target: Target) -> None:
        if self.student is not None:
            try_student(self.student, points, Teaching(target.classes, n_rows(points)))

    @property
    def _student_to_fit(self) -> Any:
        return MomentsStudent if self.student is None else self.student


# scikit-learn ships no types
@dataclass(eq=False, repr=False)
class RecordMomentsRegressor(RegressorMixin, MomentsLearner):  # type: ignore[misc]
    """Learn a linear model of a number from private records and a public pool, all at once.

    As `RecordMomentsClassifier`, with a number in the place of a class: every record adds its
    coordinates times what the model so far misses of its target to one sum, which is released with
    noise. The model is the penalised least-squares one whose moments on the pool meet the released
    ones; second moments are those of the pool, and cost nothing.

    Parameters
    ----------
    basis : basis of `secretballot.bases`, optional
        Cloned and fitted to the public points; `TableBasis.suited_to` by default.
    bounds : tuple of two floats
        Public bounds of the target, in its own unit; required, and never inferred from private
        targets. Targets beyond are cut, and predictions lie within. Noise grows with the width.
    budget : PrivacyBudget
        (epsilon, delta) of this fit, with delta above 0.
    n_stages : int, default 4
        Noisy sums, each starting from the model of the one before; at most 10.
    relation, ledger, request, purpose
        As for `RecordMomentsClassifier`.
    random_state : int, optional
        Not used: nothing is drawn by a public seed.

    Attributes
    ----------
    student_ : MomentsStudent
        The model, without anything private; it can be pickled.
    released_sums_ : ReleasedSums
        Everything that was released, without labels of public points.
    certificate_ : dict
        What may be shown to a stranger; it holds the released sums.
    coverage_ : Coverage
        How many records have values that the public points do not show; released.
    n_features_in_ : int

    Privacy
    -------
    Unit : one record, or all records of one id where `units` is given.
    Relation : add or remove one unit, or replace one record in place.
    Sensitivity : every unit's integer vector has at most a fixed L2 norm
        (`secretballot.core.private.RecordSums`); twice that for replace-one.
    Price : `budget`, by one `VectorSum` over all stages, composed in `ledger` with everything
        else released from the same data.
    Source : least squares with public second moments, as in arXiv:2508.18037; the price is proved
        in `docs/explanation/prices.md`, section 10.
    Rounding : upward; vectors, sums and noise are integers.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(3000, 2))
    >>> model = sb.RecordMomentsRegressor(
    ...     bounds=(-5.0, 5.0), budget=sb.PrivacyBudget(epsilon=1.0, delta=1e-6))
    >>> model = model.fit(X[:2000], 2 * X[:2000, 0], X_public=X[2000:])
    >>> below, above = model.predict([[-1.0, 0.0], [1.0, 0.0]])
    >>> bool(below < -1 and above > 1), model.certificate_["epsilon"]
    (True, 1.0)
    """

    _: KW_ONLY
    bounds: tuple[float, float] | None = None

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        X_public: Any = None,
        units: Any = None,
        unit_name: str | None = None,
    ) -> Self:
        """Learn from private records.

        Parameters
        ----------
        X : array, sparse matrix, list of rows or frame of shape (n_records, n_features)
            Private.
        y : sequence of shape (n_records,)
            Private targets. What is beyond `bounds`, or infinite, is cut; a text counts as
            the number that it says. A target that is nan, or no number, leaves its record out of
            the sums, and no other.
        X_public : like X, of shape (n_public, n_features)
            Public points, without targets.
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
        target = Target.of_number(self.bounds)
        released = self._learn(target, X, y, X_public, units, unit_name, _Classes())
        # no classes are declared here, so the sums alone come out, and no labels of public points
        assert isinstance(released, ReleasedSums)
        self.released_sums_ = released
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return the predicted number of every row of `X`, within `bounds`, shape
        (n_rows,)."""
        points = checked_points(self, X)
        return np.asarray(self.student_.predict(points))


class _Sums:
    """The sums of the records of a table, stage by stage.

    The rows are mapped at the first stage, before anything is spent. Up to `MOST_KEPT` coordinates
    are kept, in four bytes each; of a larger table none are. A row's coordinates do not depend on
    the rows around it, to the last bit; so it makes no difference in which blocks they are
    computed, or how often.
    """

    def __init__(
        self, table: Table, points: Any, basis: Basis, guarantee: Guarantee, *, counted: bool
    ) -> None:
        self._table, self._points, self._basis = table, points, basis
        self._guarantee, self._counted, self._begun = guarantee, counted, False
        self._kept: list[Records] | None = None

    def __call__(self, asked: Residuals) -> RecordSums:
        return vector_sums(self._records(), asked, self._guarantee)

    def _records(self) -> Iterable[Records]:
        if self._kept is not None:
            return self._kept
        if not self._begun:
            self._table.refuse_points(self._points)
            self._begun = True
        width = self._basis.n_directions_ + 1
        mapped = map(self._mapped, self._table.blocks(max(1, _BLOCK_ENTRIES // width)))
        if self._table.n_records * width > MOST_KEPT:
            return mapped
        self._kept = [
            one._replace(
                coordinates=one.coordinates.astype(np.int32), marks=one.marks.astype(np.int8)
            )
            for one in mapped
        ]
        return self._kept

    def _mapped(self, block: Block) -> Records:
        """Return records with their marks: that they are there, where that is counted, and whether
        the public points do not cover them."""
        # what a private cell could make a library say stays unsaid
        with one_thread(), isolated(0, sklearn.get_config()):
            mapped = mapped_rows(self._basis, block.rows, self._basis.n_directions_)
        integers, known, covered = mapped
        beyond = (~covered).astype(np.int64)
        coordinates = with_constant(integers)
        coordinates[~known] = 0
        marks = np.column_stack([np.ones_like(beyond), beyond] if self._counted else [beyond])
        return Records(coordinates, block.targets, marks, block.units)


def unfitted_basis(basis: Basis | None, X_public: Any, class_shares: FloatArray | None) -> Basis:
    """Return a copy of a basis that was given, or one that suits the public points, of shape
    (n_public, n_features), and classes of these public shares, of shape (n_classes,)."""
    return suited_basis(X_public, class_shares) if basis is None else clone(basis)


def _refuse_beside(name: str, settings: Mapping[str, Any]) -> None:
    """Refuse settings that do not go with another one."""
    for other, value in settings.items():
        if value is not None:
            raise ParameterError(
                Parameter(other), " does not go with ", Parameter(name), "; leave one out."
            )
