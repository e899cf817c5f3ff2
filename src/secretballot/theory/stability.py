"""Bassily, Thakurta, Thakkar 2018: voting that pays for unstable queries alone, and its learner."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from scipy.stats import binom

from secretballot._validation import (
    check_choice,
    check_finite,
    check_instance,
    check_positive,
    check_probability,
)
from secretballot.exceptions import Parameter, ParameterError
from secretballot.privacy.accounting import (
    PrivacyBudget,
    SparseVectorEvent,
    calibrate_sparse_vector,
    needed_distance,
)
from secretballot.theory.learning import agnostic_records, consistent_records
from secretballot.theory.ranges import check_at_least, check_budget, check_count, check_error
from secretballot.theory.results import RiskBound

__all__ = [
    "StreamSizes",
    "best_misclassification_queries",
    "cutoff",
    "largest_error",
    "misclassification_rate",
    "most_contested",
    "most_mistakes",
    "printed_teachers",
    "rate_sizes",
    "stable_distance",
    "stream_sizes",
    "teachers_needed",
    "tight_stream",
    "voted_label_error",
]

CALIBRATIONS = ("tight", "paper")
# k enters T through log k alone; a first guess above the answer needs no second
_SUPPOSED_TEACHERS = 100_000


def stable_distance(epsilon: float, delta: float, beta: float) -> float:
    """Return the distance to instability at which A_stab answers with probability 1 - beta.

    It is in records or votes.

    Source: Bassily, Thakurta, Thakkar 2018, Theorem 2.5 (= Liu et al. 2021, Lemma E.10): (log(1 /
    delta) + log(1 / beta)) / epsilon, for the threshold log(1 / delta) / epsilon and Laplace noise
    of scale 1 / epsilon. Nothing is hidden; twice beta would do. For discrete noise, round
    threshold and distance up.
    """
    chance, allowed = check_probability("beta", beta), check_probability("delta", delta)
    return (math.log(1 / allowed) + math.log(1 / chance)) / check_positive("epsilon", epsilon)


def most_contested(mistakes: int, share: float = 1 / 3) -> int:
    """Return on how many questions more than a `share` of the teachers can be wrong.

    Source: Bassily, Thakurta, Thakkar 2018, Lemma 3.3 (= Liu et al. 2021, Lemma C.2): fewer than
    mistakes / share. Corrected: without a mistake the number is 0, which is not fewer than 0.

    Parameters
    ----------
    mistakes : int
        Largest number of mistakes of any teacher, at least 0.
    share : float
        In (0, 1/2].

    Raises
    ------
    ParameterError
        If a number is out of its range.
    """
    most, part = check_count("mistakes", mistakes, minimum=0), check_finite("share", share)
    if not 0 < part <= 0.5:
        raise ParameterError(
            Parameter("share"), f" is {share!r}; Lemma 3.3 holds for shares above 0 and up to 0.5."
        )
    return max(0, math.ceil(most / part * (1 - 1e-12)) - 1)


def most_mistakes(
    n_queries: int, error: float, beta: float, *, n_teachers: int, calibration: str = "tight"
) -> float:
    """Return B: no teacher of that error makes more mistakes on the queries.

    It fails with probability at most beta.

    Source: proof of Theorem 3.2 of Bassily, Thakurta, Thakkar 2018. "paper": m p + sqrt(m p log(m /
    beta) / 2). Corrected ("tight", item 6): the printed deviation is too small (a quarter of the
    variance term), and its union is over m instead of the teachers; the exact binomial quantile at
    beta / n_teachers replaces it.

    Parameters
    ----------
    n_queries : int
        m.
    error : float
        Bound p on the error of a teacher, in [0, 1).
    beta : float
    n_teachers : int
        Teachers in the union bound; only "tight" reads it.
    calibration : {"tight", "paper"}

    Raises
    ------
    ParameterError
        If a number is out of its range.
    """
    m, k, chance = (
        check_count("n_queries", n_queries),
        check_count("n_teachers", n_teachers),
        _checked_beta(beta),
    )
    p = check_finite("error", error)
    if not 0 <= p < 1:
        raise ParameterError(
            Parameter("error"), f" is {error!r}; it must be at least 0 and less than 1."
        )
    if check_choice("calibration", calibration, CALIBRATIONS) == "paper":
        return m * p + math.sqrt(m * p * math.log(m / chance) / 2)
    return float(binom.isf(chance / k, m, p))


def cutoff(
    n_queries: int, error: float, beta: float, *, n_teachers: int, calibration: str = "tight"
) -> int:
    """Return the number T of abstentions at which a stream may stop, for teachers of that error.

    Source: Bassily, Thakurta, Thakkar 2018, Theorem 3.2: T = 3 B, rounded up, at least 1. Corrected
    ("tight"): B is the exact quantile of `most_mistakes`, and T = 3 B + 1, since our stream stops
    at the T-th abstention (item 2d). Parameters as for `most_mistakes`. T >= m is vacuous: every
    query may abstain.
    """
    mistakes = most_mistakes(n_queries, error, beta, n_teachers=n_teachers, calibration=calibration)
    if calibration == "paper":
        return max(1, math.ceil(3 * mistakes))
    return min(3 * int(mistakes) + 1, n_queries)


def printed_teachers(budget: PrivacyBudget, n_queries: int, max_unstable: int, beta: float) -> int:
    """Return k of Bassily, Thakurta, Thakkar 2018, Algorithm 2: 34 sqrt(2) lambda log(4 m T /
    min(delta, beta / 2)).

    lambda = sqrt(32 T log(2 / delta)) / epsilon. Nothing is hidden; the proof needs half of it
    (item 9).
    """
    delta = _checked_delta(budget)
    queries, cut = check_count("n_queries", n_queries), check_count("max_unstable", max_unstable)
    scale = math.sqrt(32 * cut * math.log(2 / delta)) / budget.epsilon
    return math.ceil(
        34
        * math.sqrt(2)
        * scale
        * math.log(4 * queries * cut / min(delta, _checked_beta(beta) / 2))
    )


def teachers_needed(event: SparseVectorEvent, n_queries: int, beta: float) -> int:
    """Return the number of teachers at which a lead of a third is answered on all queries.

    It fails with probability at most beta. The sparse vector's own exact distribution in place of
    the union of tails in Theorem 3.2: distance(K / 3) = ceil(K / 6) - 1 must reach what is answered
    with probability 1 - beta / m.
    """
    check_instance("event", event, SparseVectorEvent)
    allowed = _checked_beta(beta) / check_count("n_queries", n_queries)
    return 6 * (math.ceil(needed_distance(event, 1 - allowed)) + 1)


@lru_cache(maxsize=256)
def tight_stream(epsilon: float, delta: float, max_unstable: int) -> SparseVectorEvent:
    """Return the calibrated sparse vector; kept, since each takes about a second."""
    return calibrate_sparse_vector(PrivacyBudget(epsilon, delta), max_unstable)


@dataclass(frozen=True)
class StreamSizes:
    """T, k and n at which a voting stream keeps a rate of mistakes.

    Attributes
    ----------
    max_unstable : int
        T.
    n_teachers : int
        k.
    teacher_error : float
        Error that a teacher may have, beyond the best of the class.
    shard : int
        Records of one teacher.
    n_records : int
        k times shard.
    rate : RiskBound
        Share of the queries that may be answered wrong or not at all: T / m.

    Examples
    --------
    >>> budget = sb.PrivacyBudget(epsilon=1.0, delta=1e-6)
    >>> sizes = sb.theory.stream_sizes(
    ...     1000, 0.01, 0.1, budget, vc_dimension=3, calibration="paper"
    ... )
    >>> sizes.n_records == sizes.n_teachers * sizes.shard, sizes.vacuous
    (True, False)
    """

    max_unstable: int
    n_teachers: int
    teacher_error: float
    shard: int
    n_records: int
    rate: RiskBound

    @property
    def vacuous(self) -> bool:
        """True if all queries may abstain or be wrong."""
        return self.rate.vacuous


def stream_sizes(
    n_queries: int,
    teacher_error: float,
    beta: float,
    budget: PrivacyBudget,
    vc_dimension: int,
    *,
    best_error: float = 0.0,
    calibration: str = "tight",
) -> StreamSizes:
    """Return T, k and n of Theorem 3.2 for teachers of error gamma + a.

    At most T of m queries are not answered right.

    Source: Bassily, Thakurta, Thakkar 2018, Theorem 3.2, with beta / 2 for each of its two
    failures. Shards have `consistent_records` (gamma = 0) or `agnostic_records`, which the theorem
    leaves open. "paper": T and k as printed. "tight": exact quantile and calibrated noise
    (`cutoff`, `teachers_needed`). Independent queries.

    Parameters
    ----------
    n_queries : int
        m.
    teacher_error : float
        a in (0, 1).
    beta : float
    budget : PrivacyBudget
        With delta above 0.
    vc_dimension : int
    best_error : float
        gamma, the error of the best member of the class, in [0, 1/2); 0 is the realizable case.
    calibration : {"tight", "paper"}

    Raises
    ------
    ParameterError
        If a number is out of its range.
    """
    m, gamma, half = (
        check_count("n_queries", n_queries),
        check_error("best_error", best_error),
        _checked_beta(beta) / 2,
    )
    error, delta = check_probability("teacher_error", teacher_error), _checked_delta(budget)
    # T first, for more teachers than are needed; k from T; then a shard that makes all k good
    t = cutoff(m, gamma + error, half, n_teachers=_SUPPOSED_TEACHERS, calibration=calibration)
    if calibration == "paper":
        k = printed_teachers(budget, m, t, half)
    else:
        k = teachers_needed(tight_stream(budget.epsilon, delta, t), m, half)
    records = agnostic_records if gamma > 0 else consistent_records
    shard = records(error, half / k, vc_dimension)
    return StreamSizes(t, k, error, shard, k * shard, RiskBound(t / m))


def rate_sizes(
    n_queries: int,
    alpha: float,
    beta: float,
    budget: PrivacyBudget,
    vc_dimension: int,
    *,
    best_error: float = 0.0,
    calibration: str = "tight",
) -> StreamSizes:
    """Return `stream_sizes` at the largest teacher error with a rate of at most alpha + 3 gamma.

    Raises
    ------
    ParameterError
        If a number is out of its range, or m so small that the deviation of mistakes alone breaks
        the rate.
    """
    m, gamma, half = (
        check_count("n_queries", n_queries),
        check_error("best_error", best_error),
        _checked_beta(beta) / 2,
    )
    # the worse the teachers may be, the fewer records they need: so the largest error that fits
    allowed = (check_probability("alpha", alpha) + 3 * gamma) * m

    def fits(error: float) -> bool:
        if not gamma + error < 1:
            return False
        return (
            cutoff(m, gamma + error, half, n_teachers=_SUPPOSED_TEACHERS, calibration=calibration)
            <= allowed
        )

    error = largest_error(fits)
    if not error > 0:
        raise ParameterError(
            Parameter("n_queries"),
            f" is {m}; on so few the deviation of a teacher's mistakes alone breaks a rate of"
            f" {alpha:g}; use more queries or a larger alpha.",
        )
    return stream_sizes(
        m, error, beta, budget, vc_dimension, best_error=gamma, calibration=calibration
    )


def largest_error(fits: Callable[[float], bool]) -> float:
    """Return the largest error, to four digits, that fits; 0 if 1e-9 does not."""
    if not fits(1e-9):
        return 0.0
    low, high = 1e-9, 1.0
    while high > low * 1.0001:
        middle = math.sqrt(low * high)
        if fits(middle):
            low = middle
        else:
            high = middle
    return low


def voted_label_error(
    teacher_error: float,
    beta: float,
    n_queries: int,
    *,
    best_error: float = 0.0,
    calibration: str = "tight",
) -> RiskBound:
    """Return the error of a stable vote's label at a new point, for teachers of error gamma + a.

    Source: Bassily, Thakurta, Thakkar 2018, Claim 4.1: 3 gamma + 7 a, for beta <= a and m >= 4
    log(1 / (a beta)) / a, "paper". Corrected ("tight"): 3 gamma + 3 a, for any beta and m; by
    Markov's inequality no more than that share of the points has a third of the teachers wrong, and
    the deviation on m points, which the proof adds, is not needed. Nothing is hidden. Both treat
    the released label as one fixed classifier's, and hold unless noise hides a stable vote, except
    with chance beta (item 9).

    Parameters
    ----------
    teacher_error : float
        a in (0, 1).
    beta : float
    n_queries : int
        m.
    best_error : float
        gamma in [0, 1/2).
    calibration : {"tight", "paper"}

    Raises
    ------
    ParameterError
        If a number is out of its range; "paper" also outside of the claim's own.
    """
    a, chance = check_probability("teacher_error", teacher_error), _checked_beta(beta)
    m, gamma = check_count("n_queries", n_queries), check_error("best_error", best_error)
    if check_choice("calibration", calibration, CALIBRATIONS) == "tight":
        return RiskBound(3 * (gamma + a), trivial=0.5)
    if not chance <= a:
        raise ParameterError(
            Parameter("beta"),
            f" is {chance:g}; Claim 4.1 holds for beta up to the teachers' error {a:g}.",
        )
    check_at_least("n_queries", m, 4 * math.log(1 / (a * chance)) / a, "Claim 4.1")
    return RiskBound(3 * gamma + 7 * a, trivial=0.5)


def best_misclassification_queries(
    n_records: int,
    epsilon: float,
    vc_dimension: int,
    *,
    best_error: float = 0.0,
    constant: float = 1.0,
) -> float:
    """Return M, the number of queries up to which `misclassification_rate` is flat.

    Source: Bassily, Thakurta, Thakkar 2018, Theorems 3.4 (epsilon n / V) and 3.5 (min(1 / gamma,
    sqrt(epsilon n / V))). Hidden: `constant` and logarithms of m, n, 1 / beta, 1 / delta. Below 1
    the theorems are vacuous.
    """
    ratio = check_positive("epsilon", epsilon) * check_count("n_records", n_records)
    ratio /= check_count("vc_dimension", vc_dimension)
    scale, gamma = check_positive("constant", constant), check_error("best_error", best_error)
    return scale * (min(1 / gamma, math.sqrt(ratio)) if gamma > 0 else ratio)


def misclassification_rate(
    n_records: int,
    n_queries: int,
    epsilon: float,
    vc_dimension: int,
    *,
    best_error: float = 0.0,
    constant: float = 1.0,
) -> RiskBound:
    """Return the rate of mistakes of voting with the sparse vector on m queries.

    Source: Bassily, Thakurta, Thakkar 2018. Theorem 3.4 (gamma = 0): V / (epsilon n) up to M
    queries, m (V / (epsilon n))^2 beyond. Theorem 3.5 (gamma > 0): 3 gamma + sqrt(V / (epsilon n)),
    and 3 gamma + m^(1/3) (V / (epsilon n))^(2/3) beyond. Hidden: `constant` on the terms in n and
    logarithms of m, n, 1 / beta, 1 / delta; the O(gamma) is 3 gamma by Theorem 3.2. Vacuous from
    1/2 on.

    Parameters
    ----------
    n_records, n_queries : int
    epsilon : float
    vc_dimension : int
    best_error : float
        gamma in [0, 1/2).
    constant : float
    """
    m, gamma = check_count("n_queries", n_queries), check_error("best_error", best_error)
    flat = best_misclassification_queries(n_records, epsilon, vc_dimension, best_error=gamma)
    x, scale = vc_dimension / (epsilon * n_records), check_positive("constant", constant)
    if gamma == 0:
        return RiskBound(scale * (x if m <= flat else m * x * x), trivial=0.5)
    return RiskBound(
        3 * gamma + scale * (math.sqrt(x) if m <= flat else m ** (1 / 3) * x ** (2 / 3)),
        trivial=0.5,
    )


def _checked_delta(budget: PrivacyBudget) -> float:
    _, delta = check_budget(budget, needs_delta=False)
    if not delta > 0:
        raise ParameterError(
            Parameter("delta"), " is 0; the sparse vector needs a delta above 0, such as 1e-6."
        )
    return delta


def _checked_beta(beta: float) -> float:
    return check_probability("beta", beta)
