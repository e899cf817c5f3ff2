"""Prices of the sparse vector and of the distance-to-instability test, for discrete Laplace noise.

Three bounds hold, the second where the threshold noise is drawn once, and the smallest counts.

Fresh threshold noise after each abstention (docs/explanation/differences.md 2): an epoch is (e0,
p0)-DP with e0 = 1 / threshold_scale + 2 / query_scale, where p0 is the probability that a query at
distance 0 is answered; T epochs compose optimally.

Threshold noise drawn once ("hit charge"): reveal it, shifted by one between neighbours, at the
price of randomised response with 1 / threshold_scale. Then a query abstains with probability f,
respectively f' >= max(e^-e2 f, 1 - e^e2 (1 - f)), e2 = 2 / query_scale; answers favour the
neighbour, so only abstentions cost: (P / Q)^a e^(-kappa #abstentions) is a supermartingale under Q
with kappa(a) = log(p^a q^(1-a) / (1 - q^a p^(1-a))), p = e^e2 / (1 + e^e2), q = 1 - p. The number
of queries does not enter.

Threshold noise left where it is ("one vote"): a query's own noise moves by one vote at most, so it
abstains with probability f, respectively f', where f / f' and (1 - f) / (1 - f') lie between
e^-e1 and e^e1, e1 = 1 / query_scale. Answers may favour either side, but not by much: the same
supermartingale with kappa(a) = log(q^a p^(1-a) / (1 - p^a q^(1-a))), p = e^e1 / (1 + e^e1), as long
as p^a q^(1-a) < 1. The threshold costs nothing. All proofs: `docs/explanation/prices.md`.
"""

import math

import numpy as np

from secretballot._typing import FloatArray
from secretballot.privacy.accounting.events import SparseVectorEvent, StabilityEvent
from secretballot.privacy.accounting.parts import Part, compose_parts, one_of_many
from secretballot.privacy.accounting.renyi import (
    ORDERS,
    renyi_delta_at_orders,
    response_excess,
    response_renyi,
    responses_excess,
    responses_renyi,
)

NEAR_ONE = 1e-3  # relative; powers nearer to 1 than this are not divided by what is left
LEAST = math.ulp(0.0)  # the smallest float; probabilities below it are charged as much
_ORDERS = np.array(ORDERS)


def laplace_above(value: float, scale: float) -> float:
    """Return P(X > value) for discrete Laplace noise X of the given scale and an integer
    `value`."""
    r = math.exp(-1 / scale)
    if value >= 0:
        return max(LEAST, math.exp(-(value + 1) / scale) / (1 + r))
    return 1 - math.exp(value / scale) / (1 + r)


def false_answer(event: SparseVectorEvent, distance: int = 0) -> float:
    """Return the probability that one query at `distance` passes the noisy threshold.

    P0 at distance 0.

    P(X - Y > w - distance) for discrete Laplace noises X and Y. Both are symmetric, so it is the
    tail of X + Y.
    """
    need = event.threshold - distance + 1
    if need < 1:
        return 1.0 - _sum_tail(1 - need, event.query_scale, event.threshold_scale)
    return max(LEAST, _sum_tail(need, event.query_scale, event.threshold_scale))


def _sum_tail(n: int, first_scale: float, second_scale: float) -> float:
    """Return P(X + Y >= n), n >= 1, for discrete Laplace X and Y, by partial fractions of the
    generating function.

    With a = e^(-1 / larger scale), b = e^(-1 / smaller scale) and f(x) = x^(n + 1) / ((1 - x^2) (1
    - x)) it is (1 - a)^2 (1 - b)^2 (f(a) - f(b)) / ((a - b) (1 - a b)).
    """
    small, large = sorted((first_scale, second_scale))
    a, b = math.exp(-1 / large), math.exp(-1 / small)
    rest_a, rest_b = -math.expm1(-1 / large), -math.expm1(-1 / small)
    gap = (large - small) / small / large  # b / a = e^(-gap)
    if not gap > 0:
        return math.exp(-n / large) / (1 + a) ** 2 * ((n + 1) * rest_a + 2 * a * a / (1 + a) + a)
    # f(a) - f(b) as f(a) (1 - f(b) / f(a)), the ratio from its logarithm: no digits are lost where
    # scales nearly meet
    apart = a * -math.expm1(-gap)
    log_ratio = -(n + 1) * gap + math.log1p(apart / (1 + b)) + 2 * math.log1p(-apart / rest_b)
    both = -math.expm1(-1 / small - 1 / large)
    # f(a) / (a - b) with one factor a cancelled, so that scales below 1 / 745, where a is no float,
    # keep their tail
    return (
        rest_b**2
        * math.exp(-n / large)
        * -math.expm1(log_ratio)
        / ((1 + a) * -math.expm1(-gap) * both)
    )


def epochs(event: SparseVectorEvent) -> Part:
    """Return the stream as T parts, each (e0, p0)-DP; valid where the threshold noise is
    refreshed."""
    loss = 1 / event.threshold_scale + 2 / event.query_scale
    return Part(loss, false_answer(event), event.max_unstable)


def pure_bound(event: SparseVectorEvent) -> float:
    """Return the largest privacy loss of the abstention pattern when the threshold noise is
    drawn once."""
    return 1 / event.threshold_scale + 2 * event.max_unstable / event.query_scale


def abstention_charge(order: float, loss: float) -> float:
    """Return kappa(order) for one abstention, `loss` = 2 / query_scale.

    The supremum over all f, attained at f = p.
    """
    # with g = p^a q^(1-a), h = q^a p^(1-a): kappa = log(g / (1 - h)) = log1p((g + h - 1) / (1 -
    # h)), and h <= 1/2
    h = math.exp(-order * loss) / (1 + math.exp(-loss))
    excess = response_excess(order, loss)
    if math.isinf(excess):
        return (order - 1) * response_renyi(order, loss) - math.log1p(-h)
    return math.log1p(excess / (1 - h))


def hit_charge_renyi(event: SparseVectorEvent, order: float) -> float:
    """Return the bound on the Renyi divergence of a stream whose threshold noise is drawn once."""
    kappa = abstention_charge(order, 2 / event.query_scale)
    return response_renyi(order, 1 / event.threshold_scale) + event.max_unstable * kappa / (
        order - 1
    )


def one_vote_charge(order: float, loss: float) -> float:
    """Return kappa(order) for one abstention where the threshold noise is not moved.

    `loss` = 1 / query_scale. Infinite where answers would have to be charged too.
    """
    log_answer = order * loss - loss - math.log1p(math.exp(-loss))  # of p^a q^(1-a)
    # near 0 the charge is a quotient of two roundings; such orders are left to the other bounds
    if not log_answer < -NEAR_ONE:
        return math.inf
    return math.log1p(response_excess(order, loss) / -math.expm1(log_answer))


def one_vote_renyi(event: SparseVectorEvent, order: float) -> float:
    """Return the bound on the Renyi divergence of a stream whose threshold noise is not moved."""
    return event.max_unstable * one_vote_charge(order, 1 / event.query_scale) / (order - 1)


def one_votes_renyi(event: SparseVectorEvent) -> FloatArray:
    """Return what `one_vote_renyi` returns, at all of `ORDERS`, an array of their shape."""
    loss = 1 / event.query_scale
    log_answer = _ORDERS * loss - loss - math.log1p(math.exp(-loss))
    open_ones = log_answer < -NEAR_ONE
    excess = np.where(open_ones, responses_excess(loss), 0.0)
    kappa = np.log1p(excess / -np.expm1(np.where(open_ones, log_answer, -1.0)))
    found: FloatArray = np.where(open_ones, event.max_unstable * kappa / (_ORDERS - 1), np.inf)
    return found


def pattern_delta(event: SparseVectorEvent, epsilon: float) -> float:
    """Return delta(epsilon) of the pattern of answers and abstentions alone, labels that differ
    left aside.

    Where the threshold noise is refreshed by parts alone, so that noises of one loss are alike.
    """
    if event.refresh:
        return compose_parts([Part(epochs(event).epsilon, 0.0, event.max_unstable)], epsilon)
    pure = compose_parts([Part(pure_bound(event), 0.0, 1)], epsilon)
    charges = np.minimum(hit_charges_renyi(event), one_votes_renyi(event))
    return min(pure, renyi_delta_at_orders(charges, epsilon))


def hit_charges_renyi(event: SparseVectorEvent) -> FloatArray:
    """Return what `hit_charge_renyi` returns, at all of `ORDERS`, an array of their shape."""
    loss = 2 / event.query_scale
    h = np.exp(-_ORDERS * loss) / (1 + math.exp(-loss))
    excess = responses_excess(loss)
    far = np.isinf(excess)
    near = np.log1p(np.where(far, 0.0, excess) / (1 - h))
    kappa = near
    if far.any():
        kappa = np.where(far, (_ORDERS - 1) * responses_renyi(loss) - np.log1p(-h), near)
    total: FloatArray = responses_renyi(1 / event.threshold_scale) + event.max_unstable * kappa / (
        _ORDERS - 1
    )
    return total


def answer_failure(event: SparseVectorEvent) -> float:
    """Return the probability that some query whose label differs is answered.

    At most 1 - (1 - p0)^T, any stream.
    """
    return one_of_many(false_answer(event), event.max_unstable)


def stability_parts(event: StabilityEvent) -> Part:
    """Return the tests as (1 / scale, P(X > threshold))-DP parts."""
    return Part(1 / event.scale, laplace_above(event.threshold, event.scale), event.count)
