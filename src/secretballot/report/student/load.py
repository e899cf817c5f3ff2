"""A published student, as a stranger reads it: one ONNX file, checked before it runs.

onnxruntime executes no code of a file, but it computes what a file says: so operators are those of
students alone, without loops, files beside or operators of others, and sizes are bounded.
"""

import copy
import json
import math
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pandas as pd
from numpy.typing import NDArray
from onnx import AttributeProto, TensorProto, helper, numpy_helper
from sklearn.utils.metaestimators import available_if

from secretballot._numbers import with_point
from secretballot._times import duration_seconds
from secretballot._typing import FloatArray
from secretballot._validation import plain_line
from secretballot.exceptions import DataError
from secretballot.report.certificate.fields import read_regular

LARGEST_FILE = 500 * 10**6  # bytes
_LARGEST_VALUE = 2**24  # numbers for one row
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
    place = Path(path)
    try:
        # a link may lead to it, as in a cache of files
        return OnnxStudent(read_regular(place.resolve(), LARGEST_FILE))
    except DataError as error:
        problem = f"{path} is no student: {error}"
    raise DataError(plain_line(problem.rstrip(".") + "."))


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
        self._lengths, self._commas = about.get("durations", []), about.get("commas", [])
        self._hashed = about.get("hashed", [])
        self._inputs = [
            (
                one.name,
                one.type.tensor_type.elem_type == TensorProto.STRING,
                one.type.tensor_type.shape.dim[1].dim_value,
            )
            for one in model.graph.input
        ]
        self._has_shares = len(model.graph.output) == 2
        self.feature_names_in_ = np.array([name for name, _, _ in self._inputs], dtype=object)
        self.reads_a_table = [*self.feature_names_in_] != [self._encoded]
        _refuse_unless(
            not self._encoded or self._encoded in widths, "it has no encoded columns of that name"
        )
        self.n_features_in_ = widths.get(self._encoded, len(self._inputs))
        self._block = max(1, min(_MOST_ROWS, _CELLS_AT_ONCE // max(widths.values())))
        if "classes" in about:
            self.classes_: Any = np.asarray(about["classes"])
            _refuse_unless(self.classes_.ndim == 1 and len(self.classes_) > 0, "it has no classes")
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
        _refuse_unless(-1 not in index, "The student answers something else than its classes.")
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
        for name in self._hashed:
            if any(isinstance(cell, str) for cell in frame[name]):
                raise DataError(
                    f"The column {name} holds free text whose words are hashed; encode the table by"
                    " the schema.json of the release, as `secretballot predict` does."
                )
        return {
            name: _texts(frame[name])
            if of_texts
            else _numbers(
                frame[name], width, of_time=name in self._lengths, commas=name in self._commas
            )
            for name, of_texts, width in self._inputs
        }


def _text(value: object) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _texts(cells: Any) -> NDArray[Any]:
    texts = ["" if pd.isna(cell) is True else str(cell).strip() for cell in list(cells)]
    return np.array(texts, dtype=object).reshape(-1, 1)


def _numbers(cells: Any, width: int, *, of_time: bool, commas: bool) -> FloatArray:
    if width > 1:
        return np.array([_vector(cell, width) for cell in cells]).reshape(-1, width)
    column = pd.Series(cells)
    if column.dtype.kind == "m":
        return np.asarray(column.dt.total_seconds(), dtype=np.float64).reshape(-1, 1)
    if of_time and not pd.api.types.is_numeric_dtype(column.dtype):
        read = [duration_seconds(str(cell).strip()) for cell in column]
        return np.array([math.nan if one is None else one for one in read]).reshape(-1, 1)
    if commas:
        column = column.map(lambda cell: with_point(cell) if isinstance(cell, str) else cell)
    numbers = pd.to_numeric(column, errors="coerce")
    return numbers.to_numpy(dtype=np.float64, na_value=math.nan).reshape(-1, 1)


def _vector(cell: Any, width: int) -> FloatArray:
    """Return the numbers of a list, an array, or a text such as "[0.5, -1]"; nan for others."""
    try:
        numbers = np.asarray(json.loads(cell) if isinstance(cell, str) else cell, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.empty(0)
    return numbers if numbers.shape == (width,) else np.full(width, math.nan)


def _refuse_unless(holds: bool, problem: str) -> None:
    if not holds:
        raise DataError(problem)


def _checked_model(content: bytes) -> tuple[Any, dict[str, int]]:
    """Return the model in a file, and how many numbers each of its values has for one row."""
    try:
        model = onnx.load_from_string(content)
    except Exception:  # protobuf's own errors
        raise DataError("it is no ONNX file") from None
    graph = model.graph
    _refuse_unless(
        {one.domain for one in model.opset_import} <= {"", "ai.onnx.ml"}
        and not model.functions
        and not model.training_info
        and not graph.sparse_initializer
        and not graph.quantization_annotation,
        "it holds functions, or operators of others",
    )
    for node in graph.node:
        _check_node(node)
    for tensor in graph.initializer:
        _check_tensor(tensor)
    _refuse_unless(
        len(graph.input) > 0 and 1 <= len(graph.output) <= 2, "it has other inputs or outputs"
    )
    for value in graph.input:
        kind = value.type.tensor_type
        _refuse_unless(
            kind.elem_type in (TensorProto.DOUBLE, TensorProto.STRING)
            and len(kind.shape.dim) == 2
            and kind.shape.dim[1].dim_value > 0,
            "an input of it is no table",
        )
    widths = _widths(model)
    for node in graph.node:
        if node.op_type == "TreeEnsembleRegressor":
            _check_trees(node, widths[node.input[0]])
    return model, widths


def _check_node(node: Any) -> None:
    """Refuse operators that no student needs, and graphs inside of nodes, such as loops."""
    known = _OPERATORS if node.domain == "" else _OF_MACHINE_LEARNING
    _refuse_unless(
        node.domain in ("", "ai.onnx.ml") and node.op_type in known,
        f"it uses the operator {node.op_type[:40]!r}",
    )
    for attribute in node.attribute:
        _refuse_unless(
            attribute.type in _ATTRIBUTES and not attribute.ref_attr_name,
            "an attribute of it is of an odd kind",
        )
        if attribute.type == AttributeProto.TENSOR:
            _check_tensor(attribute.t)


def _check_tensor(tensor: Any) -> None:
    """Refuse data in other files, and arrays that are not as long as they say."""
    _refuse_unless(
        tensor.data_location == TensorProto.DEFAULT and not tensor.external_data,
        "it refers to another file",
    )
    size = math.prod(tensor.dims)
    found = (
        len(tensor.string_data)
        if tensor.data_type == TensorProto.STRING
        else len(tensor.raw_data) / _KINDS.get(tensor.data_type, math.nan)
    )
    _refuse_unless(
        all(one >= 0 for one in tensor.dims) and size == found,
        "an array of it is not as long as it says",
    )


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
        sizes = [one.dim_value for one in kind.shape.dim]
        known = [size for size in sizes if size > 0]
        _refuse_unless(
            kind.HasField("shape") and len(sizes) - len(known) <= 1, "its shapes are not known"
        )
        widths[value.name] = math.prod(known)
        _refuse_unless(widths[value.name] <= _LARGEST_VALUE, "a value of it is too large")
    _refuse_unless(
        all(name in widths for node in graph.node for name in node.output if name),
        "its shapes are not known",
    )
    return widths


def _check_trees(node: Any, width: int) -> None:
    """Refuse trees that lead elsewhere than down, or ask for columns that there are not."""
    about = {one.name: helper.get_attribute_value(one) for one in node.attribute}

    def numbers(name: str) -> NDArray[Any]:
        found = about.get(name, [])
        array = numpy_helper.to_array(found) if isinstance(found, TensorProto) else found
        return np.asarray(array).ravel()

    names = ("treeids", "nodeids", "featureids", "truenodeids", "falsenodeids", "modes")
    tree, own, feature, left, right, modes = (numbers(f"nodes_{name}") for name in names)
    target_tree, target_own, targets, weights, values = (
        numbers(name)
        for name in (
            *("target_treeids", "target_nodeids", "target_ids", "target_weights_as_tensor"),
            "nodes_values_as_tensor",
        )
    )
    missing = numbers("nodes_missing_value_tracks_true")
    n = len(tree)
    alike = {len(one) for one in (own, feature, left, right, modes, values, missing)} == {n}
    alike = alike and len(target_tree) == len(target_own) == len(targets) == len(weights)
    _refuse_unless(alike and n > 0, "its trees are not whole")
    starts = np.flatnonzero(np.diff(tree, prepend=-1))
    sizes = np.diff(np.append(starts, n))
    size = np.repeat(sizes, sizes)
    _refuse_unless(
        np.array_equal(own, np.concatenate([np.arange(one) for one in sizes]))
        and np.array_equal(tree, np.repeat(np.arange(len(sizes)), sizes)),
        "its trees are not in order",
    )
    leaf = modes == b"LEAF"
    inner = ~leaf
    _refuse_unless(
        bool(np.isin(modes[inner], (b"BRANCH_LEQ", b"BRANCH_EQ")).all())
        and bool(((feature[inner] >= 0) & (feature[inner] < width)).all()),
        "a tree of it asks for no column",
    )
    for child in (left, right):
        later = (child[inner] > own[inner]) & (child[inner] < size[inner])
        _refuse_unless(bool(later.all()), "a tree of it leads beyond itself, or in circles")
    children = np.concatenate(
        [np.repeat(starts, sizes)[inner] + one[inner] for one in (left, right)]
    )
    whole = np.array_equal(np.sort(children), np.setdiff1d(np.arange(n), starts))
    _refuse_unless(whole, "a tree of it leads beyond itself, or in circles")
    n_targets = about.get("n_targets", 0)
    places = target_own + (starts[target_tree] if _inside(target_tree, len(starts)) else -n)
    _refuse_unless(
        _inside(targets, n_targets)
        and _inside(places, n)
        and np.array_equal(np.sort(places), np.flatnonzero(leaf)),
        "the leaves of a tree of it are not its own",
    )


def _inside(numbers: NDArray[Any], end: int) -> bool:
    return bool(((numbers >= 0) & (numbers < end)).all())


def _about(model: Any) -> dict[str, Any]:
    """Return what the metadata of a model say, as JSON values."""
    try:
        about = {one.key: json.loads(one.value) for one in model.metadata_props}
    except (ValueError, RecursionError):
        about = {"classes": None}
    lists: Iterator[Any] = (
        about.get(name, []) for name in ("classes", "labels", "durations", "commas", "hashed")
    )
    plain = all(
        isinstance(found, list) and all(isinstance(one, str | int | float) for one in found)
        for found in lists
    )
    _refuse_unless(plain, "its metadata are none of a student")
    return about
