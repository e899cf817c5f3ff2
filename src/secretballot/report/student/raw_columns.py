"""A student's ONNX graph with the encoding of raw columns inside: a stranger gives the cells of a
table."""

import datetime
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from secretballot._typing import FloatArray
from secretballot._validation import shown
from secretballot.exceptions import DataError
from secretballot.report.extras import require_extra
from secretballot.report.student.onnx_names import rename_values

#: Kinds of columns that a graph can encode, with the type of their input.
INPUT_TYPES = {
    "numeric": "tensor(double)",
    "duration": "tensor(double)",
    "categorical": "tensor(string)",
    "boolean": "tensor(string)",
    "date": "tensor(int64)",
    "vector": "tensor(double)",
}
#: The integer that stands for no date, as numpy has it for NaT.
NO_TIME = -(2**63)
_SECONDS_A_DAY = 86400
#: Middle and deviation of the parts of a date, as in the package (`datasets.columns`).
_DATE_PARTS = {
    "month": (6.5, 3.5),
    "day": (16.0, 9.0),
    "weekday": (3.0, 2.0),
    "hour": (11.5, 7.0),
}
_TRUTHS = ("False", "True")
#: Numbers beyond this size count as missing, as in the package (`datasets.cells`).
LARGEST_NUMBER = 1e30
_DOUBLE, _FLOAT, _TEXT, _INTEGER, _TRUTH = 11, 1, 8, 7, 9  # ONNX's names of these types
_INPUTS = {"tensor(double)": _DOUBLE, "tensor(string)": _TEXT, "tensor(int64)": _INTEGER}
_ARRAYS: dict[str, Any] = {
    "tensor(double)": np.float64,
    "tensor(string)": object,
    "tensor(int64)": np.int64,
}
_TEXTS, _TEXTS_VERSION = "ai.onnx.ml", 2  # the operators that look texts up
_INNER = "student "  # before the names inside of the student's own graph


@dataclass(frozen=True, eq=False)
class RawRows:
    """Public rows before and after their encoding, by which a graph is checked.

    Attributes
    ----------
    cells : mapping of str to sequence
        For each column that becomes a feature: numbers, nan where nothing is known; texts; or
        dates in seconds since 1970-01-01, `NO_TIME` where nothing is known.
    X : ndarray of shape (n_rows, n_features)
        As the package encodes them.
    """

    cells: Mapping[str, Sequence[Any]]
    X: FloatArray

    def inputs(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return the cells as the inputs of the graph."""
        return {
            name: np.array(self.cells[name], dtype=_ARRAYS[INPUT_TYPES[kind]]).reshape(
                -1, _input_width(schema["columns"][name])
            )
            for name, kind in _column_kinds(schema).items()
        }


def raw_columns_graph(
    model: bytes, schema: Mapping[str, Any], classes: Sequence[Any], *, projected: bool = False
) -> bytes:
    """Return an ONNX model that reads raw columns, from one that reads encoded ones.

    Parameters
    ----------
    model : bytes
        Input ``X``, float32 of shape (n, n_features). Where the first thing it does is to make
        doubles of it, these are those of the encoding, not rounded to single precision.
    schema : mapping
        Complete, as `Schema.to_json` writes it.
    classes : sequence
        In the order of the probabilities.
    projected : bool
        Whether the second output is to be moved to the nearest probabilities.

    Returns
    -------
    bytes
        One input for each column, under its name. Of shape (n, 1): double for numbers and lengths
        of time in seconds, NaN where nothing is known; string for categories and truth values, ""
        where nothing is known; int64 for dates, `NO_TIME` where nothing is known. Of shape
        (n, width): double for vectors, NaN where nothing is known. Outputs ``label`` of shape (n,)
        and ``probabilities`` of shape (n, n_classes), where the model has them. The metadata name
        the classes.

    Raises
    ------
    MissingExtraError
        If onnx is not installed.
    DataError
        If the schema is not complete, or the model is not of that form.
    """
    onnx = require_extra("onnx", "onnx")
    inner = onnx.load_from_string(model)
    rename_values(inner, lambda name: f"{_INNER}{name}" if name else "")
    columns = _Encoding(require_extra("onnx.helper", "onnx"), schema)
    _connect_student(columns, inner.graph)
    # ONNX wants nodes in the order of their use: the encoding, the student, its outputs
    before = list(columns.nodes)
    _name_outputs(columns, inner.graph, projected=projected)
    helper = columns.helper
    graph = helper.make_graph(
        [*before, *inner.graph.node, *columns.nodes[len(before) :]],
        "student",
        columns.inputs(),
        list(inner.graph.output),
        [*columns.tensors(), *inner.graph.initializer],
    )
    versions = {one.domain: one.version for one in inner.opset_import}
    if versions.get(_TEXTS, 0) < _TEXTS_VERSION:
        if any(node.op_type == "LabelEncoder" for node in inner.graph.node):
            raise DataError("The ONNX student holds an operator of an old version.")
        versions[_TEXTS] = _TEXTS_VERSION
    made = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid(*pair) for pair in sorted(versions.items())],
        ir_version=inner.ir_version,
    )
    helper.set_model_props(
        made,
        {"classes": json.dumps(list(classes), default=str), "made_by": "secretballot"},
    )
    onnx.checker.check_model(made)
    return bytes(made.SerializeToString(deterministic=True))


def encoded_width(column: Mapping[str, Any]) -> int:
    """Return how many encoded columns a column of a complete schema becomes."""
    match column.get("kind"):
        case "numeric" | "duration":
            return 1 + bool(column.get("indicator"))
        case "categorical":
            return 1 + len(column.get("categories", ()))  # and one for all others
        case "boolean":
            return 1 + len(_TRUTHS)
        case "date":
            return 1 + len(column.get("parts", ())) + bool(column.get("indicator"))
        case "text":
            hashed = column.get("encoding") == "hashed"
            return 1 + (column.get("width", 0) if hashed else len(column.get("words", ())))
        case "vector":
            return len(column.get("center", ()))
    return 0


def _input_width(column: Mapping[str, Any]) -> int:
    """Return how many numbers a cell of a column is."""
    return len(column["center"]) if column["kind"] == "vector" else 1


def refuse_texts(schema: Mapping[str, Any]) -> None:
    """Refuse free text: the operators of ONNX that every reader has cannot take it apart.

    Raises
    ------
    DataError
        Naming the column.
    """
    for name, column in schema["columns"].items():
        if column["kind"] == "text":
            raise DataError(
                f"Column {shown(name)} holds free text, whose words no ONNX graph can find; encode"
                " the table with this package."
            )


def _column_kinds(schema: Mapping[str, Any]) -> dict[str, str]:
    """Return the kind of each column that becomes a feature."""
    columns: Mapping[str, Mapping[str, Any]] = schema["columns"]
    return {name: one["kind"] for name, one in columns.items() if one["kind"] in INPUT_TYPES}


class _Encoding:
    """Nodes and constants that encode raw columns, as `datasets.columns` does."""

    def __init__(self, helper: Any, schema: Mapping[str, Any]) -> None:
        self.helper = helper
        self.kinds = _column_kinds(schema)
        self._widths = {name: _input_width(schema["columns"][name]) for name in self.kinds}
        self.nodes: list[Any] = []
        self._constants: dict[str, Any] = {}
        if not self.kinds:
            raise DataError("The schema has no column that becomes a feature.")
        parts = []
        for name, kind in self.kinds.items():
            add = {
                "numeric": self._add_numbers,
                "duration": self._add_numbers,
                "vector": self._add_vectors,
                "date": self._add_dates,
            }.get(kind, self._add_categories)
            parts += add(name, schema["columns"][name])
        self.encoded = self.add("Concat", parts, axis=1)

    def add(self, kind: str, inputs: Sequence[str], output: str = "", **more: Any) -> str:
        """Add a node and return the name of its output."""
        name = output or f"raw value {len(self.nodes)}"
        self.nodes.append(self.helper.make_node(kind, list(inputs), [name], **more))
        return name

    def inputs(self) -> list[Any]:
        """Return an input for each column."""
        return [
            self.helper.make_tensor_value_info(
                name, _INPUTS[INPUT_TYPES[kind]], [None, self._widths[name]]
            )
            for name, kind in self.kinds.items()
        ]

    def tensors(self) -> list[Any]:
        """Return the constants."""
        numpy_helper = require_extra("onnx.numpy_helper", "onnx")
        return [numpy_helper.from_array(value, name) for name, value in self._constants.items()]

    def add_projection(self, shares: str, output: str, n_classes: int) -> None:
        """Add the nearest probabilities: what is left above the one level at which they are 1
        together."""
        places = self._add_constant([n_classes], np.int64)
        descending = f"{output} sorted"
        names = [descending, f"{output} order"]
        self.nodes.append(self.helper.make_node("TopK", [shares, places], names, axis=1))
        sums = self.add("CumSum", [descending, self._add_constant(1, np.int64)])
        over = self.add("Sub", [sums, self._add_constant([[1.0]])])
        levels = self.add("Div", [over, self._add_constant([range(1, n_classes + 1)])])
        level = self.add("ReduceMax", [levels], axes=[1], keepdims=1)
        above = self.add("Sub", [shares, level])
        self.add("Max", [above, self._add_constant([[0.0]])], output)

    def _add_constant(self, value: Any, kind: Any = np.float64) -> str:
        name = f"raw constant {len(self._constants)}"
        self._constants[name] = np.array(value, dtype=kind)
        return name

    def _add_numbers(self, name: str, column: Mapping[str, Any]) -> list[str]:
        """Add the median where nothing is known, centre and scale."""
        largest = self._add_constant([[LARGEST_NUMBER]])
        size = self.add("Abs", [name])
        absent = self.add("Not", [self.add("LessOrEqual", [size, largest])])
        known = self.add("Where", [absent, self._add_constant([[column["median"]]]), name])
        parts = [self._add_scaled(known, column["center"], column["scale"])]
        if column["indicator"]:
            parts.append(self.add("Cast", [absent], to=_DOUBLE))
        return parts

    def _add_vectors(self, name: str, column: Mapping[str, Any]) -> list[str]:
        """Add vectors in single precision, centred and scaled; the centre where one of its numbers
        is none."""
        largest = self._add_constant([[LARGEST_NUMBER]])
        beyond = self.add("Not", [self.add("LessOrEqual", [self.add("Abs", [name]), largest])])
        odd = self.add("ReduceMax", [self.add("Cast", [beyond], to=_FLOAT)], axes=[1], keepdims=1)
        rounded = self.add("Cast", [self.add("Cast", [name], to=_FLOAT)], to=_DOUBLE)
        centre = self._add_constant([column["center"]])
        known = self.add("Where", [self.add("Cast", [odd], to=_TRUTH), centre, rounded])
        centred = self.add("Sub", [known, centre])
        scaled = self.add("Div", [centred, self._add_constant([[column["scale"]]])])
        above = self.add("Max", [scaled, self._add_constant([[-LARGEST_NUMBER]])])
        return [self.add("Min", [above, largest])]

    def _add_scaled(self, number: str, center: float, scale: float) -> str:
        """Add a number that is centred, scaled and kept within bounds."""
        centred = self.add("Sub", [number, self._add_constant([[center]])])
        scaled = self.add("Div", [centred, self._add_constant([[scale]])])
        above = self.add("Max", [scaled, self._add_constant([[-LARGEST_NUMBER]])])
        return self.add("Min", [above, self._add_constant([[LARGEST_NUMBER]])])

    def _add_integer_step(self, kind: str, number: str, other: int) -> str:
        """Add a step of arithmetic of integers; the quotient of numbers that are not negative."""
        return self.add(kind, [number, self._add_constant([[other]], np.int64)])

    def _add_dates(self, name: str, column: Mapping[str, Any]) -> list[str]:
        """Add days since the median, and parts of the date, by arithmetic of integers."""
        median = _seconds_of(column["median"])
        absent = self._add_integer_step("Equal", name, NO_TIME)
        seconds = self.add("Where", [absent, self._add_constant([[median]], np.int64), name])
        days = self.add("Cast", [seconds], to=_DOUBLE)
        days = self.add("Div", [days, self._add_constant([[float(_SECONDS_A_DAY)]])])
        parts = [self._add_scaled(days, median / _SECONDS_A_DAY, column["scale"])]
        of_day = self._add_integer_step("Mod", seconds, _SECONDS_A_DAY)
        day = self._add_integer_step("Div", self.add("Sub", [seconds, of_day]), _SECONDS_A_DAY)
        for part in column["parts"]:
            whole = self._part_of_date(part, day, of_day)
            middle, deviation = _DATE_PARTS[part]
            number = self.add("Cast", [whole], to=_DOUBLE)
            parts.append(self._add_scaled(number, middle, deviation))
        if column["indicator"]:
            parts.append(self.add("Cast", [absent], to=_DOUBLE))
        return parts

    def _part_of_date(self, part: str, day: str, of_day: str) -> str:
        """Add a part of a date: hour, weekday from Monday as 0, month or day of the month."""
        step = self._add_integer_step
        if part == "hour":
            return step("Div", of_day, 3600)
        if part == "weekday":
            return step("Mod", step("Add", day, 3), 7)
        # Days of the Gregorian calendar, whose years are counted from 1 March so that a leap day is
        # the last of its year, and repeat after 146,097 days (400 years); Fliegel and Van Flandern
        # 1968, Communications of the ACM 11(10), in the form of Howard Hinnant's
        # "chrono-Compatible Low-Level Date Algorithms".
        of_era = step("Mod", step("Add", day, 719468), 146097)
        corrected = self.add("Sub", [of_era, step("Div", of_era, 1460)])
        corrected = self.add("Add", [corrected, step("Div", of_era, 36524)])
        corrected = self.add("Sub", [corrected, step("Div", of_era, 146096)])
        year = step("Div", corrected, 365)
        before = self.add("Add", [step("Mul", year, 365), step("Div", year, 4)])
        before = self.add("Sub", [before, step("Div", year, 100)])
        of_year = self.add("Sub", [of_era, before])
        month = step("Div", step("Add", step("Mul", of_year, 5), 2), 153)  # 0 is March
        if part == "month":
            return step("Add", step("Mod", step("Add", month, 2), 12), 1)
        first = step("Div", step("Add", step("Mul", month, 153), 2), 5)
        return step("Add", self.add("Sub", [of_year, first]), 1)

    def _add_categories(self, name: str, column: Mapping[str, Any]) -> list[str]:
        """Add one column for each category, and the one of all others."""
        if column["kind"] == "boolean":
            categories: Sequence[str] = _TRUTHS
            places = _spellings_of_truths()
        else:
            categories = column["categories"]
            places = _places_of_spellings(categories)
        place = self.add(
            "LabelEncoder",
            [name],
            domain=_TEXTS,
            keys_strings=list(places),
            values_int64s=list(places.values()),
            default_int64=len(categories),
        )
        each = self._add_constant([range(len(categories) + 1)], np.int64)
        return [self.add("Cast", [self.add("Equal", [place, each])], to=_DOUBLE)]


def _places_of_spellings(categories: Sequence[str]) -> dict[str, int]:
    """Return the place of each category, and of what the package reads as the same text.

    It takes space around a cell away, and 1.0 for 1. A graph cannot, so the commonest of these
    spellings are listed: one space before, and a decimal point with one zero.
    """
    places: dict[str, int] = {text: place for place, text in enumerate(categories)}
    for place, text in enumerate(categories):
        if text.lstrip("+-").isdigit():
            places.setdefault(f"{text}.0", place)
    for text, place in list(places.items()):
        places.setdefault(f" {text}", place)
    # the operator wants one text at least; no cell of a table is this one
    return places or {"\0": 0}


def _spellings_of_truths() -> dict[str, int]:
    """Return the place of each truth value, as the package reads it; also with a space before."""
    return {
        f"{space}{spelling}": place
        for place, text in enumerate(_TRUTHS)
        for space in ("", " ")
        for spelling in (text, text.lower(), text.upper())
    }


def _seconds_of(text: str) -> int:
    """Return a point in time, as `Schema.to_json` writes it, in seconds since 1970-01-01."""
    moment = datetime.datetime.fromisoformat(text)
    return (moment - datetime.datetime(1970, 1, 1)) // datetime.timedelta(seconds=1)


def _connect_student(columns: _Encoding, graph: Any) -> None:
    """Let the student's graph begin with the encoded columns."""
    if len(graph.input) != 1:
        raise DataError(f"The ONNX student has {len(graph.input)} inputs; it must have one.")
    entry, rounded = graph.input[0].name, False
    for node in graph.node:
        if node.op_type == "Cast" and node.input[0] == entry and node.attribute[0].i == _DOUBLE:
            node.input[0] = columns.encoded
        else:
            rounded = rounded or entry in node.input
    if rounded:
        columns.add("Cast", [columns.encoded], entry, to=_FLOAT)


def _name_outputs(columns: _Encoding, graph: Any, *, projected: bool) -> None:
    """Pass the outputs on under their names; a column of the same name keeps it."""
    if len(graph.output) > 2:
        raise DataError(f"The ONNX student has {len(graph.output)} outputs; it must have two.")
    for value, name in zip(graph.output, ("label", "probabilities"), strict=False):
        while name in columns.kinds:
            name += "_"
        if projected and value is graph.output[-1]:
            columns.add_projection(value.name, name, value.type.tensor_type.shape.dim[1].dim_value)
        else:
            columns.add("Identity", [value.name], name)
        value.name = name
