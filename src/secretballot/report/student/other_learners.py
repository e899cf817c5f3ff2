"""ONNX graphs of learners that are not scikit-learn's own."""

import importlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from secretballot.report.extras import require_extra

NUMBERED_CLASSES = "secretballot.students.numbered_classes.NumberedClassesClassifier"

# Class of the learner, its name among skl2onnx's converters, and the converter of onnxmltools.
_CONVERTERS = {
    "xgboost.sklearn.XGBClassifier": (
        "XGBoostXGBClassifier",
        "onnxmltools.convert.xgboost.operator_converters.XGBoost",
        "convert_xgboost",
    ),
    "lightgbm.sklearn.LGBMClassifier": (
        "LightGbmLGBMClassifier",
        "onnxmltools.convert.lightgbm.operator_converters.LightGbm",
        "convert_lightgbm",
    ),
}
_OPTIONS = {"nocl": [True, False], "zipmap": [True, False, "columns"]}
# the newest operators that these converters write
_VERSIONS = {"": 15, "ai.onnx.ml": 3}


def graph_versions(student: Any) -> Mapping[str, int] | None:
    """Return the versions of operators to convert a student with, None for the converter's own.

    Learners of XGBoost and LightGBM are made known to the converter, where onnxmltools is
    installed.
    """
    # The student alone decides, not what else the process has imported.
    parts = [student, *student.get_params(deep=True).values()]
    found = {
        name: type(part)
        for part in parts
        if (name := f"{type(part).__module__}.{type(part).__qualname__}") in _CONVERTERS
    }
    for name, kind in found.items():
        with suppress(ImportError):  # then the converter says that it does not know the learner
            _make_known(kind, *_CONVERTERS[name])
    return _VERSIONS if found else None


def _make_known(kind: type, alias: str, module: str, function: str) -> None:
    converter = getattr(importlib.import_module(module), function)
    shapes = importlib.import_module("skl2onnx.common.shape_calculator")
    require_extra("skl2onnx", "onnx").update_registered_converter(
        kind,
        alias,
        shapes.calculate_linear_classifier_output_shapes,
        converter,
        options=_OPTIONS,
    )


def named_classes_graph(model: bytes, classes: Sequence[Any]) -> bytes:
    """Return an ONNX model that answers with classes, from one that answers with their numbers.

    Parameters
    ----------
    model : bytes
        Its first output: numbers of classes, of shape (n,).
    classes : sequence of str, int or bool
        Class number i is ``classes[i]``; whatever is no integer is written as a text.

    Raises
    ------
    MissingExtraError
        If onnx is not installed.
    """
    onnx, helper = require_extra("onnx", "onnx"), require_extra("onnx.helper", "onnx")
    found = onnx.load_from_string(model)
    graph, label = found.graph, found.graph.output[0]
    values = np.asarray(classes)
    as_text = values.dtype.kind not in "iub"
    kind = onnx.TensorProto.STRING if as_text else onnx.TensorProto.INT64
    constants = [
        helper.make_tensor(
            "class values",
            kind,
            [len(values)],
            [str(value).encode() for value in values]
            if as_text
            else values.astype(np.int64).tolist(),
        ),
        helper.make_tensor("one column", onnx.TensorProto.INT64, [1], [-1]),
    ]
    graph.initializer.extend(constants)
    graph.node.extend(
        [
            helper.make_node("Reshape", [label.name, "one column"], ["class numbers"]),
            helper.make_node("Gather", ["class values", "class numbers"], ["class label"]),
        ]
    )
    label.CopyFrom(helper.make_tensor_value_info("class label", kind, [None]))
    # checked whole: the graph came from a converter of another package
    onnx.checker.check_model(found)
    return bytes(found.SerializeToString(deterministic=True))
