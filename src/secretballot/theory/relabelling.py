"""Nandi and Bassily 2020, section 3: relabel a secret sample by one hypothesis, then vote on it."""

import math
from dataclasses import dataclass

from scipy.stats import binom

from secretballot._validation import (
    NEIGHBOURS,
    check_choice,
    check_delta,
    check_positive,
    check_probability,
)
from secretballot.exceptions import Parameter, ParameterError
from secretballot.privacy.accounting import PrivacyBudget
from secretballot.privacy.accounting.relabelled import relabelling_loss
from secretballot.privacy.accounting.sample_calibration import stream_budget
from secretballot.theory.learning import log_growth, pair_cover_records, uniform_deviation
from secretballot.theory.ranges import (
    check_at_least,
    check_budget,
    check_count,
    check_epsilon_below,
    check_error,
)
from secretballot.theory.search import smallest_integer
from secretballot.theory.stability import (
    CALIBRATIONS,
    cutoff,
    largest_error,
    teachers_needed,
    tight_stream,
)

__all__ = [
    "PRINTED_DIVISOR",
    "LabelerSizes",
    "amplified",
    "bootstrap_repeats",
    "disagreement_records",
    "labeler_queries",
    "labeler_sizes",
    "printed_labeler_records",
    "queries_needed",
    "relabel_error",
    "relabel_records",
    "relabelled_privacy",
    "sampling_rate",
]

PRINTED_DIVISOR = 56  # Algorithm 3, line 1: n' = epsilon n / 56
PRINTED_FACTOR = 8000  # proof of Lemma 3.5: n' = 8000 (...) / alpha^2
_SUPPOSED_TEACHERS = 100_000


def relabelled_privacy(
    budget: PrivacyBudget, *, neighbours: str = "replace-one", calibration: str = "tight"
) -> tuple[float, float]:
    """Return (epsilon, delta) of relabelling with epsilon 1, then a mechanism that keeps `budget`.

    Source: Nandi and Bassily 2020, Lemma 3.1 (Beimel, Nissim, Stemmer 2015): (epsilon + 3, 4 e
    delta), "paper". Corrected ("tight", item 6): (epsilon + log c, c delta) with c = (1 + sqrt e)^2
    = 7.0157 where one record is replaced, c = 1 + sqrt e where one comes or goes; c is attained.
    Relabelling alone is not private. A delta of 1 or more is vacuous.

    Parameters
    ----------
    budget : PrivacyBudget
        Of the mechanism that sees the relabelled sample.
    neighbours : {"replace-one", "add-remove"}
        "paper" is stated for "replace-one", and holds for both.
    calibration : {"tight", "paper"}
    """
    epsilon, delta = check_budget(budget, needs_delta=False)
    if check_choice("calibration", calibration, CALIBRATIONS) == "paper":
        return epsilon + 3, 4 * math.e * delta
    loss = relabelling_loss(check_choice("neighbours", neighbours, NEIGHBOURS), 1.0)
    return epsilon + loss, math.exp(loss) * delta


def amplified(epsilon: float, delta: float, rate: float) -> tuple[float, float]:
    """Return (epsilon, delta) of a mechanism on a secret sample drawn without replacement.

    Source: Li, Qardaji, Su 2012, used in Lemma 3.4 of Nandi and Bassily 2020: log(1 + rate
    (e^epsilon - 1)), rate delta. Nothing is hidden; rate 1 gains nothing.

    Raises
    ------
    ParameterError
        If a number is out of its range.
    """
    q = check_positive("rate", rate)
    if not q <= 1:
        raise ParameterError(
            Parameter("rate"), f" is {rate!r}; a sampling rate lies above 0 and up to 1."
        )
    return math.log1p(q * math.expm1(check_positive("epsilon", epsilon))), q * check_delta(
        "delta", delta
    )


def sampling_rate(epsilon: float, inner_epsilon: float, *, calibration: str = "tight") -> float:
    """Return the share of the records that may be sampled, relabelled and asked at `inner_epsilon`.

    Source: Nandi and Bassily 2020, Algorithm 3, line 1: epsilon / 56 ("paper", for inner_epsilon up
    to 1 and epsilon up to 1). Corrected ("tight", item 6): min(1, (e^epsilon - 1) / (c
    e^inner_epsilon - 1)), c = 7.0157, the inverse of Lemma 3.1 with its exact constant and of
    amplification; any epsilon.

    Parameters
    ----------
    epsilon : float
        Of the whole.
    inner_epsilon : float
        Of the stream that the relabelled sample is asked with.
    calibration : {"tight", "paper"}

    Raises
    ------
    ParameterError
        If a number is out of its range.
    """
    inside = check_positive("inner_epsilon", inner_epsilon)
    if check_choice("calibration", calibration, CALIBRATIONS) == "paper":
        if not inside <= 1:
            raise ParameterError(
                Parameter("inner_epsilon"),
                f" is {inside:g}; Algorithm 3 prints epsilon / 56 for up to 1.",
            )
        return check_epsilon_below(epsilon, 1.0, "Theorem 3.3") / PRINTED_DIVISOR
    loss = inside + relabelling_loss("replace-one", 1.0)
    whole = check_positive("epsilon", epsilon)
    if whole >= loss:
        return 1.0
    # (e^a - 1) / (e^b - 1) without overflow
    return math.exp(whole - loss) * -math.expm1(-whole) / -math.expm1(-loss)


def bootstrap_repeats(n_records: int, delta: float, *, calibration: str = "tight") -> float:
    """Return r: in n draws with replacement a record is drawn at most r times.

    It fails with probability at most delta / 2.

    Source: Nandi and Bassily 2020, Lemma 3.4: log(2 / delta), "by Chernoff". Corrected ("tight",
    item 6): the exact quantile of Binomial(n, 1 / n); the printed figure is false for some delta
    above .0367, and half as large again as needed for small ones. Splitting before drawing makes r
    irrelevant, which is what the labelers do.
    """
    n, allowed = check_count("n_records", n_records), check_probability("delta", delta)
    if check_choice("calibration", calibration, CALIBRATIONS) == "paper":
        return math.log(2 / allowed)
    return float(binom.isf(allowed / 2, n, 1 / n))


def relabel_error(n_sampled: int, vc_dimension: int, beta: float) -> float:
    """Return by what share of the sample the relabelling errs more than the best labelling.

    It fails with probability at most beta.

    Source: Nandi and Bassily 2020, Lemma 3.2, first step: 2 (log growth(n') + log(1 / beta)) / n',
    the exponential mechanism with epsilon 1 on at most growth(n') labellings (Sauer's sum). Nothing
    is hidden. 1 or more is vacuous.
    """
    chance = check_probability("beta", beta)
    return 2 * (log_growth(vc_dimension, n_sampled) + math.log(1 / chance)) / n_sampled


def relabel_records(
    alpha: float, beta: float, vc_dimension: int, *, calibration: str = "tight"
) -> int:
    """Return n' at which relabelling errs at most alpha more than the best on the sample.

    Source: Nandi and Bassily 2020, Lemma 3.2: 256 (d + log(3 / beta)) / alpha^2, "paper"; its
    constant rests on a uniform convergence bound that is cited without one. "tight": the smallest
    n' at which `relabel_error` at beta / 2 and twice `uniform_deviation` at beta / 2 make at most
    alpha; a theorem, and larger where that bound is the looser one.

    Parameters
    ----------
    alpha, beta : float
    vc_dimension : int
    calibration : {"tight", "paper"}
    """
    error, chance = check_probability("alpha", alpha), check_probability("beta", beta)
    if check_choice("calibration", calibration, CALIBRATIONS) == "paper":
        return math.ceil(256 * (vc_dimension + math.log(3 / chance)) / error**2)

    def enough(n: int) -> bool:
        spread = uniform_deviation(n, vc_dimension, chance / 2).value
        return relabel_error(n, vc_dimension, chance / 2) + 2 * spread <= error

    return smallest_integer(enough)


def disagreement_records(
    alpha: float, beta: float, vc_dimension: int, *, calibration: str = "tight"
) -> int:
    """Return n at which all empirical disagreements of two members are within alpha of the true.

    Source: Nandi and Bassily 2020, Claim 3.6: 50 (d log(1 / alpha) + log(1 / beta)) / alpha^2,
    "paper". Corrected ("tight"): its proof ends at 2 (e n / d)^(2 d) e^(-n alpha^2 / 8) <= beta,
    which the printed n misses for d well above log(1 / beta) unless alpha is below about .003; ours
    is the smallest n with 4 growth(2 n)^2 e^(-n alpha^2 / 8) <= beta (Vapnik and Chervonenkis 1971
    for the class of differences).
    """
    error, chance = check_probability("alpha", alpha), check_probability("beta", beta)
    if check_choice("calibration", calibration, CALIBRATIONS) == "paper":
        return math.ceil(
            50 * (vc_dimension * math.log(1 / error) + math.log(1 / chance)) / error**2
        )
    return smallest_integer(
        lambda n: math.log(4 / chance) + 2 * log_growth(vc_dimension, 2 * n) <= n * error**2 / 8
    )


def queries_needed(
    alpha: float, beta: float, *, best_error: float = 0.0, calibration: str = "tight"
) -> int:
    """Return the number m of queries from which on (alpha, beta)-accuracy on them can be promised.

    Source: Nandi and Bassily 2020, Lemma 3.5: 8 log(1 / (alpha beta)) / alpha, "paper". Corrected
    ("tight"): the rate of mistakes of the best member itself, Binomial(m, gamma) / m, must stay
    within alpha / 2 of gamma; by Chernoff's bound in relative entropy m = log(1 / beta) / kl(gamma
    + alpha / 2, gamma), about 8 gamma log(1 / beta) / alpha^2 for gamma far above alpha. The
    printed proof overlooks this: its Chernoff bound holds for gamma of the order of alpha.

    Parameters
    ----------
    alpha, beta : float
    best_error : float
        gamma in [0, 1/2). "paper" does not read it.
    calibration : {"tight", "paper"}
    """
    error, chance = check_probability("alpha", alpha), check_probability("beta", beta)
    gamma = check_error("best_error", best_error)
    if check_choice("calibration", calibration, CALIBRATIONS) == "paper":
        return math.ceil(8 * math.log(1 / (error * chance)) / error)
    if gamma == 0:
        return 1
    above = gamma + error / 2
    rate = above * math.log(above / gamma)
    if above < 1:
        rate += (1 - above) * math.log((1 - above) / (1 - gamma))
    return max(1, math.ceil(math.log(1 / chance) / rate))


def labeler_queries(alpha: float, beta: float, best_error: float) -> int:
    """Return the least m of `labeler_sizes`: `queries_needed` at an error of gamma + alpha / 4."""
    level = min(
        check_error("best_error", best_error) + check_probability("alpha", alpha) / 4, 0.4999
    )
    return queries_needed(alpha, check_probability("beta", beta) / 5, best_error=level)


@dataclass(frozen=True)
class LabelerSizes:
    """What the agnostic labeler needs to answer m queries with accuracy (alpha, beta).

    Attributes
    ----------
    inner : PrivacyBudget
        What the stream on the relabelled sample keeps.
    rate : float
        Share of the records that is sampled.
    max_unstable, n_teachers, shard : int
        T, k and the records of one teacher.
    n_sampled, n_records : int
        n' and n.

    Examples
    --------
    `labeler_sizes` computes them; here are some by hand.

    >>> inner = sb.PrivacyBudget(epsilon=1.0, delta=1e-6)
    >>> sizes = sb.theory.LabelerSizes(
    ...     inner, 0.1, max_unstable=20, n_teachers=900, shard=50, n_sampled=45000, n_records=450000
    ... )
    >>> sizes.n_sampled == sizes.n_teachers * sizes.shard
    True
    """

    inner: PrivacyBudget
    rate: float
    max_unstable: int
    n_teachers: int
    shard: int
    n_sampled: int
    n_records: int


def labeler_sizes(
    n_queries: int,
    alpha: float,
    beta: float,
    budget: PrivacyBudget,
    vc_dimension: int,
    *,
    best_error: float = 0.0,
) -> LabelerSizes:
    """Return what A_AgPrivCl needs with tight calibration for a rate of mistakes of gamma + alpha.

    Source: Nandi and Bassily 2020, Theorem 3.3, with every step of its proof at its exact or best
    known constant (item 6): alpha / 4 for teachers that leave the relabelling, alpha / 4 for the
    relabelling, alpha / 2 for the queries; beta / 5 for each of shards, mistakes, noise,
    relabelling, queries. The sample is split before any resampling. Nothing is hidden; replace-one.

    Parameters
    ----------
    n_queries : int
    alpha, beta : float
    budget : PrivacyBudget
        With delta above 0.
    vc_dimension : int
    best_error : float
        gamma in [0, 1/2); only the queries' own deviation reads it.

    Raises
    ------
    ParameterError
        If a number is out of its range, or there are too few queries (`queries_needed`).
    """
    error, fifth = check_probability("alpha", alpha), check_probability("beta", beta) / 5
    m = check_at_least(
        "n_queries", n_queries, labeler_queries(alpha, beta, best_error), "Theorem 3.3, made right,"
    )

    def unstable(wrong: float) -> int:
        return cutoff(m, wrong, fifth, n_teachers=_SUPPOSED_TEACHERS)

    wrong = largest_error(lambda a: unstable(a) <= error / 4 * m)
    if not wrong > 0:
        raise ParameterError(
            Parameter("n_queries"),
            f" is {m}, so that one abstention breaks alpha / 4; use more, or a larger alpha.",
        )
    # from the outside in: the whole budget fixes that of the stream, the stream the number of
    # teachers, these the size of a shard, and all of them the sample and the records behind it
    epsilon, delta = check_budget(budget)
    inside = stream_budget(budget, "replace-one", 1.0).epsilon
    rate = sampling_rate(epsilon, inside)
    inner = PrivacyBudget(
        inside, min(0.5, delta / rate / math.exp(relabelling_loss("replace-one", 1.0)))
    )
    t = unstable(wrong)
    k = teachers_needed(tight_stream(inner.epsilon, inner.delta, t), m, fifth)
    shard = pair_cover_records(wrong, fifth / k, vc_dimension)
    sampled = max(k * shard, relabel_records(error / 4, fifth, vc_dimension))
    return LabelerSizes(inner, rate, t, k, shard, sampled, math.ceil(sampled / rate))


def printed_labeler_records(
    n_queries: int, alpha: float, beta: float, budget: PrivacyBudget, vc_dimension: int
) -> int:
    """Return n of Nandi and Bassily 2020, Theorem 3.3, with its proof's constants, 56 and 8000.

    (56 / epsilon) 8000 (d log(1 / alpha) + log(m / beta)) log(2 / delta)^1.5 log(m alpha /
    min(delta, beta / 2)) max(1, sqrt(m) alpha^1.5) / alpha^2, for epsilon up to 1 and m >= 8 log(1
    / (alpha beta)) / alpha.

    Raises
    ------
    ParameterError
        Outside this range.
    """
    error, chance = check_probability("alpha", alpha), check_probability("beta", beta)
    whole, delta = check_budget(budget)
    epsilon, d = (
        check_epsilon_below(whole, 1.0, "Theorem 3.3"),
        check_count("vc_dimension", vc_dimension),
    )
    m = check_at_least(
        "n_queries", n_queries, queries_needed(error, chance, calibration="paper"), "Theorem 3.3"
    )
    size = d * math.log(1 / error) + math.log(m / chance)
    logs = math.pow(math.log(2 / delta), 1.5) * math.log(m * error / min(delta, chance / 2))
    last = max(1.0, math.sqrt(m) * math.pow(error, 1.5))
    return math.ceil(PRINTED_DIVISOR * PRINTED_FACTOR / epsilon * size * logs * last / error**2)
