"""What a released estimate of the error level says about a planned stream: post-processing, free of
charge.

Bassily, Thakurta, Thakkar 2018, remark 1, sets the number T of abstentions by a private estimate of
how often the teachers disagree. Here it is one number over a fixed public pool
(`StabilityQuantile` of `core.mechanisms`), read with a stated failure probability. All inputs are
released numbers and public settings.
"""

from typing import NamedTuple

from secretballot._validation import check_count, check_probability
from secretballot.accounting import SparseStream
from secretballot.accounting.rounding import first_integer
from secretballot.core.exponential import least_quotient
from secretballot.core.streams import false_answer, laplace_above

_ROUNDING = 1 + 1e-9  # float error of the tails used here stays far below


class QuantileSlack(NamedTuple):
    """How far beyond the threshold a released quantile must lie before it shows anything: by the
    sum of both, except with some probability.

    Attributes
    ----------
    estimate : int
        Votes by which the estimate's own noise may exceed 0.
    stream : int
        Votes: all queries of the stream at a distance > threshold + stream are answered as long as
        it runs.

    Examples
    --------
    >>> from secretballot.accounting.error_level import QuantileSlack
    >>> sum(QuantileSlack(estimate=4, stream=30))
    34
    """

    estimate: int
    stream: int


def quantile_slack(
    epsilon: float, event: SparseStream, n_queries: int, beta: float
) -> QuantileSlack:
    """Return the slack between a released quantile and the threshold of a planned stream.

    If the quantile exceeds threshold and slack then, except with probability `beta`, the share of
    the pool's points that it is about is answered wherever they are in the stream, as long as it
    runs. Else nothing is shown.

    Parameters
    ----------
    epsilon : float
        Price of the number, in nats.
    event : SparseStream
        The planned stream, as `calibrate_sparse_vector` returns it.
    n_queries : int
        Length of the stream.
    beta : float
        Failure probability of the statement, half for each part.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    Notes
    -----
    A query at distance d is below with probability b(d) = P(X - Y <= w - d) where the threshold
    noise Y is fresh. Later in an epoch Y is known only to have let the earlier queries pass, which
    is likelier for low Y, while failing is likelier for high Y; so (Chebyshev) reaching the query
    in this epoch and failing it has at most b(d) times the probability of reaching it, and over the
    epochs b(d) at most. The sum over the queries
    bounds the stream.
    """
    n, half = check_count("n_queries", n_queries), check_probability("beta", beta) / 2
    scale = least_quotient(1, epsilon)
    estimate = first_integer(lambda votes: laplace_above(votes, scale) * _ROUNDING <= half)
    # X - Y is symmetric: below at w + stream + 1 is as likely as above at w - stream
    stream = first_integer(
        lambda votes: n * false_answer(event, event.threshold - votes) * _ROUNDING <= half
    )
    return QuantileSlack(estimate, stream)
