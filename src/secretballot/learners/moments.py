"""Learn from every record by one noisy sum a stage, in a basis that public points fix: what is
asked, released and certified."""

import hashlib
import sys
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import sklearn
from sklearn.base import RegressorMixin

from secretballot._typing import IntArray, Json, JsonView
from secretballot._validation import check_count, refusal, shown
from secretballot.accounting import PrivacyBudget
from secretballot.bases import Basis, check_basis, unfitted_basis
from secretballot.bases.integer_model import LARGEST_WEIGHT
from secretballot.core.ledger import Ledger
from secretballot.core.mechanisms import Terms
from secretballot.core.private import RecordSums, run_here
from secretballot.core.releasing import Released, release
from secretballot.core.types import LARGEST
from secretballot.foreign_code import isolated, mapped_rows, one_thread
from secretballot.learners.inputs import points_digest
from secretballot.learners.learner import ClassLearner, Given, Learner, Task, refuse_beside
from secretballot.learners.moment_stages import (
    N_STAGES,
    ClassWeights,
    MomentStages,
    MomentTarget,
    check_start,
    checked_weights,
    released_start,
)
from secretballot.learners.moment_vectors import (
    LARGEST_SCALE,
    Records,
    Residuals,
    cut_coordinates,
    label_sums,
    vector_sums,
)
from secretballot.learners.table import Block, Loader, Parts
from secretballot.released import ReleasedLabels, ReleasedSums
from secretballot.releasing import check_readable
from secretballot.report.certificate import certificate_of, describe_released
from secretballot.report.certificate_models import CLASS_WEIGHTS, Coverage, class_value
from secretballot.students.fitting import Teaching, fit_student, try_student
from secretballot.students.table_students import MomentsStudent
from secretballot.teachers.executors import Workers, check_engine, workers_of
from secretballot.teachers.rows import n_rows


def release_moments(
    sums: Callable[[Residuals], RecordSums],
    stages: MomentStages,
    ledger: Ledger,
    budget: PrivacyBudget,
    *,
    basis: JsonView,
    points_sha256: str,
    request: str | None,
    purpose: str,
    declaration: JsonView,
) -> ReleasedLabels | ReleasedSums:
    """Release the noisy sums of all stages, and what follows from them.

    Parameters
    ----------
    sums : callable
        Returns the sum of what a stage asks of every record; called once all that can be refused by
        public numbers was.
    stages : MomentStages
    ledger, budget, purpose
        As for `secretballot.core.releasing.release`.
    basis : mapping
        Name and settings of the basis, for the certificate.
    points_sha256 : str
        Digest of the public points.
    request : str or None
        A new key by default.
    declaration : mapping
        As for `certificate_of`.

    Returns
    -------
    ReleasedLabels or ReleasedSums
        Labels of the public points by the last model, where there are classes, with the
        certificate, which holds the sums.

    Raises
    ------
    ParameterError, BudgetError, LedgerError, SamplerError
        As for `secretballot.core.releasing.release`.

    Privacy
    -------
    Unit, relation, sensitivity : of `stages.shape`, in each stage, whatever earlier ones released.
    Price : one `VectorSum` over all stages, adaptively composed.
    """
    classes = stages.target.classes
    public = _public_of(stages, basis)
    asked = {
        "classes": [class_value(value) for value in classes],
        "points_sha256": points_sha256,
        "declaration": dict(declaration),
    }

    def certified(
        done: Released, outcome: JsonView, labels: IntArray
    ) -> ReleasedLabels | ReleasedSums:
        rows = np.arange(len(labels))
        # no teachers vote: the labels are those of one model
        described = describe_released(rows, labels, classes, 0, points_sha256=points_sha256)
        certificate = certificate_of(
            replace(done, public=public),
            described | {"values": done.values.tolist()},
            follows=outcome,
            declaration=declaration,
        )
        if not classes:
            return ReleasedSums(certificate)
        return ReleasedLabels(rows, labels, classes, 0, certificate=certificate)

    def check(planned: Released) -> None:
        widest = replace(planned, values=planned.values - LARGEST)
        labels = np.zeros(len(stages.pool) if classes else 0, dtype=np.int64)
        check_readable(certified(widest, _widest_outcome(stages), labels).certificate)

    done = release(
        Terms(stages.mechanism, stages.shape, budget, public | {"asked": asked}, purpose),
        lambda before: sums(stages.asked_after([rows[0] for rows in before])),
        ledger,
        request=uuid.uuid4().hex if request is None else request,
        check=check,
    )
    return certified(done, *stages.outcome_of(list(done.values)))


def _public_of(stages: MomentStages, basis: JsonView) -> Json:
    """Return the public settings, as JSON values."""
    weights = stages.class_weights
    return {
        "method": stages.target.name,
        **stages.target.about,
        "residual_units": list(stages.units),
        "mark_weight": stages.mark_weight,
        "marks": list(stages.marks),
        "expected_uncovered": stages.expected_uncovered,
        "n_records": stages.n_records,
        "basis": dict(basis),
        # of one byte order, so that every machine finds the same digest
        "basis_sha256": hashlib.sha256(stages.pool.astype("<i8").tobytes()).hexdigest(),
        **({} if stages.start is None else {"start": stages.start.stated}),
        # what they come to follows from the sums
        **({} if weights is None else {CLASS_WEIGHTS: weights}),
    }


def _widest_outcome(stages: MomentStages) -> Json:
    """Return what sums come to, as long as any."""
    n_stages, width = len(stages.units), stages.shape.coordinates - len(stages.marks)
    widest: Json = {
        "weights": [[-LARGEST_WEIGHT] * width] * (n_stages + 1),
        "covered_only": [False] * n_stages,
        "scales": [[LARGEST_SCALE] * stages.n_coordinates] * n_stages,
    }
    if stages.class_weights is not None:
        widest[CLASS_WEIGHTS] = [sys.float_info.min] * len(stages.target.classes)
    return widest


_MOST_STAGES = 10
_BLOCK_ENTRIES = 2**21  # coordinates that are mapped at a time
#: From what a stage asks of every record to the sum of it.
Sums = Callable[[Residuals], RecordSums]


@dataclass(eq=False, repr=False)
class MomentsLearner(Learner):
    """A learner by record moments, of any target.

    Parameters
    ----------
    basis : "auto", "table", "kernel", "vectors", "images", or a basis of `secretballot.bases`
        Fitted to the public points, a copy where one is given. By default "images" (`ImageBasis`)
        where these look like square grey images, "vectors" where they have levels of one scale in
        32 columns or more and lie in groups, and "table" (`TableBasis`) otherwise. "kernel" is for
        tables of numbers whose columns interact (`KernelBasis`), "vectors" also for embeddings
        (`GraphBasis`; a `KernelBasis` where there are at most 200 public points).
    n_stages : int, default 4
        Noisy sums, each starting from the model of the one before; at most 10. Where labels alone
        are private there is one.

    Attributes
    ----------
    coverage_ : Coverage or None
        How many records have values that the public points do not show; released. None where
        labels alone are private.
    """

    _target_kind = MomentTarget

    basis: Basis | str = "auto"
    _: KW_ONLY
    n_stages: int = N_STAGES

    def _release(self, task: Task) -> ReleasedLabels | ReleasedSums:
        target, points, guarantee = task.target, task.points, task.guarantee
        assert isinstance(target, MomentTarget)
        weights = self._class_settings(target)
        check_start(task.given.start, target.classes, points)
        self._try_student(task)
        workers = workers_of(task.given.executor)
        with one_thread(), task.table.parts(send=task.given.send_shards) as parts:
            basis = unfitted_basis(self.basis, points).fit(points)
            pool = basis.rows(points)
            terms = pool, target, task.budget
            if guarantee.unit == "label":
                stages = MomentStages.of_labels(*terms, levels=basis.levels_, class_weights=weights)
                sums: Sums = partial(label_sums, pool, task.table.targets)
            else:
                # under add-remove their number is private, and the sums count them
                counted = guarantee.relation == "add-remove"
                stages = MomentStages.of_records(
                    *terms,
                    guarantee,
                    n_stages=self.n_stages,
                    n_records=None if counted else task.table.n_records,
                    expected_uncovered=basis.uncovered_share_,
                    start=released_start(task.given.start, pool, target.link, len(basis.levels_)),
                    class_weights=weights,
                    levels=basis.levels_,
                )
                mapping = _Mapping(basis, target, counted, sklearn.get_config())
                sums = record_sums(task, mapping, parts, workers)
            released = release_moments(
                sums,
                stages,
                task.account,
                task.budget,
                basis=basis.describe(),
                points_sha256=points_digest(points),
                **task.named,
            )
        values = [np.array(one) for one in released.certificate["released"]["values"]]
        self.coverage_: Coverage | None = stages.counted(values)[0] if stages.marks else None
        if self.coverage_ is not None and self.coverage_.is_poor:
            warnings.warn(self.coverage_.warning, UserWarning, stacklevel=4)
        model = stages.deciding_after(values)[0]
        self.student_: Any = MomentsStudent(
            basis,
            model.weights,
            list(target.classes) or None,
            labels=list(target.labels) or None,
            bounds=target.bounds,
            before=model.before,
        )
        return released

    def _class_settings(self, target: MomentTarget) -> ClassWeights | None:
        """Return what decisions count classes for."""
        return None

    def _try_student(self, task: Task) -> None:
        """Refuse a student that cannot learn what will be released about the public points."""

    def _taught(self, points: Any) -> Any:
        return self.student_

    def _declared(self, given: Given) -> Any:
        check_engine(given.executor)
        return super()._declared(given)

    def _check_settings(self, budget: PrivacyBudget) -> None:
        check_basis(self.basis)
        if not budget.delta > 0:
            raise refusal(
                "delta",
                f" is {shown(budget.delta)}; Gaussian noise needs more than 0, such as 1e-6.",
            )
        if check_count("n_stages", self.n_stages) > _MOST_STAGES:
            raise refusal(
                "n_stages", f" is {self.n_stages}; more than {_MOST_STAGES} only divide the budget."
            )


@dataclass(eq=False, repr=False)
class RecordMomentsClassifier(ClassLearner, MomentsLearner):
    """Learn a publishable classifier from private records and a public pool, all records at once.

    Public points fix a basis. Every record adds its coordinates times what the model so far misses
    of its class to one sum, which is released with noise, after counts of the classes; the model is
    the logistic or softmax one whose moments on the pool meet the released ones. In a `TableBasis`
    trees, grown on the public points to predict that model, smooth it after each stage, before the
    next sum corrects it, and after the last stage all sums. No record is cut off into a shard, so
    this is the most accurate learner here for tables. Use `PATEClassifier` for black-box learners,
    data in silos, and vote files.

    With `labels` in the place of `classes` it learns several labels, each there or not, by a
    logistic function for each. A record's vector is bounded over all labels together, so the noise
    on each grows with the square root of their number, and no budget is to be divided by hand.

    With `public_features` everybody may know who is in the data and all that is written of them,
    and the class alone is private: the records without it are the public points, so no pool is
    needed, and one sum is enough. Choose this only where all features of all records may be known
    to everybody: what they tell of a class is not protected. `PATEClassifier` takes any
    black-box teacher instead.

    Parameters
    ----------
    basis : "auto", "table", "kernel", "vectors", "images", or a basis of `secretballot.bases`
        Fitted to the public points, a copy where one is given. By default "images" (`ImageBasis`)
        where these look like square grey images, "vectors" where they have levels of one scale in
        32 columns or more and lie in groups, and "table" (`TableBasis`) otherwise. "kernel" is for
        tables of numbers whose columns interact (`KernelBasis`), "vectors" also for embeddings
        (`GraphBasis`; a `KernelBasis` where there are at most 200 public points).
    student : scikit-learn classifier or name, default "auto"
        Learns from the released labels of the public points. By default the model itself is the
        student (`MomentsStudent`).
    epsilon, delta : float
        Price of a fit, all labels together; delta above 0.
    n_stages : int, default 4
        Noisy sums, each starting from the model of the one before; at most 10. With
        `public_features` there is one.
    class_weight : "balanced", "auto" or mapping of class to float, optional
        What the decisions of the model count each class for, after the release and for no price.
        "balanced" counts all as if they were equally frequent: find a rare class, and call more
        points so by mistake. "auto" does so where the model finds one class more than nine times as
        frequent as another. Probabilities and released labels are those of the weighted model.
    relation : {"add-remove", "replace-one"}, default "add-remove"
        Relation of the guarantee. With `public_features` labels are replaced.
    ledger : Ledger, optional
        Account of the private dataset. Without one the fit keeps an account of its own, in memory.
    random_state : int, optional
        Public seed of a `student`. Never of the noise.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,), or a list of n_labels ndarrays of 0 and 1
    labels_ : ndarray of shape (n_labels,)
        Names of several labels.
    student_ : fitted classifier
    released_ : ReleasedLabels or ReleasedSums
        Labels of all public points by the model, not those that were given; its certificate holds
        the released sums; of several labels there are no labels of public points.
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
    Price : (`epsilon`, `delta`), by one `VectorSum` over all stages, composed in `ledger` with
        everything else released from the same data.
    Source : the moments of a generalised linear model with unlabelled public data, as in
        arXiv:2403.03856; the price is proved in `docs/explanation/prices.md`, section 10.
    Rounding : upward; vectors, sums and noise are integers.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(3000, 2))
    >>> model = sb.RecordMomentsClassifier(epsilon=1.0, delta=1e-6)
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

    takes = frozenset({"classes", "labels", "public_features", "start", "executor", "send_shards"})

    student: Any = "auto"
    _: KW_ONLY
    class_weight: str | Mapping[Any, float] | None = None

    def _declared(self, given: Given) -> MomentTarget:
        target = super()._declared(given)
        assert isinstance(target, MomentTarget)
        if target.labels:
            refuse_beside("labels", self, "student", "class_weight")
            refuse_beside("labels", given, "classes", "start")
        else:
            self._class_settings(target)  # refused before a private label is read
        return target

    def _class_settings(self, target: MomentTarget) -> ClassWeights | None:
        return checked_weights(self.class_weight, target.classes)

    def _try_student(self, task: Task) -> None:
        if self._student is not None:
            teaching = Teaching(task.target.classes, n_rows(task.points))
            try_student(self._student, task.points, teaching)

    def _taught(self, points: Any) -> Any:
        if self._student is None:
            return self.student_
        seed = self.random_state or 0
        return fit_student(self._student, points, self.released_, random_state=seed)


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
    basis
        As for `RecordMomentsClassifier`.
    epsilon, delta : float
        Price of a fit; delta above 0.
    n_stages : int, default 4
        Noisy sums, each starting from the model of the one before; at most 10.
    relation, ledger
        As for `RecordMomentsClassifier`.
    random_state : int, optional
        Not used: nothing is drawn by a public seed.

    Attributes
    ----------
    student_ : MomentsStudent
        The model, without anything private; it can be pickled.
    released_ : ReleasedSums
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
    Price : (`epsilon`, `delta`), by one `VectorSum` over all stages, composed in `ledger` with
        everything else released from the same data.
    Source : least squares with public second moments, as in arXiv:2508.18037; the price is proved
        in `docs/explanation/prices.md`, section 10.
    Rounding : upward; vectors, sums and noise are integers.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(3000, 2))
    >>> model = sb.RecordMomentsRegressor(epsilon=1.0, delta=1e-6)
    >>> model = model.fit(X[:2000], 2 * X[:2000, 0], X_public=X[2000:], bounds=(-5.0, 5.0))
    >>> below, above = model.predict([[-1.0, 0.0], [1.0, 0.0]])
    >>> bool(below < -1 and above > 1), model.certificate_["epsilon"]
    (True, 1.0)
    """

    takes = frozenset({"bounds", "executor", "send_shards"})


@dataclass(frozen=True)
class _Mapping:
    """From private rows to records in a public basis, here or where a worker is.

    A row's coordinates do not depend on the rows around it, to the last bit; so it makes no
    difference in which blocks they are computed, how often, or where.
    """

    basis: Basis
    target: MomentTarget
    counted: bool
    settings: JsonView

    @property
    def width(self) -> int:
        """Integers of a record: coordinates, and cells that trees compare."""
        return self.basis.n_directions_ + 1 + len(self.basis.levels_)

    def records_of(self, load: Loader) -> Iterator[Records]:
        """Yield the records of a part, block by block."""
        return map(self._mapped, load().pieces(max(1, _BLOCK_ENTRIES // self.width)))

    def _mapped(self, block: Block) -> Records:
        """Return records with their marks: that they are there, where that is counted, and whether
        the public points do not cover them."""
        # what a private cell could make a library say stays unsaid
        with one_thread(), isolated(0, self.settings):
            rows, _, covered = mapped_rows(self.basis, block.rows, self.width)
        beyond = (~covered).astype(np.int64)
        marks = np.column_stack([np.ones_like(beyond), beyond] if self.counted else [beyond])
        return Records(rows, self.target.in_units(block.targets), marks, block.units)


def record_sums(
    task: Task, mapping: _Mapping, parts: Parts, workers: Workers | None = None
) -> Sums:
    """Return what adds up the records of a table, stage by stage.

    The rows are mapped at the first stage, before anything is spent. Here up to `Table.most_kept`
    coordinates are kept; those of a larger table are mapped at every stage, as they are by workers.
    """
    few = task.table.n_records * mapping.width <= task.table.most_kept
    run = run_here if workers is None else workers.results
    kept: list[list[Records]] | None = None

    def sums(asked: Residuals) -> RecordSums:
        nonlocal kept
        if kept is None:
            task.refuse_points()
            loads = parts() if few and workers is None else ()
            kept = [[*map(_in_few_bytes, mapping.records_of(load))] for load in loads]
        if kept:
            return vector_sums(kept, asked, task.guarantee)
        return vector_sums(parts(), asked, task.guarantee, mapping.records_of, run)

    return sums


def _in_few_bytes(records: Records) -> Records:
    # cut as they are before they are added up: whether records are kept must not matter
    coordinates: Any = cut_coordinates(records.coordinates).astype(np.int32)
    return records._replace(coordinates=coordinates, marks=records.marks.astype(np.int8))
