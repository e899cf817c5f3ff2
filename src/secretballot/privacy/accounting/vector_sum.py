"""Prices of integer vectors released with discrete Gaussian noise.

A discrete Gaussian is a continuous one of slightly less noise, rounded at random
(`docs/explanation/prices.md`, section 10). So whatever a list of integer vectors tells with
discrete noise, the same vectors tell with continuous noise of variance sigma^2 - 4, but for a
factor that no float can show; and continuous Gaussian noise composes into one Gaussian, however the
vectors were chosen.
"""

import math
from dataclasses import dataclass

from scipy.special import ndtr

from secretballot.privacy.accounting.gaussian import gaussian_delta

#: Below, the rounding takes too large a part of the noise; the Renyi bound holds there.
LEAST_SIGMA = 4.0
#: Variance of the random rounding.
ROUNDING_VARIANCE = 4.0
#: How far the sum of exp(-(k - y)^2 / 8) over the integers k may be from its integral, relatively:
#: 2 sum over m of exp(-2 pi^2 4 m^2), rounded up.
SUM_ERROR = 2.1 * math.exp(-2 * math.pi**2 * ROUNDING_VARIANCE)

#: Relative to the probability that the loss exceeds epsilon; special functions err by less.
FLOAT_ERROR = 1e-14


@dataclass(frozen=True)
class NoisyVectors:
    """Adaptively chosen integer vectors with discrete Gaussian noise of one scale.

    Parameters
    ----------
    sigma : float
        Scale of the noise on each coordinate, at least `LEAST_SIGMA`.
    squared_shifts : int
        Largest sum, over all vectors, of the squared L2 distance between neighbours.
    coordinates : int
        Number of integers released.
    """

    sigma: float
    squared_shifts: int
    coordinates: int


def noisy_vectors_delta(epsilon: float, released: list[NoisyVectors]) -> float:
    """Return a bound on delta(epsilon) of all vectors together, of any scales, adaptively chosen.

    Parameters
    ----------
    epsilon : float
        Privacy loss, in nats; any real number.
    released : list of NoisyVectors

    Privacy
    -------
    Unit, relation, sensitivity : those of the squared shifts.
    Source : Peikert 2010, Theorem 3.1 (rounding), and Dong, Roth, Su 2019, Corollary 3.3
        (composition); the proof is in `docs/explanation/prices.md`, section 10.
    Rounding : upward.
    """
    squared_mu = math.fsum(
        one.squared_shifts / (one.sigma**2 - ROUNDING_VARIANCE) for one in released
    )
    coordinates = sum(one.coordinates for one in released)
    # (1 + e)^D at most 1 + 2 e D, and D log((1 + e) / (1 - 2 e)) at most 4 e D, for such small e D
    error = SUM_ERROR * coordinates
    at, mu = epsilon - 4 * error, math.sqrt(squared_mu)
    # the profile is a difference of two near numbers where mu is tiny: charge what floats may lose
    lost = FLOAT_ERROR * float(ndtr(mu / 2 - at / mu))
    return (1 + 2 * error) * (gaussian_delta(at, mu) + lost)
