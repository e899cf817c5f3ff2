"""Prices of the sparse vector and of the distance-to-instability test, for discrete Laplace noise,
and the inequalities that a table of abstentions keeps.

Two bounds hold for the sparse vector, whose threshold noise is drawn anew after each abstention,
and the smaller counts. The number of queries enters neither.

Epochs (docs/explanation/differences.md 2): an epoch is (e0, p0)-DP with e0 = 1 / threshold_scale +
2 / query_scale, where p0 is the probability that a query at distance 0 is answered; T epochs
compose optimally.

Charged by one vote: given the threshold, a query's own noise moves by one vote at most, so it
abstains with probability f, respectively f', where f / f' and (1 - f) / (1 - f') lie between e^-e1
and e^e1, e1 = 1 / query_scale. Then (P / Q)^a e^(-kappa #abstentions) is a supermartingale under Q
with kappa(a) = log(q^a p^(1-a) / (1 - p^a q^(1-a))), p = e^e1 / (1 + e^e1), q = 1 - p, as long as
p^a q^(1-a) < 1. The threshold costs nothing.

A table of abstentions answers at distance d from instability with probability s(d), and with f(d) =
1 - s(d) not. Between (f, s) at d and (g, t) at d + 1,

    f^a g^(1-a) e^-charge + s^a t^(1-a) <= 1, and the same with both sides exchanged.

Then (P / Q)^a e^(-charge #abstentions) is a supermartingale under Q, for any number of queries,
and only abstentions cost. All proofs: `docs/explanation/prices.md`.
"""

import functools
import itertools
import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from secretballot.core.losses import response_excess
from secretballot.core.types import FloatArray

if TYPE_CHECKING:
    from secretballot.core.events import SparseStream, TableStream

_NEAR_ONE = 1e-3  # relative; powers nearer to 1 than this are not divided by what is left
_LEAST = math.ulp(0.0)  # the smallest float; probabilities below it are charged as much

BITS = 62
WHOLE = 1 << BITS  # what the weights of an answer and of an abstention add up to
MAX_DISTANCE = 1 << 15  # votes; no table is longer
_CONTEXT = Context(prec=60, Emin=-(10**9), Emax=10**9, traps=Context().traps)
# The logarithms and powers below are right to 1e-50 of the whole; a sum that keeps clear of 1 by
# this much keeps the inequality.
_CLEAR = Decimal(10) ** -44


def epoch_loss(event: "SparseStream") -> float:
    """Return the privacy loss e0 of the pattern of one epoch, whose threshold noise is fresh."""
    return 1 / event.threshold_scale + 2 / event.query_scale


def one_vote_charges(event: "SparseStream", abstentions: int, orders: FloatArray) -> FloatArray:
    """Return bounds on the divergences of a stream, its threshold noise given.

    Infinite where answers would have to be charged too.
    """
    loss = 1 / event.query_scale
    log_answer = orders * loss - loss - math.log1p(math.exp(-loss))  # of p^a q^(1-a)
    # near 0 the charge is a quotient of two roundings; such orders are left to the other bounds
    held = log_answer < -_NEAR_ONE
    excess = np.where(held, response_excess(loss, orders), 0.0)
    kappa = np.log1p(excess / -np.expm1(np.where(held, log_answer, -1.0)))
    return np.where(held, abstentions * kappa / (orders - 1), np.inf)


def laplace_above(value: float, scale: float) -> float:
    """Return P(X > value) for discrete Laplace noise X of the given scale and an integer
    `value`."""
    r = math.exp(-1 / scale)
    if value >= 0:
        return max(math.exp(-(value + 1) / scale) / (1 + r), _LEAST)  # in this order nan stays
    return 1 - math.exp(value / scale) / (1 + r)


def false_answer(event: "SparseStream", distance: int = 0) -> float:
    """Return the probability that one query at `distance` passes the noisy threshold.

    P0 at distance 0.

    P(X - Y > w - distance) for discrete Laplace noises X and Y. Both are symmetric, so it is the
    tail of X + Y.
    """
    need = event.threshold - distance + 1
    if need < 1:
        return 1.0 - _sum_tail(1 - need, event.query_scale, event.threshold_scale)
    return max(_sum_tail(need, event.query_scale, event.threshold_scale), _LEAST)


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
    # keep their tail; the exponential last, as its product with a small number may be no float
    share = rest_b**2 * -math.expm1(log_ratio) / ((1 + a) * -math.expm1(-gap) * both)
    return math.exp(-n / large) * share


@functools.lru_cache(maxsize=64)
def _logarithms(answer: int) -> tuple[Decimal, Decimal]:
    """Return those of the weights of an answer and of an abstention."""
    return Decimal(answer).ln(_CONTEXT), Decimal(WHOLE - answer).ln(_CONTEXT)


def neighbours_keep(order: float, charge: float, one: int, other: int) -> bool:
    """Return whether the weights of an answer at two neighbouring distances, of 2^62, surely keep
    both inequalities."""
    # not in the caller's context, which may have fewer digits or traps of its own
    with localcontext(_CONTEXT):
        a, k, limit = Decimal(order), Decimal(charge), Decimal(WHOLE) * (1 - _CLEAR)
        for p, q in ((one, other), (other, one)):
            answers, abstains = (
                a * here + (1 - a) * there
                for here, there in zip(_logarithms(p), _logarithms(q), strict=True)
            )
            # a power far above the whole ends it, before it is computed
            if max(answers, abstains - k) > 50:
                return False
            if not answers.exp() + (abstains - k).exp() <= limit:
                return False
    return True


@functools.lru_cache(maxsize=32)
def keeps_inequalities(table: "TableStream", weights: tuple[int, ...]) -> bool:
    """Return whether weights of an answer keep what is stated of their table, in sixty digits.

    They are of 2^62, at distances 0, 1, ...; the last holds for all beyond.
    """
    if not weights or not all(0 < weight < WHOLE for weight in weights):
        return False
    if not Fraction(weights[0], WHOLE) <= Fraction(table.false_answer):
        return False
    # a distance that stays is a pair as well: f e^-charge + s < 1
    return all(
        neighbours_keep(table.order, table.charge, one, other)
        for one, other in itertools.pairwise(weights)
    )
