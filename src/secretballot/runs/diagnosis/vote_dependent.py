"""What a run would seem to cost by its votes: the analysis of the PATE papers, for the curator's
eyes alone.

Papernot et al. 2017 (arXiv:1610.05755, Theorem 3 and Lemma 4) and 2018 (arXiv:1802.08908, Theorem
6, Propositions 7 and 10) bound the privacy loss of a query by how clear its vote is. The sum over
all queries may be smaller than any price that holds for all votes, and it is itself computed from
the votes without noise: publishing it, or stopping by it, tells something that nobody paid for. It
also bounds one direction alone, from these votes to a neighbour's. So it is sealed here, beside the
price of the same run that may be published.
"""

import math
from collections.abc import Iterable

import numpy as np
from scipy.special import log_ndtr, ndtr

from secretballot._typing import FloatArray, IntArray
from secretballot._validation import check_instance, check_probability
from secretballot.aggregation import (
    Aggregator,
    ConfidentAggregator,
    GaussianAggregator,
    InteractiveAggregator,
    LaplaceAggregator,
)
from secretballot.ensemble.diagnostics.sealed_result import Diagnosis
from secretballot.ensemble.votes import VoteCounts
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.privacy.accounting import epsilon_upper, price
from secretballot.privacy.accounting.renyi import ORDERS, renyi_epsilon

__all__ = [
    "KIND",
    "diagnose_vote_dependent_price",
    "gaussian_curve",
    "laplace_curve",
    "log_wrong_chance",
]

KIND = "price that depends on the votes"
_ORDERS = np.array(ORDERS)
_BLOCK = 2000  # queries at a time


def diagnose_vote_dependent_price(
    counts: VoteCounts, aggregator: Aggregator, *, delta: float | None = None
) -> Diagnosis:
    """Return what answering these queries would seem to cost by their votes, sealed.

    Parameters
    ----------
    counts : VoteCounts
        Votes on the queries, of shape (n_queries, n_classes), all of which are asked in their
        order; secret.
    aggregator : GaussianAggregator, ConfidentAggregator or LaplaceAggregator
        Recipe and noise. Of confident voting every query counts with its chance of being answered,
        as in the paper; what was really answered may be more.
    delta : float, optional
        At which epsilon is stated; the aggregator's own by default.

    Returns
    -------
    Diagnosis
        ``epsilon``: by the papers' conversion; ``epsilon_improved``: by that of Canonne, Kamath,
        Steinke 2020; ``order``: at which the first is least; ``divergences``: at all of ``orders``;
        ``answered``: expected answers; ``price``: of the same run for any votes, which alone may be
        published; ``price_of_answers``: for any votes with the expected number of answers, which
        may not.

    Raises
    ------
    ParameterError
        If the aggregator is another one, or has no delta above 0.
    DataError
        If the votes do not fit it.

    Privacy
    -------
    Sensitivity : one unit may move all of it; nothing was added to hide that, and nothing was paid.
        It is no promise, and no certificate takes it. What may be published is the price of the
        aggregator, which holds for any votes.

    Examples
    --------
    >>> from secretballot.runs.diagnosis.vote_dependent import diagnose_vote_dependent_price
    >>> votes = sb.VoteCounts.from_counts([[248, 1, 1], [120, 110, 20], [0, 250, 0]])
    >>> aggregator = sb.GaussianAggregator(40.0, n_queries=3, n_classes=3, delta=1e-5)
    >>> found = diagnose_vote_dependent_price(votes, aggregator)
    >>> found.kind, repr(found)[:14]
    ('price that depends on the votes', 'NOT RELEASABLE')
    >>> found.values()["epsilon_improved"] < found.values()["price"]
    True
    """
    check_instance("counts", counts, VoteCounts)
    check_instance("aggregator", aggregator, Aggregator)
    target = aggregator.budget.delta if delta is None else delta
    if target == 0:
        raise ParameterError(
            Parameter("delta"), " is 0; a Renyi curve says something at a delta above 0 only."
        )
    target = check_probability("delta", target)
    opened = counts.open_at_the_door()
    if counts.n_classes != aggregator.n_classes or len(opened) > aggregator.n_queries:
        raise DataError(
            f"The votes are on {counts.n_queries} queries of {counts.n_classes} classes, and the"
            f" aggregator is for {aggregator.n_queries} of {aggregator.n_classes}; give those that"
            " it answers."
        )
    if isinstance(aggregator, InteractiveAggregator):
        raise ParameterError(
            Parameter("aggregator"),
            " is interactive, and what it costs by the votes depends on a student; look at a"
            " ConfidentAggregator.",
        )
    passing = np.ones(len(opened))
    if isinstance(aggregator, ConfidentAggregator):
        curve, passing = _confident_curve(opened, aggregator)
    elif isinstance(aggregator, GaussianAggregator):
        curve = _gaussian_total(opened, aggregator.sigma, passing)
    elif isinstance(aggregator, LaplaceAggregator):
        curve = _laplace_total(opened, aggregator.scale)
    else:
        raise ParameterError(
            Parameter("aggregator"),
            f" is {aggregator.name}, and the papers' analysis is of Gaussian, confident and Laplace"
            " voting; give one of these.",
        )
    # the papers' conversion, order by order: D + log(1 / delta) / (order - 1)
    classic = curve - math.log(target) / (_ORDERS - 1)
    best = int(np.argmin(classic))
    by_order = dict(zip(ORDERS, curve.tolist(), strict=True))
    # the papers have thresholds above the number of teachers, at which nothing is released here
    events = aggregator.events(max(counts.n_teachers, getattr(aggregator, "threshold", 1)))
    found = {
        "epsilon": float(classic[best]),
        "epsilon_improved": renyi_epsilon(by_order.__getitem__, target),
        "order": float(_ORDERS[best]),
        "orders": _ORDERS,
        "divergences": curve,
        "answered": float(passing.sum()),
        "delta": target,
        "price": price(events, delta=target).epsilon,
        "price_of_answers": _price_of_answers(aggregator, len(opened), passing, target),
    }
    sizes = {"queries": counts.n_queries, "teachers": counts.n_teachers}
    return Diagnosis(KIND, sizes, found)


def _price_of_answers(
    aggregator: Aggregator, n_queries: int, passing: FloatArray, delta: float
) -> float:
    """Return the price for any votes of what is expected to be answered, a number that is
    private."""
    answered = max(1, round(float(passing.sum())))
    terms = {**aggregator.describe(), "n_queries": n_queries}
    if isinstance(aggregator, ConfidentAggregator):
        terms["max_answers"] = min(answered, n_queries)
    other = type(aggregator).from_description(terms)
    teachers = terms.get("n_teachers") or max(2, terms.get("threshold", 2))
    return epsilon_upper(other.events(teachers), delta)


def log_wrong_chance(counts: IntArray, sigma: float) -> FloatArray:
    """Return the logarithm of a bound on the chance that a noisy label is not the plurality.

    Two classes: the chance itself, of noise on one count. More: the sum over the other classes
    (Papernot et al. 2018, Proposition 7). Continuous noise stands in for the discrete one.

    Parameters
    ----------
    counts : ndarray of int64, shape (n_queries, n_classes)
    sigma : float
        In votes.

    Returns
    -------
    ndarray of shape (n_queries,)
    """
    ordered = np.sort(counts, axis=1)[:, ::-1].astype(np.float64)
    leads = ordered[:, :1] - ordered[:, 1:]
    # two classes: noise on one count alone, half the lead; more: the difference of two noises
    scale = 2 * sigma if counts.shape[1] == 2 else math.sqrt(2) * sigma
    terms = log_ndtr(-leads / scale)
    top = terms.max(axis=1, keepdims=True)
    total: FloatArray = top[:, 0] + np.log(np.exp(terms - top).sum(axis=1))
    return np.minimum(total, math.log(1 - 1 / counts.shape[1]))


def gaussian_curve(log_q: FloatArray, sigma: float) -> FloatArray:
    """Return bounds on the Renyi divergence at all of `ORDERS` by the chance of another outcome.

    Papernot et al. 2018, Theorem 6 with Proposition 10, for noise whose divergence of order a is at
    most a / sigma^2; sqrt(2) times the noise on a count where one count alone moves.

    Parameters
    ----------
    log_q : ndarray of shape (n,)
        Logarithms of bounds on the chance that the outcome is not the likeliest one.
    sigma : float

    Returns
    -------
    ndarray of shape (n, len(ORDERS))
    """
    variance = sigma**2
    plain = np.broadcast_to(_ORDERS / variance, (len(log_q), len(_ORDERS)))
    log_q = np.minimum(log_q, -1e-300)[:, None]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        high2 = sigma * np.sqrt(-log_q)
        high1 = high2 + 1
        loss1, loss2 = high1 / variance, high2 / variance
        # where the bound grows with q, and its first factor is positive
        applies = (high1 > _ORDERS) & (high2 > 1) & (-log_q > loss2)
        margin = high2 * (np.log1p(1 / (high1 - 1)) + np.log1p(1 / (high2 - 1)))
        applies &= log_q <= (high2 - 1) * loss2 - margin
        log_right = _log_one_less_exp(log_q)
        first = log_right - _log_one_less_exp((log_q + loss2) * (1 - 1 / high2))
        second = loss1 - log_q / (high1 - 1)
        steps = _ORDERS - 1
        both = np.logaddexp(log_right + steps * first, log_q + steps * second) / steps
    # a divergence is at least 0, where the logarithms of numbers near 1 may not be
    bounded: FloatArray = np.where(applies, np.minimum(plain, np.maximum(both, 0.0)), plain)
    return np.where(np.isneginf(log_q), 0.0, bounded)


def _log_one_less_exp(value: FloatArray) -> FloatArray:
    """Return log(1 - e^value) for negative values, digits kept at both ends."""
    small = -np.log(2.0)
    return np.where(
        value > small, np.log(-np.expm1(np.minimum(value, -1e-300))), np.log1p(-np.exp(value))
    )


def _gaussian_total(counts: IntArray, sigma: float, weights: FloatArray) -> FloatArray:
    """Return the sum over queries, each with its weight, shape (len(ORDERS),)."""
    effective = math.sqrt(2) * sigma if counts.shape[1] == 2 else sigma
    log_q = log_wrong_chance(counts, sigma)
    return _weighted_sum(log_q, effective, weights)


def _weighted_sum(log_q: FloatArray, sigma: float, weights: FloatArray) -> FloatArray:
    total = np.zeros(len(_ORDERS))
    for start in _block_starts(len(log_q)):
        part = slice(start, start + _BLOCK)
        total += weights[part] @ gaussian_curve(log_q[part], sigma)
    return total


def _block_starts(n: int) -> Iterable[int]:
    return range(0, n, _BLOCK)


def _confident_curve(
    counts: IntArray, aggregator: ConfidentAggregator
) -> tuple[FloatArray, FloatArray]:
    """Return the curve of a run, and the chance of each query to be answered."""
    away = (counts.max(axis=1) - aggregator.threshold) / aggregator.threshold_sigma
    # whichever answer about the threshold is the less likely one; the top moves by one vote
    log_q = np.minimum(log_ndtr(away), log_ndtr(-away))
    ones = np.ones(len(counts))
    threshold = _weighted_sum(log_q, math.sqrt(2) * aggregator.threshold_sigma, ones)
    passing: FloatArray = ndtr(away)
    return threshold + _gaussian_total(counts, aggregator.sigma, passing), passing


def laplace_curve(counts: IntArray, scale: float) -> FloatArray:
    """Return bounds on the Renyi divergence at all of `ORDERS` under Laplace noise.

    Papernot et al. 2017, Theorem 3 with Lemma 4, and Theorem 2 where it says less; a moment of
    order l there is l times a divergence of order l + 1 here.

    Parameters
    ----------
    counts : ndarray of int64, shape (n_queries, n_classes)
    scale : float
        In votes; the papers' 1 / gamma.

    Returns
    -------
    ndarray of shape (n_queries, len(ORDERS))
    """
    gamma, steps = 1 / scale, _ORDERS - 1
    ordered = np.sort(counts, axis=1)[:, ::-1].astype(np.float64)
    leads = gamma * (ordered[:, :1] - ordered[:, 1:])
    wrong = ((2 + leads) / (4 * np.exp(leads))).sum(axis=1)
    q = np.minimum(1 - 1 / counts.shape[1], wrong)[:, None]
    loss = 2 * gamma
    plain = np.minimum(loss * steps, 2 * gamma**2 * steps * (steps + 1))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        applies = q < math.expm1(loss) / math.expm1(2 * loss)
        right = np.log1p(-q) + steps * (np.log1p(-q) - np.log1p(-math.exp(loss) * q))
        moment = np.logaddexp(right, np.log(q) + loss * steps)
    bounded = np.where(applies, np.minimum(plain, np.maximum(moment, 0.0)), plain)
    curve: FloatArray = bounded / steps
    return curve


def _laplace_total(counts: IntArray, scale: float) -> FloatArray:
    total = np.zeros(len(_ORDERS))
    for start in _block_starts(len(counts)):
        total += laplace_curve(counts[start : start + _BLOCK], scale).sum(axis=0)
    return total
