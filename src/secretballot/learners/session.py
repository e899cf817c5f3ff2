"""Teachers that are kept, tried before they are trained, and the sessions that ask them.

A shard that cannot train votes by a fixed rule and says nothing, because an error would tell about
the data. A teacher that can never train would thus pay for worthless labels in silence. A trial fit
that knows no private value may speak. What is tried follows from public inputs alone, and it runs
on global states of its own: nothing that comes after it can tell whether the private table has
missing values.

Teachers are trained once, asked as long as a reservation lasts, and found again in the vault. A
stream is one reservation of the core, with the certificate of all its answers; a session is a
stream of teachers.
"""

import hashlib
import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import joblib
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import clone

from secretballot._files import LARGEST_JSON, json_text
from secretballot._seeded import own_global_states, with_own_seeds
from secretballot._typing import BoolArray, IntArray, Json, JsonView, ObjectArray, Progress, Values
from secretballot._validation import (
    RELATIONS,
    check_choice,
    check_count,
    check_instance,
    check_name,
    check_path,
    refusal,
    shown_error,
)
from secretballot.accounting import PrivacyBudget, check_useful
from secretballot.accounting.recipes import Terms, deviation_of_counts
from secretballot.core import releasing
from secretballot.core.ledger import Ledger
from secretballot.core.mechanisms import ConfidentLabels, Mechanism
from secretballot.core.noise import entropy_bytes
from secretballot.core.private import Votes
from secretballot.core.releasing import Released, terms_of
from secretballot.core.types import Sample, VoteShape
from secretballot.exceptions import BudgetError, DataError, LedgerError, ParameterError
from secretballot.learners.inputs import (
    Target,
    as_matrix,
    distinct_points,
    example_rows,
    n_columns,
    object_array,
    question_digests,
    refuse_unfit,
    single_point,
    with_public_types,
)
from secretballot.learners.table import Table, forget_records, private_table, refuse_units
from secretballot.named_learners import check_learner, teacher_by_name
from secretballot.released import ReleasedLabels, labels_in
from secretballot.releasing import (
    ASKED,
    check_declared,
    check_paid_by,
    check_readable,
    labels_released,
)
from secretballot.report.certificate_models import class_value
from secretballot.students import NumberedClassesClassifier
from secretballot.students.fitting import predicted_votes
from secretballot.teachers.ensemble import TeacherEnsemble, learner_identity
from secretballot.teachers.executors import LOCAL, check_engine
from secretballot.teachers.rows import n_rows, take_rows
from secretballot.teachers.votes import guarantee_of
from secretballot.vault import (
    VaultFiles,
    is_other_ledger,
    keep_in_step,
    make_vault,
    read_secret,
    write_secret,
)

#: Public rows on which a teacher is tried.
_ROWS = 60


def check_teacher(teacher: Any, X: Any, X_public: Any, n_classes: int) -> tuple[Any, bool]:
    """Return the learner to clone for every shard, after a clone of it was fitted to the first
    public points under labels 0, 1, ... in turn, and whether it takes missing values.

    It is tried with missing values too, whatever the private table holds. A learner that refuses
    labels without the first class, as XGBoost does, is put into a `NumberedClassesClassifier`:
    every shard without that class would be lost without a word.

    Parameters
    ----------
    teacher : classifier, regressor or str
    X : array, sparse matrix or frame of shape (n_records, n_features)
    X_public : like X, of shape (n_public, n_features)
    n_classes : int
        0 for a teacher of numbers, which are dummies then.

    Returns
    -------
    tuple of learner and bool

    Raises
    ------
    ParameterError
        If it cannot be fitted or does not predict one of the labels for every point.
    DataError
        If values are missing and it does not take such.
    """
    learner = named_teacher(teacher, n_classes)
    check_learner("teacher", learner)
    # repeated where they are too few for every class
    n_tried = max(_ROWS, 4 * n_classes)
    points = take_rows(X_public, np.resize(np.arange(min(_ROWS, n_rows(X_public))), n_tried))
    check_trainable("teacher", learner, points, n_classes)
    if n_classes > 2 and _problem_of_fit(learner, points, n_classes, first=1) is not None:
        numbered = NumberedClassesClassifier(learner)
        if _problem_of_fit(numbered, points, n_classes, first=1) is None:
            learner = numbered
    # before it is known whether any are missing
    taken = _takes_missing(learner, points, n_classes)
    refuse_unfit("X", X, missing_taken=taken)
    refuse_unfit("X_public", X_public, missing_taken=taken)
    return learner, taken


def named_teacher(teacher: Any, n_classes: int) -> Any:
    """Return the unfitted learner that a name stands for; others as they are. Of 0 classes it is
    one of numbers."""
    return teacher_by_name(teacher, n_classes) if isinstance(teacher, str) else teacher


def _takes_missing(learner: Any, points: Any, n_classes: int) -> bool:
    """Return whether a learner takes missing values in every column, by a trial fit; none in
    sparse points."""
    if sparse.issparse(points):
        return False
    # every seventh value, in every column
    missing = np.add.outer(np.arange(points.shape[0]), np.arange(points.shape[1])) % 7 == 0
    if hasattr(points, "iloc"):
        holed = points.mask(missing)
    else:
        kind = np.float64 if points.dtype.kind in "biuf" else object
        holed = np.where(missing, np.nan, points.astype(kind))
    return _problem_of_fit(learner, holed, n_classes) is None


def check_trainable(parameter: str, learner: Any, points: Any, n_classes: int) -> None:
    """Refuse a learner that cannot be fitted to public points under dummy labels, or numbers for 0
    classes.

    Raises
    ------
    ParameterError
    """
    problem = _problem_of_fit(learner, points, n_classes)
    if problem is not None:
        raise refusal(
            parameter,
            " cannot be trained on the public points with dummy"
            f" {'labels' if n_classes else 'numbers'} ({problem}). Nothing was spent; fix it or its"
            " preprocessing, or take another one.",
        )


def _problem_of_fit(learner: Any, points: Any, n_classes: int, first: int = 0) -> str | None:
    """Return what went wrong with the labels from the first class on, None if nothing did."""
    order = np.arange(n_rows(points))
    labels = first + order % (n_classes - first) if n_classes else order % 7 / 7.0
    try:
        with own_global_states(0):
            warnings.simplefilter("ignore")
            fitted = with_own_seeds(clone(learner), 0).fit(points, labels)
            predicted = np.asarray(fitted.predict(points))
    except Exception as error:  # it may raise anything; the points are public, the labels dummies
        return shown_error(error)
    if not n_classes and predicted.size == labels.size and predicted.dtype.kind in "biuf":
        return None if np.isfinite(predicted).all() else "it predicts what is no number"
    if predicted.shape != labels.shape or not np.isin(predicted, labels).all():
        return (
            f"it predicts shape {predicted.shape} for {len(labels)} points, or values that are no"
            f" {'labels' if n_classes else 'numbers'}"
        )
    return None


_FILE = "teachers.pickle"


@dataclass(frozen=True, repr=False, eq=False)
class TrainedTeachers:
    """Teachers with all that must be known to ask them; made by `train_teachers`.

    Attributes
    ----------
    ensemble : TeacherEnsemble
        Private; shows its shape alone.
    classes : tuple
        Class values; public.
    declaration : dict
        Unit and relation that the shards were made for.
    template : frame, array or matrix without rows
        The columns and types that the teachers take; public.
    missing_taken : bool
        Whether they take missing values.
    serial : str
        Names these teachers and no others; drawn at random, never computed from data.
    vault : Path or None
        Where they are kept.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> teachers = sb.train_teachers(
    ...     "tree", X, (X[:, 0] > 0).astype(int), classes=[0, 1], n_teachers=10)
    >>> teachers
    TrainedTeachers(n_teachers=10, classes=[0, 1], teachers=<private>)
    """

    ensemble: TeacherEnsemble
    classes: Values
    declaration: JsonView
    template: Any
    missing_taken: bool = False
    serial: str = ""
    vault: Path | None = None

    @property
    def n_teachers(self) -> int:
        """Number of teachers; public."""
        return self.ensemble.n_teachers

    @classmethod
    def load(cls, vault: str | Path) -> "TrainedTeachers":
        """Return the teachers kept in a vault, without the data they were trained on.

        Raises
        ------
        DataError
            If there are none, or they are damaged or of other library versions.
        """
        place = Path(vault)
        kept = _kept_in(place)
        if kept is None:
            raise DataError(
                f"The vault {place} holds no teachers; give the vault that they were trained into."
            )
        forget_records(place)  # a crash may have come between keeping the teachers and this
        return kept[0]

    def points(self, X: Any) -> Any:
        """Return public points, of shape (n, n_features), with the types that the teachers take.

        Raises
        ------
        DataError
            If they do not fit.
        """
        # in messages to those who ask later, and have no X_public
        points = with_public_types(as_matrix("X", X), self.template, known="the teachers' data")
        refuse_unfit("X", points, missing_taken=self.missing_taken)
        return points

    def vote(self, points: Any, *, request: str | None = None) -> Votes:
        """Return the votes of all teachers on public points; the counts are secret.

        Parameters
        ----------
        points : array, sparse matrix or frame of shape (n, n_features)
            As `points` returned them.
        request : str, optional
            Key of the reservation that asks; teachers of a secret sample answer to the one that it
            was drawn for.

        Raises
        ------
        ParameterError
            If they learned from a sample that was drawn for another reservation.
        """
        sample = self.sample
        if sample is not None and sample.request != request:
            raise ParameterError(
                "These teachers learned from a secret sample that was drawn for one reservation;"
                " ask them through its labeler or its session, where what it costs is paid."
            )
        made = self.shape(n_rows(points)).guarantee
        votes = self.ensemble.vote_counts(points, guarantee=made, sample=sample)
        votes.classes = self.classes  # which were checked when the teachers were trained
        return votes

    @property
    def sample(self) -> Sample | None:
        """The secret sample that they learned from, None where they learned from all records."""
        declared: Any = self.declaration.get("sample")
        return None if declared is None else Sample(**declared, serial=self.serial)

    def shape(self, n_queries: int) -> VoteShape:
        """Return the public facts of their votes on so many points."""
        return VoteShape(
            guarantee=guarantee_of(self.declaration["unit"], self.declaration["relation"]),
            n_queries=n_queries,
            n_classes=len(self.classes),
            n_teachers=self.n_teachers,
            moved=n_queries,
            sample=self.sample,
        )

    def __repr__(self) -> str:
        return (
            f"TrainedTeachers(n_teachers={self.n_teachers}, classes={list(self.classes)},"
            " teachers=<private>)"
        )


def reservation_folder(vault: str | Path, request: str) -> Path:
    """Return the folder of a reservation in a vault, named by a digest: a key may hold anything."""
    return Path(vault) / "plans" / hashlib.sha256(request.encode()).hexdigest()[:32]


def train_teachers(
    teacher: Any,
    X: Any,
    y: Any,
    *,
    classes: Sequence[Any],
    X_public: Any = None,
    n_teachers: int = 250,
    relation: str = "add-remove",
    units: Any = None,
    unit_name: str | None = None,
    vault: str | Path | None = None,
    n_jobs: int | None = None,
    executor: Any = LOCAL,
    random_state: int | None = None,
    progress: Progress | None = None,
) -> TrainedTeachers:
    """Train one teacher on every shard of the private records, to be asked for labels later.

    Parameters
    ----------
    teacher : classifier or str
        Cloned for every shard; such as "logistic".
    X : array, sparse matrix or frame of shape (n_records, n_features)
        Private.
    y : array of shape (n_records,)
        Private labels, each one of `classes`.
    classes : sequence of two or more values
        Public; never inferred from the private labels.
    X_public : like X, of shape (n, n_features), optional
        Public points, a few of them will do: they fix the types of the columns, and the teacher is
        tried on them with dummy labels. Needed for frames; numeric arrays are taken as floating
        point without.
    n_teachers : int
        Number of shards K; public, chosen without looking at the private data.
    relation : {"add-remove", "replace-one"}
        Relation that the promise is about.
    units : array of shape (n_records,), optional
        Ids, such as patient numbers: all records of one id are protected together.
    unit_name : str, optional
        What the ids are, for certificates.
    vault : path, optional
        Secret folder in which the teachers are kept; with one, the same call finds them again and
        trains nothing.
    n_jobs, random_state, executor, progress
        As for `PATEClassifier`.

    Returns
    -------
    TrainedTeachers

    Raises
    ------
    ParameterError, DataError
        If something does not fit, or the vault belongs to other data; nothing was spent.

    Privacy
    -------
    Unit : one record, or all records of one id where `units` is given.
    Relation : add or remove one unit; or replace one record in place.
    Sensitivity : one unit touches one shard, hence one teacher.
    Price : none; nothing leaves until a session or a release asks.
    """
    target = Target.of_classes(classes)
    check_count("n_teachers", n_teachers)
    check_choice("relation", relation, RELATIONS)
    refuse_units(units, relation)
    check_engine(executor, n_jobs)
    X = as_matrix("X", X)
    # Types come from public rows before anything else looks at private ones.
    example = example_rows(X, X_public, _ROWS)
    table, example = private_table(X, y, example, target, units, unit_name)
    return teachers_of_table(
        table,
        teacher,
        example,
        target,
        n_teachers=n_teachers,
        relation=relation,
        vault=vault,
        random_state=random_state or 0,
        n_jobs=n_jobs,
        engine=executor,
        progress=progress,
    )


def teachers_of_table(
    table: Table,
    teacher: Any,
    example: Any,
    target: Target,
    *,
    n_teachers: int,
    relation: str,
    vault: str | Path | None,
    random_state: int,
    declaration: JsonView | None = None,
    keep: bool = True,
    **training: Any,
) -> TrainedTeachers:
    """Return teachers of a private table, kept in a vault or trained now, to be asked later.

    Parameters
    ----------
    table : Table
    teacher : classifier or str
    example : array, sparse matrix or frame of shape (n, n_features)
        A few public points.
    target : Target
        Of classes.
    n_teachers, relation, vault, random_state
        As for `train_teachers`, whose errors these are.
    declaration : mapping, optional
        More than unit and relation, for the certificate.
    keep : bool
        Whether a vault keeps them to be asked again. Else it keeps each as it is finished, so that
        an interrupted training goes on until `forget_records`.
    **training
        As for `TeacherEnsemble.fit`.
    """
    # the trial fit comes before the vault is made: a teacher that cannot work leaves nothing behind
    names = target.learnt
    learner, taken = check_teacher(teacher, table.like, example, len(names))
    place = None if vault is None else make_vault(vault)
    serial, about = entropy_bytes(16).hex(), {"unit": table.unit, "unit_column": table.unit_name}
    public: Json = {
        "classes": target.classes,
        "declaration": {**about, "relation": relation, **(declaration or {})},
        "template": example.iloc[:0] if hasattr(example, "iloc") else example[:0].copy(),
        "missing_taken": taken,
    }

    def fit() -> TeacherEnsemble:
        with table.shards(n_teachers, relation, place) as (source, content):
            kept = None
            if place is not None and content is not None:
                # The digest ties kept teachers to these very shards: a fit that is taken up again
                # with other data finds none of them.
                kept = place, str(joblib.hash(content, hash_name="sha1"))
            how = {"random_state": random_state, "kept": kept, **training}
            return TeacherEnsemble.fit(learner, source, n_classes=len(names), **how)

    if place is None or not keep:
        return TrainedTeachers(fit(), **public, serial=serial)
    # what cannot be distinguished is never found again here, by `TrainedTeachers.load` alone
    known = learner_identity(learner) or entropy_bytes(16).hex()
    identity = known, *table.identity, n_teachers, names, relation, random_state
    digest, mine, kept = str(joblib.hash(identity, hash_name="sha1")), None, _kept_in(place)
    if kept is None:
        mine = fit()
        write_secret(place / _FILE, mine.packed((serial, digest, public)), only_new=True)
        kept = _kept_in(place)  # perhaps those of another process
    assert kept is not None
    teachers, of_identity = kept
    if of_identity != digest:
        raise DataError(
            f"The vault {place} belongs to other data, or to other settings of the teachers; give"
            " another vault, or the data and settings it was begun with. Nothing was spent."
        )
    # a reservation goes on with these teachers, not with a new fit
    forget_records(place)
    if mine is not None and teachers.serial == serial:
        return replace(teachers, ensemble=mine)  # which knows its workers
    return teachers


def _kept_in(vault: Path) -> tuple[TrainedTeachers, str] | None:
    """Return the teachers of a vault, and the digest of all that they depend on; None where there
    are none.

    Raises
    ------
    DataError
        If the file is damaged, not our own, or of other library versions.
    """
    content = read_secret(vault / _FILE, own=True)
    if content is None:
        return None
    found = TeacherEnsemble.unpacked(content)
    if found is None:
        raise DataError(
            f"The teachers in the vault {vault} are damaged or were kept under other versions of"
            " Python, numpy or scikit-learn; put both back as they were, or begin in another vault."
            " Nothing was spent."
        )
    ensemble, (serial, digest, public) = found
    return TrainedTeachers(ensemble, **public, serial=serial, vault=vault), digest


@dataclass(frozen=True, eq=False)
class SessionAnswers:
    """The answers to questions; public.

    Attributes
    ----------
    labels : ndarray of object, shape (n,)
        Class values; None where the session abstained or the reservation was spent.
    answered : ndarray of bool, shape (n,)
        Where there is a label.
    given : ndarray of bool, shape (n,)
        False where the reservation was spent before the question came.
    noisy_counts : ndarray of int64, shape (n,) or (n, n_classes), or None
        Where counts are released.
    left : float
        Questions that are still paid for: an integer, or infinity of a universal labeler.
    """

    labels: ObjectArray
    answered: BoolArray
    given: BoolArray
    noisy_counts: IntArray | None
    left: float

    def __len__(self) -> int:
        return len(self.labels)

    def where(self, rows: BoolArray | slice) -> Self:
        """Return the answers that a mask of shape (n,), or a slice, chooses."""
        counts = None if self.noisy_counts is None else self.noisy_counts[rows]
        own = self.labels[rows], self.answered[rows], self.given[rows]
        return type(self)(*own, counts, self.left)

    @property
    def label(self) -> Any:
        """The label of the first question; None where the session abstained."""
        return self.labels[0]


class LabelStream:
    """Reserve the right to ask teachers, or take up a reservation.

    Parameters
    ----------
    terms : Terms
        Of all questions together.
    votes : callable
        What is asked, in rows, to the votes on it; secret.
    ledger : Ledger
    classes : sequence
        Class values; public.
    request : str
        Key of the reservation in the ledger.
    teachers : str
        Names the teachers: a reservation goes on only with those it began with. Not computed from
        private data.
    vault : Path, optional
        Refuses older copies of the ledger, and keeps what the next answer depends on.
    purpose : str
    declaration
        As for `secretballot.release`.
    plan : mapping, optional
        What the certificate will say of a run that asks all questions.

    Attributes
    ----------
    price : PrivacyBudget
        What all questions cost together.
    sigma : float or None
        Standard deviation of the noise on released counts, in votes; None for labels alone.
    resumable : bool
        Whether the reservation outlives this process: its vault and its ledger do.

    Raises
    ------
    ParameterError
        If the mechanism does not fit the votes, hardly answers even unanimous ones, or the request
        was reserved with other terms.
    BudgetError
        If the mechanism costs more than the budget, or the ledger does not admit it; nothing was
        spent.
    LedgerError
        If the ledger cannot be used, is about another unit or relation, or is older than what the
        vault has seen of it.

    Privacy
    -------
    As for `core.releasing.stream`.
    """

    def __init__(
        self,
        terms: Terms,
        votes: Callable[[Any], Votes],
        ledger: Ledger,
        *,
        classes: Sequence[Any],
        request: str,
        teachers: str = "",
        vault: Path | None = None,
        purpose: str = "",
        declaration: JsonView | None = None,
        plan: JsonView | None = None,
    ) -> None:
        check_declared(declaration, terms.shape.guarantee)
        check_useful(terms.mechanism, terms.shape)
        asked = {
            "classes": [class_value(value) for value in classes],
            "teachers": teachers,
            "declaration": None if declaration is None else dict(declaration),
            "choices": [],
        }
        if vault is not None:
            # an older copy of the ledger has lost answers, and would give them anew
            keep_in_step(vault, ledger)
        self._stream = releasing.stream(
            replace(terms, public={**terms.public, ASKED: asked}, purpose=purpose),
            ledger,
            request=request,
            vault=None if vault is None else VaultFiles(vault),
            check=lambda planned: check_readable(_certificate_of_one(planned, plan)),
        )
        self._terms, self._votes, self.price = terms, votes, terms.budget
        self.sigma = deviation_of_counts(terms.mechanism)
        self.ledger, self.request, self.classes = ledger, request, tuple(classes)
        self.resumable = vault is not None and ledger.durable

    @property
    def closed(self) -> bool:
        """Whether the reservation was settled: stored answers are all that comes."""
        return self._stream.closed

    @property
    def planned(self) -> int:
        """Questions paid for."""
        return self._stream.planned

    @property
    def used(self) -> int:
        """Questions answered so far, abstentions included; repeated ones count once."""
        return self._stream.used

    @property
    def left(self) -> int:
        """Questions still to be had."""
        return self._stream.left

    def left_over(self, *, ends: bool = False) -> str:
        """Return what becomes of unused questions, where the stream is settled now if `ends` is
        true: a reservation stays open unless it returns its rest or cannot be resumed."""
        if self._stream.returns and (ends or self.closed):
            return "returned"
        return "kept" if self.left and (self.resumable or not ends) else "forfeited"

    def answer(
        self,
        asked: Any,
        questions: Sequence[bytes],
        predictions: ArrayLike | None = None,
        admit: Callable[[BoolArray, int], BoolArray] | None = None,
    ) -> SessionAnswers:
        """Return the answers to questions, stored ones and new ones, while any are left.

        Parameters
        ----------
        asked : array, sparse matrix or frame of shape (n, ...)
            What the teachers vote on, outside of the ledger's lock; of new questions alone.
        questions : sequence of bytes
            One for each row of it.
        predictions : array of shape (n, n_classes), optional
            Class probabilities of a student of released labels, which confident labels contradict.
        admit : callable, optional
            A mask of shape (n,) of the questions that are new, and how many are left, to a mask of
            those that may be asked.

        Raises
        ------
        ParameterError, DataError, LedgerError
            As for `AnswerStream.answer`, or if predictions have another shape.
        """
        shape, against = self._terms.shape, None
        if predictions is not None:
            against = predicted_votes(predictions, shape.n_teachers or 0)
        found = self._stream.find(questions)
        fresh = ~found.given
        (new,) = (fresh if admit is None else admit(fresh, found.left) & fresh).nonzero()
        if len(new) and found.left:
            votes = self._votes(take_rows(asked, new))
            if against is not None:
                votes = votes.against(against[new])
            drawn = self._stream.answer(votes, [questions[place] for place in new.tolist()])
            found.values[new], found.given[new] = drawn.values, drawn.given
            found = found._replace(left=drawn.left)
        return self._read(found)

    def _read(self, answers: releasing.Answers) -> SessionAnswers:
        index, counts = labels_in(self._terms.mechanism, self._terms.shape, answers.values)
        answered = answers.given & (index >= 0)
        labels = object_array(self.classes)[index]
        labels[~answered] = None
        return SessionAnswers(labels, answered, answers.given, counts, answers.left)


def plan_of(planned: int, rounds: Sequence[int], strategy: JsonView, left: str) -> Json:
    """Return what a certificate says of the questions that were paid for and those that were
    asked, in their rounds, by a strategy; `left` is what becomes of the others, if any."""
    used = sum(rounds)
    return {
        "planned": planned,
        "used": used,
        "rounds": list(rounds),
        "strategy": dict(strategy),
        "left": "none" if used == planned else left,
    }


def certified_labels(
    done: Released, rows: Mapping[bytes, int] | None = None, plan: JsonView | None = None
) -> ReleasedLabels:
    """Return what a stream has released, with its certificate.

    Parameters
    ----------
    done : Released
    rows : mapping of bytes to int, optional
        The row of the public pool that each question stands for; by default each for itself.
    plan : mapping, optional
        What was planned and what was used, for the certificate.

    Raises
    ------
    DataError
        If a question was answered that `rows` does not know.
    """
    # questions are digests of the points' values, and so tie the labels to them
    points = hashlib.sha256(b"".join(done.questions)).hexdigest()
    if rows is None:
        return labels_released(done, np.arange(len(done.questions)), points, plan)
    # a certificate lists every answer that was given, never a part of them
    unknown = sum(question not in rows for question in done.questions)
    if unknown:
        raise DataError(
            f"{unknown} of the {len(done.questions)} answers of {done.request!r} are to other"
            " points; give all the points that were asked."
        )
    queries = np.array([rows[one] for one in done.questions], dtype=np.int64)
    return labels_released(done, queries, points, plan)


def _certificate_of_one(planned: Released, plan: JsonView | None) -> Json:
    """Return the certificate of a stream that gave all its answers; of them the digest alone
    is there, so one is enough."""
    assert isinstance(planned.shape, VoteShape)
    mechanism, n = planned.mechanism, planned.shape.n_queries
    given = min(mechanism.stops_at or n, n) if isinstance(mechanism, ConfidentLabels) else n
    one = replace(planned, values=planned.values[:1])
    sizes = {"queries": n, "answered": given}
    return labels_released(one, np.zeros(1, np.int64), "0" * 64, plan, sizes).certificate


class LabelingSession(LabelStream):
    """Answer questions that nobody knew beforehand, each with a private label, under one price.

    The price of all questions is reserved when the session begins. A question that was asked before
    gets its stored answer and costs nothing. Every answer is on the disk before it is returned, so
    that a session that dies at any moment goes on where it was: nothing is answered unpaid, and
    nothing is paid twice. Threads may share a session, and processes may each open it under its
    name.

    Parameters
    ----------
    teachers : TrainedTeachers
        From `train_teachers`; with a vault if the session is to outlive the process.
    mechanism : Mechanism
        Fixed without looking at the votes.
    ledger : Ledger
        Account of the private dataset.
    budget : PrivacyBudget
        What all questions cost together.
    n_queries : int
        Questions that are paid for.
    request : str
        Key of the session in the ledger: opening it again under its key goes on with the same
        reservation.
    purpose : str
        Why, in a few words; public.

    Attributes
    ----------
    planned, used, left : int
        Questions paid for, answered so far (abstentions included), and still to be had.

    Raises
    ------
    ParameterError
        If the mechanism does not fit the teachers, or the session was begun with other terms.
    BudgetError
        If the mechanism costs more than `budget`, or the ledger does not admit it; nothing was
        spent.
    LedgerError
        If the ledger cannot be used, or is older than what the vault has seen of it.

    Privacy
    -------
    Unit, relation : those of the teachers' shards.
    Sensitivity : one unit touches one teacher, hence one vote for every question.
    Price : that of all questions, however they are chosen in the light of earlier answers.
    Source : Nandi and Bassily 2020, Algorithm 1 and Definition 2.2 (private classification-query
        release); Liu et al. 2021, Algorithms 1, 2 and 4.
    Rounding : upward.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> teachers = sb.train_teachers(
    ...     "tree", X, (X[:, 0] > 0).astype(int), classes=[0, 1], n_teachers=20)
    >>> budget = sb.PrivacyBudget(epsilon=2.0, delta=1e-6)
    >>> ledger = sb.Ledger.in_memory(dataset="example", budget=budget)
    >>> labels = sb.accounting.noisy_votes(budget, teachers.shape(10))
    >>> session = sb.LabelingSession(teachers, labels, ledger, budget, n_queries=10)
    >>> session.ask([1.0, 0.0]).label in (0, 1)
    True
    >>> _ = session.ask([1.0, 0.0])  # asked before: the stored answer, for nothing
    >>> session.planned, session.used, session.left
    (10, 1, 9)
    """

    def __init__(
        self,
        teachers: TrainedTeachers,
        mechanism: Mechanism,
        ledger: Ledger,
        budget: PrivacyBudget,
        *,
        n_queries: int,
        request: str = "session",
        purpose: str = "",
    ) -> None:
        check_instance(
            "teachers", teachers, TrainedTeachers, hint="give what train_teachers returned"
        )
        check_paid_by(mechanism, ledger, budget)
        check_name("request", request)
        self._teachers = teachers
        durable = teachers.vault if ledger.durable else None
        kept = None if teachers.sample is None else teachers.vault
        if kept is not None and (durable is None or is_other_ledger(kept, ledger)):
            raise ParameterError(
                "These teachers were kept for the one reservation of a secret sample, and this"
                " ledger does not hold it; give the ledger of that reservation. Nothing was spent."
            )
        shape = teachers.shape(check_count("n_queries", n_queries))
        super().__init__(
            Terms(mechanism, shape, budget),
            lambda points: teachers.vote(points, request=request),
            ledger,
            classes=teachers.classes,
            request=request,
            teachers=teachers.serial,
            vault=durable,
            purpose=purpose,
            declaration=teachers.declaration,
        )
        # Only after the stream has reserved: a crash in between leaves a session that is begun
        # again under its key, without a second charge.
        if durable is not None and ledger.place is not None:
            about = {"ledger": ledger.place, "name": request}
            write_secret(_session_file(durable, request), json.dumps(about).encode())

    @classmethod
    def reopen(cls, vault: str | Path, *, request: str = "session") -> Self:
        """Go on with a session after a restart, from its vault and its ledger alone.

        Raises
        ------
        DataError
            If the vault holds no such session, or its teachers cannot be read.
        LedgerError
            If the ledger is not where it was, or does not fit the vault.
        """
        check_path("vault", vault)
        check_name("request", request)
        folder = Path(vault)
        place = _session_file(folder, request)
        # A folder that is missing is no vault: reading would be refused as damage, not as absence.
        content = read_secret(place, largest=LARGEST_JSON) if folder.is_dir() else None
        if content is None:
            raise DataError(
                f"The vault {folder} holds no session {request!r}; give the vault and the request"
                " it began with."
            )
        ledger = json_text(content, "ledger")
        if ledger is None:
            raise DataError(f"{place} is damaged; put the vault back as it was.")
        account = Ledger.open_existing(ledger)
        entry = account.entry(request)
        if entry is None or not entry.terms:
            raise LedgerError(
                f"The ledger {ledger!r} does not hold the session {request!r}; restore its"
                " newest copy. Nothing was spent."
            )
        terms = terms_of(entry)
        return cls(
            TrainedTeachers.load(folder),
            terms.mechanism,
            account,
            terms.budget,
            n_queries=terms.shape.n_queries,  # type: ignore[union-attr]  # a session asks teachers
            request=request,
            purpose=terms.purpose,
        )

    @property
    def n_teachers(self) -> int:
        """Number of teachers."""
        return self._teachers.n_teachers

    @property
    def terms(self) -> Json:
        """The mechanism, as on certificates."""
        return self._terms.mechanism.model_dump(mode="json")

    @property
    def columns(self) -> Json:
        """The columns and types of points, as JSON values."""
        template = self._teachers.template
        if hasattr(template, "iloc"):
            columns = []
            for name, kind in zip(template.columns, template.dtypes, strict=True):
                more = None
                # the name of a categorical type does not say its categories
                if isinstance(kind, pd.CategoricalDtype):
                    more = [kind.categories.tolist(), bool(kind.ordered)]
                columns.append([name, str(kind), more])
            return {"kind": "frame", "columns": columns}
        kind = "sparse" if sparse.issparse(template) else "array"
        return {"kind": kind, "dtype": template.dtype.str, "columns": n_columns(template)}

    def ask(self, x: Any) -> SessionAnswers:
        """Return the answer to one point.

        Parameters
        ----------
        x : array of shape (n_features,), dict of cells, or a frame or matrix of one row
            A public point.

        Raises
        ------
        DataError
            If the point does not fit the teachers.
        BudgetError
            If the point was never asked and the reservation is spent.
        """
        return self.ask_many(single_point(x))

    def ask_many(self, X: Any) -> SessionAnswers:
        """Return the answers to the rows of `X`, in their order, while questions are left.

        New ones are drawn and stored in one durable transaction, up to a thousand at a time; with
        a mechanism that stops at some answer, in one each.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n, n_features)
            Public points.

        Raises
        ------
        DataError
            If the points do not fit; nothing was answered then.
        BudgetError
            If none of them was asked before and the reservation is spent.
        """
        answers = self.ask_left(X)
        if not answers.given.any():
            raise BudgetError(
                f"All {self.planned} questions of the session {self.request!r} are spent; stored"
                " answers stay free, and another session, under another request, is a new charge."
            )
        return answers

    def ask_left(self, X: Any) -> SessionAnswers:
        """Return the answers to the rows of `X`, of shape (n, n_features), as `ask_many`, perhaps
        without any given: nothing is raised where the reservation is spent.

        Raises
        ------
        DataError
            If the points do not fit; nothing was answered then.
        """
        points = self._teachers.points(X)
        return self.answer(points, question_digests(points))

    def points(self, X: Any) -> Any:
        """Return points, of shape (n, n_features), as the teachers take them; nothing is asked.

        Raises
        ------
        DataError
            If they do not fit.
        """
        return self._teachers.points(X)

    def stored(self, X: Any) -> SessionAnswers:
        """Return the answers to those rows of `X` that were asked before; nothing is drawn.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n, n_features)
            Public points.

        Raises
        ------
        DataError
            If the points do not fit the teachers.
        """
        return self._read(self._stream.find(question_digests(self._teachers.points(X))))

    def transcript(self) -> ReleasedLabels:
        """Return all answers so far with the certificate of the reservation, in the order in which
        they were asked: row i is the i-th question.

        For those who do not hold the points. The certificate binds labels to the points by the
        digest of all of them.
        """
        return self._certified(None)

    def released(self, X: Any) -> ReleasedLabels:
        """Return all answers so far with the certificate of the reservation, as rows of `X`.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n, n_features)
            Public points, with all that were asked among them.

        Raises
        ------
        DataError
            If a point that was asked is not in `X`.
        """
        return self._certified(distinct_points(self._teachers.points(X)))

    def close(self, X: Any) -> ReleasedLabels:
        """Settle the session and return `released(X)`, for ever.

        Unused questions go back into a Renyi ledger.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n, n_features)
            Public points, with all that were asked among them.

        Raises
        ------
        DataError
            If a point that was asked is not in `X`.
        LedgerError
            If the session is closed already, or the ledger cannot be written.
        """
        # what has another point among it is refused before it is too late
        self._stream.close(len(self.released(X).queries))
        return self.released(X)

    def _certified(self, rows: dict[bytes, int] | None) -> ReleasedLabels:
        """Return all answers so far; without rows, each question stands for itself."""
        # looked at first: what is settled stays as it is, whoever asks meanwhile
        left, done = self.left_over(), self._stream.released()
        used = len(done.questions)
        rounds = [1] * used if used <= 100 else [used]
        return certified_labels(
            done, rows, plan_of(self.planned, rounds, {"name": "session"}, left)
        )


def _session_file(vault: Path, request: str) -> Path:
    """Return the file that names what a session was begun with."""
    digest = question_digests(np.array([[request]], dtype=object))[0]
    return vault / "sessions" / f"{digest.hex()}.json"
