"""Trees that smooth what a model predicts, grown on public points in integers alone.

Every draw comes from a hash and every number is an integer, so the same public values give the same
trees in any process, on any machine and with any version of the libraries.
"""

import hashlib
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from secretballot._typing import BoolArray, IntArray

_N_TREES = 32
#: Splits from the root to a leaf, at most.
DEPTH = 10
#: Public points of a leaf, at least.
LEAST_POINTS = 2
#: Share of the cells that are tried at every split, one threshold each.
_TRIED = 0.5
#: Bits that are cut off what is predicted before squares are compared.
_COARSER_BITS = 10
#: Above every cell: where a node is no split, all go left.
NO_SPLIT = 2**31 - 1
_TOGETHER = 2**18  # cells of all points, in as many trees as are grown at a time


class Forest(NamedTuple):
    """The mean of extremely randomised trees (Geurts, Ernst, Wehenkel 2006).

    The inner nodes of trees are of full depth, level by level: the children of node i are 2 i + 1,
    where a row goes if the node's cell says so, and 2 i + 2.

    Attributes
    ----------
    places : ndarray of int64, shape (n_trees, n_nodes)
        Which cell is looked at.
    thresholds : ndarray of int64, shape (n_trees, n_nodes)
        The cell is at most that; of a level, it is that one.
    levels : ndarray of bool, shape (n_trees, n_nodes)
    values : ndarray of int64, shape (n_trees, n_leaves, n_columns)
        What is predicted in each leaf, from the left.
    """

    places: IntArray
    thresholds: IntArray
    levels: BoolArray
    values: IntArray

    @classmethod
    def grown(cls, cells: IntArray, levels: BoolArray, targets: IntArray, seed: str) -> "Forest":
        """Return trees that predict integers by cells of public points.

        Parameters
        ----------
        cells : ndarray of int64, shape (n_public, n_cells)
        levels : ndarray of bool, shape (n_cells,)
            Which cells are numbers of levels, that have no order.
        targets : ndarray of int64, shape (n_public, n_columns)
            Of 20 bits.
        seed : str
        """
        seeds = [f"{seed} {tree}" for tree in range(_N_TREES)]
        together = max(1, _TOGETHER // cells.size)
        grown = [
            _grown_trees(cells, levels, targets, seeds[first : first + together])
            for first in range(0, _N_TREES, together)
        ]
        return cls(*map(np.concatenate, zip(*grown, strict=True)))

    def predictions(self, cells: IntArray) -> IntArray:
        """Return the mean of the trees, rounded down, for rows of cells of shape (n_rows, n_cells):
        int64 of shape (n_rows, n_columns), each row's by itself."""
        n_trees, n_nodes = self.places.shape
        places, thresholds, levels = (part.ravel() for part in self[:3])
        first = np.arange(n_trees) * n_nodes
        rows = (np.arange(len(cells)) * cells.shape[1])[:, None]
        node = np.zeros((len(cells), n_trees), dtype=np.int64)
        for _ in range(DEPTH):
            at = node + first
            found, wanted = cells.take(rows + places.take(at)), thresholds.take(at)
            node = 2 * node + 2 - ((found == wanted) | (~levels.take(at) & (found < wanted)))
        leaf = node - n_nodes
        total = np.zeros((len(cells), self.values.shape[2]), dtype=np.int64)
        for tree, values in enumerate(self.values):
            total += values.take(leaf[:, tree], axis=0)
        mean: IntArray = total // n_trees
        return mean


def _grown_trees(
    cells: IntArray, levels: BoolArray, targets: IntArray, seeds: list[str]
) -> tuple[IntArray, ...]:
    """Return the three parts of the splits of some trees, each of shape (n_trees, n_nodes), and the
    values of their leaves, of shape (n_trees, n_leaves, n_columns).

    Every tree has all points. At each level the nodes of one tree come after those of another.
    """
    n_trees, n_tried = len(seeds), max(1, round(_TRIED * cells.shape[1]))
    drawn = np.array([_drawn(seed, (2**DEPTH - 1) * n_tried * 2) for seed in seeds])
    drawn = drawn.reshape(n_trees, -1, n_tried, 2)
    points = np.tile(np.arange(len(cells)), n_trees)
    leaf = np.repeat(np.arange(n_trees), len(cells))
    values = np.tile(targets.sum(axis=0) // len(cells), (n_trees, 1))
    parts = []
    for depth in range(DEPTH):
        width = 2**depth
        nodes = np.arange(n_trees * width)
        order = np.argsort(leaf, kind="stable")
        node, point = leaf[order], points[order]
        ends = np.searchsorted(node, np.append(nodes, len(nodes)))
        sizes = np.diff(ends)[:, None]
        own = drawn[:, width - 1 : 2 * width - 1].reshape(-1, n_tried, 2)
        places = (own[..., 0] % np.uint64(cells.shape[1])).astype(np.int64)
        found = cells[point[:, None], places[node]]
        # A threshold lies anywhere between the node's cells: where many are equal, one of them
        # would mostly be that one. A level is that of one of the points.
        ended = np.append(found, found[-1:], axis=0)  # empty nodes may begin behind the last point
        low, high = (end.reduceat(ended, ends[:-1]) for end in (np.minimum, np.maximum))
        among = _below(own[..., 1], sizes)
        level = cells[point[np.minimum(ends[:-1, None] + among, len(point) - 1)], places]
        is_level = levels[places]
        thresholds = np.where(is_level, level, low + _below(own[..., 1], high - low))
        wanted = thresholds[node]
        left = np.where(is_level[node], found == wanted, found <= wanted)
        gains = _gains(left, targets[point] >> _COARSER_BITS, ends)
        best = gains.argmax(axis=1)
        splits = gains[nodes, best] > 0
        place = np.where(splits, places[nodes, best], 0)
        threshold = np.where(splits, thresholds[nodes, best], NO_SPLIT)
        made = place, threshold, levels[place] & splits
        parts.append([part.reshape(n_trees, width) for part in made])
        goes_left = left[np.arange(len(left)), best[node]] | ~splits[node]
        leaf[order] = 2 * node + 1 - goes_left
        values = _means(targets[points], leaf, values)
    whole = (np.concatenate(part, axis=1) for part in zip(*parts, strict=True))
    return *whole, values.reshape(n_trees, -1, targets.shape[1])


def _gains(left: BoolArray, targets: IntArray, ends: IntArray) -> IntArray:
    """Return what each candidate explains of the squares of targets, at each node, of shape
    (n_nodes, n_tried); 0 where too few points would lie on a side.

    Points are in the order of their nodes, which end at `ends[1:]`.
    """
    counted = np.vstack([np.ones(len(left), dtype=np.int64), targets.T])
    n_sums, n = counted.shape
    # one sparse product: the points of each node for the number of them, then for each target
    all_ends = (ends[1:] + n * np.arange(n_sums)[:, None]).ravel()
    nodes: Any = sparse.csr_array(
        (counted.ravel(), np.tile(np.arange(n), n_sums), np.append(0, all_ends)),
        shape=(len(all_ends), n),
    )
    on_left = (nodes @ left.astype(np.int64)).reshape(n_sums, len(ends) - 1, -1)
    on_right = nodes.sum(axis=1).reshape(n_sums, -1, 1) - on_left
    explained = 1 + sum(
        (sums[1:] ** 2).sum(axis=0) // np.maximum(sums[0], 1) for sums in (on_left, on_right)
    )
    fits = np.minimum(on_left[0], on_right[0]) >= LEAST_POINTS
    return np.where(fits, explained, 0)


def _means(targets: IntArray, leaf: IntArray, parents: IntArray) -> IntArray:
    """Return the mean target of each leaf; of one without points that of its parent."""
    sums = np.zeros((2 * len(parents), targets.shape[1]), dtype=np.int64)
    np.add.at(sums, leaf, targets)
    sizes = np.bincount(leaf, minlength=len(sums))[:, None]
    return np.where(sizes > 0, sums // np.maximum(sizes, 1), np.repeat(parents, 2, axis=0))


def _below(drawn: IntArray, numbers: IntArray) -> IntArray:
    """Return draws from 0 on that lie below numbers, or are 0."""
    below: IntArray = (drawn % np.maximum(numbers, 1).astype(np.uint64)).astype(np.int64)
    return below


def _drawn(seed: str, n: int) -> IntArray:
    """Return numbers of 64 bits that follow from a text."""
    return np.frombuffer(hashlib.shake_256(seed.encode()).digest(8 * n), dtype="<u8")
