"""The student of the public pool's own shape: a vote share, smooth on its neighbour graph."""

import math
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted, validate_data

from secretballot._typing import FloatArray
from secretballot._validation import check_count, check_positive
from secretballot.students.evidence import Moments, Posterior, fit_by_evidence
from secretballot.students.feature_maps import dense_blocks
from secretballot.students.neighbour_graph import NeighbourGraph
from secretballot.students.vote_shares import VoteShareClassifier, class_array, shares_of

# Prior variance of the graph's modes, (1 + frequency / corner) ** -power: smooth functions of the
# Matern kind. Modes of frequency far above the corner are taken for noise; which corner and power,
# the marginal likelihood says.
_CORNERS = (0.003, 0.01, 0.03, 0.1, 0.3)
_POWERS = (1, 2, 3)


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
    corner_, power_ : float, int
        The chosen prior.
    signal_, misfit_, noise_ : float
        Standard deviations as shares of the teachers, as in `NoisyCountsClassifier`.
    log_evidence_ : float
    pool_, reach_, frequencies_, modes_ : ndarray
        The graph of the public pool, as in `NeighbourGraph`.
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

    def __init__(self, n_neighbors: int = 10, *, n_modes: int = 200) -> None:
        self.n_neighbors = n_neighbors
        self.n_modes = n_modes

    def fit(
        self,
        X: ArrayLike,
        noisy_counts: ArrayLike,
        *,
        n_teachers: int,
        sigma: float,
        classes: Sequence[Any] | None = None,
        pool: ArrayLike | None = None,
    ) -> Self:
        """Fit the vote shares; arguments, with their shapes, as in `NoisyCountsClassifier.fit`.

        Raises
        ------
        DataError
            If the arrays do not fit together, or the pool has fewer than three rows.
        ParameterError
            If a parameter is out of its range.
        """
        n_neighbors = check_count("n_neighbors", self.n_neighbors)
        n_modes = check_count("n_modes", self.n_modes)
        K = check_count("n_teachers", n_teachers)
        noise = check_positive("sigma", sigma) / K
        points, public = self._points_and_pool(X, pool)
        # The graph is of the whole pool, answered or not; counts are regressed on its modes at the
        # points that were asked.
        shares, self.noise_ = shares_of(noisy_counts, points.shape[0], K, noise)
        self.classes_ = class_array(classes, max(2, shares.shape[1]))
        graph = NeighbourGraph.build(public, n_neighbors, n_modes)
        self.pool_, self.reach_, self.frequencies_, self.modes_ = (
            graph.pool,
            graph.reach,
            graph.frequencies,
            graph.modes,
        )
        moments = Moments.empty(graph.n_modes, shares.shape[1])
        centre = 0.5 if shares.shape[1] == 1 else 1.0 / shares.shape[1]
        for rows, block in dense_blocks(points):
            moments.add(graph.place(block), shares[rows] - centre)
        self._keep_best(moments, centre)
        return self

    def _keep_best(self, moments: Moments, centre: float) -> None:
        """Keep the fit of largest evidence."""

        def smoothed(corner: float, power: int) -> tuple[Posterior, FloatArray, float, int]:
            weights = (1.0 + self.frequencies_ / corner) ** (-power / 2)
            return (
                fit_by_evidence(_weighted_moments(moments, weights), self.noise_**2),
                weights,
                corner,
                power,
            )

        fits = [smoothed(corner, power) for corner in _CORNERS for power in _POWERS]
        # chosen by released counts and public points alone, so it costs nothing
        posterior, weights, self.corner_, self.power_ = max(
            fits, key=lambda fit: fit[0].log_evidence
        )
        self.coef_ = posterior.coef * weights[:, None]
        self.intercept_ = posterior.intercept + centre
        self.log_evidence_ = posterior.log_evidence
        self.signal_, self.misfit_ = math.sqrt(posterior.signal), math.sqrt(posterior.misfit)

    def predict_shares(self, X: ArrayLike) -> FloatArray:
        """Return the estimated share of teachers behind each class, shape (n_points, n_classes),
        not clipped."""
        check_is_fitted(self)
        points: Any = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        graph = NeighbourGraph(
            self.pool_, self.reach_, self.frequencies_, self.modes_, self.n_neighbors
        )
        parts = [
            graph.place(block) @ self.coef_ + self.intercept_ for _, block in dense_blocks(points)
        ]
        shares = np.vstack(parts)
        return np.hstack([1.0 - shares, shares]) if shares.shape[1] == 1 else shares


def _weighted_moments(moments: Moments, weights: FloatArray) -> Moments:
    """Return the moments of the features times their weights."""
    return Moments(
        moments.n_rows,
        moments.row_sum * weights,
        moments.gram * np.outer(weights, weights),
        moments.target_sum,
        moments.cross * weights[:, None],
        moments.target_squares,
    )
