"""What a mechanism makes of votes: answers drawn by the mechanism of a run, under seeded noise.

Votes here are simulated (`VoteSample`), from those of teachers on shards of public rows; no
private data are read.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from secretballot._typing import FloatArray, IntArray
from secretballot.accounting.recipes import Terms
from secretballot.core.mechanisms import State, plurality
from secretballot.released import labels_in

# The part of the variance of shares that lies between points; the ends stand for points that are
# all alike, and for points on which all teachers agree.
_LEAST_PART, _MOST_PART = 1e-3, 1 - 1e-3


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


def drawn_votes(
    n_teachers: int, counts: IntArray, truth: IntArray, rng: np.random.Generator
) -> IntArray:
    """Draw votes of K teachers on disjoint shards.

    Parameters
    ----------
    n_teachers : int
        K.
    counts : ndarray of int64, shape (n_points, n_classes)
        Votes of some teachers.
    truth : ndarray of int64, shape (n_points,)
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of int64, shape (n_points, n_classes)
        Every row sums to K.

    Notes
    -----
    Teachers on disjoint shards vote independently at a point, each by the point's own shares. The
    shares are drawn from their posterior: multinomial votes, and for the points of each true class
    a Dirichlet prior whose mean and spread are read off the counts. (The counted shares themselves
    spread too widely: those of R teachers already stray by the sampling of R votes, and votes drawn
    by them stray once more.)
    """
    prior = np.empty(counts.shape)
    for label in np.unique(truth):
        here = truth == label
        prior[here] = _moment_fit(counts[here])
    shares = _rows_summing_to_one(rng.standard_gamma(prior + counts))
    return np.asarray(rng.multinomial(n_teachers, shares), dtype=np.int64)


def _rows_summing_to_one(weights: FloatArray) -> FloatArray:
    totals = weights.sum(axis=1, keepdims=True)
    # gamma draws of tiny shapes may all be 0; then nothing is known of the point, and any class is
    # as good
    return np.asarray(
        np.where(totals > 0, weights / np.where(totals > 0, totals, 1.0), 1.0 / weights.shape[1])
    )


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


class SeededNoise:
    """Draw noise for simulated runs from a seed; it protects nothing.

    It has the methods and the distributions of `core.types.Noise`, so that a simulated run goes
    through the very mechanisms of a real one. Whoever knows the seed can subtract every draw: it
    may be added to simulated votes, which are public, and to nothing else. Planning cannot import
    what releases, so what is drawn here never reaches a release; nor does it say what a certificate
    states of noise.

    Parameters
    ----------
    rng : numpy.random.Generator
        Public randomness.

    Notes
    -----
    A discrete Laplace draw is the difference of two geometric ones. A discrete Gaussian draw is a
    discrete Laplace draw y of scale t = floor(sigma) + 1, kept with probability exp(-(|y| - sigma^2
    / t)^2 / (2 sigma^2)) (Canonne, Kamath, Steinke 2020, Algorithm 3), in floating point.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def discrete_laplace(self, scale: float, size: int) -> IntArray:
        """Draw `size` integers with P(x) proportional to exp(-|x| / scale)."""
        stop = -np.expm1(-1.0 / scale)
        first, second = (self._rng.geometric(stop, size) for _ in range(2))
        return np.asarray(first - second, dtype=np.int64)

    def discrete_gaussian(self, sigma: float, size: int) -> IntArray:
        """Draw `size` integers with P(x) proportional to exp(-x^2 / (2 sigma^2))."""
        # places that were refused draw again, so that each keeps its first accepted offer
        drawn = np.empty(size, dtype=np.int64)
        waiting = np.arange(size)
        scale = np.floor(sigma) + 1.0
        while len(waiting):
            offered = self.discrete_laplace(scale, len(waiting))
            distance = np.abs(offered) - sigma**2 / scale
            kept = self._rng.random(len(waiting)) < np.exp(-(distance**2) / (2 * sigma**2))
            drawn[waiting[kept]] = offered[kept]
            waiting = waiting[~kept]
        return drawn

    def uniform_integers(self, bits: int, size: int) -> IntArray:
        """Draw `size` integers, uniform on 0, ..., 2^bits - 1."""
        return self._rng.integers(2**bits, size=size, dtype=np.int64)


COUNTS = 20_000  # that are noised for a forecast where every query is answered by itself
LEAST_POINTS = 200
STREAMS = 8  # drawn of a mechanism that stops at some number of answers


@dataclass(frozen=True)
class Forecast:
    """What one setting should lead to on one sample of votes.

    Attributes
    ----------
    answered : float
        Queries that get an answer, on average.
    vote_accuracy : float
        Share of points whose exact plurality is the true class.
    label_accuracy : float
        Share of released labels that are the true class; of noisy counts, of the labels read off
        them.
    information : float
        Labels without noise that would tell a student about as much: each released value counts by
        its squared correlation with the truth. Good for ranking settings, not for predicting
        students.
    """

    answered: float
    vote_accuracy: float
    label_accuracy: float
    information: float


def forecast(sample: VoteSample, terms: Terms, seed: int = 0) -> Forecast:
    """Return what a mechanism makes of votes like these, asked about points among them at random.

    Parameters
    ----------
    sample : VoteSample
    terms : Terms
    seed : int
        Of points and noise.
    """
    rng = np.random.default_rng(seed)
    noise: Any = SeededNoise(rng)
    mechanism, shape = terms.mechanism, terms.shape
    stops = mechanism.stops_at is not None
    n_points = shape.n_queries
    if not stops:  # so many points that chance hardly matters
        n_points = max(LEAST_POINTS, COUNTS // shape.n_classes)
    given, right = 0, 0
    told_by_counts = None
    for _ in range(STREAMS if stops else 1):
        rows = queries_at_random(rng, len(sample.truth), n_points)
        votes = sample.counts[rows]
        drawn = answers(terms, votes, noise)
        labels, counts = labels_in(mechanism, shape, drawn)
        truth = sample.truth[rows[: len(labels)]]
        given += int((labels >= 0).sum())
        right += int((labels == truth).sum())
        if counts is not None:
            told_by_counts = _told_by_counts(counts, truth, sample.n_teachers)
    asked = n_points * (STREAMS if stops else 1)
    answered, vote = shape.n_queries * given / asked, vote_accuracy(sample)
    accuracy = right / given if given else vote
    useful = _told_by_label(accuracy, shape.n_classes) if told_by_counts is None else told_by_counts
    return Forecast(answered, vote, accuracy, answered * useful)


def answers(terms: Terms, votes: IntArray, noise: Any) -> IntArray:
    """Return what a mechanism answers to votes of shape (n_queries, n_classes), one row each, up to
    where it stops."""
    drawn, _ = terms.mechanism.draw(terms.shape, (votes, np.zeros_like(votes)), noise, State())
    return drawn


def queries_at_random(rng: np.random.Generator, n_points: int, n_queries: int) -> IntArray:
    """Return places of points that are asked: all equally often, but for one more here and there,
    as real queries are all at distinct points."""
    turns = -(-n_queries // n_points)
    return np.concatenate([rng.permutation(n_points) for _ in range(turns)])[:n_queries]


def vote_accuracy(sample: VoteSample) -> float:
    """Return the share of points whose plurality, without noise, is the true class."""
    return float(np.mean(plurality(sample.counts) == sample.truth))


def _told_by_label(accuracy: float, n_classes: int) -> float:
    """Return (1 - eta C / (C - 1))^2, eta the share of wrong labels: 1 for the truth, 0 for a
    guess."""
    return max(0.0, (accuracy - 1 / n_classes) / (1 - 1 / n_classes)) ** 2


def _told_by_counts(counts: IntArray, truth: IntArray, n_teachers: int) -> float:
    """Return the squared correlation of the true class's noisy lead over the mean of the others
    with the truth."""
    lead: FloatArray
    if counts.ndim == 1:  # of two classes the votes for class 1 alone
        lead = np.where(truth == 1, 1.0, -1.0) * (2.0 * counts - n_teachers)
    else:
        own = counts[np.arange(len(truth)), truth].astype(np.float64)
        lead = own - (counts.sum(axis=1) - own) / (counts.shape[1] - 1)
    return max(0.0, float(lead.mean())) ** 2 / max(1e-300, float(np.mean(lead**2)))
