"""Trial fits of teachers, and teachers that are kept: trained once, asked as long as a reservation
lasts, found again in the vault.

A shard that cannot train votes by a fixed rule and says nothing, because an error would tell about
the data. A teacher that can never train would thus pay for worthless labels in silence. A trial fit
that knows no private value may speak. What is tried follows from public inputs alone, and it runs
on global states of its own: nothing that comes after it can tell whether the private table has
missing values.
"""

import hashlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from scipy import sparse
from sklearn.base import clone

from secretballot._seeded import own_global_states, with_own_seeds
from secretballot._validation import RELATIONS, check_choice, check_count, shown_error
from secretballot.core.noise import entropy_bytes
from secretballot.core.private import Votes
from secretballot.core.types import Sample, VoteShape
from secretballot.exceptions import DataError, ParameterError
from secretballot.learners.inputs import (
    Target,
    as_matrix,
    check_same_columns,
    example_rows,
    refuse_unfit,
    with_public_types,
)
from secretballot.learners.table import Table, forget_records, private_table
from secretballot.named_learners import check_learner, teacher_by_name
from secretballot.students import NumberedClassesClassifier
from secretballot.teachers.ensemble import TeacherEnsemble, learner_identity
from secretballot.teachers.executors import LOCAL, check_engine
from secretballot.teachers.rows import n_rows, take_rows
from secretballot.teachers.votes import guarantee_of
from secretballot.vault import keep_secret, make_vault, read_secret

#: Public rows on which a teacher is tried.
ROWS = 60


def check_teacher(teacher: Any, X: Any, X_public: Any, n_classes: int) -> tuple[Any, bool]:
    """Return the learner to clone for every shard, after it was tried with dummy labels, and
    whether it takes missing values.

    It is tried with missing values too, whatever the private table holds.

    Parameters
    ----------
    teacher : classifier, regressor or str
    X : array, sparse matrix or frame of shape (n_records, n_features)
    X_public : like X, of shape (n_public, n_features)
    n_classes : int
        0 for a teacher of numbers.

    Raises
    ------
    ParameterError
        If it cannot be trained on them.
    DataError
        If values are missing and it does not take such.
    """
    learner = tried_teacher(named_teacher(teacher, n_classes), X_public, n_classes)
    # before it is known whether any are missing
    taken = takes_missing(learner, X_public, n_classes)
    refuse_unfit("X", X, missing_taken=taken)
    refuse_unfit("X_public", X_public, missing_taken=taken)
    return learner, taken


def named_teacher(teacher: Any, n_classes: int) -> Any:
    """Return the unfitted learner that a name stands for; others as they are. Of 0 classes it is
    one of numbers."""
    return teacher_by_name(teacher, n_classes) if isinstance(teacher, str) else teacher


def tried_teacher(teacher: Any, X_public: Any, n_classes: int) -> Any:
    """Fit a clone of the teacher on the first public points under labels 0, 1, ... in turn, and
    return a teacher that takes shards without some of the classes too.

    That is the teacher itself, or, where it refuses labels without the first class, as XGBoost
    does, a `NumberedClassesClassifier` around it: every such shard would be lost without a word.

    Parameters
    ----------
    teacher : classifier
    X_public : array, sparse matrix or frame of shape (n_public, n_features)
    n_classes : int
        0 for a teacher of numbers, which are dummies then.

    Returns
    -------
    classifier or regressor
        Unfitted.

    Raises
    ------
    ParameterError
        If it cannot be fitted or does not predict one of the labels for every point.
    """
    check_learner("teacher", teacher)
    points = _trial_points(X_public, n_classes)
    problem = problem_of_fit(teacher, points, n_classes)
    if problem is not None:
        raise ParameterError(
            "The teacher cannot be trained on the public points with dummy"
            f" {'labels' if n_classes else 'numbers'} ({problem}); it would fail on every shard."
            " Fix the teacher or its preprocessing. Nothing was spent."
        )
    if n_classes <= 2 or problem_of_fit(teacher, points, n_classes, first=1) is None:
        return teacher
    numbered = NumberedClassesClassifier(teacher)
    helps = problem_of_fit(numbered, points, n_classes, first=1) is None
    return numbered if helps else teacher


def takes_missing(teacher: Any, X_public: Any, n_classes: int) -> bool:
    """Return whether the teacher takes missing values in every column, by a trial fit; none in
    sparse points."""
    points = _trial_points(X_public, n_classes)
    if sparse.issparse(points):
        return False
    # every seventh value, in every column
    missing = np.add.outer(np.arange(points.shape[0]), np.arange(points.shape[1])) % 7 == 0
    if hasattr(points, "iloc"):
        holed = points.mask(missing)
    else:
        kind = np.float64 if points.dtype.kind in "biuf" else object
        holed = np.where(missing, np.nan, points.astype(kind))
    return problem_of_fit(teacher, holed, n_classes) is None


def _trial_points(X_public: Any, n_classes: int) -> Any:
    """Return the first public points, repeated where they are too few for every class."""
    return take_rows(
        X_public, np.resize(np.arange(min(ROWS, n_rows(X_public))), max(ROWS, 4 * n_classes))
    )


def problem_of_fit(teacher: Any, points: Any, n_classes: int, first: int = 0) -> str | None:
    """Return what went wrong with the labels from the first class on, None if nothing did."""
    order = np.arange(n_rows(points))
    labels = first + order % (n_classes - first) if n_classes else order % 7 / 7.0
    try:
        with own_global_states(0):
            warnings.simplefilter("ignore")
            learner = with_own_seeds(clone(teacher), 0)
            predicted = np.asarray(learner.fit(points, labels).predict(points))
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


_TRAINED = "the teachers' data"  # in messages to those who ask later, and have no X_public
FILE = "teachers.pickle"


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
    classes: tuple[Any, ...]
    declaration: Mapping[str, object]
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
        points = as_matrix("X", X)
        check_same_columns(points, self.template, known=_TRAINED)
        points = with_public_types(points, self.template, known=_TRAINED)
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
        guarantee = guarantee_of(self.declaration["unit"], self.declaration["relation"])
        votes = self.ensemble.vote_counts(points, guarantee=guarantee, sample=sample)
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
    progress: Callable[[int, int], None] | None = None,
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
    check_engine(executor, n_jobs)
    X = as_matrix("X", X)
    # Types come from public rows before anything else looks at private ones.
    example = example_rows(X, X_public, ROWS)
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
    declaration: Mapping[str, object] | None = None,
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
    **training
        As for `TeacherEnsemble.fit`.
    """
    # the trial fit comes before the vault is made: a teacher that cannot work leaves nothing behind
    names = target.learnt
    learner, taken = check_teacher(teacher, table.like, example, len(names))
    place = None if vault is None else make_vault(vault)
    serial, about = entropy_bytes(16).hex(), {"unit": table.unit, "unit_column": table.unit_name}
    public: dict[str, Any] = {
        "classes": target.classes,
        "declaration": {**about, "relation": relation, **(declaration or {})},
        "template": example.iloc[:0] if hasattr(example, "iloc") else example[:0].copy(),
        "missing_taken": taken,
    }

    def fit() -> TeacherEnsemble:
        sizes = n_teachers, relation, place, random_state
        return table.teachers(learner, *sizes, n_classes=len(names), **training)

    if place is None:
        return TrainedTeachers(fit(), **public, serial=serial)
    # what cannot be distinguished is never found again here, by `TrainedTeachers.load` alone
    known = learner_identity(learner) or entropy_bytes(16).hex()
    identity = known, *table.identity, n_teachers, names, relation, random_state
    digest, mine, kept = str(joblib.hash(identity, hash_name="sha1")), None, _kept_in(place)
    if kept is None:
        mine = fit()
        keep_secret(place / FILE, mine.packed((serial, digest, public)))
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
    content = read_secret(vault / FILE, own=True)
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
