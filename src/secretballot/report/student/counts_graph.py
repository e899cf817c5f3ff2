"""The student of noisy counts as an ONNX graph, made from its public numbers alone."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secretballot.report.extras import require_extra

COUNTS_STUDENT = "secretballot.students.noisy_counts.NoisyCountsClassifier"
_OPSET, _IR_VERSION = 13, 8  # of 2021: every runtime in use reads them


def counts_graph(student: Any) -> bytes:
    """Return an ONNX model with the label and the vote shares that the student predicts.

    Parameters
    ----------
    student : fitted NoisyCountsClassifier
        Known by its attributes: `mean_`, `scale_`, `landmarks_`, `length_`, `root_`, `coef_`,
        `intercept_`, `classes_`.

    Returns
    -------
    bytes
        Input ``X``: float32 of shape (n, n_features). Outputs ``label`` of shape (n,) and
        ``shares``, double, of shape (n, n_classes). Inside it computes in double precision, as the
        student does.

    Raises
    ------
    MissingExtraError
        If onnx is not installed.
    """
    # written node by node: a converter would need the student's class, and computes in single
    # precision, in which its distances lose their digits
    helper = require_extra("onnx.helper", "onnx")
    return model_bytes(
        _graph_nodes(helper, student),
        _graph_constants(student),
        np.asarray(student.classes_),
        int(student.n_features_in_),
    )


def model_bytes(
    nodes: list[Any],
    constants: Mapping[str, NDArray[Any]],
    classes: NDArray[Any],
    n_features: int,
) -> bytes:
    """Return an ONNX model of nodes that lead from ``X`` to ``label`` and ``shares``.

    Parameters
    ----------
    nodes : list of onnx.NodeProto
        They may use ``classes``, which is added here.
    constants : mapping of str to array
    classes : array of shape (n_classes,)
    n_features : int

    Raises
    ------
    MissingExtraError
        If onnx is not installed.
    """
    onnx, helper = require_extra("onnx", "onnx"), require_extra("onnx.helper", "onnx")
    kinds = onnx.TensorProto
    as_text = classes.dtype.kind not in "iub"
    tensors = [
        require_extra("onnx.numpy_helper", "onnx").from_array(value, name)
        for name, value in constants.items()
    ]
    values = (
        [str(value).encode() for value in classes] if as_text else classes.astype(np.int64).tolist()
    )
    label = kinds.STRING if as_text else kinds.INT64
    tensors.append(helper.make_tensor("classes", label, [len(classes)], values))
    graph = helper.make_graph(
        nodes,
        "student",
        [helper.make_tensor_value_info("X", kinds.FLOAT, [None, n_features])],
        [
            helper.make_tensor_value_info("label", label, [None]),
            helper.make_tensor_value_info("shares", kinds.DOUBLE, [None, len(classes)]),
        ],
        tensors,
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR_VERSION
    )
    onnx.checker.check_model(model)
    # deterministic: the same student gives the same file
    return bytes(model.SerializeToString(deterministic=True))


def _graph_constants(student: Any) -> dict[str, Any]:
    """Return the arrays of the graph; the Nystroem map and the weights become one matrix."""
    arrays = {"mean": student.mean_, "scale": student.scale_, "intercept": student.intercept_}
    arrays |= {"one": [1.0]} if len(student.classes_) == 2 else {}
    weights = np.asarray(student.coef_)
    if len(student.landmarks_):
        landmarks = np.asarray(student.landmarks_)
        arrays |= {
            "landmarks": -2 * landmarks.T,
            "norms": (landmarks**2).sum(axis=1),
            "slope": [-1 / (2 * float(student.length_) ** 2)],
            "zero": [0.0],
            "ones": np.ones((landmarks.shape[1], 1)),
        }
        weights = student.root_ @ weights
    arrays["weights"] = weights
    return {name: np.ascontiguousarray(value, dtype=np.float64) for name, value in arrays.items()}


def _graph_nodes(helper: Any, student: Any) -> list[Any]:
    steps: list[tuple[str, list[str], str, dict[str, Any]]] = [
        ("Cast", ["X"], "precise", {"to": 11}),  # 11: double
        ("Sub", ["precise", "mean"], "centred", {}),
        ("Div", ["centred", "scale"], "points", {}),
    ]
    features = "points"
    if len(student.landmarks_):
        steps += [
            ("Mul", ["points", "points"], "squares", {}),
            ("MatMul", ["squares", "ones"], "own", {}),
            ("MatMul", ["points", "landmarks"], "cross", {}),
            ("Add", ["own", "cross"], "partial", {}),
            ("Add", ["partial", "norms"], "raw", {}),
            ("Max", ["raw", "zero"], "distances", {}),
            ("Mul", ["distances", "slope"], "exponents", {}),
            ("Exp", ["exponents"], "features", {}),
        ]
        features = "features"
    steps += [
        ("MatMul", [features, "weights"], "lifted", {}),
        ("Add", ["lifted", "intercept"], "shares" if len(student.classes_) > 2 else "second", {}),
    ]
    if len(student.classes_) == 2:
        steps += [
            ("Sub", ["one", "second"], "first", {}),
            ("Concat", ["first", "second"], "shares", {"axis": 1}),
        ]
    steps += [
        ("ArgMax", ["shares"], "index", {"axis": 1, "keepdims": 0}),
        ("Gather", ["classes", "index"], "label", {}),
    ]
    return [
        helper.make_node(kind, inputs, [output], **more) for kind, inputs, output, more in steps
    ]
