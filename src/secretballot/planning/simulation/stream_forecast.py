"""What a sparse vector does with simulated votes: how many answers, how many right, how sure."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

from secretballot._typing import FloatArray, IntArray
from secretballot.accounting import SparseStream, Stream, TableStream
from secretballot.accounting.abstention_table import rough_chances
from secretballot.core.streams import MAX_DISTANCE

REACH = 35  # threshold scales; the noise lies beyond with chance exp(-35)
REPEATS = 10_000  # streams drawn for the range of the number of answers
MOST_STOPS = 400_000  # epochs drawn for it at most


@dataclass(frozen=True)
class StreamForecast:
    """A stream in expectation, and the range in which nine streams of ten end.

    Attributes
    ----------
    answered : float
        Queries that are answered.
    right : float
        Of them, those whose answer is right.
    low, high : float
        5 % and 95 % quantile of the number of answers.
    """

    answered: float
    right: float
    low: float
    high: float


def expected_stream(
    event: Stream,
    n_queries: int,
    distances: IntArray,
    right: FloatArray,
    *,
    seed: int = 0,
) -> StreamForecast:
    """Return what becomes of a stream whose queries are drawn uniformly from given points.

    The expectations are exact. An epoch, from one abstention to the next, is a row of queries under
    one threshold: given its noise a point is answered with a chance of its own. Epochs are
    independent, and their lengths are convolved, as in `secretballot.theory.stream_forecast`. The
    quantiles come from `REPEATS` streams drawn from the same distribution.

    Parameters
    ----------
    event : SparseStream or TableStream
        Noise, threshold and T, or a table of chances and T.
    n_queries : int
        Most queries m of the stream.
    distances : ndarray of int64, shape (n_points,)
        To instability, in votes.
    right : ndarray of shape (n_points,)
        1 where the plurality is the true class, else 0.
    seed : int
        Of the drawn streams; they are simulated.
    """
    if isinstance(event, TableStream):
        # no hidden noise: every query is answered with a chance of its own
        chances = np.ones(1)
        passing, passing_right = _table_chances(event, distances, right)
    else:
        noise = np.arange(-_noise_reach(event), _noise_reach(event) + 1)
        chances = np.exp(-np.abs(noise) / event.threshold_scale)
        chances /= chances.sum()
        passing, passing_right = _passing_chances(event, noise, distances, right)
    counted = np.column_stack([passing, passing_right])
    answered, good = _expected_answers(event, n_queries, chances, passing, counted).tolist()
    low, high = _quantiles_of_answers(
        event, n_queries, chances, passing, np.random.default_rng(seed)
    )
    return StreamForecast(answered, min(good, answered), min(low, answered), max(high, answered))


def _table_chances(
    event: TableStream, distances: IntArray, right: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the chance of an answer by a table, and of one that is right, of shape (1,) each."""
    length = min(int(distances.max()), MAX_DISTANCE) + 1
    # in floats: the exact weights take seconds, and a plan looks at many tables
    chances = rough_chances(event.order, event.charge, event.false_answer, length)
    answered = chances[np.minimum(distances, length - 1)]
    return np.array([answered.mean()]), np.array([float(answered @ right) / len(right)])


def _noise_reach(event: SparseStream) -> int:
    return int(np.ceil(REACH * event.threshold_scale)) + 1


def _passing_chances(
    event: SparseStream, noise: IntArray, distances: IntArray, right: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return, for every threshold noise, the chance of an answer, and of one that is right."""
    # farther from a tie every query passes, to 1e-15; so the table stays short however many
    # teachers there are
    sure = int(event.threshold + noise[-1] + np.ceil(REACH * event.query_scale))
    values, where = np.unique(np.minimum(distances, sure), return_inverse=True)
    share = np.bincount(where) / len(distances)
    share_right = np.bincount(where, weights=right) / len(distances)
    # the chance depends on noise - distance alone, so the tail is looked up in one table
    offsets = np.arange(noise[0] - values[-1], noise[-1] - values[0] + 1)
    table = _laplace_above(event.threshold + offsets, event.query_scale)
    start = noise[0] - values - offsets[0]
    passing, passing_right = np.zeros(len(noise)), np.zeros(len(noise))
    for first, weight, weight_right in zip(start.tolist(), share, share_right, strict=True):
        tail = table[first : first + len(noise)]
        passing += weight * tail
        passing_right += weight_right * tail
    return np.clip(passing, 0.0, 1.0), passing_right


def _laplace_above(values: IntArray, scale: float) -> FloatArray:
    """Return P(X > value) for discrete Laplace X: `laplace_above` for arrays."""
    r = np.exp(-1 / scale)
    positive = np.exp(-(np.maximum(values, -1) + 1) / scale) / (1 + r)
    return np.asarray(
        np.where(values >= 0, positive, 1 - np.exp(np.minimum(values, 0) / scale) / (1 + r))
    )


def _expected_answers(
    event: Stream, m: int, chances: FloatArray, passing: FloatArray, counted: FloatArray
) -> FloatArray:
    """Return the expected numbers of queries counted before the T-th abstention, shape (ways,)."""
    refusal = np.maximum(1 - passing, 1e-300)
    # a table hides no threshold: all queries are independent of each other
    if isinstance(event, TableStream):
        stops = _capped_binomial_mean(refusal, m, event.abstentions)
        asked = np.where(refusal > 1e-12, stops / refusal, m)
        return np.asarray((chances * asked) @ counted)
    # else one epoch is followed query by query under every noise at once, and what
    # it counts is added up over the places at which an epoch may begin
    alive, survival, hits = chances.copy(), np.zeros(m + 1), np.zeros((m, counted.shape[1]))
    for j in range(m):
        survival[j], hits[j] = alive.sum(), alive @ counted
        alive *= passing
    survival[m] = alive.sum()
    length = np.zeros(m + 1)
    length[1:] = survival[:-1] - survival[1:]
    # hits of an epoch with j queries left
    within = np.concatenate([np.zeros((1, hits.shape[1])), np.cumsum(hits, axis=0)])
    return np.asarray(_epoch_starts(length, event.abstentions) @ within[::-1])


def _capped_binomial_mean(rate: FloatArray, n: int, cap: int) -> FloatArray:
    """Return E[min(cap, Binomial(n, rate))] for every rate; shape as given."""
    # the mean of min(cap, B), in two parts: n rate P[B' <= cap - 2] with B' of n - 1 trials, and
    # cap P[B >= cap]
    below = binom.cdf(cap - 2, n - 1, rate)
    return np.asarray(n * rate * below + cap * binom.sf(cap - 1, n, rate), dtype=np.float64)


def _epoch_starts(length: FloatArray, epochs: int) -> FloatArray:
    """Return the expected number of epochs that begin after each number of queries asked."""
    # twice the length, so that the circular convolution does not wrap around
    size = 2 * len(length)
    step = np.fft.rfft(length, size)
    begins = np.zeros(len(length))
    begins[0] = 1.0
    starts = begins.copy()
    for _ in range(min(epochs, len(length) - 1) - 1):
        # rounding of the transform may leave numbers a little below 0
        begins = np.maximum(
            np.fft.irfft(np.fft.rfft(begins, size) * step, size)[: len(begins)], 0.0
        )
        starts += begins
        if begins.sum() < 1e-12:
            break
    return starts


def _quantiles_of_answers(
    event: Stream,
    m: int,
    chances: FloatArray,
    passing: FloatArray,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Return the 5 % and 95 % quantile of the number of answers over drawn streams."""
    stops = min(event.abstentions, m)
    # as many streams as time allows: each takes as many draws as it has epochs
    repeats = max(200, min(REPEATS, MOST_STOPS // stops))
    shape = (repeats, stops if isinstance(event, SparseStream) else 1)
    refusal = np.clip(1 - passing, 1e-12, 1.0)[rng.choice(len(chances), size=shape, p=chances)]
    ends = np.cumsum(
        rng.geometric(np.broadcast_to(refusal, (repeats, stops))).astype(np.float64), axis=1
    )
    answered = np.minimum(ends[:, -1], m) - np.sum(ends <= m, axis=1)
    low, high = np.quantile(answered, [0.05, 0.95])
    return float(low), float(high)
