"""The analytic Gaussian mechanism (Balle and Wang 2018, Theorem 8; Dong, Roth and Su 2019): where
searches for noise begin. What is drawn is discrete and is priced as such."""

import math

from scipy.special import erfcx, ndtr

from secretballot.accounting.rounding import bisect_down


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


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Return the largest mu with `gaussian_delta` at most `delta` at `epsilon` (to 12 digits,
    rounded down)."""
    inverse = bisect_down(lambda noise: gaussian_delta(epsilon, 1 / noise) <= delta, 1e-6, 1e9)
    return 1 / inverse
