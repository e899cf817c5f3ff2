"""Liu et al. 2021, section 3.2: with high margins, K teachers vote as infinitely many would."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binom

from secretballot._validation import (
    check_choice,
    check_finite,
    check_positive,
    check_probability,
    shown,
)
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.privacy.accounting import PrivacyBudget
from secretballot.theory.learning import uniform_deviation
from secretballot.theory.passive import printed_scale, student_excess
from secretballot.theory.ranges import (
    check_budget,
    check_count,
    check_counts,
    check_epsilon_below,
    check_share,
    check_tau,
)
from secretballot.theory.results import RiskBound
from secretballot.theory.stability import CALIBRATIONS

__all__ = [
    "HighMarginSizes",
    "high_margin_excess",
    "high_margin_share",
    "high_margin_sizes",
    "high_margin_voting_excess",
    "tsybakov_low_margin",
]


def high_margin_share(expected_margins: ArrayLike, margin: float) -> float:
    """Return the least nu at which the points have (nu, margin)-approximate high margin.

    Source: Liu et al. 2021, Definition 10. Corrected (item 9): nu bounds P[Delta_n(x) <= Delta],
    not the printed P[Delta_n(x) > Delta].

    Parameters
    ----------
    expected_margins : array of shape (m,)
        Delta_n(x) = |E[h(x)] - 1/2| of the points, each in [0, 1/2].
    margin : float
        Delta, in [0, 1/2).

    Raises
    ------
    DataError
        If there is no point, or a margin is outside of [0, 1/2].
    """
    level = _checked_margin(margin, least=0.0)
    try:
        values = np.asarray(expected_margins, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise DataError(
            Parameter("expected_margins"), " must be numbers from 0 to 0.5, one for each point."
        ) from None
    if values.ndim != 1 or values.size == 0 or not ((values >= 0) & (values <= 0.5)).all():
        raise DataError(
            Parameter("expected_margins"),
            " must be one number from 0 to 0.5 for each of at least one point.",
        )
    return float(np.mean(values <= level))


def _checked_margin(margin: float, least: float = 1e-12) -> float:
    level = check_finite("margin", margin)
    if not least <= level < 0.5:
        raise ParameterError(
            Parameter("margin"),
            f" is {shown(margin)}; an expected margin lies above 0 and below 0.5.",
        )
    return level


@dataclass(frozen=True)
class HighMarginSizes:
    """T and K at which all but T labels are those of infinitely many teachers.

    Attributes
    ----------
    max_unstable : int
        T.
    n_teachers : int
        K.
    vacuous : bool
        True if T reaches m.

    Examples
    --------
    >>> budget = sb.PrivacyBudget(epsilon=1.0, delta=1e-6)
    >>> sb.theory.high_margin_sizes(1000, 0.01, 0.3, budget, beta=0.05).max_unstable
    18
    """

    max_unstable: int
    n_teachers: int
    vacuous: bool


def high_margin_sizes(
    n_queries: int,
    nu: float,
    margin: float,
    budget: PrivacyBudget,
    beta: float,
    *,
    calibration: str = "tight",
) -> HighMarginSizes:
    """Return T and K at which Algorithm 2 answers all but T of m queries as h_inf^agg would.

    Source: Liu et al. 2021, Proposition 11. "paper": T = nu m + sqrt(2 nu m log(3 / beta)) + (2/3)
    log(3 / beta), K = max(2 log(3 m / beta) / Delta^2, 3 lambda (log(4 m / delta) + log(3 m /
    beta)) / Delta), without the square, which is a footnote mark. Corrected ("tight", items 9 and
    2d): the stream stops at the T-th abstention, so T is one more than the number of low margins,
    by the exact binomial quantile at beta / 3; the second term of K is (6 lambda (log(4 m / delta)
    + log(3 m / beta)) + 2) / Delta, since stability is half the margin less 1. Nothing is hidden.
    The noise is the printed one.

    Parameters
    ----------
    n_queries : int
        m, independent points.
    nu : float
        Share of points with an expected margin of at most `margin`, in [0, 1].
    margin : float
        Delta in (0, 1/2).
    budget : PrivacyBudget
        With delta above 0.
    beta : float
        Failure probability (the paper's gamma).
    calibration : {"tight", "paper"}
    """
    m, share, level = (
        check_count("n_queries", n_queries),
        check_share("nu", nu),
        _checked_margin(margin),
    )
    third, delta = check_probability("beta", beta) / 3, check_budget(budget)[1]
    # a third of beta each: low margins, teachers that stray from the expected vote, noise
    logs = math.log(4 * m / delta) + math.log(m / third)
    if check_choice("calibration", calibration, CALIBRATIONS) == "paper":
        log = math.log(1 / third)
        unstable = max(1, math.ceil(share * m + math.sqrt(2 * share * m * log) + 2 * log / 3))
        second = 3 * printed_scale(unstable, budget) * logs
    else:
        unstable = int(binom.isf(third, m, share)) + 1
        second = 6 * printed_scale(unstable, budget) * logs + 2
    teachers = max(2 * math.log(m / third) / level**2, second / level)
    return HighMarginSizes(unstable, math.ceil(teachers), not unstable < m)


def high_margin_excess(
    max_unstable: int,
    n_public: int,
    vc_dimension: int,
    budget: PrivacyBudget,
    beta: float,
    *,
    approximation: float,
) -> RiskBound:
    """Return the error of the student of H beyond that of h_inf^agg, in the agnostic case.

    Source: Liu et al. 2021, Theorem 12: approximation + 2 T / m + O~(sqrt(d / m)), for epsilon up
    to log(2 / delta), with T and K of `high_margin_sizes`; the last term is twice
    `uniform_deviation`, once for each side. Fails with probability at most 2 beta. Nothing is
    hidden.

    Parameters
    ----------
    max_unstable, n_public, vc_dimension : int
        T, m, d.
    budget : PrivacyBudget
    beta : float
    approximation : float
        Least disagreement of a member of H with h_inf^agg, in [0, 1].

    Raises
    ------
    ParameterError
        If epsilon exceeds log(2 / delta), where the theorem is not stated.
    """
    _refuse_epsilon_beyond_theorem_12(budget)
    t, m = check_count("max_unstable", max_unstable, minimum=0), check_count("n_public", n_public)
    spread = uniform_deviation(m, vc_dimension, beta).value
    return RiskBound(check_share("approximation", approximation) + 2 * t / m + 2 * spread)


def high_margin_voting_excess(
    max_unstable: int,
    n_public: int,
    vc_dimension: int,
    n_teachers: int,
    budget: PrivacyBudget,
    beta: float,
) -> RiskBound:
    """Return the error of a student in Vote_K(H) beyond that of h_inf^agg.

    It is `student_excess` with K voters.

    Source: Liu et al. 2021, Theorem 13, for epsilon up to log(2 / delta). It takes h_inf^agg for a
    member of Vote_K(H), which holds up to the sampling of K teachers. Vacuous for m below about 20
    K d log(m / (K d)), hence for most K of `high_margin_sizes`.
    """
    _refuse_epsilon_beyond_theorem_12(budget)
    return student_excess(max_unstable, n_public, vc_dimension, beta, n_voters=n_teachers)


def _refuse_epsilon_beyond_theorem_12(budget: PrivacyBudget) -> None:
    epsilon, delta = check_budget(budget)
    limit = math.log(2 / delta)
    check_epsilon_below(epsilon, limit, "Theorem 12 or 13 at this delta")


def tsybakov_low_margin(
    n_records: int, n_teachers: int, vc_dimension: int, tau: float, *, constant: float = 1.0
) -> RiskBound:
    """Return a bound on the share of points with a margin of at most 1/6, under Tsybakov noise.

    Source: Liu et al. 2021, Remark 14: constant (d K / n)^(tau / (2 - tau)). Hidden: `constant` and
    logarithms. Vacuous at tau = 0 or K d >= n.
    """
    n, k, d = check_counts(n_records=n_records, n_teachers=n_teachers, vc_dimension=vc_dimension)
    t = check_tau(tau)
    return RiskBound(check_positive("constant", constant) * math.pow(d * k / n, t / (2 - t)))
