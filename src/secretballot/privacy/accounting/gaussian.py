"""Prices of discrete Gaussian noise, and the analytic Gaussian beside it.

The analytic privacy profile (Balle and Wang 2018, Theorem 8; Dong, Roth and Su 2019) speaks about
continuous noise. What we draw is discrete, so what we price is discrete: n released integers, each
moved by at most one vote, compose to the n-fold product of the pair (N, N + 1), whose privacy loss
depends on the sum of the noises alone. That sum is, up to a Fourier error below any float, a normal
distribution restricted to the integers; its hockey-stick divergence is a plain sum. The difference
from the analytic figure is of the order z^2 / (12 n sigma^2) in relative delta (z about 5): 5e-5 at
100 queries and sigma 20, less for more noise. `docs/explanation/prices.md` has the proof.
"""

import functools
import math

import numpy as np
from scipy.special import erfcx, ndtr

from secretballot._typing import FloatArray
from secretballot.privacy.accounting.renyi import renyi_delta
from secretballot.privacy.accounting.rounding import bisect_down, round_up

FLAT_SIGMA = 4.0  # from here on |P(S = s) - normal density| <= 5 n exp(-pi^2 sigma^2 / 2) < 3e-34 n
# lattice points summed directly; beyond, the rounding bound below is under 1e-7 of delta
MAX_TERMS = 100_000
MAX_FOLDS = 16384  # shifts convolved directly when sigma is below FLAT_SIGMA
TAIL = 12.5  # standard deviations; the sub-Gaussian tail beyond is exp(-TAIL^2 / 2) < 2e-34


def gaussian_delta(epsilon: float, mu: float) -> float:
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


def gaussian_epsilon(delta: float, mu: float) -> float:
    """Return the smallest epsilon >= 0 with `gaussian_delta` at most `delta` (to 12 digits,
    rounded up)."""
    return bisect_down(
        lambda epsilon: gaussian_delta(epsilon, mu) <= delta, 0.0, mu * mu / 2 + 40 * mu + 1
    )


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Return the largest mu with `gaussian_delta` at most `delta` at `epsilon` (to 12 digits,
    rounded down)."""
    inverse = bisect_down(lambda noise: gaussian_delta(epsilon, 1 / noise) <= delta, 1e-6, 1e9)
    return 1 / inverse


def discrete_gaussian_pmf(sigma: float) -> tuple[int, FloatArray]:
    """Return (reach, pmf) of the discrete Gaussian on -reach..reach.

    What is left out weighs less than 1e-42.
    """
    reach = math.ceil(14 * sigma) + 2
    x = np.arange(-reach, reach + 1, dtype=np.float64)
    weight = np.exp(-(x * x) / (2 * sigma * sigma))
    return reach, weight / weight.sum()


def discrete_gaussian_delta(epsilon: float, sigma: float, shifts: int) -> float:
    """Return delta(epsilon), rounded up, of `shifts` integers released with discrete Gaussian
    noise.

    Every integer moves by at most one vote between neighbours; the values may be chosen adaptively.

    Parameters
    ----------
    epsilon : float
        Privacy loss, in nats; any real number.
    sigma : float
        Scale of the noise, in votes.
    shifts : int
        Number n of integers.

    Privacy
    -------
    Unit, relation : one teacher changes its votes (add/remove or replace).
    Sensitivity : one vote per integer.
    Source : product of the dominating pairs (Zhu, Dong, Wang 2022, Theorem 10); Canonne, Kamath,
        Steinke 2020 for the distribution; the lattice sum is exact up to float error, which is
        added.
    Rounding : upward.
    """
    if sigma >= FLAT_SIGMA:
        raw = _lattice_delta(epsilon, sigma, shifts)
    elif shifts <= MAX_FOLDS:
        raw = _convolved_delta(epsilon, sigma, shifts)
    else:
        raw = renyi_delta(lambda order: order * shifts / (2 * sigma * sigma), epsilon)
    return min(1.0, round_up(raw))


def _lattice_delta(epsilon: float, sigma: float, shifts: int) -> float:
    """Sum the hockey stick of the loss (2 s + n) / (2 sigma^2) over the lattice, s ~ normal(0, n
    sigma^2)."""
    variance = shifts * sigma * sigma
    deviation = math.sqrt(variance)
    start = epsilon * sigma * sigma - shifts / 2
    first, last = max(math.floor(start), math.floor(-TAIL * deviation)), math.ceil(TAIL * deviation)
    terms = max(0, last - first + 1)
    beyond = (
        2 * math.exp(-TAIL * TAIL / 2)
        + 5 * shifts * math.exp(-(math.pi**2) * sigma * sigma / 2) * terms
    )
    if not terms:
        return beyond
    if terms > MAX_TERMS:
        excess = _lattice_excess(epsilon, start, shifts, variance)
        return gaussian_delta(epsilon, math.sqrt(shifts) / sigma) + excess + beyond
    s = np.arange(first, last + 1, dtype=np.float64)
    gain = -np.expm1(np.minimum(0.0, (start - s) / (sigma * sigma)))
    total = float(np.sum(np.exp(-s * s / (2 * variance)) * gain))
    return total / math.sqrt(2 * math.pi * variance) + beyond


def _lattice_excess(epsilon: float, start: float, shifts: int, variance: float) -> float:
    """Bound lattice sum minus integral: a quarter of the total variation of the integrand's slope.

    The integrand is n(s) - e^epsilon n(s + shifts) from `start` on, n the normal density. Past one
    deviation both slopes shrink towards 0, and the two terms agree at `start`; before, each slope
    varies by less than 1 / variance.
    """
    if start <= math.sqrt(variance):
        return min(1.0, (1 + math.exp(min(epsilon, 700.0))) / (2 * variance))
    density = math.exp(-start * start / (2 * variance)) / math.sqrt(2 * math.pi * variance)
    return density * (2 * start + shifts) / (2 * variance)


def _convolved_delta(epsilon: float, sigma: float, shifts: int) -> float:
    """The same sum for small sigma, where the distribution of the sum comes from convolving the pmf
    with itself."""
    distribution = _summed_distribution(sigma, shifts)
    reach = len(distribution) // 2
    s = np.arange(-reach, reach + 1, dtype=np.float64)
    gain = -np.expm1(np.minimum(0.0, (epsilon * sigma * sigma - shifts / 2 - s) / (sigma * sigma)))
    return float(np.sum(distribution * gain)) + _left_out(shifts)


def count_losses(sigma: float, shifts: int) -> tuple[FloatArray, FloatArray, float]:
    """Return the privacy losses of `shifts` noisy integers, each moved by one, their chances, and
    the chance of all that is left out, to be taken for an infinite loss.

    For noise of any scale, and up to `MAX_FOLDS` shifts. The losses are exact: see
    `discrete_gaussian_delta`.
    """
    distribution = _summed_distribution(sigma, shifts)
    reach = len(distribution) // 2
    s = np.arange(-reach, reach + 1, dtype=np.float64)
    return (s + shifts / 2) / (sigma * sigma), distribution, _left_out(shifts)


def _left_out(shifts: int) -> float:
    # a cut drops less than 2 exp(-TAIL^2 / 2), and a block that was cut counts at most `shifts`
    # times
    return 4 * shifts * math.exp(-TAIL * TAIL / 2)


@functools.lru_cache(maxsize=8)
def _summed_distribution(sigma: float, shifts: int) -> FloatArray:
    """Return the distribution of the sum of `shifts` discrete Gaussians, cut at `TAIL`
    deviations."""
    _, base = discrete_gaussian_pmf(sigma)
    result, held, folds, left = np.ones(1), 0, 1, shifts
    while left:
        if left & 1:
            held += folds
            result = _cut_tails(np.convolve(result, base), sigma, held)
        left >>= 1
        if left:
            folds *= 2
            base = _cut_tails(np.convolve(base, base), sigma, folds)
    return result


def _cut_tails(distribution: FloatArray, sigma: float, folds: int) -> FloatArray:
    reach, middle = math.ceil(TAIL * sigma * math.sqrt(folds)) + 2, len(distribution) // 2
    return distribution if reach >= middle else distribution[middle - reach : middle + reach + 1]
