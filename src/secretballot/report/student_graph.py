"""ONNX graphs, node by node: the same nodes and constants give the same bytes."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from secretballot._typing import JsonView

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

    def input(self, name: str, kind: int, width: int) -> "Value":
        """Declare an input of shape (n, width)."""
        self._inputs.append(helper.make_tensor_value_info(name, kind, [None, width]))
        return Value(self, name)

    def new_name(self) -> str:
        """Return a name that nothing has so far."""
        self._count += 1
        return f"{self._prefix}{self._count}"

    def add(self, kind: str, *inputs: "Value", **attributes: Any) -> "Value":
        """Add a node with one output and return it."""
        domain = "ai.onnx.ml" if kind in _OF_MACHINE_LEARNING else ""
        names, name = [one.name for one in inputs], self.new_name()
        self.nodes.append(helper.make_node(kind, names, [name], domain=domain, **attributes))
        return Value(self, name)

    def constant(self, value: Any, kind: Any = np.float64) -> "Value":
        """Add an array, of objects for texts."""
        name = self.new_name()
        array = np.ascontiguousarray(value, dtype=kind).reshape(np.shape(value))
        self._tensors[name] = numpy_helper.from_array(array, name)
        return Value(self, name)

    def integers(self, value: Any) -> "Value":
        """Add an array of integers."""
        return self.constant(value, np.int64)

    def joined(self, parts: Sequence["Value"]) -> "Value":
        """Return columns beside each other."""
        return self.add("Concat", *parts, axis=1)

    def add_inner(self, model: Any, entry: "Value") -> list["Value"]:
        """Add another model of one input, and return its outputs."""
        inner = model.graph
        names = {"": "", inner.input[0].name: entry.name}
        for one in inner.initializer:
            array = numpy_helper.to_array(one)
            names[one.name] = self.constant(array, array.dtype).name
        for node in inner.node:
            kind, domain = node.op_type, node.domain
            inputs = [names[name] for name in node.input]
            attributes = {one.name: helper.get_attribute_value(one) for one in node.attribute}
            if kind == "ArrayFeatureExtractor":  # Gather looks at its indices more closely
                inputs[1], kind, domain = Value(self, inputs[1]).flat().name, "Gather", ""
                attributes = {"axis": -1}
            first = self.new_name()
            for place, name in enumerate(node.output):
                names[name] = f"{first}_{place}"
            outputs = [names[name] for name in node.output]
            self.nodes.append(helper.make_node(kind, inputs, outputs, domain=domain, **attributes))
        return [Value(self, names[value.name]) for value in inner.output]

    def to_bytes(self, outputs: Sequence["Output"], about: JsonView) -> bytes:
        """Return the model.

        Parameters
        ----------
        outputs : sequence
            Each output, with its name and type, and how many columns it has, None for no second
            dimension.
        about : mapping
            What its metadata say, as JSON values.

        Raises
        ------
        onnx.checker.ValidationError
            If a node is none.
        """
        infos = []
        for value, name, kind, width in outputs:
            shape = [None] if width is None else [None, width]
            self.nodes.append(helper.make_node("Identity", [value.name], [name]))
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


def _binary(kind: str) -> Callable[["Value", Any], "Value"]:
    def add(self: "Value", other: Any) -> "Value":
        right = other if isinstance(other, Value) else self.graph.constant(other)
        return self.graph.add(kind, self, right)

    return add


def _unary(kind: str, **attributes: Any) -> Callable[["Value"], "Value"]:
    return lambda self: self.graph.add(kind, self, **attributes)


class Value:
    """What a node of a graph computes; its operators add further nodes.

    The other side of an operator is a value, or an array of doubles.
    """

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph, self.name = graph, name

    __add__ = _binary("Add")
    __sub__ = _binary("Sub")
    __mul__ = _binary("Mul")
    __truediv__ = _binary("Div")
    __matmul__ = _binary("MatMul")
    __lt__ = _binary("Less")
    __le__ = _binary("LessOrEqual")
    __gt__ = _binary("Greater")
    __ge__ = _binary("GreaterOrEqual")
    __and__ = _binary("And")
    __or__ = _binary("Or")
    __invert__ = _unary("Not")
    __neg__ = _unary("Neg")
    __abs__ = _unary("Abs")
    equals = _binary("Equal")
    at_most = _binary("Min")
    at_least = _binary("Max")
    is_nan = _unary("IsNaN")
    floor = _unary("Floor")
    rounded = _unary("Round")
    root = _unary("Sqrt")
    exp = _unary("Exp")
    softmax = _unary("Softmax", axis=1)
    largest_place = _unary("ArgMax", axis=1, keepdims=0)
    as_numbers = _unary("Cast", to=DOUBLE)
    as_integers = _unary("Cast", to=INTEGER)

    def __rsub__(self, number: Any) -> "Value":
        return self.graph.constant(number) - self

    def __floordiv__(self, number: float) -> "Value":
        """Return the whole part of a quotient; exact for integers below 2^52."""
        return (self / number).floor()

    def __mod__(self, number: float) -> "Value":
        """Return what is left of it."""
        return self - self // number * number

    def sums(self, axis: int = 1, *, keep: bool = True) -> "Value":
        """Return the sum of each row."""
        return self.graph.add("ReduceSum", self, self.graph.integers([axis]), keepdims=int(keep))

    def highest(self) -> "Value":
        """Return the largest number of each row."""
        return self.graph.add("ReduceMax", self, self.graph.integers([1]), keepdims=1)

    def nearest(self, k: int) -> tuple["Value", "Value"]:
        """Return the k least of the numbers of each row, ascending, the first of equal ones first,
        and their places."""
        least = self.graph.new_name()
        inputs, names = [self.name, self.graph.integers([k]).name], [least, f"{least}_places"]
        self.graph.nodes.append(helper.make_node("TopK", inputs, names, axis=1, largest=0))
        return Value(self.graph, names[0]), Value(self.graph, names[1])

    def rows_of(self, array: Any, kind: Any = np.float64) -> "Value":
        """Return the rows of an array at these places, integers."""
        return self.graph.add("Gather", self.graph.constant(array, kind), self)

    def clipped(self, low: Any, high: Any) -> "Value":
        """Return numbers within bounds."""
        return self.at_least(low).at_most(high)

    def columns(self, places: Sequence[int]) -> "Value":
        """Return some columns."""
        return self.graph.add("Gather", self, self.graph.integers(places), axis=1)

    def matches(self, pattern: str) -> "Value":
        """Return which texts a pattern of RE2 matches as a whole."""
        return self.graph.add("RegexFullMatch", self, pattern=pattern)

    def places_among(self, places: Mapping[Any, int], other: int) -> "Value":
        """Return the place of each text, or integer, in integers of the same shape."""
        # the operator wants one key at least; no cell of a table is this one
        keys, values = [*places] or ["\0"], [*places.values()] or [other]
        kind = "keys_strings" if isinstance(keys[0], str) else "keys_int64s"
        more = {"values_int64s": values, "default_int64": other, kind: keys}
        return self.graph.add("LabelEncoder", self, **more)

    def in_single(self) -> "Value":
        """Return numbers rounded to single precision."""
        return self.graph.add("Cast", self, to=FLOAT).as_numbers()

    def where(self, yes: Any, no: Any) -> "Value":
        """Return one where something holds, else the other."""
        both = (one if isinstance(one, Value) else self.graph.constant(one) for one in (yes, no))
        return self.graph.add("Where", self, *both)

    def flat(self) -> "Value":
        """Return values of shape (n, 1) as (n,)."""
        return self.graph.add("Reshape", self, self.graph.integers([-1]))

    def with_axis(self, axis: int) -> "Value":
        """Return the same with one more axis of length 1."""
        return self.graph.add("Unsqueeze", self, self.graph.integers([axis]))

    def zeros(self, width: int) -> "Value":
        """Return as many rows of zeros."""
        first = self.columns([0])
        return first.equals(first).as_numbers() * 0.0 + np.zeros((1, width))


Output = tuple[Value, str, int, int | None]
