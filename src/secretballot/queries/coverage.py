"""Strategies that cover the pool and look at no label: a first round for others, or all rounds."""

import warnings
from typing import Any

import numpy as np
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.exceptions import ConvergenceWarning

from secretballot._typing import FloatArray, IntArray
from secretballot._validation import check_count
from secretballot.queries.base import PublicPool, QuerySelector, QueryStrategy
from secretballot.queries.passive import OrderedSelector
from secretballot.queries.points import is_sparse, scaled_points, squared_norms
from secretballot.released import ReleasedLabels

# Up to this many points k-means looks at all of them in every step.
_FULL_PASSES = 5_000


class KCenterSampling(QueryStrategy):
    """Ask the point that is farthest from all points asked so far.

    Gonzalez 1985; Sener and Savarese 2018. The first is the one nearest to the mean. Columns are
    brought to one standard deviation. A point costs one pass over the pool; the distances between
    all pairs are never held. Far-out points come first, which covers a pool and wastes labels on
    its outliers.

    Examples
    --------
    >>> pool = sb.queries.PublicPool(np.arange(20.0)[:, None], (0, 1), n_queries=6, random_state=0)
    >>> sb.queries.KCenterSampling().start(pool).propose(3).tolist()
    [9, 19, 0]
    """

    def start(self, pool: PublicPool) -> "QuerySelector":
        """Scale the pool.

        Raises
        ------
        DataError
            If the pool does not hold finite numbers.
        """
        return _FarthestFirst(scaled_points(pool.X))

    def describe(self) -> dict[str, Any]:
        """Return the name."""
        return {"name": "k-center"}


class _FarthestFirst(QuerySelector):
    def __init__(self, points: Any) -> None:
        self._points = points
        self._norms = squared_norms(points)
        # squared distance to the nearest centre; -1 at centres
        self._gaps = np.full(len(self._norms), np.inf)
        self._radii: list[float] = []

    def propose(self, n: int) -> IntArray:
        """Return the next `n` farthest points, or what is left."""
        rows: list[int] = []
        while len(rows) < n and (self._gaps >= 0).any():
            # before the first centre no point is far from any; the middle of the pool begins
            if np.isinf(self._gaps).all():
                row = int(np.argmin(self._distances_to(self._mean_point())))
            else:
                row = int(np.argmax(self._gaps))
                self._radii.append(float(np.sqrt(self._gaps[row])))
            self._add_centre(row)
            rows.append(row)
        return np.array(rows, dtype=np.int64)

    def receive(self, released: ReleasedLabels) -> None:
        """Keep away from all points that were asked, by whomever."""
        for row in released.queries[self._gaps[released.queries] >= 0]:
            self._add_centre(int(row))

    def explain(self) -> dict[str, Any]:
        """Return how far, in standard deviations, the last point that was asked lay from the
        others."""
        return {"radius": self._radii[-1] if self._radii else None}

    def _add_centre(self, row: int) -> None:
        centre = self._points[[row]]
        centre = centre.toarray() if is_sparse(centre) else centre
        gaps = np.minimum(self._gaps, self._distances_to(np.asarray(centre).ravel()))
        self._gaps = np.where(self._gaps < 0, -1.0, gaps)
        self._gaps[row] = -1.0

    def _distances_to(self, centre: FloatArray) -> FloatArray:
        return np.asarray(
            np.maximum(0.0, self._norms - 2 * (self._points @ centre) + centre @ centre)
        )

    def _mean_point(self) -> FloatArray:
        return np.asarray(self._points.mean(axis=0)).ravel()


class ClusterSampling(QueryStrategy):
    """Ask the representatives of clusters: of each, the point nearest to its centre.

    Clusters are those of k-means on scaled columns.

    Clusters come by size, so that the first points asked stand for the most points of the pool.
    When all clusters are represented, their second nearest points follow, and so on. The order does
    not depend on how many are asked at a time.

    Parameters
    ----------
    n_clusters : int, optional
        By default as many as there are labels to ask.

    Raises
    ------
    ParameterError
        If `n_clusters` is not an integer of at least 1.

    Examples
    --------
    >>> pool = sb.queries.PublicPool(np.arange(20.0)[:, None], (0, 1), n_queries=6, random_state=0)
    >>> rows = sb.queries.ClusterSampling(n_clusters=2).start(pool).propose(2)
    >>> sorted(row // 10 for row in rows.tolist())  # one of each half
    [0, 1]
    """

    def __init__(self, n_clusters: int | None = None) -> None:
        self.n_clusters = None if n_clusters is None else check_count("n_clusters", n_clusters)

    def start(self, pool: PublicPool) -> OrderedSelector:
        """Cluster the pool.

        Raises
        ------
        DataError
            If the pool does not hold finite numbers.
        """
        points = scaled_points(pool.X)
        wanted = pool.n_queries if self.n_clusters is None else self.n_clusters
        assigned, distances = _nearest_clusters(points, wanted, pool.random_state)
        order = np.lexsort((np.arange(len(assigned)), distances, assigned))
        sizes = np.bincount(assigned)
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        # 0 for the representative, 1 for the next nearest
        rank = np.empty(len(assigned), dtype=np.int64)
        rank[order] = np.arange(len(assigned)) - starts[assigned[order]]
        return OrderedSelector(np.lexsort((assigned, -sizes[assigned], rank)))

    def describe(self) -> dict[str, Any]:
        """Return name and number of clusters."""
        return {"name": "cluster", "n_clusters": self.n_clusters}


def spread_over(points: Any, weights: FloatArray, n: int, seed: int) -> IntArray:
    """Return `n` places among weighted points: the heaviest of each cluster of a weighted k-means.

    Parameters
    ----------
    points : array or CSR matrix of shape (k, n_features)
    weights : array of shape (k,)
        At least 0.
    n : int
        From 1 to k.
    seed : int

    Returns
    -------
    ndarray of int64, shape (n,), ascending
    """
    assigned, _ = _nearest_clusters(points, n, seed, weights + 1e-9)
    order = np.lexsort((np.arange(len(assigned)), -weights, assigned))
    first = np.concatenate([[True], np.diff(assigned[order]) > 0])
    chosen = order[first]
    # clusters may coincide or stay empty; the heaviest of the other points take their place
    others = np.setdiff1d(np.arange(len(weights)), chosen)
    heaviest = others[np.argsort(-weights[others], kind="stable")[: n - len(chosen)]]
    return np.sort(np.concatenate([chosen, heaviest])).astype(np.int64)


def _nearest_clusters(
    points: Any, n: int, seed: int, weights: FloatArray | None = None
) -> tuple[IntArray, FloatArray]:
    """Return each point's cluster and squared distance to its centre, both of shape (m,)."""
    m = points.shape[0]
    n = min(n, m)
    family = KMeans if m <= _FULL_PASSES else MiniBatchKMeans
    model = family(n, n_init=1, random_state=seed % (1 << 32))
    with warnings.catch_warnings():
        # fewer distinct points than clusters: some stay empty
        warnings.simplefilter("ignore", ConvergenceWarning)
        assigned = np.asarray(model.fit(points, sample_weight=weights).labels_, dtype=np.int64)
    centres = np.asarray(model.cluster_centers_)
    if is_sparse(points):
        inner = np.asarray(points.multiply(centres[assigned]).sum(axis=1)).ravel()
    else:
        inner = np.einsum("ij,ij->i", points, centres[assigned])
    distances = squared_norms(points) - 2 * inner + squared_norms(centres)[assigned]
    return assigned, np.asarray(distances, dtype=np.float64)
