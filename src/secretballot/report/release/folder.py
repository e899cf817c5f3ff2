"""The files of a release: all that may be published of it, in one folder, the certificate last.

The bytes follow from released values and public inputs alone, in one way: no time of day, no path,
no address. Moving a finished folder to its place is the business of `secretballot.publishing`.
"""

import hashlib
import json
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from secretballot.exceptions import CertificateError, DataError
from secretballot.released import ReleasedLabels, ReleasedSums, ReleasedTable
from secretballot.report.certificate.build import with_about, with_files
from secretballot.report.certificate.labels_file import labels_blocks
from secretballot.report.certificate.models import CERTIFICATE_FILE
from secretballot.report.certificate.release_files import (
    ANSWERS_FILE,
    LABELS_FILE,
    README_FILE,
    answers_bytes,
)
from secretballot.report.extras import MissingExtraError
from secretballot.report.metrics import Metrics, TableMetrics
from secretballot.report.release.facts import Facts
from secretballot.report.release.page import render_page
from secretballot.report.release.usage import (
    ONNX_OF_MATRIX,
    ONNX_OF_RAW_COLUMNS,
    Usage,
)
from secretballot.report.release.words import text_of
from secretballot.report.student.export import student_bytes
from secretballot.report.student.raw_columns import RawRows

# of an object, in somebody's error message: it depends on the memory
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
ONNX_FILE = "student.onnx"
CARD_FILE = "model-card.md"
REPORT_FILE = "report.html"
SCHEMA_FORMAT = "secretballot/schema"  # of `data.Schema`


@dataclass
class WrittenFiles:
    """What was written into the folder of a release.

    Attributes
    ----------
    files : dict
        Name of each file, with what it is.
    left_out : dict
        Name of each file that was not made, with the reason.
    certificate : dict
        As it is in the folder, with the digest of every other file.
    """

    files: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    certificate: dict[str, Any] = field(default_factory=dict)

    def write(self, path: Path, words: str, content: bytes) -> None:
        """Write a file, and keep what it is."""
        path.write_bytes(content)
        self.files[path.name] = words

    def attempt(self, path: Path, words: str, make: Callable[[], bytes]) -> None:
        """Write a file that may be left out for a stated reason."""
        # trouble with the disk is no such reason: it must end the whole release
        try:
            content = make()
        except (MissingExtraError, DataError) as error:
            self.left_out[path.name] = _ADDRESS.sub("0x...", str(error))
        else:
            self.write(path, words, content)


def write_files(
    folder: Path,
    released: ReleasedLabels | ReleasedSums,
    *,
    student: Any = None,
    X_public: Any = None,
    schema: Mapping[str, Any] | None = None,
    curve: Sequence[float | None] = (),
    without: Collection[str] = (),
    raw_rows: RawRows | None = None,
    metrics: Metrics | TableMetrics | None = None,
    about: Mapping[str, str] | None = None,
) -> WrittenFiles:
    """Write all that may be published of a release into an empty folder.

    What needs an optional package that is missing, or a conversion that fails, is left out;
    `README.txt` and the result say why.

    Parameters
    ----------
    folder : Path
        Empty.
    released : ReleasedLabels or ReleasedSums
        What was released, with its certificate; it is the only way in for anything that was
        private. Sums, and the model that follows from them, are on the certificate alone.
    student : fitted classifier, or student of tables, optional
        Trained on released values and public points.
    X_public : array, sparse matrix or frame of shape (n, n_features), optional
        Public points: for the picture of the student's confidence, and to check the
        student's file.
    schema : mapping, optional
        Public description of the columns, as JSON values; written as ``schema.json``.
    curve : sequence of float or None
        Of a release in rounds, for each round the share of the public pool on which its student
        agrees with the final one.
    without : collection of {"report", "student"}
        Parts that nobody wants: the page, the file of the student.
    raw_rows : RawRows, optional
        Public rows before and after the encoding of the schema, by which the student's file, which
        reads raw columns where the schema is complete, is checked.
    metrics : Metrics or TableMetrics, optional
        Of the student on public labelled points; shown on the page and in the model card.
    about : mapping, optional
        The curator's words on the release.

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
    released = replace(released, certificate=with_about(released.certificate, about or {}))
    written = WrittenFiles()
    # An order that matters twice: the README names what was written before it, and the certificate,
    # which binds all the others, comes last, so that a folder which was cut short has none and
    # nobody can take it for a release.
    if isinstance(released, ReleasedTable):
        content = answers_bytes(released.certificate)
        words = "the released answers, one line for each query"
        written.write(folder / ANSWERS_FILE, words, content)
    elif isinstance(released, ReleasedLabels):
        _write_labels(folder / LABELS_FILE, released)
        written.files[LABELS_FILE] = "the released labels, one line for each query"
    written.files[CERTIFICATE_FILE] = (
        "guarantee, price and digests; secretballot verify . checks it"
    )
    if schema is not None:
        words = "the public columns and categories that the student reads"
        written.write(folder / "schema.json", words, _json_bytes(schema))
    # of any other description of the columns nobody knows how they are encoded
    columns = None if schema is None or schema.get("format") != SCHEMA_FORMAT else schema
    written.left_out |= {
        name: "left out at the wish of whoever made the release."
        for name, part in ((ONNX_FILE, "student"), (REPORT_FILE, "report"))
        if part in without and (part == "report" or student is not None)
    }
    if student is not None and ONNX_FILE not in written.left_out:
        raw = columns is not None and getattr(student, "reads_a_table", True)
        written.attempt(
            folder / ONNX_FILE,
            ONNX_OF_RAW_COLUMNS if raw else ONNX_OF_MATRIX,
            lambda: student_bytes(student, schema=columns, rows=raw_rows, X_public=X_public),
        )
    later = {CARD_FILE: "what the student is, reads and is good for, and how to use it"}
    later = later if ONNX_FILE in written.files else {}
    later[README_FILE] = "what may be done with these files, and how"
    if REPORT_FILE not in written.left_out:
        page = partial(
            render_page,
            released,
            student=student,
            X_public=X_public,
            files_written=written.files | later,
            curve=curve,
            schema=schema,
            metrics=metrics,
        )
        written.attempt(folder / REPORT_FILE, "the report, for people", lambda: page().encode())
    facts, listed = Facts(released), written.files | later
    described = (columns or {}).get("columns")
    given = {
        "f": facts,
        "c": facts.certificate,
        "usage": Usage.of_files(written.files, columns),
        "columns": described,
        "kinds": {column["kind"] for column in (described or {}).values()},
        "metrics": metrics,
        "files": listed,
        "width": max(map(len, listed)),
        "left_out": written.left_out,
    }
    for name, words in later.items():
        text = text_of("readme.txt.j2" if name == README_FILE else "model-card.md.j2", **given)
        written.write(folder / name, words, text.encode())
    written.certificate = with_files(released.certificate, _digests_of_files(folder))
    (folder / CERTIFICATE_FILE).write_bytes(_json_bytes(written.certificate))
    _date_files(folder, written.certificate["issued"])
    return written


def _date_files(folder: Path, issued: str) -> None:
    """Give files and folder the time of the certificate; when they were written stays unknown."""
    try:
        moment = datetime.fromisoformat(issued).timestamp()
    except (ValueError, OverflowError):
        return  # a certificate of a stranger's making
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


def _json_bytes(value: Mapping[str, Any]) -> bytes:
    # the words of these errors quote the value, so nothing is raised inside
    with suppress(TypeError, ValueError):
        return (json.dumps(value, indent=2, allow_nan=False) + "\n").encode()
    raise DataError("schema holds a value that JSON cannot carry; use strings, numbers and lists.")
