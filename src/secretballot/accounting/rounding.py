"""Searches that stop on the safe side, what all of them refuse, and where those for Gaussian noise
begin.

The analytic Gaussian mechanism is that of Balle and Wang 2018, Theorem 8 (Dong, Roth and Su 2019).
What is drawn is discrete and is priced as such.
"""

import math
from collections.abc import Callable

from scipy.special import erfcx, ndtr

from secretballot.core.price import PrivacyBudget
from secretballot.exceptions import Parameter, ParameterError


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
