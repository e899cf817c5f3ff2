"""What a mechanism makes of votes: answers drawn by the mechanism of a run, under seeded noise.

Votes here are simulated (`VoteSample`); no private data are read.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from secretballot._typing import FloatArray, IntArray
from secretballot.accounting.recipes import Terms
from secretballot.core.mechanisms import State, plurality
from secretballot.planning.simulation.more_teachers import VoteSample
from secretballot.planning.simulation.seeded_noise import SeededNoise
from secretballot.released import labels_in

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
