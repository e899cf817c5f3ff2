"""Rows of public points, whatever table they are in; the points nearest to a record, exact, so that
no other record has a say in it; and whether points lie in groups.

Private tables have their own module for rows (`teachers.rows`), where every part is a copy that
depends on no other row; what is public may be shared.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from secretballot._typing import FloatArray, IntArray
from secretballot._validation import check_count
from secretballot.exceptions import ParameterError


def take_rows(X: Any, rows: IntArray) -> Any:
    """Return the given rows of an array, sparse matrix or frame, in their order.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n_rows, n_features)
        Public.
    rows : ndarray of int64, shape (n_taken,)
        Places of rows.

    Returns
    -------
    array, sparse matrix or frame of shape (n_taken, n_features)
    """
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    if hasattr(X, "tocsr"):
        return X.tocsr()[rows]
    return np.asarray(X)[rows]


def class_shares(student: Any, X: Any, classes: Sequence[Any]) -> FloatArray:
    """Return a fitted classifier's probabilities of classes at rows of X, shape (n_rows,
    n_classes); 0 for a class that it never learnt."""
    found = np.asarray(student.predict_proba(X), dtype=np.float64)
    places = {
        str(value): place for place, value in enumerate(np.asarray(student.classes_).tolist())
    }
    table = np.zeros((len(found), len(classes)))
    for place, value in enumerate(classes):
        if str(value) in places:
            table[:, place] = found[:, places[str(value)]]
    return table


# Of vectors in groups: columns, at least; levels, at most; points, of which each is compared with
# every record; and the squared distance of the fifth nearest point over that where columns are
# independent, at most.
_LEAST_COLUMNS, _MOST_LEVELS = 32, 256
_LEAST_POINTS, _MOST_POINTS = 201, 20_000
_NEAR, _NEIGHBOUR = 0.5, 5
_LOOKED_AT = 1000  # points, about


def lie_in_groups(numbers: FloatArray) -> bool:
    """Return whether public points look like vectors in groups, such as small images or counts.

    Their numbers are levels of one scale, in at least 32 columns, of which none spans more than
    twice what the median one does. Of 201 to 20,000 points each is much nearer to some others than
    it would be were the columns independent.

    Parameters
    ----------
    numbers : ndarray of float64, shape (n_points, n_columns)
        Public.
    """
    n_points, n_columns = numbers.shape
    enough = _LEAST_POINTS <= n_points <= _MOST_POINTS and n_columns >= _LEAST_COLUMNS
    if not (enough and np.isfinite(numbers).all()):
        return False
    levels = numbers - numbers.min(axis=0)
    levels /= levels[levels > 0].min(initial=np.inf)
    spans = levels.max(axis=0)
    if not 0 < spans.max() <= min(2 * np.median(spans), _MOST_LEVELS):
        return False
    if not np.allclose(levels, np.rint(levels), rtol=0, atol=1e-3):
        return False
    points = np.rint(levels[:: max(1, n_points // _LOOKED_AT)])
    independent = np.random.default_rng(0).permuted(points, axis=0)
    return _median_neighbour(points) <= _NEAR * _median_neighbour(independent)


def _median_neighbour(points: FloatArray) -> float:
    """Return the median squared distance of whole-numbered points from their fifth nearest ones;
    sums are whole numbers, so that every machine finds the same."""
    squares = np.einsum("ij,ij->i", points, points)
    apart = squares[:, None] + squares - 2 * (points @ points.T)
    # each is the nearest to itself
    return float(np.median(np.partition(apart, _NEIGHBOUR, axis=1)[:, _NEIGHBOUR]))


# Every sum of products of coordinates stays below this, and so every squared distance below 2^52:
# exact in floating point, in whatever order a library adds.
_LARGEST_SUM = 2**50
_BLOCK_CELLS = 1 << 22  # distances in memory at a time


class NearestPoints:
    """Find the nearest of some public points, by coordinates that are integers.

    Distances are Euclidean. Of points that are equally far, the first ones in public order are
    nearer. A coordinate beyond a public bound, 2^25 divided by the root of the number of
    coordinates, counts as that bound.

    Parameters
    ----------
    points : ndarray of int64, shape (n_points, n_coordinates)
        Public.
    k : int
        How many points are nearest to a record; at most `n_points`.

    Raises
    ------
    ParameterError
        If there are fewer than `k` points.

    Notes
    -----
    A matrix product in floating point may round a row by what is around it. Here nothing is
    rounded: all products and sums are integers below 2^53, which floating point holds exactly, in
    any order and in blocks of any size.

    Examples
    --------
    >>> from secretballot._points import NearestPoints
    >>> nearest = NearestPoints(np.array([[0], [10], [20]]), k=2)
    >>> nearest.of(np.array([[14], [-3]])).tolist()
    [[1, 2], [0, 1]]
    """

    def __init__(self, points: IntArray, k: int) -> None:
        self.n_points, self.n_coordinates = points.shape
        self.k = check_count("k", k)
        if not self.k <= self.n_points:
            raise ParameterError(
                f"{self.k} nearest points are wanted, and there are {self.n_points}; ask for fewer."
            )
        self._largest = math.isqrt(_LARGEST_SUM // self.n_coordinates)
        exact = self._exact_floats(points)
        self._columns = np.ascontiguousarray(exact.T)
        self._squares = np.einsum("ij,ij->i", exact, exact)

    def of(self, records: IntArray, *, without: IntArray | None = None) -> IntArray:
        """Return the numbers of the `k` nearest points of every record, ascending.

        Parameters
        ----------
        records : ndarray of int64, shape (n_records, n_coordinates)
        without : ndarray of int64, shape (n_records,), optional
            Number of a point that does not count for each record, such as the record itself; then
            `k` is less than `n_points`.

        Returns
        -------
        ndarray of int64, shape (n_records, k)
        """
        found = np.empty((len(records), self.k), dtype=np.int64)
        for rows, squares in self._squared_distances(records):
            if without is not None:
                squares[np.arange(len(squares)), without[rows]] = np.inf
            found[rows] = self._least_of(squares)
        return found

    def beside(self, records: IntArray) -> tuple[IntArray, IntArray]:
        """Return the numbers of the `k` nearest points of every record, ascending, where one that
        is the very same does not count, and the least squared distance from them.

        Parameters
        ----------
        records : ndarray of int64, shape (n_records, n_coordinates)

        Returns
        -------
        ndarrays of int64, shapes (n_records, k) and (n_records,)
        """
        found = np.empty((len(records), self.k), dtype=np.int64)
        least = np.empty(len(records), dtype=np.int64)
        for rows, squares in self._squared_distances(records):
            nearest = squares.argmin(axis=1)
            same = np.flatnonzero(squares[np.arange(len(squares)), nearest] == 0)
            squares[same, nearest[same]] = np.inf
            found[rows], least[rows] = self._least_of(squares), squares.min(axis=1)
        return found, least

    def _squared_distances(self, records: IntArray) -> Iterator[tuple[slice, FloatArray]]:
        """Yield places of some records, and their squared distances from all points."""
        size = max(1, _BLOCK_CELLS // self.n_points)
        for at in range(0, len(records), size):
            exact = self._exact_floats(records[at : at + size])
            own = np.einsum("ij,ij->i", exact, exact)[:, None]
            yield slice(at, at + size), self._squares + own - 2 * (exact @ self._columns)

    def _least_of(self, squares: FloatArray) -> IntArray:
        """Return the places of the `k` least numbers of every row, of equal ones the first."""
        farthest = np.partition(squares, self.k - 1, axis=1)[:, self.k - 1, None]
        chosen = squares <= farthest
        tied = np.flatnonzero(chosen.sum(axis=1) > self.k)
        if len(tied):
            nearer, level = (kind(squares[tied], farthest[tied]) for kind in (np.less, np.equal))
            missing = self.k - nearer.sum(axis=1, keepdims=True)
            chosen[tied] = nearer | (level & (np.cumsum(level, axis=1) <= missing))
        return np.nonzero(chosen)[1].reshape(len(squares), self.k)

    def _exact_floats(self, table: IntArray) -> FloatArray:
        return np.clip(table, -self._largest, self._largest).astype(np.float64)
