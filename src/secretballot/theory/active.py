"""Liu et al. 2021, section 3.3: how many labels an active student asks for, and what they bring."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from secretballot._validation import check_positive, check_probability
from secretballot.exceptions import Parameter, ParameterError
from secretballot.privacy.accounting import PrivacyBudget
from secretballot.theory.passive import gaussian_teachers, printed_sigma
from secretballot.theory.ranges import (
    check_budget,
    check_count,
    check_counts,
    check_epsilon_below,
    check_error,
    check_tau,
)
from secretballot.theory.results import RiskBound

__all__ = ["ActiveSizes", "active_labels", "active_sizes", "active_stream_excess"]

Coefficient = float | Callable[[float], float]


def _log_at_least_one(value: float) -> float:
    """Return Hanneke's Log, max(1, log)."""
    # what the bounds mean by log, so that no factor vanishes at theta = 1
    return math.log(max(math.e, value))


def _checked_theta(coefficient: Coefficient, level: float) -> float:
    value = coefficient(level) if callable(coefficient) else coefficient
    if not check_positive("theta", value) >= 1:
        raise ParameterError(
            Parameter("theta"), f" is {value:g}; the disagreement coefficient is at least 1."
        )
    return float(value)


def active_labels(
    alpha: float,
    theta: Coefficient,
    vc_dimension: int,
    beta: float,
    *,
    best_error: float = 0.0,
    constant: float = 1.0,
) -> int:
    """Return how many labels disagreement-based active learning asks for.

    Source: Liu et al. 2021, Lemma D.7 (Hanneke 2014): constant theta (e^2 / alpha^2 + log(1 /
    alpha)) (d log theta + log(log(1 / alpha) / beta)), theta at e + alpha, e = best_error. Hidden:
    `constant`, universal. log is max(1, log). Vacuous where it exceeds the labels of a passive
    learner.

    Parameters
    ----------
    alpha : float
        Excess error, in (0, 1).
    theta : float or callable
        Disagreement coefficient, at least 1, as a number or as a function of its level.
    vc_dimension : int
    beta : float
    best_error : float
        Error of the best hypothesis on the labels that are asked for, in [0, 1/2).
    constant : float
    """
    a, chance = check_probability("alpha", alpha), check_probability("beta", beta)
    d, error = check_count("vc_dimension", vc_dimension), check_error("best_error", best_error)
    at, rounds = _checked_theta(theta, error + a), _log_at_least_one(1 / a)
    labels = (
        at
        * (error**2 / a**2 + rounds)
        * (d * _log_at_least_one(at) + _log_at_least_one(rounds / chance))
    )
    return math.ceil(check_positive("constant", constant) * labels)


def active_stream_excess(
    n_public: int,
    theta: Coefficient,
    vc_dimension: int,
    beta: float,
    *,
    best_error: float = 0.0,
    constant: float = 1.0,
) -> RiskBound:
    """Return the excess error of active learning on a stream of m points, with labels at will.

    Source: Liu et al. 2021, Lemma B.8: constant ((d log theta(d / m) + log(1 / beta)) / m + sqrt(e
    (d log theta(e) + log(1 / beta)) / m)), e = best_error. Hidden: `constant`. log of theta is
    max(1, log).
    """
    m, d = check_counts(n_public=n_public, vc_dimension=vc_dimension)
    error, log = (
        check_error("best_error", best_error),
        math.log(1 / check_probability("beta", beta)),
    )
    value = (d * _log_at_least_one(_checked_theta(theta, d / m)) + log) / m
    if error > 0:
        value += math.sqrt(error * (d * _log_at_least_one(_checked_theta(theta, error)) + log) / m)
    return RiskBound(check_positive("constant", constant) * value)


@dataclass(frozen=True)
class ActiveSizes:
    """What Theorem 15 chooses and promises.

    Attributes
    ----------
    n_queries : int
        l, labels that the student may ask for.
    n_teachers : int
        K.
    sigma : float
        Noise, in votes.
    excess : RiskBound
        alpha.

    Examples
    --------
    >>> budget = sb.PrivacyBudget(epsilon=1.0, delta=1e-6)
    >>> sizes = sb.theory.active_sizes(10**9, 10**6, 3, budget, beta=0.05, tau=1.0, theta=2.0)
    >>> sizes.n_queries < 10**6, sizes.vacuous
    (True, False)
    """

    n_queries: int
    n_teachers: int
    sigma: float
    excess: RiskBound

    @property
    def vacuous(self) -> bool:
        """True if the bound says nothing."""
        return self.excess.vacuous


def active_sizes(
    n_records: int,
    n_public: int,
    vc_dimension: int,
    budget: PrivacyBudget,
    beta: float,
    tau: float,
    theta: Coefficient,
    *,
    eta: float = 1.0,
    risk_constant: float = 1.0,
    label_constant: float = 1.0,
) -> ActiveSizes:
    """Return l, K, sigma and the excess error of PATE with active queries under Tsybakov noise.

    Source: Liu et al. 2021, Theorem 15: alpha = C1 max(eta^(2 / (2 - tau)) ((d K log(n / d) + log(2
    K / beta)) / n)^(tau / (2 - tau)), (d log((m + n) / d) + log(2 / beta)) / m); l = C2
    theta(alpha) (1 + log(1 / alpha)) (d log theta(alpha) + log(2 log(1 / alpha) / beta)); K of
    `gaussian_teachers`. The three hang together; returned is the least alpha that is at least what
    its own l and K give. Hidden: C1 = `risk_constant`, C2 = `label_constant`, universal. Vacuous at
    tau = 0.

    Parameters
    ----------
    n_records, n_public, vc_dimension : int
        n, m, d; n of at least d.
    budget : PrivacyBudget
        With delta above 0 and epsilon up to log(1 / delta).
    beta : float
    tau : float
        In [0, 1].
    theta : float or callable
        Disagreement coefficient, at least 1; a function must not rise with its level.
    eta : float
        Factor of the noise condition, at least 1.
    risk_constant, label_constant : float

    Raises
    ------
    ParameterError
        If a number is out of its range, or m is less than l: then all points may be labelled.
    """
    epsilon, delta = check_budget(budget)
    check_epsilon_below(epsilon, math.log(1 / delta), "Theorem 15 at this delta")
    n, m, d = check_counts(n_records=n_records, n_public=n_public, vc_dimension=vc_dimension)
    chance, exponent = check_probability("beta", beta), check_tau(tau)
    c1 = check_positive("risk_constant", risk_constant)
    if not (n >= d and check_positive("eta", eta) >= 1):
        raise ParameterError(
            Parameter("n_records"),
            f" is {n} and eta {eta:g}; Theorem 15 has n of at least d, eta of at least 1.",
        )
    public = (d * math.log((m + n) / d) + math.log(2 / chance)) / m

    c2 = check_positive("label_constant", label_constant)

    def labels(alpha: float) -> int:
        return _labels_of_theorem_15(alpha, theta, d, chance, c2)

    def implied(alpha: float) -> float:
        k = gaussian_teachers(n, labels(alpha), budget)
        size = (d * k * math.log(n / d) + math.log(2 * k / chance)) / n
        private = math.pow(eta, 2 / (2 - exponent)) * math.pow(size, exponent / (2 - exponent))
        return c1 * max(private, public)

    # more labels need more teachers, hence fewer records each and a larger alpha, which needs fewer
    # labels: the least alpha that is consistent with its own l and K
    alpha = _least_fixed(implied)
    excess = RiskBound(alpha if alpha < 1 else implied(_TOP))
    asked = labels(min(alpha, _TOP))
    if not asked <= m:
        raise ParameterError(
            Parameter("n_public"),
            f" is {m}, fewer than the {asked} labels that Theorem 15 asks for; use at least so"
            " many public points, or passive queries.",
        )
    return ActiveSizes(
        asked, gaussian_teachers(n, asked, budget), printed_sigma(asked, budget), excess
    )


def _labels_of_theorem_15(
    alpha: float, theta: Coefficient, vc_dimension: int, beta: float, constant: float
) -> int:
    at, rounds = _checked_theta(theta, alpha), math.log(1 / alpha)
    return math.ceil(
        constant
        * at
        * (1 + rounds)
        * (vc_dimension * _log_at_least_one(at) + _log_at_least_one(2 * rounds / beta))
    )


_TOP = 1 - 1e-9  # alpha stays below 1


def _least_fixed(implied: Callable[[float], float]) -> float:
    """Return the least alpha of at least implied(alpha), to ten digits; 1 if there is none."""
    if not implied(_TOP) <= _TOP:
        return 1.0
    low, high = 0.0, _TOP
    while high - low > 1e-10 * high:
        middle = (low + high) / 2
        if implied(middle) <= middle:
            high = middle
        else:
            low = middle
    return high
