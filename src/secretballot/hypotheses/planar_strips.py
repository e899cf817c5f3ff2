"""Axis-aligned boxes over points: strips between two columns, and ranges of rows within them."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from secretballot._typing import BoolArray, FloatArray, IntArray

__all__ = ["Grid", "Strip", "strip_minima"]


# Numbers that the trees of one block of strips hold at most, four to a node: 128 MB.
_BLOCK = 2**24


@dataclass(frozen=True)
class Strip:
    """The points between two columns, both included.

    Attributes
    ----------
    rows : array of shape (k,)
        Distinct rows of its points, ascending.
    members : array of shape (n_members,)
        Its points, in the order of their rows.
    starts : array of shape (k,)
        Place of the first member of each row.
    """

    rows: IntArray
    members: IntArray
    starts: IntArray

    def passed(self, costs: IntArray) -> IntArray:
        """Return what the points below each row cost, and what all cost, shape (k + 1,)."""
        return np.concatenate([[0], np.cumsum(np.add.reduceat(costs[self.members], self.starts))])

    def ranges(self, costs: IntArray) -> IntArray:
        """Return what points from one row to another cost, shape (k, k), above the diagonal."""
        passed = self.passed(costs)
        return np.asarray(passed[1:] - passed[:-1, None])

    def within(self, costs: IntArray, bound: int) -> BoolArray:
        """Return whether `ranges` keep to a bound, shape (k, k), in one pass over them."""
        passed = self.passed(costs)
        return np.asarray(passed[1:] <= (passed[:-1] + bound)[:, None])

    def first_rows(self, marked: BoolArray) -> IntArray:
        """Return for each row the first row from there on with a marked point; k for none.

        Parameters
        ----------
        marked : ndarray of bool, shape (n_points,)
            Over all points of the grid.
        """
        n_rows = len(self.rows)
        holds = np.logical_or.reduceat(marked[self.members], self.starts)
        first = np.where(holds, np.arange(n_rows), n_rows)
        return np.asarray(np.minimum.accumulate(first[::-1])[::-1])


class Grid:
    """Distinct points by their column and row: the ranks of their two coordinates.

    Parameters
    ----------
    points : array of shape (q, 2)
        At least one.
    """

    def __init__(self, points: FloatArray) -> None:
        self.points = points
        self.xs, self.columns = np.unique(points[:, 0], return_inverse=True)
        self.ys, self.rows = np.unique(points[:, 1], return_inverse=True)
        self._upward = np.argsort(self.rows, kind="stable")

    def strip(self, left: int, right: int) -> Strip:
        """Return the strip between two columns."""
        columns = self.columns[self._upward]
        members = self._upward[(columns >= left) & (columns <= right)]
        rows = self.rows[members]
        starts = np.flatnonzero(np.concatenate([[True], rows[1:] != rows[:-1]]))
        return Strip(rows[starts], members, starts)


def strip_minima(grid: Grid, costs: IntArray) -> Iterator[tuple[int, int, IntArray]]:
    """Yield the least costs of boxes, the empty one included, in all strips; O(q^2 log q).

    Strips of one right and many left columns are grown together. Each keeps a tree over its rows
    whose nodes know the least sums of a range, of a beginning and of an end, and the sum of all (as
    in Bentley's maximum subarray).

    Parameters
    ----------
    grid : Grid
    costs : int64 array of shape (q,)

    Yields
    ------
    left : int
        First left column.
    right : int
    minima : array
        For the left columns from `left` on, at most up to `right`.
    """
    n_columns, n_leaves = len(grid.xs), 1 << (len(grid.ys) - 1).bit_length()
    by_column = np.split(
        np.argsort(grid.columns, kind="stable"),
        np.cumsum(np.bincount(grid.columns, minlength=n_columns))[:-1],
    )
    # as many left columns at once as memory allows: numpy works on all their trees in one step
    lanes = max(1, min(n_columns, _BLOCK // (8 * n_leaves)))
    for left in range(0, n_columns, lanes):
        tree = np.zeros((4, 2 * n_leaves, min(lanes, n_columns - left)), dtype=np.int64)
        for right in range(left, n_columns):
            grown = tree[:, :, : right - left + 1]
            for point in by_column[right].tolist():
                _add_to_trees(grown, n_leaves + int(grid.rows[point]), int(costs[point]))
            yield left, right, grown[3, 1].copy()


def _add_to_trees(tree: IntArray, node: int, cost: int) -> None:
    """Add the cost at a leaf of all trees, and bring the nodes above it up to date."""
    total, start, end, best = tree
    total[node] += cost
    np.minimum(total[node], 0, out=best[node])
    start[node] = end[node] = best[node]
    while node > 1:
        node //= 2
        a, b = 2 * node, 2 * node + 1
        np.add(total[a], total[b], out=total[node])
        np.minimum(start[a], total[a] + start[b], out=start[node])
        np.minimum(end[b], total[b] + end[a], out=end[node])
        np.minimum(best[a], best[b], out=best[node])
        # or what ends in the left half and goes on in the right one
        np.minimum(best[node], end[a] + start[b], out=best[node])
