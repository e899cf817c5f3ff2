"""Strategies that look at no label: random rows, and rows that cover the pool; and public points on
one scale, for distances between them."""

import warnings
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_array
from sklearn.utils.extmath import row_norms

from secretballot._typing import FloatArray, IntArray
from secretballot.exceptions import DataError
from secretballot.queries.base import PublicPool, QuerySelector, QueryStrategy
from secretballot.released import ReleasedLabels

# Up to this many points k-means looks at all of them in every step.
_FULL_PASSES = 5_000


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
    try:
        # dense points in one layout, so that a frame and an array of the same numbers round alike
        # and give the same run
        matrix = check_array(X, accept_sparse="csr", dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise DataError(
            f"the pool does not hold finite numbers alone ({error}), and this strategy measures"
            " distances; encode it (OneHotEncoder, SimpleImputer), or use passive sampling."
        ) from None
    return StandardScaler(with_mean=not sparse.issparse(matrix)).fit_transform(matrix)


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


class ClusterSampling(QueryStrategy):
    """Ask the representatives of clusters: of each, the point nearest to its centre.

    Clusters are those of k-means on scaled columns, as many as there are labels to ask. They come
    by size, so that the first points asked stand for the most points of the pool. When all clusters
    are represented, their second nearest points follow, and so on. The order does not depend on how
    many are asked at a time.

    Examples
    --------
    >>> pool = sb.queries.PublicPool(np.arange(20.0)[:, None], (0, 1), n_queries=2, random_state=0)
    >>> rows = sb.queries.ClusterSampling().start(pool).propose(2)
    >>> sorted(row // 10 for row in rows.tolist())  # one of each half
    [0, 1]
    """

    def start(self, pool: PublicPool) -> OrderedSelector:
        """Cluster the pool.

        Raises
        ------
        DataError
            If the pool does not hold finite numbers.
        """
        points = scaled_points(pool.X)
        assigned, distances = _nearest_clusters(points, pool.n_queries, pool.random_state)
        order = np.lexsort((np.arange(len(assigned)), distances, assigned))
        sizes = np.bincount(assigned)
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        # 0 for the representative, 1 for the next nearest
        rank = np.empty(len(assigned), dtype=np.int64)
        rank[order] = np.arange(len(assigned)) - starts[assigned[order]]
        return OrderedSelector(np.lexsort((assigned, -sizes[assigned], rank)))

    def describe(self) -> dict[str, Any]:
        """Return the name."""
        return {"name": "cluster"}


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
    if hasattr(points, "multiply"):  # sparse
        inner = np.asarray(points.multiply(centres[assigned]).sum(axis=1)).ravel()
    else:
        inner = np.einsum("ij,ij->i", points, centres[assigned])
    norms, lengths = (row_norms(each, squared=True) for each in (points, centres))
    distances = norms - 2 * inner + lengths[assigned]
    return assigned, np.asarray(distances, dtype=np.float64)
