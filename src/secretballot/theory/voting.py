"""Voting in numbers: how often a noisy vote is right, when a stream ends, when voting helps."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

from secretballot._typing import FloatArray, IntArray
from secretballot._validation import (
    check_finite,
    check_instance,
    check_positive,
    name_part,
    shown,
)
from secretballot.accounting import SparseStream
from secretballot.core.losses import discrete_gaussian_pmf
from secretballot.core.streams import laplace_above
from secretballot.exceptions import Parameter, ParameterError
from secretballot.theory.ranges import check_count, check_share

_LONGEST_SUM = 10**8


def label_accuracy(margin: int, sigma: float) -> float:
    """Return the chance that Gaussian voting releases the label that leads by `margin` of K votes.

    Exact for discrete Gaussian noise X: the label 0, ties going to 1, so P(2 X < margin). Close to
    Phi(margin / (2 sigma)).

    Parameters
    ----------
    margin : int
        Votes for the label less votes for the other one; negative if it trails.
    sigma : float
        Noise, in votes.
    """
    lead = check_count("margin", margin, minimum=-(10**12))
    reach, pmf = discrete_gaussian_pmf(check_positive("sigma", sigma))
    last = (lead - 1) // 2  # the largest noise below half the margin
    return float(pmf[: max(0, last + reach + 1)].sum())


def expected_label_accuracy(agreement: float, n_teachers: int, sigma: float) -> float:
    """Return the chance that Gaussian voting releases the right label, for independent teachers.

    The mean of `label_accuracy` over Binomial(K, agreement) right votes.

    Parameters
    ----------
    agreement : float
        Chance that one teacher is right, in [0, 1]; for a mean over points, average this function
        over them.
    n_teachers : int
    sigma : float
        Noise, in votes.
    """
    share = check_share("agreement", agreement)
    k = _checked_listable_count("n_teachers", n_teachers)
    reach, pmf = discrete_gaussian_pmf(check_positive("sigma", sigma))
    below = np.concatenate([[0.0], np.cumsum(pmf)])
    votes = np.arange(k + 1)
    chance = below[np.clip((2 * votes - k - 1) // 2 + reach + 1, 0, len(pmf))]
    return float(binom.pmf(votes, k, share) @ chance)


def _checked_listable_count(name: str, value: int) -> int:
    """Return a count up to which probabilities are summed one by one, else raise."""
    number = check_count(name, value)
    if not number <= _LONGEST_SUM:
        raise ParameterError(
            name_part(name),
            f" is {number}; give at most {_LONGEST_SUM:,}, since probabilities are summed term by"
            " term.",
        )
    return number


@dataclass(frozen=True)
class StreamForecast:
    """What a sparse vector does with a stream, in expectation.

    Attributes
    ----------
    asked : float
        Queries until the stream ends or stops, the last one included.
    answered : float
        Of them, those that were answered.

    Examples
    --------
    >>> from secretballot.accounting import SparseStream
    >>> event = SparseStream(
    ...     threshold_scale=2.0, query_scale=2.0, threshold=20, abstentions=3
    ... )
    >>> forecast = sb.theory.stream_forecast(event, 100, distances=[0, 60], shares=[0.1, 0.9])
    >>> forecast.answered < forecast.asked < 100
    True
    """

    asked: float
    answered: float


def stream_forecast(
    event: SparseStream, n_queries: int, distances: Sequence[int], shares: Sequence[float]
) -> StreamForecast:
    """Return the expected number of queries answered before the T-th abstention, exactly.

    Queries are independent and have the distances to instability with the given chances, max(0,
    ceil(margin / 2) - 1) each. Given the threshold noise an epoch's queries are independent of each
    other; epochs are independent, and their lengths are convolved.

    Parameters
    ----------
    event : SparseStream
        Noise, threshold and T.
    n_queries : int
        Most queries of the stream.
    distances : sequence of int, shape (k,)
        In votes, at least 0.
    shares : sequence of float, shape (k,)
        Their chances; they add up to 1.

    Raises
    ------
    ParameterError
        If a number is out of its range, or chances do not add up to 1.
    """
    check_instance("event", event, SparseStream)
    if np.ndim(distances) != 1 or np.ndim(shares) != 1:
        raise ParameterError(
            "distances and shares must be lists, one number of each for each kind of query."
        )
    m = _checked_listable_count("n_queries", n_queries)
    weights = np.array([check_share("shares", s) for s in shares])
    if len(distances) != len(weights) or not abs(weights.sum() - 1) <= 1e-9:
        raise ParameterError(
            Parameter("shares"), " must be one chance for each distance, and add up to 1."
        )
    # one threshold noise is shared by all queries of an epoch, so they are independent only given
    # its value: all values are computed at once and averaged at the end
    chances, refusals = _noise_and_refusals(
        event, [check_count("distances", d, minimum=0) for d in distances], weights
    )
    survival, alive = np.zeros(m + 1), chances.copy()
    for j in range(m + 1):
        survival[j] = alive.sum()
        alive *= 1 - refusals
    length = np.zeros(m + 1)
    length[1:] = survival[:-1] - survival[1:]
    size = 2 * (m + 1)  # so that the circular convolution does not wrap around
    step = np.fft.rfft(length, size)
    ends, stops = np.zeros(m + 1), 0.0
    ends[0] = 1.0
    for _ in range(min(event.abstentions, m)):
        ends = np.maximum(np.fft.irfft(np.fft.rfft(ends, size) * step, size)[: m + 1], 0.0)
        stops += float(ends.sum())
    before_last = 1 - np.cumsum(ends) if event.abstentions <= m else np.ones(m + 1)
    asked = float(before_last[:m].sum())
    return StreamForecast(asked, asked - stops)


def _noise_and_refusals(
    event: SparseStream, distances: list[int], weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the threshold noise's probabilities, and the chance to abstain given each value."""
    reach = math.ceil(35 * event.threshold_scale) + 1
    noise = np.arange(-reach, reach + 1)
    chances = np.exp(-np.abs(noise) / event.threshold_scale)
    refusals = np.zeros(len(noise))
    for distance, weight in zip(distances, weights, strict=True):
        above = np.array(
            [laplace_above(event.threshold + int(y) - distance, event.query_scale) for y in noise]
        )
        refusals += weight * (1 - above)
    return chances / chances.sum(), np.clip(refusals, 0.0, 1.0)


@dataclass(frozen=True)
class VotingExample:
    """Equally likely points, at each of which teachers are right independently with known chances.

    Attributes
    ----------
    agreement : tuple of float
        The chance at each point.
    best_error : float
        Error of the best hypothesis of the class.

    Examples
    --------
    >>> example = sb.theory.voting_wins(margin=0.2)
    >>> example.teacher_error, example.limit_error
    (0.30000000000000004, 0.0)
    >>> example.voting_error(101) < 0.001
    True
    """

    agreement: tuple[float, ...]
    best_error: float

    @property
    def teacher_error(self) -> float:
        """Expected error of one teacher."""
        return 1 - math.fsum(self.agreement) / len(self.agreement)

    @property
    def limit_error(self) -> float:
        """Error of h_inf^agg, the vote of infinitely many teachers; ties err half of the time."""
        return math.fsum(0.5 if p == 0.5 else float(p < 0.5) for p in self.agreement) / len(
            self.agreement
        )

    def voting_error(self, n_teachers: int) -> float:
        """Return the expected error of the majority of K teachers; ties are broken at random."""
        k = check_count("n_teachers", n_teachers)
        right = np.asarray(self.agreement)
        wrong = binom.cdf((k - 1) // 2, k, right) + (
            0.5 * binom.pmf(k // 2, k, right) if k % 2 == 0 else 0.0
        )
        return float(np.mean(wrong))

    def sample_votes(self, n_teachers: int, n_queries: int, seed: int) -> tuple[IntArray, IntArray]:
        """Draw query points and how many of K teachers are right at each.

        Teachers keep their votes at a point.

        Parameters
        ----------
        n_teachers, n_queries : int
        seed : int
            The points are synthetic, so this is no secret.

        Returns
        -------
        points, right : ndarray of shape (n_queries,)
        """
        k, m = check_count("n_teachers", n_teachers), check_count("n_queries", n_queries)
        rng = np.random.default_rng(check_count("seed", seed, minimum=0))
        right = rng.binomial(k, self.agreement)
        points = rng.integers(len(self.agreement), size=m)
        return points.astype(np.int64), np.asarray(right[points], dtype=np.int64)


FAILING_CLASS: tuple[tuple[int, ...], ...] = ((1, 1, 0, 0), (1, 0, 1, 0), (1, 0, 0, 1))
"""Example 8: what its three hypotheses say at the four points, where the label is always 1."""


def voting_fails() -> VotingExample:
    """Return Example 8 of Liu et al. 2021: every hypothesis errs 1/2, their majority 3/4.

    Four equally likely points, all of class 1. A teacher that minimises the empirical error with
    fair tie-breaking is each of `FAILING_CLASS` with chance 1/3, by symmetry, whatever its shard;
    so it is right always at the first point and with chance 1/3 at the others, and the vote tends
    to 3/4 exponentially fast in K.
    """
    agreement = tuple(sum(h[i] for h in FAILING_CLASS) / len(FAILING_CLASS) for i in range(4))
    return VotingExample(agreement, 0.5)


def voting_wins(margin: float, n_points: int = 4) -> VotingExample:
    """Return Example 9 of Liu et al. 2021: teachers err 1/2 - margin, their majority hardly ever.

    Parameters
    ----------
    margin : float
        In (0, 1/2).
    n_points : int
        Equally likely points.
    """
    level = _checked_margin(margin)
    return VotingExample((0.5 + level,) * check_count("n_points", n_points), 0.5 - level)


def voting_wins_bound(n_teachers: int, margin: float) -> float:
    """Return e^(-2 K margin^2), the bound of Example 9 on the majority's error (Hoeffding)."""
    return math.exp(-2 * check_count("n_teachers", n_teachers) * _checked_margin(margin) ** 2)


def _checked_margin(margin: float) -> float:
    level = check_finite("margin", margin)
    if not 0 < level < 0.5:
        raise ParameterError(
            Parameter("margin"), f" is {shown(margin)}; it must lie above 0 and below 0.5."
        )
    return level
