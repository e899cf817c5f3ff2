"""Renyi divergences of dominating pairs, and what they say about (epsilon, delta)."""

import math
from collections.abc import Callable, Iterable

import numpy as np

from secretballot._typing import FloatArray
from secretballot.privacy.accounting.rounding import SLACK

# Orders at which a curve is read; the certified figure is the best of them, so the grid only costs
# sharpness.
ORDERS: tuple[float, ...] = tuple(float(x) for x in 1 + np.geomspace(1e-3, 5e3, 300))

# What floats may lose of an exponent, as a share of its terms. What every price is rounded up by
# covers it but for large orders at large epsilons.
_LOST = 2.0**-50


def _log_factor(order: float) -> float:
    # Canonne, Kamath, Steinke 2020, Proposition 12: delta = exp((a-1)(tau - epsilon)) / (a-1) * (1
    # - 1/a)^a
    return order * math.log1p(-1 / order) - math.log(order - 1)


def renyi_delta(
    curve: Callable[[float], float], epsilon: float, orders: Iterable[float] = ORDERS
) -> float:
    """Return the smallest delta at `epsilon` that a bound on the Renyi divergence gives.

    Parameters
    ----------
    curve : callable
        Order (> 1) to an upper bound on the Renyi divergence, in nats.
    epsilon : float
        Privacy loss, in nats.
    orders : iterable of float
        Orders to try.
    """
    return min(1.0, math.exp(min(0.0, min(_delta_exponent(a, curve(a), epsilon) for a in orders))))


def _delta_exponent(order: float, divergence: float, epsilon: float) -> float:
    lost = (order - 1) * (abs(divergence) + abs(epsilon)) * _LOST - SLACK / 10
    return (order - 1) * (divergence - epsilon) + max(0.0, lost) + _log_factor(order)


_ORDERS = np.array(ORDERS)
_LOG_FACTORS = np.array([_log_factor(order) for order in ORDERS])


def renyi_delta_at_orders(divergences: FloatArray, epsilon: float) -> float:
    """Return what `renyi_delta` returns, from the bounds at all of `ORDERS`, an array of their
    shape."""
    exponents = (_ORDERS - 1) * (divergences - epsilon) + _LOG_FACTORS
    lost = (_ORDERS - 1) * (np.abs(divergences) + abs(epsilon)) * _LOST - SLACK / 10
    exponents += np.maximum(0.0, lost)
    return min(1.0, math.exp(min(0.0, float(np.min(exponents)))))


def best_order(
    divergences: FloatArray, *, epsilon: float | None = None, delta: float | None = None
) -> int:
    """Return the place in `ORDERS` of the order that gives the least delta at `epsilon`, or the
    least epsilon at `delta`; at epsilon 1 where neither is given. There is one divergence for
    each order, so that their shape is (n_orders,)."""
    if delta is not None:
        return int(np.argmin(divergences + (_LOG_FACTORS - math.log(delta)) / (_ORDERS - 1)))
    at = 1.0 if epsilon is None else epsilon
    return int(np.argmin((_ORDERS - 1) * (divergences - at) + _LOG_FACTORS))


def renyi_epsilon(
    curve: Callable[[float], float], delta: float, orders: Iterable[float] = ORDERS
) -> float:
    """Return the smallest epsilon >= 0 at `delta` that a bound on the Renyi divergence gives."""
    if not delta > 0:
        return math.inf
    log_delta = math.log(delta)
    return max(0.0, min(curve(a) + (_log_factor(a) - log_delta) / (a - 1) for a in orders))


def response_renyi(order: float, epsilon: float) -> float:
    """Return the Renyi divergence of randomised response, the worst of all epsilon-DP mechanisms.

    Source: Kairouz, Oh, Viswanath 2015 (randomised response dominates). Discrete Laplace noise of
    scale 1 / epsilon under a shift by one has exactly this pair: its privacy loss takes the two
    values +-epsilon.
    """
    excess = response_excess(order, epsilon)
    if math.isinf(excess):
        # log cosh(u) = u - log 2 + log1p(e^(-2 u)); the last term is nothing at such u
        return ((2 * order - 1) * epsilon / 2 - epsilon / 2 - math.log1p(math.exp(-epsilon))) / (
            order - 1
        )
    return math.log1p(excess) / (order - 1)


def response_excess(order: float, epsilon: float) -> float:
    """Return E_Q[(P / Q)^order] - 1 of randomised response, without losing digits where it is
    small; may be infinite.

    The moment is cosh((2 a - 1) e / 2) / cosh(e / 2), and the difference of two cosh a product of
    two sinh.
    """
    if (2 * order - 1) * epsilon > 1200:
        return math.inf
    product = math.sinh(order * epsilon / 2) * math.sinh((order - 1) * epsilon / 2)
    return 2 * product / math.cosh(epsilon / 2)


def responses_excess(epsilon: float) -> FloatArray:
    """Return what `response_excess` returns, at all of `ORDERS`, an array of their shape."""
    # the orders that floats can hold come first
    held = int(np.searchsorted((2 * _ORDERS - 1) * epsilon, 1200, side="right"))
    a, found = _ORDERS[:held], np.full(len(_ORDERS), np.inf)
    product = np.sinh(a * epsilon / 2) * np.sinh((a - 1) * epsilon / 2)
    found[:held] = 2 * product / math.cosh(min(epsilon, 1200.0) / 2)
    return found


def responses_renyi(epsilon: float) -> FloatArray:
    """Return what `response_renyi` returns, at all of `ORDERS`, an array of their shape."""
    excess = responses_excess(epsilon)
    far = np.isinf(excess)
    divergences: FloatArray
    if not far.any():
        divergences = np.log1p(excess) / (_ORDERS - 1)
        return divergences
    limit = (2 * _ORDERS - 1) * epsilon / 2 - epsilon / 2 - math.log1p(math.exp(-epsilon))
    divergences = np.where(far, limit, np.log1p(np.where(far, 0.0, excess))) / (_ORDERS - 1)
    return divergences


def bernoulli_renyi(order: float, p: FloatArray, rest: FloatArray, gap: FloatArray) -> float:
    """Return the largest Renyi divergence between Bernoulli(p) and Bernoulli(p + gap), either way
    round.

    Parameters
    ----------
    order : float
        Order, > 1.
    p, rest, gap : ndarray of shape (n,)
        p > 0, rest = 1 - p > gap > 0; apart, so that close pairs and far tails keep their digits.
    """
    up, down = np.log1p(gap / p), np.log1p(-gap / rest)  # log q/p, log (1-q)/(1-p)
    # E_P[(P/Q)^(a-1)] - 1, with expm1 so that tiny divergences are not lost
    forward = _moment_above(p, (1 - order) * up, rest, (1 - order) * down)
    backward = _moment_above(p + gap, (order - 1) * up, rest - gap, (order - 1) * down)
    worst = float(np.max(np.maximum(forward, backward)))
    return math.log1p(worst) / (order - 1) if worst > 0 else 0.0


def _moment_above(
    one: FloatArray, first: FloatArray, other: FloatArray, second: FloatArray
) -> FloatArray:
    """Return one (e^first - 1) + other (e^second - 1), rounded up.

    Of close pairs the two terms nearly cancel, so that what floats lose of them is no small share
    of their sum.
    """
    with np.errstate(over="ignore"):
        terms = one * np.expm1(first), other * np.expm1(second)
        lost = (1 + np.abs(first)) * np.abs(terms[0]) + (1 + np.abs(second)) * np.abs(terms[1])
        above: FloatArray = terms[0] + terms[1] + _LOST * lost
    return above
