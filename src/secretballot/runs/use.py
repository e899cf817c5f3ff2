"""What is done with a release: its student is read with its columns, measured on public
labelled rows beside others, and says something of the rows of a table."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from secretballot._files import shown_place
from secretballot._typing import AnyArray, FloatArray, Json, Names
from secretballot._validation import name_columns, refusal, shown
from secretballot.data.frames import class_indices, unit_ids
from secretballot.data.reading import read_table, table_blocks
from secretballot.data.schema import Encoding, Schema
from secretballot.drafts import draft_file, make_folder, put_in_place
from secretballot.exceptions import CertificateError, DataError
from secretballot.learners.table import STOPS, PrivateRows
from secretballot.report.certificate_models import CERTIFICATE_FILE, total_price
from secretballot.report.metrics import (
    AnyMetrics,
    PairedDifference,
    answers_of_student,
    metrics_of_student,
    paired_difference,
)
from secretballot.report.student_load import OnnxStudent, load_student
from secretballot.report.verification import read_certificate, verify_certificate
from secretballot.runs.folder import SPEC_FILE, check_new_file
from secretballot.runs.questions import Watch
from secretballot.runs.spec import DataSpec, RunSpec
from secretballot.runs.tables import TableCells, declared_names, misfits, note_odd_cells, targets_of

STUDENT, _SCHEMA = "student.onnx", "schema.json"


def release_of(path: Path) -> Path:
    """Return the release folder that a path is, holds as the folder of a run, or lies in.

    Raises
    ------
    DataError
        If there is nothing of that name.
    """
    if not path.exists():
        raise DataError(f"There is no {str(path)!r}; give a release folder.")
    if not path.is_dir():
        return path.parent
    return path / "release" if (path / "release").is_dir() else path


def _read_student(path: Path) -> tuple[OnnxStudent, Schema]:
    """Return the student of a release, and the columns that it reads, by the schema.json beside it.

    Parameters
    ----------
    path : Path
        A release folder, the folder of a run, or a file of a student.

    Raises
    ------
    DataError
        If one of them is not there, cannot be read, or does not fit the other.
    """
    folder = release_of(path)
    file = folder / STUDENT if path.is_dir() else path
    if not file.is_file():
        raise DataError(
            f"The folder {str(folder)!r} holds no {STUDENT}; give another release, as labels alone"
            " have none, and a run may leave it out."
        )
    if not (file.parent / _SCHEMA).exists():
        raise DataError(
            f"{str(file.parent)!r} has no {_SCHEMA}, as its student was fitted to arrays or"
            " frames; read it in Python with secretballot.load_student."
        )
    return load_student(file), Schema.read(file.parent / _SCHEMA)


_ROLE = "labelled file"


@dataclass(frozen=True)
class _EvaluatedRelease:
    """What one release promises, and how good its student is.

    Attributes
    ----------
    path : Path
        As it was given.
    certificate : dict
        It verifies.
    metrics : AnyMetrics
    less_first : dict of str to PairedDifference
        How much better its student is than that of the first release, on the same rows: in accuracy
        and in balanced accuracy. Empty of the first one.
    """

    path: Path
    certificate: Json
    metrics: AnyMetrics
    less_first: dict[str, PairedDifference]

    def to_json(self) -> Json:
        """Return all of it as JSON values."""
        document, (epsilon, delta) = self.certificate, total_price(self.certificate)
        return {
            "release": str(self.path),
            "epsilon": epsilon,
            "delta": delta,
            "unit": document["unit"],
            "relation": document["relation"],
            "method": document["public"]["method"],
            "metrics": self.metrics.to_json(),
            "less_first": {name: asdict(one) for name, one in self.less_first.items()},
        }


def evaluate(
    releases: Sequence[Path],
    table: Path | str,
    target: Sequence[str] = (),
    *,
    encoding: str = "utf-8",
    just_made: bool = False,
) -> tuple[list[_EvaluatedRelease], list[str]]:
    """Measure the students of releases on a public labelled table, and compare them.

    Also returns cautions: that a student does not know what most of a column of the table says, or
    that private rows were not looked for.

    Parameters
    ----------
    releases : sequence of Path
        Release folders or folders of runs, one or more.
    table : Path, or str where it is a URL
        Public labelled records, with the raw columns that every student reads.
    target : sequence of str
        Column of the table with the class or the number; the columns of several labels. By default
        what the first release's schema.json names.
    encoding : str
        Of the table, as the settings of a run name it.
    just_made : bool
        Whether the run that made the release is at work: it has looked at certificate and rows.

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
    certificates = [
        read_certificate(release_of(path) / CERTIFICATE_FILE)
        if just_made
        else verified_certificate(path)
        for path in releases
    ]
    named = DataSpec.of_tree({"encoding": encoding}).encoding
    frame = read_table(table, role=_ROLE, encoding=named)
    students = [_read_student(path) for path in releases]
    target = tuple(target) or students[0][1].target
    if not target:
        raise refusal(
            "target",
            f" is missing, and the schema.json of {str(releases[0])!r} names none; name the column"
            " with the class or the number.",
        )
    truth = _truth(releases, certificates, students[0][1], frame, target)
    classes, cautions = certificates[0]["released"]["classes"], list[str]()
    found, first = list[_EvaluatedRelease](), None
    for path, certificate, (student, schema) in zip(releases, certificates, students, strict=True):
        encoded = schema.encoding(frame, role=_ROLE)
        cautions += [] if just_made else _cautions_of_private_rows(path, schema, table, encoded)
        worst = misfits(schema, TableCells.of(encoded))[:1]
        cautions += [
            f"Column {shown(column.name)} of the {_ROLE}: {words}."
            for column, share, words in worst
            if share > STOPS
        ]
        X, less_first = encoded.matrix, dict[str, PairedDifference]()
        right = answers_of_student(student, X, classes) == truth if classes else None
        if first is not None and right is not None:  # all are compared with the first
            less_first = {
                "accuracy": paired_difference(right, first),
                "balanced_accuracy": paired_difference(right, first, truth),
            }
        first = right if first is None else first
        metrics = metrics_of_student(student, X, truth, classes)
        found.append(_EvaluatedRelease(path, certificate, metrics, less_first))
    return found, list(dict.fromkeys(cautions))


def _truth(
    releases: Sequence[Path],
    certificates: Sequence[Json],
    schema: Schema,
    frame: pd.DataFrame,
    target: Names,
) -> AnyArray:
    """Return the targets of the rows, which all releases must be about."""
    released, bounds = certificates[0]["released"], certificates[0]["public"].get("bounds")
    classes = released["classes"]
    for path, other in zip(releases[1:], certificates[1:], strict=True):
        others = other["released"]["classes"]
        if not classes or set(map(str, others)) != set(map(str, classes)):
            raise DataError(
                f"The release {str(path)!r} cannot be compared with {str(releases[0])!r}; compare"
                " students of the same classes, and of numbers or several labels give one alone."
            )
    if classes and len(target) > 1:
        raise refusal(
            "target",
            f" is {shown(','.join(target))}, and the releases are of one class; name its column.",
        )
    if classes:
        return class_indices(frame, target[0], classes, role=_ROLE)
    data = DataSpec(target=target[:1] if bounds else target, bounds=bounds)
    return targets_of(data, frame, declared_names(data, schema), schema, role=_ROLE)


def _cautions_of_private_rows(
    path: Path, schema: Schema, table: Path | str, encoding: Encoding
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
            f" for in the {_ROLE}."
        ]
    for block in table_blocks(data.private or "", role=role, encoding=data.encoding):
        units = None if data.unit is None else unit_ids(block, data.unit, role=role)
        X = schema.encode(block, role=role)
        rows.add(X, None if units is None else pd.util.hash_array(units))
    if rows.hold(0):
        raise DataError(
            f"The {_ROLE} {shown_place(table)!r} holds rows of the private file of {str(path)!r},"
            " more of them than chance explains, so the figures would be private; give public rows."
        )
    return []


def verified_certificate(path: Path) -> Json:
    """Return the certificate of a release, or of the folder of a run.

    Raises
    ------
    CertificateError
        If it does not verify, or is not there: what it says of itself is then worthless.
    """
    verification = verify_certificate(release_of(path))
    if verification.certificate is None or not verification.ok:
        failed = verification.failures[0]
        raise CertificateError(
            f"The release {shown(str(path))} does not verify: {failed.name}: {failed.detail}"
        )
    return dict(verification.certificate)


_PREDICTED = "table"


def run_predict(
    student: Path,
    table: Path,
    out: Path | None = None,
    *,
    overwrite: bool = False,
    encoding: str = "utf-8",
    reporter: Watch | None = None,
) -> int:
    """Write what a published student says of every row of a table, and return how many there are.

    The columns are ``row``, from 0; ``label`` (``prediction`` of a student of numbers, and
    ``label[NAME]``, 0 or 1, for each of several labels); and ``probability[CLASS]`` of each class,
    or label, where the student has probabilities. Rows are read,
    encoded and written in blocks, so a table may be larger than the memory. A file appears complete
    or not at all.

    Parameters
    ----------
    student : Path
        A release folder, the folder of a run, or a student.onnx.
    table : Path
        Raw rows, CSV or Parquet, with the columns of the public file of the release.
    out : Path, optional
        A CSV file; by default standard output.
    overwrite : bool
        Whether a file in that place may be replaced.
    encoding : str
        Of a CSV file, as the settings of a run name it.
    reporter : Watch, optional
        Called with what was counted as missing or as "other".

    Raises
    ------
    DataError
        If a file cannot be read or written, columns are missing, or one that holds numbers for the
        student holds none in the first block of rows.
    """
    watch, cells = reporter or Watch(), TableCells()
    model, schema = _read_student(student)
    if out is not None:
        check_new_file(out, table, overwrite=overwrite)
    named = DataSpec.of_tree({"encoding": encoding}).encoding
    watch.step("Predicting")
    with _block_writer(out) as write:
        for frame in table_blocks(table, role=_PREDICTED, encoding=named):
            encoded, first = schema.encoding(frame, role=_PREDICTED), cells.n_rows
            cells.add(encoded.odd, len(frame))
            if not first:
                # the first rows speak for the rest, and a person sees it before the table ends
                known = {*schema.names, *schema.ignored}
                if surplus := [name for name in frame.columns if name not in known]:
                    watch.note(f"Not read by the student: {name_columns(surplus)}.", private=False)
                _refuse_unlike_rows(schema, cells)
            write(_predicted(model, encoded.matrix, first))
    note_odd_cells(schema, cells, watch, role=_PREDICTED, private=False)
    return cells.n_rows


def _refuse_unlike_rows(schema: Schema, cells: TableCells) -> None:
    """Refuse first rows with a column in which numbers are due and no cell that says anything has
    one."""
    for column, share, words in misfits(schema, cells):
        if share == 1 and not column.has_other:
            raise DataError(
                f"Column {column.name!r} of the {_PREDICTED} does not fit: {words} in its first"
                f" {cells.n_rows:,} rows; write them as the public file of the release does, or"
                " leave the cells empty."
            )


def _predicted(model: Any, X: FloatArray, first: int) -> pd.DataFrame:
    """Return a block of predictions."""
    labels, names = np.asarray(model.predict(X)), getattr(model, "labels", None)
    found = pd.DataFrame({"row": np.arange(first, first + len(X))})
    if labels.ndim == 2 and names is not None:
        names = list(map(str, names))
        found[[f"label[{name}]" for name in names]] = labels
    else:
        names = getattr(model, "classes_", None)
        found["prediction" if names is None else "label"] = labels
    if names is not None and hasattr(model, "predict_proba"):
        shares = np.asarray(model.predict_proba(X), dtype=np.float64)
        found[[f"probability[{name}]" for name in np.asarray(names).tolist()]] = shares
    return found


@contextmanager
def _block_writer(out: Path | None) -> Iterator[Callable[[pd.DataFrame], None]]:
    """Give what writes blocks, to a file that appears complete or not at all, or to standard
    output."""
    if out is None:
        yield partial(_write_csv, sys.stdout)
    else:
        make_folder(out.parent)
        with draft_file(out) as (file, draft):
            yield partial(_write_csv, file)
            put_in_place(file, draft, out)


def _write_csv(file: Any, block: pd.DataFrame) -> None:
    """Write a block as CSV, the first one with a header."""
    first = bool(block["row"].iloc[0] == 0)
    block.to_csv(file, index=False, header=first, lineterminator="\n")
