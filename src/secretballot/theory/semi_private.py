"""Alon, Bassily, Moran 2019, and the universal labeler on top of it.

Public points distinguish finitely many members of a class; the exponential mechanism selects one of
them on all records.
"""

import math
from dataclasses import dataclass

from secretballot._validation import (
    NEIGHBOURS,
    check_choice,
    check_finite,
    check_positive,
    check_probability,
)
from secretballot.exceptions import Parameter, ParameterError
from secretballot.privacy.accounting import PrivacyBudget
from secretballot.theory.learning import log_growth, pair_cover_failure, pair_cover_records
from secretballot.theory.ranges import check_budget, check_count, check_epsilon_below, check_share
from secretballot.theory.relabelling import (
    PRINTED_DIVISOR,
    PRINTED_FACTOR,
    labeler_queries,
    labeler_sizes,
)
from secretballot.theory.search import smallest_integer
from secretballot.theory.stability import CALIBRATIONS

__all__ = [
    "BudgetSplit",
    "SemiPrivateSizes",
    "UniversalSizes",
    "choice_error",
    "choice_records",
    "public_points",
    "semi_private_sizes",
    "split_budget",
    "universal_records",
    "universal_sizes",
]

LEAST_REST = 0.01  # of epsilon, for the hypothesis that answers for ever


def public_points(
    alpha: float, beta: float, vc_dimension: int, *, calibration: str = "paper"
) -> int:
    """Return how many public points make their labellings an alpha-cover of the class.

    Source: Alon, Bassily, Moran 2019 through Nandi and Bassily 2020, Algorithm 4, line 1: m_o = 32
    (d log(1 / alpha) + log(1 / beta)) / alpha, "paper". "tight": `pair_cover_records`, the smallest
    number at which the proof's own bound is at most beta; smaller than the printed one for small d
    or alpha, larger for large d at alpha above about .3, where the printed one does not satisfy
    that bound.

    Parameters
    ----------
    alpha, beta : float
    vc_dimension : int
    calibration : {"paper", "tight"}
    """
    error, chance = check_probability("alpha", alpha), check_probability("beta", beta)
    d = check_count("vc_dimension", vc_dimension)
    if check_choice("calibration", calibration, CALIBRATIONS) == "tight":
        return pair_cover_records(error, chance, d)
    return math.ceil(32 * (d * math.log(1 / error) + math.log(1 / chance)) / error)


def choice_error(
    n_records: int,
    epsilon: float,
    log_candidates: float,
    beta: float,
    *,
    neighbours: str = "replace-one",
) -> float:
    """Return by what share of the records the exponential mechanism errs more than the best.

    Source: McSherry and Talwar 2007: (2 / (epsilon n)) (log N + log(1 / beta)) for weights
    exp(-epsilon errors / 2); half of it under "add-remove", where errors only grow and weights are
    exp(-epsilon errors) (item 8). Fails with probability at most beta. Nothing is hidden; 1 or more
    is vacuous.

    Parameters
    ----------
    n_records : int
    epsilon : float
    log_candidates : float
        log N, at least 0.
    beta : float
    neighbours : {"replace-one", "add-remove"}
    """
    n, chance = check_count("n_records", n_records), check_probability("beta", beta)
    log_n = _checked_log_candidates(log_candidates)
    factor = 2 if check_choice("neighbours", neighbours, NEIGHBOURS) == "replace-one" else 1
    return factor * (log_n + math.log(1 / chance)) / (check_positive("epsilon", epsilon) * n)


def choice_records(
    alpha: float,
    beta: float,
    epsilon: float,
    log_candidates: float,
    *,
    neighbours: str = "replace-one",
) -> int:
    """Return n at which private selection among N candidates errs at most alpha more than the best.

    The smallest n with `choice_error` at beta / 3, plus sqrt(log(3 N / beta) / (2 n)) for all
    candidates from below, plus sqrt(log(3 / beta) / (2 n)) for the best from above (Hoeffding), at
    most alpha. Nothing is hidden. Parameters as for `choice_error`.
    """
    error, third = check_probability("alpha", alpha), check_probability("beta", beta) / 3
    log_n = _checked_log_candidates(log_candidates)

    def enough(n: int) -> bool:
        spread = math.sqrt((log_n + math.log(1 / third)) / (2 * n)) + math.sqrt(
            math.log(1 / third) / (2 * n)
        )
        return choice_error(n, epsilon, log_n, third, neighbours=neighbours) + spread <= error

    return smallest_integer(enough)


def _checked_log_candidates(value: float) -> float:
    number = check_finite("log_candidates", value)
    if not number >= 0:
        raise ParameterError(
            Parameter("log_candidates"),
            f" is {number:g}; the logarithm of a number of candidates is at least 0.",
        )
    return number


@dataclass(frozen=True)
class SemiPrivateSizes:
    """Public points, candidates and private records of the semi-private learner.

    Attributes
    ----------
    n_public : int
        m_o.
    log_candidates : float
        Logarithm of the number of labellings, at most.
    n_records : int
        n.

    Examples
    --------
    >>> sizes = sb.theory.semi_private_sizes(0.1, 0.1, epsilon=1.0, vc_dimension=1)
    >>> sizes.n_public < sizes.n_records
    True
    """

    n_public: int
    log_candidates: float
    n_records: int


def semi_private_sizes(
    alpha: float,
    beta: float,
    epsilon: float,
    vc_dimension: int,
    *,
    n_public: int | None = None,
    neighbours: str = "replace-one",
    calibration: str = "tight",
    constant: float = 1.0,
) -> SemiPrivateSizes:
    """Return what A_SSPP needs for an error of gamma + alpha, except with chance beta; no delta.

    Source: Alon, Bassily, Moran 2019, Theorem 4.1 (Nandi and Bassily 2020, B.2). "paper": m_o as
    printed, n = constant (d log(1 / alpha) + log(1 / beta)) max(1 / (epsilon alpha), 1 / alpha^2);
    hidden: `constant`. "tight": `public_points` tight at alpha / 4 and beta / 4, and
    `choice_records` at 3 alpha / 4 and 3 beta / 4 for Sauer's number of labellings.

    Parameters
    ----------
    alpha, beta : float
    epsilon : float
    vc_dimension : int
    n_public : int, optional
        Number of public points at hand, if more than needed: it enters log N only.
    neighbours : {"replace-one", "add-remove"}
    calibration : {"tight", "paper"}
    constant : float
        For "paper".
    """
    error, chance = check_probability("alpha", alpha), check_probability("beta", beta)
    scale = check_positive("constant", constant)
    if check_choice("calibration", calibration, CALIBRATIONS) == "paper":
        m = (
            public_points(error, chance, vc_dimension)
            if n_public is None
            else check_count("n_public", n_public)
        )
        size = vc_dimension * math.log(1 / error) + math.log(1 / chance)
        n = scale * size * max(1 / (check_positive("epsilon", epsilon) * error), 1 / error**2)
        return SemiPrivateSizes(m, log_growth(vc_dimension, m), math.ceil(n))
    # given public points may cover the class better or worse than alpha / 4; what they leave of
    # alpha is for the selection
    cover = (
        error / 4
        if n_public is None
        else _cover_accuracy(check_count("n_public", n_public), error, chance, vc_dimension)
    )
    m = pair_cover_records(cover, chance / 4, vc_dimension) if n_public is None else n_public
    log_n = log_growth(vc_dimension, m)
    n = choice_records(error - cover, 3 * chance / 4, epsilon, log_n, neighbours=neighbours)
    return SemiPrivateSizes(m, log_n, n)


def _cover_accuracy(n_public: int, alpha: float, beta: float, vc_dimension: int) -> float:
    """Return the accuracy of the cover that `n_public` points make, except with chance beta / 4.

    Raises
    ------
    ParameterError
        If it leaves nothing of alpha.
    """
    low, high = 0.0, alpha
    for _ in range(50):
        middle = (low + high) / 2
        if pair_cover_failure(n_public, middle, vc_dimension) <= beta / 4:
            high = middle
        else:
            low = middle
    if not high < alpha:
        raise ParameterError(
            Parameter("n_public"),
            f" is {n_public}; an alpha of {alpha:g} asks for more than"
            f" {pair_cover_records(alpha, beta / 4, vc_dimension)} public points.",
        )
    return high


@dataclass(frozen=True)
class BudgetSplit:
    """Parts of epsilon for the first queries and for the rest; they add up to it.

    Examples
    --------
    >>> split = sb.theory.split_budget(1.0, cost_first=4.0, cost_rest=4.0, share_first=0.5)
    >>> split.first, split.rest
    (0.5, 0.5)
    """

    first: float
    rest: float


def split_budget(
    epsilon: float, cost_first: float, cost_rest: float, share_first: float
) -> BudgetSplit:
    """Return the split of the universal labeler's epsilon with the least mean error over queries.

    Source: item 7, since Nandi and Bassily 2020, Algorithm 4, spends epsilon twice: (2 epsilon,
    delta) by its own parts, where Theorem 4.1 promises (epsilon, delta). With error cost_first / (n
    epsilon_A) on a share f of the queries and cost_rest / (n epsilon_B) on the others, epsilon_B /
    epsilon_A = sqrt(cost_rest (1 - f) / (cost_first f)).

    Parameters
    ----------
    epsilon : float
        Of the whole.
    cost_first, cost_rest : float
        Error times n epsilon of the agnostic labeler and of the semi-private learner; in one unit.
    share_first : float
        f = m_o / m in [0, 1].
    """
    whole, f = check_positive("epsilon", epsilon), check_share("share_first", share_first)
    a = math.sqrt(check_positive("cost_first", cost_first) * f)
    b = math.sqrt(check_positive("cost_rest", cost_rest) * (1 - f))
    return BudgetSplit(whole * a / (a + b), whole * b / (a + b))


@dataclass(frozen=True)
class UniversalSizes:
    """Queries answered by voting, split of the budget, and records of the universal labeler.

    Attributes
    ----------
    n_first : int
        m_o: queries answered by the agnostic labeler, which become the public points.
    split : BudgetSplit
    n_records : int

    Examples
    --------
    `universal_sizes` computes them; here are some by hand.

    >>> split = sb.theory.BudgetSplit(first=0.75, rest=0.25)
    >>> sizes = sb.theory.UniversalSizes(n_first=2000, split=split, n_records=10**6)
    >>> sizes.split.first + sizes.split.rest
    1.0
    """

    n_first: int
    split: BudgetSplit
    n_records: int


def universal_records(alpha: float, beta: float, budget: PrivacyBudget, vc_dimension: int) -> int:
    """Return n of Nandi and Bassily 2020, Theorem 4.1, with the constants 56 and 8000.

    They are those of the proof of Theorem 3.3.

    As Theorem 3.3 at m_o, with max(1, sqrt(d) alpha sqrt(log(1 / alpha))) at the end. Epsilon up to
    1. The promise at this n is (2 epsilon, delta), not the printed (epsilon, delta) (item 7).
    """
    error, chance = check_probability("alpha", alpha), check_probability("beta", beta)
    whole, delta = check_budget(budget)
    epsilon, d = (
        check_epsilon_below(whole, 1.0, "Theorem 4.1"),
        check_count("vc_dimension", vc_dimension),
    )
    m = public_points(error, chance, d)
    size = d * math.log(1 / error) + math.log(m / chance)
    logs = math.pow(math.log(2 / delta), 1.5) * math.log(m * error / min(delta, chance / 2))
    last = max(1.0, math.sqrt(d * math.log(1 / error)) * error)
    return math.ceil(PRINTED_DIVISOR * PRINTED_FACTOR / epsilon * size * logs * last / error**2)


def universal_sizes(
    alpha: float, beta: float, budget: PrivacyBudget, vc_dimension: int, *, best_error: float = 0.0
) -> UniversalSizes:
    """Return what the universal labeler needs with tight calibration, within the whole budget.

    Source: Nandi and Bassily 2020, Theorem 4.1, made right (item 7): epsilon_A + epsilon_B =
    epsilon, delta for the labeler. Both parts must be accurate, so n is the larger of their needs;
    epsilon is split in proportion to their n epsilon, which makes them about equal, but the second
    part gets at least a hundredth: it serves all later queries. beta / 2 for each. The first part
    answers as many queries as its own accuracy needs, at least m_o. The promise for later queries
    is an error of at most gamma + alpha of the hypothesis that answers them.
    """
    half, (whole, delta), share = check_probability("beta", beta) / 2, check_budget(budget), 0.9
    cover = public_points(
        check_probability("alpha", alpha) / 4, half / 4, vc_dimension, calibration="tight"
    )
    first = max(cover, labeler_queries(alpha, half, best_error))
    # once with a guessed split, once with the one that its needs suggest; the better of both
    plans = []
    for _ in range(2):
        split = BudgetSplit(share * whole, (1 - share) * whole)
        voting = labeler_sizes(
            first,
            alpha,
            half,
            PrivacyBudget(split.first, delta),
            vc_dimension,
            best_error=best_error,
        )
        choice = semi_private_sizes(alpha, half, split.rest, vc_dimension, n_public=first)
        plans.append(UniversalSizes(first, split, max(voting.n_records, choice.n_records)))
        need_first, need_rest = voting.n_records * split.first, choice.n_records * split.rest
        share = min(need_first / (need_first + need_rest), 1 - LEAST_REST)
    return min(plans, key=lambda plan: plan.n_records)
