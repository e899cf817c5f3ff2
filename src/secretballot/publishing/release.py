"""The files of a release: all that may be published of it, in one folder, the certificate last.

The bytes follow from released values and public inputs alone, in one way: no time of day, no path,
no address. Moving a finished folder to its place is the business of `secretballot.publishing`.
"""

import hashlib
import json
import math
import numbers
import os
import pickle
import re
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from glob import escape
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from secretballot._points import take_rows
from secretballot._typing import AnyArray, Json, JsonView
from secretballot._validation import (
    PARTS,
    MissingExtraError,
    check_choice,
    check_extra,
    require_extra,
    shown,
)
from secretballot.bases import Basis, GraphBasis, ImageBasis, KernelBasis, TableBasis
from secretballot.bases.integer_model import (
    IntegerLabels,
    IntegerLine,
    IntegerModel,
    model_of_stages,
)
from secretballot.drafts import draft_folder, make_folder, sweep_drafts, sync, sync_tree
from secretballot.exceptions import (
    CertificateError,
    DataError,
    Parameter,
    ParameterError,
    ResourceError,
)
from secretballot.hypotheses import hypotheses_by_name
from secretballot.publishing.page import Facts, render_page, template, text_of
from secretballot.publishing.process import not_portable, publishing_process
from secretballot.released import ReleasedLabels, ReleasedSums, ReleasedTable
from secretballot.report.certificate import labels_blocks, with_about, with_files
from secretballot.report.certificate_models import CERTIFICATE_FILE, SUMS
from secretballot.report.metrics import AnyMetrics, metrics_of_student
from secretballot.report.raw_columns import RawRows, can_encode
from secretballot.report.student_export import student_bytes
from secretballot.report.student_load import OnnxStudent
from secretballot.report.verification import ANSWERS_FILE, LABELS_FILE, README_FILE, answers_bytes
from secretballot.students import (
    HypothesisStudent,
    MomentsStudent,
    default_student,
    fit_student,
    fit_table_student,
)
from secretballot.students.fitting import student_by_name
from secretballot.students.table_students import table_student_of

# of an object, in somebody's error message: it depends on the memory
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
#: What the list of files says of a student that encodes raw columns itself, and of one that does
#: not.
_ONNX_OF_RAW_COLUMNS = "the student model, for any language: raw columns in, answers out"
_ONNX_OF_MATRIX = "the student model, for any language: the points of the release in"

_PACKAGE = (
    "import pandas as pd",
    "import secretballot as sb",
    "student = sb.load_student('student.onnx')",
    "student.predict(pd.read_csv('../new.csv'))",
)
_ONNX_FILE = "student.onnx"
_CARD_FILE = "model-card.md"
_REPORT_FILE = "report.html"
_SCHEMA_FORMAT = "secretballot/schema"  # of `data.Schema`


@dataclass
class ReleaseFolder:
    """A release on disk.

    Attributes
    ----------
    path : Path
        The folder.
    files : dict
        Name of each file, with what it is.
    left_out : dict
        Name of each file that was not made, with the reason.
    certificate : dict
        As it is in the folder, with the digest of every other file.
    """

    path: Path
    files: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    certificate: Json = field(default_factory=dict)
    _digests: dict[str, Json] = field(default_factory=dict, repr=False)

    def write(self, name: str, words: str, content: bytes) -> None:
        """Write a file, and keep what it is."""
        (self.path / name).write_bytes(content)
        self.files[name] = words
        self._digests[name] = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}

    def seal(self, certificate: JsonView) -> None:
        """Write the certificate, bound to every file that was written before."""
        self.certificate = with_files(certificate, self._digests)
        (self.path / CERTIFICATE_FILE).write_bytes(_json_bytes(self.certificate))

    def attempt(self, name: str, words: str, make: Callable[[], bytes]) -> None:
        """Write a file that may be left out for a stated reason."""
        # trouble with the disk is no such reason: it must end the whole release
        try:
            content = make()
        except (MissingExtraError, DataError) as error:
            self.left_out[name] = _ADDRESS.sub("0x...", str(error))
        else:
            self.write(name, words, content)


@dataclass(frozen=True, eq=False)
class ReleaseJob:
    """Everything that the files of a release follow from.

    Attributes
    ----------
    released : ReleasedLabels or ReleasedSums
        What was released, with its certificate; also a ReleasedTable.
    student : str, ChosenHypothesis, estimator or None
        By name, unfitted, or fitted, when it is written as it is. "auto" is the one that measured
        best: of sums over records the model itself, whose weights are on the certificate.
    X_public : array, sparse matrix or frame of shape (n, n_features), or None
        Public points.
    schema : mapping or None
        Public description of the columns, as JSON values.
    seed : int
        Of the student; public.
    without : tuple of {"report", "student"}
        Parts that are not wanted.
    raw_rows : RawRows or None
        Public rows before and after the encoding of the schema, to check a file that encodes them
        itself.
    test : tuple of array and ndarray, or None
        Public labelled points and the class of each, as an index; without classes the number of
        each, or its labels as 0 and 1: the student's metrics on them are published.
    about : mapping
        The curator's words on the release, as the field of the certificate has them.
    parquet : bool
        Whether the released values are written as Parquet, too.
    """

    released: ReleasedLabels | ReleasedSums
    student: Any = None
    X_public: Any = None
    schema: JsonView | None = None
    seed: int = 0
    without: tuple[str, ...] = ()
    raw_rows: RawRows | None = None
    test: tuple[Any, AnyArray] | None = None
    about: Mapping[str, str] = field(default_factory=dict)
    parquet: bool = False

    @property
    def labels(self) -> ReleasedLabels:
        """The released labels.

        Raises
        ------
        DataError
            If a table, or sums alone, were released in their place.
        """
        if not isinstance(self.released, ReleasedLabels):
            raise DataError(
                "No labels of one class each were released, and this needs them; of record moments"
                " publish the model itself, as the student auto."
            )
        return self.released

    def canonical(self) -> "ReleaseJob":
        """Return the same job in the one form that its values have: plain lists, rows in order.

        The order in which an array lies in memory can change the last digit of a sum.
        """
        released = type(self.released).from_json(json.loads(json.dumps(self.released.to_json())))
        return replace(self, released=released, X_public=_canonical_points(self.X_public))


def _canonical_points(X: Any) -> Any:
    """Return public points with rows one after the other, sparse ones sorted, without doubles."""
    if hasattr(X, "tocsr"):
        matrix = X.tocsr().copy()
        matrix.sum_duplicates()
        matrix.sort_indices()
        return matrix
    return np.ascontiguousarray(X) if isinstance(X, np.ndarray) else X


def _usage_of(files: Mapping[str, str], schema: JsonView | None) -> Json:
    """Return what can be done with files, for the texts beside them: a command line, lines of
    Python with this package, lines with onnxruntime alone, and whether the student reads the points
    of the release, and no table.

    Parameters
    ----------
    files : mapping
        Name of each file, with what it is.
    schema : mapping or None
        Complete.
    """
    found: Json = dict.fromkeys(("package", "runtime_alone"), ())
    found |= {"command_line": None, "of_matrix": False}
    if _ONNX_FILE not in files:
        return found
    if schema is not None:  # the command encodes the table, whatever the file reads
        found["command_line"] = "secretballot predict . ../new.csv --out ../predictions.csv"
    if schema is None or files[_ONNX_FILE] != _ONNX_OF_RAW_COLUMNS:
        return found | {"package": _PACKAGE[1:3], "of_matrix": True}
    columns = schema["columns"]
    # lines for vectors and decimal commas only where there are any
    code = template("reader.py.j2").render(
        commas=[name for name, one in columns.items() if one.get("decimal") == ","],
        vectors=any(one["kind"] == "vector" for one in columns.values()),
    )
    return found | {"package": _PACKAGE, "runtime_alone": code.splitlines()}


def _write_files(
    folder: Path, job: ReleaseJob, *, student: Any = None, metrics: AnyMetrics | None = None
) -> ReleaseFolder:
    """Write all that may be published of a release into an empty folder.

    What needs an optional package that is missing, or a conversion that fails, is left out;
    `README.txt` and the result say why.

    Parameters
    ----------
    folder : Path
        Empty.
    job : ReleaseJob
        What was released, with its certificate, is the only way in for anything that was private.
        Sums, and the model that follows from them, are on the certificate alone.
    student : fitted classifier, or student of tables, optional
        Trained on released values and public points.
    metrics : AnyMetrics, optional
        Of the student on public labelled points; shown on the page and in the model card.

    Raises
    ------
    CertificateError
        If the certificate is not the one of these labels.
    DataError
        If the schema is no JSON.
    OSError
        If the disk fails.
    """
    # what is written about the release is part of its certificate, hence of every page
    certificate = with_about(job.released.certificate, job.about)
    released = replace(job.released, certificate=certificate)
    schema, X_public = job.schema, job.X_public
    written = ReleaseFolder(folder)
    # An order that matters twice: the README names what was written before it, and the certificate,
    # which binds all the others, comes last, so that a folder which was cut short has none and
    # nobody can take it for a release.
    values, table = LABELS_FILE, b""
    if isinstance(released, ReleasedTable):
        values, table = ANSWERS_FILE, answers_bytes(certificate)
    elif isinstance(released, ReleasedLabels):
        table = _labels_bytes(released)
    if table:
        words = f"the released {values.removesuffix('.csv')}, one line for each query"
        written.write(values, words, table)
    if job.parquet:
        name = values.replace(".csv", ".parquet")
        written.attempt(name, f"the table of {values}, as Parquet", lambda: _parquet_bytes(table))
    written.files[CERTIFICATE_FILE] = (
        "guarantee, price and digests; secretballot verify . checks it"
    )
    if schema is not None:
        words = "the public columns and categories that the student reads"
        written.write("schema.json", words, _json_bytes(schema))
    # of any other description of the columns nobody knows how they are encoded
    columns = None if schema is None or schema.get("format") != _SCHEMA_FORMAT else schema
    wish = "left out at the wish of whoever made the release."
    if student is not None and "student" in job.without:
        written.left_out[_ONNX_FILE] = wish
    elif student is not None:
        raw = can_encode(columns) and getattr(student, "reads_a_table", True)
        written.attempt(
            _ONNX_FILE,
            _ONNX_OF_RAW_COLUMNS if raw else _ONNX_OF_MATRIX,
            lambda: student_bytes(student, schema=columns, rows=job.raw_rows, X_public=X_public),
        )
    later = {README_FILE: "what may be done with these files, and how"}
    if _ONNX_FILE in written.files:
        later = {
            _CARD_FILE: "what the student is, reads and is good for, and how to use it",
            **later,
        }
    if "report" in job.without:
        written.left_out[_REPORT_FILE] = wish
    else:
        public = student, X_public, () if job.raw_rows is None else job.raw_rows.columns
        page = partial(render_page, released, *public, written.files | later, metrics)
        written.attempt(_REPORT_FILE, "the report, for people", lambda: page().encode())
    listed = written.files | later
    described = (columns or {}).get("columns")
    given = {
        "f": Facts(released),
        "c": certificate,
        "usage": _usage_of(written.files, columns),
        "columns": described,
        "kinds": {column["kind"] for column in (described or {}).values()},
        "metrics": metrics,
        "files": listed,
        "width": max(map(len, listed)),
        "left_out": written.left_out,
    }
    for name, words in later.items():
        text = text_of("readme.txt.j2" if name == README_FILE else "model-card.md.j2", **given)
        written.write(name, words, text.encode())
    written.seal(certificate)
    _date_files(folder, certificate["issued"])
    return written


def _date_files(folder: Path, issued: str) -> None:
    """Give files and folder the time of the certificate; when they were written stays unknown."""
    moment = datetime.fromisoformat(issued).timestamp()
    for path in (*folder.iterdir(), folder):
        os.utime(path, (moment, moment))


def _labels_bytes(released: ReleasedLabels) -> bytes:
    """Return labels.csv; refuse a certificate that speaks of other labels."""
    content = b"".join(
        labels_blocks(released.queries, released.labels, released.classes, released.noisy_counts)
    )
    bound = released.certificate.get("released")
    found = hashlib.sha256(content).hexdigest()
    if not isinstance(bound, Mapping) or bound.get("labels_sha256") != found:
        raise CertificateError(
            "The certificate is not the one of these released labels; take both from one release."
        )
    return content


def _parquet_bytes(text: bytes) -> bytes:
    """Return a CSV file of released values as Parquet; labels stay the texts that they are."""
    if not text:
        raise DataError("sums were released, and no table of values.")
    arrow, csv = require_extra("pyarrow", "parquet"), require_extra("pyarrow.csv", "parquet")
    try:
        table = csv.read_csv(
            arrow.BufferReader(text),
            read_options=csv.ReadOptions(use_threads=False),
            parse_options=csv.ParseOptions(newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                column_types={"label": arrow.string()}, null_values=[""], strings_can_be_null=True
            ),
        )
    except arrow.ArrowInvalid:
        raise DataError("a class is no text that Parquet can hold.") from None
    sink = arrow.BufferOutputStream()
    require_extra("pyarrow.parquet", "parquet").write_table(table, sink)
    made: bytes = sink.getvalue().to_pybytes()
    return made


def _json_bytes(value: JsonView) -> bytes:
    # the words of these errors quote the value, so nothing is raised inside
    with suppress(TypeError, ValueError):
        return (json.dumps(value, indent=2, allow_nan=False) + "\n").encode()
    raise DataError("schema holds a value that JSON cannot carry; use strings, numbers and lists.")


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
    folder: str | Path, job: ReleaseJob, *, say: Callable[[str], None] | None = None
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
    content, target = _job_bytes(job), Path(os.path.abspath(folder))
    try:
        if os.path.lexists(target):
            raise DataError(f"{str(target)!r} exists; name another folder.")
        make_folder(target.parent)
        sweep_drafts(target.parent, escape(target.name))
        with draft_folder(target.parent, target.name) as draft, publishing_process() as process:
            new = draft / "new"  # the draft itself is locked where it is
            new.mkdir()
            written: ReleaseFolder = process.perform(content, str(new), say or (lambda _: None))
            _move_into_place(new, target)
    except OSError as error:
        problem = error.strerror or str(error)
        raise ResourceError(
            f"The release cannot be written to {str(target)!r}: {problem}; nothing was left there."
        ) from None
    written.path = target
    return written


def _move_into_place(new: Path, target: Path) -> None:
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
    schema: JsonView | None = None,
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
    if X_public is None and (named or not _is_fitted(student)):
        raise ParameterError(
            "The student is not fitted, and X_public is missing; give the public points it"
            " learns on."
        )
    return student


# --- what the process does: from a job, released values and public inputs alone, to files ---


@dataclass(frozen=True)
class ChosenHypothesis:
    """The hypothesis that was selected privately: its class by name, its number on the certificate.

    Attributes
    ----------
    hypotheses : {"stumps", "thresholds", "intervals"}
    """

    hypotheses: str


def _job_bytes(job: ReleaseJob) -> bytes:
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
        raise not_portable(error) from None


def _is_fitted(student: Any) -> bool:
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
    student, metrics = None if job.student is None else _student_of(job, say), None
    say("Writing the release")
    if job.test is not None and student is not None:
        metrics = metrics_of_student(student, *job.test, getattr(job.released, "classes", ()))
    return _write_files(folder, job, student=student, metrics=metrics)


def _student_of(job: ReleaseJob, say: Callable[[str], None]) -> Any:
    """Return the student, fitted here or before."""
    released, given = job.released, job.student
    if isinstance(given, ChosenHypothesis):
        return _hypothesis_of_certificate(job, given.hypotheses)
    if given == "auto" and released.certificate.get("public", {}).get("method") in SUMS:
        say("Fitting the basis")
        return _model_of_certificate(released, job.X_public)
    if not isinstance(given, str) and _is_fitted(given):
        return table_student_of(given, released) if isinstance(released, ReleasedSums) else given
    say("Fitting the student")
    if isinstance(given, str):  # None of the one that measured best
        of_numbers = "bounds" in released.certificate.get("public", {})
        given = student_by_name(given, of_numbers=of_numbers)
    if isinstance(released, ReleasedTable):
        return fit_table_student(given, job.X_public, released, random_state=job.seed)
    given = default_student(job.labels) if given is None else given
    return fit_student(given, job.X_public, job.labels, random_state=job.seed)


def _hypothesis_of_certificate(job: ReleaseJob, name: str) -> HypothesisStudent:
    """Return the hypothesis that the certificate numbers, among those on the public points."""
    points = np.asarray(take_rows(job.X_public, job.labels.queries))
    hypotheses = hypotheses_by_name(name, points.shape[1])
    hypothesis = hypotheses.dichotomies(points).hypothesis(
        job.labels.certificate["released"]["values"][0][0]
    )
    return HypothesisStudent.of(hypothesis, hypotheses, list(job.labels.classes), points.shape[1])


def _model_of_certificate(released: ReleasedLabels | ReleasedSums, X_public: Any) -> MomentsStudent:
    """Return the model whose weights the certificate states, in the basis of the public points.

    Raises
    ------
    DataError
        If the public points do not give its basis.
    """
    public = released.certificate["public"]
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
