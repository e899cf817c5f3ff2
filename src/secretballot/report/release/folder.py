"""The files of a release: all that may be published of it, in one folder, the certificate last.

The bytes follow from released values and public inputs alone, in one way: no time of day, no path,
no address. Moving a finished folder to its place is the business of `secretballot.publishing`.
"""

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from secretballot._typing import AnyArray
from secretballot.exceptions import CertificateError, DataError
from secretballot.released import ReleasedLabels, ReleasedSums, ReleasedTable
from secretballot.report.certificate.build import with_about, with_files
from secretballot.report.certificate.files import (
    ANSWERS_FILE,
    LABELS_FILE,
    README_FILE,
    answers_bytes,
    labels_blocks,
)
from secretballot.report.certificate.models import CERTIFICATE_FILE
from secretballot.report.extras import MissingExtraError, require_extra
from secretballot.report.metrics import Metrics, TableMetrics
from secretballot.report.release.page import Facts, render_page, template, text_of
from secretballot.report.student.export import student_bytes
from secretballot.report.student.raw_columns import RawRows, can_encode

# of an object, in somebody's error message: it depends on the memory
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
#: What the list of files says of a student that encodes raw columns itself, and of one that does
#: not.
ONNX_OF_RAW_COLUMNS = "the student model, for any language: raw columns in, answers out"
ONNX_OF_MATRIX = "the student model, for any language: the points of the release in"

_PACKAGE = (
    "import pandas as pd",
    "import secretballot as sb",
    "student = sb.load_student('student.onnx')",
    "student.predict(pd.read_csv('../new.csv'))",
)
ONNX_FILE = "student.onnx"
CARD_FILE = "model-card.md"
REPORT_FILE = "report.html"
SCHEMA_FORMAT = "secretballot/schema"  # of `data.Schema`


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
    certificate: dict[str, Any] = field(default_factory=dict)

    def write(self, name: str, words: str, content: bytes) -> None:
        """Write a file, and keep what it is."""
        (self.path / name).write_bytes(content)
        self.files[name] = words

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
    abstentions : str
        What a student of labels makes of unanswered points.
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
    schema: Mapping[str, Any] | None = None
    abstentions: str = "drop"
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


def usage_of(files: Mapping[str, str], schema: Mapping[str, Any] | None) -> dict[str, Any]:
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
    found: dict[str, Any] = dict.fromkeys(("package", "runtime_alone"), ())
    found |= {"command_line": None, "of_matrix": False}
    if ONNX_FILE not in files:
        return found
    if schema is not None:  # the command encodes the table, whatever the file reads
        found["command_line"] = "secretballot predict . ../new.csv --out ../predictions.csv"
    if schema is None or files[ONNX_FILE] != ONNX_OF_RAW_COLUMNS:
        return found | {"package": _PACKAGE[1:3], "of_matrix": True}
    columns = schema["columns"]
    # lines for vectors, lengths of time and decimal commas only where there are any
    code = template("reader.py.j2").render(
        lengths=[name for name, one in columns.items() if one["kind"] == "duration"],
        commas=[name for name, one in columns.items() if one.get("decimal") == ","],
        vectors=any(one["kind"] == "vector" for one in columns.values()),
    )
    return found | {"package": _PACKAGE, "runtime_alone": code.splitlines()}


def write_files(
    folder: Path,
    job: ReleaseJob,
    *,
    student: Any = None,
    curve: Sequence[float | None] = (),
    metrics: Metrics | TableMetrics | None = None,
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
    curve : sequence of float or None
        Of a release in rounds, for each round the share of the public pool on which its student
        agrees with the final one.
    metrics : Metrics or TableMetrics, optional
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
    values = None
    if isinstance(released, ReleasedTable):
        values, words = ANSWERS_FILE, "the released answers, one line for each query"
        written.write(values, words, answers_bytes(certificate))
    elif isinstance(released, ReleasedLabels):
        values = LABELS_FILE
        _write_labels(folder / values, released)
        written.files[values] = "the released labels, one line for each query"
    if job.parquet and values is None:
        written.left_out["labels.parquet"] = "sums were released, and no table of values."
    elif job.parquet and values is not None:
        name, table = values.replace(".csv", ".parquet"), folder / values
        written.attempt(name, f"the table of {values}, as Parquet", lambda: _parquet_bytes(table))
    written.files[CERTIFICATE_FILE] = (
        "guarantee, price and digests; secretballot verify . checks it"
    )
    if schema is not None:
        words = "the public columns and categories that the student reads"
        written.write("schema.json", words, _json_bytes(schema))
    # of any other description of the columns nobody knows how they are encoded
    columns = None if schema is None or schema.get("format") != SCHEMA_FORMAT else schema
    wish = "left out at the wish of whoever made the release."
    if student is not None and "student" in job.without:
        written.left_out[ONNX_FILE] = wish
    elif student is not None:
        raw = can_encode(columns) and getattr(student, "reads_a_table", True)
        written.attempt(
            ONNX_FILE,
            ONNX_OF_RAW_COLUMNS if raw else ONNX_OF_MATRIX,
            lambda: student_bytes(student, schema=columns, rows=job.raw_rows, X_public=X_public),
        )
    later = {README_FILE: "what may be done with these files, and how"}
    if ONNX_FILE in written.files:
        later = {
            CARD_FILE: "what the student is, reads and is good for, and how to use it",
            **later,
        }
    if "report" in job.without:
        written.left_out[REPORT_FILE] = wish
    else:
        page = partial(
            render_page,
            released,
            student=student,
            X_public=X_public,
            files_written=written.files | later,
            curve=curve,
            columns=() if job.raw_rows is None else job.raw_rows.columns,
            metrics=metrics,
        )
        written.attempt(REPORT_FILE, "the report, for people", lambda: page().encode())
    listed = written.files | later
    described = (columns or {}).get("columns")
    given = {
        "f": Facts(released),
        "c": certificate,
        "usage": usage_of(written.files, columns),
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
    written.certificate = with_files(certificate, _digests_of_files(folder))
    (folder / CERTIFICATE_FILE).write_bytes(_json_bytes(written.certificate))
    _date_files(folder, certificate["issued"])
    return written


def _date_files(folder: Path, issued: str) -> None:
    """Give files and folder the time of the certificate; when they were written stays unknown."""
    moment = datetime.fromisoformat(issued).timestamp()
    for path in (*folder.iterdir(), folder):
        os.utime(path, (moment, moment))


def _digests_of_files(folder: Path) -> dict[str, dict[str, object]]:
    """Return digest and size of every file in a folder."""
    found: dict[str, dict[str, object]] = {}
    for path in sorted(folder.iterdir()):
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        found[path.name] = {"sha256": digest, "bytes": path.stat().st_size}
    return found


def _write_labels(path: Path, released: ReleasedLabels) -> None:
    """Write labels.csv; refuse a certificate that speaks of other labels."""
    # digested while it is written: what is compared with the certificate is what is on disk
    digest = hashlib.sha256()
    with path.open("wb") as file:
        for block in labels_blocks(
            released.queries, released.labels, released.classes, released.noisy_counts
        ):
            file.write(block)
            digest.update(block)
    bound = released.certificate.get("released")
    if not isinstance(bound, Mapping) or bound.get("labels_sha256") != digest.hexdigest():
        raise CertificateError(
            "The certificate is not the one of these released labels; take both from one release."
        )


def _parquet_bytes(path: Path) -> bytes:
    """Return a CSV file of released values as Parquet; labels stay the texts that they are."""
    arrow, csv = require_extra("pyarrow", "parquet"), require_extra("pyarrow.csv", "parquet")
    try:
        table = csv.read_csv(
            path,
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
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _json_bytes(value: Mapping[str, Any]) -> bytes:
    # the words of these errors quote the value, so nothing is raised inside
    with suppress(TypeError, ValueError):
        return (json.dumps(value, indent=2, allow_nan=False) + "\n").encode()
    raise DataError("schema holds a value that JSON cannot carry; use strings, numbers and lists.")
