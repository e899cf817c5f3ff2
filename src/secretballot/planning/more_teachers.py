"""From the votes of some teachers to the votes of more, or of fewer, of the same kind."""

import numpy as np
from numpy.typing import NDArray

from secretballot._validation import check_count

__all__ = ["votes_of"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# The share of the variance of votes that lies between points; the ends stand for points that are all alike, and for
# points on which all teachers agree.
_LEAST_SHARE, _MOST_SHARE = 1e-3, 1 - 1e-3


def votes_of(n_teachers: int, counts: IntArray, truth: IntArray, rng: np.random.Generator) -> IntArray:
    """Return votes of K teachers, drawn given the votes of other teachers that were counted.

    Parameters
    ----------
    n_teachers : int
        K.
    counts : ndarray of int64, shape (n_points, n_classes)
        Votes that were counted; rows may differ in their sum, which may be 0.
    truth : ndarray of int64, shape (n_points,)
        True class of each point.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of int64, shape (n_points, n_classes)
        Every row sums to K.

    Raises
    ------
    ParameterError
        If K is no whole number of at least 1.

    Notes
    -----
    Where more than K were counted, K of them are drawn. Where fewer were, the missing ones vote by shares drawn from
    the posterior of the point's own: multinomial votes, and for the points of each class a Dirichlet prior whose mean
    and spread are read off the counts. Votes drawn by the counted shares themselves would spread too widely: the shares
    of R teachers already stray by the coin of R votes, and K votes would stray by that much more.
    """
    K = check_count("n_teachers", n_teachers)
    counted = counts.sum(axis=1)
    kept = _drawn_from(counts, np.minimum(counted, K), rng)
    if (counted >= K).all():
        return kept
    weights = rng.standard_gamma(_prior_votes(counts, truth) + counts)
    return np.asarray(kept + rng.multinomial(K - np.minimum(counted, K), _normalised(weights)), dtype=np.int64)


def _drawn_from(counts: IntArray, sizes: IntArray, rng: np.random.Generator) -> IntArray:
    """Return votes of `sizes` of the counted teachers at each point, drawn without replacement."""
    drawn = np.zeros_like(counts)
    left, open_ = counts.sum(axis=1), sizes.copy()
    for place in range(counts.shape[1]):
        left = left - counts[:, place]
        drawn[:, place] = rng.hypergeometric(counts[:, place], left, open_)
        open_ = open_ - drawn[:, place]
    return drawn


def _normalised(weights: FloatArray) -> FloatArray:
    totals = weights.sum(axis=1, keepdims=True)
    # gamma draws of tiny shapes may all be 0; then nothing is known of the point, and any class is as good
    return np.asarray(np.where(totals > 0, weights / np.where(totals > 0, totals, 1.0), 1.0 / weights.shape[1]))


def _prior_votes(counts: IntArray, truth: IntArray) -> FloatArray:
    """Return the weights of each point's Dirichlet prior, in votes, shape (n_points, n_classes)."""
    prior = np.empty(counts.shape)
    for label in np.unique(truth):
        here = truth == label
        prior[here] = _moment_fit(counts[here])
    return prior


def _moment_fit(counts: IntArray) -> FloatArray:
    """Return the Dirichlet weights with the mean and the spread of the shares, shape (n_classes,).

    With mean shares m and S = 1 - sum m^2, shares of a Dirichlet of total weight a have the summed variance S b where
    b = 1 / (a + 1), and the shares of R votes have S (b + (1 - b) / R).
    """
    seen = counts[counts.sum(axis=1) > 0]
    if not len(seen):
        return np.ones(counts.shape[1])
    totals = seen.sum(axis=1, keepdims=True)
    shares = seen / totals
    mean = shares.mean(axis=0)
    spread = 1.0 - float(mean @ mean)
    by_coin = float((1.0 / totals).mean())
    if not spread > 0 or not by_coin < 1:
        return np.asarray(mean)
    between = (float(shares.var(axis=0).sum()) / spread - by_coin) / (1.0 - by_coin)
    between = min(max(between, _LEAST_SHARE), _MOST_SHARE)
    return np.asarray(mean * (1.0 / between - 1.0))
