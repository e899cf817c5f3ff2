"""Teachers that are kept: trained once, asked as long as a reservation lasts, found again in the
vault."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from scipy import sparse

from secretballot._validation import RELATIONS, check_choice, check_count
from secretballot.core.noise import entropy_bytes
from secretballot.core.private import Votes
from secretballot.core.types import Sample, VoteShape
from secretballot.exceptions import DataError, ParameterError
from secretballot.learners.training.inputs import (
    Target,
    as_matrix,
    check_same_columns,
    example_rows,
    n_columns,
    refuse_unfit,
    with_public_types,
)
from secretballot.learners.training.shards import forget_records
from secretballot.learners.training.table import Table, private_table
from secretballot.learners.training.trial_fit import columns_with_missing_taken
from secretballot.teachers.ensemble import TeacherEnsemble, learner_identity
from secretballot.teachers.executors import LOCAL, check_engine
from secretballot.teachers.votes import guarantee_of
from secretballot.vault import keep_secret, make_vault, read_secret

SAMPLE_ROWS = 60
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
    missing_taken : list of int
        Columns in which they take missing values.
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
    missing_taken: Sequence[int] = ()
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
        refuse_unfit("X", points, self.missing_taken)
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
    example = example_rows(X, X_public, SAMPLE_ROWS)
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
    learner, names = table.checked_teacher(teacher, example, target), target.learnt
    place = None if vault is None else make_vault(vault)
    sizes = n_teachers, relation, place, random_state
    # what cannot be distinguished is never found again here, by `TrainedTeachers.load` alone
    known = learner_identity(learner) or entropy_bytes(16).hex()
    return keep_teachers(
        place,
        lambda: table.teachers(learner, *sizes, n_classes=len(names), **training),
        (known, *table.identity, n_teachers, names, relation, random_state),
        target.classes,
        {
            "unit": table.unit,
            "unit_column": table.unit_name,
            "relation": relation,
            **(declaration or {}),
        },
        template_of(example),
        columns_with_missing_taken(learner, example, len(names)),
    )


def keep_teachers(
    vault: Path | None,
    fit: Callable[[], TeacherEnsemble],
    identity: tuple[Any, ...],
    classes: tuple[Any, ...],
    declaration: Mapping[str, object],
    template: Any,
    missing_taken: Sequence[int] = (),
) -> TrainedTeachers:
    """Return the teachers kept in the vault, or trained now and kept; without a vault, trained.

    Once they are kept the record ids go (`forget_records`): a reservation goes on with these
    teachers, not with a new fit.

    Parameters
    ----------
    vault : Path or None
    fit : callable
        Trains the teachers.
    identity : tuple
        All that they depend on, private data included; its digest stays in the vault.
    classes, declaration, template, missing_taken
        As for `TrainedTeachers`.

    Raises
    ------
    DataError
        If the vault belongs to other data or settings, or was kept by other library versions.
    """
    serial = entropy_bytes(16).hex()
    public = {
        "classes": classes,
        "declaration": dict(declaration),
        "template": template,
        "missing_taken": missing_taken,
    }
    if vault is None:
        return TrainedTeachers(fit(), **public, serial=serial)
    digest, mine = str(joblib.hash(identity, hash_name="sha1")), None
    kept = _kept_in(vault)
    if kept is None:
        mine = fit()
        keep_secret(vault / FILE, mine.packed((serial, digest, public)))
        kept = _kept_in(vault)  # perhaps those of another process
    assert kept is not None
    teachers, of_identity = kept
    if of_identity != digest:
        raise DataError(
            f"The vault {vault} belongs to other data, or to other settings of the teachers; give"
            " another vault, or the data and settings it was begun with. Nothing was spent."
        )
    forget_records(vault)
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


def template_of(X_public: Any) -> Any:
    """Return the columns and types of public points as a table of shape (0, n_features)."""
    if hasattr(X_public, "iloc"):
        return X_public.iloc[:0]
    if sparse.issparse(X_public):
        table: Any = X_public
        return table[:0]
    return np.empty((0, n_columns(X_public)), dtype=X_public.dtype)
