"""Strategies that look at no label: random rows, and rows that cover the pool; and public points on
one scale, for distances between them."""

import warnings
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.exceptions import ConvergenceWarning

from secretballot._typing import FloatArray, IntArray
from secretballot._validation import check_count
from secretballot.exceptions import DataError
from secretballot.queries.base import PublicPool, QuerySelector, QueryStrategy
from secretballot.released import ReleasedLabels

# Up to this many points k-means looks at all of them in every step.
_FULL_PASSES = 5_000


def is_sparse(X: Any) -> bool:
    """Return whether `X` is a sparse matrix."""
    return bool(sparse.issparse(X))


def as_numbers(X: Any) -> Any:
    """Return points as a float64 array, or CSR matrix if they are sparse, of shape (m, n_features).

    Raises
    ------
    DataError
        If a column does not hold numbers, or a number is missing or infinite.
    """
    matrix: Any = X.tocsr() if is_sparse(X) else np.asarray(X)
    if matrix.ndim != 2:
        raise DataError(
            f"the pool has shape {matrix.shape}; give a table of points, one in each row."
        )
    # dense points in one layout, so that a frame and an array of the same numbers round alike and
    # give the same run
    layout = {} if is_sparse(matrix) else {"order": "C"}
    try:
        matrix = matrix.astype(np.float64, **layout)
    except (TypeError, ValueError):
        raise DataError(
            "the pool holds values that are not numbers, and this strategy measures distances; "
            "encode them as numbers (OneHotEncoder), or use passive sampling."
        ) from None
    if not np.isfinite(matrix.data if is_sparse(matrix) else matrix).all():
        raise DataError(
            "the pool holds missing or infinite numbers, and this strategy measures distances; "
            "fill them (SimpleImputer), or use passive sampling."
        )
    return matrix


def scaled_points(X: Any) -> Any:
    """Return points with every column at standard deviation 1, and mean 0 unless they are sparse.

    Distances are the same with and without the mean, so sparse points stay sparse. Constant columns
    become 0 or, in sparse points, keep their value.

    Parameters
    ----------
    X : array, sparse matrix or frame of numbers, shape (m, n_features)

    Raises
    ------
    DataError
        If a column does not hold numbers, or a number is missing or infinite.
    """
    matrix = as_numbers(X)
    mean = np.asarray(matrix.mean(axis=0)).ravel()
    if is_sparse(matrix):
        variance = np.asarray(matrix.multiply(matrix).mean(axis=0)).ravel() - mean**2
    else:
        matrix -= mean
        variance = np.einsum("ij,ij->j", matrix, matrix) / max(1, len(matrix))
    # below the rounding of the mean, a column is constant
    constant = ~(variance > 1e-14 * (variance + mean**2))
    scale = np.sqrt(np.where(constant, 1.0, variance))
    if is_sparse(matrix):
        scaling: Any = sparse.diags(1.0 / scale)
        return (matrix @ scaling).tocsr()
    matrix /= scale
    matrix[:, constant] = 0.0
    return matrix


def squared_norms(points: Any) -> FloatArray:
    """Return the squared length of every point, shape (m,)."""
    if is_sparse(points):
        return np.asarray(points.multiply(points).sum(axis=1), dtype=np.float64).ravel()
    return np.asarray(np.einsum("ij,ij->i", points, points), dtype=np.float64)


class OrderedSelector(QuerySelector):
    """Propose rows in an order fixed beforehand; no answer changes it.

    Parameters
    ----------
    order : array of int, shape (k,)
        Distinct rows of the pool.
    """

    def __init__(self, order: IntArray) -> None:
        self._left = order

    def propose(self, n: int) -> IntArray:
        """Return the next `n` rows of the order, or what is left of it."""
        rows, self._left = self._left[:n], self._left[n:]
        return rows

    def receive(self, released: ReleasedLabels) -> None:
        """Leave out rows that others asked; learn nothing."""
        self._left = self._left[~np.isin(self._left, released.queries)]


class PassiveSampling(QueryStrategy):
    """Ask random rows of the pool, by the public seed (Liu et al. 2021, Algorithm 3).

    The rows do not depend on how many are asked at a time: two rounds of 10 ask what one of 20
    asks.

    Examples
    --------
    >>> pool = sb.queries.PublicPool(np.arange(20.0)[:, None], (0, 1), n_queries=6, random_state=0)
    >>> rows = sb.queries.PassiveSampling().start(pool).propose(6)
    >>> len(set(rows.tolist()))
    6
    """

    def start(self, pool: PublicPool) -> OrderedSelector:
        """Shuffle the pool by its public seed."""
        return OrderedSelector(np.random.default_rng(pool.random_state).permutation(pool.n_points))

    def describe(self) -> dict[str, Any]:
        """Return the name."""
        return {"name": "passive"}


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
