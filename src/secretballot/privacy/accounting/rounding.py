"""Rounding always upward, and searches that stop on the safe side."""

import math
from collections.abc import Callable

SLACK = 1e-10  # relative; float error of every sum and special function used here stays below 1e-11


def round_up(value: float) -> float:
    """Return a number above `value` by more than the float error it may carry.

    Nan and negatives become infinity.
    """
    if not value >= 0:
        return math.inf
    return value * (1 + SLACK) + 1e-300


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
