"""Inverses of the prices: the least noise that keeps a promise.

What is returned was priced, never only solved for. The search for Gaussian noise begins at the
analytic Gaussian mechanism of Balle and Wang 2018, Theorem 8 (Dong, Roth and Su 2019); what is
drawn is discrete and is priced as such. Also: the table of chances that answers the
least stable queries within a budget, and the better of it and the sparse vector; how large a secret
sample may be, and what a released estimate of the error level says about a planned stream.
"""

import functools
import math
from collections.abc import Callable
from contextlib import suppress

import numpy as np
from scipy.special import erfcx, ndtr

from secretballot._typing import FloatArray
from secretballot._validation import (
    RELATIONS,
    Relation,
    check_choice,
    check_count,
    check_positive,
    check_probability,
)
from secretballot.accounting.abstention_table import distance_answered, table_weights
from secretballot.core.events import (
    MAX_CHARGE,
    MAX_ORDER,
    MIN_ANSWER,
    MIN_CHARGE,
    MIN_ORDER,
    BinaryLabels,
    BoundedRange,
    ClassLabels,
    Confident,
    Counts,
    Event,
    Pure,
    Sampled,
    SparseStream,
    Stream,
    TableStream,
    VectorSum,
)
from secretballot.core.exponential import least_quotient
from secretballot.core.label_games import GaussianChances, TableChances
from secretballot.core.losses import (
    MOST_ANSWERS,
    ORDERS,
    delta_of,
    lost_epsilon,
    one_of_many,
    response_weights,
)
from secretballot.core.price import PrivacyBudget, delta_upper
from secretballot.core.sampling import LARGE, relabelling_loss
from secretballot.core.streams import (
    MAX_DISTANCE,
    epoch_loss,
    false_answer,
    laplace_above,
    one_vote_charges,
)
from secretballot.core.types import MAX_SCALE, MIN_SCALE
from secretballot.exceptions import Parameter, ParameterError

# --- searches that stop on the safe side, what all refuse, and where Gaussian noise begins ---


def check_has_delta(budget: PrivacyBudget, what: str) -> None:
    """Refuse a budget without a delta for noise that needs one.

    Raises
    ------
    ParameterError
        If delta is 0; names what needs more.
    """
    if not budget.delta > 0:
        raise ParameterError(
            Parameter("delta"),
            f" is {budget.delta}; {what} needs a delta above 0, such as 1e-6. Votes may be released"
            " under Laplace noise, whose delta is 0.",
        )


def bisect_down(
    holds: Callable[[float], bool], low: float, high: float, *, tolerance: float = 1e-13
) -> float:
    """Return the smallest argument in [low, high] from which on `holds`, rounded up to relative
    `tolerance`.

    `holds` must be false then true. The returned argument was itself tested, or is `low`. Infinity
    if it never holds.
    """
    if holds(low):
        return low
    if not holds(high):
        return math.inf
    while high - low > tolerance * high:
        middle = math.sqrt(low * high) if low > 0 and high > 4 * low else (low + high) / 2
        if not low < middle < high:
            break
        if holds(middle):
            high = middle
        else:
            low = middle
    return high


def first_integer(holds: Callable[[int], bool]) -> int:
    """Return the smallest integer from 0 on at which `holds`, which stays true once it is.

    It was tested at the integer that is returned, and at the one before.
    """
    high = 1
    while not holds(high - 1):
        high *= 2
    low = high // 2  # everything below has failed
    high -= 1
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _gaussian_delta(epsilon: float, mu: float) -> float:
    """Return delta(epsilon) of the continuous Gaussian mechanism with sensitivity / sigma = `mu`.

    Parameters
    ----------
    epsilon : float
        Any real number; negative values give the profile's other side.
    mu : float
        Positive.

    Notes
    -----
    Phi(-a) - e^epsilon Phi(-b) with a = epsilon / mu - mu / 2, b = a + mu. Both terms share the
    factor exp(-a^2 / 2) / 2, which is taken out so that small deltas keep their digits.
    """
    a, b = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    if a < 0:
        # e^epsilon Phi(-b) <= Phi(-a) <= 1: no overflow, and no cancellation that matters
        upper = (
            math.exp(-a * a / 2) * erfcx(b / math.sqrt(2)) / 2
            if b > 0
            else math.exp(epsilon) * ndtr(-b)
        )
        return float(max(0.0, ndtr(-a) - upper))
    return float(math.exp(-a * a / 2) * (erfcx(a / math.sqrt(2)) - erfcx(b / math.sqrt(2))) / 2)


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Return the largest mu with `_gaussian_delta` at most `delta` at `epsilon` (to 12 digits,
    rounded down)."""
    inverse = bisect_down(lambda noise: _gaussian_delta(epsilon, 1 / noise) <= delta, 1e-6, 1e9)
    return 1 / inverse


# --- the least noise ---

# query noise over threshold noise, for the sparse vector
_RATIOS = (1.0, math.sqrt(2), 2.0, math.sqrt(8))
# the same where the threshold's noise is not charged at all, so that it may as well be small
_LARGE_RATIO = 20.0
# A stable query is taken to have a margin of this share of the teachers (Liu et al. 2021 measure a
# mean of .5 to .6 on Adult); there labels, and tables of chances, are to be right.
STABLE_MARGIN = 0.6
_LEAST_ORDER = 1.1  # of the divergence by which a table is made
_FLATTER = 1.05  # noise that a table stands for at an even vote, over that of labels
MANY_LABELS = math.sqrt(2 / math.pi)  # noise of many labels over that of their counts
_LABELS_POWER = 0.6  # of the number of labels, at which that is reached
# part of delta kept for wrong answers, for the sparse vector
_FAILURE_SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)
_PURE_FAILURE = 1 - 1e-6  # the same where the pure bound alone keeps epsilon


# how noise is searched for: the first step and what is left open, of the noise, and the share of
# delta that may be left
_Search = tuple[float, float, float]
_USUAL_SEARCH = 1e-6, 1e-10, 1e-9
# of labels a price takes up to a second; that of more classes jumps by some per cent where the list
# of its game changes
_SEARCHES = {"binary-labels": (0.01, 1e-5, 2e-3), "class-labels": (0.01, 1e-3, 5e-3)}


@functools.lru_cache(maxsize=256)  # plans, labels and their certificates ask for the same ones
def least_scale(budget: PrivacyBudget, like: Event) -> float:
    """Return the least factor by which an event's Gaussian noise must grow to fit the budget.

    That is the least sigma where the event has the sigma 1. It is right to about 1e-4 for labels of
    two classes, to 1e-3 for those of more, and to ten digits else. The search starts where
    continuous Gaussian noise of as much signal would just fit.

    Raises
    ------
    ParameterError
        If delta is 0, or no noise fits.

    Examples
    --------
    >>> from secretballot import accounting
    >>> labels = accounting.ClassLabels(sigma=1.0, queries=20)
    >>> round(accounting.least_scale(sb.PrivacyBudget(1.0, 1e-6), labels))
    22
    """
    check_has_delta(budget, "Gaussian noise")

    def delta(sigma: float) -> float:
        return delta_upper([_scaled(like, sigma)], budget.epsilon)

    start = _smooth_sigma(budget, _squared_signal(_scaled(like, 1.0)))
    # delta of noisy counts ripples with sigma: the smooth answer is kept where it fits and lies
    # near the least
    if isinstance(like, Counts) and delta(start) <= budget.delta < delta(
        _in_range(start * (1 - 1e-3))
    ):
        return start
    search = _SEARCHES.get(like.parts()[-1].kind, _USUAL_SEARCH)
    found = _least_sigma(delta, budget.delta, start, search)
    if isinstance(like, BinaryLabels | ClassLabels):
        # where little noise keeps the budget delta of labels goes up and down with sigma, and
        # counts may need less
        counts = least_scale(budget, like.rough())
        return counts if counts < found and delta(counts) <= budget.delta else found
    return found


def _scaled(like: Event, sigma: float) -> Event:
    """Return an event with so many times its noise."""
    match like:
        case BinaryLabels(chances=GaussianChances() as chances):
            return like.changed(chances=chances.changed(sigma=_in_range(sigma * chances.sigma)))
        case VectorSum():
            return like.changed(sigmas=tuple(_in_range(sigma * one) for one in like.sigmas))
        case Confident():
            threshold = _in_range(sigma * like.threshold_sigma)
            return like.changed(threshold_sigma=threshold, sigma=_in_range(sigma * like.sigma))
        case Counts() | ClassLabels():
            return like.changed(sigma=_in_range(sigma * like.sigma))
    raise ParameterError("An event without Gaussian noise has no scale that could be found.")


def _squared_signal(event: Event) -> float:
    """Return about the sum of what moves, squared, over the variance of its noise."""
    match event:
        case Counts():
            return event.shifts / event.sigma**2
        case VectorSum():
            each = math.fsum(sigma**-2 for sigma in event.sigmas)
            return event.squared_sensitivity * each * event.count
        case BinaryLabels() | ClassLabels():
            return _squared_signal(event.rough()) * noise_share(event.queries) ** 2
    return math.fsum(map(_squared_signal, event.parts()))


def calibrate_gaussian(budget: PrivacyBudget, shifts: int) -> float:
    """Return the least sigma, in votes, at which `shifts` integers with discrete Gaussian noise fit
    the budget. Errors are those of `least_scale`."""
    return least_scale(budget, Counts(sigma=1.0, shifts=shifts))


@functools.lru_cache(maxsize=256)
def calibrate_vote_table(
    budget: PrivacyBudget, queries: int, n_teachers: int, *, exact: bool = True
) -> TableChances:
    """Return the most informative table of chances of two classes within the budget (to about
    1e-4 of the noise that it replaces).

    Neighbouring votes differ by one and the same Renyi divergence, of the order that suits the
    budget (docs/explanation/prices.md, section 13), as large as the budget allows.

    Parameters
    ----------
    budget : PrivacyBudget
        With delta above 0.
    queries : int
        Number of labels.
    n_teachers : int
        Number K of teachers.
    exact : bool
        False for a forecast: about as sharp, and nothing is priced, so that it may not fit.

    Raises
    ------
    ParameterError
        If delta is 0, a count is not a positive integer, or no table fits.
    """
    check_has_delta(budget, "a table of chances")
    teachers, n = check_count("n_teachers", n_teachers), check_count("queries", queries)
    order = _order_of_table(budget, n, teachers)
    # a table is flatter than noise near an even vote, and steeper far out
    noise = _in_range(_FLATTER * _noise_of_labels(budget, n))

    def delta(noise: float) -> float:
        table = _table_like(noise, order, teachers)
        return delta_upper([BinaryLabels(chances=table, queries=n)], budget.epsilon)

    if exact:
        noise = _least_sigma(delta, budget.delta, noise, _SEARCHES["binary-labels"])
    return _table_like(noise, order, teachers)


def _table_like(noise: float, order: float, n_teachers: int) -> TableChances:
    """Return the table whose neighbouring votes differ as labels under Gaussian noise do, were it
    large, at an even vote."""
    divergence = order / (math.pi * noise**2)
    weights = table_weights(n_teachers, order, divergence)
    return TableChances(weights=weights, n_teachers=n_teachers)


def _noise_of_labels(budget: PrivacyBudget, queries: int) -> float:
    """Return about the Gaussian noise that keeps so many labels of two classes."""
    return _in_range(noise_share(queries) * _smooth_sigma(budget, queries))


def noise_share(labels: int) -> float:
    """Return about the noise that labels need, over that of their counts."""
    # a label reveals 2 / pi of what its noisy count does where many are released, and all of it
    # where one is
    return MANY_LABELS + (1 - MANY_LABELS) * math.pow(labels, -_LABELS_POWER)


def _order_of_table(budget: PrivacyBudget, queries: int, n_teachers: int) -> float:
    """Return the order of divergence by which a table is made.

    About the order at which the most Gaussian noise fits the budget: there the loss of many labels
    is read. Where labels are to be wrong seldom, a smaller one leaves fewer wrong.
    """
    left = (budget.epsilon - np.maximum(0.0, lost_epsilon(ORDERS, budget.delta))) / ORDERS
    best = float(ORDERS[int(np.argmax(left))])
    # deviations between an even vote and one of STABLE_MARGIN; measured by
    # benchmarks/vote_tables.py, where a tenth more or less costs three labels of 200 at most
    away = STABLE_MARGIN / 2 * n_teachers / _noise_of_labels(budget, queries)
    share = min(1.05, max(0.86, 1 - (away - 1.28) / 10))
    return max(_LEAST_ORDER, share * best)


def calibrate_vector_sum(
    budget: PrivacyBudget,
    squared_sensitivity: int,
    coordinates: int,
    count: int = 1,
    *,
    first: float | None = None,
) -> float:
    """Return the least sigma, in units of the grid, at which `count` noisy vector sums fit the
    budget.

    Parameters
    ----------
    budget : PrivacyBudget
    squared_sensitivity, coordinates, count : int
        As for `VectorSum`.
    first : float, optional
        Where one more sum comes first: its scale over the others'.

    Raises
    ------
    ParameterError
        If delta is 0, a number is not a positive integer, or no noise fits.
    """
    # one sum of another scale makes a list of scales of all
    event = VectorSum(
        sigmas=(1.0,) if first is None else (_in_range(first), *[1.0] * count),
        squared_sensitivity=squared_sensitivity,
        coordinates=coordinates,
        count=count if first is None else 1,
    )
    return least_scale(budget, event)


def _smooth_sigma(budget: PrivacyBudget, squared_signal: float) -> float:
    """Return the sigma at which continuous Gaussian noise just keeps the budget, within the
    range of scales."""
    mu = gaussian_mu(budget.epsilon, budget.delta)
    return _in_range(math.sqrt(squared_signal) / mu) if mu > 0 else MAX_SCALE


def _in_range(sigma: float) -> float:
    return min(max(sigma, MIN_SCALE), MAX_SCALE)


def _least_sigma(
    delta: Callable[[float], float], target: float, start: float, search: _Search
) -> float:
    """Return a sigma with `delta` at most `target`, and a neighbour below it where it is more.

    First a bracket is found around `start`: a sigma that fails and one that fits, in growing steps.
    Then it shrinks until its ends are near or the upper one uses all of `target` but a share. log
    delta is nearly linear in log sigma, so the next sigma is read off a line; where that helps
    little, the bracket is halved. What is returned was itself priced, so the promise does not hang
    on delta being monotone.
    """

    def excess(sigma: float) -> float:
        return math.log(max(delta(sigma), 1e-300) / target)  # a table's may be nothing

    step, tolerance, spare = search
    low, high = _bracketing_sigmas(excess, start, step)
    aim, halve = math.log1p(-spare / 2), False
    while high[1] < 2 * aim and high[0] > low[0] * (1 + tolerance):
        share = 0.5 if halve or not low[1] < 700 else (low[1] - aim) / (low[1] - high[1])
        share = min(max(share, 0.01), 0.99)
        sigma = low[0] * (high[0] / low[0]) ** share
        if not low[0] < sigma < high[0]:
            break
        width = math.log(high[0] / low[0])
        found = excess(sigma)
        low, high = (low, (sigma, found)) if found <= 0 else ((sigma, found), high)
        halve = math.log(high[0] / low[0]) > width / 2
    # the search may stop anywhere, but only a sigma whose price was computed and fits is returned
    if not delta(high[0]) <= target:
        raise ParameterError(
            "No noise fits the budget; epsilon or delta is outside the range that can be priced."
        )
    return high[0]


def _bracketing_sigmas(
    excess: Callable[[float], float], start: float, step: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return (sigma, excess) twice: one that fails and a larger one that fits, near `start`.

    Where even the least noise fits, or the most fails, it is both.
    """
    at = start, excess(start)
    fits = at[1] <= 0
    while True:
        sigma = _in_range(at[0] * math.exp(-step if fits else step))
        if sigma == at[0]:
            return at, at
        found = sigma, excess(sigma)
        if (found[1] <= 0) != fits:
            return (found, at) if fits else (at, found)
        at, step = found, min(1.0, 8 * step)


def calibrate_pure(budget: PrivacyBudget, count: int) -> float:
    """Return the largest epsilon0 of `count` pure-DP parts that fit the budget.

    Raises
    ------
    ParameterError
        If `count` is not a positive integer.
    """
    # parts that cost more than epsilon + log-odds of delta alone can never fit
    return _largest_loss(Pure, budget, count, budget.epsilon + 50)


def calibrate_bounded_range(budget: PrivacyBudget, count: int) -> float:
    """Return the largest range of privacy loss, in nats, of which `count` adaptive draws fit the
    budget.

    Raises
    ------
    ParameterError
        If `count` is not a positive integer.
    """
    # a pair of two outcomes with half the range as its loss has the range too, so no costlier one
    # than twice the pure part can fit
    return _largest_loss(BoundedRange, budget, count, 2 * (budget.epsilon + 50))


def _largest_loss(
    kind: type[Pure] | type[BoundedRange], budget: PrivacyBudget, count: int, dearest: float
) -> float:
    """Return the largest loss of each of `count` events of a kind that fit the budget."""
    n = check_count("count", count)
    if budget.delta == 0:
        return budget.epsilon / n * (1 - 1e-12)

    def fits(inverse: float) -> bool:
        return delta_upper([kind(epsilon=1 / inverse, count=n)], budget.epsilon) <= budget.delta

    return 1 / bisect_down(fits, 1 / dearest, 2 * n / budget.epsilon, tolerance=1e-9)


@functools.lru_cache(maxsize=256)  # as for `least_scale`
def calibrate_sparse_vector(budget: PrivacyBudget, max_abstentions: int) -> SparseStream:
    """Return the sparse vector that answers the least stable queries within the
    budget.

    Candidates: scales by either bound of its price, some ratios of the two noises, several ways to
    split delta. Compared by the distance at which a query is answered with probability 0.999.

    Raises
    ------
    ParameterError
        If delta is 0 or `max_abstentions` is not a positive integer.
    """
    check_has_delta(budget, "the sparse vector")
    t = check_count("max_abstentions", max_abstentions)
    # so many epochs cannot be composed exactly; then each abstention is charged
    kinds = (True, False) if t < MOST_ANSWERS else (False,)
    candidates = [
        event
        for composed in kinds
        for ratio in (_RATIOS if composed else (*_RATIOS, _LARGE_RATIO))
        for share in (*_FAILURE_SHARES, _PURE_FAILURE)
        if (event := _sparse_vector(budget, t, composed, ratio, share)) is not None
    ]
    for found in sorted(candidates, key=needed_distance):
        if delta_upper([found], budget.epsilon) <= budget.delta:
            return found
    raise ParameterError(
        "No sparse vector with ",
        Parameter("max_abstentions"),
        f" {t} keeps epsilon {budget.epsilon}, delta {budget.delta}; use fewer abstentions, a"
        " larger epsilon or a larger delta.",
    )


def needed_distance(event: Stream, probability: float = 0.999) -> float:
    """Return the distance, in votes, from which on a query is answered with at least
    `probability`; infinite where a table ends before."""
    if isinstance(event, TableStream):
        distance = distance_answered(event, probability)
        return distance if distance <= MAX_DISTANCE else math.inf
    return bisect_down(
        lambda d: false_answer(event, math.ceil(d)) >= probability,
        0.0,
        event.threshold + 100 * (event.threshold_scale + event.query_scale),
        tolerance=1e-4,
    )


def _sparse_vector(
    budget: PrivacyBudget, t: int, composed: bool, ratio: float, share: float
) -> SparseStream | None:
    """Return the event with least scale whose failures take `share` of delta; its price is still
    to be checked."""
    failure = share * budget.delta
    single = -math.expm1(math.log1p(-failure) / t)  # one_of_many inverted
    # of composed epochs only the loss counts, (1 + 2 / ratio) / scale: one search serves all ratios
    if composed:
        scale = _pattern_scale(budget, t, composed, 1.0, failure) * (1 + 2 / ratio) / 3
    else:
        scale = _pattern_scale(budget, t, composed, ratio, failure)
    if not math.isfinite(scale):
        return None
    event = vector_of(scale, ratio, t)
    threshold = first_integer(lambda w: false_answer(event.changed(threshold=w)) <= single)
    found = event.changed(threshold=threshold)
    return found if one_of_many(false_answer(found), t) <= failure else None


def vector_of(scale: float, ratio: float, abstentions: int, threshold: int = 0) -> SparseStream:
    """Return a sparse vector by the scale of its threshold's noise, and the queries' over that."""
    return SparseStream(
        threshold_scale=scale,
        query_scale=ratio * scale,
        threshold=threshold,
        abstentions=abstentions,
    )


@functools.lru_cache(maxsize=64)
def _pattern_scale(
    budget: PrivacyBudget, t: int, composed: bool, ratio: float, failure: float
) -> float:
    """Return the least threshold scale at which the pattern of answers keeps delta less `failure`.

    Infinite if none.
    """

    def fits(scale: float) -> bool:
        event = vector_of(scale, ratio, t)
        return _pattern_delta(event, budget.epsilon, composed) <= budget.delta - failure

    # the pure bound, at which any delta is kept, is the largest scale that can be needed
    pure = t * (1 + 2 / ratio) / budget.epsilon
    return bisect_down(fits, 1e-3 * pure, pure * (1 + 1e-9), tolerance=1e-6)


def _pattern_delta(event: SparseStream, epsilon: float, composed: bool) -> float:
    """Return about delta of the pattern of answers and abstentions, labels that differ aside."""
    t = event.abstentions
    if not composed:
        charges = one_vote_charges(event, t, ORDERS)
        return float(delta_of(charges, ORDERS, np.array([epsilon]))[0])
    loss = epoch_loss(event)
    losses = (t - 2.0 * np.arange(t + 1)) * loss
    gain = -np.expm1(np.minimum(0.0, epsilon - losses))
    return float(response_weights(t, loss) @ gain)


# --- tables of chances that a vote is answered ---

# Part of delta kept for wrong answers. An answer at a tie may be ten times rarer for a few votes
# more of distance, so hardly any of delta should go to it.
_TABLE_FAILURE = 0.04
_ORDER_STEPS = (16, 4, 1)  # among the orders, of the search for the best one
_CHARGE_MARGIN = 1e-8  # relative, of a charge; more than what the accountant rounds up


def calibrate_abstention_table(
    budget: PrivacyBudget, max_abstentions: int, *, order: float | None = None
) -> TableStream:
    """Return the table that answers the least stable queries within the budget.

    Compared by the distance at which a query is answered with probability 0.999.

    Parameters
    ----------
    budget : PrivacyBudget
        With delta above 0.
    max_abstentions : int
        Number T of abstentions at which the stream stops.
    order : float, optional
        Order of the table's inequalities; the best one by default. A Renyi filter of another order
        admits the table only if this one is at least its own.

    Raises
    ------
    ParameterError
        If delta is 0, a number is out of its range, or no table keeps the budget.
    """
    check_has_delta(budget, "a table of abstentions")
    unstable = check_count("max_abstentions", max_abstentions)
    found = _best_table(budget, unstable) if order is None else _table_at(budget, unstable, order)
    if found is None:
        raise ParameterError(
            "No table with ",
            Parameter("max_abstentions"),
            f" {unstable} keeps epsilon {budget.epsilon}, delta {budget.delta}; use fewer"
            " abstentions, a larger epsilon or a larger delta.",
        )
    return found


@functools.lru_cache(maxsize=256)  # plans, labels and their certificates ask for the same ones
def _best_table(budget: PrivacyBudget, t: int) -> TableStream | None:
    known: dict[int, float] = {}

    def distance(place: int) -> float:
        if place not in known:
            order = float(ORDERS[place]) if 0 <= place < len(ORDERS) else None
            event = None if order is None else _table_at(budget, t, order)
            known[place] = math.inf if event is None else distance_answered(event)
        return known[place]

    # where noise is Gaussian the same order is best: most divergence for its order
    best = int(np.argmax(_divergence_left(budget, ORDERS) / ORDERS))
    for step in _ORDER_STEPS:
        while True:
            better = min((best - step, best, best + step), key=distance)
            if better == best or not distance(better) < distance(best):
                break
            best = better
    return _table_at(budget, t, float(ORDERS[best])) if distance(best) < math.inf else None


def _divergence_left(budget: PrivacyBudget, orders: FloatArray) -> FloatArray:
    """Return the largest divergence of each order that keeps the budget less the failures."""
    target = (1 - _TABLE_FAILURE) * budget.delta
    return budget.epsilon - np.maximum(0.0, lost_epsilon(orders, target))


def _table_at(budget: PrivacyBudget, t: int, order: float) -> TableStream | None:
    """Return the table of an order that uses up the budget, None where there is none."""
    left = float(_divergence_left(budget, np.array([order]))[0])
    charge = (order - 1) * left / t * (1 - _CHARGE_MARGIN)
    answer = -math.expm1(math.log1p(-_TABLE_FAILURE * budget.delta) / t) * (1 - _CHARGE_MARGIN)
    if not (MIN_ORDER <= order <= MAX_ORDER and charge >= MIN_CHARGE and answer >= MIN_ANSWER):
        return None
    event = TableStream(
        order=order, charge=min(charge, MAX_CHARGE), false_answer=answer, abstentions=t
    )
    return event if delta_upper([event], budget.epsilon) <= budget.delta else None


@functools.lru_cache(maxsize=256)
def calibrate_stream(budget: PrivacyBudget, max_abstentions: int) -> Stream:
    """Return the sparse vector or the table, whichever answers the less stable queries.

    Compared by the distance at which a query is answered with probability 0.999. The sparse vector
    is better where one abstention ends the stream.

    Raises
    ------
    ParameterError
        If delta is 0, `max_abstentions` is not a positive integer, or neither keeps the budget.
    """
    try:
        vector = calibrate_sparse_vector(budget, max_abstentions)
    except ParameterError:
        return calibrate_abstention_table(budget, max_abstentions)
    with suppress(ParameterError):
        both: list[Stream] = [vector, calibrate_abstention_table(budget, max_abstentions)]
        return min(both, key=needed_distance)
    return vector


# --- what a released quantile says ---

_ROUNDING = 1 + 1e-9  # float error of the tails used here stays far below


def quantile_slack(
    epsilon: float, event: SparseStream, n_queries: int, beta: float
) -> tuple[int, int]:
    """Return the two parts of the slack between a released quantile and the threshold of a planned
    stream, in votes: by how much the quantile's own noise may exceed 0, and how far beyond the
    threshold all queries of the stream are answered as long as it runs.

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
    return estimate, stream


# denominator of sampling rates under add-remove, where no number of records is known
_RATE_GRID = 10**6
# of the stream inside; a rate so small that more would do leaves no record to sample
_MOST_DELTA = 0.5


def sample_grid(relation: str, n_records: int | None) -> int:
    """Return out of how many the sample is drawn.

    The records, or a grid of rates where their number is private.

    Raises
    ------
    ParameterError
        If the number of records is missing under "replace-one", or given under "add-remove".
    """
    if check_choice("relation", relation, RELATIONS) == "replace-one":
        return check_count("n_records", n_records)
    if n_records is not None:
        raise ParameterError(
            Parameter("n_records"),
            " is given with 'add-remove', where it is private; leave it out.",
        )
    return _RATE_GRID


def stream_budget(budget: PrivacyBudget, relation: str, relabel_epsilon: float) -> PrivacyBudget:
    """Return the budget of the stream inside at which the sample serves best.

    Parameters
    ----------
    budget : PrivacyBudget
        For the whole; delta above 0.
    relation : {"replace-one", "add-remove"}
    relabel_epsilon : float
        Parameter of the choice of a labelling, in nats.

    Raises
    ------
    ParameterError
        If delta is 0, or `relabel_epsilon` not positive.

    Notes
    -----
    At the stream's epsilon e the rate is about q = min(1, (e^epsilon - 1) / (c e^e - 1)). The
    stream needs teachers in proportion to its noise, about 1 / e, so that a teacher's shard grows
    with q e. That is largest where c e^e (1 - e) = 1, at e = .94 for c = 7.02, or where q reaches 1
    if this comes later.
    """
    check_has_delta(budget, "the sparse vector")
    loss = relabelling_loss(relation, check_positive("relabel_epsilon", relabel_epsilon))
    best = bisect_down(lambda e: math.exp(loss + e) * (1 - e) <= 1, 0.0, 1.0, tolerance=1e-9)
    inside = max(best, budget.epsilon - loss)
    rate = math.expm1(min(budget.epsilon, LARGE)) / math.expm1(min(inside + loss, LARGE))
    return PrivacyBudget(inside, min(_MOST_DELTA, budget.delta / min(1.0, rate)))


@functools.lru_cache(maxsize=64)
def largest_sample(
    budget: PrivacyBudget, stream: Stream, out_of: int, relation: Relation, relabel_epsilon: float
) -> Sampled:
    """Return the stream on the largest sample that the budget allows.

    Raises
    ------
    ParameterError
        If it does not allow one record to be sampled.
    """

    one = Sampled(
        stream=stream, sampled=1, out_of=out_of, relation=relation, relabel_epsilon=relabel_epsilon
    )

    def is_largest(sampled: int) -> bool:
        if sampled >= out_of:
            return True
        more = one.changed(sampled=sampled + 1)
        return delta_upper([more], budget.epsilon) > budget.delta

    # the price rises with the sample
    if largest := first_integer(is_largest):
        return one.changed(sampled=largest)
    raise ParameterError(
        f"epsilon {budget.epsilon:g} and delta {budget.delta:g} do not allow one of {out_of}"
        f" records to be sampled and relabelled at {relabel_epsilon:g}; use a larger epsilon, a"
        " smaller relabel_epsilon, or more records."
    )
