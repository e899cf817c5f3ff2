"""How many abstentions and teachers a stream of questions needs, from public numbers alone.

If every one of K teachers errs on at most B of the questions, then on all but 3 B of them fewer
than a third of the teachers err (Bassily, Thakurta, Thakkar 2018, Lemma 3.3): the vote leads by K /
3, and is answered if the threshold is below. The numbers T and K follow from what is believed
beforehand of a teacher's error; they decide how much is answered, never how private it is.
"""

import functools
import math

from scipy.stats import binom

from secretballot._validation import check_count, check_probability
from secretballot.accounting import (
    PrivacyBudget,
    Stream,
    calibrate_stream,
    needed_distance,
)
from secretballot.exceptions import ParameterError

_FIRST_TEACHERS = 1000
# the cutoff depends on the logarithm of the number of teachers, so two or three settle it
_ROUNDS = 6


@functools.lru_cache(maxsize=64)
def stream_for(budget: PrivacyBudget, max_abstentions: int) -> Stream:
    """Return what `calibrate_stream` returns; a second or two the first time."""
    return calibrate_stream(budget, max_abstentions)


def abstentions_for(n_queries: int, error: float, beta: float, n_teachers: int) -> int:
    """Return the number T of abstentions at which to stop.

    Parameters
    ----------
    n_queries : int
    error : float
        Expected error of a teacher on a question, at most.
    beta : float
        Probability with which more questions than that may be unstable.
    n_teachers : int

    Returns
    -------
    int
        3 B + 1 with B the smallest number that binomially many errors exceed with probability at
        most beta / n_teachers; the number of questions if that is less. The stream stops at the
        T-th abstention.
    """
    m, k = check_count("n_queries", n_queries), check_count("n_teachers", n_teachers)
    allowed = check_probability("beta", beta) / k
    errors = int(binom.isf(allowed, m, check_probability("error", error)))
    return max(1, min(3 * errors + 1, m))


def teachers_for(stream: Stream, n_queries: int, beta: float) -> int:
    """Return the number K of teachers at which a lead of K / 3 is answered, on all questions with
    probability 1 - beta.

    Parameters
    ----------
    stream : SparseStream or TableStream
    n_queries : int
    beta : float

    Raises
    ------
    ParameterError
        If a table of abstentions does not get there at any distance.
    """
    allowed = check_probability("beta", beta) / check_count("n_queries", n_queries)
    needed = needed_distance(stream, 1 - allowed)
    if not math.isfinite(needed):
        raise ParameterError(
            f"With {stream.abstentions} abstentions in this budget no number of teachers is"
            " answered surely enough; ask fewer questions, or take a larger epsilon."
        )
    # stability is ceil(lead / 2) - 1
    return 6 * (math.ceil(needed) + 1)


def tight_stream(
    budget: PrivacyBudget, n_queries: int, error: float, beta: float, n_teachers: int | None
) -> Stream:
    """Return the stream with the fewest abstentions for teachers of that error, and noise that
    keeps the budget."""
    # More teachers err more often somewhere, so more abstentions are needed, hence more noise,
    # hence more teachers: repeated until nothing grows.
    teachers, unstable = n_teachers or _FIRST_TEACHERS, 0
    stream: Stream | None = None
    for _ in range(_ROUNDS):
        needed = abstentions_for(n_queries, error, beta, teachers)
        if stream is not None and needed <= unstable:
            return stream
        stream, unstable = stream_for(budget, needed), needed
        teachers = teachers_for(stream, n_queries, beta) if n_teachers is None else n_teachers
    assert stream is not None
    return stream


def printed_abstentions(n_queries: int, error: float, beta: float) -> int:
    """Return T as Bassily, Thakurta, Thakkar 2018 print it in Theorem 3.2, for teachers of that
    error."""
    mean = check_count("n_queries", n_queries) * check_probability("error", error)
    deviation = math.sqrt(mean * math.log(n_queries / check_probability("beta", beta)) / 2)
    return max(1, math.ceil(3 * (mean + deviation)))


def printed_teachers(
    budget: PrivacyBudget, n_queries: int, max_abstentions: int, beta: float
) -> int:
    """Return K as Bassily, Thakurta, Thakkar 2018 print it in Algorithm 2: 34 sqrt(2) lambda
    log(4 m T / ...)."""
    scale = math.sqrt(32 * max_abstentions * math.log(2 / budget.delta)) / budget.epsilon
    return math.ceil(
        34
        * math.sqrt(2)
        * scale
        * math.log(4 * n_queries * max_abstentions / min(budget.delta, beta / 2))
    )
