"""A check of a sampler against the distributions that it should have: exact, of fixed size, before
anything is paid.

The draws depend on no data. Each sample is looked at in several ways: by value, by size, by what is
left of the size, by its tails, and as pairs of draws. Of two outcomes the count is binomial, with
exact tails. Of more the share of draws up to any outcome differs from its probability by more than
sqrt(log(2 / a) / (2 n)) with probability at most a (Massart 1990, the inequality of Dvoretzky,
Kiefer and Wolfowitz), whatever the distribution is. So all ways together raise a false alarm with
probability at most `_FALSE_ALARM`, by the union bound.

Noise of 0.7 or 1.3 times the scale is refused with probability above 1 - 1e-5 by every sample but
the last, which looks for repeated draws, and the noise of OpenDP 0.14.0 and 0.14.1 with probability
above 1 - 1e-6; the tests hold both.
"""

import math
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import bdtr, bdtrc

from secretballot.core.types import FloatArray, IntArray

#: Releases of OpenDP whose discrete Laplace and Gaussian noise is not the stated distribution.
_WRONG_OPENDP = ((0, 14, 0), (0, 14, 1))

_RELEASE = re.compile(r"\s*v?(\d{1,6})(?:\.(\d{1,6}))?(?:\.(\d{1,6}))?")


def draws_wrong_noise(version: str) -> bool:
    """Return whether this version of OpenDP, or anything built from it, is one of
    `_WRONG_OPENDP`."""
    found = _RELEASE.match(version)
    return found is not None and tuple(int(part or 0) for part in found.groups()) in _WRONG_OPENDP


_FALSE_ALARM = 1e-9  # probability that a right sampler is refused, once a process


class Sample(NamedTuple):
    """What is drawn for the check.

    Attributes
    ----------
    kind : {"laplace", "gaussian"}
    scale : float
        Scale or standard deviation of the noise, in votes.
    size : int
        Number of draws.
    singly : bool
        Whether each draw is a call of its own, as for queries that come one by one.
    """

    kind: str
    scale: float
    size: int
    singly: bool = False


# The first two have the scales at which OpenDP 0.14.0 and 0.14.1 are worst for a given number of
# draws. The first is longer than what one call draws, so it goes the way through the threads.
_SAMPLES = (
    Sample("laplace", 3.0, 40_000),
    Sample("gaussian", 2.0, 8_000),
    Sample("laplace", 0.7, 3_000),
    Sample("laplace", 1000.0, 4_000),
    Sample("gaussian", 0.6, 2_500),
    Sample("gaussian", 26.7, 2_000),
    Sample("laplace", 20.0, 100, singly=True),
)
_FAR = (0.95, 0.99)  # of the sizes; beyond such a quantile shares are too small for the inequality
# Ten ways to look at each sample. One part of the alarm is kept for draws beyond the listed
# values, which have probability below 1e-14 in all.
_ALARM = _FALSE_ALARM / (10 * len(_SAMPLES) + 1)
_REACH = 50.0  # logarithm of how much rarer than 0 the outermost listed value is


def first_failure(draw: Callable[[str, float, int], IntArray], chunk: int) -> str | None:
    """Return what is wrong with a sampler in a few words, None if nothing was found.

    Parameters
    ----------
    draw : callable
        Takes the kind of noise, its scale and a size, and returns that many draws.
    chunk : int
        How many draws are made at a time; draws so far apart must be independent too.
    """
    for kind, scale, size, singly in _SAMPLES:
        calls, each = (size, 1) if singly else (1, size)
        drawn = np.concatenate([draw(kind, scale, each) for _ in range(calls)])
        values, law = _listed_distribution(kind, scale)
        about = f"{size} draws of discrete {kind} noise of scale {scale:g}"
        if not (drawn.shape == (size,) and (np.abs(drawn) <= values[-1]).all()):
            return f"of {about}, some are missing or beyond {values[-1]}"
        for outcomes, chances in _looked_at(drawn, values, law, chunk):
            if not _fits(np.bincount(outcomes, minlength=len(chances)), chances):
                return f"{about} do not follow their law"
    return None


def _fits(counts: IntArray, chances: FloatArray) -> bool:
    """Return whether counts of outcomes may be those of independent trials."""
    n = int(counts.sum())
    if len(chances) == 2:
        times, chance = counts[1], min(float(chances[1]), 1.0)
        return bool(2 * min(bdtr(times, n, chance), bdtrc(times - 1, n, chance)) > _ALARM)
    return bool(np.abs(np.cumsum(counts / n - chances)).max() <= _most_apart(n))


def _most_apart(n: int) -> float:
    """Return by how much the shares of n draws may differ from their probabilities."""
    return math.sqrt(math.log(2 / _ALARM) / (2 * n))


def _listed_distribution(kind: str, scale: float) -> tuple[IntArray, FloatArray]:
    """Return the values of discrete noise, up to those with probability below 1e-14 in all, and
    their probabilities."""
    reach = int(np.ceil(_REACH * scale if kind == "laplace" else np.sqrt(2 * _REACH) * scale))
    values = np.arange(-reach, reach + 1, dtype=np.int64)
    weights = np.exp(
        -np.abs(values) / scale if kind == "laplace" else -(values**2) / (2 * scale**2)
    )
    return values, weights / weights.sum()


def _looked_at(
    drawn: IntArray, values: IntArray, law: FloatArray, chunk: int
) -> Iterator[tuple[IntArray, FloatArray]]:
    """Give the outcomes of independent trials, as integers from 0, and their probabilities."""
    sizes = np.abs(values)
    by_size = np.argsort(sizes, kind="stable")
    far = sizes[by_size][np.searchsorted(np.cumsum(law[by_size]), _FAR)]
    tails = [(sizes > one).astype(np.int64) for one in far]
    for numbers in (values - values[0], sizes, sizes % 2, sizes % 3, *tails):
        yield numbers[drawn - values[0]], np.bincount(numbers, law).astype(np.float64)
    # each draw is in at most one pair, so that pairs are independent of each other
    apart = chunk if len(drawn) > chunk else len(drawn) // 2
    beside = len(drawn) - len(drawn) % 2
    positive = float(law[values > 0].sum()) ** 2
    for first, second in (
        (drawn[0:beside:2], drawn[1:beside:2]),
        (drawn[:-apart][:apart], drawn[apart:][:apart]),
    ):
        for alike, chance in ((first == second, law @ law), ((first > 0) & (second > 0), positive)):
            yield alike.astype(np.int64), np.array([1 - chance, chance])
