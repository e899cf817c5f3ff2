"""The student as a file: `student.onnx`, which every language reads, and whose bytes follow from
the student's values alone."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secretballot._rows import take_rows
from secretballot._typing import BoolArray
from secretballot._validation import shown_error
from secretballot.exceptions import DataError
from secretballot.report.student.bases_graph import Points, holds_texts
from secretballot.report.student.graph import DOUBLE, INTEGER, TEXT, Graph, Output, Value
from secretballot.report.student.load import OnnxStudent
from secretballot.report.student.raw_columns import RawRows, add_raw_columns, can_encode
from secretballot.report.student.students import (
    add_classifier,
    add_regressor,
    is_moments,
    moments_labels,
    moments_number,
)

#: What converts, for messages.
CONVERTS = (
    "logistic regression, trees, forests, boosting by histograms (no other ensembles of trees),"
    " naive Bayes, nearest neighbours by Euclidean distance, ridge regression, networks, and all"
    " students of this package"
)
_PREVIEW_ROWS = 1000
_LARGEST_ERROR = 1e-5  # of a probability, or of a number over the largest one
_MOST_OTHERWISE = 0.01  # of the rows: where neighbours are equally far, each of them is right


def student_bytes(
    student: Any,
    *,
    schema: Mapping[str, Any] | None = None,
    rows: RawRows | None = None,
    X_public: Any = None,
) -> bytes:
    """Return the ONNX file of a fitted student, after checking that it answers as the student does.

    Parameters
    ----------
    student : fitted estimator
        Trained on released values and public points only; its file will be published. What was
        read by `load_student` stays as it was.
    schema : mapping, optional
        Complete, as `Schema.to_json` writes it: the file then reads the raw columns of a table,
        unless one of them is hashed.
    rows : RawRows, optional
        Public rows to check it by, with a schema.
    X_public : array or frame of shape (n, n_features), optional
        The same without one.

    Raises
    ------
    DataError
        If the student does not convert, or the file answers otherwise.
    """
    if isinstance(student, OnnxStudent):
        return student.content
    loaded = converted_student(student, schema)
    if rows is not None:
        check_answers(student, loaded, rows.X, rows.cells if can_encode(schema) else rows.X)
    elif X_public is not None:
        n_public = X_public.shape[0] if hasattr(X_public, "shape") else len(X_public)
        points = take_rows(X_public, np.arange(min(_PREVIEW_ROWS, n_public)))
        check_answers(student, loaded, points, points)
    return loaded.content


def converted_student(student: Any, schema: Mapping[str, Any] | None = None) -> OnnxStudent:
    """Return a fitted student as its file has it; whether it answers alike is not tried.

    Inputs are the raw columns of the schema, each of shape (n, 1), or (n, width) for vectors: by
    `input_type` doubles or texts. Without a schema there is one input ``X``, doubles of shape
    (n, n_features), or one for each column where a `TableBasis` has texts. Outputs are ``label`` of
    shape (n,) and ``probabilities`` of shape (n, n_classes) where there are any; ``prediction`` of
    shape (n,); or ``labels``, 0 and 1, and ``probabilities``, both of shape (n, n_labels). The
    metadata name the classes or labels.

    Raises
    ------
    DataError
        If the student, or a column, has no ONNX form.
    """
    try:
        return OnnxStudent(_model_bytes(student, schema if can_encode(schema) else None))
    except DataError as error:
        problem = str(error)
    except MemoryError:
        raise
    except Exception as error:  # parts of a student may be anybody's
        problem = shown_error(error)
    name = type(getattr(student, "regressor", student)).__name__
    raise DataError(f"{name} does not convert to ONNX ({problem.rstrip('.')}).")


def _model_bytes(student: Any, schema: Mapping[str, Any] | None) -> bytes:
    names = [] if schema is None else list(schema["columns"])
    basis: Any = student.basis if is_moments(student) else getattr(student, "basis_", None)
    by_column = schema is None and any(map(holds_texts, getattr(basis, "_columns", [])))
    if by_column:
        names = [str(name) for name in basis.feature_names_in_]
    graph = Graph([*names, "X"])
    about: dict[str, Any] = {"made_by": "secretballot"}
    points: Points
    if schema is not None:
        points = add_raw_columns(graph, schema)
        about["encoded"] = points.name
        about |= _spellings_of(schema)
    elif by_column:
        points = [
            graph.input(name, TEXT if holds_texts(column) else DOUBLE, 1)
            for name, column in zip(names, basis._columns, strict=True)
        ]
    else:
        points = graph.input("X", DOUBLE, int(student.n_features_in_))
        about["encoded"] = points.name
    outputs, more = _add_answers(student, points, names)
    return graph.to_bytes(outputs, about | more)


def _spellings_of(schema: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return which columns are lengths of time, or numbers with a decimal comma."""
    columns = schema["columns"].items()
    lengths = [name for name, column in columns if column["kind"] == "duration"]
    commas = [name for name, column in columns if column.get("decimal") == ","]
    found = {"durations": lengths, "commas": commas}
    return {key: value for key, value in found.items() if value}


def _add_answers(
    student: Any, points: Points, taken: list[str]
) -> tuple[list[Output], dict[str, Any]]:
    """Add a student, and return its outputs, and what is said of them."""

    def named(name: str) -> str:
        while name in taken:  # a column of the same name keeps it
            name += "_"
        return name

    bounds, labels = getattr(student, "bounds", None), getattr(student, "labels", None)
    if bounds is not None:
        if is_moments(student):
            number = moments_number(student, points)
        else:
            assert isinstance(points, Value)
            number = add_regressor(student.regressor, points)
            number = number.clipped(float(bounds[0]), float(bounds[1]))
        return [(number.flat(), named("prediction"), DOUBLE, None)], {"range": list(bounds)}
    about: dict[str, Any]
    outputs: list[Output]
    if labels is not None:
        of_labels = moments_labels if is_moments(student) else _several_labels
        said, shares = of_labels(student, points)
        width, about = len(labels), {"labels": list(labels)}
        outputs = [(said, named("labels"), INTEGER, width)]
    else:
        found = add_classifier(student, points)
        classes = np.asarray(student.classes_)
        plain = classes.dtype.kind in "iub"
        texts = np.array([str(one) for one in classes], object)
        values = classes.astype(np.int64) if plain else texts
        shares, width, about = found.shares, len(classes), {"classes": classes.tolist()}
        label = found.index.rows_of(values, values.dtype)
        outputs = [(label, named("label"), INTEGER if plain else TEXT, None)]
    if shares is not None:
        outputs.append((shares, named("probabilities"), DOUBLE, width))
    return outputs, about


def _several_labels(student: Any, points: Points) -> tuple[Value, Value | None]:
    """Add a classifier for each label, and return the labels and the probabilities, both of shape
    (n, n_labels)."""
    labels, shares = [], []
    assert isinstance(points, Value)
    for one in student.students:
        found = add_classifier(one, points)
        known = [int(value) for value in one.classes_]
        labels.append(found.index.rows_of(known, np.int64).with_axis(1))
        if found.shares is not None:
            there = 1 in known
            shares.append(found.shares.columns([known.index(1)]) if there else points.zeros(1))
    joined = points.graph.joined
    return joined(labels), joined(shares) if len(shares) == len(labels) else None


def check_answers(student: Any, loaded: OnnxStudent, points: Any, cells: Any) -> None:
    """Refuse a file that answers otherwise than the student.

    Parameters
    ----------
    student : fitted estimator
    loaded : OnnxStudent
    points : array or frame of shape (n, n_features)
        As the student reads them.
    cells : array, or mapping of n cells by column
        As the file does.

    Raises
    ------
    DataError
        If it does on more than one row of a hundred.
    """
    wanted, found = np.asarray(student.predict(points)), loaded.predict(cells)
    if not hasattr(loaded, "classes_"):
        otherwise = _apart(found, wanted, float(np.abs(wanted).max(initial=1.0)))
    else:
        otherwise = np.asarray(found).astype(str) != wanted.astype(str)
        if hasattr(loaded, "predict_proba"):
            shares = np.asarray(student.predict_proba(points))
            otherwise = _by_row(otherwise) | _apart(loaded.predict_proba(cells), shares, 1.0)
    count = int(_by_row(otherwise).sum())
    if not count <= _MOST_OTHERWISE * len(wanted):
        raise DataError(
            f"The ONNX student differs from the student on {count} of {len(wanted)} public points."
        )


def _apart(found: NDArray[Any], wanted: NDArray[Any], unit: float) -> BoolArray:
    return _by_row(~(np.abs(found - wanted) <= _LARGEST_ERROR * unit))


def _by_row(truths: NDArray[Any]) -> BoolArray:
    return np.asarray(truths.reshape(len(truths), -1).any(axis=1))
