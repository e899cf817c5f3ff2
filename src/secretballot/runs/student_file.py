"""A published student with the columns that it reads, and whether a student could be published."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from secretballot._naming import name_columns
from secretballot._typing import FloatArray
from secretballot.data.schema import Encoding, Schema
from secretballot.exceptions import Argument, DataError, Parameter, ParameterError
from secretballot.report.student.export import CONVERTS, check_answers, converted_student
from secretballot.report.student.load import OnnxStudent, load_student
from secretballot.report.student.raw_columns import refuse_long_vocabularies
from secretballot.students.names import student_by_name
from secretballot.students.table_students import NumberStudent, fitted_to_public
from secretballot.students.trial import fitted_to_dummies

_TRIED = 1000  # public rows that a student is tried on
STUDENT, SCHEMA = "student.onnx", "schema.json"


@dataclass(frozen=True, eq=False)
class StudentFile:
    """A student and how it reads a table.

    Attributes
    ----------
    model : OnnxStudent
    schema : Schema
    """

    model: OnnxStudent
    schema: Schema

    def encoding(self, frame: pd.DataFrame, *, role: str) -> Encoding:
        """Return a table as the student reads it.

        Raises
        ------
        DataError
            If columns that the student reads are missing.
        """
        missing = [name for name in self.schema.names if name not in frame.columns]
        if missing:
            raise DataError(
                f"The {role} lacks {name_columns(missing)}, which the student reads; check that its"
                " first line is a header, and add what is missing under the names of schema.json (a"
                " cell may be empty where nothing is known)."
            )
        return self.schema.encoding(frame, role=role)


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


def read_student_file(path: Path) -> StudentFile:
    """Return the student of a release with the columns that it reads, by the schema.json beside it.

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
        why = "; its README.txt says why it was left out"
        if (folder / "labels.csv").is_file() and not (folder / SCHEMA).is_file():
            why = ", since labels alone were released; secretballot learn publishes a student"
        raise DataError(f"The folder {str(folder)!r} holds no {STUDENT}{why}.")
    columns = file.parent / SCHEMA
    if not columns.is_file():
        raise DataError(
            f"There is no {str(columns)!r} to say which columns the student reads; copy the"
            " schema.json of its release there."
        )
    found = StudentFile(load_student(file), Schema.read(columns))
    width = found.model.n_features_in_
    if width != len(found.schema.feature_names):
        raise DataError(
            f"The schema {str(columns)!r} encodes {len(found.schema.feature_names)} columns and the"
            f" student reads {width}; put the schema.json of the same release there."
        )
    return found


def check_converts(
    name: str,
    X_public: FloatArray,
    schema: Schema,
    *,
    classes: Sequence[Any] = (),
    without: Collection[str] = (),
) -> None:
    """Refuse a student that could not be written to a release: before anything is paid.

    Students that are named without settings convert; any other one is fitted to public points with
    dummy labels, and converted.

    Parameters
    ----------
    name : str
        As a student is named, or a regressor.
    X_public : ndarray of shape (n_public, n_features)
    schema : Schema
    classes : sequence
        Empty for a regressor.
    without : collection of str
        Parts of the release that are not wanted.

    Raises
    ------
    ParameterError
        If it does not convert.
    DataError
        If a column is beyond what a student's file can read.
    """
    if "student" in without:
        return
    document = schema.to_json()
    refuse_long_vocabularies(document)
    if ":" not in name:
        return
    try:
        some = X_public[:_TRIED]
        if classes:
            fitted = fitted_to_dummies(student_by_name(name), X_public, classes)
        else:
            learner = student_by_name(name, of_numbers=True)
            fitted = fitted_to_public(learner, some, np.linspace(0.0, 1.0, len(some)), 0)
            fitted = NumberStudent(fitted, (0.0, 1.0))
    except Exception:  # what cannot learn is refused in its own words by the trial of its method
        return
    problem = ""
    try:
        check_answers(fitted, converted_student(fitted, document), some, some)
    except DataError as error:
        problem = str(error)
    if problem:
        raise ParameterError(
            Parameter("student"),
            f" cannot be published: {problem} Nothing was spent; what can be is {CONVERTS}. Or"
            " leave the student out with ",
            Argument("exclude", "student"),
            ", and learn one of your own from the released labels.",
        )
