"""Whole numbers below and above exponential weights, and where a uniform real falls among them.

Every bound is proved in whole-number arithmetic, so that a choice made with them is the one that exact weights and
all digits of the uniform real would make. Nothing here draws anything: `noise` does.
"""

import math
from bisect import bisect_left
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

__all__ = ["exp_bounds", "locate", "running_bounds"]

IntArray = NDArray[np.int64]


def locate(uniform: int, bits: int, lower: list[int], upper: list[int], rest: int) -> int | None:
    """Return the group that [uniform, uniform + 1] / 2^bits of the total falls in, or None where it is open.

    lower[g] <= C(g) <= upper[g] for the running sums C; all groups unlisted weigh between 0 and `rest` together.
    """
    least, most = uniform * lower[-1], (uniform + 1) * (upper[-1] + rest)
    group = bisect_left(lower, -(-most >> bits))
    if group == len(lower) or (group > 0 and upper[group - 1] << bits > least):
        return None
    return group


def running_bounds(gaps: IntArray, sizes: IntArray, scale: Fraction, bits: int) -> tuple[list[int], list[int]]:
    """Return whole numbers below and above 2^bits times the running sums of sizes * exp(-gaps / scale).

    Every gap is split into a multiple of about its root and a rest, so that few exponentials are computed.
    """
    step = math.isqrt(int(gaps[-1])) + 1
    parts = [
        np.array([exp_bounds(int(gap) / scale, bits) for gap in values], dtype=object)[places]
        for values, places in (np.unique(part, return_inverse=True) for part in (gaps // step * step, gaps % step))
    ]
    product, number = parts[0] * parts[1], sizes.astype(object)
    lower = np.cumsum((product[:, 0] >> bits) * number)
    upper = np.cumsum(-(-product[:, 1] >> bits) * number)
    return lower.tolist(), upper.tolist()


def exp_bounds(exponent: Fraction, bits: int) -> tuple[int, int]:
    """Return whole numbers, at most 2 apart, with low <= 2^bits exp(-exponent) <= high; exponent >= 0.

    The exponent is halved k times to at most 1 and cut to a whole number x of units 2^-work, which moves exp by less
    than a unit. Each term of the series is cut too: its error e(i) <= 1 + e(i - 1) / i <= 2 units. What follows the
    first term of 0 alternates and falls, hence is below 2 units. Squaring k times rounds down and up.
    """
    if exponent == 0:
        return 1 << bits, 1 << bits
    halvings = math.ceil(exponent).bit_length()
    work = bits + halvings + 16
    x = (exponent.numerator << (work - halvings)) // exponent.denominator
    term = total = 1 << work
    i = 0
    while term:
        i += 1
        term = term * x // (i << work)
        total += -term if i % 2 else term
    low, high = total - 2 * i - 3, total + 2 * i + 2
    for _ in range(halvings):
        low, high = low * low >> work, -(-high * high >> work)
    return low >> (work - bits), -(-high >> (work - bits))
