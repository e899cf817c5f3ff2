"""Publish: have a release made where no private data ever was, and move it into its place."""

import hashlib
import math
import numbers
import os
import pickle
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from glob import escape
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from secretballot._points import take_rows
from secretballot._validation import check_choice, shown
from secretballot.bases import Basis, GraphBasis, ImageBasis, KernelBasis, TableBasis
from secretballot.bases.integer_model import (
    IntegerLabels,
    IntegerLine,
    IntegerModel,
    model_of_stages,
)
from secretballot.drafts import draft_folder, make_folder, sweep_drafts, sync, sync_tree
from secretballot.exceptions import DataError, Parameter, ParameterError, ResourceError
from secretballot.hypotheses import hypotheses_by_name
from secretballot.publishing.process import not_portable, publishing_process
from secretballot.released import ReleasedLabels, ReleasedSums, ReleasedTable
from secretballot.report.certificate.models import SUMS
from secretballot.report.extras import PARTS, check_extra
from secretballot.report.metrics import (
    Metrics,
    TableMetrics,
    metrics_of_student,
    metrics_of_table_student,
)
from secretballot.report.release.folder import ReleaseFolder, ReleaseJob, write_files
from secretballot.report.student.load import OnnxStudent
from secretballot.students import (
    HypothesisStudent,
    MomentsStudent,
    default_student,
    fit_student,
    fit_table_student,
)
from secretballot.students.names import student_by_name
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


# --- what the process does: from a job, released values and public inputs alone, to files ---

POINTS = 10  # of the learning curve; each is one fit of the student


@dataclass(frozen=True)
class ChosenHypothesis:
    """The hypothesis that was selected privately: its class by name, its number on the certificate.

    Attributes
    ----------
    hypotheses : {"stumps", "thresholds", "intervals"}
    """

    hypotheses: str


def job_bytes(job: ReleaseJob) -> bytes:
    """Return a job as bytes, for another process.

    Raises
    ------
    ParameterError
        If the student cannot be taken to another process.
    """
    try:
        return pickle.dumps(job.canonical(), protocol=5)
    except MemoryError:  # the machine's failure, which the same command outlives
        raise
    except Exception as error:  # a student may be anybody's, and refuse in any way
        refused = not_portable(error)
    raise refused


def is_fitted(student: Any) -> bool:
    """Return whether a student has learned already."""
    if isinstance(student, OnnxStudent):
        return True
    try:
        check_is_fitted(student)
    except (NotFittedError, TypeError):
        return False
    return True


def make_release(job: ReleaseJob, folder: Path, say: Callable[[str], None]) -> ReleaseFolder:
    """Make a release in an empty folder, and return what was written.

    Parameters
    ----------
    job : ReleaseJob
        In its canonical form.
    folder : Path
    say : callable of str
        Called with the name of each step before it begins.

    Raises
    ------
    DataError
        If the student cannot learn from what was released, or something does not fit.
    CertificateError
        If the certificate is not the one of these labels.
    OSError
        If the disk fails.
    """
    student = None if job.student is None else _student_of(job, say)
    say("Writing the release")
    curve = learning_curve(job, student) if "report" not in job.without else []
    metrics = _metrics_of_job(job, student)
    return write_files(folder, job, student=student, curve=curve, metrics=metrics)


def _metrics_of_job(job: ReleaseJob, student: Any) -> Metrics | TableMetrics | None:
    """Return how good the student is on public labelled points, where that is to be published."""
    if job.test is None or student is None:
        return None
    if not isinstance(job.released, ReleasedLabels):
        return metrics_of_table_student(student, *job.test)
    return metrics_of_student(student, *job.test, job.released.classes)


def _student_of(job: ReleaseJob, say: Callable[[str], None]) -> Any:
    """Return the student, fitted here or before."""
    released, given = job.released, job.student
    if isinstance(given, ChosenHypothesis):
        return _hypothesis_of_certificate(job, given.hypotheses)
    if given == "auto" and released.certificate.get("public", {}).get("method") in SUMS:
        say("Fitting the basis")
        return model_of_certificate(released, job.X_public)
    if not isinstance(given, str) and is_fitted(given):
        return table_student_of(given, released) if isinstance(released, ReleasedSums) else given
    say("Fitting the student")
    if isinstance(released, ReleasedTable):
        return fit_table_student(_template_of(job), job.X_public, released, random_state=job.seed)
    return _fitted_to(job, job.labels)


def _template_of(job: ReleaseJob) -> Any:
    """Return the unfitted student; None for the one that measured best."""
    if not isinstance(job.student, str):
        return job.student
    return student_by_name(job.student, of_numbers=learns_a_number(job.released))


def _fitted_to(job: ReleaseJob, released: ReleasedLabels) -> Any:
    """Return the student, fitted to labels."""
    template = _template_of(job)
    return fit_student(
        default_student(job.labels) if template is None else template,
        job.X_public,
        released,
        abstentions=job.abstentions,
        random_state=job.seed,
    )


def learns_a_number(released: ReleasedLabels | ReleasedSums) -> bool:
    """Return whether what was released is of a number."""
    return "bounds" in released.certificate.get("public", {})


def _hypothesis_of_certificate(job: ReleaseJob, name: str) -> HypothesisStudent:
    """Return the hypothesis that the certificate numbers, among those on the public points."""
    points = np.asarray(take_rows(job.X_public, job.labels.queries))
    hypotheses = hypotheses_by_name(name, points.shape[1])
    hypothesis = hypotheses.dichotomies(points).hypothesis(
        job.labels.certificate["released"]["values"][0][0]
    )
    return HypothesisStudent.of(hypothesis, hypotheses, list(job.labels.classes), points.shape[1])


def learning_curve(job: ReleaseJob, student: Any) -> list[float | None]:
    """Return, for each round of a release in rounds, the share of the public pool on which the
    student of this round agrees with the final one; nothing where no student was fitted to them.

    At most `POINTS` rounds get a student of their own; the others, and rounds from which nothing
    can be learnt yet, get None.

    Raises
    ------
    MemoryError
        If there is not enough memory to fit a student.
    """
    given, rounds = job.student, job.released.certificate.get("plan", {}).get("rounds", [])
    by_fit = isinstance(given, str) or (student is not None and not is_fitted(given))
    if not rounds or not by_fit:
        return []
    released = job.labels
    edges = np.cumsum(rounds)
    final = np.asarray(student.predict(job.X_public))
    curve: list[float | None] = [None] * len(edges)
    for number in np.unique(np.linspace(0, len(edges) - 1, POINTS).round().astype(int)):
        first = slice(int(edges[number]))
        counts = None if released.noisy_counts is None else released.noisy_counts[first]
        part = replace(
            released,
            queries=released.queries[first],
            labels=released.labels[first],
            noisy_counts=counts,
            certificate={},
        )
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                answers = np.asarray(_fitted_to(job, part).predict(job.X_public))
            curve[number] = float(np.mean(answers == final))
        except MemoryError:  # what memory there is, is no property of the student
            raise
        # any learner may raise anything where there are few answers, or all of one class
        except Exception:
            continue
    return curve


def model_of_certificate(released: ReleasedLabels | ReleasedSums, X_public: Any) -> MomentsStudent:
    """Return the model whose weights the certificate states, in the basis of the public points.

    Raises
    ------
    DataError
        If the certificate is about something else, or the public points do not give its basis.
    """
    certificate = released.certificate
    if certificate["public"]["method"] not in SUMS:
        raise DataError(
            "The release holds no sums over records, so no model follows from its certificate; name"
            " another student."
        )
    public = certificate["public"]
    basis = _basis_by_settings(public["basis"]).fit(X_public)
    pool = basis.rows(X_public)
    weights = np.array(public["weights"], dtype=np.int64)
    classes = released.classes if isinstance(released, ReleasedLabels) else None
    labels, bounds = public.get("labels"), public.get("bounds")
    n_columns = len(labels or classes or [bounds])
    if classes is not None and n_columns == 2:
        n_columns = 1  # which says both
    shape = (len(weights), pool.shape[1] - len(basis.levels_), n_columns)
    # in any other basis the weights would be those of another model
    digest = hashlib.sha256(pool.astype("<i8").tobytes()).hexdigest()
    if digest != public["basis_sha256"] or weights.size != math.prod(shape):
        raise DataError(
            "The public points do not give the basis of the certificate: their coordinates have"
            " another digest. Give the very points of the release, with the versions of numpy and"
            " scipy that the certificate names, on a processor of the same kind; nothing that was"
            " paid for is lost."
        )
    kind = IntegerLabels if labels else IntegerLine if bounds else IntegerModel
    stages = [*weights.reshape(shape)]
    model = model_of_stages(kind, stages, public["covered_only"], pool, basis.levels_)
    return MomentsStudent(
        basis,
        model.weights,
        classes,
        labels=labels,
        bounds=None if bounds is None else (bounds[0], bounds[1]),
        before=model.before,
    )


_BASES: dict[object, type[TableBasis] | type[KernelBasis] | type[GraphBasis]] = {
    "table": TableBasis,
    "kernel": KernelBasis,
    "graph": GraphBasis,
    "images": ImageBasis,
}


def _basis_by_settings(described: Any) -> Basis:
    """Return the unfitted basis that a certificate describes; the file may be a stranger's."""
    settings = dict(described) if isinstance(described, dict) else {}
    name = settings.pop("name", None)
    kind = _BASES.get(name) if isinstance(name, str) else None
    plain = all(isinstance(value, numbers.Real) for value in settings.values())
    # the certificate may be anybody's: numbers alone, and exactly the names that a basis has
    if kind is None or {*settings} != {*kind().get_params()} or not plain:
        raise DataError(
            "The certificate describes a basis that this program does not know; use the version"
            " that it names."
        )
    return kind(**settings)
