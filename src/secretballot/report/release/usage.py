"""How a stranger uses the student of a release: from the command line, with this package, and
without it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: What the list of files says of a student that encodes raw columns itself.
ONNX_OF_RAW_COLUMNS = "the student model, for any language: raw columns in, probabilities out"

_RUNTIME_ALONE = """\
import csv
import numpy as np, onnxruntime
model = onnxruntime.InferenceSession("student.onnx")
rows = list(csv.DictReader(open("../new.csv", newline=""), skipinitialspace=True))
def cells(column):
    texts = [row[column.name].strip() for row in rows]
    if column.type == "tensor(string)":
        return np.array(texts, dtype=object).reshape(-1, 1)
    return np.array([float(text or "nan") for text in texts]).reshape(-1, 1)
label, probabilities = model.run(None, {c.name: cells(c) for c in model.get_inputs()})"""


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
#: Stands in the lines above where a column holds dates.
_DATES = """\
    if column.type == "tensor(int64)":  # seconds since 1970; NaT where nothing is known
        seconds = np.array([text or "NaT" for text in texts], "datetime64[s]")
        return seconds.astype(np.int64).reshape(-1, 1)"""
#: Stands there where a column holds vectors.
_VECTORS = """\
    if column.shape[1] != 1:  # vectors, as "[0.5, -1, 2e-3]"; NaN where nothing is known
        nothing = [np.nan] * column.shape[1]
        return np.array([json.loads(text) if text else nothing for text in texts], float)"""


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
        Lines of Python, with this package; empty where they are of no use.
    skops_alone : tuple of str
        Lines of Python, with skops and scikit-learn alone.
    runtime_alone : tuple of str
        Lines of Python, with onnxruntime alone.
    onnx_of_encoded_columns : bool
        Whether the ONNX file reads columns that schema.json has encoded.
    untrusted : tuple of str
        Types in the student's file that a reader must trust by name.
    """

    command_line: str | None = None
    package: tuple[str, ...] = ()
    skops_alone: tuple[str, ...] = ()
    runtime_alone: tuple[str, ...] = ()
    onnx_of_encoded_columns: bool = False
    untrusted: tuple[str, ...] = ()

    @classmethod
    def of_files(
        cls,
        files: Mapping[str, str],
        schema: Mapping[str, Any] | None,
        untrusted: Sequence[str],
        *,
        alone: Sequence[str] | None,
    ) -> "Usage":
        """Return what can be done with these files.

        Parameters
        ----------
        files : mapping
            Name of each file, with what it is.
        schema : mapping or None
        untrusted : sequence of str
            Types that `load_student` must be told of.
        alone : sequence of str or None
            Types that skops must be told of; None where it cannot read the file without this
            package.
        """
        saved, onnx = "student.skops" in files, files.get("student.onnx")
        extra = f", trusted={list(untrusted)!r}" if untrusted else ""
        package, skops = [], []
        if saved:
            package = [
                "from secretballot.report.student.export import load_student",
                f"student = load_student('student.skops'{extra})",
            ]
        if saved and schema is not None:
            package += [
                "from secretballot.datasets.schema import Schema",
                "from secretballot.datasets.tables import read_table",
                "X = Schema.read('schema.json').encode(read_table('../new.csv'))",
                "student.predict(X)",
            ]
        if saved and alone is not None:
            told = f", trusted={list(alone)!r}" if alone else ""
            skops = ["import skops.io", f"student = skops.io.load('student.skops'{told})"]
        trust = f" --trust {','.join(untrusted)}" if untrusted else ""
        return cls(
            # the command reads columns as the schema says, so without one it is not named
            f"secretballot predict . ../new.csv --out ../predictions.csv{trust}"
            if saved and schema is not None
            else None,
            tuple(package),
            tuple(skops),
            _lines_of_runtime(schema) if onnx == ONNX_OF_RAW_COLUMNS else (),
            onnx is not None and onnx != ONNX_OF_RAW_COLUMNS,
            tuple(untrusted),
        )


def _lines_of_runtime(schema: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Return lines that read a table for onnxruntime; those of dates only where there are any."""
    columns = {} if schema is None else schema["columns"]
    lines = _RUNTIME_ALONE.splitlines()
    if any(column["kind"] == "date" for column in columns.values()):
        lines[-2:-2] = _DATES.splitlines()
    if any(column["kind"] == "vector" for column in columns.values()):
        lines[-2:-2] = _VECTORS.splitlines()
        lines[:0] = ["import json"]
    first = [name for name, column in columns.items() if _has_own_spelling(column)]
    if first:
        named = ", ".join(repr(name) for name in first)
        lines[-1:-1] = [f"# before: seconds, dates as 2020-02-29, decimal points, in {named}"]
    return tuple(lines)


def _has_own_spelling(column: Mapping[str, Any]) -> bool:
    """Return whether cells must be written in another way before these lines can read them."""
    return bool(
        column["kind"] == "duration" or column.get("format", "iso") != "iso" or "decimal" in column
    )
