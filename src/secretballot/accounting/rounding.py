"""Searches that stop on the safe side."""

import math
from collections.abc import Callable


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
