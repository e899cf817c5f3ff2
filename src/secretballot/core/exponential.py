"""Choices with exponential weights: integers below and above the weights, and where a uniform real
falls among them.

Every bound is proved in whole-number arithmetic, so that a choice made with them is the one that
exact weights and all digits of the uniform real would make. Bits come from the caller, `noise`.
"""

import functools
import math
from bisect import bisect_left
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from secretballot.core.types import IntArray, ObjectArray

MAX_SCORE = 2**40  # in size: gaps between scores stay far inside 64 bits
_SPARE_BITS = 64  # the first look leaves a choice undecided with probability below 2^-60
_FLIP_BITS = 62  # of a coin at first

_Bits = Callable[[int], int]


def least_quotient(numerator: int | Fraction, denominator: float) -> float:
    """Return the smallest float q with q * denominator >= numerator in exact arithmetic: the scale
    that keeps a loss, or the loss that a scale leaves."""
    quotient = float(numerator) / denominator
    while Fraction(quotient) * Fraction(denominator) < numerator:
        quotient = math.nextafter(quotient, math.inf)
    return quotient


def _locate(uniform: int, bits: int, lower: list[int], upper: list[int], rest: int) -> int | None:
    """Return the group that [uniform, uniform + 1] / 2^bits of the total falls in, or None where it
    is open.

    lower[g] <= C(g) <= upper[g] for the running sums C; all groups unlisted weigh between 0 and
    `rest` together.
    """
    least, most = uniform * lower[-1], (uniform + 1) * (upper[-1] + rest)
    group = bisect_left(lower, -(-most >> bits))
    if group == len(lower) or (group > 0 and upper[group - 1] << bits > least):
        return None
    return group


def _running_bounds(
    gaps: IntArray, sizes: IntArray, scale: Fraction, bits: int
) -> tuple[list[int], list[int]]:
    """Return integers below and above 2^bits times the running sums of sizes * exp(-gaps /
    scale).

    `gaps` and `sizes` have shape (n_groups,).
    """
    product, number = _exponential_products(gaps, scale, bits), sizes.astype(object)
    lower = np.cumsum((product[:, 0] >> bits) * number)
    upper = np.cumsum(-(-product[:, 1] >> bits) * number)
    return lower.tolist(), upper.tolist()


def _exponential_products(gaps: IntArray, scale: Fraction, bits: int) -> ObjectArray:
    """Return integers below and above 4^bits exp(-gaps / scale), shape (n, 2).

    The gaps ascend from 0 or more.

    Every gap is split into a multiple of about its root and a rest, so that few exponentials are
    computed.
    """
    step = math.isqrt(int(gaps[-1])) + 1
    parts = [
        np.array([_exp_bounds(int(gap) / scale, bits) for gap in values], dtype=object)[places]
        for values, places in (
            np.unique(part, return_inverse=True) for part in (gaps // step * step, gaps % step)
        )
    ]
    return np.asarray(parts[0] * parts[1])


def _range_bounds(
    starts: IntArray, ends: IntArray, scale: Fraction, bits: int
) -> tuple[list[int], list[int]]:
    """Return integers below and above running sums of the weights of no range, then of all
    ranges by last place.

    No range weighs 1, the range from place i to place j >= i weighs exp((starts[i] - ends[j]) /
    scale), all of them times one factor. Both lists have m + 1 entries for m places; entry k is
    about no range and all that end before place k.

    Parameters
    ----------
    starts, ends : ndarray of int64, shape (m,)
        At most 2^40 in size.
    scale : Fraction
        At most 2^40.
    bits : int
        At least 64, and 4 times the bits of m besides.

    Notes
    -----
    Write B = 2^bits, e(d) = B exp(-d / scale), M(j) for the greatest start up to place j, and D for
    the greatest exponent of all, 0 included. With A(j) = e(M(j) - starts[0]) + ... + e(M(j) -
    starts[j]), the ranges that end at j weigh W(j) = A(j) e(D - M(j) + ends[j]) / B, and no range
    e(D), all with the factor B exp(-D / scale). As M rises by r, A is multiplied by e(r) / B; then
    the new start adds e(M(j) - starts[j]). So one pass does.

    It is made with integers t(d) <= e(d) < t(d) + 6 (products of two bounds at most 2 apart,
    cut), every product being rounded down; results are therefore never too large. How much too
    small they are:

    - A(j) by at most 3 j^2 + 4 j: at place j, a product of A' <= j B loses 6 j through t and 1 by
      rounding, while the loss so far shrinks, since t(r) + 6 <= B for r >= 1; without a rise only
      the new term loses, 6.
    - W(j) by at most 3 (j + 2)^2: 6 (j + 1) through t, 1 by rounding, and what A(j) lost times 1 +
      6 / B.
    - The sum of no range and the first k of the W by at most (k + 3)^3.
    """
    highest = np.maximum.accumulate(starts)
    best = max(0, int((highest - ends).max()))
    rises = np.diff(highest, prepend=highest[:1])
    needed = np.stack([rises, highest - starts, best - (highest - ends)])
    distinct, places = np.unique(np.append(needed.ravel(), best), return_inverse=True)
    table: list[int] = (_exponential_products(distinct, scale, bits)[:, 0] >> bits).tolist()
    lower, sums = [table[places[-1]]], 0
    for rise, drop, gap in places[:-1].reshape(3, -1).T.tolist():
        # the table's first entry is of 0, since the first place neither rises nor falls
        sums = (sums if rise == 0 else sums * table[rise] >> bits) + table[drop]
        lower.append(lower[-1] + (sums * table[gap] >> bits))
    return lower, [below + (k + 3) ** 3 for k, below in enumerate(lower)]


@functools.lru_cache(maxsize=4096)  # many candidates have the same few scores
def _exp_bounds(exponent: Fraction, bits: int) -> tuple[int, int]:
    """Return integers, at most 2 apart, with low <= 2^bits exp(-exponent) <= high; exponent >=
    0.

    The exponent is halved k times to at most 1 and cut to an integer x of units 2^-work, which
    moves exp by less than a unit. Each term of the series is cut too: its error e(i) <= 1 + e(i -
    1) / i <= 2 units. What follows the first term of 0 alternates and falls, hence is below 2
    units. Squaring k times rounds down and up.
    """
    if exponent == 0:
        return 1 << bits, 1 << bits
    if exponent > bits:
        return 0, 1
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


def drawn_index(gaps: IntArray, scale: Fraction, random_bits: _Bits) -> int:
    """Draw an index with weights exp(-gaps / scale), as `ExactNoise.exponential_index` says."""
    total = len(gaps)
    bits = _SPARE_BITS + 2 * total.bit_length()
    uniform = random_bits(bits)
    while True:
        # from the horizon on exp(-gap / scale) < 2^-bits, as log 2 < 7 / 10: one bound does for all
        # of them
        horizon = min(math.ceil(Fraction(7 * bits, 10) * scale), 2 * MAX_SCORE + 1)
        near = np.flatnonzero(gaps < horizon)
        order = near[np.argsort(gaps[near], kind="stable")]
        distinct, starts = np.unique(gaps[order], return_index=True)
        sizes = np.diff(starts, append=len(order))
        lower, upper = _running_bounds(distinct, sizes, scale, bits)
        group = _locate(uniform, bits, lower, upper, total - len(order))
        if group is not None:
            break
        uniform, bits = (uniform << bits) | random_bits(bits), 2 * bits
    return int(order[starts[group] + _uniform_below(int(sizes[group]), random_bits)])


def drawn_flip(gaps: IntArray, scale: Fraction, random_bits: _Bits) -> int:
    """Draw an index by permute-and-flip, as `ExactNoise.flipped_index` says."""
    exponents = functools.cache(lambda gap: gap / scale)
    heads = [i for i, gap in enumerate(gaps.tolist()) if _is_head(exponents(gap), random_bits)]
    return heads[_uniform_below(len(heads), random_bits)]


def _is_head(exponent: Fraction, random_bits: _Bits) -> bool:
    """Flip a coin of chance exp(-exponent): whether a uniform real is below that."""
    uniform, bits = random_bits(_FLIP_BITS), _FLIP_BITS
    while True:
        low, high = _exp_bounds(exponent, bits)
        if not low <= uniform < high:
            return uniform < low
        uniform, bits = (uniform << bits) | random_bits(bits), 2 * bits


def drawn_range(
    starts: IntArray, ends: IntArray, scale: Fraction, random_bits: _Bits
) -> tuple[int, int] | None:
    """Draw a range or none, as `ExactNoise.exponential_range` says."""
    bits = _SPARE_BITS + 4 * len(starts).bit_length()
    uniform = random_bits(bits)
    while (group := _locate(uniform, bits, *_range_bounds(starts, ends, scale, bits), 0)) is None:
        uniform, bits = (uniform << bits) | random_bits(bits), 2 * bits
    if group == 0:
        return None
    allowed = starts[:group]
    return drawn_index(allowed.max() - allowed, scale, random_bits), group - 1


def _uniform_below(n: int, random_bits: _Bits) -> int:
    """Return a uniform integer below `n`: draws of enough bits, until one is."""
    while True:
        drawn = random_bits(n.bit_length())
        if drawn < n:
            return drawn
