"""Releases side by side: what they promise and cost, and how good their students are."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from secretballot._typing import IntArray
from secretballot._validation import shown
from secretballot.data.frames import class_indices
from secretballot.data.reading import read_table
from secretballot.exceptions import CertificateError, DataError, ParameterError
from secretballot.report.certificate.fields import read_certificate
from secretballot.report.certificate.methods import has_moments, has_table, is_by_record, is_chosen
from secretballot.report.certificate.models import CERTIFICATE_FILE
from secretballot.report.certificate.plan_checks import total_price
from secretballot.report.certificate.verify import verify_certificate
from secretballot.report.metrics import (
    Metrics,
    PairedDifference,
    answers_of_student,
    metrics_of_student,
    paired_balanced_difference,
    paired_difference,
)
from secretballot.runs.student_file import StudentFile, read_student_file, release_of
from secretballot.runs.table_match import TableCells, misfits

ROLE = "labelled file"


@dataclass(frozen=True)
class CompareRun:
    """Which releases to compare, and on what.

    Attributes
    ----------
    releases : tuple of Path
        Release folders or folders of runs, two or more.
    evaluate : Path or None
        Public labelled records, with the raw columns that every student reads.
    target : str or None
        Column of `evaluate` with the class.
    """

    releases: tuple[Path, ...]
    evaluate: Path | None = None
    target: str | None = None


@dataclass(frozen=True)
class ComparedRelease:
    """What one release promises, and how good its student is.

    Attributes
    ----------
    path : Path
        As it was given.
    certificate : dict
        It verifies.
    student_bytes : int or None
        Size of the student's file.
    metrics : Metrics or None
    """

    path: Path
    certificate: dict[str, Any]
    student_bytes: int | None
    metrics: Metrics | None = None

    @property
    def method(self) -> str:
        """How private records became the model."""
        if has_moments(self.certificate):
            return "moments"
        if is_by_record(self.certificate):
            return "record-votes"
        return "choice" if is_chosen(self.certificate) else "votes"

    def to_json(self) -> dict[str, Any]:
        """Return all of it as JSON values."""
        document, (epsilon, delta) = self.certificate, total_price(self.certificate)
        account = document["composition"]
        return {
            "release": str(self.path),
            "epsilon": epsilon,
            "delta": delta,
            "unit": document["unit"],
            "relation": document["relation"],
            "method": self.method,
            "teachers": document["released"]["n_teachers"],
            "queries": document["released"]["queries"],
            "answered": document["released"]["answered"],
            "classes": document["released"]["classes"],
            "ledger": {
                name: account.get(name) for name in ("dataset", "kind", "budget", "spent_after")
            },
            "student_bytes": self.student_bytes,
            "metrics": None if self.metrics is None else self.metrics.to_json(),
        }


@dataclass(frozen=True)
class Difference:
    """How much better a student is than the one of the first release, on the same rows.

    Attributes
    ----------
    release : Path
    accuracy, balanced_accuracy : PairedDifference
    """

    release: Path
    accuracy: PairedDifference
    balanced_accuracy: PairedDifference

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        parts = {"accuracy": self.accuracy, "balanced_accuracy": self.balanced_accuracy}
        return {
            "release": str(self.release),
            **{
                name: {"difference": part.difference, "interval": vars(part.interval)}
                for name, part in parts.items()
            },
        }


@dataclass(frozen=True)
class Comparison:
    """What was compared.

    Attributes
    ----------
    releases : tuple of ComparedRelease
    differences : tuple of Difference
        Of each release but the first, less the first; empty without labelled records.
    caution : str or None
        Why prices are no measure of each other, where they are not, or that a student does not know
        what most of a column of the labelled records says.
    """

    releases: tuple[ComparedRelease, ...]
    differences: tuple[Difference, ...]
    caution: str | None

    def to_json(self) -> dict[str, Any]:
        """Return all of it as JSON values."""
        return {
            "releases": [release.to_json() for release in self.releases],
            "differences": [difference.to_json() for difference in self.differences],
            "caution": self.caution,
        }


def run_compare(run: CompareRun) -> Comparison:
    """Compare releases.

    Parameters
    ----------
    run : CompareRun

    Raises
    ------
    ParameterError
        If there are fewer than two, or labelled records without the name of their class column.
    CertificateError
        If a release does not verify: what it says of itself is then worth nothing.
    DataError
        If a file cannot be read, or the students are of different classes.
    """
    _refuse_unfit_settings(run)
    releases = [_verified_release(path) for path in run.releases]
    differences: tuple[Difference, ...] = ()
    cautions = [_promises_caution(releases)]
    if run.evaluate is not None and run.target is not None:
        _check_classes(releases)
        classes = releases[0].certificate["released"]["classes"]
        frame = read_table(run.evaluate, role=ROLE)
        truth = class_indices(frame, run.target, classes, role=ROLE)
        students = [read_student_file(path) for path in run.releases]
        measured = [_metrics_and_answers(student, frame, truth, classes) for student in students]
        cautions += dict.fromkeys(_caution_of_columns(student, frame) for student in students)
        releases = [
            ComparedRelease(one.path, one.certificate, one.student_bytes, metrics)
            for one, (metrics, _) in zip(releases, measured, strict=True)
        ]
        # all are compared with the first, on the same rows
        first = measured[0][1] == truth
        differences = tuple(
            Difference(
                path,
                paired_difference(answers == truth, first),
                paired_balanced_difference(answers == truth, first, truth),
            )
            for path, (_, answers) in zip(run.releases[1:], measured[1:], strict=True)
        )
    caution = " ".join(one for one in cautions if one is not None)
    return Comparison(tuple(releases), differences, caution or None)


def _refuse_unfit_settings(run: CompareRun) -> None:
    if len(run.releases) < 2:
        raise ParameterError("One release has nothing to be compared with; name two or more.")
    if (run.evaluate is None) != (run.target is None):
        raise ParameterError(
            "Labelled records and the column of their classes go together; give both --evaluate"
            " and --target."
        )


def _verified_release(path: Path) -> ComparedRelease:
    folder = release_of(path)
    if not (folder / CERTIFICATE_FILE).is_file():
        raise DataError(
            f"{str(path)!r} holds no {CERTIFICATE_FILE}; give the folder of a release or of a"
            " finished run."
        )
    # verified before anything of it is read: a false certificate says nothing
    failed = [check for check in verify_certificate(folder).checks if not check.ok]
    if failed:
        raise CertificateError(
            f"The release {shown(str(path))} does not verify ({failed[0].name}:"
            f" {failed[0].detail.rstrip('.')}); compare genuine ones."
        )
    certificate = read_certificate(folder / CERTIFICATE_FILE)
    if has_table(certificate):
        raise ParameterError(
            f"The release {shown(str(path))} is of a number or of several labels, and classes are"
            " compared here; leave it out."
        )
    student = folder / "student.onnx"
    size = student.stat().st_size if student.is_file() else None
    return ComparedRelease(path, certificate, size)


def _check_classes(releases: Sequence[ComparedRelease]) -> None:
    """Refuse students of different classes, which cannot be right on the same rows."""
    first, *others = [set(map(str, one.certificate["released"]["classes"])) for one in releases]
    for release, classes in zip(releases[1:], others, strict=True):
        if classes != first:
            raise DataError(
                f"The release {str(release.path)!r} has other classes than"
                f" {str(releases[0].path)!r}; compare students of the same classes, or leave"
                " --evaluate out."
            )


def _metrics_and_answers(
    student: StudentFile, frame: pd.DataFrame, truth: IntArray, classes: Sequence[Any]
) -> tuple[Metrics, IntArray]:
    """Return the metrics and the answers of a student."""
    student.check_columns(frame, role=ROLE)
    X = student.schema.encode(frame, role=ROLE)
    return (
        metrics_of_student(student.model, X, truth, classes),
        answers_of_student(student.model, X, classes),
    )


def _caution_of_columns(student: StudentFile, frame: pd.DataFrame) -> str | None:
    """Return why a student does not know what most cells of a column say, where that is so."""
    found = misfits(student.schema, TableCells.of(frame, student.schema.encoding(frame, role=ROLE)))
    for worst in found[:1]:
        if worst.stops:
            return f"Column {shown(worst.name)} of the {ROLE}: {worst.words}."
    return None


def _promises_caution(releases: Sequence[ComparedRelease]) -> str | None:
    """Return why prices are no measure of each other: other units, or other relations."""
    promises = {(one.certificate["unit"], one.certificate["relation"]) for one in releases}
    if len(promises) == 1:
        return None
    return (
        "The releases promise different things (unit or relation), so the smaller epsilon is not"
        " the stronger promise."
    )
