"""The objects of a student that was read: shapes and indices that compiled code follows blindly.

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

from secretballot.report.student.grammar import check_branches, refuse_unless

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
        "ExtraTreesRegressor",
        "GradientBoostingClassifier",
        "HistGradientBoostingClassifier",
        "HistGradientBoostingRegressor",
        "RandomForestClassifier",
        "RandomForestRegressor",
        "StackingClassifier",
        "VotingClassifier",
    ),
    "sklearn.feature_selection": ("SelectKBest", "SelectPercentile", "VarianceThreshold"),
    "sklearn.gaussian_process": ("GaussianProcessClassifier",),
    "sklearn.impute": ("MissingIndicator", "SimpleImputer"),
    "sklearn.linear_model": (
        "ElasticNet",
        "HuberRegressor",
        "Lasso",
        "LinearRegression",
        "LogisticRegression",
        "LogisticRegressionCV",
        "Perceptron",
        "Ridge",
        "RidgeClassifier",
        "RidgeClassifierCV",
        "RidgeCV",
        "SGDClassifier",
    ),
    "sklearn.multiclass": ("OneVsRestClassifier",),
    "sklearn.naive_bayes": ("BernoulliNB", "ComplementNB", "GaussianNB", "MultinomialNB"),
    "sklearn.neighbors": ("KNeighborsClassifier", "KNeighborsRegressor", "NearestCentroid"),
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
    "sklearn.tree": (
        "DecisionTreeClassifier",
        "DecisionTreeRegressor",
        "ExtraTreeClassifier",
        "ExtraTreeRegressor",
    ),
}
_MOST_COLUMNS = 10_000_000
_TREES, _SEARCH = ("Tree",), ("KDTree", "BallTree")
_COMPILED = (*_TREES, "TreePredictor", *_SEARCH)
_LARGEST_INTEGER = 2**40
_MOST_DRAWN = 624  # numbers that a Mersenne twister keeps


@cache
def known_estimators() -> frozenset[str]:
    """Return the full names of scikit-learn's estimators that a student may be or hold."""
    found = []
    for module, names in _ESTIMATORS.items():
        room = importlib.import_module(module)
        found += [getattr(room, name) for name in names]
    return frozenset(_full_name(kind) for kind in found)


def check_student(student: Any) -> None:
    """Check every object in a student, and that it predicts.

    Raises
    ------
    NotAStudentError
        If compiled code might follow something in it beyond its end.
    """
    refuse_unless(hasattr(student, "predict"), "it holds nothing that predicts")
    # a compiled tree is safe only inside the estimator whose columns it was checked against; one
    # that stands anywhere else could be reached by a path that nobody looked at
    owned, compiled = set[int](), dict[int, Any]()
    for one in _objects_below(student):
        _check_attributes(one)
        if type(one).__name__ in _COMPILED:
            compiled[id(one)] = one
        for part in _CHECKS.get(type(one).__name__, _no_parts)(one):
            owned.add(id(part))
    refuse_unless(set(compiled) <= owned, "a tree of it stands where none belongs")


def _full_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _objects_below(student: Any) -> Iterator[Any]:
    """Yield every object below a student once, with itself."""
    waiting, seen = [student], dict[int, Any]()  # kept, so that no address is used again
    while waiting:
        one = waiting.pop()
        if id(one) in seen or one is None or isinstance(one, str | bytes | int | float | type):
            continue
        seen[id(one)] = one
        yield one
        waiting += _parts_of(one)


def _parts_of(one: Any) -> list[Any]:
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
        refuse_unless(
            state["bit_generator"] == "MT19937" and 0 <= position <= _MOST_DRAWN,
            "a generator of it is none",
        )
    if isinstance(one, np.random.Generator):
        refuse_unless(
            type(one.bit_generator).__name__ == "PCG64", "a generator of it is of an odd kind"
        )
    if not hasattr(one, "__dict__") or isinstance(one, np.ndarray | dict):
        return
    hidden = [name for name in vars(one) if callable(getattr(type(one), str(name), None))]
    refuse_unless(not hidden, "an attribute of it hides a method")
    if isinstance(one, BaseEstimator):
        _check_estimator(one)


def _check_estimator(one: Any) -> None:
    about = vars(one)
    if "n_features_in_" in about:
        refuse_unless(
            _is_count(about["n_features_in_"], _MOST_COLUMNS), "its number of columns is none"
        )
    classes, n_classes = about.get("classes_"), about.get("n_classes_")
    if isinstance(classes, np.ndarray):
        refuse_unless(classes.ndim == 1 and len(classes), "its classes are no list")
        refuse_unless(
            n_classes is None or _is_count(n_classes, len(classes), len(classes)),
            "it has another number of classes",
        )


def _is_count(value: Any, most: int, least: int = 1) -> bool:
    return (
        isinstance(value, int | np.integer)
        and not isinstance(value, bool)
        and bool(least <= value <= most)
    )


def _no_parts(one: Any) -> list[Any]:
    return []


def _n_columns(one: Any) -> int:
    """Return the number of columns of an estimator, which it must know to refuse other points."""
    columns = vars(one).get("n_features_in_")
    refuse_unless(_is_count(columns, _MOST_COLUMNS), "a learner of it does not know its columns")
    return int(columns)


def _check_tree(one: Any) -> list[Any]:
    about = vars(one)
    if "tree_" not in about:
        return []
    tree = about["tree_"]
    refuse_unless(
        type(tree).__name__ == "Tree" and tree.n_features == _n_columns(one),
        "a tree of it has other columns",
    )
    refuse_unless(about.get("n_outputs_") == 1, "a tree of it has several outputs")
    refuse_unless(
        "classes_" not in about or len(about["classes_"]) == tree.n_classes[0],
        "a tree of it has other classes",
    )
    return [tree]


def _check_forest(one: Any) -> list[Any]:
    """Check a forest, whose trees take its points without a look at them."""
    about = vars(one)
    if "estimators_" not in about:
        return []
    # a forest checks points once, against its own columns, and hands them to its trees unchecked
    trees = about["estimators_"]
    refuse_unless(
        isinstance(trees, list) and trees and about.get("n_outputs_") == 1,
        "a forest of it has no trees",
    )
    of_numbers = type(one).__name__.endswith("Regressor")
    refuse_unless(
        of_numbers or _is_count(about.get("n_classes_"), 1 << 20), "a forest of it has no classes"
    )
    ending = "Regressor" if of_numbers else "Classifier"
    for tree in trees:
        refuse_unless(
            type(tree).__name__ in (f"DecisionTree{ending}", f"ExtraTree{ending}"),
            "a forest of it has odd trees",
        )
        refuse_unless(
            "tree_" in vars(tree) and _n_columns(tree) == _n_columns(one),
            "a tree of it has other columns",
        )
        refuse_unless(
            of_numbers or vars(tree).get("n_classes_") == about["n_classes_"],
            "a tree of it has other classes",
        )
    return []


def _check_boosting(one: Any) -> list[Any]:
    """Check gradient boosting, which adds its trees up in an array shaped by other attributes."""
    # first the array of trees, then each tree, then where it starts and its loss
    about = vars(one)
    if "estimators_" not in about:
        return []
    trees, n_classes = about["estimators_"], about.get("n_classes_")
    refuse_unless(_is_count(n_classes, 1 << 20, 2), "a boosted learner of it has no classes")
    outputs = 1 if n_classes == 2 else n_classes
    refuse_unless(
        isinstance(trees, np.ndarray) and trees.ndim == 2 and trees.dtype == object,
        "it boosts no trees",
    )
    refuse_unless(
        len(trees) and trees.shape[1] == outputs == about.get("n_trees_per_iteration_"),
        "it boosts odd trees",
    )
    for tree in trees.ravel():
        refuse_unless(
            type(tree).__name__ == "DecisionTreeRegressor" and "tree_" in vars(tree),
            "it boosts odd trees",
        )
        refuse_unless(
            _n_columns(tree) == _n_columns(one) and tree.tree_.value.shape[1:] == (1, 1),
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
    refuse_unless(fits and about.get("strategy") == "prior", "a boosted learner of it starts oddly")
    refuse_unless(about.get("n_classes_") == n_classes, "a boosted learner of it starts oddly")


def _check_loss(loss: Any, outputs: int) -> None:
    kinds = {"HalfBinomialLoss": "LogitLink", "ExponentialLoss": "HalfLogitLink"}
    kinds = kinds if outputs == 1 else {"HalfMultinomialLoss": "MultinomialLogit"}
    link = kinds.get(type(loss).__name__)
    refuse_unless(
        link is not None and type(loss.link).__name__ == link,
        "a boosted learner of it has an odd loss",
    )
    refuse_unless(
        "is_multiclass" not in vars(loss) or loss.is_multiclass is (outputs > 1),
        "it has an odd loss",
    )


def _check_histograms(one: Any) -> list[Any]:
    about = vars(one)
    if "_predictors" not in about:
        return []
    rounds, outputs = about["_predictors"], about.get("n_trees_per_iteration_")
    refuse_unless(
        _is_count(outputs, 1 << 20) and isinstance(rounds, list),
        "a boosted learner of it has no trees",
    )
    refuse_unless(
        all(isinstance(trees, list) and len(trees) == outputs for trees in rounds),
        "it boosts odd trees",
    )
    refuse_unless(
        about.get("_n_features") == _n_columns(one), "a boosted learner of it has other columns"
    )
    # With categories it sorts the columns anew before its trees see them.
    refuse_unless(
        about.get("_preprocessor") is None,
        "a boosted learner of it takes categories, which are not checked",
    )
    found = [tree for trees in rounds for tree in trees]
    for tree in found:
        refuse_unless(type(tree).__name__ == "TreePredictor", "it boosts odd trees")
        _check_predictor(tree.nodes, _n_columns(one))
    return found


def _check_predictor(nodes: Any, n_columns: int) -> None:
    from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE

    refuse_unless(
        isinstance(nodes, np.ndarray) and nodes.dtype == PREDICTOR_RECORD_DTYPE,
        "it boosts odd trees",
    )
    refuse_unless(
        nodes.ndim == 1 and len(nodes) and not nodes["is_categorical"].any(),
        "it boosts trees with categories",
    )
    leaf = nodes["is_leaf"].astype(bool)
    check_branches(nodes["left"], nodes["right"], leaf)
    asked = nodes["feature_idx"][~leaf]
    refuse_unless(((asked >= 0) & (asked < n_columns)).all(), "a tree of it asks no column")


def _check_neighbours(one: Any) -> list[Any]:
    about = vars(one)
    if "_fit_X" not in about:
        return []
    # a prediction looks neighbours up by number, then their labels, then the classes of these:
    # none of the three lookups may leave its array
    points, labels, tree = about["_fit_X"], about.get("_y"), about.get("_tree")
    shape: Any = getattr(points, "shape", ())
    refuse_unless(
        len(shape) == 2 and shape[0] and shape[1] == _n_columns(one),
        "its neighbours have other columns",
    )
    refuse_unless(
        isinstance(labels, np.ndarray) and labels.shape == (shape[0],),
        "its neighbours have no labels",
    )
    if type(one).__name__ == "KNeighborsRegressor":  # whose labels are no indices
        refuse_unless(labels.dtype.kind in "iuf", "its neighbours have no numbers")
    else:
        classes = about.get("classes_")
        inside = isinstance(classes, np.ndarray) and labels.dtype.kind == "i"
        refuse_unless(
            inside and ((labels >= 0) & (labels < len(classes))).all(),
            "its neighbours have labels of no class",
        )
        refuse_unless(about.get("outputs_2d_") is False, "its neighbours have several labels")
    refuse_unless(
        about.get("n_samples_fit_") == shape[0], "its neighbours are not as many as it says"
    )
    refuse_unless(
        _is_count(about.get("n_neighbors"), shape[0]), "it asks for more neighbours than there are"
    )
    refuse_unless(
        about.get("_fit_method") in (("brute",) if tree is None else ("kd_tree", "ball_tree")),
        "its search is odd",
    )
    if tree is None:
        return []
    refuse_unless(type(tree).__name__ in _SEARCH, "its search tree is none")
    _check_search_tree(tree, shape)
    return [tree]


def _check_search_tree(tree: Any, shape: tuple[int, int]) -> None:
    # children of node i are 2 i + 1 and 2 i + 2 by the class's own rule, so that enough levels of
    # nodes, ranges inside the points, and leaves at the end keep the search inside
    data, order, nodes, bounds, leaf_size, n_levels, n_nodes, *_, metric, weights = (
        tree.__getstate__()
    )
    n_points, n_columns = shape
    refuse_unless(
        data.shape == shape and np.array_equal(np.sort(order), np.arange(n_points)),
        "its search tree is not whole",
    )
    refuse_unless(
        leaf_size >= 1 and 1 <= n_levels <= 40 and n_nodes == len(nodes) == 2**n_levels - 1,
        "its tree is odd",
    )
    outer = 2 if type(tree).__name__ == "KDTree" else 1
    refuse_unless(
        bounds.shape == (outer, n_nodes, n_columns) and weights is None,
        "its search tree has odd bounds",
    )
    start, end = nodes["idx_start"], nodes["idx_end"]
    refuse_unless(
        ((start >= 0) & (start <= end) & (end <= n_points)).all(),
        "its search tree leads beyond its points",
    )
    refuse_unless(
        (nodes["is_leaf"][n_nodes // 2 :] != 0).all(), "its search tree leads beyond itself"
    )
    _check_metric(metric, n_columns)


def _check_metric(metric: Any, n_columns: int) -> None:
    power, weights, matrix = metric.__getstate__()[:3]
    # A weight for every column, or none; the other metrics do not look at them.
    minkowski = type(metric).__name__ == "MinkowskiDistance64"
    refuse_unless(
        not minkowski or weights.shape in ((0,), (n_columns,)), "a distance of it has odd weights"
    )
    refuse_unless(power > 0 and matrix.ndim == 2, "a distance of it is none")


def _check_one_hot(one: Any) -> list[Any]:
    """Check an encoder, which puts ones into a sparse matrix at places given by its categories."""
    about = vars(one)
    if "categories_" not in about:
        return []
    # without dropped or grouped categories, the place of a one is the category's number plus the
    # widths before it: all of them are compared here
    categories, widths = about["categories_"], about.get("_n_features_outs")
    plain = about.get("drop_idx_") is None and about.get("_drop_idx_after_grouping") is None
    refuse_unless(
        plain and not about.get("_infrequent_enabled"),
        "an encoder of it drops categories, which is not checked",
    )
    refuse_unless(
        isinstance(categories, list) and len(categories) == _n_columns(one),
        "an encoder of it has other columns",
    )
    refuse_unless(
        all(isinstance(part, np.ndarray) and part.ndim == 1 for part in categories),
        "an encoder of it is odd",
    )
    refuse_unless(
        list(widths or ()) == [len(part) for part in categories],
        "an encoder of it has other widths",
    )
    return []


def _check_basis(one: Any) -> list[Any]:
    """Check a public basis: what its columns give, the rotation takes, and all are integers."""
    about = vars(one)
    # a basis that is not fitted holds settings alone
    if "_rotation" not in about:
        return []
    columns, rotation = about.get("_columns"), about["_rotation"]
    refuse_unless(
        isinstance(columns, list) and len(columns) == _n_columns(one) and columns,
        "a basis of it has other columns",
    )
    names = about.get("feature_names_in_")
    refuse_unless(
        isinstance(names, np.ndarray)
        and names.shape == (len(columns),)
        and all(isinstance(name, str) for name in names.tolist()),
        "a basis of it has other names than columns",
    )
    for column in columns:
        known = {"LevelColumn": _check_levels, "NumberColumn": _check_numbers}
        refuse_unless(type(column).__name__ in known, "a column of its basis is none")
        known[type(column).__name__](vars(column))
    refuse_unless(type(rotation).__name__ == "Rotation", "a basis of it has no rotation")
    n_inputs = sum(len(column.names) for column in columns)
    n_directions = about.get("n_directions_")
    refuse_unless(
        _is_count(about.get("n_inputs_"), n_inputs, n_inputs) and n_inputs > 0,
        "a basis of it has other features than its columns",
    )
    _check_rotation(vars(rotation), n_inputs, n_directions)
    return []


def _check_kernel(one: Any) -> list[Any]:
    """Check a basis of landmarks: rounded points of as many columns, and one feature for each."""
    about = vars(one)
    # a basis that is not fitted holds settings alone
    if "_rotation" not in about:
        return []
    n_columns, landmarks, rotation = _n_columns(one), about.get("_landmarks"), about["_rotation"]
    refuse_unless(
        isinstance(landmarks, np.ndarray)
        and landmarks.ndim == 2
        and len(landmarks)
        and _are_integers(landmarks, (len(landmarks), n_columns)),
        "the landmarks of its basis have other columns",
    )
    values = about.get("_sorted_values")
    refuse_unless(
        type(about.get("ranked")) is bool
        and isinstance(values, list)
        and len(values) == (n_columns if about["ranked"] else 0)
        and all(map(_is_ascending, values)),
        "a basis of it has no ranks",
    )
    _check_scale(about, n_columns)
    refuse_unless(
        _is_count(about.get("_median"), _LARGEST_INTEGER)
        and _is_count(about.get("_farthest"), _LARGEST_INTEGER, 0),
        "a basis of it has no distances",
    )
    refuse_unless(type(rotation).__name__ == "Rotation", "a basis of it has no rotation")
    _check_rotation(vars(rotation), len(landmarks), about.get("n_directions_"))
    return []


def _check_graph(one: Any) -> list[Any]:
    """Check a basis of a graph: public points of as many columns, and values at each of them."""
    about = vars(one)
    # a basis that is not fitted holds settings alone
    if "_values" not in about:
        return []
    n_columns, points, nearest = _n_columns(one), about.get("_points"), about.get("n_nearest")
    refuse_unless(
        isinstance(points, np.ndarray)
        and points.ndim == 2
        and points.dtype == np.int16
        and points.shape[1] == n_columns,
        "the public points of its basis have other columns",
    )
    refuse_unless(
        _is_count(nearest, len(points) - 1), "a basis of it has fewer points than neighbours"
    )
    _check_scale(about, n_columns)
    n_directions = about.get("n_directions_")
    refuse_unless(
        _is_count(n_directions, _MOST_COLUMNS)
        and _are_integers(about["_values"], (len(points), n_directions))
        and _are_integers(about.get("_offset"), (n_directions,))
        and _is_count(about.get("_farthest"), _LARGEST_INTEGER, 0),
        "a basis of it has other values than its points",
    )
    return []


def _check_scale(about: dict[str, Any], n_columns: int) -> None:
    for name in ("_centre", "_spread"):
        scale = np.asarray(about.get(name))
        refuse_unless(
            scale.dtype == np.float64
            and scale.shape in ((), (n_columns,))
            and np.isfinite(scale).all(),
            "a basis of it has no scale",
        )
    refuse_unless((np.asarray(about["_spread"]) > 0).all(), "a basis of it has no scale")


def _check_levels(about: dict[str, Any]) -> None:
    levels = about.get("levels")
    refuse_unless(isinstance(levels, tuple), "a column of its basis has no levels")
    refuse_unless(
        all(level is None or type(level) in (str, float) for level in levels or ())
        and len(set(levels or ())) == len(levels or ())
        and type(about.get("uncovered_share")) is float,
        "a column of its basis has odd levels",
    )


def _check_numbers(about: dict[str, Any]) -> None:
    edges, ranked = about.get("edges"), about.get("sorted_values", np.empty(0))
    refuse_unless(
        _is_ascending(edges) and _is_ascending(ranked) and ranked.size > 0,
        "a column of its basis has odd bins",
    )
    spike = about.get("spike")
    refuse_unless(
        (spike is None or (type(spike) is float and bool(np.isfinite(spike))))
        and type(about.get("missing")) is bool,
        "a column of its basis is odd",
    )


def _is_ascending(values: Any) -> Any:
    return (
        isinstance(values, np.ndarray)
        and values.ndim == 1
        and values.dtype == np.float64
        and bool(np.isfinite(values).all())
        and bool((np.diff(values) >= 0).all())
    )


def _check_rotation(about: dict[str, Any], n_inputs: int, n_directions: Any) -> None:
    weights, offset = about.get("weights"), about.get("offset")
    refuse_unless(
        _is_count(n_directions, _MOST_COLUMNS)
        and _are_integers(weights, (n_inputs, n_directions))
        and _are_integers(offset, (n_directions,)),
        "the rotation of its basis has another shape",
    )
    refuse_unless(
        _is_count(about.get("shift"), 62)
        and _is_count(about.get("largest_input"), _LARGEST_INTEGER),
        "the rotation of its basis is odd",
    )


def _are_integers(values: Any, shape: tuple[int, ...]) -> bool:
    """Return whether these are integers, none so large that their sums leave 64 bits at once."""
    return (
        isinstance(values, np.ndarray)
        and values.dtype == np.int64
        and values.shape == shape
        and bool((np.abs(values.astype(np.float64)) <= _LARGEST_INTEGER).all())
    )


def _check_moments(one: Any) -> list[Any]:
    """Check a model of released moments: one weight for each direction of its basis, and class."""
    about = vars(one)
    basis, classes = about.get("basis"), about.get("classes")
    refuse_unless(
        type(basis).__name__ in _BASES and "n_directions_" in vars(basis),
        "a model of it has no basis",
    )
    refuse_unless(
        isinstance(classes, list | tuple)
        and about.get("labels") is None
        and about.get("target_range") is None
        and len(classes) >= 2
        and all(type(value) in (str, int, float, bool) for value in classes)
        and all(value == value for value in classes)  # nan is no class
        and len(set(classes)) == len(classes),
        "a model of it has no classes",
    )
    n_directions = vars(basis).get("n_directions_")
    rows = int(n_directions) + 1 if _is_count(n_directions, _MOST_COLUMNS) else 0
    shape = (rows, 1 if len(classes) == 2 else len(classes))
    refuse_unless(
        _are_integers(about.get("weights"), shape), "a model of it has other weights than it needs"
    )
    return []


def _check_record_votes(one: Any) -> list[Any]:
    """Check a student of votes of records: one weight for each direction of its basis, and class.

    One that is not fitted has nothing to check, and predicts nothing.
    """
    about = vars(one)
    if "coef_" not in about:
        return []
    basis, classes, columns = about.get("basis_"), about.get("classes_"), None
    refuse_unless(
        isinstance(classes, np.ndarray) and classes.ndim == 1 and len(classes) >= 2,
        "a model of it has no classes",
    )
    # any other basis is of a type that the reader vouches for
    if type(basis).__name__ in _BASES:
        columns = vars(basis).get("n_directions_")
        refuse_unless(
            _is_count(columns, _MOST_COLUMNS) and _n_columns(one) == _n_columns(basis),
            "a model of it has other columns than its basis",
        )
    width = np.shape(about["coef_"])[-1] if columns is None and np.ndim(about["coef_"]) else columns
    for name, shape in (("coef_", (len(classes), width)), ("intercept_", (len(classes),))):
        weights = about.get(name)
        refuse_unless(
            isinstance(weights, np.ndarray)
            and weights.dtype == np.float64
            and weights.shape == shape
            and bool(np.isfinite(weights).all()),
            "a model of it has other weights than it needs",
        )
    unit = about.get("_unit")
    refuse_unless(
        type(unit) is float and np.isfinite(unit) and unit > 0, "a model of it has no unit"
    )
    return []


def _check_numbered(one: Any) -> list[Any]:
    """Check that the numbers which a learner answers with have classes, and are looked up in
    them."""
    about = vars(one)
    if "classifier_" in about:
        refuse_unless(
            isinstance(about.get("classes_"), np.ndarray)
            and hasattr(about["classifier_"], "predict"),
            "a learner of it has no classes",
        )
    return []


def _check_number(one: Any) -> list[Any]:
    """Check a student of numbers: something that predicts, and two bounds."""
    about = vars(one)
    bounds = about.get("target_range")
    refuse_unless(
        isinstance(bounds, tuple)
        and len(bounds) == 2
        and all(type(bound) in (int, float) for bound in bounds)
        and bool(bounds[0] < bounds[1]),
        "a student of numbers has no bounds",
    )
    refuse_unless(
        hasattr(about.get("regressor"), "predict"), "a student of numbers has no regressor"
    )
    return []


def _check_labels(one: Any) -> list[Any]:
    """Check a student of several labels: for each name something that predicts."""
    about = vars(one)
    labels, students = about.get("labels"), about.get("students")
    refuse_unless(
        isinstance(labels, list) and labels and all(type(name) is str for name in labels),
        "a student of labels has no names",
    )
    refuse_unless(
        isinstance(students, list)
        and len(students) == len(labels or ())
        and all(hasattr(each, "predict") for each in students),
        "a student of labels has not one learner for each",
    )
    return []


_BASES = ("TableBasis", "KernelBasis", "GraphBasis")

_CHECKS: dict[str, Callable[[Any], list[Any]]] = {
    "DecisionTreeClassifier": _check_tree,
    "DecisionTreeRegressor": _check_tree,
    "ExtraTreeClassifier": _check_tree,
    "ExtraTreeRegressor": _check_tree,
    "ExtraTreesClassifier": _check_forest,
    "ExtraTreesRegressor": _check_forest,
    "GradientBoostingClassifier": _check_boosting,
    "HistGradientBoostingClassifier": _check_histograms,
    "HistGradientBoostingRegressor": _check_histograms,
    "KNeighborsClassifier": _check_neighbours,
    "KNeighborsRegressor": _check_neighbours,
    "GraphBasis": _check_graph,
    "KernelBasis": _check_kernel,
    "LabelsStudent": _check_labels,
    "MomentsStudent": _check_moments,
    "NumberStudent": _check_number,
    "NumberedClassesClassifier": _check_numbered,
    "OneHotEncoder": _check_one_hot,
    "RandomForestClassifier": _check_forest,
    "RandomForestRegressor": _check_forest,
    "RecordVotesStudent": _check_record_votes,
    "TableBasis": _check_basis,
}
