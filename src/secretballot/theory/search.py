"""Smallest numbers at which something that stays true becomes true."""

from collections.abc import Callable

from secretballot.exceptions import ParameterError

__all__ = ["smallest_integer"]

_LARGEST = 10**15  # beyond any data set; below 2^53, where floats still count by ones


def smallest_integer(holds: Callable[[int], bool], start: int = 1) -> int:
    """Return the smallest integer from `start` on at which `holds`, which stays true once it is.

    Raises
    ------
    ParameterError
        If it holds nowhere up to 1e15.
    """
    if holds(start):
        return start
    # doubling first: the answer may be 10 or 1e12, and `holds` may take milliseconds
    low, high = start, 2 * start + 1
    while not holds(high):
        low, high = high, 2 * high
        if high > _LARGEST:
            raise ParameterError(
                "No number up to 1e15 is enough; ask for less accuracy or a larger epsilon."
            )
    while high - low > 1:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle
    return high
