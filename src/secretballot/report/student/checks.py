"""The objects of a student that was read: shapes and indices that compiled code would follow
without looking.

scikit-learn checks what its users give to `fit` and `predict`; what a fitted learner keeps, it
trusts. In a file that somebody else wrote, an index may point anywhere. Types that are not known
here are loaded only for a reader who names them.
"""

import importlib
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from secretballot.report.student.grammar import NotAStudentError, check_branches

__all__ = ["check_student", "known_estimators"]

# Estimators whose predictions are made by numpy alone, which checks every index, or whose structure
# is checked below.
_ESTIMATORS = {
    "sklearn.calibration": ("CalibratedClassifierCV",),
    "sklearn.compose": ("ColumnTransformer",),
    "sklearn.decomposition": ("PCA", "TruncatedSVD"),
    "sklearn.discriminant_analysis": (
        "LinearDiscriminantAnalysis",
        "QuadraticDiscriminantAnalysis",
    ),
    "sklearn.dummy": ("DummyClassifier",),
    "sklearn.ensemble": (
        "AdaBoostClassifier",
        "ExtraTreesClassifier",
        "GradientBoostingClassifier",
        "HistGradientBoostingClassifier",
        "RandomForestClassifier",
        "StackingClassifier",
        "VotingClassifier",
    ),
    "sklearn.feature_selection": ("SelectKBest", "SelectPercentile", "VarianceThreshold"),
    "sklearn.gaussian_process": ("GaussianProcessClassifier",),
    "sklearn.impute": ("MissingIndicator", "SimpleImputer"),
    "sklearn.linear_model": (
        "LogisticRegression",
        "LogisticRegressionCV",
        "Perceptron",
        "RidgeClassifier",
        "RidgeClassifierCV",
        "SGDClassifier",
    ),
    "sklearn.multiclass": ("OneVsRestClassifier",),
    "sklearn.naive_bayes": ("BernoulliNB", "ComplementNB", "GaussianNB", "MultinomialNB"),
    "sklearn.neighbors": ("KNeighborsClassifier", "NearestCentroid"),
    "sklearn.neural_network": ("MLPClassifier",),
    "sklearn.pipeline": ("FeatureUnion", "Pipeline"),
    "sklearn.preprocessing": (
        "Binarizer",
        "FunctionTransformer",
        "LabelBinarizer",
        "LabelEncoder",
        "MaxAbsScaler",
        "MinMaxScaler",
        "Normalizer",
        "OneHotEncoder",
        "OrdinalEncoder",
        "PowerTransformer",
        "QuantileTransformer",
        "RobustScaler",
        "StandardScaler",
    ),
    "sklearn.svm": ("LinearSVC",),
    "sklearn.tree": ("DecisionTreeClassifier", "DecisionTreeRegressor", "ExtraTreeClassifier"),
}
_MOST_COLUMNS = 10_000_000
_TREES, _SEARCH = ("Tree",), ("KDTree", "BallTree")
_COMPILED = (*_TREES, "TreePredictor", *_SEARCH)
_MOST_DRAWN = 624  # numbers that a Mersenne twister keeps


@cache
def known_estimators() -> frozenset[str]:
    """Return the full names of scikit-learn's estimators that a student may be or hold."""
    found = []
    for module, names in _ESTIMATORS.items():
        room = importlib.import_module(module)
        found += [getattr(room, name) for name in names]
    return frozenset(_name(kind) for kind in found)


def check_student(student: Any) -> None:
    """Check every object in a student, and that it predicts.

    Raises
    ------
    NotAStudentError
        If compiled code might follow something in it beyond its end.
    """
    _demand(hasattr(student, "predict"), "it holds nothing that predicts")
    owned, compiled = set[int](), dict[int, Any]()
    for one in _objects(student):
        _check_attributes(one)
        if type(one).__name__ in _COMPILED:
            compiled[id(one)] = one
        for part in _CHECKS.get(type(one).__name__, _nothing)(one):
            owned.add(id(part))
    _demand(set(compiled) <= owned, "a tree of it stands where none belongs")


def _demand(holds: Any, otherwise: str) -> None:
    if not holds:
        raise NotAStudentError(otherwise)


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _objects(student: Any) -> Iterator[Any]:
    """Yield every object below a student once, with itself."""
    waiting, seen = [student], dict[int, Any]()  # kept, so that no address is used again
    while waiting:
        one = waiting.pop()
        if id(one) in seen or one is None or isinstance(one, str | bytes | int | float | type):
            continue
        seen[id(one)] = one
        yield one
        waiting += _inside(one)


def _inside(one: Any) -> list[Any]:
    if isinstance(one, dict):
        return list(one.values())
    if isinstance(one, list | tuple | set | frozenset):
        return list(one)
    if isinstance(one, np.ndarray):
        return one.ravel().tolist() if one.dtype.hasobject else []
    return list(vars(one).values()) if hasattr(one, "__dict__") else []


def _check_attributes(one: Any) -> None:
    """Check what all objects of a student have in common."""
    if isinstance(one, np.random.RandomState):
        state: Any = one.get_state(legacy=False)
        position = state["state"].get("pos")
        _demand(
            state["bit_generator"] == "MT19937" and 0 <= position <= _MOST_DRAWN,
            "a generator of it is none",
        )
    if isinstance(one, np.random.Generator):
        _demand(type(one.bit_generator).__name__ == "PCG64", "a generator of it is of an odd kind")
    if not hasattr(one, "__dict__") or isinstance(one, np.ndarray | dict):
        return
    hidden = [name for name in vars(one) if callable(getattr(type(one), str(name), None))]
    _demand(not hidden, "an attribute of it hides a method")
    if isinstance(one, BaseEstimator):
        _check_estimator(one)


def _check_estimator(one: Any) -> None:
    about = vars(one)
    if "n_features_in_" in about:
        _demand(_is_count(about["n_features_in_"], _MOST_COLUMNS), "its number of columns is none")
    classes, n_classes = about.get("classes_"), about.get("n_classes_")
    if isinstance(classes, np.ndarray):
        _demand(classes.ndim == 1 and len(classes), "its classes are no list")
        _demand(
            n_classes is None or _is_count(n_classes, len(classes), len(classes)),
            "it has another number of classes",
        )


def _is_count(value: Any, most: int, least: int = 1) -> bool:
    return (
        isinstance(value, int | np.integer)
        and not isinstance(value, bool)
        and bool(least <= value <= most)
    )


def _nothing(one: Any) -> list[Any]:
    return []


def _columns(one: Any) -> int:
    """Return the number of columns of an estimator, which it must know to refuse points of other
    shapes."""
    columns = vars(one).get("n_features_in_")
    _demand(_is_count(columns, _MOST_COLUMNS), "a learner of it does not know its columns")
    return int(columns)


def _check_tree(one: Any) -> list[Any]:
    about = vars(one)
    if "tree_" not in about:
        return []
    tree = about["tree_"]
    _demand(
        type(tree).__name__ == "Tree" and tree.n_features == _columns(one),
        "a tree of it has other columns",
    )
    _demand(about.get("n_outputs_") == 1, "a tree of it has several outputs")
    _demand(
        "classes_" not in about or len(about["classes_"]) == tree.n_classes[0],
        "a tree of it has other classes",
    )
    return [tree]


def _check_forest(one: Any) -> list[Any]:
    """Check a forest, whose trees take its points without a look at them."""
    about = vars(one)
    if "estimators_" not in about:
        return []
    trees = about["estimators_"]
    _demand(
        isinstance(trees, list) and trees and about.get("n_outputs_") == 1,
        "a forest of it has no trees",
    )
    _demand(_is_count(about.get("n_classes_"), 1 << 20), "a forest of it has no classes")
    for tree in trees:
        _demand(
            type(tree).__name__ in ("DecisionTreeClassifier", "ExtraTreeClassifier"),
            "a forest of it has odd trees",
        )
        _demand(
            "tree_" in vars(tree) and _columns(tree) == _columns(one),
            "a tree of it has other columns",
        )
        _demand(
            vars(tree).get("n_classes_") == about["n_classes_"], "a tree of it has other classes"
        )
    return []


def _check_boosting(one: Any) -> list[Any]:
    """Check gradient boosting, which adds up its trees in an array of a shape that follows from
    other attributes."""
    about = vars(one)
    if "estimators_" not in about:
        return []
    trees, n_classes = about["estimators_"], about.get("n_classes_")
    _demand(_is_count(n_classes, 1 << 20, 2), "a boosted learner of it has no classes")
    outputs = 1 if n_classes == 2 else n_classes
    _demand(
        isinstance(trees, np.ndarray) and trees.ndim == 2 and trees.dtype == object,
        "it boosts no trees",
    )
    _demand(
        len(trees) and trees.shape[1] == outputs == about.get("n_trees_per_iteration_"),
        "it boosts odd trees",
    )
    for tree in trees.ravel():
        _demand(
            type(tree).__name__ == "DecisionTreeRegressor" and "tree_" in vars(tree),
            "it boosts odd trees",
        )
        _demand(
            _columns(tree) == _columns(one) and tree.tree_.value.shape[1:] == (1, 1),
            "it boosts odd trees",
        )
    _check_start(about.get("init_"), n_classes)
    _check_loss(about.get("_loss"), outputs)
    return []


def _check_start(start: Any, n_classes: Any) -> None:
    if isinstance(start, str) and start == "zero":
        return
    about = vars(start) if type(start).__name__ == "DummyClassifier" else {}
    prior = about.get("class_prior_")
    fits = (
        isinstance(prior, np.ndarray)
        and prior.shape == (n_classes,)
        and about.get("n_outputs_") == 1
    )
    _demand(fits and about.get("strategy") == "prior", "a boosted learner of it starts oddly")
    _demand(about.get("n_classes_") == n_classes, "a boosted learner of it starts oddly")


def _check_loss(loss: Any, outputs: int) -> None:
    kinds = {"HalfBinomialLoss": "LogitLink", "ExponentialLoss": "HalfLogitLink"}
    kinds = kinds if outputs == 1 else {"HalfMultinomialLoss": "MultinomialLogit"}
    link = kinds.get(type(loss).__name__)
    _demand(
        link is not None and type(loss.link).__name__ == link,
        "a boosted learner of it has an odd loss",
    )
    _demand(
        "is_multiclass" not in vars(loss) or loss.is_multiclass is (outputs > 1),
        "it has an odd loss",
    )


def _check_histograms(one: Any) -> list[Any]:
    about = vars(one)
    if "_predictors" not in about:
        return []
    rounds, outputs = about["_predictors"], about.get("n_trees_per_iteration_")
    _demand(
        _is_count(outputs, 1 << 20) and isinstance(rounds, list),
        "a boosted learner of it has no trees",
    )
    _demand(
        all(isinstance(trees, list) and len(trees) == outputs for trees in rounds),
        "it boosts odd trees",
    )
    _demand(about.get("_n_features") == _columns(one), "a boosted learner of it has other columns")
    # With categories it sorts the columns anew before its trees see them.
    _demand(
        about.get("_preprocessor") is None,
        "a boosted learner of it takes categories, which are not checked",
    )
    found = [tree for trees in rounds for tree in trees]
    for tree in found:
        _demand(type(tree).__name__ == "TreePredictor", "it boosts odd trees")
        _check_predictor(tree.nodes, _columns(one))
    return found


def _check_predictor(nodes: Any, n_columns: int) -> None:
    from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE

    _demand(
        isinstance(nodes, np.ndarray) and nodes.dtype == PREDICTOR_RECORD_DTYPE,
        "it boosts odd trees",
    )
    _demand(
        nodes.ndim == 1 and len(nodes) and not nodes["is_categorical"].any(),
        "it boosts trees with categories",
    )
    leaf = nodes["is_leaf"].astype(bool)
    check_branches(nodes["left"], nodes["right"], leaf)
    asked = nodes["feature_idx"][~leaf]
    _demand(((asked >= 0) & (asked < n_columns)).all(), "a tree of it asks no column")


def _check_neighbours(one: Any) -> list[Any]:
    about = vars(one)
    if "_fit_X" not in about:
        return []
    points, labels, tree = about["_fit_X"], about.get("_y"), about.get("_tree")
    shape: Any = getattr(points, "shape", ())
    _demand(
        len(shape) == 2 and shape[0] and shape[1] == _columns(one),
        "its neighbours have other columns",
    )
    _demand(
        isinstance(labels, np.ndarray) and labels.shape == (shape[0],),
        "its neighbours have no labels",
    )
    classes = about.get("classes_")
    inside = isinstance(classes, np.ndarray) and labels.dtype.kind == "i"
    _demand(
        inside and ((labels >= 0) & (labels < len(classes))).all(),
        "its neighbours have labels of no class",
    )
    _demand(about.get("n_samples_fit_") == shape[0], "its neighbours are not as many as it says")
    _demand(about.get("outputs_2d_") is False, "its neighbours have several labels")
    _demand(
        _is_count(about.get("n_neighbors"), shape[0]), "it asks for more neighbours than there are"
    )
    _demand(
        about.get("_fit_method") in (("brute",) if tree is None else ("kd_tree", "ball_tree")),
        "its search is odd",
    )
    if tree is None:
        return []
    _demand(type(tree).__name__ in _SEARCH, "its search tree is none")
    _check_search_tree(tree, shape)
    return [tree]


def _check_search_tree(tree: Any, shape: tuple[int, int]) -> None:
    data, order, nodes, bounds, leaf_size, n_levels, n_nodes, *_, metric, weights = (
        tree.__getstate__()
    )
    n_points, n_columns = shape
    _demand(
        data.shape == shape and np.array_equal(np.sort(order), np.arange(n_points)),
        "its search tree is not whole",
    )
    _demand(
        leaf_size >= 1 and 1 <= n_levels <= 40 and n_nodes == len(nodes) == 2**n_levels - 1,
        "its tree is odd",
    )
    outer = 2 if type(tree).__name__ == "KDTree" else 1
    _demand(
        bounds.shape == (outer, n_nodes, n_columns) and weights is None,
        "its search tree has odd bounds",
    )
    start, end = nodes["idx_start"], nodes["idx_end"]
    _demand(
        ((start >= 0) & (start <= end) & (end <= n_points)).all(),
        "its search tree leads beyond its points",
    )
    _demand((nodes["is_leaf"][n_nodes // 2 :] != 0).all(), "its search tree leads beyond itself")
    _check_metric(metric, n_columns)


def _check_metric(metric: Any, n_columns: int) -> None:
    power, weights, matrix = metric.__getstate__()[:3]
    # A weight for every column, or none; the other metrics do not look at them.
    minkowski = type(metric).__name__ == "MinkowskiDistance64"
    _demand(
        not minkowski or weights.shape in ((0,), (n_columns,)), "a distance of it has odd weights"
    )
    _demand(power > 0 and matrix.ndim == 2, "a distance of it is none")


def _check_one_hot(one: Any) -> list[Any]:
    """Check an encoder, which puts ones into a sparse matrix at places that follow from its
    categories."""
    about = vars(one)
    if "categories_" not in about:
        return []
    categories, widths = about["categories_"], about.get("_n_features_outs")
    plain = about.get("drop_idx_") is None and about.get("_drop_idx_after_grouping") is None
    _demand(
        plain and not about.get("_infrequent_enabled"),
        "an encoder of it drops categories, which is not checked",
    )
    _demand(
        isinstance(categories, list) and len(categories) == _columns(one),
        "an encoder of it has other columns",
    )
    _demand(
        all(isinstance(part, np.ndarray) and part.ndim == 1 for part in categories),
        "an encoder of it is odd",
    )
    _demand(
        list(widths or ()) == [len(part) for part in categories],
        "an encoder of it has other widths",
    )
    return []


_CHECKS: dict[str, Callable[[Any], list[Any]]] = {
    "DecisionTreeClassifier": _check_tree,
    "DecisionTreeRegressor": _check_tree,
    "ExtraTreeClassifier": _check_tree,
    "ExtraTreesClassifier": _check_forest,
    "GradientBoostingClassifier": _check_boosting,
    "HistGradientBoostingClassifier": _check_histograms,
    "KNeighborsClassifier": _check_neighbours,
    "OneHotEncoder": _check_one_hot,
    "RandomForestClassifier": _check_forest,
}
