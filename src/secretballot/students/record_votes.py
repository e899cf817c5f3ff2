"""The student of votes that records cast for themselves, at the public points nearest to them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from secretballot._points import NearestPoints
from secretballot._typing import FloatArray, IntArray
from secretballot._validation import check_count, check_positive
from secretballot.bases import TableBasis, unfitted_basis
from secretballot.exceptions import DataError
from secretballot.students.noisy_counts import checked_counts, class_array

# Prior variance of the log-odds of two classes, over the public points.
_SIGNAL = 2.0
# Prior variance of the intercepts, in squared nats; rare classes need it wide.
_INTERCEPT_VARIANCE = 25.0
# Mean of p (1 - p), assumed; votes of one record go together, so their sampling noise does too.
_SPREAD = 0.12
# How far the records may be denser or thinner at a point than the public points are: a relative
# standard deviation, assumed.
_SKEW = 0.5
_LEAST_TOTAL = 0.05  # of the mean number of votes, at any point
_STEPS = 300


# scikit-learn ships no types
@dataclass(eq=False, repr=False)
class RecordVotesStudent(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Learn class probabilities from noisy counts of the votes of records.

    A record votes at its nearest public points, so the counts at a point are those of all records
    nearby, and a point in a crowd gets more votes than another. Public points stand for the
    records: those that would vote at a point say how many votes to expect there, which the released
    counts correct, and the mean of their class probabilities is the share that each class should
    have of these votes. The probabilities are a log-linear function of the coordinates, fitted to
    the counts by penalised least squares, with the known noise and a fixed prior variance: there is
    nothing to tune. Rows of the counts need not sum to anything.

    Parameters
    ----------
    basis : basis of `secretballot.bases`, or a name of one, optional
        Coordinates by which points were compared, and on which the model is linear; a copy is
        fitted on the public points. By default a `TableBasis` that rotates and does not whiten.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    basis_ : the fitted basis
    coef_ : ndarray of shape (n_classes, n_coordinates)
    intercept_ : ndarray of shape (n_classes,)
    votes_per_point_ : float
        Estimated mean number of votes at a public point.
    n_features_in_ : int

    Examples
    --------
    >>> points = np.linspace(-1, 1, 50).reshape(-1, 1)
    >>> noisy_counts = np.where(points > 0, [[4, 40]], [[40, 4]])
    >>> student = sb.RecordVotesStudent()
    >>> student = student.fit(points, noisy_counts, sigma=5.0, votes_per_record=3)
    >>> student.predict([[-0.8], [0.8]]).tolist()
    [0, 1]
    """

    basis: Any = None

    def fit(
        self,
        X: Any,
        noisy_counts: ArrayLike,
        *,
        sigma: float,
        votes_per_record: int,
        classes: Sequence[Any] | NDArray[Any] | None = None,
        pool: Any = None,
    ) -> Self:
        """Fit the rates of all classes.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_points, n_features)
            The public points that took votes.
        noisy_counts : array of shape (n_points, n_classes)
            Released counts, in votes.
        sigma : float
            Standard deviation of the noise on each count, in votes.
        votes_per_record : int
        classes : sequence, optional
            Class values in the order of the counts; 0, 1, ... by default.
        pool : like X, of shape (n_public, n_features), optional
            The whole public pool, which the basis is fitted on; by default `X`.

        Raises
        ------
        DataError
            If the arrays do not fit together.
        ParameterError
            If a parameter is out of its range.
        """
        noise = check_positive("sigma", sigma)
        counts = checked_counts(noisy_counts, np.shape(X)[0])
        if counts.ndim == 1:
            raise DataError("noisy_counts has one column; give one count for each class.")
        k = check_count("votes_per_record", votes_per_record)
        self.classes_ = class_array(classes, counts.shape[1])
        self.basis_ = fitted_basis(self.basis, X if pool is None else pool)
        coordinates = self.basis_.integers(X)
        self.n_features_in_ = np.shape(X)[1]
        features, self._unit = _scaled_features(coordinates)
        mean = counts.sum() / len(counts)
        # a mean that the noise drowns is taken for as large as the noise of the mean
        self.votes_per_point_ = float(max(mean, noise * np.sqrt(counts.shape[1] / len(counts))))
        voted = _voted_points(coordinates, k)
        weights = _fitted_weights(
            features,
            voted,
            counts,
            _estimated_totals(voted, counts, noise, self.votes_per_point_, k),
            noise**2 + _SPREAD * k * self.votes_per_point_,
        )
        # copies: a part of an array lies otherwise once restored
        self.coef_, self.intercept_ = weights[:, :-1].copy(), weights[:, -1].copy()
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Return class probabilities, shape (n_points, n_classes)."""
        check_is_fitted(self, "coef_")
        features = self.basis_.integers(X) / self._unit
        return np.asarray(softmax(features @ self.coef_.T + self.intercept_, axis=1))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class, the first on a tie, shape (n_points,)."""
        winners = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[winners])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags


def fitted_basis(basis: Any, X_public: Any) -> Any:
    """Return a copy of a basis, or the one of a name, fitted on public points of shape (n_public,
    n_features)."""
    # rotated only: whitening, which serves a linear model, makes neighbours of points that differ
    # in what matters
    chosen = TableBasis(whitening=0.0) if basis is None else unfitted_basis(basis, X_public)
    return chosen.fit(X_public)


def _scaled_features(coordinates: IntArray) -> tuple[FloatArray, float]:
    """Return coordinates of a root mean square length of one about their mean, and their unit."""
    values = coordinates.astype(np.float64)
    spread = float(np.sqrt(((values - values.mean(axis=0)) ** 2).sum(axis=1).mean()))
    unit = spread if spread > 0 else 1.0
    return values / unit, unit


def _voted_points(coordinates: IntArray, k: int) -> Any:
    """Return, as a sparse matrix, at which points a record at each point would vote.

    The point itself is left out: a record is near to it by chance alone.
    """
    n = len(coordinates)
    own = np.arange(n) if k < n else None
    voted = NearestPoints(coordinates, k).of(coordinates, without=own)
    rows = np.repeat(np.arange(n), k)
    return sparse.csr_array((np.ones(n * k), (rows, voted.ravel())), shape=(n, n))


def _estimated_totals(
    voted: Any, counts: FloatArray, noise: float, votes_per_point: float, k: int
) -> FloatArray:
    """Return how many votes each point got, by the released counts and by what the public points
    let expect: the mean of both, each weighed by how well it is known."""
    voters = np.asarray(voted.sum(axis=0)).ravel()
    each = votes_per_point / k  # records that a public point stands for
    expected = each * voters
    uncertain = each**2 * (voters + 1) + (_SKEW * expected) ** 2
    noisy = counts.shape[1] * noise**2
    totals = (expected / uncertain + counts.sum(axis=1) / noisy) / (1 / uncertain + 1 / noisy)
    return np.asarray(np.maximum(totals, _LEAST_TOTAL * votes_per_point))


def _fitted_weights(
    features: FloatArray, voted: Any, counts: FloatArray, totals: FloatArray, variance: float
) -> FloatArray:
    """Return the weights of each class, shape (n_classes, n_coordinates + 1), intercepts last.

    Minimised are the squared distance of the counts from what the probabilities let expect, in
    units of their variance, and the squares of the weights, in units of theirs.
    """
    n, n_classes = counts.shape
    design = np.column_stack([features, np.ones(n)])
    # a point's shares are the mean over those that would vote there, and itself
    company = sparse.csr_array(voted.T) + sparse.eye_array(n, format="csr")
    weight = 1 / np.asarray(company.sum(axis=1)).ravel()
    shares = sparse.csr_array(sparse.diags_array(weight) @ company)
    spread = sparse.csr_array(shares.T)
    total = totals[:, None]
    # the mean over a few is off by as much as these few differ
    uncertain = variance + _SPREAD * total**2 * weight[:, None]
    penalty = np.full(design.shape[1], 2 / _SIGNAL)
    penalty[-1] = 1 / _INTERCEPT_VARIANCE

    def loss(flat: FloatArray) -> tuple[float, FloatArray]:
        weights = flat.reshape(n_classes, -1)
        chances = softmax(design @ weights.T, axis=1)
        missed = total * (shares @ chances) - counts
        pull = np.asarray(spread @ (missed * total / uncertain))
        slope = chances * (pull - (chances * pull).sum(axis=1, keepdims=True))
        value = (missed**2 / uncertain).sum() + (penalty * weights**2).sum()
        return float(value) / 2, (slope.T @ design + penalty * weights).ravel()

    found = minimize(
        loss,
        np.zeros(n_classes * design.shape[1]),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": _STEPS, "maxcor": 20},
    )
    fitted: FloatArray = found.x.reshape(n_classes, -1)
    return fitted
