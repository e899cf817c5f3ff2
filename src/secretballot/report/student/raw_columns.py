"""A student's ONNX graph with the encoding of raw columns inside: a stranger gives the cells of a
table."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from secretballot._typing import FloatArray
from secretballot.exceptions import DataError
from secretballot.report.extras import require_extra
from secretballot.report.student.onnx_names import rename_values

__all__ = ["INPUT_TYPES", "RawRows", "raw_columns_graph"]

#: Kinds of columns that become features, with the type of their input.
INPUT_TYPES = {"numeric": "tensor(double)", "categorical": "tensor(string)"}
#: Numbers beyond this size count as missing, as in the package (`datasets.cells`).
LARGEST_NUMBER = 1e30
_DOUBLE, _FLOAT = 11, 1  # ONNX's names of these types
_TEXTS, _TEXTS_VERSION = "ai.onnx.ml", 2  # the operators that look texts up
_INNER = "student "  # before the names inside of the student's own graph


@dataclass(frozen=True, eq=False)
class RawRows:
    """Public rows before and after their encoding, by which a graph is checked.

    Attributes
    ----------
    cells : mapping of str to sequence
        For each column that becomes a feature: numbers, nan where nothing is known; or texts.
    X : ndarray of shape (n_rows, n_features)
        As the package encodes them.
    """

    cells: Mapping[str, Sequence[Any]]
    X: FloatArray

    def inputs(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return the cells as the inputs of the graph."""
        return {
            name: np.array(
                self.cells[name], dtype=np.float64 if kind == "numeric" else object
            ).reshape(-1, 1)
            for name, kind in _kinds(schema).items()
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
        One input of shape (n, 1) for each column, under its name: double for numbers, NaN where
        nothing is known; string for categories, "" where nothing is known. Outputs ``label`` of
        shape (n,) and ``probabilities`` of shape (n, n_classes), where the model has them. The
        metadata name the classes.

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
    _connect(columns, inner.graph)
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


def _kinds(schema: Mapping[str, Any]) -> dict[str, str]:
    """Return the kind of each column that becomes a feature."""
    columns: Mapping[str, Mapping[str, Any]] = schema["columns"]
    return {name: one["kind"] for name, one in columns.items() if one["kind"] in INPUT_TYPES}


class _Encoding:
    """Nodes and constants that encode raw columns, as `datasets.columns` does."""

    def __init__(self, helper: Any, schema: Mapping[str, Any]) -> None:
        self.helper = helper
        self.kinds = _kinds(schema)
        self.nodes: list[Any] = []
        self._constants: dict[str, Any] = {}
        if not self.kinds:
            raise DataError("The schema has no column that becomes a feature.")
        parts = []
        for name, kind in self.kinds.items():
            add = self._add_numbers if kind == "numeric" else self._add_categories
            parts += add(name, schema["columns"][name])
        self.encoded = self.add("Concat", parts, axis=1)

    def add(self, kind: str, inputs: Sequence[str], output: str = "", **more: Any) -> str:
        """Add a node and return the name of its output."""
        name = output or f"raw value {len(self.nodes)}"
        self.nodes.append(self.helper.make_node(kind, list(inputs), [name], **more))
        return name

    def inputs(self) -> list[Any]:
        """Return an input for each column."""
        kinds = {"numeric": _DOUBLE, "categorical": 8}  # 8: string
        return [
            self.helper.make_tensor_value_info(name, kinds[kind], [None, 1])
            for name, kind in self.kinds.items()
        ]

    def tensors(self) -> list[Any]:
        """Return the constants."""
        numpy_helper = require_extra("onnx.numpy_helper", "onnx")
        return [numpy_helper.from_array(value, name) for name, value in self._constants.items()]

    def add_projection(self, shares: str, output: str, n_classes: int) -> None:
        """Add the nearest probabilities: what is left above the one level at which they are 1
        together."""
        places = self._constant([n_classes], np.int64)
        descending = f"{output} sorted"
        names = [descending, f"{output} order"]
        self.nodes.append(self.helper.make_node("TopK", [shares, places], names, axis=1))
        sums = self.add("CumSum", [descending, self._constant(1, np.int64)])
        over = self.add("Sub", [sums, self._constant([[1.0]])])
        levels = self.add("Div", [over, self._constant([range(1, n_classes + 1)])])
        level = self.add("ReduceMax", [levels], axes=[1], keepdims=1)
        above = self.add("Sub", [shares, level])
        self.add("Max", [above, self._constant([[0.0]])], output)

    def _constant(self, value: Any, kind: Any = np.float64) -> str:
        name = f"raw constant {len(self._constants)}"
        self._constants[name] = np.array(value, dtype=kind)
        return name

    def _add_numbers(self, name: str, column: Mapping[str, Any]) -> list[str]:
        """Add the median where nothing is known, centre and scale."""
        largest = self._constant([[LARGEST_NUMBER]])
        size = self.add("Abs", [name])
        absent = self.add("Not", [self.add("LessOrEqual", [size, largest])])
        known = self.add("Where", [absent, self._constant([[column["median"]]]), name])
        centred = self.add("Sub", [known, self._constant([[column["center"]]])])
        scaled = self.add("Div", [centred, self._constant([[column["scale"]]])])
        above = self.add("Max", [scaled, self._constant([[-LARGEST_NUMBER]])])
        parts = [self.add("Min", [above, largest])]
        if column["indicator"]:
            parts.append(self.add("Cast", [absent], to=_DOUBLE))
        return parts

    def _add_categories(self, name: str, column: Mapping[str, Any]) -> list[str]:
        """Add one column for each category, and the one of all others."""
        categories = column["categories"]
        places = _spellings(categories)
        place = self.add(
            "LabelEncoder",
            [name],
            domain=_TEXTS,
            keys_strings=list(places),
            values_int64s=list(places.values()),
            default_int64=len(categories),
        )
        each = self._constant([range(len(categories) + 1)], np.int64)
        return [self.add("Cast", [self.add("Equal", [place, each])], to=_DOUBLE)]


def _spellings(categories: Sequence[str]) -> dict[str, int]:
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


def _connect(columns: _Encoding, graph: Any) -> None:
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
