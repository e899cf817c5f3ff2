"""Inverses of the prices: the least noise that keeps a promise. What is returned was priced, never only solved for."""

import math
from collections.abc import Callable
from dataclasses import replace

from secretballot._validation import check_count
from secretballot.exceptions import ParameterError
from secretballot.privacy.accounting.budget import PrivacyBudget
from secretballot.privacy.accounting.events import (
    GaussianEvent,
    LabelGaussianEvent,
    PureEvent,
    SparseVectorEvent,
)
from secretballot.privacy.accounting.gaussian import gaussian_mu
from secretballot.privacy.accounting.parts import MAX_COMBINATIONS, one_of_many
from secretballot.privacy.accounting.pricing import delta_upper, quick_label_delta
from secretballot.privacy.accounting.rounding import bisect_down
from secretballot.privacy.accounting.sparse_vector import false_answer, pattern_delta

__all__ = [
    "calibrate_gaussian",
    "calibrate_label_gaussian",
    "calibrate_pure",
    "calibrate_sparse_vector",
    "needed_distance",
]

RATIOS = (1.0, math.sqrt(2), 2.0, math.sqrt(8))  # query noise over threshold noise, for the sparse vector
FAILURE_SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)  # part of delta kept for wrong answers, for the sparse vector
PURE_FAILURE = 1 - 1e-6  # the same where the pure bound alone keeps epsilon


def _needs_delta(budget: PrivacyBudget, what: str) -> None:
    if not budget.delta > 0:
        raise ParameterError(
            f"delta is {budget.delta}; {what} needs a delta above 0. Give one, such as 1e-6, or use Laplace noise."
        )


def calibrate_gaussian(budget: PrivacyBudget, shifts: int) -> float:
    """Return the least sigma, in votes, at which `shifts` integers with discrete Gaussian noise fit the budget.

    Starts at the analytic (continuous) answer, which is right to a few parts in 1e6, and steps up until the exact
    price of the discrete noise fits.

    Raises
    ------
    ParameterError
        If delta is 0 or `shifts` is not a positive whole number.
    """
    _needs_delta(budget, "Gaussian noise")
    n = check_count("shifts", shifts)
    sigma = math.sqrt(n) / gaussian_mu(budget.epsilon, budget.delta)
    return _step_up(lambda s: delta_upper([GaussianEvent(s, n)], budget.epsilon) <= budget.delta, sigma)


def _step_up(fits: Callable[[float], bool], start: float) -> float:
    """Return the first of start, start (1 + 1e-8), start (1 + 2e-8), start (1 + 4e-8) ... that fits."""
    excess = 0.0
    while not fits(start * (1 + excess)):
        excess = max(1e-8, 2 * excess)
        if excess > 10:
            raise ParameterError("No noise fits the budget; epsilon is outside the range that can be priced.")
    return start * (1 + excess)


def calibrate_label_gaussian(budget: PrivacyBudget, queries: int, n_teachers: int | None = None) -> float:
    """Return the least sigma, in votes, at which `queries` binary labels alone fit the budget (to about 1e-4).

    Raises
    ------
    ParameterError
        If delta is 0 or a count is not a positive whole number.
    """
    _needs_delta(budget, "Gaussian noise")
    n = check_count("queries", queries)

    def quick(sigma: float) -> float:
        return quick_label_delta(LabelGaussianEvent(sigma, n, n_teachers), budget.epsilon)

    def fine(sigma: float) -> float:
        return delta_upper([LabelGaussianEvent(sigma, n, n_teachers)], budget.epsilon)

    ceiling = _step_up(lambda s: quick(s) <= budget.delta, math.sqrt(n) / gaussian_mu(budget.epsilon, budget.delta))
    sigma, slope = _descend(quick, budget.delta, ceiling)
    return _refine(fine, budget.delta, sigma, slope)


def _descend(delta: Callable[[float], float], target: float, ceiling: float) -> tuple[float, float]:
    """Return a sigma <= ceiling with delta(sigma) in [0.99, 1] * target, or the best found, and the slope of log delta.

    log delta is nearly linear in log sigma, so a secant towards 0.995 target, kept between the last sigma known to
    fail and the last known to fit, takes a handful of prices. `ceiling` itself fits.
    """
    best, failing = ceiling, 0.0
    x, slope = math.log(ceiling * math.sqrt(2 / math.pi)), -30.0
    previous: tuple[float, float] | None = None
    for _ in range(25):
        d = delta(math.exp(x))
        if d <= target:
            best = min(best, math.exp(x))
            if d >= 0.99 * target:
                break
        else:
            failing = max(failing, math.exp(x))
        y = math.log(max(d, 1e-300))
        if previous is not None and y != previous[1]:
            slope = min(-0.5, (y - previous[1]) / (x - previous[0]))
        previous = (x, y)
        x += (math.log(0.995 * target) - y) / slope
        low = math.log(failing) if failing > 0 else math.log(best) - 1
        if not low < x < math.log(best):
            x = (low + math.log(best)) / 2
        if math.log(best) - low < 1e-5:
            break
    return best, slope


def _refine(delta: Callable[[float], float], target: float, sigma: float, slope: float) -> float:
    """Return a smaller sigma that the fine price allows, starting from one that a coarse price allows; two tries."""
    best = sigma
    for _ in range(2):
        d = delta(sigma)
        if d <= target:
            best = min(best, sigma)
        if 0.998 * target <= d <= target or not d > 0:
            break
        sigma *= math.exp((math.log(0.9985 * target) - math.log(d)) / slope)
    return best if delta(sigma) > target else min(best, sigma)


def calibrate_pure(budget: PrivacyBudget, count: int) -> float:
    """Return the largest epsilon0 of `count` pure-DP parts that fit the budget.

    Raises
    ------
    ParameterError
        If `count` is not a positive whole number.
    """
    n = check_count("count", count)
    if budget.delta == 0:
        return budget.epsilon / n * (1 - 1e-12)

    def fits(inverse: float) -> bool:
        return delta_upper([PureEvent(1 / inverse, n)], budget.epsilon) <= budget.delta

    # parts dearer than epsilon + log-odds of delta alone can never fit
    return 1 / bisect_down(fits, 1 / (budget.epsilon + 50), 2 * n / budget.epsilon, tolerance=1e-9)


def calibrate_sparse_vector(budget: PrivacyBudget, max_unstable: int) -> SparseVectorEvent:
    """Return the sparse vector, of either kind, that answers the least stable queries within the budget.

    Candidates: threshold noise refreshed or drawn once, four ratios of the two noises, several ways to split delta.
    Compared by the distance at which a query is answered with probability 0.999.

    Raises
    ------
    ParameterError
        If delta is 0 or `max_unstable` is not a positive whole number.
    """
    _needs_delta(budget, "the sparse vector")
    t = check_count("max_unstable", max_unstable)
    # so many refreshed epochs cannot be composed exactly; then the threshold noise is drawn once
    kinds = (True, False) if t < MAX_COMBINATIONS else (False,)
    candidates = [
        event
        for refresh in kinds
        for ratio in RATIOS
        for share in (*FAILURE_SHARES, PURE_FAILURE)
        if (event := _sparse_vector(budget, t, refresh, ratio, share)) is not None
    ]
    if not candidates:
        raise ParameterError(
            f"No sparse vector with max_unstable {t} keeps epsilon {budget.epsilon}, delta {budget.delta}; use fewer "
            "abstentions, a larger epsilon or a larger delta."
        )
    return min(candidates, key=needed_distance)


def needed_distance(event: SparseVectorEvent, probability: float = 0.999) -> float:
    """Return the distance, in votes, from which on a query is answered with at least `probability`."""
    return bisect_down(
        lambda d: false_answer(event, math.ceil(d)) >= probability,
        0.0,
        event.threshold + 100 * (event.threshold_scale + event.query_scale),
        tolerance=1e-4,
    )


def _sparse_vector(
    budget: PrivacyBudget, t: int, refresh: bool, ratio: float, share: float
) -> SparseVectorEvent | None:
    """Return the event with least scale whose failures take `share` of delta, checked against the whole budget."""
    failure = share * budget.delta
    single = -math.expm1(math.log1p(-failure) / t)  # one_of_many inverted

    def event(scale: float) -> SparseVectorEvent:
        return SparseVectorEvent(scale, ratio * scale, 0, t, refresh)

    def fits(scale: float) -> bool:
        return pattern_delta(event(scale), budget.epsilon) <= budget.delta - failure

    # the pure bound, at which any delta is kept, is the largest scale that can be needed
    pure = (t * (1 + 2 / ratio) if refresh else 1 + 2 * t / ratio) / budget.epsilon
    scale = bisect_down(fits, 1e-3 * pure, pure * (1 + 1e-9), tolerance=1e-6)
    if not math.isfinite(scale):
        return None
    found = replace(event(scale), threshold=_threshold(event(scale), single))
    fitting = one_of_many(false_answer(found), t) <= failure and delta_upper([found], budget.epsilon) <= budget.delta
    return found if fitting else None


def _threshold(event: SparseVectorEvent, single: float) -> int:
    """Return the least integer w at which one query at distance 0 is answered with probability at most `single`."""
    low, high = 0, math.ceil(100 * (event.threshold_scale + event.query_scale))
    while low < high:
        middle = (low + high) // 2
        if false_answer(replace(event, threshold=middle)) <= single:
            high = middle
        else:
            low = middle + 1
    return high
