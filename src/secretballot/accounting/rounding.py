"""Searches that stop on the safe side, and what all of them refuse."""

import math
from collections.abc import Callable

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
