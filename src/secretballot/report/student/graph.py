"""ONNX graphs, node by node: the same nodes and constants give the same bytes."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

DOUBLE, TEXT, INTEGER, FLOAT = (
    TensorProto.DOUBLE,
    TensorProto.STRING,
    TensorProto.INT64,
    TensorProto.FLOAT,
)
#: Operators of 2023, which onnxruntime reads from version 1.17 on.
OPSETS = {"": 20, "ai.onnx.ml": 3}
_IR_VERSION = 9
_OF_MACHINE_LEARNING = ("LabelEncoder", "TreeEnsembleRegressor")
#: Cells that say that nothing is known, as in the package (`data.cells`).
MISSING_TEXTS = r"(?i)\s*(?:\?|na|n/a|nan|none|null)?\s*"


class Graph:
    """Nodes and constants, as they are added. All numbers inside are doubles of shape (n, width).

    Parameters
    ----------
    taken : iterable of str
        Names of inputs, which no name inside may begin with.
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._prefix, names = "v", list(taken)
        while any(name.startswith(self._prefix) for name in names):
            self._prefix += "_"
        self._count = 0
        self.nodes: list[Any] = []
        self._tensors: dict[str, Any] = {}
        self._inputs: list[Any] = []

    def input(self, name: str, kind: int, width: int) -> str:
        """Declare an input of shape (n, width)."""
        self._inputs.append(helper.make_tensor_value_info(name, kind, [None, width]))
        return name

    def new_name(self) -> str:
        """Return a name that nothing has so far."""
        self._count += 1
        return f"{self._prefix}{self._count}"

    def add(self, kind: str, inputs: Sequence[str], **attributes: Any) -> str:
        """Add a node with one output and return the name of it."""
        domain = "ai.onnx.ml" if kind in _OF_MACHINE_LEARNING else ""
        name = self.new_name()
        self.nodes.append(helper.make_node(kind, list(inputs), [name], domain=domain, **attributes))
        return name

    def add_nearest(self, distances: str, k: int) -> tuple[str, str]:
        """Add the k least of the numbers of each row, ascending, the first of equal ones first, and
        their places."""
        least = self.new_name()
        names = [least, f"{least}_places"]
        inputs = [distances, self.constant([k], np.int64)]
        self.nodes.append(helper.make_node("TopK", inputs, names, axis=1, largest=0))
        return names[0], names[1]

    def constant(self, value: Any, kind: Any = np.float64) -> str:
        """Add an array, of objects for texts, and return its name."""
        name = self.new_name()
        array = np.ascontiguousarray(value, dtype=kind).reshape(np.shape(value))
        self._tensors[name] = numpy_helper.from_array(array, name)
        return name

    def as_numbers(self, values: str) -> str:
        """Return 1.0 where something holds, else 0.0; integers as doubles."""
        return self.add("Cast", [values], to=DOUBLE)

    def times(self, left: str, number: Any) -> str:
        """Return the product with a constant."""
        return self.add("Mul", [left, self.constant(number)])

    def plus(self, left: str, number: Any) -> str:
        """Return the sum with a constant."""
        return self.add("Add", [left, self.constant(number)])

    def product(self, left: str, matrix: Any) -> str:
        """Return the matrix product with a constant."""
        return self.add("MatMul", [left, self.constant(matrix)])

    def sums(self, numbers: str, axis: int = 1, *, keep: bool = True) -> str:
        """Return the sum of each row."""
        places = self.constant([axis], np.int64)
        return self.add("ReduceSum", [numbers, places], keepdims=int(keep))

    def clipped(self, numbers: str, low: Any, high: Any) -> str:
        """Return numbers within bounds."""
        above = self.add("Max", [numbers, self.constant(low)])
        return self.add("Min", [above, self.constant(high)])

    def columns(self, numbers: str, places: Sequence[int]) -> str:
        """Return some columns."""
        return self.add("Gather", [numbers, self.constant(places, np.int64)], axis=1)

    def joined(self, parts: Sequence[str]) -> str:
        """Return columns beside each other."""
        return self.add("Concat", parts, axis=1)

    def quotient(self, numbers: str, number: float) -> str:
        """Return the whole part of a quotient with a constant; exact for integers below 2^52."""
        return self.add("Floor", [self.add("Div", [numbers, self.constant(number)])])

    def where(self, truths: str, yes: str, no: str) -> str:
        """Return one or the other."""
        return self.add("Where", [truths, yes, no])

    def flat(self, values: str) -> str:
        """Return values of shape (n, 1) as (n,)."""
        return self.add("Reshape", [values, self.constant([-1], np.int64)])

    def zeros(self, numbers: str, width: int) -> str:
        """Return as many rows of zeros."""
        first = self.columns(numbers, [0])
        nothing = self.times(self.as_numbers(self.add("Equal", [first, first])), 0.0)
        return self.plus(nothing, np.zeros((1, width)))

    def add_inner(self, model: Any, entry: str) -> list[str]:
        """Add another model of one input, and return the names of its outputs."""
        inner = model.graph
        names = {"": "", inner.input[0].name: entry}
        for one in inner.initializer:
            array = numpy_helper.to_array(one)
            names[one.name] = self.constant(array, array.dtype)
        for node in inner.node:
            kind, domain = node.op_type, node.domain
            inputs = [names[name] for name in node.input]
            attributes = {one.name: helper.get_attribute_value(one) for one in node.attribute}
            if kind == "ArrayFeatureExtractor":  # Gather looks at its indices more closely
                inputs[1], kind, domain = self.flat(inputs[1]), "Gather", ""
                attributes = {"axis": -1}
            first = self.new_name()
            for place, name in enumerate(node.output):
                names[name] = f"{first}_{place}"
            outputs = [names[name] for name in node.output]
            self.nodes.append(helper.make_node(kind, inputs, outputs, domain=domain, **attributes))
        return [names[value.name] for value in inner.output]

    def to_bytes(
        self, outputs: Mapping[str, tuple[str, int, list[Any]]], about: Mapping[str, Any]
    ) -> bytes:
        """Return the model.

        Parameters
        ----------
        outputs : mapping
            Name, type and shape of each output, by the name inside.
        about : mapping
            What its metadata say, as JSON values.

        Raises
        ------
        onnx.checker.ValidationError
            If a node is none.
        """
        infos = []
        for inside, (name, kind, shape) in outputs.items():
            self.nodes.append(helper.make_node("Identity", [inside], [name]))
            infos.append(helper.make_tensor_value_info(name, kind, shape))
        graph = helper.make_graph(
            self.nodes, "student", self._inputs, infos, list(self._tensors.values())
        )
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid(*pair) for pair in OPSETS.items()],
            ir_version=_IR_VERSION,
        )
        helper.set_model_props(model, {key: json.dumps(value) for key, value in about.items()})
        onnx.checker.check_model(model)
        return bytes(model.SerializeToString(deterministic=True))
