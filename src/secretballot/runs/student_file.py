"""A published student with the columns that it reads: what a stranger takes out of a release."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from secretballot._naming import name_columns
from secretballot.datasets.schema import Schema
from secretballot.exceptions import DataError
from secretballot.report.student.export import load_student

STUDENT, SCHEMA = "student.skops", "schema.json"


@dataclass(frozen=True, eq=False)
class StudentFile:
    """A student and how it reads a table.

    Attributes
    ----------
    path : Path
        Its file.
    model : fitted estimator
    schema : Schema
    """

    path: Path
    model: Any
    schema: Schema

    def check_columns(self, frame: pd.DataFrame, *, role: str) -> None:
        """Refuse a table without the columns that the student reads.

        Raises
        ------
        DataError
            Naming those that are missing.
        """
        missing = [name for name in self.schema.names if name not in frame.columns]
        if not missing:
            return
        if len(missing) == len(self.schema.names):
            raise DataError(
                f"The {role} has none of the {len(missing)} columns that the student reads"
                f" ({name_columns(missing)}); check that its first line is a header with these"
                " names."
            )
        raise DataError(
            f"The {role} lacks {name_columns(missing)}, which the student reads; add what is"
            " missing under the names of schema.json (a cell may be empty where nothing is known)."
        )


def release_of(path: Path) -> Path:
    """Return the release folder that a path is, holds as the folder of a run, or lies in.

    Raises
    ------
    DataError
        If there is nothing of that name.
    """
    if not path.exists():
        raise DataError(f"There is no {str(path)!r}; give a release folder or a {STUDENT}.")
    if not path.is_dir():
        return path.parent
    return path / "release" if (path / "release").is_dir() else path


def read_student_file(
    path: Path, *, schema: Path | None = None, trusted: Sequence[str] = ()
) -> StudentFile:
    """Return the student of a release with the columns that it reads.

    Parameters
    ----------
    path : Path
        A release folder, the folder of a run, or a file of a student.
    schema : Path, optional
        By default the schema.json beside the student.
    trusted : sequence of str
        As for `load_student`.

    Raises
    ------
    DataError
        If one of them is not there, cannot be read, or does not fit the other.
    MissingExtraError
        If skops is not installed.
    """
    folder = release_of(path)
    file = folder / STUDENT if path.is_dir() else path
    if not file.is_file():
        raise DataError(
            f"The folder {str(folder)!r} holds no {STUDENT}; its README.txt says why it was left"
            " out, and a student.onnx there needs onnxruntime alone."
        )
    columns = schema or file.parent / SCHEMA
    if not columns.is_file():
        raise DataError(
            f"There is no {str(columns)!r} to say which columns the student reads; name the"
            " schema.json of its release with --schema."
        )
    found = StudentFile(file, load_student(file, trusted=trusted), Schema.read(columns))
    width = getattr(found.model, "n_features_in_", None)
    # not every learner tells its width
    if width is not None and width != len(found.schema.feature_names):
        raise DataError(
            f"The schema {str(columns)!r} encodes {len(found.schema.feature_names)} columns and the"
            f" student reads {width}; give the schema.json of the same release with --schema."
        )
    return found
