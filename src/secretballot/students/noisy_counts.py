"""The student that learns from noisy counts, because it knows their noise."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from secretballot._typing import FloatArray
from secretballot._validation import check_choice, check_count, check_positive
from secretballot.students.evidence import Moments, Posterior, fit_by_evidence
from secretballot.students.feature_maps import (
    Standardiser,
    dense_blocks,
    landmark_root,
    map_landmarks,
    median_distance,
)
from secretballot.students.vote_shares import VoteShareClassifier, class_array, shares_of

KERNELS = ("auto", "linear", "gaussian")

# Above this many columns the linear model's matrix of second moments grows too large; landmarks
# stand in for it.
_LINEAR_COLUMNS = 2_000
# Length scales that are tried, in median distances between public points.
_LENGTHS = (0.5, 1.0, 2.0)


@dataclass(frozen=True)
class _Candidate:
    """One model of the votes: how points are scaled and, for a Gaussian kernel, landmarks (of
    rank > 0)."""

    standardiser: Standardiser
    landmarks: FloatArray
    length: float
    root: FloatArray

    @property
    def n_features(self) -> int:
        return self.root.shape[1] if len(self.landmarks) else len(self.standardiser.mean)

    def blocks(self, X: Any) -> Iterator[tuple[slice, FloatArray]]:
        """Yield rows of X and their features, of shape (rows, n_features), block by block."""
        for rows, block in dense_blocks(X):
            points = self.standardiser.apply(block)
            if len(self.landmarks):
                points = map_landmarks(points, self.landmarks, self.length, self.root)
            yield rows, points

    def fit(self, X: Any, targets: FloatArray, noise_variance: float) -> Posterior:
        """Return what is believed after targets of shape (n_points, n_columns) at the points X."""
        moments = Moments.empty(self.n_features, targets.shape[1])
        for rows, features in self.blocks(X):
            moments.add(features, targets[rows])
        return fit_by_evidence(moments, noise_variance)


class NoisyCountsClassifier(VoteShareClassifier):
    """Learn the teachers' vote shares from noisy counts whose noise is known.

    A Gaussian-process regression of the share of teachers behind each class. The noise variance is
    the released one; the size of the signal, the variance that the model cannot explain, the
    scaling of the columns and the kernel are chosen by marginal likelihood on the released counts,
    at no privacy cost. Where an arg max of noisy counts throws away how close the vote was, this
    student weighs it: many queries under much noise teach it as much as few under little.

    Parameters
    ----------
    kernel : {"auto", "linear", "gaussian"}, default "auto"
        Shape of the vote share over the points; "auto" lets the marginal likelihood choose.
    n_landmarks : int, default 400
        Public points that carry the Gaussian kernel (Nystroem); more follow finer detail, at cubic
        cost.
    random_state : int, RandomState or None
        Of the choice of landmarks. Never of noise.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    kernel_ : {"linear", "gaussian"}
        The kernel that was chosen.
    signal_, misfit_, noise_ : float
        Standard deviations, as shares of the teachers: of the fitted vote share over the points, of
        what the model leaves unexplained, and of the released noise.
    log_evidence_ : float
        Log marginal likelihood of the chosen model; comparable between models of the same release.
    mean_, scale_ : ndarray of shape (n_features_in_,)
    landmarks_ : ndarray of shape (n_landmarks, n_features_in_)
        Scaled public points; none under the linear kernel.
    length_ : float
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

    def __init__(
        self, kernel: str = "auto", *, n_landmarks: int = 400, random_state: Any = None
    ) -> None:
        self.kernel = kernel
        self.n_landmarks = n_landmarks
        self.random_state = random_state

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
            The whole public pool, from which columns are scaled and landmarks drawn; by default
            `X`.

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
        kernel = check_choice("kernel", self.kernel, KERNELS)
        n_landmarks = check_count("n_landmarks", self.n_landmarks, minimum=2)
        K = check_count("n_teachers", n_teachers)
        noise = check_positive("sigma", sigma) / K
        points, public = self._points_and_pool(X, pool)
        shares, column_noise = shares_of(noisy_counts, points.shape[0], K, noise)
        self.classes_ = class_array(classes, max(2, shares.shape[1]))
        candidate, posterior = self._best_candidate(
            kernel, n_landmarks, points, public, shares, column_noise**2
        )
        self._keep_model(candidate, posterior)
        self.noise_ = column_noise
        return self

    def _best_candidate(
        self,
        kernel: str,
        n_landmarks: int,
        X: Any,
        public: Any,
        shares: FloatArray,
        noise_variance: float,
    ) -> tuple[_Candidate, Posterior]:
        """Return the model of largest evidence: the scaling first, then the kernel on it."""
        centre = np.full(shares.shape[1], 0.5 if shares.shape[1] == 1 else 1.0 / shares.shape[1])

        def fitted(candidates: list[_Candidate]) -> list[tuple[_Candidate, Posterior]]:
            return [
                (candidate, candidate.fit(X, shares - centre, noise_variance))
                for candidate in candidates
            ]

        nothing = np.empty((0, X.shape[1])), 1.0, np.empty((0, 0))
        rng = check_random_state(self.random_state)
        chosen = rng.permutation(public.shape[0])[:n_landmarks]
        landmarks = np.vstack([block for _, block in dense_blocks(public[np.sort(chosen)])])
        scalings: tuple[Standardiser, ...] = Standardiser.learn(public)
        tried: list[tuple[_Candidate, Posterior]] = []
        if kernel != "gaussian" and X.shape[1] <= _LINEAR_COLUMNS:
            tried = fitted([_Candidate(scaling, *nothing) for scaling in scalings])
            if kernel == "auto":
                scalings = (max(tried, key=_log_evidence_of)[0].standardiser,)
        if kernel != "linear" or not tried:
            # far out, a Gaussian kernel is linear: that is how "linear" reaches beyond
            # _LINEAR_COLUMNS
            lengths = (10.0,) if kernel == "linear" else _LENGTHS
            tried += fitted(
                [_landmark_candidate(s, landmarks, length) for s in scalings for length in lengths]
            )
        candidate, posterior = max(tried, key=_log_evidence_of)
        return candidate, Posterior(
            posterior.coef,
            posterior.intercept + centre,
            posterior.log_evidence,
            posterior.signal,
            posterior.misfit,
        )

    def _keep_model(self, candidate: _Candidate, posterior: Posterior) -> None:
        self.kernel_ = "gaussian" if len(candidate.landmarks) else "linear"
        self.mean_, self.scale_ = candidate.standardiser.mean, candidate.standardiser.scale
        self.landmarks_, self.length_ = candidate.landmarks, candidate.length
        self.root_ = candidate.root
        self.coef_, self.intercept_ = posterior.coef, posterior.intercept
        self.log_evidence_ = posterior.log_evidence
        self.signal_, self.misfit_ = math.sqrt(posterior.signal), math.sqrt(posterior.misfit)

    def predict_shares(self, X: ArrayLike) -> FloatArray:
        """Return the estimated share of teachers behind each class, shape (n_points, n_classes).

        Posterior means, not clipped: they may stray a little below 0 or above 1.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        model = _Candidate(
            Standardiser(self.mean_, self.scale_), self.landmarks_, self.length_, self.root_
        )
        parts = [features @ self.coef_ + self.intercept_ for _, features in model.blocks(X)]
        shares = np.vstack(parts)
        return np.hstack([1.0 - shares, shares]) if shares.shape[1] == 1 else shares


def _log_evidence_of(fit: tuple[_Candidate, Posterior]) -> float:
    return fit[1].log_evidence


def _landmark_candidate(
    standardiser: Standardiser, landmarks: FloatArray, length: float
) -> _Candidate:
    points = standardiser.apply(landmarks)
    scaled = length * median_distance(points)
    return _Candidate(standardiser, points, scaled, landmark_root(points, scaled))
