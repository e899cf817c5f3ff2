"""Releases side by side: what they promise and cost, and how good their students are."""

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from secretballot._places import is_url, shown_place
from secretballot._typing import AnyArray, BoolArray
from secretballot._validation import shown
from secretballot.data.frames import class_indices, unit_ids
from secretballot.data.reading import read_table, table_blocks
from secretballot.data.schema import Encoding, Schema
from secretballot.exceptions import CertificateError, DataError, Parameter, ParameterError
from secretballot.learners.training.private_rows import PrivateRows
from secretballot.report.certificate import methods
from secretballot.report.certificate.fields import read_certificate
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
from secretballot.report.table_metrics import TableMetrics, metrics_of_table_student
from secretballot.runs.folder import SPEC_FILE
from secretballot.runs.spec import CHOICE, MOMENTS, PATE, RECORD_VOTES, DataSpec, RunSpec
from secretballot.runs.student_file import StudentFile, read_student_file, release_of
from secretballot.runs.table_match import TableCells, misfits
from secretballot.runs.tables import declared_names, targets_of

ROLE = "labelled file"
#: What a run calls the method of a certificate; the others let teachers vote.
_METHODS = {
    methods.EXPONENTIAL: CHOICE,
    methods.RECORD_VOTES: RECORD_VOTES,
    **dict.fromkeys(methods.SUMS, MOMENTS),
}


@dataclass(frozen=True)
class EvaluatedRelease:
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
    metrics: Metrics | TableMetrics | None = None

    @property
    def method(self) -> str:
        """How private records became the model."""
        return _METHODS.get(self.certificate["public"]["method"], PATE)

    def to_json(self) -> dict[str, Any]:
        """Return all of it as JSON values."""
        document, (epsilon, delta) = self.certificate, total_price(self.certificate)
        account, released = document["composition"], document["released"]
        return {
            "release": str(self.path),
            "epsilon": epsilon,
            "delta": delta,
            "unit": document["unit"],
            "relation": document["relation"],
            "method": self.method,
            **{
                name: released.get(name)
                for name in ("n_teachers", "queries", "answered", "classes")
            },
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


@dataclass(frozen=True)
class Evaluation:
    """What was compared.

    Attributes
    ----------
    releases : tuple of EvaluatedRelease
    differences : tuple of Difference
        Of each release but the first, less the first; empty without labelled records.
    caution : str or None
        Why prices are no measure of each other, where they are not, or that a student does not know
        what most of a column of the labelled records says.
    """

    releases: tuple[EvaluatedRelease, ...]
    differences: tuple[Difference, ...]
    caution: str | None

    def to_json(self) -> dict[str, Any]:
        """Return all of it as JSON values."""
        return {
            "releases": [release.to_json() for release in self.releases],
            "differences": [
                {**asdict(one), "release": str(one.release)} for one in self.differences
            ],
            "caution": self.caution,
        }


def evaluate(
    releases: Sequence[Path], table: Path | str | None = None, target: Sequence[str] = ()
) -> Evaluation:
    """Measure the students of releases on a public labelled table, and compare them.

    Parameters
    ----------
    releases : sequence of Path
        Release folders or folders of runs.
    table : Path, or str where it is a URL, optional
        Public labelled records, with the raw columns that every student reads; without it promises
        and prices alone are compared.
    target : sequence of str
        Column of the table with the class or the number; the columns of several labels. By default
        what the first release's schema.json names.

    Raises
    ------
    ParameterError
        If there is nothing to do, or no target is known.
    CertificateError
        If a release does not verify: what it says of itself is then worthless.
    DataError
        If a file cannot be read, or the students are of different classes; if the table holds rows
        of the private file of a run that is given by its folder: the figures would be private.
    """
    if not releases or (len(releases) < 2 and table is None):
        raise ParameterError("Name a release and a public labelled table, or two releases.")
    found = [verified_release(path) for path in releases]
    cautions = _promises_cautions(found)
    if table is None:
        return Evaluation(tuple(found), (), " ".join(cautions) or None)
    frame = read_table(table, role=ROLE)
    students = [read_student_file(path) for path in releases]
    target = tuple(target) or students[0].schema.target
    if not target:
        raise ParameterError(
            Parameter("target"),
            f" is missing, and the schema.json of {str(releases[0])!r} names none; name the column"
            " with the class or the number.",
        )
    matrices = []
    for path, student in zip(releases, students, strict=True):
        encoding = student.encoding(frame, role=ROLE)
        cautions += _cautions_of_private_rows(path, student, table, encoding)
        worst = misfits(student.schema, TableCells.of(frame, encoding))[:1]
        cautions += [
            f"Column {shown(one.name)} of the {ROLE}: {one.words}." for one in worst if one.stops
        ]
        matrices.append(encoding.matrix)
    truth, differences = _truth(found, students[0].schema, frame, target), []
    classes, right = found[0].certificate["released"]["classes"], list[BoolArray]()
    for number, (student, X) in enumerate(zip(students, matrices, strict=True)):
        if not classes:
            measured: Any = metrics_of_table_student(student.model, X, truth)
        else:
            measured = metrics_of_student(student.model, X, truth, classes)
            right.append(answers_of_student(student.model, X, classes) == truth)
        found[number] = replace(found[number], metrics=measured)
    # all are compared with the first, on the same rows
    for path, one in zip(releases[1:], right[1:], strict=True):
        accuracy = paired_difference(one, right[0])
        balanced = paired_balanced_difference(one, right[0], truth)
        differences.append(Difference(path, accuracy, balanced))
    caution = " ".join(dict.fromkeys(cautions)) or None
    return Evaluation(tuple(found), tuple(differences), caution)


def _truth(
    releases: Sequence[EvaluatedRelease],
    schema: Schema,
    frame: pd.DataFrame,
    target: tuple[str, ...],
) -> AnyArray:
    """Return the targets of the rows, which all releases must be about."""
    first = releases[0].certificate
    if not first["released"]["classes"]:
        if len(releases) > 1:
            raise ParameterError(
                "Of numbers, or of several labels, one release is evaluated at a time; leave the"
                " others out."
            )
        bounds = first["public"].get("bounds")
        data = DataSpec(target=target[:1] if bounds else target, bounds=bounds)
        return targets_of(data, frame, declared_names(data, schema), role=ROLE)
    if len(target) > 1:
        raise ParameterError(
            Parameter("target"),
            f" is {shown(','.join(target))}, and the releases are of one class; name its column.",
        )
    _check_classes(releases)
    return class_indices(frame, target[0], first["released"]["classes"], role=ROLE)


def is_table(place: str) -> bool:
    """Return whether a place is no release, but a file, a folder of Parquet files, or a URL."""
    path = Path(place)
    if is_url(place):
        return True
    if path.is_dir():
        return not (release_of(path) / CERTIFICATE_FILE).exists() and any(path.rglob("*.parquet"))
    return not (path.parent / CERTIFICATE_FILE).exists()


def _cautions_of_private_rows(
    path: Path, student: StudentFile, table: Path | str, encoding: Encoding
) -> list[str]:
    """Refuse a table with rows of the private file, where the vault beside the release says which
    it is.

    Return that the file is gone, where that is so; whatever else keeps it from being read is an
    error, since the figures might be private.
    """
    vault = Path(os.path.realpath(release_of(path))).parent / "vault"
    if not (vault / "run.json").is_file():
        return []
    rows, role = PrivateRows([encoding.matrix]), "private file"
    data = RunSpec.read(vault / SPEC_FILE).data
    if isinstance(data.private, Path) and not os.path.lexists(data.private):
        return [
            f"The private file of {str(path)!r} is not where it was, so its rows were not looked"
            f" for in the {ROLE}."
        ]
    for block in table_blocks(data.private or "", role=role):
        units = None if data.unit is None else unit_ids(block, data.unit, role=role)
        X = student.schema.encode(block, role=role)
        rows.add(X, None if units is None else pd.util.hash_array(units))
    if rows.hold(0):
        raise DataError(
            f"The {ROLE} {shown_place(table)!r} holds rows of the private file of {str(path)!r},"
            " more of them than chance explains, so the figures would be private; give public rows."
        )
    return []


def verified_release(path: Path) -> EvaluatedRelease:
    """Return what a release, or the folder of a run, promises.

    Raises
    ------
    DataError
        If there is none.
    CertificateError
        If it does not verify: what it says of itself is then worthless.
    """
    folder = release_of(path)
    if not (folder / CERTIFICATE_FILE).is_file():
        raise DataError(
            f"{str(path)!r} holds no {CERTIFICATE_FILE}; give the folder of a release or of a"
            " finished run."
        )
    failed = [check for check in verify_certificate(folder).checks if not check.ok]
    if failed:
        raise CertificateError(
            f"The release {shown(str(path))} does not verify ({failed[0].name}:"
            f" {failed[0].detail.rstrip('.')}); compare genuine ones."
        )
    certificate = read_certificate(folder / CERTIFICATE_FILE)
    student = folder / "student.onnx"
    size = student.stat().st_size if student.is_file() else None
    return EvaluatedRelease(path, certificate, size)


def _check_classes(releases: Sequence[EvaluatedRelease]) -> None:
    """Refuse students of different classes, which cannot be right on the same rows."""
    first, *others = [set(map(str, one.certificate["released"]["classes"])) for one in releases]
    for release, classes in zip(releases[1:], others, strict=True):
        if classes != first:
            raise DataError(
                f"The release {str(release.path)!r} has other classes than"
                f" {str(releases[0].path)!r}; compare students of the same classes, or leave"
                " the table out."
            )


def _promises_cautions(releases: Sequence[EvaluatedRelease]) -> list[str]:
    """Return why prices are no measure of each other, where units or relations differ."""
    promises = {(one.certificate["unit"], one.certificate["relation"]) for one in releases}
    if len(promises) == 1:
        return []
    return [
        "The releases promise different things (unit or relation), so the smaller epsilon is not"
        " the stronger promise."
    ]
