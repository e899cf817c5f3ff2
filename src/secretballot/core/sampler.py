"""A check of a sampler against the distributions that it should have: exact, of fixed size, before
anything is paid.

The draws depend on no data. A sample is looked at through cells: sets of values, or of pairs of
draws, whose probability is known. How many of n independent draws fall into a cell is binomial, so
each p-value is an exact binomial tail, and all of them together raise a false alarm with
probability at most `FALSE_ALARM`, by the union bound.

`detection_probability` bounds the power from below. Noise of 0.7 or 1.3 times the scale is refused
with probability above 1 - 1e-5 by every sample but the last, which looks for repeated draws, and
the noise of OpenDP 0.14.0 and 0.14.1 with probability above 1 - 1e-6; the tests hold both.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, bdtrc

from secretballot.core.types import BoolArray, FloatArray, IntArray

#: Releases of OpenDP whose discrete Laplace and Gaussian noise is not the stated distribution.
WRONG_OPENDP = ((0, 14, 0), (0, 14, 1))

_RELEASE = re.compile(r"\s*v?(\d{1,6})(?:\.(\d{1,6}))?(?:\.(\d{1,6}))?")


def draws_wrong_noise(version: str) -> bool:
    """Return whether this version of OpenDP, or anything built from it, is one of
    `WRONG_OPENDP`."""
    found = _RELEASE.match(version)
    return found is not None and tuple(int(part or 0) for part in found.groups()) in WRONG_OPENDP


FALSE_ALARM = 1e-9  # probability that a right sampler is refused, once a process

Draw = Callable[[str, float, int], IntArray]
# how often something came, in how many trials, its probability
Count = tuple[int, int, float]


@dataclass(frozen=True)
class Sample:
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
SAMPLES = (
    Sample("laplace", 3.0, 26_000),
    Sample("gaussian", 2.0, 8_000),
    Sample("laplace", 0.7, 3_000),
    Sample("laplace", 1000.0, 4_000),
    Sample("gaussian", 0.6, 2_500),
    Sample("gaussian", 26.7, 2_000),
    Sample("laplace", 20.0, 100, singly=True),
)
_QUANTILES = (0.02, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 0.98)
_SIZE_QUANTILES = (0.25, 0.5, 0.75, 0.95)
_SINGLE_SIZES, _MODULI = 4, (2, 3)
# and four sets of pairs
_MOST_CELLS = len(_QUANTILES) + len(_SIZE_QUANTILES) + _SINGLE_SIZES + sum(_MODULI) + 4
# One part of the alarm is kept for draws beyond the listed values, which have probability below
# 1e-14 in all.
_ALARM = FALSE_ALARM / (len(SAMPLES) * _MOST_CELLS + 1)
_REACH = 50.0  # logarithm of how much rarer than 0 the outermost listed value is


def first_failure(draw: Draw, chunk: int) -> str | None:
    """Return what is wrong with a sampler in a few words, None if nothing was found.

    Parameters
    ----------
    draw : callable
        Takes the kind of noise, its scale and a size, and returns that many draws.
    chunk : int
        How many draws are made at a time; draws so far apart must be independent too.
    """
    for sample in SAMPLES:
        drawn = _draws_of(draw, sample)
        values, probabilities = listed_distribution(sample.kind, sample.scale)
        about = f"{sample.size} draws of discrete {sample.kind} noise of scale {sample.scale:g}"
        if not (drawn.shape == (sample.size,) and (np.abs(drawn) <= values[-1]).all()):
            return f"of {about}, some are missing or beyond {values[-1]}"
        for count, trials, probability in _all_counts(drawn, values, probabilities, chunk):
            if not _p_value(np.asarray(count), trials, probability) > _ALARM:
                return f"{about} do not follow their law"
    return None


def listed_distribution(kind: str, scale: float) -> tuple[IntArray, FloatArray]:
    """Return the values of discrete noise, up to those with probability below 1e-14 in all, and
    their probabilities."""
    reach = int(np.ceil(_REACH * scale if kind == "laplace" else np.sqrt(2 * _REACH) * scale))
    values = np.arange(-reach, reach + 1, dtype=np.int64)
    weights = np.exp(
        -np.abs(values) / scale if kind == "laplace" else -(values**2) / (2 * scale**2)
    )
    return values, weights / weights.sum()


def _draws_of(draw: Draw, sample: Sample) -> IntArray:
    if not sample.singly:
        return draw(sample.kind, sample.scale, sample.size)
    return np.concatenate([draw(sample.kind, sample.scale, 1) for _ in range(sample.size)])


def _all_counts(
    drawn: IntArray, values: IntArray, probabilities: FloatArray, chunk: int
) -> Iterator[Count]:
    for mask in _cells(values, probabilities):
        yield int(mask[drawn - values[0]].sum()), len(drawn), float(probabilities[mask].sum())
    # each draw is in at most one pair, so that pairs are independent of each other
    apart = chunk if len(drawn) > chunk else len(drawn) // 2
    beside = len(drawn) - len(drawn) % 2
    positive = float(probabilities[values > 0].sum())
    for first, second in (
        (drawn[0:beside:2], drawn[1:beside:2]),
        (drawn[:-apart][:apart], drawn[apart:][:apart]),
    ):
        yield int((first == second).sum()), len(first), float(probabilities @ probabilities)
        yield int(((first > 0) & (second > 0)).sum()), len(first), positive**2


def _cells(values: IntArray, probabilities: FloatArray) -> Iterator[BoolArray]:
    """Yield which of the listed values are in each of some sets."""
    sizes = np.abs(values)
    for cut in _quantiles_of(values, probabilities, _QUANTILES):
        yield values <= cut
    by_size = np.argsort(sizes, kind="stable")
    for cut in _quantiles_of(sizes[by_size], probabilities[by_size], _SIZE_QUANTILES):
        yield sizes <= cut
    for size in range(_SINGLE_SIZES):
        yield sizes == size
    for modulus in _MODULI:
        for rest in range(modulus):
            yield sizes % modulus == rest


def _quantiles_of(
    ordered: IntArray, probabilities: FloatArray, shares: tuple[float, ...]
) -> IntArray:
    return np.unique(ordered[np.searchsorted(np.cumsum(probabilities), shares)])


def _p_value(count: NDArray[np.integer], trials: int, probability: float) -> FloatArray:
    """Return two-sided exact p-values of counts of successes."""
    chance = min(probability, 1.0)
    lower, upper = bdtr(count, trials, chance), bdtrc(count - 1, trials, chance)
    return np.asarray(np.minimum(1.0, 2 * np.minimum(lower, upper)), dtype=np.float64)
