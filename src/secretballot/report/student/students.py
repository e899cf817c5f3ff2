"""Students as ONNX: what they answer for points, written node by node in double precision.

A converter would compute in single precision, in which distances and ties lose their digits; it is
asked for learners that are not named here.
"""

import copy
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import Pipeline
from sklearn.tree import BaseDecisionTree

from secretballot._seeded import own_global_states
from secretballot._typing import FloatArray
from secretballot.bases.integer_model import (
    CONSTANT,
    EXPONENTIALS,
    LARGEST_COORDINATE,
    LINE_SHIFT,
    LOGARITHMS,
    PROBABILITY_UNIT,
    SHARE_SHIFT,
    STEP_SHIFT,
    IntegerLabels,
    IntegerLine,
    LinearModel,
    Smoothed,
)
from secretballot.exceptions import DataError
from secretballot.report.student.bases_graph import (
    add_basis,
    add_cells,
    add_places,
    add_squared_distances,
)
from secretballot.report.student.graph import INTEGER, OPSETS, Graph
from secretballot.report.student.trees import (
    Tree,
    add_trees,
    forest_trees,
    grown_tree,
    histogram_tree,
)

_FORESTS = (
    RandomForestClassifier,
    ExtraTreesClassifier,
    RandomForestRegressor,
    ExtraTreesRegressor,
)
Points = str | Sequence[str]  # one matrix, or its columns by themselves


@dataclass(frozen=True)
class Said:
    """What a classifier says: names inside of a graph.

    Attributes
    ----------
    index : str
        Places among its `classes_`, integers of shape (n,).
    shares : str or None
        Probabilities of shape (n, n_classes).
    """

    index: str
    shares: str | None


def is_moments(student: Any) -> bool:
    """Return whether a student has released weights in a basis."""
    return hasattr(student, "basis") and hasattr(student, "weights")


def add_classifier(graph: Graph, student: Any, points: Points) -> Said:
    """Add a fitted classifier of one class each.

    Raises
    ------
    DataError
        If it has no ONNX form that this program knows.
    """
    if is_moments(student):
        return _moments(graph, student, points)
    if hasattr(student, "basis_"):
        return _record_votes(graph, student, points)
    assert isinstance(points, str)
    for kind, add in _ADDERS.items():
        if type(student).__name__ == kind and type(student).__module__.startswith("secretballot."):
            return add(graph, student, points)
    if isinstance(student, Pipeline):
        return add_classifier(graph, student[-1], _transformed(graph, student[:-1], points))
    if isinstance(student, LinearClassifierMixin) and not hasattr(student, "predict_proba"):
        return _linear_classifier(graph, student, points)
    shares = _shares_of_learner(graph, student, points)
    if shares is not None:
        return _most_probable(graph, shares)
    return _converted(graph, student, points)


def add_regressor(graph: Graph, student: Any, points: str) -> str:
    """Add a fitted regressor, and return its numbers, of shape (n, 1).

    Raises
    ------
    DataError
        If it has no ONNX form that this program knows.
    """
    if isinstance(student, Pipeline):
        return add_regressor(graph, student[-1], _transformed(graph, student[:-1], points))
    if isinstance(student, KNeighborsRegressor):
        return _mean_of_nearest(graph, student, points, np.asarray(student._y).reshape(-1, 1))
    if isinstance(student, HistGradientBoostingRegressor):
        if student.loss not in ("squared_error", "absolute_error"):
            raise DataError(f"boosting with loss={student.loss} has no ONNX form")
        return _raw_boosted(graph, student, points)
    trees = _trees_of(student)
    if trees is not None:
        return _mean_of_trees(graph, trees, points)
    made = _skl2onnx(student, student.n_features_in_)
    return graph.add(
        "Reshape", [graph.add_inner(made, points)[0], graph.constant([-1, 1], np.int64)]
    )


def moments_number(graph: Graph, student: Any, points: Points) -> str:
    """Add a model of moments of a number, and return it, of shape (n, 1)."""
    shares = _predictions(graph, student.model, _rows(graph, student, points))
    low, high = student.bounds
    return graph.plus(graph.times(graph.times(shares, 1 / PROBABILITY_UNIT), high - low), low)


def moments_labels(graph: Graph, student: Any, points: Points) -> tuple[str, str]:
    """Add a model of moments of several labels: whether each is there, as integers, and its
    probability, both of shape (n, n_labels)."""
    counts = _predictions(graph, student.model, _rows(graph, student, points))
    said = graph.add("Greater", [counts, graph.constant(PROBABILITY_UNIT // 2)])
    shares = graph.times(counts, 1 / PROBABILITY_UNIT)
    return graph.add("Cast", [said], to=INTEGER), shares


class _Rows(NamedTuple):
    """The coordinates of points, and the cells that trees compare, where there are any."""

    coordinates: str
    cells: str | None


def _rows(graph: Graph, student: Any, points: Points) -> _Rows:
    cells = None if student.before is None else add_cells(graph, student.basis, points)
    coordinates = add_basis(graph, student.basis, points)
    return _Rows(graph.clipped(coordinates, -LARGEST_COORDINATE, LARGEST_COORDINATE), cells)


def _logits(graph: Graph, model: LinearModel, rows: _Rows) -> str:
    """Add the linear functions of a model, and what they correct."""
    sums = graph.product(rows.coordinates, model.weights[:-1])
    logits = graph.plus(sums, CONSTANT * model.weights[-1])
    if model.before is None:
        return logits
    before = _smoothed(graph, model.before, rows)
    added = _logarithms(graph, before)
    if model.weights.shape[1] == 1 or isinstance(model, IntegerLabels):
        rest = graph.plus(graph.times(before, -1.0), PROBABILITY_UNIT)
        added = graph.add("Sub", [added, _logarithms(graph, rest)])
    return graph.add("Add", [logits, added])


def _smoothed(graph: Graph, smoothed: Smoothed, rows: _Rows) -> str:
    """Add the mean of a model and its trees, in units of probability."""
    assert rows.cells is not None
    trees = forest_trees(smoothed.forest)
    sums = graph.sums(add_trees(graph, rows.cells, trees, single=False), keep=False)
    smooth = graph.quotient(sums, len(trees))
    both = graph.add("Add", [_predictions(graph, smoothed.model, rows), smooth])
    return graph.quotient(both, 2)


def _predictions(graph: Graph, model: LinearModel, rows: _Rows) -> str:
    """Add what a model predicts, in units of probability, of shape (n, n_columns)."""
    logits = _logits(graph, model, rows)
    if isinstance(model, IntegerLine):
        shares = graph.plus(graph.quotient(logits, 1 << LINE_SHIFT), PROBABILITY_UNIT // 2)
        return graph.clipped(shares, 0.0, float(PROBABILITY_UNIT))
    if model.weights.shape[1] > 1 and not isinstance(model, IntegerLabels):
        return _softmax(graph, logits)
    # of two classes, and for each label, what is not there has logit 0
    most = graph.add("Max", [logits, graph.constant(0.0)])
    there = _exponentials(graph, graph.add("Sub", [most, logits]))
    absent = _exponentials(graph, most)
    return _rounded_shares(graph, there, graph.add("Add", [there, absent]))


def _moments(graph: Graph, student: Any, points: Points) -> Said:
    """Add a model of moments of classes."""
    logits = _logits(graph, student.model, _rows(graph, student, points))
    if student.weights.shape[1] == 1:  # of two classes the first has logit 0
        logits = graph.joined([graph.times(logits, 0.0), logits])
    counts = _softmax(graph, logits)
    shares = graph.add("Div", [counts, graph.sums(counts)])
    return Said(graph.add("ArgMax", [logits], axis=1, keepdims=0), shares)


def _softmax(graph: Graph, logits: str) -> str:
    """Add the softmax by its table of exponentials, and its rounding."""
    most = graph.add("ReduceMax", [logits, graph.constant([1], np.int64)], keepdims=1)
    parts = _exponentials(graph, graph.add("Sub", [most, logits]))
    return _rounded_shares(graph, parts, graph.sums(parts))


def _logarithms(graph: Graph, shares: str) -> str:
    """Return logarithms of shares in units of probability, from their table."""
    places = graph.add("Cast", [graph.quotient(shares, 1 << SHARE_SHIFT)], to=INTEGER)
    return graph.add("Gather", [graph.constant(LOGARITHMS), places])


def _exponentials(graph: Graph, below: str) -> str:
    """Return exponentials of minus these logits, from their table."""
    steps = graph.quotient(below, 1 << STEP_SHIFT)
    places = graph.add("Min", [steps, graph.constant(len(EXPONENTIALS) - 1.0)])
    return graph.add(
        "Gather", [graph.constant(EXPONENTIALS), graph.add("Cast", [places], to=INTEGER)]
    )


def _rounded_shares(graph: Graph, parts: str, totals: str) -> str:
    """Return shares of totals, in whole units of probability."""
    raised = graph.add("Add", [graph.times(parts, PROBABILITY_UNIT), graph.quotient(totals, 2)])
    return graph.add("Floor", [graph.add("Div", [raised, totals])])


def _record_votes(graph: Graph, student: Any, points: Points) -> Said:
    coordinates = add_basis(graph, student.basis_, points)
    # the unit goes into the weights: a runtime may fuse a division by it in single precision
    weights = np.asarray(student.coef_).T / student._unit
    logits = graph.plus(graph.product(coordinates, weights), student.intercept_)
    return _most_probable(graph, graph.add("Softmax", [logits], axis=1))


def _most_probable(graph: Graph, shares: str) -> Said:
    return Said(graph.add("ArgMax", [shares], axis=1, keepdims=0), shares)


def _noisy_counts(graph: Graph, student: Any, points: str) -> Said:
    """Add a model of vote shares: linear in the columns, or in a kernel of landmarks."""
    centred = graph.add("Sub", [points, graph.constant(student.mean_)])
    features = graph.add("Div", [centred, graph.constant(student.scale_)])
    weights = np.asarray(student.coef_)
    if len(student.landmarks_):
        distances = add_squared_distances(graph, features, np.asarray(student.landmarks_))
        distances = graph.add("Max", [distances, graph.constant(0.0)])
        slope = -1 / (2 * float(student.length_) ** 2)
        features = graph.add("Exp", [graph.times(distances, slope)])
        weights = student.root_ @ weights
    return _vote_shares(
        graph, graph.plus(graph.product(features, weights), student.intercept_), student
    )


def _vote_shares(graph: Graph, shares: str, student: Any) -> Said:
    """Add the class of the largest share, and the nearest probabilities: what is left above the
    one level at which they are 1 together."""
    n_classes = len(student.classes_)
    if n_classes == 2:
        first = graph.add("Sub", [graph.constant(1.0), shares])
        shares = graph.joined([first, shares])
    negative, _ = graph.add_nearest(graph.times(shares, -1.0), n_classes)
    sums = graph.add("CumSum", [graph.times(negative, -1.0), graph.constant(1, np.int64)])
    over = graph.add("Div", [graph.plus(sums, -1.0), graph.constant([range(1, n_classes + 1)])])
    level = graph.add("ReduceMax", [over, graph.constant([1], np.int64)], keepdims=1)
    above = graph.add("Max", [graph.add("Sub", [shares, level]), graph.constant(0.0)])
    return Said(graph.add("ArgMax", [shares], axis=1, keepdims=0), above)


def _graph_counts(graph: Graph, student: Any, points: str) -> Said:
    """Add vote shares at the nearest points of the pool's graph."""
    k = min(student.n_neighbors, len(student.pool_))
    squares, places = _nearest(graph, points, student.pool_, k)
    middle = graph.add("Sqrt", [graph.columns(squares, [k // 2])])
    positive = graph.add("Greater", [middle, graph.constant(0.0)])
    reach = graph.where(positive, middle, graph.constant([[student.reach_.min()]]))
    own = graph.add("Gather", [graph.constant(student.reach_), places])
    exponents = graph.add("Div", [squares, graph.add("Mul", [reach, own])])
    least = graph.add("ReduceMin", [exponents, graph.constant([1], np.int64)], keepdims=1)
    weights = graph.add("Exp", [graph.add("Sub", [least, exponents])])
    weights = graph.add("Div", [weights, graph.sums(weights)])
    # of the modes one needs what they add up to at each point alone
    modes = student.modes_ / np.maximum(1.0 - student.frequencies_, 0.1)
    values = graph.add("Gather", [graph.constant(modes @ student.coef_), places])
    column = graph.add("Unsqueeze", [weights, graph.constant([2], np.int64)])
    sums = graph.sums(graph.add("Mul", [values, column]), keep=False)
    return _vote_shares(graph, graph.plus(sums, student.intercept_), student)


def _nearest(graph: Graph, points: str, pool: Any, k: int) -> tuple[str, str]:
    """Return squared distances to the k nearest points of a pool, and their places."""
    dense = np.asarray(pool.toarray() if hasattr(pool, "toarray") else pool, dtype=np.float64)
    _, places = graph.add_nearest(add_squared_distances(graph, points, dense), k)
    # once more, by differences: the others are not exactly 0 where points coincide
    found = graph.add("Gather", [graph.constant(dense), places])
    row = graph.add("Unsqueeze", [points, graph.constant([1], np.int64)])
    apart = graph.add("Sub", [found, row])
    return graph.sums(graph.add("Mul", [apart, apart]), 2, keep=False), places


def _mean_of_nearest(graph: Graph, student: Any, points: str, values: FloatArray) -> str:
    """Return the mean of values of shape (n_points, width) at the nearest points."""
    if student.effective_metric_ != "euclidean" or student.weights != "uniform":
        raise DataError(
            "nearest neighbours convert with Euclidean distances and equal weights alone"
        )
    _, places = _nearest(graph, points, student._fit_X, student.n_neighbors)
    found = graph.sums(graph.add("Gather", [graph.constant(values), places]), keep=False)
    return graph.add("Div", [found, graph.constant(float(student.n_neighbors))])


def _hypothesis(graph: Graph, student: Any, points: str) -> Said:
    """Add a cut, an interval, or one estimator of a list."""
    found, last = student.hypothesis_, len(student.classes_) - 1
    if hasattr(found, "estimator"):
        said = add_classifier(graph, found.estimator, points)
        positive = 1 if found.positive is None else found.positive
        truths = [int(value == positive) for value in found.estimator.classes_]
        index = graph.add("Gather", [graph.constant(truths, np.int64), said.index])
    else:
        if hasattr(found, "threshold"):
            column = graph.columns(points, [found.feature])
            truth = graph.add("GreaterOrEqual", [column, graph.constant(found.threshold)])
            truth = truth if found.direction == "up" else graph.add("Not", [truth])
        else:
            column = graph.columns(points, [0])
            above = graph.add("GreaterOrEqual", [column, graph.constant(found.lower)])
            below = graph.add("LessOrEqual", [column, graph.constant(found.upper)])
            truth = graph.add("And", [above, below])
        index = graph.flat(graph.add("Cast", [truth], to=INTEGER))
    return Said(graph.add("Min", [index, graph.constant(last, np.int64)]), None)


def _voting(graph: Graph, student: Any, points: str) -> Said:
    """Add a weighted vote of classifiers."""
    classes = list(student.classes_)
    each = graph.constant([range(len(classes))], np.int64)
    total = graph.zeros(points, len(classes))
    weights = student.weights_ / student.weights_.sum()
    for hypothesis, weight in zip(student.hypotheses_, weights, strict=True):
        said = add_classifier(graph, hypothesis, points)
        own = graph.constant([classes.index(one) for one in hypothesis.classes_], np.int64)
        voted = graph.add("Gather", [own, said.index])
        voted = graph.add("Unsqueeze", [voted, graph.constant([1], np.int64)])
        votes = graph.as_numbers(graph.add("Equal", [voted, each]))
        total = graph.add("Add", [total, graph.times(votes, weight)])
    return _most_probable(graph, total)


def _numbered(graph: Graph, student: Any, points: str) -> Said:
    """Add a learner that answers with numbers of classes; its own are these numbers."""
    return add_classifier(graph, student.classifier_, points)


_ADDERS = {
    "NoisyCountsClassifier": _noisy_counts,
    "GraphCountsClassifier": _graph_counts,
    "HypothesisStudent": _hypothesis,
    "VotingStudent": _voting,
    "NumberedClassesClassifier": _numbered,
}


def _linear_classifier(graph: Graph, student: Any, points: str) -> Said:
    """Add a linear classifier without probabilities; of two classes it has one function."""
    scores = graph.plus(
        graph.product(points, np.atleast_2d(student.coef_).T),
        np.reshape(student.intercept_, (1, -1)),
    )
    if len(student.classes_) == 2:
        scores = graph.joined([graph.times(scores, 0.0), scores])
    return Said(graph.add("ArgMax", [scores], axis=1, keepdims=0), None)


def _shares_of_learner(graph: Graph, student: Any, points: str) -> str | None:
    """Add the probabilities of a learner of scikit-learn that is written here, None for others."""
    if isinstance(student, DummyClassifier):
        constant = student.predict_proba(np.zeros((1, 1)))
        return graph.plus(graph.zeros(points, len(student.classes_)), constant)
    if isinstance(student, KNeighborsClassifier):
        each = np.eye(len(student.classes_))[np.asarray(student._y).ravel()]
        return _mean_of_nearest(graph, student, points, each)
    if isinstance(student, HistGradientBoostingClassifier | GradientBoostingClassifier):
        boosted = _raw_boosted if hasattr(student, "_predictors") else _raw_gradient
        raw = boosted(graph, student, points)
        if len(student.classes_) > 2:
            return graph.add("Softmax", [raw], axis=1)
        second = graph.add("Sigmoid", [raw])
        return graph.joined([graph.add("Sub", [graph.constant(1.0), second]), second])
    trees = _trees_of(student)
    return None if trees is None else _mean_of_trees(graph, trees, points)


def _trees_of(student: Any) -> list[Tree] | None:
    if isinstance(student, BaseDecisionTree):
        return [grown_tree(student)]
    return (
        [grown_tree(one) for one in student.estimators_] if isinstance(student, _FORESTS) else None
    )


def _mean_of_trees(graph: Graph, trees: list[Tree], points: str) -> str:
    values = graph.sums(add_trees(graph, points, trees, single=True), keep=False)
    return graph.add("Div", [values, graph.constant(float(len(trees)))])


def _raw_boosted(graph: Graph, student: Any, points: str) -> str:
    """Return what boosted trees add up to, of shape (n, n_outputs)."""
    if getattr(student, "_preprocessor", None) is not None:
        raise DataError("boosted trees that split by categories have no ONNX form")
    width = student.n_trees_per_iteration_
    trees = [
        histogram_tree(tree, place, width)
        for iteration in student._predictors
        for place, tree in enumerate(iteration)
    ]
    values = graph.sums(add_trees(graph, points, trees, single=False), keep=False)
    return graph.plus(values, np.reshape(student._baseline_prediction, (1, width)))


def _raw_gradient(graph: Graph, student: Any, points: str) -> str:
    """Return the same of gradient boosting of grown trees."""
    if student.loss != "log_loss" or not (
        student.init_ == "zero" or isinstance(student.init_, DummyClassifier)
    ):
        raise DataError("gradient boosting converts with log_loss and the usual start alone")
    width, trees = student.estimators_.shape[1], []
    for place, estimator in enumerate(student.estimators_.T.ravel()):
        tree, values = grown_tree(estimator), np.zeros((estimator.tree_.node_count, width))
        values[:, place // len(student.estimators_)] = student.learning_rate * tree.values[:, 0]
        trees.append(Tree(**{**vars(tree), "values": values}))
    sums = graph.sums(add_trees(graph, points, trees, single=True), keep=False)
    start = student._raw_predict_init(np.zeros((1, student.n_features_in_), dtype=np.float32))
    return graph.plus(sums, start)


def _transformed(graph: Graph, steps: Any, points: str) -> str:
    """Return what the first steps of a pipeline make of points."""
    if not len(steps) or all(step == "passthrough" for _, step in steps.steps):
        return points
    return graph.add_inner(_skl2onnx(steps, steps.n_features_in_), points)[0]


def _converted(graph: Graph, student: Any, points: str) -> Said:
    """Add any other classifier, as skl2onnx converts it."""
    made = _skl2onnx(student, student.n_features_in_)
    label, *shares = graph.add_inner(made, points)
    classes: NDArray[Any] = np.asarray(student.classes_)
    if classes.dtype.kind in "iub":
        keys = {"keys_int64s": classes.astype(np.int64).tolist()}
        label = graph.add(
            "LabelEncoder",
            [label],
            values_int64s=list(range(len(classes))),
            default_int64=0,
            **keys,
        )
    else:
        label = add_places(graph, label, {str(one): k for k, one in enumerate(classes)}, 0)
    return Said(graph.flat(label), shares[0] if hasattr(student, "predict_proba") else None)


def _skl2onnx(learner: Any, width: int) -> Any:
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
                initial_types=[("X", DoubleTensorType([None, width]))],
                options=_options(learner),
                target_opset=OPSETS,
            )
    except MemoryError:
        raise
    except Exception as error:  # converters are many and raise what they like
        raise DataError(one_line(error)) from None


def one_line(error: Exception) -> str:
    """Return the kind of an error, and the beginning of what it says."""
    said = next(iter(str(error).splitlines()), "")[:200].rstrip(".: ")
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _of_scikit_learn(learner: Any) -> Any:
    """Return a learner as one of the class of scikit-learn that its own class is made from, which
    alone the converter knows; whether it predicts so is checked."""
    kinds = type(learner).__mro__
    known = [kind for kind in kinds if kind.__module__.startswith("sklearn.")]
    found = copy.copy(learner)
    found.__class__ = (known or kinds)[0]
    return found


def _options(learner: Any) -> dict[str, Any] | None:
    return {"zipmap": False} if hasattr(learner, "predict_proba") else None
