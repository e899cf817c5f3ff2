"""The student as a file: `student.onnx`, which every language reads, and whose bytes follow from
the student's values alone.

What students answer for points is written node by node in double precision. A converter would
compute in single precision, in which distances and ties lose their digits; it is asked for learners
that are not named here.
"""

import copy
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from onnx import numpy_helper
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.ensemble._forest import BaseForest
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import Pipeline
from sklearn.tree import BaseDecisionTree

from secretballot._points import take_rows
from secretballot._seeded import own_global_states
from secretballot._typing import AnyArray, BoolArray, FloatArray, IntArray, Json, JsonView
from secretballot._validation import shown_error
from secretballot.bases import GraphBasis, ImageBasis, KernelBasis, TableBasis, images
from secretballot.bases.columns import BENDS, ONE, LevelColumn, NumberColumn
from secretballot.bases.forest import NO_SPLIT
from secretballot.bases.graph import FINER_BITS
from secretballot.bases.integer_basis import MOST_DEVIATIONS, STEPS_PER_DEVIATION
from secretballot.bases.integer_model import (
    CONSTANT,
    EXPONENTIALS,
    LARGEST_COORDINATE,
    LINE_SHIFT,
    LOGARITHMS,
    PROBABILITY_UNIT,
    SHARE_SHIFT,
    STEP_SHIFT,
    STRETCH_UNIT,
    UNIT,
    IntegerLabels,
    IntegerLine,
    LinearModel,
    Smoothed,
)
from secretballot.bases.kernel import EXPONENT_STEPS, kernel_table
from secretballot.exceptions import DataError
from secretballot.report.raw_columns import RawRows, add_raw_columns, can_encode
from secretballot.report.student_graph import (
    DOUBLE,
    INTEGER,
    MISSING_TEXTS,
    OPSETS,
    TEXT,
    Graph,
    Output,
    Value,
)
from secretballot.report.student_load import OnnxStudent

_Points = Value | Sequence[Value]  # one matrix, or its columns by themselves
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
    schema: JsonView | None = None,
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


def converted_student(student: Any, schema: JsonView | None = None) -> OnnxStudent:
    """Return a fitted student as its file has it; whether it answers alike is not tried.

    Inputs are the raw columns of the schema, each of shape (n, 1), or (n, width) for vectors:
    doubles or texts. Without a schema there is one input ``X``, doubles of shape (n, n_features),
    or one for each column where a `TableBasis` has texts. Outputs are ``label`` of shape (n,) and
    ``probabilities`` of shape (n, n_classes) where there are any; ``prediction`` of shape (n,); or
    ``labels``, 0 and 1, and ``probabilities``, both of shape (n, n_labels). The metadata name the
    classes or labels.

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


def _model_bytes(student: Any, schema: JsonView | None) -> bytes:
    names = [] if schema is None else list(schema["columns"])
    basis: Any = student.basis if _is_moments(student) else getattr(student, "basis_", None)
    by_column = schema is None and any(map(_holds_texts, getattr(basis, "_columns", [])))
    if by_column:
        names = [str(name) for name in basis.feature_names_in_]
    graph = Graph([*names, "X"])
    about: Json = {"made_by": "secretballot"}
    points: _Points
    if schema is not None:
        points = add_raw_columns(graph, schema)
        about["encoded"] = points.name
        columns = schema["columns"].items()
        commas = [name for name, column in columns if column.get("decimal") == ","]
        about |= {"commas": commas} if commas else {}
    elif by_column:
        points = [
            graph.input(name, TEXT if _holds_texts(column) else DOUBLE, 1)
            for name, column in zip(names, basis._columns, strict=True)
        ]
    else:
        points = graph.input("X", DOUBLE, int(student.n_features_in_))
        about["encoded"] = points.name
    outputs, more = _add_answers(student, points, names)
    return graph.to_bytes(outputs, about | more)


def _add_answers(student: Any, points: _Points, taken: list[str]) -> tuple[list[Output], Json]:
    """Add a student, and return its outputs, and what is said of them."""

    def named(name: str) -> str:
        while name in taken:  # a column of the same name keeps it
            name += "_"
        return name

    bounds, labels = getattr(student, "bounds", None), getattr(student, "labels", None)
    if bounds is not None:
        low, high = map(float, bounds)
        if _is_moments(student):
            counts = _predictions(student.model, _rows(student, points))
            number = counts * (1 / PROBABILITY_UNIT) * (high - low) + low
        else:
            assert isinstance(points, Value)
            number = _add_regressor(student.regressor, points).clipped(low, high)
        return [(number.flat(), named("prediction"), DOUBLE, None)], {"range": list(bounds)}
    about: Json
    outputs: list[Output]
    shares: Value | None
    if labels is not None:
        if _is_moments(student):
            counts = _predictions(student.model, _rows(student, points))
            said = (counts > PROBABILITY_UNIT // 2).as_integers()
            shares = counts * (1 / PROBABILITY_UNIT)
        else:
            said, shares = _several_labels(student, points)
        width, about = len(labels), {"labels": list(labels)}
        outputs = [(said, named("labels"), INTEGER, width)]
    else:
        found = _add_classifier(student, points)
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


def _several_labels(student: Any, points: _Points) -> tuple[Value, Value | None]:
    """Add a classifier for each label, and return the labels and the probabilities, both of shape
    (n, n_labels)."""
    labels, shares = [], []
    assert isinstance(points, Value)
    for one in student.students:
        found = _add_classifier(one, points)
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


# --- students and learners, each in its own way ---


@dataclass(frozen=True)
class _Said:
    """What a classifier says, inside of a graph.

    Attributes
    ----------
    index : Value
        Places among its `classes_`, integers of shape (n,).
    shares : Value or None
        Probabilities of shape (n, n_classes).
    """

    index: Value
    shares: Value | None


def _is_moments(student: Any) -> bool:
    """Return whether a student has released weights in a basis."""
    return hasattr(student, "basis") and hasattr(student, "weights")


def _add_classifier(student: Any, points: _Points) -> _Said:
    """Add a fitted classifier of one class each.

    Raises
    ------
    DataError
        If it has no ONNX form that this program knows.
    """
    if _is_moments(student):
        return _moments(student, points)
    for kind, add in _ADDERS.items():
        if type(student).__name__ == kind and type(student).__module__.startswith("secretballot."):
            return add(student, points)
    assert isinstance(points, Value)
    if isinstance(student, Pipeline):
        return _add_classifier(student[-1], _transformed(student[:-1], points))
    if isinstance(student, LinearClassifierMixin) and not hasattr(student, "predict_proba"):
        return _linear_classifier(student, points)
    shares = _shares_of_learner(student, points)
    return _converted(student, points) if shares is None else _most_probable(shares)


def _add_regressor(student: Any, points: Value) -> Value:
    """Add a fitted regressor, and return its numbers, of shape (n, 1).

    Raises
    ------
    DataError
        If it has no ONNX form that this program knows.
    """
    if isinstance(student, Pipeline):
        return _add_regressor(student[-1], _transformed(student[:-1], points))
    if isinstance(student, KNeighborsRegressor):
        return _mean_of_nearest(student, points, np.asarray(student._y).reshape(-1, 1))
    if isinstance(student, HistGradientBoostingRegressor):
        if student.loss not in ("squared_error", "absolute_error"):
            raise DataError(f"boosting with loss={student.loss} has no ONNX form")
        return _raw_boosted(student, points)
    trees = _trees_of(student)
    if trees is not None:
        return _mean_of_trees(trees, points)
    return points.graph.add_inner(_skl2onnx(student), points)[0].flat().with_axis(1)


class _Rows(NamedTuple):
    """The coordinates of points, and the cells that trees compare, where there are any."""

    coordinates: Value
    cells: Value | None


def _rows(student: Any, points: _Points) -> _Rows:
    cells = None if student.before is None else _add_cells(student.basis, points)
    coordinates = _add_basis(student.basis, points)
    return _Rows(coordinates.clipped(-LARGEST_COORDINATE, LARGEST_COORDINATE), cells)


def _logits(model: LinearModel, rows: _Rows) -> Value:
    """Add the linear functions of a model, and what they correct."""
    constant: IntArray = CONSTANT * model.weights[-1]
    logits = rows.coordinates @ model.weights[:-1] + constant
    if model.before is None:
        return logits
    return logits + _smoothed(model.before, rows)


def _smoothed(smoothed: Smoothed, rows: _Rows) -> Value:
    """Add the logits of the mean of a model and its trees, stretched."""
    assert rows.cells is not None
    model, forest = smoothed.model, smoothed.forest
    # without what no row reaches
    trees = [_plain_tree(*parts) for parts in zip(*forest, strict=True)]
    sums = _add_trees(rows.cells, trees, single=False).sums(keep=False)
    mean = (_predictions(model, rows) + sums // len(trees)) // 2
    logits = _logarithms(mean)
    if model.weights.shape[1] == 1 or isinstance(model, IntegerLabels):
        logits -= _logarithms(PROBABILITY_UNIT - mean)
    return logits * smoothed.stretch // STRETCH_UNIT


def _predictions(model: LinearModel, rows: _Rows) -> Value:
    """Add what a model predicts, in units of probability, of shape (n, n_columns)."""
    logits = _logits(model, rows)
    if isinstance(model, IntegerLine):
        shares = logits // (1 << LINE_SHIFT) + PROBABILITY_UNIT // 2
        return shares.clipped(0.0, float(PROBABILITY_UNIT))
    if model.weights.shape[1] > 1 and not isinstance(model, IntegerLabels):
        return _softmax(logits)
    # of two classes, and for each label, what is not there has logit 0
    most = logits.at_least(0.0)
    there, absent = _exponentials(most - logits), _exponentials(most)
    return _rounded_shares(there, there + absent)


def _moments(student: Any, points: _Points) -> _Said:
    """Add a model of moments of classes."""
    logits = _logits(student.model, _rows(student, points))
    if student.weights.shape[1] == 1:  # of two classes the first has logit 0
        logits = logits.graph.joined([logits * 0.0, logits])
    counts = _softmax(logits)
    return _Said(logits.largest_place(), counts / counts.sums())


def _softmax(logits: Value) -> Value:
    """Add the softmax by its table of exponentials, and its rounding."""
    parts = _exponentials(logits.highest() - logits)
    return _rounded_shares(parts, parts.sums())


def _logarithms(shares: Value) -> Value:
    """Return logarithms of shares in units of probability, from their table."""
    return (shares // (1 << SHARE_SHIFT)).as_integers().rows_of(LOGARITHMS)


def _exponentials(below: Value) -> Value:
    """Return exponentials of minus these logits, from their table."""
    steps = (below // (1 << STEP_SHIFT)).at_most(len(EXPONENTIALS) - 1.0)
    return steps.as_integers().rows_of(EXPONENTIALS)


def _rounded_shares(parts: Value, totals: Value) -> Value:
    """Return shares of totals, in whole units of probability."""
    return ((parts * PROBABILITY_UNIT + totals // 2) / totals).floor()


def _record_votes(student: Any, points: _Points) -> _Said:
    # the unit goes into the weights: a runtime may fuse a division by it in single precision
    weights = np.asarray(student.coef_).T / student._unit
    logits = _add_basis(student.basis_, points) @ weights + student.intercept_
    return _most_probable(logits.softmax())


def _most_probable(shares: Value) -> _Said:
    return _Said(shares.largest_place(), shares)


def _noisy_counts(student: Any, points: Value) -> _Said:
    """Add a model of vote shares: linear in the columns, or in a kernel of landmarks."""
    model = student.model_
    features = (points - model.mean) / model.scale
    weights = np.asarray(student.coef_)
    if len(model.landmarks):
        distances = _squared_distances(features, np.asarray(model.landmarks)).at_least(0.0)
        features = (distances * (-1 / (2 * float(model.length) ** 2))).exp()
        weights = model.root @ weights
    return _vote_shares(features @ weights + student.intercept_, student)


def _vote_shares(shares: Value, student: Any) -> _Said:
    """Add the class of the largest share, and the nearest probabilities: what is left above the
    one level at which they are 1 together."""
    graph, n_classes = shares.graph, len(student.classes_)
    if n_classes == 2:
        shares = graph.joined([1.0 - shares, shares])
    negative, _ = (-shares).nearest(n_classes)
    sums = graph.add("CumSum", -negative, graph.integers(1))
    level = ((sums - 1.0) / [range(1, n_classes + 1)]).highest()
    return _Said(shares.largest_place(), (shares - level).at_least(0.0))


def _graph_counts(student: Any, points: _Points) -> _Said:
    """Add vote shares that are linear in the functions on the pool's graph."""
    shares = _add_basis(student.basis_, points) @ (np.asarray(student.coef_) / UNIT)
    return _vote_shares(shares + student.intercept_, student)


def _nearest(points: Value, pool: Any, k: int) -> tuple[Value, Value]:
    """Return squared distances to the k nearest points of a pool, and their places."""
    dense = np.asarray(pool.toarray() if hasattr(pool, "toarray") else pool, dtype=np.float64)
    _, places = _squared_distances(points, dense).nearest(k)
    # once more, by differences: the others are not exactly 0 where points coincide
    apart = places.rows_of(dense) - points.with_axis(1)
    return (apart * apart).sums(2, keep=False), places


def _mean_of_nearest(student: Any, points: Value, values: FloatArray) -> Value:
    """Return the mean of values of shape (n_points, width) at the nearest points."""
    if student.effective_metric_ != "euclidean" or student.weights != "uniform":
        raise DataError(
            "nearest neighbours convert with Euclidean distances and equal weights alone"
        )
    _, places = _nearest(points, student._fit_X, student.n_neighbors)
    return places.rows_of(values).sums(keep=False) / float(student.n_neighbors)


def _hypothesis(student: Any, points: Value) -> _Said:
    """Add a cut, an interval, or one estimator of a list."""
    found, last = student.hypothesis_, len(student.classes_) - 1
    if hasattr(found, "estimator"):
        said = _add_classifier(found.estimator, points)
        truths = [int(value == 1) for value in found.estimator.classes_]
        index = said.index.rows_of(truths, np.int64)
    else:
        if hasattr(found, "threshold"):
            truth = points.columns([found.feature]) >= found.threshold
            truth = truth if found.direction == "up" else ~truth
        else:
            column = points.columns([0])
            truth = (column >= found.lower) & (column <= found.upper)
        index = truth.as_integers().flat()
    return _Said(index.at_most(points.graph.integers(last)), None)


def _voting(student: Any, points: Value) -> _Said:
    """Add a weighted vote of classifiers."""
    classes = list(student.classes_)
    each = points.graph.integers([range(len(classes))])
    total = points.zeros(len(classes))
    weights = student.estimator_weights_[: len(student.estimators_)]
    for hypothesis, weight in zip(student.estimators_, weights / weights.sum(), strict=True):
        own = [classes.index(one) for one in hypothesis.classes_]
        voted = _add_classifier(hypothesis, points).index.rows_of(own, np.int64).with_axis(1)
        total += voted.equals(each).as_numbers() * weight
    return _most_probable(total)


_ADDERS: dict[str, Callable[[Any, Any], _Said]] = {
    "RecordVotesStudent": _record_votes,
    "NoisyCountsClassifier": _noisy_counts,
    "GraphCountsClassifier": _graph_counts,
    "HypothesisStudent": _hypothesis,
    "VotingStudent": _voting,
    # it answers with numbers of classes, and its learner's own are these numbers
    "NumberedClassesClassifier": lambda student, points: _add_classifier(
        student.classifier_, points
    ),
}


def _linear_classifier(student: Any, points: Value) -> _Said:
    """Add a linear classifier without probabilities; of two classes it has one function."""
    intercept = np.reshape(student.intercept_, (1, -1))
    scores = points @ np.atleast_2d(student.coef_).T + intercept
    if len(student.classes_) == 2:
        scores = points.graph.joined([scores * 0.0, scores])
    return _Said(scores.largest_place(), None)


def _shares_of_learner(student: Any, points: Value) -> Value | None:
    """Add the probabilities of a learner of scikit-learn that is written here, None for others."""
    if isinstance(student, DummyClassifier):
        constant: FloatArray = student.predict_proba(np.zeros((1, 1)))
        return points.zeros(len(student.classes_)) + constant
    if isinstance(student, KNeighborsClassifier):
        each = np.eye(len(student.classes_))[np.asarray(student._y).ravel()]
        return _mean_of_nearest(student, points, each)
    if isinstance(student, HistGradientBoostingClassifier):
        raw = _raw_boosted(student, points)
        if len(student.classes_) > 2:
            return raw.softmax()
        second = points.graph.add("Sigmoid", raw)
        return points.graph.joined([1.0 - second, second])
    trees = _trees_of(student)
    return None if trees is None else _mean_of_trees(trees, points)


def _trees_of(student: Any) -> "list[_Tree] | None":
    if isinstance(student, BaseDecisionTree):
        return [_grown_tree(student)]
    if isinstance(student, BaseForest):
        return [_grown_tree(one) for one in student.estimators_]
    return None


def _mean_of_trees(trees: "list[_Tree]", points: Value) -> Value:
    return _add_trees(points, trees, single=True).sums(keep=False) / float(len(trees))


def _raw_boosted(student: Any, points: Value) -> Value:
    """Return what boosted trees add up to, of shape (n, n_outputs)."""
    if getattr(student, "_preprocessor", None) is not None:
        raise DataError("boosted trees that split by categories have no ONNX form")
    width = student.n_trees_per_iteration_
    trees = [
        _histogram_tree(tree, place, width)
        for iteration in student._predictors
        for place, tree in enumerate(iteration)
    ]
    sums = _add_trees(points, trees, single=False).sums(keep=False)
    return sums + np.reshape(student._baseline_prediction, (1, width))


def _transformed(steps: Any, points: Value) -> Value:
    """Return what the first steps of a pipeline make of points."""
    if not len(steps) or all(step == "passthrough" for _, step in steps.steps):
        return points
    return points.graph.add_inner(_skl2onnx(steps), points)[0]


def _converted(student: Any, points: Value) -> _Said:
    """Add any other classifier, as skl2onnx converts it."""
    label, *shares = points.graph.add_inner(_skl2onnx(student), points)
    classes: NDArray[Any] = np.asarray(student.classes_)
    # classes by their numbers, or by their texts
    plain = classes.dtype.kind in "iub"
    keys = classes.astype(np.int64 if plain else str).tolist()
    index = label.places_among({key: place for place, key in enumerate(keys)}, 0)
    return _Said(index.flat(), shares[0] if hasattr(student, "predict_proba") else None)


def _skl2onnx(learner: Any) -> Any:
    """Return the model that skl2onnx makes of a fitted learner, in double precision.

    Raises
    ------
    DataError
        If it makes none.
    """
    # slow to import, and wanted by few
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import DoubleTensorType

    try:
        with own_global_states(0), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the converter, about its own future
            return to_onnx(
                _of_scikit_learn(learner),
                initial_types=[("X", DoubleTensorType([None, learner.n_features_in_]))],
                options={"zipmap": False} if hasattr(learner, "predict_proba") else None,
                target_opset=OPSETS,
            )
    except MemoryError:
        raise
    except Exception as error:  # converters are many and raise what they like
        raise DataError(shown_error(error)) from None


def _of_scikit_learn(learner: Any) -> Any:
    """Return a learner as one of the class of scikit-learn that its own class is made from, which
    alone the converter knows; whether it predicts so is checked."""
    kinds = type(learner).__mro__
    known = [kind for kind in kinds if kind.__module__.startswith("sklearn.")]
    found = copy.copy(learner)
    found.__class__ = (known or kinds)[0]
    return found


# --- trees: which leaf of each a row ends in, then its values. They answer with the number of a
# leaf, since what ONNX sums itself it sums in single precision. ---


@dataclass(frozen=True, eq=False)
class _Tree:
    """One tree.

    Attributes
    ----------
    feature, left, right : ndarray of int64, shape (n_nodes,)
        A row goes left if the feature is at most the threshold.
    threshold : ndarray of float64, shape (n_nodes,)
    missing_left : ndarray of bool, shape (n_nodes,)
        Where a missing feature goes.
    leaf : ndarray of bool, shape (n_nodes,)
    values : ndarray of float64, shape (n_nodes, n_outputs)
    equal : ndarray of bool, shape (n_nodes,), optional
        Where a row goes left only if the feature is the threshold.
    """

    feature: IntArray
    threshold: FloatArray
    left: IntArray
    right: IntArray
    missing_left: BoolArray
    leaf: BoolArray
    values: FloatArray
    equal: BoolArray | None = None


def _plain_tree(
    places: IntArray, thresholds: IntArray, levels: BoolArray, values: IntArray
) -> _Tree:
    """Return a tree of full depth by its nodes; one that is no split leaves all to its left."""
    nodes, first_leaf = [0], len(places)
    left: list[int] = []
    for node in nodes:  # which grows
        while node < first_leaf and thresholds[node] == NO_SPLIT:
            node = 2 * node + 1
        nodes[len(left)] = node
        left.append(len(nodes) if node < first_leaf else 0)
        nodes += [2 * node + 1, 2 * node + 2] if node < first_leaf else []
    found = np.array(nodes)
    leaf = found >= first_leaf
    inner = np.where(leaf, 0, found)
    return _Tree(
        places[inner],
        thresholds[inner].astype(np.float64),
        np.array(left),
        np.array(left) + 1,
        np.zeros_like(leaf),
        leaf,
        values[np.where(leaf, found - first_leaf, 0)].astype(np.float64),
        levels[inner] & ~leaf,
    )


def _grown_tree(estimator: Any) -> _Tree:
    """Return a fitted DecisionTree or ExtraTree; its points are to be rounded to single
    precision."""
    tree = estimator.tree_
    values = tree.value[:, 0, :]
    if hasattr(estimator, "classes_"):
        values = values / values.sum(axis=1, keepdims=True)
    leaf = tree.children_left == -1
    missing = np.asarray(getattr(tree, "missing_go_to_left", np.zeros(len(leaf))), dtype=bool)
    return _Tree(
        tree.feature, tree.threshold, tree.children_left, tree.children_right, missing, leaf, values
    )


def _histogram_tree(predictor: Any, place: int, n_outputs: int) -> _Tree:
    """Return a tree of a fitted HistGradientBoosting estimator, that adds to one of its outputs and
    does not split by categories."""
    nodes = predictor.nodes
    values = np.zeros((len(nodes), n_outputs))
    values[:, place] = nodes["value"]
    left, right = nodes["left"].astype(np.int64), nodes["right"].astype(np.int64)
    return _Tree(
        nodes["feature_idx"].astype(np.int64),
        nodes["num_threshold"],
        left,
        right,
        nodes["missing_go_to_left"].astype(bool),
        nodes["is_leaf"].astype(bool),
        values,
    )


def _add_trees(points: Value, trees: Sequence[_Tree], *, single: bool) -> Value:
    """Add trees, and return their values, of shape (n, n_trees, n_outputs).

    Parameters
    ----------
    points : Value
        Doubles of shape (n, n_features).
    trees : sequence of Tree
    single : bool
        Whether points are first rounded to single precision.
    """
    sizes = [len(tree.leaf) for tree in trees]
    owners = np.repeat(np.arange(len(trees)), sizes)
    numbers = np.concatenate([np.arange(size) for size in sizes])
    leaf = np.concatenate([tree.leaf for tree in trees])
    equal = np.concatenate(
        [np.zeros_like(tree.leaf) if tree.equal is None else tree.equal for tree in trees]
    )

    def inner(name: str, kind: Any = np.int64) -> Any:
        return np.where(leaf, 0, np.concatenate([getattr(t, name) for t in trees])).astype(kind)

    leaves = points.graph.add(
        "TreeEnsembleRegressor",
        points.in_single() if single else points,
        n_targets=len(trees),
        nodes_treeids=owners.tolist(),
        nodes_nodeids=numbers.tolist(),
        nodes_featureids=inner("feature").tolist(),
        nodes_modes=np.where(leaf, "LEAF", np.where(equal, "BRANCH_EQ", "BRANCH_LEQ")).tolist(),
        nodes_truenodeids=inner("left").tolist(),
        nodes_falsenodeids=inner("right").tolist(),
        nodes_missing_value_tracks_true=inner("missing_left").tolist(),
        nodes_values_as_tensor=numpy_helper.from_array(inner("threshold", np.float64)),
        target_treeids=owners[leaf].tolist(),
        target_nodeids=numbers[leaf].tolist(),
        target_ids=owners[leaf].tolist(),
        # a leaf answers with its place among the nodes of all trees
        target_weights_as_tensor=numpy_helper.from_array(np.flatnonzero(leaf).astype(np.float64)),
    )
    return leaves.as_integers().rows_of(np.concatenate([tree.values for tree in trees]))


# --- public bases: integers in doubles, so that a row has the coordinates it has in Python ---

_LARGEST = np.finfo(np.float64).max


def _holds_texts(column: object) -> bool:
    """Return whether a column of a basis has a level that is a text."""
    return isinstance(column, LevelColumn) and any(isinstance(one, str) for one in column.levels)


def _joined_points(points: _Points) -> Value:
    """Return points as one matrix."""
    return points if isinstance(points, Value) else points[0].graph.joined(points)


def _add_basis(basis: Any, points: _Points) -> Value:
    """Add the map from points to coordinates, and return its output.

    Parameters
    ----------
    basis : fitted TableBasis, KernelBasis or GraphBasis
    points : Value or sequence of Value
        Doubles of shape (n, n_features); or each column by itself, of shape (n, 1), texts where the
        basis has texts.

    Raises
    ------
    DataError
        If the basis is of another kind, or wants texts of numbers.
    """
    if isinstance(basis, GraphBasis):
        vectors = _joined_points(points)
        if isinstance(basis, ImageBasis):
            vectors = _add_maps(vectors, basis)
        return _add_modes(vectors, basis)
    if isinstance(basis, TableBasis):
        features = _add_columns(points, basis)
    elif isinstance(basis, KernelBasis):
        features = _add_likeness(_joined_points(points), basis)
    else:
        raise DataError(
            f"the basis {type(basis).__name__} has no ONNX form; use a TableBasis, a KernelBasis"
            " or a GraphBasis"
        )
    rotation = basis._rotation
    half: IntArray = (1 << (rotation.shift - 1)) - rotation.offset
    coordinates: Value = (features @ rotation.weights + half) // (1 << rotation.shift)
    return coordinates


def _add_cells(basis: Any, points: _Points) -> Value:
    """Add what trees compare, and return it, of shape (n, n_cells).

    Parameters and errors are those of `_add_basis`.
    """
    codes = []
    for place, column in enumerate(basis._columns):
        own = _cells_of(points, place, column)
        if isinstance(column, NumberColumn):
            absent, values = _plain_values(own)
            codes.append(absent.where([[-ONE - 1.0]], _add_ranks(values, column.sorted_values)))
        else:
            codes.append(_level_places(own, column))
    return codes[0].graph.joined(codes)


def _add_columns(points: _Points, basis: TableBasis) -> Value:
    """Add the features of every column of a table."""
    features = []
    for place, column in enumerate(basis._columns):
        own = _cells_of(points, place, column)
        if isinstance(column, NumberColumn):
            features += _add_numbers(own, column)
        elif _holds_texts(column):
            each = _level_places(own, column).equals([range(len(column.levels))])
            features.append(each.as_numbers() * ONE)
        else:
            features += _add_levels(own, column)
    return features[0].graph.joined(features)


def _cells_of(points: _Points, place: int, column: object) -> Value:
    """Return one column of the points."""
    if not isinstance(points, Value):
        return points[place]
    if _holds_texts(column):
        raise DataError("the basis has texts; give the public points as a frame")
    return points.columns([place])


def _add_levels(cells: Value, column: LevelColumn) -> list[Value]:
    """Add the features of levels, which are numbers or missing."""
    found = [
        cells.is_nan() if level is None else cells.equals([[level]]) for level in column.levels
    ]
    return [one.as_numbers() * ONE for one in found]


def _level_places(cells: Value, column: LevelColumn) -> Value:
    """Add the place of the level, -1 for one that the basis does not know."""
    levels = column.levels
    if not _holds_texts(column):
        if not levels:
            return cells.zeros(1) + -1.0
        numbers = np.arange(1, len(levels) + 1)[:, None] / ONE
        return cells.graph.joined(_add_levels(cells, column)) @ numbers + -1.0
    keys = ["" if one is None else one if isinstance(one, str) else f"{one:g}" for one in levels]
    places = cells.places_among({key: place for place, key in enumerate(keys)}, -1)
    if None in levels:
        missing, integers = cells.matches(MISSING_TEXTS), cells.graph.integers
        unknown = places.equals(integers([[-1]]))
        places = (missing & unknown).where(integers([[levels.index(None)]]), places)
    return places.as_numbers()


def _add_numbers(cells: Value, column: NumberColumn) -> list[Value]:
    """Add bins, rank, its bend, spike and missing values of a column of numbers."""
    absent, values = _plain_values(cells)
    plain, joined = (~absent).as_numbers(), cells.graph.joined
    spiked = []
    if column.spike is not None:
        spiked = [values.equals([[column.spike]]).as_numbers() * plain]
        plain -= spiked[0]
    bins = plain
    if len(column.edges):
        reached = _reached(values, column.edges)
        bins = joined([plain, reached]) - joined([reached, plain * 0.0])
    ranks = _add_ranks(values, column.sorted_values) * plain
    bends = (ranks + float(ONE)).as_integers().rows_of(BENDS)
    found = [bins * plain * ONE, ranks, bends]
    missing = [absent.as_numbers()] if column.missing else []
    return [*found, *(one * ONE for one in (*spiked, *missing))]


def _plain_values(cells: Value) -> tuple[Value, Value]:
    """Return which cells are missing, and the values of all, 0 for these."""
    absent = cells.is_nan()
    # a missing cell goes on as 0: NaN would stay NaN in every product
    return absent, absent.where([[0.0]], cells).clipped([[-_LARGEST]], [[_LARGEST]])


def _reached(values: Value, thresholds: FloatArray) -> Value:
    """Return, for every threshold, whether the value is at least as large."""
    return (values >= thresholds[None, :]).as_numbers()


def _add_ranks(values: Value, sorted_values: FloatArray) -> Value:
    """Add the rank among the pool's values, a step function, by its steps."""
    thresholds, steps = _rank_steps(sorted_values)
    return _reached(values, thresholds) @ steps[:, None] + [[-ONE]]


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


def _rounded(cells: Value, basis: KernelBasis | GraphBasis) -> Value:
    """Add numbers as integers, steps of the public points' deviations."""
    steps = (cells - basis._centre) / basis._spread * STEPS_PER_DEVIATION
    end = float(STEPS_PER_DEVIATION * MOST_DEVIATIONS)
    return steps.is_nan().where([0.0], steps).clipped([-end], [end]).rounded()


def _squared_distances(points: Value, others: AnyArray) -> Value:
    """Add squared distances to other points, of shape (n, n_others): exact of integers."""
    squares: FloatArray = (others.astype(np.float64) ** 2).sum(axis=1)
    return (points * points).sums() + points @ (-2.0 * others.T) + squares


def _add_likeness(cells: Value, basis: KernelBasis) -> Value:
    """Add the kernel of every landmark."""
    if basis.ranked:
        cells = _ranked(cells, basis._sorted_values)
    scaled = _squared_distances(_rounded(cells, basis), basis._landmarks) * EXPONENT_STEPS
    quotient = scaled // basis._median
    # a quotient that was rounded up to an integer leaves less than nothing
    too_many = (scaled - quotient * basis._median < 0.0).as_numbers()
    table = kernel_table()
    return (quotient - too_many).at_most(len(table) - 1.0).as_integers().rows_of(table)


def _ranked(cells: Value, sorted_values: Sequence[FloatArray]) -> Value:
    """Add the rank of every cell in its column; what is missing stays so."""
    columns = []
    for place, values in enumerate(sorted_values):
        own = cells.columns([place])
        ranks = _add_ranks(own, values) if len(values) else [[0.0]]
        columns.append(own.is_nan().where(own, ranks))
    return cells.graph.joined(columns)


def _add_maps(cells: Value, basis: ImageBasis) -> Value:
    """Add the roots of the shares of all maps of images."""
    graph = cells.graph
    steps = (cells - basis.black_) / basis.range_ * images.BRIGHTEST
    pixels = steps.is_nan().where([0.0], steps).clipped(0.0, images.BRIGHTEST).rounded()
    shape = graph.integers([-1, basis.side_, basis.side_])
    whole = graph.add("Reshape", pixels, shape)

    def both(rows: FloatArray, parts: Value, columns: FloatArray) -> Value:
        return graph.constant(rows.T) @ parts @ columns

    smooth, slope = images.gradients(basis.side_)
    down, across = both(slope, whole, smooth), both(smooth, whole, slope)
    parts = [across * right + down * below for right, below in images.directions()]
    most = graph.add("Max", *parts) * images.SHARPENED
    blurred = images.blurring(basis.side_)
    kept = [(part * images.WEIGHT - most).at_least(0.0) for part in parts]
    maps = [graph.add("Flatten", both(blurred, part, blurred), axis=1) for part in kept]
    table = graph.joined(maps)
    return (table / table.sums().at_least(1.0)).root()


def _add_modes(cells: Value, basis: GraphBasis) -> Value:
    """Add the mean values at the nearest public points, itself left out where it is one of them."""
    points, k = basis._points.astype(np.int64), basis.n_nearest
    least, places = _squared_distances(_rounded(cells, basis), points).nearest(k + 1)
    first = least.columns([0]).equals([[0.0]])
    nearest = first.where(places.columns(range(1, k + 1)), places.columns(range(k)))
    sums = nearest.rows_of(basis._values).sums(keep=False)
    half: IntArray = (1 << (FINER_BITS - 1)) - basis._offset
    return (sums + half) // (1 << FINER_BITS)
