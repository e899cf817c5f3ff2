"""What learners are: parameters, and a fit that prepares, opens the account, releases, and lets a
student learn from what was released; and what a pickled one keeps."""

import copy
import io
import math
import pickle
import warnings
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from fractions import Fraction
from pathlib import Path
from traceback import walk_stack
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from secretballot._points import class_shares
from secretballot._seeded import own_global_states
from secretballot._typing import AnyArray, FloatArray, IntArray, Json, Names, Pair, Progress
from secretballot._validation import (
    RELATIONS,
    check_choice,
    check_count,
    check_name,
    check_path,
    refusal,
)
from secretballot.accounting import PrivacyBudget
from secretballot.core.ledger import Ledger
from secretballot.core.types import Guarantee, Model
from secretballot.data.stored import StoredTable
from secretballot.exceptions import BudgetError, Parameter, UnpricedFitWarning
from secretballot.learners.inputs import Target, as_matrix, labels_at, with_public_types
from secretballot.learners.table import Table, private_table, refuse_units
from secretballot.named_learners import check_learner
from secretballot.released import ReleasedLabels
from secretballot.releasing import check_ledger
from secretballot.students.fitting import student_by_name
from secretballot.teachers.executors import LOCAL
from secretballot.teachers.rows import n_rows, take_rows
from secretballot.teachers.votes import guarantee_of

_T = TypeVar("_T")


@dataclass(frozen=True, eq=False, repr=False)
class Given:
    """What a fit is given, as `Learner.fit` describes it."""

    X: Any
    y: Any
    X_public: Any = None
    classes: Sequence[Any] | None = None
    labels: Sequence[str] | None = None
    bounds: Pair | None = None
    public_features: bool = False
    dropped: float = 0.5
    units: Any = None
    unit_name: str | None = None
    start: ReleasedLabels | None = None
    request: str | None = None
    purpose: str = ""
    vault: str | Path | None = None
    executor: Any = LOCAL
    send_shards: bool = False
    progress: Progress | None = None


# modules of scikit-learn that fit what they are given, and those that only pass a call on
_PACKAGE, _SKLEARN = "secretballot.", "sklearn."
_STEPS = ("sklearn.pipeline", "sklearn.compose")
_NO_FITS = ("sklearn.base", "sklearn.utils")
_INSIDE = (
    "scikit-learn calls this fit. In a pipeline no price covers what other steps learn from private"
    " records: put them inside the teacher, or fit them to public points and freeze them; they must"
    " change X_public too. In a cross-validation, a search or an ensemble every fit spends a budget"
    " of its own, which no certificate adds up: give all fits one ledger=, or choose settings on"
    " public or synthetic data, or by hold_out and choose_candidate."
)

#: What every fit takes.
_EVERY = frozenset({"X", "y", "X_public", "units", "unit_name", "request", "purpose"})


@dataclass(frozen=True, eq=False, repr=False)
class Task:
    """One fit, read and checked.

    Attributes
    ----------
    given : Given
    target : Target
    table : Table
        Private records; where labels alone are private, those that keep theirs.
    points : array, sparse matrix or frame of shape (n_public, n_features)
        Public; where labels alone are private, the rows of all records.
    askable : ndarray of int64
        Rows of the points that may be asked, ascending.
    budget : PrivacyBudget
    guarantee : Guarantee
    account : Ledger
        What pays.
    declaration : dict
        Unit, relation and assumptions, for the certificate.
    """

    given: Given
    target: Target
    table: Table
    points: Any
    askable: IntArray
    budget: PrivacyBudget
    guarantee: Guarantee
    account: Ledger
    declaration: Json

    @property
    def named(self) -> Json:
        """What a release is named by and says of itself."""
        request, purpose = self.given.request, self.given.purpose
        return {"request": request, "purpose": purpose, "declaration": self.declaration}

    def refuse_points(self) -> None:
        """Refuse public points that are the private records."""
        if self.guarantee.unit != "label":
            self.table.refuse_points(self.points)


# --- what a pickled learner keeps ---

_SEARCH_TREES = ("KDTree", "KDTree32", "KDTree64", "BallTree", "BallTree32", "BallTree64")
# In the state of a search tree: how much it has been asked so far, which depends on the points that
# were predicted.
_COUNTERS = slice(7, 11)


def _made_of(kind: type[_T], attributes: Json) -> _T:
    one = object.__new__(kind)
    one.__dict__.update(attributes)
    return one


def _restored_learner(content: bytes) -> Any:
    return _made_of(*pickle.loads(content))


def _model_of(kind: type[Model], values: Json) -> Model:
    return kind.model_construct(**values)


class _CanonicalPickler(pickle.Pickler):
    """Writes the state of a learner in a canonical form: its settings and what was released, and
    nothing of the place where it was fitted; the same bytes for the same values.

    A pickle writes two equal strings once or twice, depending on whether they are one object; it
    copies the padding of structured arrays, which is what the memory held before; it writes down
    how often a search tree was asked, and the global generator's state. All of it may depend on
    private records that the same process has worked on. So every value is written where it is,
    without looking at which of them are one object.
    """

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, np.ndarray) and obj.dtype.names is not None:
            return _without_padding(obj).__reduce_ex__(pickle.HIGHEST_PROTOCOL)
        if isinstance(obj, Model):  # keeps a set, whose order differs from process to process
            return _model_of, (type(obj), vars(obj))
        if type(obj).__name__ in _SEARCH_TREES:
            make, arguments, state = obj.__reduce__()
            items = list(state)
            items[_COUNTERS] = [0] * len(items[_COUNTERS])
            return make, arguments, tuple(items)
        return NotImplemented


def _without_padding(array: AnyArray) -> AnyArray:
    """Return a structured array whose padding is zero, any other as it is.

    The result has the shape of `array`.
    """
    if array.dtype.names is None:
        return array
    clean = np.zeros(array.shape, array.dtype)
    for name in array.dtype.names:
        clean[name] = _without_padding(array[name])
    return clean


# --- learners ---


# scikit-learn ships no types
@dataclass(eq=False, repr=False, kw_only=True)
class PayingLearner(BaseEstimator):  # type: ignore[misc]
    """A learner that pays for what it releases; the fields of a class are the parameters of its
    constructor.

    Parameters
    ----------
    epsilon, delta : float
        Price of a fit; needed by `fit`.
    relation : {"add-remove", "replace-one"}, default "add-remove"
        Relation of the guarantee. "replace-one" makes the number of records public. Where labels
        alone are private they are replaced.
    ledger : Ledger, optional
        Account of the private dataset. Without one a fit keeps an account of its own, in memory:
        then adding up several fits on the same data is up to you.
    random_state : int, optional
        Public seed; None is 0. Never of the noise.

    Notes
    -----
    A pickle keeps parameters, released values, certificate and student. A `ledger` stays a handle:
    the path of the account and its name. What is restored has the same values; objects that were
    one in two places become two. Copies within the process are made as ever.
    """

    #: What fits of this kind take besides what every fit takes.
    takes: ClassVar[frozenset[str]] = frozenset({"classes"})
    _target_kind: ClassVar[type[Target]] = Target
    #: Settings that are numbers of something.
    _counted: ClassVar[Names] = ()

    epsilon: float | None = None
    delta: float | None = None
    relation: str = "add-remove"
    ledger: Ledger | None = None
    random_state: int | None = None

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        X_public: Any = None,
        classes: Sequence[Any] | None = None,
        labels: Sequence[str] | None = None,
        bounds: Pair | None = None,
        public_features: bool = False,
        dropped: float = 0.5,
        units: Any = None,
        unit_name: str | None = None,
        start: ReleasedLabels | None = None,
        request: str | None = None,
        purpose: str = "",
        vault: str | Path | None = None,
        executor: Any = LOCAL,
        send_shards: bool = False,
        progress: Progress | None = None,
    ) -> Self:
        """Learn from private records and public points.

        Parameters
        ----------
        X : array, sparse matrix, list of rows or frame of shape (n_records, n_features)
            Private; with `public_features` public. Or a `StoredTable`.
        y : sequence of shape (n_records,)
            Private. Of a classifier, each one of `classes`; of several labels an array, sparse
            matrix, list of rows or frame of shape (n_records, n_labels): 1 where a record has the
            label, else 0. A frame has the labels as its columns. Of a regressor, numbers: what is
            beyond `bounds`, or infinite, is cut; a text counts as the number that it says; what is
            nan, or no number, leaves its record out, and no other.
        X_public : like X, of shape (n_public, n_features)
            Public points, unlabelled; left out with `public_features`. Optional, with numeric
            arrays, for a choice among fitted classifiers and a `Labeler`, whose columns a few of
            them give their types.
        classes : sequence of two or more values
            Public; never inferred from private ones.
        labels : sequence of distinct str
            In their place, public names of several labels. `RecordMomentsClassifier` and
            `PATEClassifier` learn these.
        bounds : tuple of two floats
            Of a regressor: public bounds of the target, in its own unit; never inferred from
            private targets. Predictions lie within, and noise grows with the width.
        public_features : bool, default False
            Whether the classes of `y` alone are private, and everything else may be known to
            everybody. `RecordMomentsClassifier` and `PATEClassifier` take it. A ledger is made for
            it with ``unit="label"`` and ``relation="replace-one"``.
        dropped : float, default 0.5
            Of `PATEClassifier` with `public_features`: share of the records whose labels are
            dropped, at least 0 and below 1; only these points may be asked. With 0 no label is
            dropped, every record teaches one teacher, and every point may be asked.
        units : array of shape (n_records,), optional
            Ids, such as patient numbers: all records of one id are protected together. With
            "add-remove" only, and with a `ledger` about users.
        unit_name : str, optional
            What the ids are, for the certificate.
        start : ReleasedLabels, optional
            Of `RecordMomentsClassifier`: an earlier release about the same public points and
            classes, by any learner. The stages start from a model of its labels instead of from
            nothing. It may come from another ledger; the certificate names it. What it cost comes
            on top.
        request : str, optional
            Key of this fit in the ledger: the same key gets the stored answer, or goes on after an
            interruption, for nothing. Drawn where none is given; of a `Labeler` the algorithm's
            name: another key is another sample and another charge.
        purpose : str
            Why, in a few words; on the certificate, so public.
        vault : path, optional
            Of `PATEClassifier` and `Labeler`: secret folder where finished teachers are kept, so
            that an interrupted fit resumes; with one, and a ledger that is a file, the reservation
            of a `Labeler` outlives the process.
        executor : str, distributed.Client or concurrent.futures.Executor, default "local"
            Where teachers of `PATEClassifier` and `Labeler` are trained and vote, or record moments
            are added up: on this machine, or on a cluster that runs already and belongs to the
            trusted side. "dask://HOST:PORT", a client of Dask, or "dask" for this process's client;
            "ray" for the Ray that runs. The release is the same.
        send_shards : bool, default False
            Whether the rows of a stored table are sent to the workers of a cluster, over its
            network. By default workers read them from storage that all share, and a run whose
            workers do not see it ends before anything is paid. A table in memory is sent in any
            case.
        progress : callable, optional
            Of learners with teachers: called with (done, total) teachers, and in rounds with
            (answered, reserved) queries.

        Raises
        ------
        ParameterError, DataError
            If something does not fit, or the student cannot learn from public points with dummy
            labels; nothing was spent. A student that passed this and yet cannot learn from what was
            released is refused after it: the release is in the ledger, and another student may
            be fitted to it.
        BudgetError
            If the ledger does not admit the price; nothing was spent.
        """
        given = dict(locals())
        del given["self"]
        return self._fitted(self._prepared(Given(**given)))

    def __reduce_ex__(self, protocol: Any) -> tuple[Callable[[bytes], Any], tuple[bytes]]:
        buffer = io.BytesIO()
        pickler = _CanonicalPickler(buffer, protocol=pickle.HIGHEST_PROTOCOL)
        pickler.fast = True  # no memory of what was written before
        with own_global_states(0):  # a learner without a seed may keep the global generator
            pickler.dump((type(self), self.__getstate__()))
        return _restored_learner, (buffer.getvalue(),)

    def __copy__(self) -> Self:
        return _made_of(type(self), self.__dict__)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return _made_of(type(self), copy.deepcopy(self.__dict__, memo))

    @abstractmethod
    def _fitted(self, task: Task) -> Self:
        """Release, and return the learner with what came of it."""

    def check_given(self, given: Given) -> Target:
        """Refuse settings and public values of a fit that cannot be, and return what is learnt; no
        private value is looked at, and nothing is spent."""
        ids = given.X.unit_name if isinstance(given.X, StoredTable) else given.units
        check_choice("relation", self.relation, RELATIONS)
        if not given.public_features:
            refuse_units(ids, self.relation)
        self._check_settings(self._budget)
        for own in fields(Given):
            if own.name in _EVERY | self.takes or getattr(given, own.name) is own.default:
                continue
            raise refusal(own.name, f" is nothing that {type(self).__name__} takes; leave it out.")
        if given.request is not None:
            check_name("request", given.request)
        if given.vault is not None:
            check_path("vault", given.vault)
        if given.public_features:
            refuse_beside("public_features", given, "X_public", "units", "start", "labels")
        return self._declared(given)

    def _prepared(self, given: Given) -> Task:
        """Return the task of a fit: settings and public values are looked at first, private records
        last, and the account before anything is done with them."""
        _warn_inside_sklearn(alone=self.ledger is None)
        target, budget = self.check_given(given), self._budget
        declared: Json = {}
        if given.public_features:
            points = as_matrix("X", given.X)
            points, n = with_public_types(points, points), n_rows(points)
            kept, askable, words = self._split_rows(n, given)
            rows, y = points, given.y
            if kept is not None:
                rows, y = take_rows(points, kept), labels_at(y, kept, n)
            table = Table(rows, target.read(y, n_rows(rows)), None, None)
            guarantee = Guarantee(unit="label", relation="replace-one")
            declared["assumptions"] = [f"The features of all records are public{words}."]
        else:
            X_public = self._public_points(given)
            table, points = private_table(
                given.X, given.y, X_public, target, given.units, given.unit_name
            )
            askable, guarantee = np.arange(n_rows(points)), guarantee_of(table.unit, self.relation)
        declared |= {"unit": guarantee.unit, "unit_column": table.unit_name}
        declared["relation"] = guarantee.relation
        # A warning and no refusal, not even where a program makes errors of warnings: the number of
        # records is private under add-remove, and whether a fit goes through may not depend on it.
        if budget.delta * table.n_records >= 1:
            with suppress(UserWarning):
                warnings.warn(
                    f"delta is {budget.delta:g}; with 1/n or more, publishing whole records at"
                    " random would pass. Choose a delta well below 1 over the number of records.",
                    UserWarning,
                    stacklevel=3,
                )
        account = self._account(budget, guarantee)
        return Task(given, target, table, points, askable, budget, guarantee, account, declared)

    def _check_settings(self, budget: PrivacyBudget) -> None:
        """Refuse settings that cannot be."""
        for name in self._counted:
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))

    def _declared(self, given: Given) -> Target:
        """Return what is learnt."""
        kind = self._target_kind
        if "bounds" in self.takes:
            return kind.of_number(given.bounds)
        several = given.labels is not None
        return kind.of_labels(given.labels) if several else kind.of_classes(given.classes)

    def _public_points(self, given: Given) -> Any:
        """Return the public points, of shape (n_public, n_features), as far as they were given."""
        return given.X_public

    def _split_rows(self, n_records: int, given: Given) -> tuple[IntArray | None, IntArray, str]:
        """Return, where labels alone are private, the rows that keep theirs, None for all of them
        in their order; those that may be asked; and the rule in words."""
        return None, np.arange(n_records), ""

    @property
    def _budget(self) -> PrivacyBudget:
        # which refuses None
        return PrivacyBudget(self.epsilon, self.delta)  # type: ignore[arg-type]

    def _account(self, budget: PrivacyBudget, guarantee: Guarantee) -> Ledger:
        """Return the account that pays: the ledger, if it takes a fit with this guarantee; without
        one, an account of this fit alone, in memory.

        Raises
        ------
        ParameterError, LedgerError
            If it is no ledger, or is about something else.
        """
        unit, relation = guarantee.unit, guarantee.relation
        if self.ledger is None:
            return Ledger.in_memory(
                dataset="this fit alone", budget=budget, unit=unit, relation=relation
            )
        check_ledger(self.ledger)
        self.ledger.check_promise(unit, relation)
        return self.ledger

    def _checked_points(self, X: Any) -> Any:
        """Return points to predict as a matrix or frame of shape (n_points, n_features).

        Raises
        ------
        NotFittedError
            If there is no student.
        DataError, ValueError
            If the points are no table, or have other columns than those that were learnt.
        """
        check_is_fitted(self, "student_")
        matrix = as_matrix("X", X)
        validate_data(self, matrix, reset=False, skip_check_array=True)
        return matrix


@dataclass(eq=False, repr=False, kw_only=True)
class Learner(PayingLearner):
    """A learner that releases once and lets a student learn.

    Attributes
    ----------
    released_ : ReleasedLabels, ReleasedSums or ReleasedTable
        Everything that was released.
    certificate_ : dict
        What may be shown to a stranger.
    student_ : fitted student
    n_features_in_ : int
    """

    def fit_labels(self, X: Any, y: Any, **given: Any) -> Self:
        """Do all that `fit` does but let a student learn, which may happen where no private data
        ever was; parameters, with their shapes, and errors are those of `fit`."""
        return self._fitted(self._prepared(Given(X, y, **given)), teach=False)

    def _fitted(self, task: Task, *, teach: bool = True) -> Self:
        """Release, note what came of it, and let the student learn unless `teach` is false."""
        self.released_ = self._release(task)
        self.certificate_ = self.released_.certificate
        if task.target.classes:
            self.classes_: Any = np.asarray(list(task.target.classes))
        elif task.target.labels:
            self.labels_ = np.array(task.target.labels)
            self.classes_ = [np.array([0, 1]) for _ in self.labels_]
        task.table.note_columns(self)
        if teach:
            # the release is kept by now: it stays paid for if the student cannot learn from it
            self.student_ = self._taught(task.points)
        return self

    @abstractmethod
    def _release(self, task: Task) -> Any:
        """Return what is released: pay, and draw; all that can be refused is refused before."""

    @abstractmethod
    def _taught(self, points: Any) -> Any:
        """Return the student that learnt `released_` about public points, of shape (n_public,
        n_features)."""

    @property
    def _student(self) -> Any:
        """The student that was asked for, unfitted; None for "auto".

        Raises
        ------
        ParameterError
            If it cannot be cloned and fitted.
        """
        student: Any = getattr(self, "student", "auto")
        if isinstance(student, str):
            return student_by_name(student, of_numbers=isinstance(self, RegressorMixin))
        check_learner("student", student)
        return student

    def predict(self, X: Any) -> AnyArray:
        """Return what the student predicts for every row of `X`, shape (n_rows,) or (n_rows,
        n_labels)."""
        points = self._checked_points(X)  # before it is fitted, there is no student
        return np.asarray(self.student_.predict(points))


def _has_probabilities(model: Any) -> bool:
    student = getattr(model, "student_", getattr(model, "student", "auto"))
    return isinstance(student, str) or hasattr(student, "predict_proba")


# scikit-learn ships no types
@dataclass(eq=False, repr=False, kw_only=True)
class ClassLearner(ClassifierMixin, Learner):  # type: ignore[misc]
    """A learner of one class of several, or of several labels.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,), or a list of n_labels ndarrays of 0 and 1
    labels_ : ndarray of shape (n_labels,)
        Names of several labels.
    """

    # scikit-learn ships no types
    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the student's class probabilities, an array of shape (n_rows, n_classes) in the
        order of `classes_`; or that of each of several labels.

        Classes that the student never saw get probability 0.
        """
        matrix = self._checked_points(X)
        if isinstance(self.classes_, list):
            return np.asarray(self.student_.predict_proba(matrix), dtype=np.float64)
        return class_shares(self.student_, matrix, self.classes_.tolist())

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithms of `predict_proba`, -inf where a probability is 0."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))


def refuse_beside(name: str, settings: Any, *others: str) -> None:
    """Refuse fields of `settings` that were set and do not go with another one, `name`."""
    for field in fields(settings):
        value = getattr(settings, field.name)
        is_default = value is field.default or (isinstance(value, str) and value == field.default)
        if field.name in others and not is_default:
            raise refusal(field.name, " does not go with ", Parameter(name), "; leave one out.")


def _warn_inside_sklearn(*, alone: bool) -> None:
    """Warn of a fit inside of a pipeline or, without a ledger, of a search, before it spends.

    Parameters
    ----------
    alone : bool
        Whether an account of this fit alone pays.

    Warns
    -----
    UnpricedFitWarning
    """
    modules = [str(frame.f_globals.get("__name__", "")) for frame, _ in walk_stack(None)]
    sklearn = [name for name in modules if name.startswith(_SKLEARN)]
    odd = any(name.startswith(_STEPS) for name in sklearn)
    if odd or (alone and any(not name.startswith(_NO_FITS) for name in sklearn)):
        own = (place for place, name in enumerate(modules, 1) if not name.startswith(_PACKAGE))
        warnings.warn(_INSIDE, UnpricedFitWarning, stacklevel=next(own))


# --- what is left of an account, before hours go into teachers ---

#: Remaining budgets are rounded down; a refusal this early must not rest on the last digit.
_SLACK = 1 - 1e-9


def rest_of(epsilon: float, part: float) -> float:
    """Return what is left of epsilon beside a part of it, rounded down, so that a ledger, which
    reads decimals, finds no more than epsilon in both."""
    left = Fraction(repr(epsilon)) - Fraction(repr(part))
    nearest = float(left)
    while Fraction(repr(nearest)) > left:
        nearest = math.nextafter(nearest, 0.0)
    return nearest


def refuse_beyond(ledger: Ledger, budget: PrivacyBudget, request: str | None) -> None:
    """Refuse a price that the ledger will not admit before hours go into teachers; the ledger
    itself judges later.

    A run that was paid for before costs nothing: it has its answer, or goes on.

    Raises
    ------
    BudgetError
        If less is left than the run would cost. Nothing is stated of Renyi accounts, whose sums are
        not additive.
    """
    begun = request is not None and ledger.entry(request) is not None
    if begun or ledger.composition != "basic":
        return
    left = ledger.remaining()
    if not (left.epsilon >= budget.epsilon * _SLACK and left.delta >= budget.delta * _SLACK):
        raise BudgetError(
            f"Of the budget of the dataset {ledger.dataset!r}, epsilon {left.epsilon:.4g} and delta"
            f" {left.delta:.4g} are left, and this run would cost epsilon {budget.epsilon:.4g} and"
            f" delta {budget.delta:.4g}; ask for less. Nothing was spent."
        )
