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
