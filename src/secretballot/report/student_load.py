"""A published student, as a stranger reads it: one ONNX file, checked before it runs.

onnxruntime executes no code of a file, but it computes what a file says: so operators are those of
students alone, without loops, files beside or operators of others, and sizes are bounded.
"""

import copy
import json
import math
import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pandas as pd
from numpy.typing import NDArray
from onnx import AttributeProto, TensorProto, helper
from sklearn.utils.metaestimators import available_if

from secretballot._typing import FloatArray, Json
from secretballot._validation import plain_line
from secretballot._written import with_point
from secretballot.exceptions import DataError
from secretballot.report.verification import read_regular

_LARGEST_FILE = 500 * 10**6  # bytes
_LARGEST_VALUE = 2**24  # numbers for one row
_MOST_LEVELS = 500  # of a tree
_CELLS_AT_ONCE = 2**23  # numbers of one value in memory
_MOST_ROWS = 4096  # at a time
_KINDS = {
    TensorProto.DOUBLE: 8,
    TensorProto.FLOAT: 4,
    TensorProto.INT64: 8,
    TensorProto.INT32: 4,
    TensorProto.BOOL: 1,
}
_ATTRIBUTES = {
    getattr(AttributeProto, kind)
    for kind in ("INT", "INTS", "FLOAT", "FLOATS", "STRING", "STRINGS", "TENSOR")
}
_OPERATORS = frozenset(
    re.findall(
        r"\w+",
        """
        Abs Add And ArgMax ArgMin Cast Clip Concat CumSum Div Equal Erf Exp Flatten Floor Gather
        Gemm Greater GreaterOrEqual Identity IsNaN Less LessOrEqual Log LogSoftmax MatMul Max
        Min Mul Neg Not Or Pow Reciprocal ReduceL1 ReduceL2 ReduceLogSumExp ReduceMax ReduceMean
        ReduceMin ReduceSum ReduceSumSquare RegexFullMatch Relu Reshape Round Sigmoid Sign
        Softmax Sqrt Squeeze Sub Sum Tanh TopK Transpose Unsqueeze Where
        """,
    )
)
_OF_MACHINE_LEARNING = frozenset(("LabelEncoder", "TreeEnsembleRegressor"))


def load_student(path: str | Path) -> "OnnxStudent":
    """Load the student of a release.

    Parameters
    ----------
    path : path
        ``student.onnx`` of a release folder.

    Raises
    ------
    DataError
        If the file cannot be read, is too large, or is not one that this program would write.

    Examples
    --------
    >>> student = sb.load_student("study/release/student.onnx")  # doctest: +SKIP
    >>> student.predict(pd.read_csv("new.csv"))  # doctest: +SKIP
    array(['no', 'yes'], dtype='<U3')
    """
    try:
        # a link may lead to it, as in a cache of files
        return OnnxStudent(read_regular(Path(path).resolve(), _LARGEST_FILE))
    except DataError as error:
        problem = f"{path} is no student: {error}".rstrip(".")
        raise DataError(plain_line(f"{problem}.")) from None


def _has_probabilities(student: Any) -> bool:
    return bool(student._has_shares)


class OnnxStudent:
    """A student that reads the raw columns of a table, or one matrix, by onnxruntime.

    Parameters
    ----------
    content : bytes
        The file.

    Attributes
    ----------
    content : bytes
    classes_ : ndarray of shape (n_classes,)
        Of a student of classes; of several labels 0 and 1 for each.
    labels : list of str
        Of a student of several labels.
    feature_names_in_ : ndarray of str, shape (n_inputs,)
        Columns that it reads.
    n_features_in_ : int
        Columns of the encoded matrix.
    reads_a_table : bool
        Whether it reads raw columns by their names.

    Raises
    ------
    DataError
        If the content is no student.
    """

    def __init__(self, content: bytes) -> None:
        self.content = content
        model, widths = _checked_model(content)
        about = _about(model)
        self._encoded = str(about.get("encoded", ""))
        self._commas = about.get("commas", [])
        kinds = [(one.name, one.type.tensor_type) for one in model.graph.input]
        self._inputs = [
            (name, kind.elem_type == TensorProto.STRING, kind.shape.dim[1].dim_value)
            for name, kind in kinds
        ]
        self._has_shares = len(model.graph.output) == 2
        self.feature_names_in_ = np.array([name for name, _, _ in self._inputs], dtype=object)
        self.reads_a_table = [*self.feature_names_in_] != [self._encoded]
        known = not self._encoded or self._encoded in widths
        _require(known, "it has no encoded columns of that name")
        self.n_features_in_ = widths.get(self._encoded, len(self._inputs))
        self._block = max(1, min(_MOST_ROWS, _CELLS_AT_ONCE // max(widths.values())))
        if "classes" in about:
            self.classes_: Any = np.asarray(about["classes"])
            _require(self.classes_.ndim == 1 and len(self.classes_) > 0, "it has no classes")
        if "labels" in about:
            self.labels = [str(name) for name in about["labels"]]
            self.classes_ = [np.array([0, 1]) for _ in self.labels]
        _ = self._session  # what onnxruntime refuses is refused here

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of every row, shape (n_rows,); the number; or which labels it has, 0 and
        1 of shape (n_rows, n_labels).

        Parameters
        ----------
        X : frame or mapping of n_rows cells by column; array of shape (n_rows, n_features)
            Raw cells: numbers, texts as a file has them, vectors. An array holds encoded rows, as
            `data.Schema.encode` returns them, or rows as the release was made of.

        Raises
        ------
        DataError
            If a column is missing.
        """
        said = self._run(X)[0]
        if hasattr(self, "labels") or not hasattr(self, "classes_"):
            return said
        places = {_text(value): place for place, value in enumerate(self.classes_.tolist())}
        index = [places.get(_text(value), -1) for value in said.ravel().tolist()]
        _require(-1 not in index, "The student answers something else than its classes.")
        values: NDArray[Any] = self.classes_[np.array(index, dtype=np.int64)]
        return values

    # scikit-learn ships no types
    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each class, or label, shape (n_rows, n_classes or n_labels).

        Raises
        ------
        DataError
            If a column is missing.
        """
        return np.asarray(self._run(X)[1], dtype=np.float64)

    def __getstate__(self) -> dict[str, Any]:
        made = ("_session", "_of_encoded")
        return {key: value for key, value in vars(self).items() if key not in made}

    @cached_property
    def _of_encoded(self) -> "OnnxStudent":
        """The student without the encoding of raw columns."""
        model = onnx.load_from_string(self.content)
        graph, needed, nodes = model.graph, {one.name for one in model.graph.output}, []
        for node in reversed(graph.node):
            if needed & {*node.output} and self._encoded not in node.output:
                nodes.append(node)
                needed |= {*node.input}
        entry = helper.make_tensor_value_info(
            self._encoded, TensorProto.DOUBLE, [None, self.n_features_in_]
        )
        tensors = [one for one in graph.initializer if one.name in needed]
        part = helper.make_graph(nodes[::-1], graph.name, [entry], list(graph.output), tensors)
        graph.CopyFrom(part)
        return OnnxStudent(model.SerializeToString(deterministic=True))

    @cached_property
    def _session(self) -> Any:
        import onnxruntime  # opens files, which the process that waits for jobs must not

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4  # what is wrong is raised
        options.intra_op_num_threads = 1
        try:
            return onnxruntime.InferenceSession(
                self.content, options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # its errors have no common type
            raise DataError(f"onnxruntime refuses it ({type(error).__name__})") from None

    def _run(self, X: Any) -> list[NDArray[Any]]:
        """Return what the model computes, block by block."""
        by_name = isinstance(X, pd.DataFrame | Mapping)
        if not by_name and self._encoded and self.reads_a_table:
            return self._of_encoded._run(X)
        inputs = self._arrays(X)
        n_rows = len(next(iter(inputs.values())))
        try:
            blocks = [
                self._session.run(
                    None, {name: one[at : at + self._block] for name, one in inputs.items()}
                )
                for at in range(0, max(1, n_rows), self._block)
            ]
            return [np.concatenate(parts) for parts in zip(*blocks, strict=True)]
        except MemoryError:
            raise
        except Exception as error:  # of its own kinds; want of memory is seen by its words
            problem = type(error).__name__
            raise DataError(f"The student cannot read these rows ({problem}).") from None

    def _arrays(self, X: Any) -> dict[str, NDArray[Any]]:
        if not self.reads_a_table:
            matrix = X.toarray() if hasattr(X, "toarray") else X
            return {self._encoded: np.asarray(matrix, dtype=np.float64)}
        by_name = isinstance(X, pd.DataFrame | Mapping)
        frame = X if by_name else pd.DataFrame(X, columns=self.feature_names_in_)
        missing = [name for name, _, _ in self._inputs if name not in frame]
        if missing:
            raise DataError(f"The table lacks the columns {', '.join(missing[:10])}.")
        return {
            name: _texts(frame[name]) if of_texts else self._numbers(name, frame[name], width)
            for name, of_texts, width in self._inputs
        }

    def _numbers(self, name: str, cells: Any, width: int) -> FloatArray:
        if width > 1:
            return np.array([_vector(cell, width) for cell in cells]).reshape(-1, width)
        column = pd.Series(cells)
        if column.dtype.kind in "biuf":
            return column.to_numpy(dtype=np.float64, na_value=math.nan).reshape(-1, 1)
        # one by one, as pandas before 3 may round a text to the neighbour of its number
        comma = name in self._commas
        return np.array([_number(cell, comma) for cell in column]).reshape(-1, 1)


def _number(cell: Any, comma: bool) -> float:
    try:
        return float(with_point(cell) if comma and isinstance(cell, str) else cell)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _text(value: object) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _texts(cells: Any) -> NDArray[Any]:
    texts = ["" if pd.isna(cell) is True else str(cell).strip() for cell in list(cells)]
    return np.array(texts, dtype=object).reshape(-1, 1)


def _vector(cell: Any, width: int) -> FloatArray:
    """Return the numbers of a list, an array, or a text such as "[0.5, -1]"; nan for others."""
    try:
        numbers = np.asarray(json.loads(cell) if isinstance(cell, str) else cell, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.empty(0)
    return numbers if numbers.shape == (width,) else np.full(width, math.nan)


def _require(holds: object, problem: str) -> None:
    if not holds:
        raise DataError(problem)


def _checked_model(content: bytes) -> tuple[Any, dict[str, int]]:
    """Return the model in a file, and how many numbers each of its values has for one row."""
    try:
        model = onnx.load_from_string(content)
    except Exception:  # protobuf's own errors
        raise DataError("it is no ONNX file") from None
    graph = model.graph
    domains = {one.domain for one in model.opset_import}
    odd = model.functions or model.training_info or graph.sparse_initializer
    plain = domains <= {"", "ai.onnx.ml"} and not (odd or graph.quantization_annotation)
    _require(plain, "it holds functions, or operators of others")
    for node in graph.node:
        _check_node(node)
    for tensor in graph.initializer:
        _check_tensor(tensor)
    few = len(graph.input) > 0 and 1 <= len(graph.output) <= 2
    _require(few, "it has other inputs or outputs")
    for kind in (value.type.tensor_type for value in graph.input):
        known = kind.elem_type in (TensorProto.DOUBLE, TensorProto.STRING)
        table = known and len(kind.shape.dim) == 2 and kind.shape.dim[1].dim_value > 0
        _require(table, "an input of it is no table")
    widths = _widths(model)
    for node in graph.node:
        if node.op_type == "TreeEnsembleRegressor":
            _check_trees(node, widths[node.input[0]])
    return model, widths


def _check_node(node: Any) -> None:
    """Refuse operators that no student needs, and graphs inside of nodes, such as loops."""
    known = {"": _OPERATORS, "ai.onnx.ml": _OF_MACHINE_LEARNING}.get(node.domain, ())
    _require(node.op_type in known, f"it uses the operator {node.op_type[:40]!r}")
    for attribute in node.attribute:
        plain = attribute.type in _ATTRIBUTES and not attribute.ref_attr_name
        _require(plain, "an attribute of it is of an odd kind")
        if attribute.type == AttributeProto.TENSOR:
            _check_tensor(attribute.t)


def _check_tensor(tensor: Any) -> None:
    """Refuse data in other files, and arrays that are not as long as they say."""
    here = tensor.data_location == TensorProto.DEFAULT and not tensor.external_data
    _require(here, "it refers to another file")
    found = len(tensor.raw_data) / _KINDS.get(tensor.data_type, math.nan)
    if tensor.data_type == TensorProto.STRING:
        found = len(tensor.string_data)
    whole = all(one >= 0 for one in tensor.dims) and math.prod(tensor.dims) == found
    _require(whole, "an array of it is not as long as it says")


def _widths(model: Any) -> dict[str, int]:
    """Return how many numbers each value has for one row: the product of all dimensions that are
    known, of which one may be that of the rows."""
    known = copy.deepcopy(model)
    try:
        onnx.checker.check_model(model)
        for node in known.graph.node:
            # the library's inference ends the process where this operator's input has no type
            if node.op_type == "LabelEncoder":
                cast = helper.make_node("Cast", node.input, node.output, to=TensorProto.INT64)
                node.CopyFrom(cast)
        graph = onnx.shape_inference.infer_shapes(known, strict_mode=True).graph
    except Exception:  # of the library, which have no common type
        raise DataError("its shapes do not fit") from None
    widths: dict[str, int] = {}
    for value in (*graph.value_info, *graph.input, *graph.output):
        kind = value.type.tensor_type
        sizes = [one.dim_value for one in kind.shape.dim if one.dim_value > 0]
        shaped = kind.HasField("shape") and len(kind.shape.dim) - len(sizes) <= 1
        _require(shaped, "its shapes are not known")
        widths[value.name] = math.prod(sizes)
        _require(widths[value.name] <= _LARGEST_VALUE, "a value of it is too large")
    every = all(name in widths for node in graph.node for name in node.output if name)
    _require(every, "its shapes are not known")
    return widths


def _check_trees(node: Any, width: int) -> None:
    """Refuse trees that lead elsewhere than down, as a row would go round for ever; too deep ones,
    as onnxruntime reads them by recursion; and questions about columns that there are not."""
    about = {one.name: helper.get_attribute_value(one) for one in node.attribute}
    # each a text as long as the file says
    inner = np.array([mode != b"LEAF" for mode in about.get("nodes_modes", [])], dtype=bool)
    names = "treeids", "nodeids", "truenodeids", "falsenodeids", "featureids"
    numbers = [np.array(about.get(f"nodes_{name}", [])) for name in names]
    _require({len(one) for one in numbers} == {len(inner)}, "its trees are not whole")
    tree, own, left, right, feature = (one[inner] for one in numbers)
    _require(((feature >= 0) & (feature < width)).all(), "a tree of it asks for no column")
    # in every tree the numbers of nodes rise along each way; onnxruntime reads 32 bits of them
    down = (np.minimum(left, right) > own) & (np.maximum(left, right) < len(inner))
    _require(down.all(), "a tree of it leads beyond itself, or in circles")
    levels: dict[tuple[int, int], int] = {}
    # parents first
    for of, at, *below in sorted(
        zip(*(one.tolist() for one in (tree, own, left, right)), strict=True)
    ):
        level = levels.get((of, at), 0) + 1
        for child in below:
            levels[of, child] = max(level, levels.get((of, child), 0))
    _require(max(levels.values(), default=0) <= _MOST_LEVELS, "a tree of it is too deep")


def _about(model: Any) -> Json:
    """Return what the metadata of a model say, as JSON values."""
    try:
        about = {one.key: json.loads(one.value) for one in model.metadata_props}
    except (ValueError, RecursionError):
        about = {"classes": None}
    lists = [about.get(name, []) for name in ("classes", "labels", "commas")]
    plain = all(
        isinstance(found, list) and all(isinstance(one, str | int | float) for one in found)
        for found in lists
    )
    _require(plain, "its metadata are none of a student")
    return about
