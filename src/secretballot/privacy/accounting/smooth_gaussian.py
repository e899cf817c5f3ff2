"""The price of a number whose noise follows the votes: smooth sensitivity with Gaussian noise."""

import math

import numpy as np

from secretballot._typing import FloatArray

__all__ = ["LEAST_SCALE", "LOG_STEP", "smooth_renyi_at"]

#: Logarithm of the ratio of two neighbouring scales.
LOG_STEP = 1e-3
#: Units of the released number; below, discrete noise is not priced as rounded continuous noise.
LEAST_SCALE = 1000.0
_ROUNDING = 1e-5  # of the ratio and of the logarithm, for the lattice at that scale and for floats
_SLACK = 1e-12


def smooth_renyi_at(
    orders: FloatArray, noise_ratio: float, steps: int, scale_sigma: float
) -> FloatArray:
    """Return bounds on the Renyi divergence at orders above 1, infinite where there is none.

    Parameters
    ----------
    orders : ndarray of float
    noise_ratio, steps, scale_sigma
        As for `SmoothGaussianEvent`.

    Returns
    -------
    ndarray of float, of the shape of `orders`

    Notes
    -----
    docs/explanation/prices.md, section 17: two normal distributions whose means differ by at most
    the smaller of both scales over `noise_ratio`, and whose scales by a factor e^t, with t within
    `steps` steps; and the noisy number of the scale.
    """
    a = np.asarray(orders, dtype=np.float64)
    ratio, reach = noise_ratio * (1 - _ROUNDING), steps * LOG_STEP + _ROUNDING
    # variance of the tilted distribution over that of the first one; none where it is not positive
    narrow = a * math.exp(-2 * reach) + 1 - a
    possible = narrow > 0
    safe = np.where(possible, narrow, 1.0)
    shift = a * math.exp(-2 * reach) / (2 * ratio**2 * safe)
    scales = np.maximum(
        (2 * a * reach - np.log1p(a * math.expm1(2 * reach))) / (2 * (a - 1)),
        (-2 * a * reach - np.log(safe)) / (2 * (a - 1)),
    )
    told = a * steps**2 / (2 * scale_sigma**2)
    bound: FloatArray = np.where(possible, shift + scales + told + _SLACK / (a - 1), np.inf)
    return bound
