"""Learning bounds without privacy, which every theorem about private voting stands on.

Two forms throughout. `"paper"`: as Liu et al. 2021 print them in Appendix D, where the logarithm of
the growth function is d, or d log n. `"growth"`: with the logarithm itself, by Sauer's sum, and the
constants of the classical proofs; these are theorems as they stand.
"""

import math

import numpy as np
from scipy.special import logsumexp

from secretballot._validation import check_choice, check_positive, check_probability
from secretballot.exceptions import Parameter, ParameterError
from secretballot.theory.ranges import check_count, check_share, check_tau
from secretballot.theory.results import RiskBound
from secretballot.theory.search import smallest_integer

__all__ = [
    "agnostic_records",
    "capacity",
    "consistent_records",
    "disagreement_bound",
    "log_growth",
    "pair_cover_failure",
    "pair_cover_records",
    "tsybakov_excess",
    "uniform_bound",
    "uniform_deviation",
]

FORMS = ("growth", "paper")


def log_growth(vc_dimension: int, n_points: int) -> float:
    """Return log of Sauer's sum, binomial(n, 0) + ... + binomial(n, d).

    A class of VC dimension d has at most so many labellings of n points.

    Parameters
    ----------
    vc_dimension : int
        d, at least 1.
    n_points : int
        n, at least 1. For n <= d it is n log 2.
    """
    d, n = check_count("vc_dimension", vc_dimension), check_count("n_points", n_points)
    if n <= d:
        return n * math.log(2)
    i = np.arange(1, d + 1, dtype=np.float64)
    return float(logsumexp(np.concatenate([[0.0], np.cumsum(np.log((n - i + 1) / i))])))


def capacity(vc_dimension: int, n_records: int, beta: float, form: str = "growth") -> float:
    """Return what stands over n in uniform bounds: log of the growth at 2 n, plus log(4 / beta).

    Parameters
    ----------
    vc_dimension, n_records : int
    beta : float
        Failure probability.
    form : {"growth", "paper"}
        "paper" is d + log(4 / beta), printed in Lemma D.4; no multiple of it with the printed
        factors 2 and 4 holds for all classes, since the growth function's log n is missing.
    """
    d, n, chance = (
        check_count("vc_dimension", vc_dimension),
        check_count("n_records", n_records),
        _checked_beta(beta),
    )
    if check_choice("form", form, FORMS) == "paper":
        return d + math.log(4 / chance)
    return log_growth(d, 2 * n) + math.log(4 / chance)


def disagreement_bound(share: float, n_records: int, beta: float) -> RiskBound:
    """Return an upper bound on the disagreement of a fixed classifier, from its share on n points.

    Source: Liu et al. 2021, Lemma D.3 (Bernstein), solved for Dis: Dis <= share + sqrt(2 Dis L / n)
    + 2 L / (3 n), L = log(1 / beta). Nothing is hidden. Vacuous for n below about 2 L.

    Parameters
    ----------
    share : float
        Empirical disagreement, in [0, 1].
    n_records : int
    beta : float
        Failure probability.
    """
    seen, n = check_share("share", share), check_count("n_records", n_records)
    log = math.log(1 / _checked_beta(beta)) / n
    root = (math.sqrt(2 * log) + math.sqrt(2 * log + 4 * (seen + 2 * log / 3))) / 2
    return RiskBound(root * root)


def uniform_bound(
    share: float, n_records: int, vc_dimension: int, beta: float, form: str = "growth"
) -> RiskBound:
    """Return an upper bound on the disagreement of all members at once, from the share on n points.

    Source: Liu et al. 2021, Lemma D.4, first statement: share + 2 sqrt(share c / n) + 4 c / n with
    c of `capacity`. Corrected: the printed c = d + log(4 / beta) drops the log n of the growth
    function and fails for large d and n (`tests/theory/test_learning.py` has a class that breaks
    it); the default has it. Vacuous for n below about 4 c.

    Parameters
    ----------
    share : float
        Empirical disagreement of the member, in [0, 1].
    n_records, vc_dimension : int
    beta : float
        Failure probability.
    form : {"growth", "paper"}
    """
    seen = check_share("share", share)
    over = capacity(vc_dimension, n_records, beta, form) / n_records
    return RiskBound(seen + 2 * math.sqrt(seen * over) + 4 * over)


def uniform_deviation(n_records: int, vc_dimension: int, beta: float) -> RiskBound:
    """Return how far the error of any member lies from its empirical error, on either side.

    Source: Vapnik and Chervonenkis 1971, sqrt(8 (log growth(2 n) + log(4 / beta)) / n); what LZCW
    write as O~(sqrt(d / m)) in Theorems 12 and C.3. Vacuous for n below about 8 times the
    logarithm.
    """
    return RiskBound(math.sqrt(8 * capacity(vc_dimension, n_records, beta) / n_records))


def consistent_records(alpha: float, beta: float, vc_dimension: int, form: str = "growth") -> int:
    """Return how many records make every hypothesis without a mistake on them alpha-accurate.

    Source: "growth": Blumer et al. 1989, the smallest n with 2 growth(2 n) 2^(-alpha n / 2) <=
    beta. "paper": Liu et al. 2021, Lemma D.5 with no approximation error, the smallest n with 4 (d
    log n + log(4 / beta)) / n <= alpha. Realizable case only.

    Parameters
    ----------
    alpha, beta : float
        Accuracy and failure probability, in (0, 1).
    vc_dimension : int
    form : {"growth", "paper"}
    """
    error, chance, d = (
        _checked_alpha(alpha),
        _checked_beta(beta),
        check_count("vc_dimension", vc_dimension),
    )
    if check_choice("form", form, FORMS) == "paper":
        log = math.log(4 / chance)
        # d log n / n falls from n = e on
        return smallest_integer(lambda n: 4 * (d * math.log(n) + log) <= error * n, 3)
    return smallest_integer(
        lambda n: math.log(2 / chance) + log_growth(d, 2 * n) <= error * n * math.log(2) / 2
    )


def agnostic_records(alpha: float, beta: float, vc_dimension: int) -> int:
    """Return how many records make empirical risk minimisation alpha-accurate beyond the best.

    Source: `uniform_deviation` at alpha / 2. The theorems of Bassily, Thakurta, Thakkar 2018 write
    O((d + log(1 / beta)) / alpha^2).
    """
    error, chance, d = (
        _checked_alpha(alpha),
        _checked_beta(beta),
        check_count("vc_dimension", vc_dimension),
    )
    return smallest_integer(lambda n: uniform_deviation(n, d, chance).value <= error / 2)


def tsybakov_excess(
    n_records: int,
    vc_dimension: int,
    beta: float,
    tau: float,
    *,
    eta: float = 1.0,
    constant: float = 1.0,
) -> RiskBound:
    """Return the excess error of empirical risk minimisation under Tsybakov noise.

    Source: Liu et al. 2021, Lemma D.6 (Hanneke 2014): constant (eta (d log(n / d) + log(1 / beta))
    / n)^(1 / (2 - tau)). Hidden: `constant`, universal, not printed. Vacuous for n below about eta
    d log(n / d).

    Parameters
    ----------
    n_records, vc_dimension : int
        n of at least d.
    beta : float
        Failure probability.
    tau : float
        Exponent in [0, 1]: 1 is bounded noise, 0 is no condition.
    eta : float
        Factor of the condition Dis <= eta excess^tau, at least 1.
    constant : float

    Raises
    ------
    ParameterError
        If a number is out of its range.
    """
    n, d = check_count("n_records", n_records), check_count("vc_dimension", vc_dimension)
    # with fewer records than d, log(n / d) is negative
    if not n >= d:
        raise ParameterError(
            Parameter("n_records"), f" is {n}; Lemma D.6 holds from vc_dimension, {d}, on."
        )
    exponent = 1 / (2 - check_tau(tau))
    factor, scale = check_positive("eta", eta), check_positive("constant", constant)
    if not factor >= 1:
        raise ParameterError(
            Parameter("eta"), f" is {eta!r}; the Tsybakov noise condition has an eta of at least 1."
        )
    return RiskBound(
        scale * (factor * (d * math.log(n / d) + math.log(1 / _checked_beta(beta))) / n) ** exponent
    )


def pair_cover_failure(n_points: int, alpha: float, vc_dimension: int) -> float:
    """Return a bound on the chance that members agree on n points but are more than alpha apart.

    Source: Blumer et al. 1989 for the class of differences, whose growth is at most the square of
    the class's (as in Claim 3.6 of Nandi and Bassily 2020): min(1, 2 growth(2 n)^2 2^(-alpha n /
    2)). 1 is vacuous.
    """
    n, error = check_count("n_points", n_points), _checked_alpha(alpha)
    log = math.log(2) * (1 - error * n / 2) + 2 * log_growth(vc_dimension, 2 * n)
    return math.exp(min(0.0, log))


def pair_cover_records(alpha: float, beta: float, vc_dimension: int) -> int:
    """Return the smallest n at which `pair_cover_failure` is at most beta.

    Any hypothesis that agrees with another one on that many points, whichever that is, differs from
    it on at most alpha of the distribution. So labels may come from a hypothesis that was chosen
    with the points in view.
    """
    chance = _checked_beta(beta)
    return smallest_integer(lambda n: pair_cover_failure(n, alpha, vc_dimension) <= chance)


def _checked_alpha(alpha: float) -> float:
    return check_probability("alpha", alpha)


def _checked_beta(beta: float) -> float:
    return check_probability("beta", beta)
