"""Decision trees as ONNX: which leaf of each tree a row ends in, then its values.

Trees answer with the number of a leaf, since what ONNX sums itself it sums in single precision.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import numpy_helper

from secretballot._typing import BoolArray, FloatArray, IntArray
from secretballot.bases.forest import NO_SPLIT, Forest
from secretballot.exceptions import DataError
from secretballot.report.student.graph import Value


@dataclass(frozen=True, eq=False)
class Tree:
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


def forest_trees(forest: Forest) -> list[Tree]:
    """Return the trees that smooth a model of moments, without what no row reaches."""
    return [_plain_tree(*parts) for parts in zip(*forest.splits, forest.values, strict=True)]


def _plain_tree(
    places: IntArray, thresholds: IntArray, levels: BoolArray, values: IntArray
) -> Tree:
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
    return Tree(
        places[inner],
        thresholds[inner].astype(np.float64),
        np.array(left),
        np.array(left) + 1,
        np.zeros_like(leaf),
        leaf,
        values[np.where(leaf, found - first_leaf, 0)].astype(np.float64),
        levels[inner] & ~leaf,
    )


def grown_tree(estimator: Any) -> Tree:
    """Return a fitted DecisionTree or ExtraTree; its points are to be rounded to single
    precision."""
    tree = estimator.tree_
    values = tree.value[:, 0, :]
    if hasattr(estimator, "classes_"):
        values = values / values.sum(axis=1, keepdims=True)
    leaf = tree.children_left == -1
    missing = np.asarray(getattr(tree, "missing_go_to_left", np.zeros(len(leaf))), dtype=bool)
    return Tree(
        tree.feature, tree.threshold, tree.children_left, tree.children_right, missing, leaf, values
    )


def histogram_tree(predictor: Any, place: int, n_outputs: int) -> Tree:
    """Return a tree of a fitted HistGradientBoosting estimator, that adds to one of its outputs.

    Raises
    ------
    DataError
        If it splits by categories.
    """
    nodes = predictor.nodes
    if nodes["is_categorical"].any():
        raise DataError("boosted trees that split by categories have no ONNX form")
    values = np.zeros((len(nodes), n_outputs))
    values[:, place] = nodes["value"]
    left, right = nodes["left"].astype(np.int64), nodes["right"].astype(np.int64)
    return Tree(
        nodes["feature_idx"].astype(np.int64),
        nodes["num_threshold"],
        left,
        right,
        nodes["missing_go_to_left"].astype(bool),
        nodes["is_leaf"].astype(bool),
        values,
    )


def add_trees(points: Value, trees: Sequence[Tree], *, single: bool) -> Value:
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
