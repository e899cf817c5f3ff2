"""Releases side by side: what they promise and cost, and how good their students are."""

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from secretballot._places import shown_place
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
    PairedDifference,
    answers_of_student,
    metrics_of_student,
    metrics_of_table_student,
    paired_balanced_difference,
    paired_difference,
)
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
    metrics : Metrics or TableMetrics
    less_first : dict of str to PairedDifference
        How much better its student is than that of the first release, on the same rows: in accuracy
        and in balanced accuracy. Empty of the first one.
    """

    path: Path
    certificate: dict[str, Any]
    metrics: Any
    less_first: dict[str, PairedDifference]

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
            "classes": released["classes"],
            "account": {
                name: account.get(name) for name in ("dataset", "kind", "budget", "spent_after")
            },
            "metrics": self.metrics.to_json(),
            "less_first": {name: asdict(one) for name, one in self.less_first.items()},
        }


def evaluate(
    releases: Sequence[Path], table: Path | str, target: Sequence[str] = ()
) -> tuple[list[EvaluatedRelease], list[str]]:
    """Measure the students of releases on a public labelled table, and compare them.

    Also returns cautions: why prices are no measure of each other, where they are not, and that a
    student does not know what most of a column of the table says.

    Parameters
    ----------
    releases : sequence of Path
        Release folders or folders of runs, one or more.
    table : Path, or str where it is a URL
        Public labelled records, with the raw columns that every student reads.
    target : sequence of str
        Column of the table with the class or the number; the columns of several labels. By default
        what the first release's schema.json names.

    Raises
    ------
    ParameterError
        If no target is known.
    CertificateError
        If a release does not verify: what it says of itself is then worthless.
    DataError
        If a file cannot be read, or the students are of different classes; if the table holds rows
        of the private file of a run that is given by its folder: the figures would be private.
    """
    certificates = [verified_certificate(path) for path in releases]
    cautions = _promises_cautions(certificates)
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
    truth = _truth(releases, certificates, students[0].schema, frame, target)
    classes, found, right = certificates[0]["released"]["classes"], [], list[BoolArray]()
    for path, certificate, student, X in zip(
        releases, certificates, students, matrices, strict=True
    ):
        metrics: Any = metrics_of_table_student(student.model, X, truth) if not classes else None
        less_first = {}
        if classes:
            metrics = metrics_of_student(student.model, X, truth, classes)
            right.append(answers_of_student(student.model, X, classes) == truth)
            if len(right) > 1:  # all are compared with the first, on the same rows
                less_first = {
                    "accuracy": paired_difference(right[-1], right[0]),
                    "balanced_accuracy": paired_balanced_difference(right[-1], right[0], truth),
                }
        found.append(EvaluatedRelease(path, certificate, metrics, less_first))
    return found, list(dict.fromkeys(cautions))


def _truth(
    releases: Sequence[Path],
    certificates: Sequence[dict[str, Any]],
    schema: Schema,
    frame: pd.DataFrame,
    target: tuple[str, ...],
) -> AnyArray:
    """Return the targets of the rows, which all releases must be about."""
    first = certificates[0]
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
    names = [set(map(str, one["released"]["classes"])) for one in certificates]
    for path, others in zip(releases, names, strict=True):
        if others != names[0]:
            raise DataError(
                f"The release {str(path)!r} has other classes than {str(releases[0])!r}; compare"
                " students of the same classes."
            )
    return class_indices(frame, target[0], first["released"]["classes"], role=ROLE)


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


def verified_certificate(path: Path) -> dict[str, Any]:
    """Return the certificate of a release, or of the folder of a run.

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
    return read_certificate(folder / CERTIFICATE_FILE)


def _promises_cautions(certificates: Sequence[dict[str, Any]]) -> list[str]:
    """Return why prices are no measure of each other, where units or relations differ."""
    if len({(one["unit"], one["relation"]) for one in certificates}) == 1:
        return []
    return [
        "The releases promise different things (unit or relation), so the smaller epsilon is not"
        " the stronger promise."
    ]
