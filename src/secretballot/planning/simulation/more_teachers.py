"""From the counted votes of some teachers to votes of any number of teachers of the same kind."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from secretballot._typing import FloatArray, IntArray
from secretballot._validation import check_count
from secretballot.planning.simulation.shard_votes import ShardVotes

# The part of the variance of shares that lies between points; the ends stand for points that are
# all alike, and for points on which all teachers agree.
_LEAST_PART, _MOST_PART = 1e-3, 1 - 1e-3
# of a normal distribution; a share nearer to 0 or 1 than its tail is taken for the tail
_LARGEST_SCORE = 6.0
_STEEPEST = 8.0  # how much more, or less, shares may be drawn apart than they were counted
_FEWEST_POINTS = 10  # of a class whose shares are drawn together or apart


@dataclass(frozen=True, eq=False)
class VoteSample:
    """Simulated votes of K teachers of one shard size on points like the public ones; no secret.

    Attributes
    ----------
    n_teachers : int
        K.
    counts : ndarray of int64, shape (n_points, n_classes)
        Votes; every row sums to K.
    truth : ndarray of int64, shape (n_points,)
        Index of the true class of each point, the label that a record there would carry.
    """

    n_teachers: int
    counts: IntArray
    truth: IntArray


def drawn_votes(n_teachers: int, counted: ShardVotes, rng: np.random.Generator) -> IntArray:
    """Draw votes of K teachers on disjoint shards.

    Parameters
    ----------
    n_teachers : int
        K.
    counted : ShardVotes
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of int64, shape (n_points, n_classes)
        Every row sums to K.

    Raises
    ------
    ParameterError
        If K is no integer of at least 1.

    Notes
    -----
    Teachers on disjoint shards vote independently at a point, each by the point's own shares. The
    shares are drawn from their posterior: multinomial votes, and for the points of each true class
    a Dirichlet prior whose mean and spread are read off the counts. (The counted shares themselves
    spread too widely: those of R teachers already stray by the sampling of R votes, and votes drawn
    by them stray once more.) Then the share p of right votes becomes Phi(a + b Phi^-1(p)), the
    others in proportion, with a and b for each class such that the mean of p and of p^2 are the
    rates at which one teacher, and two teachers with disjoint shards, were right: that takes out
    what teachers with common rows agree too much.
    """
    K = check_count("n_teachers", n_teachers)
    weights = rng.standard_gamma(_prior_votes(counted.counts, counted.truth) + counted.counts)
    shares = _rows_summing_to_one(weights)
    for label in np.unique(counted.truth):
        here = np.flatnonzero(counted.truth == label)
        # moments of a few points are mostly chance, and correcting by them would do harm
        if len(here) >= _FEWEST_POINTS:
            moments = float(counted.right[label]), float(counted.both_right[label])
            shares[here] = _with_right_share(
                shares[here], label, _with_moments(shares[here, label], *moments)
            )
    return np.asarray(rng.multinomial(K, shares), dtype=np.int64)


def _rows_summing_to_one(weights: FloatArray) -> FloatArray:
    totals = weights.sum(axis=1, keepdims=True)
    # gamma draws of tiny shapes may all be 0; then nothing is known of the point, and any class is
    # as good
    return np.asarray(
        np.where(totals > 0, weights / np.where(totals > 0, totals, 1.0), 1.0 / weights.shape[1])
    )


def _prior_votes(counts: IntArray, truth: IntArray) -> FloatArray:
    """Return the weights of each point's Dirichlet prior, in votes, shape (n_points, n_classes)."""
    prior = np.empty(counts.shape)
    for label in np.unique(truth):
        here = truth == label
        prior[here] = _moment_fit(counts[here])
    return prior


def _moment_fit(counts: IntArray) -> FloatArray:
    """Return the Dirichlet weights with the mean and the spread of the shares, shape (n_classes,).

    With mean shares m and S = 1 - sum m^2, shares of a Dirichlet of total weight a have the summed
    variance S b where b = 1 / (a + 1), and the shares of R votes have S (b + (1 - b) / R).
    """
    seen = counts[counts.sum(axis=1) > 0]
    if not len(seen):
        return np.ones(counts.shape[1])
    totals = seen.sum(axis=1, keepdims=True)
    shares = seen / totals
    mean = shares.mean(axis=0)
    spread = 1.0 - float(mean @ mean)
    by_sampling = float((1.0 / totals).mean())
    if not spread > 0 or not by_sampling < 1:
        return np.asarray(mean)
    # what sampling alone spreads is no difference between points
    between = (float(shares.var(axis=0).sum()) / spread - by_sampling) / (1.0 - by_sampling)
    between = min(max(between, _LEAST_PART), _MOST_PART)
    return np.asarray(mean * (1.0 / between - 1.0))


def _with_moments(shares: FloatArray, first: float, second: float) -> FloatArray:
    """Return Phi(a + b Phi^-1(shares)) whose mean is `first` and whose mean square is `second`.

    Shares stay as they are where no such a and b exist: the moments are unknown, or all points are
    alike.
    """
    if not first**2 < second < first < 1 or not np.ptp(shares) > 0:
        return shares
    scores = np.clip(ndtri(shares), -_LARGEST_SCORE, _LARGEST_SCORE)

    def moved(steepness: float) -> FloatArray:
        spread = steepness * scores
        reach = float(np.abs(spread).max()) + _LARGEST_SCORE
        shift = brentq(lambda a: float(ndtr(a + spread).mean()) - first, -reach, reach, xtol=1e-6)
        return np.asarray(ndtr(shift + spread))

    def excess(log_steepness: float) -> float:
        return float(np.square(moved(np.exp(log_steepness))).mean()) - second

    # the mean square grows with the steepness; where even the ends do not reach it, they must do
    ends = -np.log(_STEEPEST), np.log(_STEEPEST)
    if excess(ends[0]) > 0:
        return moved(np.exp(ends[0]))
    if excess(ends[1]) < 0:
        return moved(np.exp(ends[1]))
    return moved(np.exp(brentq(excess, *ends, xtol=1e-4)))


def _with_right_share(shares: FloatArray, label: int, right: FloatArray) -> FloatArray:
    """Return shares with another one for a class, the others in proportion."""
    rest = 1.0 - shares[:, label]
    scale = np.where(rest > 0, (1.0 - right) / np.where(rest > 0, rest, 1.0), 0.0)
    moved = shares * scale[:, None]
    moved[:, label] = 0.0
    moved[:, label] = 1.0 - moved.sum(axis=1)
    return np.asarray(np.clip(moved, 0.0, 1.0))
