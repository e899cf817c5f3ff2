"""Renyi divergences of dominating pairs, and their conversion to (epsilon, delta)."""

import math
from collections.abc import Iterable

import numpy as np

from secretballot.core.types import FloatArray

#: Orders at which divergences are added; the certified figure is the best of them, so the grid only
#: costs sharpness.
ORDERS: FloatArray = 1 + np.geomspace(1e-3, 5e3, 300)

# What floats may lose of an exponent, as a share of its terms. What every price is rounded up by
# covers it but for large orders at large epsilons.
LOST = 2.0**-50
_COVERED = 1e-11


def log_factor(orders: FloatArray) -> FloatArray:
    """Return the logarithm of (1 - 1/a)^a / (a - 1)."""
    return orders * np.log1p(-1 / orders) - np.log(orders - 1)


def delta_of(divergences: FloatArray, orders: FloatArray, epsilon: FloatArray) -> FloatArray:
    """Return the smallest delta at each epsilon that bounds on Renyi divergences give.

    Parameters
    ----------
    divergences, orders : ndarray of shape (n,)
        Upper bounds in nats, and their orders, above 1.
    epsilon : ndarray of any shape

    Notes
    -----
    Source: Canonne, Kamath, Steinke 2020, Proposition 12.
    """
    at = np.asarray(epsilon)[..., None]
    lost = (orders - 1) * (np.abs(divergences) + np.abs(at)) * LOST - _COVERED
    exponent = (orders - 1) * (divergences - at) + log_factor(orders) + np.maximum(0.0, lost)
    found: FloatArray = np.exp(np.minimum(0.0, exponent.min(axis=-1)))
    return found


def lost_epsilon(orders: FloatArray, delta: float) -> FloatArray:
    """Return by how much epsilon at `delta` exceeds the divergence of each order."""
    return (log_factor(orders) - math.log(delta)) / (orders - 1)


def response(epsilon: float, orders: FloatArray) -> FloatArray:
    """Return the divergence of randomised response, the worst of all epsilon-DP mechanisms.

    Source: Kairouz, Oh, Viswanath 2015 (randomised response dominates). Discrete Laplace noise of
    scale 1 / epsilon under a shift by one has exactly this pair: its privacy loss takes the two
    values +-epsilon.
    """
    excess = response_excess(epsilon, orders)
    # log cosh(u) = u - log 2 + log1p(e^(-2 u)); the last term is nothing at such u
    far = (2 * orders - 1) * epsilon / 2 - epsilon / 2 - math.log1p(math.exp(-epsilon))
    near = np.log1p(np.where(np.isinf(excess), 0.0, excess))
    return np.where(np.isinf(excess), far, near) / (orders - 1)


def response_excess(epsilon: float, orders: FloatArray) -> FloatArray:
    """Return E_Q[(P / Q)^order] - 1 of randomised response, without losing digits where it is
    small; may be infinite.

    The moment is cosh((2 a - 1) e / 2) / cosh(e / 2), and the difference of two cosh a product of
    two sinh.
    """
    held = (2 * orders - 1) * epsilon <= 1200
    a, e = np.where(held, orders, 1.0), min(epsilon, 1200.0)
    product = np.sinh(a * e / 2) * np.sinh((a - 1) * e / 2)
    return np.where(held, 2 * product / math.cosh(e / 2), np.inf)


def moments(chance: FloatArray, log_ratios: Iterable[FloatArray], order: float) -> FloatArray:
    """Return the moments of an order, less 1, of pairs P, Q of distributions, the larger one of
    E_Q[(P / Q)^order] and E_P[(Q / P)^order]; rounded up.

    Each is a sum of p (r^b - 1 - b (r - 1)) with r = q / p, b = 1 - order or b = order: terms that
    are at least 0, so that close pairs lose no digits. They grow with the distance of r from 1, so
    that of a range of ratios one end has the largest.

    Parameters
    ----------
    chance : ndarray of shape (outcomes, n)
        Of the outcomes under P.
    log_ratios : iterable of ndarrays of shape (outcomes, n)
        Logarithms of those under Q over them; of several the largest terms count.
    order : float

    Returns
    -------
    ndarray of shape (n,)
    """
    found = []
    for power in (1 - order, order):
        terms = np.zeros_like(chance)
        for log_ratio in log_ratios:
            with np.errstate(over="ignore"):
                grown, line = np.expm1(power * log_ratio), power * np.expm1(log_ratio)
                lost = (1 + np.abs(power * log_ratio)) * np.abs(grown) + np.abs(line)
                terms = np.maximum(terms, grown - line + LOST * lost)  # nan stays
        found.append((chance * terms).sum(axis=0))
    larger: FloatArray = np.maximum(*found)
    return larger


def largest_moments(chance: FloatArray, log_ratio: FloatArray, orders: FloatArray) -> FloatArray:
    """Return the largest of the `moments` of all pairs, for each order."""
    every = [moments(chance, [log_ratio], order).max(initial=0.0) for order in orders.tolist()]
    return np.array(every)
