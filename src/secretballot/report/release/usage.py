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


_NUMBERS = {"median", "center", "scale", "indicator"}
_PARTS: dict[str, set[str]] = {
    "numeric": _NUMBERS,
    "duration": _NUMBERS,
    "categorical": {"categories"},
    "boolean": set(),
    "date": {"format", "median", "scale", "parts", "indicator"},
    "text": {"words"},
    "text tfidf": {"words", "weights"},
    "text hashed": {"width", "bigrams"},
    "vector": {"center", "scale"},
}


def complete_schema(schema: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return a schema that says how each column is encoded, None for any other description."""
    columns = None if schema is None else schema.get("columns")
    if not isinstance(columns, Mapping):
        return None
    for column in columns.values():
        if not isinstance(column, Mapping):
            return None
        parts = {"ignored": set[str](), **_PARTS}.get(_full_kind(column))
        if parts is None or not parts <= {*column}:
            return None
    return schema


def _full_kind(column: Mapping[str, Any]) -> str:
    """Return the kind of a column, of a free text with its encoding but the usual one."""
    kind, encoding = column.get("kind"), column.get("encoding", "words")
    return str(kind) if kind != "text" or encoding == "words" else f"text {encoding}"


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
        hashed = any(one.get("encoding") == "hashed" for one in schema["columns"].values())
        return cls(
            command,
            () if hashed else _PACKAGE,
            () if hashed else _lines_of_runtime(schema["columns"]),
        )


def _lines_of_runtime(columns: Mapping[str, Mapping[str, Any]]) -> tuple[str, ...]:
    """Return lines that read a table for onnxruntime; those of vectors, lengths of time and decimal
    commas only where there are any."""
    lengths = [name for name, column in columns.items() if column["kind"] == "duration"]
    commas = [name for name, column in columns.items() if column.get("decimal") == ","]
    vectors = any(column["kind"] == "vector" for column in columns.values())
    code = template("reader.py.j2").render(lengths=lengths, commas=commas, vectors=vectors)
    return tuple(code.splitlines())
