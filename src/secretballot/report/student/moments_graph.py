"""Linear models in a public basis as ONNX graphs: integers in double precision, as in Python."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secretballot._typing import FloatArray, IntArray
from secretballot.bases import KernelBasis, TableBasis
from secretballot.bases.columns import ONE, LevelColumn, NumberColumn
from secretballot.bases.exact_products import exact_in_floats
from secretballot.bases.integer_model import (
    CONSTANT,
    EXPONENTIALS,
    LARGEST_COORDINATE,
    PROBABILITY_UNIT,
    STEP_SHIFT,
)
from secretballot.bases.kernel import EXPONENT_STEPS, kernel_table
from secretballot.bases.vectors import MOST_DEVIATIONS, STEPS_PER_DEVIATION
from secretballot.exceptions import DataError
from secretballot.report.extras import require_extra
from secretballot.report.student.counts_graph import model_bytes

MOMENTS_STUDENT = "secretballot.students.moments_student.MomentsStudent"
RECORD_VOTES_STUDENT = "secretballot.students.record_votes.RecordVotesStudent"
_LARGEST = np.finfo(np.float64).max
_DOUBLE, _INTEGER = 11, 7  # ONNX's names of these types


def moments_graph(student: Any) -> bytes:
    """Return an ONNX model with the label and the probabilities that the student predicts.

    Parameters
    ----------
    student : MomentsStudent
        Of columns that hold numbers alone.

    Returns
    -------
    bytes
        Input ``X``: float32 of shape (n, n_features), NaN where a value is missing. Outputs
        ``label`` of shape (n,) and ``shares``, double, of shape (n, n_classes): the probabilities.
        All numbers inside are integers below 2^53, so they are those of the student.

    Raises
    ------
    MissingExtraError
        If onnx is not installed.
    DataError
        If a column holds texts, or sums are too large for doubles.
    """
    graph = _Graph()
    classes, weights = np.asarray(student.classes_), np.asarray(student.weights)
    if not exact_in_floats(weights, LARGEST_COORDINATE):
        raise DataError(_TOO_LARGE)
    coordinates = _add_basis(graph, student.basis)
    logits = _add_logits(graph, coordinates, weights)
    _add_shares(graph, logits)
    graph.add("ArgMax", [logits], "index", axis=1, keepdims=0)
    graph.add("Gather", ["classes", "index"], "label")
    return model_bytes(graph.nodes, graph.constants, classes, int(student.n_features_in_))


def record_votes_graph(student: Any) -> bytes:
    """Return an ONNX model with the label and the probabilities that the student predicts.

    Parameters
    ----------
    student : fitted RecordVotesStudent
        In a basis of this library, of columns that hold numbers alone.

    Returns
    -------
    bytes
        Input and outputs as of `moments_graph`. The coordinates are those of the student; what
        follows is computed in double precision, as in Python.

    Raises
    ------
    MissingExtraError
        If onnx is not installed.
    DataError
        If the basis is of another kind, a column holds texts, or sums are too large for doubles.
    """
    graph = _Graph()
    coordinates = _add_basis(graph, student.basis_)
    # the unit goes into the weights: a runtime may fuse a division by it in single precision
    weights = np.asarray(student.coef_).T / student._unit
    moved = graph.add("MatMul", [coordinates, graph.constant(weights)])
    logits = graph.add("Add", [moved, graph.constant(student.intercept_)])
    graph.add("Softmax", [logits], "shares", axis=1)
    graph.add("ArgMax", ["shares"], "index", axis=1, keepdims=0)
    graph.add("Gather", ["classes", "index"], "label")
    return model_bytes(
        graph.nodes, graph.constants, np.asarray(student.classes_), int(student.n_features_in_)
    )


_TOO_LARGE = (
    "Sums of this model leave the integers that ONNX's doubles hold; take a basis of fewer"
    " directions."
)


class _Graph:
    """Nodes and constants, as they are added."""

    def __init__(self) -> None:
        self._helper = require_extra("onnx.helper", "onnx")
        self.nodes: list[Any] = []
        self.constants: dict[str, NDArray[Any]] = {}

    def add(self, kind: str, inputs: list[str], output: str = "", **more: Any) -> str:
        """Add a node and return the name of its output."""
        name = output or f"v{len(self.nodes)}"
        self.nodes.append(self._helper.make_node(kind, inputs, [name], **more))
        return name

    def constant(self, value: Any, kind: Any = np.float64) -> str:
        """Add an array and return its name."""
        name = f"c{len(self.constants)}"
        self.constants[name] = np.ascontiguousarray(value, dtype=kind)
        return name

    def as_numbers(self, truths: str) -> str:
        """Return 1.0 where something holds, else 0.0."""
        return self.add("Cast", [truths], to=_DOUBLE)

    def times(self, left: str, number: float) -> str:
        return self.add("Mul", [left, self.constant([number])])


def _add_basis(graph: _Graph, basis: Any) -> str:
    """Add the map from cells to coordinates, and return its output.

    Raises
    ------
    DataError
        If the basis is of another kind, a column holds texts, or sums are too large for doubles.
    """
    if not isinstance(basis, TableBasis | KernelBasis):
        raise DataError(
            f"The basis {type(basis).__name__} has no ONNX form; use a TableBasis or a KernelBasis."
        )
    if not exact_in_floats(basis._rotation.weights, basis._rotation.largest_input):
        raise DataError(_TOO_LARGE)
    precise = graph.add("Cast", ["X"], to=_DOUBLE)
    add_features = _add_likeness if isinstance(basis, KernelBasis) else _add_columns
    features = add_features(graph, precise, basis)
    rotation = basis._rotation
    sums = graph.add("MatMul", [features, graph.constant(rotation.weights)])
    half = graph.constant((1 << (rotation.shift - 1)) - rotation.offset)
    shifted = graph.times(graph.add("Add", [sums, half]), 1 / (1 << rotation.shift))
    return graph.add("Floor", [shifted])


def _add_columns(graph: _Graph, cells: str, basis: TableBasis) -> str:
    """Add the features of every column of a table."""
    features = []
    for place, column in enumerate(basis._columns):
        own = graph.add("Gather", [cells, graph.constant([place], np.int64)], axis=1)
        if isinstance(column, LevelColumn):
            features += _add_levels(graph, own, column)
        else:
            features += _add_numbers(graph, own, column)
    return graph.add("Concat", features, axis=1)


def _add_likeness(graph: _Graph, cells: str, basis: KernelBasis) -> str:
    """Add the kernel of every landmark."""
    if basis.ranked:
        cells = _add_ranked(graph, cells, basis._sorted_values)
    apart = graph.add("Sub", [cells, graph.constant(basis._centre)])
    steps = graph.times(
        graph.add("Div", [apart, graph.constant(basis._spread)]), STEPS_PER_DEVIATION
    )
    known = graph.add("Where", [graph.add("IsNaN", [steps]), graph.constant([0.0]), steps])
    end = float(STEPS_PER_DEVIATION * MOST_DEVIATIONS)
    cut = graph.add("Max", [known, graph.constant([-end])])
    points = graph.add("Round", [graph.add("Min", [cut, graph.constant([end])])])
    landmarks = basis._landmarks
    lengths = _add_row_sums(graph, graph.add("Mul", [points, points]))
    products = graph.add("MatMul", [points, graph.constant(-2 * landmarks.T)])
    others = graph.constant((landmarks**2).sum(axis=1))
    squares = graph.add("Add", [graph.add("Add", [lengths, products]), others])
    scaled, median = graph.times(squares, EXPONENT_STEPS), graph.constant([basis._median])
    quotient = graph.add("Floor", [graph.add("Div", [scaled, median])])
    # a quotient that was rounded up to an integer leaves less than nothing
    rest = graph.add("Sub", [scaled, graph.add("Mul", [quotient, median])])
    too_many = graph.as_numbers(graph.add("Less", [rest, graph.constant([0.0])]))
    places = graph.add("Sub", [quotient, too_many])
    table = kernel_table()
    places = graph.add("Min", [places, graph.constant([len(table) - 1.0])])
    return graph.add("Gather", [graph.constant(table), graph.add("Cast", [places], to=_INTEGER)])


def _add_ranked(graph: _Graph, cells: str, sorted_values: Sequence[FloatArray]) -> str:
    """Add the rank of every cell in its column; what is missing stays so."""
    columns = []
    for place, values in enumerate(sorted_values):
        own = graph.add("Gather", [cells, graph.constant([place], np.int64)], axis=1)
        ranks = _add_ranks(graph, own, values) if len(values) else graph.constant([[0.0]])
        columns.append(graph.add("Where", [graph.add("IsNaN", [own]), own, ranks]))
    return graph.add("Concat", columns, axis=1)


def _add_levels(graph: _Graph, cells: str, column: LevelColumn) -> list[str]:
    """Add the features of levels, which must be numbers or missing."""
    if any(isinstance(level, str) for level in column.levels):
        raise DataError(
            "ONNX takes one array of numbers, and a column of the public points holds texts; encode"
            " them as numbers first."
        )
    return [
        graph.times(
            graph.as_numbers(
                graph.add("IsNaN", [cells])
                if level is None
                else graph.add("Equal", [cells, graph.constant([[level]])])
            ),
            ONE,
        )
        for level in column.levels
    ]


def _add_numbers(graph: _Graph, cells: str, column: NumberColumn) -> list[str]:
    """Add bins, rank, spike and missing values of a column of numbers."""
    absent = graph.add("IsNaN", [cells])
    # a missing cell goes on as 0: NaN would stay NaN in every product
    whole = graph.add("Where", [absent, graph.constant([[0.0]]), cells])
    values = graph.add("Max", [whole, graph.constant([[-_LARGEST]])])
    values = graph.add("Min", [values, graph.constant([[_LARGEST]])])
    missing, plain = graph.as_numbers(absent), graph.as_numbers(graph.add("Not", [absent]))
    spiked = None
    if column.spike is not None:
        equal = graph.as_numbers(graph.add("Equal", [values, graph.constant([[column.spike]])]))
        spiked = graph.add("Mul", [equal, plain])
        plain = graph.add("Sub", [plain, spiked])
    bins = plain
    if len(column.edges):
        reached = _add_reached(graph, values, column.edges)
        before = graph.add("Concat", [plain, reached], axis=1)
        after = graph.add("Concat", [reached, graph.times(plain, 0.0)], axis=1)
        bins = graph.add("Sub", [before, after])
    found = [graph.times(graph.add("Mul", [bins, plain]), ONE)]
    found.append(graph.add("Mul", [_add_ranks(graph, values, column.sorted_values), plain]))
    found += [] if spiked is None else [graph.times(spiked, ONE)]
    return [*found, *([graph.times(missing, ONE)] if column.missing else [])]


def _add_reached(graph: _Graph, values: str, thresholds: FloatArray) -> str:
    """Return, for every threshold, whether the value is at least as large."""
    return graph.as_numbers(
        graph.add("GreaterOrEqual", [values, graph.constant(thresholds[None, :])])
    )


def _add_ranks(graph: _Graph, values: str, sorted_values: FloatArray) -> str:
    """Add the rank among the pool's values, a step function, by its steps."""
    thresholds, steps = _rank_steps(sorted_values)
    reached = _add_reached(graph, values, thresholds)
    climbed = graph.add("MatMul", [reached, graph.constant(steps[:, None])])
    return graph.add("Add", [climbed, graph.constant([[-ONE]])])


def _rank_steps(sorted_values: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return where the rank climbs from -`ONE`, and how far: at a value, and right behind it."""
    distinct, below = np.unique(sorted_values, return_index=True)
    upto = np.append(below[1:], len(sorted_values))
    at = (below + upto) * ONE // len(sorted_values)
    behind = 2 * upto * ONE // len(sorted_values)
    thresholds = np.column_stack([distinct, np.nextafter(distinct, np.inf)]).ravel()
    steps = np.diff(np.column_stack([at, behind]).ravel(), prepend=0)
    # a value beyond the largest double is cut to it, and nothing is behind it
    climbs = (steps > 0) & np.isfinite(thresholds)
    return thresholds[climbs], steps[climbs]


def _add_logits(graph: _Graph, coordinates: str, weights: IntArray) -> str:
    """Add the linear functions; of two classes the first has logit 0."""
    cut = graph.add("Max", [coordinates, graph.constant([[-LARGEST_COORDINATE]])])
    cut = graph.add("Min", [cut, graph.constant([[LARGEST_COORDINATE]])])
    moved = graph.add("MatMul", [cut, graph.constant(weights[:-1])])
    logits = graph.add("Add", [moved, graph.constant(CONSTANT * weights[-1])])
    if weights.shape[1] == 1:
        return graph.add("Concat", [graph.times(logits, 0.0), logits], axis=1)
    return logits


def _add_shares(graph: _Graph, logits: str) -> None:
    """Add the softmax by its table of exponentials, and its rounding."""
    most = graph.add("ReduceMax", [logits], axes=[1], keepdims=1)
    apart = graph.times(graph.add("Sub", [most, logits]), 1 / (1 << STEP_SHIFT))
    last = graph.constant([[len(EXPONENTIALS) - 1.0]])
    below = graph.add("Min", [graph.add("Floor", [apart]), last])
    table = graph.constant(EXPONENTIALS)
    parts = graph.add("Gather", [table, graph.add("Cast", [below], to=_INTEGER)], axis=0)
    totals = _add_row_sums(graph, parts)
    half = graph.add("Floor", [graph.times(totals, 0.5)])
    raised = graph.add("Add", [graph.times(parts, PROBABILITY_UNIT), half])
    counts = graph.add("Floor", [graph.add("Div", [raised, totals])])
    graph.add("Div", [counts, _add_row_sums(graph, counts)], "shares")


def _add_row_sums(graph: _Graph, numbers: str) -> str:
    return graph.add("ReduceSum", [numbers, graph.constant([1], np.int64)], keepdims=1)
