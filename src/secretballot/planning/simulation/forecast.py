"""What noise does to votes, computed from its distribution: answers, right labels, information.

Votes here are simulated (`VoteSample`); no private data are read.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from secretballot._typing import FloatArray, IntArray
from secretballot._validation import (
    RELEASES,
    check_choice,
    check_count,
    check_finite,
    check_positive,
    shown,
)
from secretballot.accounting import Stream
from secretballot.accounting.recipes import Terms, kept_chances, laplace_cdf, laplace_deviation
from secretballot.core.losses import discrete_gaussian_pmf
from secretballot.core.mechanisms import (
    AbstentionTable,
    ConfidentLabels,
    NoisyVotes,
    SparseVector,
    TableLabels,
    plurality,
    stability,
)
from secretballot.core.types import VoteShape
from secretballot.exceptions import Parameter, ParameterError
from secretballot.planning.simulation.stream_forecast import expected_stream
from secretballot.planning.simulation.votes import VoteSample
from secretballot.students.confirmed import predicted_votes

NODES = 48  # of the quadrature over the noise of the true class
LAPLACE_NODES = 200
NINE_IN_TEN = 1.645  # deviations
FIRST_ROUND = 0.05  # of the queries, which are asked before there is a student
BLOCK = 2_000_000  # numbers held at once by the quadrature
LATTICE_SIGMA = 2000.0
ROUGH_POINTS = 600
ROUGH_STEPS = np.arange(-7.0, 7.5, 0.5)  # log2 of sigma / K


@dataclass(frozen=True)
class Forecast:
    """What one setting should lead to on one sample of votes.

    Attributes
    ----------
    answered, answered_low, answered_high : float
        Queries that get an answer: expectation, and the range of nine runs of ten.
    vote_accuracy : float
        Share of points whose exact plurality is the true class.
    label_accuracy : float
        Expected share of released labels that are the true class; of noisy counts, of the labels
        read off them.
    information : float
        Labels without noise that would tell a student about as much: each released value counts by
        its squared correlation with the truth. Good for ranking settings, not for predicting
        students.
    """

    answered: float
    answered_low: float
    answered_high: float
    vote_accuracy: float
    label_accuracy: float
    information: float


def forecast(sample: VoteSample, terms: Terms) -> Forecast:
    """Return what a mechanism should make of votes like these, asked about points among them.

    Raises
    ------
    ParameterError
        If it is interactive or another one without a forecast, or is for another number of classes.
    """
    mechanism, shape = terms.mechanism, terms.shape
    if shape.n_classes != sample.counts.shape[1]:
        raise ParameterError(
            f"the mechanism is for {shape.n_classes} classes and the votes are on"
            f" {sample.counts.shape[1]}; calibrate it for as many."
        )
    if terms.confidence is not None:
        raise ParameterError(
            Parameter("mechanism"),
            " is interactive, and how many answers it gives depends on the student that it"
            " contradicts; simulate a run, or say how often that student agrees with the votes"
            " (forecast_interactive).",
        )
    if isinstance(mechanism, TableLabels):
        return forecast_table(sample, mechanism, shape)
    if isinstance(mechanism, NoisyVotes):
        find = forecast_laplace if mechanism.noise == "laplace" else forecast_gaussian
        return find(sample, mechanism.scale, shape.n_queries, mechanism.release)
    if isinstance(mechanism, ConfidentLabels):
        tops = sample.counts.max(axis=1)
        return _thresholded_forecast(sample, terms, _passing_chances(tops, terms))
    if isinstance(mechanism, SparseVector | AbstentionTable):
        return forecast_stream(sample, mechanism.stream_event(), shape.n_queries)
    raise ParameterError(
        Parameter("mechanism"),
        f" draws by {type(mechanism).__name__}; forecasts are for Gaussian, Laplace and confident"
        " voting, tables of chances, sparse vectors and tables of abstentions.",
    )


def forecast_gaussian(sample: VoteSample, sigma: float, n_queries: int, release: str) -> Forecast:
    """Return what Gaussian voting should make of votes like these: every query is answered.

    Parameters
    ----------
    sample : VoteSample
    sigma : float
        Noise on a count, in votes.
    n_queries : int
    release : {"labels", "counts"}
    """
    queries, kind = check_count("n_queries", n_queries), check_choice("release", release, RELEASES)
    right = float(right_chances(sample, sigma).mean())
    information = (
        _count_information(sample, sigma)
        if kind == "counts"
        else _label_information(right, sample.counts.shape[1])
    )
    return Forecast(queries, queries, queries, vote_accuracy(sample), right, queries * information)


def forecast_table(sample: VoteSample, mechanism: TableLabels, shape: VoteShape) -> Forecast:
    """Return what labels drawn from a table of chances should be: every query is answered.

    Exact, also for the rule for ties.

    Raises
    ------
    ParameterError
        If the table is for another number of teachers.
    """
    if shape.n_teachers != sample.n_teachers:
        raise ParameterError(
            f"the table is for {shape.n_teachers} teachers and the votes are of"
            f" {sample.n_teachers}; calibrate it for as many."
        )
    kept = kept_chances(mechanism, sample.counts[:, 1] - sample.counts[:, 0])
    chances = np.where(plurality(sample.counts) == sample.truth, kept, 1 - kept)
    right, queries = float(chances.mean()), shape.n_queries
    return Forecast(
        queries,
        queries,
        queries,
        vote_accuracy(sample),
        right,
        queries * _label_information(right, 2),
    )


def forecast_laplace(sample: VoteSample, scale: float, n_queries: int, release: str) -> Forecast:
    """Return what Laplace voting should make of votes like these: every query is answered.

    Parameters
    ----------
    sample : VoteSample
    scale : float
        Of the noise on a count, in votes.
    n_queries : int
    release : {"labels", "counts"}
    """
    queries, kind = check_count("n_queries", n_queries), check_choice("release", release, RELEASES)
    right = float(laplace_right_chances(sample, scale).mean())
    information = (
        _count_information(sample, laplace_deviation(scale))
        if kind == "counts"
        else _label_information(right, sample.counts.shape[1])
    )
    return Forecast(queries, queries, queries, vote_accuracy(sample), right, queries * information)


def forecast_interactive(sample: VoteSample, terms: Terms, agreement: float) -> Forecast:
    """Return about what interactive voting should make of votes like these; good for ranking.

    The student's likeliest class is taken for the plurality on a share `agreement` of the points
    and for the runner-up elsewhere, at random; it is taken to be as sure as it is right, so that it
    gives that class the probability `agreement`, and the rest to the others evenly. In the first
    round there is no student. Only answers count as information, not what is confirmed.

    Parameters
    ----------
    sample : VoteSample
    terms : Terms
        Of confident labels.
    agreement : float
        Share of points on which the student says what most teachers say, from 1 / C to 1.

    Raises
    ------
    ParameterError
        If `agreement` is out of its range.
    """
    n_points, classes = sample.counts.shape
    share = check_finite("agreement", agreement)
    if not 1 / classes <= share <= 1:
        raise ParameterError(
            Parameter("agreement"),
            f" is {shown(agreement)}; with {classes} classes a student agrees with the votes on a"
            f" share of {1 / classes:.3g} to 1.",
        )
    ranked = np.argsort(sample.counts, axis=1, kind="stable")
    predicted = np.full((2, n_points, classes), (1 - share) / (classes - 1))
    # the plurality's class for a student that agrees, else the runner-up's
    for says, rank in enumerate((-1, -2)):
        predicted[says, np.arange(n_points), ranked[:, rank]] = share
    agrees, errs = (
        _passing_chances(
            (sample.counts - predicted_votes(one, one.shape, sample.n_teachers)).max(axis=1),
            terms,
        )
        for one in predicted
    )
    alone = _passing_chances(sample.counts.max(axis=1), terms)
    later = share * agrees + (1 - share) * errs
    return _thresholded_forecast(sample, terms, FIRST_ROUND * alone + (1 - FIRST_ROUND) * later)


def _passing_chances(votes: IntArray, terms: Terms) -> FloatArray:
    """Return the chance that these numbers of votes reach the threshold under its noise."""
    mechanism = terms.mechanism
    assert isinstance(mechanism, ConfidentLabels)
    return np.asarray(ndtr((votes - mechanism.threshold + 0.5) / mechanism.threshold_sigma))


def _thresholded_forecast(sample: VoteSample, terms: Terms, passing: FloatArray) -> Forecast:
    """Return the forecast where each point is answered with its chance, up to the last answer; how
    many pass is binomial, and the normal distribution stands in for it."""
    mechanism = terms.mechanism
    assert isinstance(mechanism, ConfidentLabels)
    right = right_chances(sample, mechanism.sigma)
    queries, most = terms.shape.n_queries, float(mechanism.max_answers)
    mean = queries * float(passing.mean())
    spread = math.sqrt(max(1e-12, mean * (1 - float(passing.mean()))))
    # E min(N, most) for a normal N
    away = (most - mean) / spread
    density = math.exp(-away * away / 2) / math.sqrt(2 * math.pi)
    answered = most - spread * (away * float(ndtr(away)) + density)
    low, high = (min(most, max(0.0, mean + side * NINE_IN_TEN * spread)) for side in (-1, 1))
    answered = min(max(answered, low), high)
    accuracy = float(passing @ right) / max(1e-12, float(passing.sum()))
    information = _label_information(accuracy, sample.counts.shape[1])
    return Forecast(answered, low, high, vote_accuracy(sample), accuracy, answered * information)


def forecast_stream(sample: VoteSample, event: Stream, n_queries: int) -> Forecast:
    """Return what a sparse vector or a table of abstentions should make of votes like these.

    Answers are exact pluralities; points far from a tie are answered more often, and their labels
    are right more often.
    """
    right = (plurality(sample.counts) == sample.truth).astype(np.float64)
    expected = expected_stream(
        event, check_count("n_queries", n_queries), stability(sample.counts), right
    )
    accuracy = (
        expected.right / expected.answered if expected.answered > 1e-9 else float(right.mean())
    )
    information = _label_information(accuracy, sample.counts.shape[1])
    return Forecast(
        expected.answered,
        expected.low,
        expected.high,
        float(right.mean()),
        accuracy,
        expected.answered * information,
    )


def vote_accuracy(sample: VoteSample) -> float:
    """Return the share of points whose plurality, without noise, is the true class."""
    return float(np.mean(plurality(sample.counts) == sample.truth))


def right_chances(sample: VoteSample, sigma: float) -> FloatArray:
    """Return the chance that Gaussian voting releases the true class, shape (n_points,).

    Two classes: exact for the discrete distribution of the noise and its rule for ties. More: the
    continuous distribution stands in, by quadrature over the noise of the true class: E[prod_c
    Phi(z + (n_truth - n_c) / sigma)].
    """
    noise = check_positive("sigma", sigma)
    if sample.counts.shape[1] == 2:
        return _right_chances_of_two(sample, lambda need: _chance_at_least(need, noise))
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    weights = weights / math.sqrt(2 * math.pi)
    leads = _leads_of_truth(sample) / noise
    # in blocks: points times classes times nodes would not fit into memory
    step = max(1, BLOCK // (NODES * leads.shape[1]))
    blocks = [
        np.prod(ndtr(leads[i : i + step, :, None] + nodes), axis=1) @ weights
        for i in range(0, len(leads), step)
    ]
    return np.concatenate(blocks)


def laplace_right_chances(sample: VoteSample, scale: float) -> FloatArray:
    """Return the chance that Laplace voting releases the true class, shape (n_points,).

    Two classes: exact for the discrete distribution of the noise and its rule for ties. More: the
    continuous distribution stands in, at equally likely quantiles of the noise of the true class.
    """
    noise = check_positive("scale", scale)
    if sample.counts.shape[1] == 2:
        return _right_chances_of_two(sample, lambda need: _laplace_chance_at_least(need, noise))
    level = (np.arange(LAPLACE_NODES) + 0.5) / LAPLACE_NODES
    nodes = np.where(level < 0.5, np.log(2 * level), -np.log(2 * (1 - level)))
    leads = _leads_of_truth(sample) / noise
    step = max(1, BLOCK // (LAPLACE_NODES * leads.shape[1]))
    blocks = [
        np.prod(laplace_cdf(leads[i : i + step, :, None] + nodes), axis=1).mean(axis=1)
        for i in range(0, len(leads), step)
    ]
    return np.concatenate(blocks)


def _laplace_chance_at_least(need: IntArray, scale: float) -> FloatArray:
    """Return P(X >= need) for discrete Laplace X."""
    tail = np.exp(-np.maximum(need, 1 - need) / scale) / (1 + math.exp(-1 / scale))
    return np.where(need >= 1, tail, 1 - tail)


def _right_chances_of_two(
    sample: VoteSample, chance_at_least: Callable[[IntArray], FloatArray]
) -> FloatArray:
    """Return P(2 (n_1 + X) >= K) where the truth is class 1, else one less it."""
    votes, where = np.unique(sample.counts[:, 1], return_inverse=True)
    # the least noise that makes it half of the teachers
    need = -((2 * votes - sample.n_teachers) // 2)
    one = chance_at_least(need)[where]
    return np.asarray(np.where(sample.truth == 1, one, 1 - one))


def _chance_at_least(need: IntArray, sigma: float) -> FloatArray:
    """Return P(X >= need) for discrete Gaussian X, with an error below 1e-8."""
    # beyond, the table of probabilities grows long and the integral is as good
    if sigma > LATTICE_SIGMA:
        return np.asarray(ndtr(-(need - 0.5) / sigma))
    reach, pmf = discrete_gaussian_pmf(sigma)
    tail = np.append(np.cumsum(pmf[::-1])[::-1], 0.0)  # of -reach, -reach + 1, ..., reach + 1
    return np.asarray(np.minimum(tail[np.clip(need + reach, 0, len(pmf))], 1.0))


def _leads_of_truth(sample: VoteSample) -> FloatArray:
    """Return votes for the truth less those for each other class, shape (n_points, C - 1)."""
    n, classes = sample.counts.shape
    others = sample.counts[np.arange(classes) != sample.truth[:, None]].reshape(n, classes - 1)
    own = sample.counts[np.arange(n), sample.truth]
    return np.asarray(own[:, None] - others, dtype=np.float64)


def _label_information(accuracy: float, n_classes: int) -> float:
    """Return (1 - eta C / (C - 1))^2, eta the chance of a wrong label.

    1 for the truth, 0 for a guess.
    """
    return max(0.0, (accuracy - 1 / n_classes) / (1 - 1 / n_classes)) ** 2


def _count_information(sample: VoteSample, sigma: float) -> float:
    """Return the squared correlation of the true class's noisy lead with the truth.

    A label without noise leads by all K votes everywhere; a lead over the mean of the other classes
    has the noise of two classes' difference, or twice that of the one count where there are two.
    """
    classes = sample.counts.shape[1]
    lead = _leads_of_truth(sample).mean(axis=1)
    variance = 4 * sigma**2 if classes == 2 else sigma**2 * classes / (classes - 1)
    return max(0.0, float(lead.mean())) ** 2 / float(np.mean(lead**2) + variance)


class RoughForecast:
    """Forecasts of one sample for any sigma, interpolated, for comparing many settings.

    They are good to some tenths of a point of accuracy.

    Parameters
    ----------
    sample : VoteSample
    """

    def __init__(self, sample: VoteSample) -> None:
        self._sample = sample
        self._vote_accuracy = vote_accuracy(sample)
        few = VoteSample(
            sample.n_teachers, sample.counts[:ROUGH_POINTS], sample.truth[:ROUGH_POINTS]
        )
        chances = [
            float(right_chances(few, sample.n_teachers * 2.0**step).mean()) for step in ROUGH_STEPS
        ]
        # the curve is that of few points; shifted, it ends without noise where all points do
        self._accuracies = np.array(chances) + (self._vote_accuracy - vote_accuracy(few))

    def gaussian(self, sigma: float, n_queries: int, release: str) -> Forecast:
        """Return what `forecast_gaussian` does, nearly."""
        place = math.log2(sigma / self._sample.n_teachers)
        right = float(np.interp(place, ROUGH_STEPS, self._accuracies))
        classes = self._sample.counts.shape[1]
        information = (
            _count_information(self._sample, sigma)
            if release == "counts"
            else _label_information(right, classes)
        )
        return Forecast(
            n_queries, n_queries, n_queries, self._vote_accuracy, right, n_queries * information
        )
