"""The student of the public pool's own shape: vote shares, smooth on its neighbour graph."""

from dataclasses import KW_ONLY, dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.neighbors import NearestNeighbors

from secretballot._typing import FloatArray
from secretballot._validation import check_count
from secretballot.bases.graph import largest_eigenpairs
from secretballot.exceptions import DataError
from secretballot.students.noisy_counts import (
    Moments,
    Posterior,
    VoteShareClassifier,
    fit_by_evidence,
)

# Prior variance of the graph's modes, (1 + frequency / corner) ** -power: smooth functions of the
# Matern kind. Modes of frequency far above the corner are taken for noise; which corner and power,
# the marginal likelihood says.
_CORNERS = (0.003, 0.01, 0.03, 0.1, 0.3)
_POWERS = (1, 2, 3)
# A mode is carried to a new point by averaging over neighbours and dividing by its eigenvalue; a
# fast mode has a small one, and dividing by less than this would only amplify rounding of what is
# not known there.
_SMALLEST_EIGENVALUE = 0.1


@dataclass(frozen=True)
class NeighbourGraph:
    """Modes of the random walk on a nearest-neighbour graph with locally scaled Gaussian weights.

    Attributes
    ----------
    pool : ndarray of shape (n_public, n_features)
        Public points, kept to find the neighbours of new ones.
    reach : ndarray of shape (n_public,)
        Distance from each point to its middle neighbour, the local scale.
    frequencies : ndarray of shape (n_modes,)
        One minus the eigenvalues of the walk: 0 for constant, up to 2; ascending.
    modes : ndarray of shape (n_public, n_modes)
        Eigenvectors, of mean square about one.
    n_neighbors : int
    """

    pool: FloatArray
    reach: FloatArray
    frequencies: FloatArray
    modes: FloatArray
    n_neighbors: int

    @classmethod
    def build(cls, pool: Any, n_neighbors: int, n_modes: int) -> "NeighbourGraph":
        """Return the graph of a pool, array or sparse matrix; small ones have fewer modes.

        Raises
        ------
        DataError
            If the pool has fewer than three rows.
        """
        n_public = pool.shape[0]
        if n_public < 3:
            raise DataError(f"the public pool has {n_public} rows; a graph needs three or more.")
        points = np.asarray(pool.toarray() if hasattr(pool, "toarray") else pool, dtype=np.float64)
        k = min(n_neighbors, n_public - 1)
        distances, neighbours = NearestNeighbors(n_neighbors=k).fit(points).kneighbors()
        # Weights are scaled by the two points' own reach, whatever the density of their cluster.
        reach = _without_zeros(distances[:, k // 2])
        weights = np.exp(-(distances**2) / (reach[:, None] * reach[neighbours]))
        rows = np.repeat(np.arange(n_public), k)
        one_way = sparse.csr_matrix(
            (weights.ravel(), (rows, neighbours.ravel())), shape=(n_public, n_public)
        )
        graph: Any = (one_way + one_way.T) / 2
        graph.eliminate_zeros()  # weights that underflowed join nothing
        root_degree = np.sqrt(_without_zeros(np.asarray(graph.sum(axis=1)).ravel()))
        scaling: Any = sparse.diags(1.0 / root_degree)
        values, vectors = _largest_of_parts(
            (scaling @ graph @ scaling).tocsr(), min(n_modes, n_public - 1)
        )
        norm = np.sqrt(float((root_degree**2).sum()))
        return cls(points, reach, 1.0 - values, vectors / root_degree[:, None] * norm, n_neighbors)

    def place(self, points: FloatArray) -> FloatArray:
        """Return the modes at any points, shape (n_points, n_modes): a step into the pool."""
        k = min(self.n_neighbors, len(self.pool))
        distances, neighbours = NearestNeighbors(n_neighbors=k).fit(self.pool).kneighbors(points)
        # a point that coincides with so many has the smallest reach of the pool: its own would
        # depend on the points beside it
        reach = distances[:, k // 2]
        reach = np.where(reach > 0, reach, self.reach.min())
        # relative to the nearest neighbour, so that a far point still has a neighbour of weight one
        exponents = distances**2 / (reach[:, None] * self.reach[neighbours])
        weights = np.exp(exponents.min(axis=1, keepdims=True) - exponents)
        weights /= weights.sum(axis=1, keepdims=True)
        averaged = np.einsum("nk,nkm->nm", weights, self.modes[neighbours])
        return np.asarray(averaged / np.maximum(1.0 - self.frequencies, _SMALLEST_EIGENVALUE))


def _without_zeros(values: NDArray[Any]) -> FloatArray:
    """Return the values, zeros (of points that coincide) replaced by the smallest positive one."""
    positive = values[values > 0]
    return np.where(values > 0, values, positive.min() if len(positive) else 1.0)


def _largest_of_parts(matrix: Any, n_values: int) -> tuple[FloatArray, FloatArray]:
    """Return the largest eigenvalues, descending, with eigenvectors, of a symmetric sparse matrix.

    Connected parts are solved one by one: each has the eigenvalue 1, and Lanczos' method misses
    repeated ones.
    """
    n_parts, part = connected_components(matrix, directed=False)
    order = np.argsort(part, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(part, minlength=n_parts))[:-1])
    solved = [
        largest_eigenpairs(matrix[rows][:, rows], min(n_values, len(rows))) for rows in members
    ]
    values = np.concatenate([part_values for part_values, _ in solved])
    owner = np.concatenate([np.full(len(found[0]), number) for number, found in enumerate(solved)])
    column = np.concatenate([np.arange(len(found[0])) for found in solved])
    sizes = np.array([len(rows) for rows in members])
    # the first of each part is 1, whatever digits its solver found: the larger part goes first
    values[(column == 0) & (values > 1 - 1e-6)] = 1.0
    kept = np.lexsort((-sizes[owner], -values))[:n_values]
    vectors = np.zeros((matrix.shape[0], len(kept)))
    for place, index in enumerate(kept):
        vectors[members[owner[index]], place] = solved[owner[index]][1][:, column[index]]
    return values[kept], vectors


@dataclass(eq=False, repr=False)
class GraphCountsClassifier(VoteShareClassifier):
    """Learn vote shares that vary slowly along the nearest-neighbour graph of the public pool.

    A Gaussian process on the graph: its slowest modes (eigenvectors of the graph's random walk) are
    the features of a Bayesian regression on noisy counts of known noise; how smooth the share is on
    the graph is chosen by marginal likelihood. Made for points that form clusters, such as images
    described by good features, and for many unlabelled ones. The pool should be given whole, as
    `fit_student` does; new points are placed by their nearest pool points.

    Parameters
    ----------
    n_neighbors : int, default 10
        Neighbours of each point of the pool.
    n_modes : int, default 200
        Slowest modes of the graph that are kept.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    graph_ : NeighbourGraph
        Of the public pool.
    coef_ : ndarray of shape (n_modes, n_outputs)
    intercept_ : ndarray of shape (n_outputs,)
    n_features_in_ : int

    Examples
    --------
    >>> points = np.concatenate([np.linspace(-2, -1, 25), np.linspace(1, 2, 25)])[:, None]
    >>> noisy_counts = np.where(points[:, 0] > 0, 90, 10)
    >>> student = sb.GraphCountsClassifier(n_neighbors=5, n_modes=10)
    >>> student = student.fit(points, noisy_counts, n_teachers=100, sigma=5.0)
    >>> student.predict([[-1.5], [1.5]]).tolist()
    [0, 1]
    """

    n_neighbors: int = 10
    _: KW_ONLY
    n_modes: int = 200

    def _fit_shares(self, X: Any, pool: Any, shares: FloatArray, variance: float) -> Posterior:
        # The graph is of the whole pool, answered or not; counts are regressed on its modes at the
        # points that were asked.
        n_neighbors = check_count("n_neighbors", self.n_neighbors)
        graph = NeighbourGraph.build(pool, n_neighbors, check_count("n_modes", self.n_modes))
        self.graph_ = graph
        moments = Moments.of(X, graph.place, shares)

        def smoothed(corner: float, power: int) -> Posterior:
            weights = (1.0 + graph.frequencies / corner) ** (-power / 2)
            weighted = moments._replace(
                row_sum=moments.row_sum * weights,
                gram=moments.gram * np.outer(weights, weights),
                cross=moments.cross * weights[:, None],
            )
            fit = fit_by_evidence(weighted, variance)
            return replace(fit, coef=fit.coef * weights[:, None])

        fits = [smoothed(*prior) for prior in product(_CORNERS, _POWERS)]
        return max(fits, key=lambda fit: fit.log_evidence)

    def _features(self, block: FloatArray) -> FloatArray:
        return self.graph_.place(block)
