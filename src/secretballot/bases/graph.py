"""A public basis for vectors that lie in groups: smooth functions on the public points' graph."""

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy import linalg, sparse
from scipy.sparse import linalg as sparse_linalg

from secretballot._points import NearestPoints
from secretballot._typing import BoolArray, FloatArray, IntArray
from secretballot._validation import check_count
from secretballot.bases.integer_basis import VectorBasis, fitted_scale, public_numbers, rounded
from secretballot.bases.integer_model import NO_VARIANCE, UNIT, with_fixed_signs
from secretballot.exceptions import DataError, Parameter

#: Bits below the coordinates' last one, in which values at public points are kept.
FINER_BITS = 8
#: Graphs of at most so many points are decomposed at once, larger ones step by step.
SMALL_GRAPH = 1500


@dataclass(eq=False, repr=False)
class GraphBasis(VectorBasis):
    """Map vectors to coordinates by the public points that are nearest to them.

    The public points are joined to their nearest ones, and the smoothest functions on that graph
    are kept: they hardly change within a group of points that are alike. A vector gets the mean of
    their values at its nearest public points, itself left out where it is one of them. Vectors are
    rounded to integers, distances and sums are exact, and no row depends on another.

    Best where classes are groups of points, as with images or embeddings, and public points are
    many. `KernelBasis` serves where they are few, or classes are no groups.

    Parameters
    ----------
    n_modes : int, default 200
        Functions kept, the smoothest first.
    n_neighbours : int, default 10
        Public points that each is joined to.
    n_nearest : int, default 5
        Public points that a vector takes its values from.
    scaled : bool, default True
        Whether every column is measured in its own standard deviations. Otherwise all are in those
        of the widest, as pixels and embeddings should be.

    Attributes
    ----------
    n_directions_ : int
        Functions kept.
    uncovered_share_ : float
        Share of further points like the public ones that `covered` denies, about.
    eigenvalues_ : ndarray of float64, shape (n_directions_,)
        Of each function, 1 where it is the same for all points that are joined; descending.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> pool = np.concatenate([rng.normal(size=(100, 2)), rng.normal(size=(100, 2)) + 20])
    >>> basis = sb.bases.GraphBasis(n_modes=10).fit(pool)
    >>> left, right = basis.transform([[0.0, 0.0], [20.0, 20.0]])
    >>> left.shape == (basis.n_directions_,), np.abs(left - right).max() > 0.1
    (True, np.True_)

    Notes
    -----
    Laplacian eigenmaps (Belkin and Niyogi 2003), extended to further points by their neighbours'
    mean. Fitting takes time in proportion to the square of the public points, and mapping in
    proportion to rows times public points.
    """

    name: ClassVar[str] = "graph"

    n_modes: int = 200
    _: KW_ONLY
    n_neighbours: int = 10
    n_nearest: int = 5
    scaled: bool = True

    def fit(self, X: Any, y: None = None) -> Self:
        """Learn the map from public points.

        Parameters
        ----------
        X : array, sparse matrix, list of rows or frame of numbers, shape (n_public, n_features)
            Public.
        y : None
            Ignored.

        Raises
        ------
        DataError
            If the points are no table of numbers, all alike, or too few.
        ParameterError
            If a setting is out of range.
        """
        check_count("n_modes", self.n_modes)
        wanted = max(
            check_count("n_neighbours", self.n_neighbours), check_count("n_nearest", self.n_nearest)
        )
        numbers = public_numbers(X)
        if len(numbers) < wanted + 2:
            raise DataError(
                Parameter("X"),
                f" has {len(numbers)} rows; with {wanted} neighbours give at least {wanted + 2}.",
            )
        self.n_features_in_ = numbers.shape[1]
        vectors = self._learn_vectors(numbers)
        self._centre, self._spread = fitted_scale(vectors, self.scaled)
        # no number is farther than 512 from 0
        points = rounded(vectors, self._centre, self._spread)
        self._points = points.astype(np.int16)
        places = self._nearest_public(points, self.n_neighbours)[0]
        modes, eigenvalues = _smooth_modes(places, self.n_modes)
        nearest, distances = self._nearest_public(points, self.n_nearest)
        # beyond all public points but one in a thousand
        self._farthest = int(np.quantile(distances, 0.999, method="higher"))
        self.uncovered_share_ = min(1.0, 0.001 + 2 / (len(numbers) + 1))
        means = modes[nearest].mean(axis=1)
        spread = float(means.var(axis=0).sum())
        if not spread > NO_VARIANCE * max(float(modes.var()), NO_VARIANCE):
            raise DataError("The public points are too few or all alike; no direction is left.")
        # public points have a root mean square length of one
        unit = UNIT * (1 << FINER_BITS) / (math.sqrt(spread) * self.n_nearest)
        values = np.rint(modes * unit).astype(np.int64)
        sums = values[nearest].sum(axis=1)
        offset = np.rint(sums.mean(axis=0)).astype(np.int64)
        # a direction in which all public points round to 0 has no curvature there
        shown = _coordinates_of(sums - offset).any(axis=0)
        self._values, self._offset = values[:, shown], offset[shown]
        self.eigenvalues_ = eigenvalues[shown]
        self.n_directions_ = self._values.shape[1]
        return self

    def _map(self, numbers: FloatArray) -> tuple[IntArray, BoolArray]:
        points = rounded(self._vectors(numbers), self._centre, self._spread)
        nearest, least = self._nearest_public(points, self.n_nearest)
        # the mean of the values at the nearest public points
        sums = np.zeros((len(numbers), self.n_directions_), dtype=np.int64)
        for place in nearest.T:
            sums += self._values[place]
        return _coordinates_of(sums - self._offset), least <= self._farthest

    def _learn_vectors(self, numbers: FloatArray) -> FloatArray:
        """Learn what is compared from public numbers, and return it of them."""
        return self._vectors(numbers)

    def _vectors(self, numbers: FloatArray) -> FloatArray:
        """Return what is compared of rows, each by itself."""
        return numbers

    def _nearest_public(self, points: IntArray, k: int) -> tuple[IntArray, IntArray]:
        """Return the k nearest public points of rounded points, and the least squared distance.

        One public point that is the very same is left out, so that public points are mapped like
        all others.
        """
        return NearestPoints(self._points.astype(np.int64), k).beside(points)


def _coordinates_of(sums: IntArray) -> IntArray:
    """Return sums in finer units as coordinates, rounded."""
    return (sums + (1 << (FINER_BITS - 1))) >> FINER_BITS


def _smooth_modes(neighbours: IntArray, n_modes: int) -> tuple[FloatArray, FloatArray]:
    """Return the smoothest functions on a graph, an array of shape (n_points, at most n_modes),
    and the eigenvalue of each.

    Parameters
    ----------
    neighbours : ndarray of int64, shape (n_points, k)
        Points that each is joined to.
    n_modes : int
    """
    n, k = neighbours.shape
    joined: Any = sparse.csr_array(
        (np.ones(n * k), (np.repeat(np.arange(n), k), neighbours.ravel())), shape=(n, n)
    )
    joined = joined.maximum(joined.T)
    roots = np.sqrt(np.asarray(joined.sum(axis=1)).ravel())
    smoothing: Any = sparse.diags_array(1 / roots) @ joined @ sparse.diags_array(1 / roots)
    # the first function is constant
    kept, modes = largest_eigenpairs(smoothing, min(n_modes + 1, n - 1))
    above = kept[1:] > 0
    kept, modes = kept[1:][above], modes[:, 1:][:, above]
    found: FloatArray = with_fixed_signs(modes) / roots[:, None] * kept
    return found, kept


def largest_eigenpairs(matrix: Any, n_values: int) -> tuple[FloatArray, FloatArray]:
    """Return the largest eigenvalues of a symmetric sparse matrix, descending, and eigenvectors of
    shape (n, n_values); the same on every call."""
    n = matrix.shape[0]
    if n <= SMALL_GRAPH or n_values > n // 4:
        values, vectors = linalg.eigh(matrix.toarray(), subset_by_index=(n - n_values, n - 1))
    else:
        # a start of its own: the library's would be random
        start: FloatArray = np.random.default_rng(0).normal(size=(n,))
        values, vectors = sparse_linalg.eigsh(matrix, k=n_values, which="LA", v0=start)
    order = np.argsort(values)[::-1]
    return values[order], vectors[:, order]
