"""Students that learn from noisy counts, because they know their noise: counts become vote shares,
by a Bayesian regression whose variances the marginal likelihood chooses, and these predictions."""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.spatial.distance import pdist
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils import Tags, check_random_state
from sklearn.utils.sparsefuncs import mean_variance_axis
from sklearn.utils.validation import check_is_fitted, validate_data

from secretballot._typing import FloatArray
from secretballot._validation import check_count, check_positive
from secretballot.bases import GraphBasis
from secretballot.exceptions import DataError, Parameter

# Above this many columns the linear model's matrix of second moments grows too large; landmarks
# alone are tried.
_LINEAR_COLUMNS = 2_000
# Length scales that are tried, in median distances between public points.
_LENGTHS = (0.5, 1.0, 2.0)
# Grids of the two variances, in units of the mean squared target that the features could explain.
# Steps of 10**0.25 are far finer than the evidence can distinguish.
_SIGNALS = 10.0 ** np.arange(-6, 4.01, 0.25)
_MISFITS = np.concatenate([[0.0], 10.0 ** np.arange(-4, 1.01, 0.25)])
# Directions below this share of the largest eigenvalue are rounding, not data.
_RANK_TOLERANCE = 1e-10
# Numbers in one dense block: 32 MB, whatever the number of columns.
_BLOCK_NUMBERS = 4_000_000
# Eigenvalues of the landmark kernel below this share of the largest carry rounding only.
_ROOT_TOLERANCE = 1e-8
# Landmarks among which the median distance is measured.
_DISTANCE_SAMPLE = 500
# Prior variance of functions on a graph, (1 + frequency / corner) ** -power: smooth ones of the
# Matern kind. Those of frequency far above the corner are taken for noise; which corner and power,
# the marginal likelihood says.
_CORNERS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
_POWERS = (1, 2, 4, 8)
# Points of the pool that a point takes its values from.
_NEAREST = 5


class Moments(NamedTuple):
    """Sums over rows that determine the regression.

    Attributes
    ----------
    n_rows : int
    row_sum : ndarray of shape (n_features,)
    gram : ndarray of shape (n_features, n_features)
        Sum of the outer products of the rows.
    target_sum : ndarray of shape (n_outputs,)
    cross : ndarray of shape (n_features, n_outputs)
    target_squares : float
        Sum of squares of all targets.
    """

    n_rows: int
    row_sum: FloatArray
    gram: FloatArray
    target_sum: FloatArray
    cross: FloatArray
    target_squares: float

    @classmethod
    def of(cls, X: Any, features_of: Callable[[FloatArray], FloatArray], targets: Any) -> Self:
        """Return the moments of features of the points X and targets of shape (n_points,
        n_outputs), added up block by block to bound the memory."""
        sums: list[Any] = [0, 0.0, 0.0, 0.0, 0.0, 0.0]
        for block in _dense_blocks(X):
            rows, those = features_of(block), targets[sums[0] : sums[0] + len(block)]
            squares = float((those**2).sum())
            more = len(rows), rows.sum(axis=0), rows.T @ rows, those.sum(axis=0), rows.T @ those
            sums = [total + one for total, one in zip(sums, (*more, squares), strict=True)]
        return cls(*sums)


class _Posterior(NamedTuple):
    """Posterior mean of a linear regression, and the evidence that chose its variances.

    Attributes
    ----------
    coef : ndarray of shape (n_features, n_outputs)
    intercept : ndarray of shape (n_outputs,)
    log_evidence : float
    signal : float
        Prior variance of the fitted function, averaged over the rows; in squared target units.
    misfit : float
        Variance that is neither noise nor linear; same units.
    """

    coef: FloatArray
    intercept: FloatArray
    log_evidence: float
    signal: float
    misfit: float


def _fit_by_evidence(moments: Moments, noise_variance: float) -> _Posterior:
    """Return the posterior mean under the variances of largest marginal likelihood.

    Model: target = intercept + row . coef + misfit + noise; coef has independent Gaussian priors of
    equal variance, the intercept a flat one, the noise the known variance. All outputs share the
    two variances.

    Parameters
    ----------
    moments : Moments
        Not yet centred; at least one row.
    noise_variance : float
        Of each target; positive.
    """
    # In the eigenbasis of the features every pair of variances costs a sum over directions alone,
    # so that a grid of hundreds of pairs is cheap; what lies outside of all directions is misfit
    # and noise.
    n_rows = moments.n_rows
    # about the means, as an intercept under a flat prior sees them
    mean, target_mean = moments.row_sum / n_rows, moments.target_sum / n_rows
    cross = moments.cross - n_rows * np.outer(mean, target_mean)
    squares = max(0.0, moments.target_squares - n_rows * float((target_mean**2).sum()))
    values, vectors = np.linalg.eigh(moments.gram - n_rows * np.outer(mean, mean))
    kept = values > max(_RANK_TOLERANCE * float(values.max(initial=0.0)), 0.0)
    values, vectors = values[kept], vectors[:, kept]
    if not len(values):
        return _Posterior(np.zeros_like(cross), target_mean, 0.0, 0.0, 0.0)
    loadings = (vectors.T @ cross) / np.sqrt(values)[:, None]
    energies = (loadings**2).sum(axis=1)
    relative = values / values.sum() * n_rows
    n_outputs = cross.shape[1]
    degrees = max(0, (n_rows - 1 - len(values)) * n_outputs)
    rest = max(0.0, squares - float(energies.sum())) if degrees else 0.0

    # Scaled by what of the targets is not noise, so that one grid serves every release.
    unit = max(squares / (n_rows * n_outputs) - noise_variance, 1e-3 * noise_variance)
    signals, misfits = unit * _SIGNALS, unit * _MISFITS
    scatter = noise_variance + misfits
    totals = signals[:, None, None] * relative + scatter[None, :, None]
    log_evidence = -0.5 * (
        n_outputs * np.log(totals).sum(axis=-1)
        + (energies / totals).sum(axis=-1)
        + degrees * np.log(scatter)
        + rest / scatter
    )
    best_signal, best_misfit = np.unravel_index(int(np.argmax(log_evidence)), log_evidence.shape)
    prior = signals[best_signal] * relative
    shrunk = loadings * (prior / (prior + scatter[best_misfit]))[:, None]
    coef = vectors @ (shrunk / np.sqrt(values)[:, None])
    return _Posterior(
        coef,
        target_mean - mean @ coef,
        float(log_evidence[best_signal, best_misfit]),
        float(signals[best_signal]),
        float(misfits[best_misfit]),
    )


# scikit-learn ships no types
class VoteShareClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Predict the class with the largest estimated vote share.

    Subclasses say which features the shares are regressed on.
    """

    classes_: NDArray[Any]

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
        """Fit the vote shares.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_queries, n_features)
            The public points that were asked.
        noisy_counts : array of shape (n_queries,) or (n_queries, n_classes)
            Released counts in votes: of the second class, or one column for each class.
        n_teachers : int
        sigma : float
            Standard deviation of the noise on each count, in votes.
        classes : sequence, optional
            Class values in the order of the counts; 0, 1, ... by default.
        pool : array or sparse matrix of shape (n_public, n_features), optional
            The whole public pool; by default `X`.

        Returns
        -------
        self

        Raises
        ------
        DataError
            If the arrays do not fit together.
        ParameterError
            If a parameter is out of its range.
        """
        # Counts become shares of the teachers, so that noise, signal and misfit have one unit
        # whatever the number of teachers.
        K = check_count("n_teachers", n_teachers)
        noise = check_positive("sigma", sigma) / K
        numbers = {"accept_sparse": "csr", "dtype": np.float64}
        points: Any = validate_data(self, X, **numbers)
        public = points if pool is None else validate_data(self, pool, reset=False, **numbers)
        shares, noise = _shares_of(noisy_counts, points.shape[0], K, noise)
        n_outputs = shares.shape[1]
        self.classes_ = class_array(classes, max(2, n_outputs))
        centre = 0.5 if n_outputs == 1 else 1.0 / n_outputs
        posterior = self._fit_shares(points, public, shares - centre, noise**2)
        self.coef_, self.intercept_ = posterior.coef, posterior.intercept + centre
        return self

    @abstractmethod
    def _fit_shares(self, X: Any, pool: Any, shares: FloatArray, variance: float) -> _Posterior:
        """Return the model of largest evidence, of centred shares with noise of this variance; keep
        its features.

        It is chosen by released counts and public points alone, so it costs nothing.
        """

    @abstractmethod
    def _features(self, block: FloatArray) -> FloatArray:
        """Return the features of some points, shape (n_rows, n_features)."""

    def predict_shares(self, X: ArrayLike) -> FloatArray:
        """Return the estimated share of teachers behind each class, shape (n_points, n_classes).

        Posterior means, not clipped: they may stray a little below 0 or above 1.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        shares = np.vstack(
            [self._features(block) @ self.coef_ + self.intercept_ for block in _dense_blocks(X)]
        )
        return np.hstack([1.0 - shares, shares]) if shares.shape[1] == 1 else shares

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Return the estimated vote shares as probabilities, shape (n_points, n_classes).

        Each row is the nearest point of the simplex.

        What is estimated is the share of teachers that vote for each class, which is not the chance
        of the class.
        """
        return _nearest_probabilities(self.predict_shares(X))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the class with the largest estimated share, the first on a tie, shape (n,)."""
        winners = self.predict_shares(X).argmax(axis=1)
        return np.asarray(self.classes_[winners])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _shares_of(
    noisy_counts: ArrayLike, n_rows: int, n_teachers: int, noise: float
) -> tuple[FloatArray, float]:
    """Return vote shares, one column for two classes or one per class, and their noise deviation.

    Parameters
    ----------
    noisy_counts : array of shape (n_rows,) or (n_rows, n_classes)
    n_rows, n_teachers : int
    noise : float
        Standard deviation on each count, as a share of the teachers.

    Returns
    -------
    shares : ndarray of shape (n_rows, 1) or (n_rows, n_classes)
    noise : float

    Raises
    ------
    DataError
        If the counts are not one for each point, or not finite.
    """
    counts = checked_counts(noisy_counts, n_rows)
    if counts.ndim == 1:
        return counts[:, None] / n_teachers, noise
    if counts.shape[1] == 2:
        # both columns tell of the same vote under independent noise: their mean has half the
        # variance
        second = (counts[:, 1] - counts[:, 0]) / n_teachers
        return (second[:, None] + 1.0) / 2, noise / math.sqrt(2)
    return counts / n_teachers, noise


def checked_counts(noisy_counts: ArrayLike, n_rows: int) -> FloatArray:
    """Return finite counts of shape (n_rows,) or (n_rows, n_classes).

    Raises
    ------
    DataError
        If the counts are not one for each point, or not finite.
    """
    counts = np.asarray(noisy_counts, dtype=np.float64)
    one = counts.shape == (n_rows,)
    each = counts.ndim == 2 and len(counts) == n_rows and counts.shape[1] >= 2
    if not (one or each) or not np.isfinite(counts).all():
        raise DataError(
            Parameter("noisy_counts"),
            f" has shape {counts.shape} for {n_rows} points; give one finite count for each point,"
            " or one for each point and class.",
        )
    return counts


def class_array(classes: Sequence[Any] | NDArray[Any] | None, n_classes: int) -> NDArray[Any]:
    """Return the class values, 0, 1, ... by default, shape (n_classes,).

    Raises
    ------
    DataError
        If there are more or fewer.
    """
    values = np.arange(n_classes) if classes is None else np.asarray(classes)
    if values.shape != (n_classes,):
        raise DataError(
            Parameter("classes"),
            f" has shape {values.shape}; these counts tell of {n_classes} classes.",
        )
    return values


def _nearest_probabilities(shares: FloatArray) -> FloatArray:
    """Return the projection of rows onto the probability simplex, shape (n, n_classes)."""
    descending = -np.sort(-shares, axis=1)
    excess = (np.cumsum(descending, axis=1) - 1.0) / np.arange(1, shares.shape[1] + 1)
    last = (descending > excess).sum(axis=1) - 1
    return np.asarray(np.maximum(shares - np.take_along_axis(excess, last[:, None], axis=1), 0.0))


def _dense_blocks(X: Any) -> Iterator[FloatArray]:
    """Yield dense blocks of the rows of a matrix of shape (n_rows, n_columns)."""
    n_rows, n_columns = X.shape
    height = max(1, _BLOCK_NUMBERS // max(1, n_columns))
    for start in range(0, n_rows, height):
        block: Any = X[start : start + height]
        dense = block.toarray() if hasattr(block, "toarray") else block
        yield np.asarray(dense, dtype=np.float64)


def _scalings_of(pool: Any) -> list[tuple[FloatArray, FloatArray]]:
    """Return two pairs of a centre and a scale of each column, learnt from the whole public pool:
    one scale for all columns, and one scale for each.

    The first keeps the columns' own proportions, which is right for one-hot columns and pixels,
    where a rare column should count for little; the second is right for columns in different
    units. Points come out with a mean squared norm of one.
    """
    if sparse.issparse(pool):
        mean, variance = mean_variance_axis(pool, axis=0)
    else:
        mean, variance = pool.mean(axis=0), pool.var(axis=0)
    # less is rounding of a constant column
    spread = np.where(variance > 1e-24 * mean**2, np.sqrt(variance), 0.0)
    varying = spread > 0
    common = np.sqrt(float((spread**2).sum())) if varying.any() else 1.0
    each = np.where(varying, spread * np.sqrt(max(1, int(varying.sum()))), 1.0)
    return [(mean, scale) for scale in (np.full(len(mean), common), each)]


def _median_distance(points: FloatArray) -> float:
    """Return the median distance between points of shape (n, n_features); 1 if all coincide.

    It is measured between the first `_DISTANCE_SAMPLE` of them.
    """
    distances = pdist(points[:_DISTANCE_SAMPLE])
    return float(np.median(distances[distances > 0])) if (distances > 0).any() else 1.0


@dataclass(frozen=True)
class _VoteModel:
    """One model of the votes: how points are scaled and, for a Gaussian kernel, landmarks.

    Attributes
    ----------
    mean, scale : ndarray of shape (n_features,)
    landmarks : ndarray of shape (n_landmarks, n_features)
        Scaled; none where the model is linear.
    length : float
        Length scale of the kernel, in the units of the landmarks.
    """

    mean: FloatArray
    scale: FloatArray
    landmarks: FloatArray
    length: float = 1.0

    @classmethod
    def of_kernel(
        cls, scaling: tuple[FloatArray, FloatArray], landmarks: FloatArray, length: float
    ) -> Self:
        """Return the model of landmarks that are not yet scaled, of a length in median
        distances."""
        points = (landmarks - scaling[0]) / scaling[1]
        return cls(*scaling, points, length * _median_distance(points))

    @cached_property
    def root(self) -> FloatArray:
        """An inverse square root of the landmarks' kernel, shape (n_landmarks, rank), by which it
        gives Nystroem features."""
        values, vectors = np.linalg.eigh(self._kernel(self.landmarks))
        kept = values > _ROOT_TOLERANCE * values.max()
        return np.asarray(vectors[:, kept] / np.sqrt(values[kept]))

    def _kernel(self, points: FloatArray) -> FloatArray:
        return np.asarray(rbf_kernel(points, self.landmarks, gamma=1 / (2 * self.length**2)))

    def features(self, block: FloatArray) -> FloatArray:
        """Return the features of points of shape (n_rows, n_columns)."""
        points = (block - self.mean) / self.scale
        return self._kernel(points) @ self.root if len(self.landmarks) else points


@dataclass(eq=False, repr=False)
class NoisyCountsClassifier(VoteShareClassifier):
    """Learn the teachers' vote shares from noisy counts whose noise is known.

    A Gaussian-process regression of the share of teachers behind each class. The noise variance is
    the released one; the size of the signal, the variance that the model cannot explain, the
    scaling of the columns and the kernel are chosen by marginal likelihood on the released counts,
    at no privacy cost. Where an arg max of noisy counts throws away how close the vote was, this
    student weighs it: many queries under much noise teach it as much as few under little.

    Parameters
    ----------
    n_landmarks : int, default 400
        Public points that carry the Gaussian kernel (Nystroem); more follow finer detail, at cubic
        cost.
    random_state : int, RandomState or None
        Of the choice of landmarks. Never of noise.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    model_ : _VoteModel
        How points are scaled, and the landmarks of the kernel.
    coef_ : ndarray of shape (n_features_in_ or n_landmarks, n_outputs)
    intercept_ : ndarray of shape (n_outputs,)
        One output for two classes, else one per class.
    n_features_in_ : int

    Examples
    --------
    >>> points = np.linspace(-1, 1, 50).reshape(-1, 1)
    >>> noisy_counts = np.where(points[:, 0] > 0, 90, 10)
    >>> student = sb.NoisyCountsClassifier()
    >>> student = student.fit(points, noisy_counts, n_teachers=100, sigma=5.0)
    >>> student.predict([[-0.8], [0.8]]).tolist()
    [0, 1]
    """

    _: KW_ONLY
    n_landmarks: int = 400
    random_state: Any = None

    def _fit_shares(self, X: Any, pool: Any, shares: FloatArray, variance: float) -> _Posterior:
        # the scaling first, then the kernel on it
        n_landmarks = check_count("n_landmarks", self.n_landmarks, minimum=2)
        rng = check_random_state(self.random_state)
        chosen = rng.permutation(pool.shape[0])[:n_landmarks]
        landmarks = np.vstack(list(_dense_blocks(pool[np.sort(chosen)])))
        scalings, tried = _scalings_of(pool), list[tuple[_VoteModel, _Posterior]]()

        def fit(model: _VoteModel) -> None:
            moments = Moments.of(X, model.features, shares)
            tried.append((model, _fit_by_evidence(moments, variance)))

        if X.shape[1] <= _LINEAR_COLUMNS:
            for scaling in scalings:
                fit(_VoteModel(*scaling, landmarks[:0]))
            best = max(tried, key=_log_evidence_of)[0]
            scalings = [(best.mean, best.scale)]
        for scaling, length in product(scalings, _LENGTHS):
            fit(_VoteModel.of_kernel(scaling, landmarks, length))
        self.model_, posterior = max(tried, key=_log_evidence_of)
        return posterior

    def _features(self, block: FloatArray) -> FloatArray:
        return self.model_.features(block)


def _log_evidence_of(fit: tuple[_VoteModel, _Posterior]) -> float:
    return fit[1].log_evidence


@dataclass(eq=False, repr=False)
class GraphCountsClassifier(VoteShareClassifier):
    """Learn vote shares that vary slowly along the nearest-neighbour graph of the public pool.

    The smoothest functions on the graph (`GraphBasis`) are the features of a Bayesian regression on
    noisy counts of known noise; how smooth the share is on the graph is chosen by marginal
    likelihood. Made for points that form clusters, such as images described by good features, and
    for many unlabelled ones. The pool should be given whole, as `fit_student` does; new points are
    placed by their nearest pool points.

    Parameters
    ----------
    n_neighbors : int, default 10
        Neighbours of each point of the pool.
    n_modes : int, default 200
        Smoothest functions on the graph that are kept.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    basis_ : GraphBasis
        Of the public pool.
    coef_ : ndarray of shape (n_directions, n_outputs)
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

    def _fit_shares(self, X: Any, pool: Any, shares: FloatArray, variance: float) -> _Posterior:
        # The graph is of the whole pool, answered or not; counts are regressed on its functions at
        # the points that were asked.
        n_neighbours, most = check_count("n_neighbors", self.n_neighbors), max(1, pool.shape[0] - 2)
        self.basis_ = GraphBasis(
            self.n_modes,
            n_neighbours=min(n_neighbours, most),
            n_nearest=min(_NEAREST, most),
            scaled=False,
        ).fit(pool)
        moments = Moments.of(X, self._features, shares)

        def smoothed(corner: float, power: int) -> _Posterior:
            weights = (1.0 + (1.0 - self.basis_.eigenvalues_) / corner) ** (-power / 2)
            weighted = moments._replace(
                row_sum=moments.row_sum * weights,
                gram=moments.gram * np.outer(weights, weights),
                cross=moments.cross * weights[:, None],
            )
            fit = _fit_by_evidence(weighted, variance)
            return fit._replace(coef=fit.coef * weights[:, None])

        fits = [smoothed(*prior) for prior in product(_CORNERS, _POWERS)]
        return max(fits, key=lambda fit: fit.log_evidence)

    def _features(self, block: FloatArray) -> FloatArray:
        return self.basis_.transform(block)
