"""How a stranger uses the student of a release: from the command line, with this package, and
without it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from secretballot.report.release.words import template

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


@dataclass(frozen=True)
class Usage:
    """What there is to use, and how.

    Attributes
    ----------
    command_line : str or None
        A command for this program.
    package : tuple of str
        Lines of Python, with this package.
    runtime_alone : tuple of str
        Lines of Python, with onnxruntime alone.
    of_matrix : bool
        Whether the student reads the points of the release, and no table.
    """

    command_line: str | None = None
    package: tuple[str, ...] = ()
    runtime_alone: tuple[str, ...] = ()
    of_matrix: bool = False

    @classmethod
    def of_files(cls, files: Mapping[str, str], schema: Mapping[str, Any] | None) -> "Usage":
        """Return what can be done with these files.

        Parameters
        ----------
        files : mapping
            Name of each file, with what it is.
        schema : mapping or None
            Complete.
        """
        if "student.onnx" not in files:
            return cls()
        # the command encodes the table, whatever the file reads
        command = "secretballot predict . ../new.csv --out ../predictions.csv"
        if schema is None or files["student.onnx"] != ONNX_OF_RAW_COLUMNS:
            return cls(None if schema is None else command, _PACKAGE[1:3], of_matrix=True)
        columns = schema["columns"]
        if any(one.get("encoding") == "hashed" for one in columns.values()):
            return cls(command)
        # lines for vectors, lengths of time and decimal commas only where there are any
        code = template("reader.py.j2").render(
            lengths=[name for name, one in columns.items() if one["kind"] == "duration"],
            commas=[name for name, one in columns.items() if one.get("decimal") == ","],
            vectors=any(one["kind"] == "vector" for one in columns.values()),
        )
        return cls(command, _PACKAGE, tuple(code.splitlines()))
