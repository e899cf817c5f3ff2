"""Publish: have a release made where no private data ever was, and move it into its place."""

import os
from collections.abc import Callable, Collection, Mapping
from glob import escape
from pathlib import Path
from typing import Any

from secretballot._validation import check_choice, shown
from secretballot.drafts import draft_folder, make_folder, sweep_drafts, sync, sync_tree
from secretballot.exceptions import DataError, Parameter, ParameterError, ResourceError
from secretballot.publishing.process import publishing_process
from secretballot.publishing.work import is_fitted, job_bytes
from secretballot.released import ReleasedLabels, ReleasedSums
from secretballot.report.extras import PARTS, check_extra
from secretballot.report.release.folder import ReleaseFolder, ReleaseJob
from secretballot.students.table_students import table_student_of


def check_parts(without: Collection[str], *, parquet: bool = False) -> None:
    """Refuse to go on where a wanted part of the release cannot be made: before anything is paid.

    Raises
    ------
    ParameterError
        If `without` names no part.
    MissingExtraError
        Naming the extra to install.
    """
    for part in without:
        check_choice("exclude", part, PARTS)
    if "report" not in without:
        others = ",".join(sorted({*without, "report"}))
        advice = f" Or go on without: --set exclude={others}. Nothing was spent."
        check_extra("matplotlib", "report", advice)
    if parquet:
        check_extra("pyarrow", "parquet", " Nothing was spent.")


def publish(
    folder: str | Path,
    job: ReleaseJob,
    *,
    say: Callable[[str], None] | None = None,
) -> ReleaseFolder:
    """Have a release made by a process that never saw private data, and move it into its place.

    The folder appears complete or not at all. What an earlier run left of a draft is removed.

    Parameters
    ----------
    folder : path
        Folder to make; one that exists is left alone.
    job : ReleaseJob
    say : callable of str, optional
        Called with the name of each step before it begins.

    Raises
    ------
    ParameterError
        If the student cannot be taken to another process.
    DataError
        If the folder exists, the student cannot learn, or the process ended; nothing half-written
        is left.
    ResourceError
        If it cannot be written.
    CertificateError
        If the certificate is not the one of these labels.
    """
    content, target, problem = job_bytes(job), Path(os.path.abspath(folder)), ""
    try:
        if os.path.lexists(target):
            raise DataError(f"{str(target)!r} exists; name another folder.")
        make_folder(target.parent)
        sweep_drafts(target.parent, escape(target.name))
        with (
            draft_folder(target.parent, target.name) as draft,
            publishing_process() as process,
        ):
            new = draft / "new"  # the draft itself is locked where it is
            new.mkdir()
            written: ReleaseFolder = process.perform(content, str(new), say or (lambda _: None))
            move_into_place(new, target)
    except OSError as error:
        problem = error.strerror or str(error)
    if problem:
        raise ResourceError(
            f"The release cannot be written to {str(target)!r}: {problem}; nothing was left there."
        )
    written.path = target
    return written


def move_into_place(new: Path, target: Path) -> None:
    """Put a finished release in its place; at the end all of it is on the disk.

    Raises
    ------
    OSError
        If something has come into its place meanwhile, or the disk fails.
    """
    sync_tree(new)
    new.rename(target)
    sync(target.parent)


def write_release(
    folder: str | Path,
    released: Any,
    *,
    student: Any = None,
    X_public: Any = None,
    schema: Mapping[str, Any] | None = None,
    abstentions: str = "drop",
    random_state: int = 0,
    without: Collection[str] = (),
    about: Mapping[str, str] | None = None,
    parquet: bool = False,
) -> ReleaseFolder:
    """Write all that may be published of a release into one folder.

    The folder appears complete or not at all. What needs an optional package that is missing, or a
    conversion that fails, is left out; `README.txt` and the result say why.

    The files are written by a process of its own, which gets these arguments and nothing else. So
    is a student fitted that is given by name or unfitted: then no byte of the release can depend on
    anything else that is in the memory of this process. A student that is fitted already was made
    here; of it, its parameters are written, whatever they came from.

    Parameters
    ----------
    folder : path
        Folder to make; one that exists is never overwritten.
    released : fitted learner, ReleasedLabels, ReleasedTable or ReleasedSums
        What was released, with its certificate; it is the only way in for anything that was
        private. Of a learner that is its `released_`, and its own student is published unless
        `student` is another.
    student : str or classifier, optional
        A name, as for `--student`; an unfitted classifier; or one fitted to released labels and
        public points. Of a table of numbers a regressor; of a table of labels a classifier that
        is fitted for each, or a list with a fitted one for each. Of sums alone "auto", the model
        on the certificate, or a fitted one.
    X_public : array, sparse matrix or frame of shape (n, n_features), optional
        Public points: to fit the student, for the picture of its confidence, and to check the ONNX
        student.
    schema : mapping, optional
        Public description of the columns, as JSON values; written as ``schema.json``.
    abstentions : {"drop", "random", "majority"}
        What a student that is fitted here makes of unanswered points.
    random_state : int
        Of a student that is fitted here.
    without : collection of {"report", "student"}
        Parts to leave out.
    about : mapping, optional
        Public words for the report: ``title``, what people call the data; ``controller``, who
        answers for them; ``contact``, how to reach somebody. Each on one line. (The purpose goes
        to the learner, and is in the ledger.)
    parquet : bool
        Whether the table of released labels, or answers, is written as Parquet, too.

    Returns
    -------
    ReleaseFolder

    Raises
    ------
    ParameterError
        If something else than what was released is given, or the student is none, or one of a class
        that another process cannot import.
    CertificateError
        If the certificate is not the one of these labels, or `about` holds something else.
    DataError
        If the folder exists, or the student cannot learn from these labels; nothing half-written is
        left.
    ResourceError
        If it cannot be written.
    """
    if hasattr(released, "released_"):
        learner, released = released, released.released_
        if student is None:
            # a name is fitted anew where no private data ever was, by the same seed
            name, random_state = getattr(learner, "student", None), learner.random_state or 0
            student = name if isinstance(name, str) else learner.student_
    if not isinstance(released, ReleasedLabels | ReleasedSums):
        raise ParameterError(
            Parameter("released"),
            f" is a {type(released).__name__}; a release is made from a fitted learner,"
            " ReleasedLabels, a ReleasedTable or ReleasedSums.",
        )
    for part in without:
        check_choice("exclude", part, PARTS)
    job = ReleaseJob(
        released,
        None if student is None else _checked_student(student, X_public, released),
        X_public,
        schema,
        abstentions=abstentions,
        seed=random_state,
        without=tuple(without),
        about=dict(about or {}),
        parquet=parquet,
    )
    return publish(folder, job)


def _checked_student(student: Any, X_public: Any, released: ReleasedLabels | ReleasedSums) -> Any:
    """Return a student that was given by name, unfitted or fitted, as a job has it."""
    if isinstance(released, ReleasedSums) and isinstance(student, list | tuple):
        return table_student_of(student, released)
    named = isinstance(student, str)
    if not named and (isinstance(student, type) or not hasattr(student, "predict")):
        raise ParameterError(
            Parameter("student"),
            f" is {shown(student)}; give a name, or a classifier, fitted or not.",
        )
    if X_public is None and (named or not is_fitted(student)):
        raise ParameterError(
            "The student is not fitted, and X_public is missing; give the public points it"
            " learns on."
        )
    return student
