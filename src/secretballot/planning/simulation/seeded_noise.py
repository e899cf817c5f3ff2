"""Noise for simulated votes: the distributions of the real noise, from a seed."""

import numpy as np

from secretballot._typing import IntArray
from secretballot._validation import check_count
from secretballot.core.noise import check_scale


class SeededNoise:
    """Draw noise for simulated runs from a seed; it protects nothing.

    It has the methods and the distributions of `core.types.Noise`, so that a simulated run goes
    through the very mechanisms of a real one. Whoever knows the seed can subtract every draw: it
    may be added to simulated votes, which are public, and to nothing else. Planning cannot import
    what releases, so what is drawn here never reaches a release; `exact` is False, and
    `description` says so.

    Parameters
    ----------
    rng : numpy.random.Generator
        Public randomness.

    Notes
    -----
    A discrete Laplace draw is the difference of two geometric ones. A discrete Gaussian draw is a
    discrete Laplace draw y of scale t = floor(sigma) + 1, kept with probability exp(-(|y| - sigma^2
    / t)^2 / (2 sigma^2)) (Canonne, Kamath, Steinke 2020, Algorithm 3), in floating point.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    @property
    def exact(self) -> bool:
        """False: the arithmetic is floating point, and the generator can be rewound."""
        return False

    @property
    def description(self) -> str:
        """One line that no certificate should carry."""
        return "seeded noise of a simulated run; it protects nothing"

    def discrete_laplace(self, scale: float, size: int) -> IntArray:
        """Draw `size` integers with P(x) proportional to exp(-|x| / scale).

        Raises
        ------
        ParameterError
            If a parameter is out of its range.
        """
        stop = -np.expm1(-1.0 / check_scale("scale", scale))
        shape = check_count("size", size, minimum=0)
        return np.asarray(
            self._rng.geometric(stop, shape) - self._rng.geometric(stop, shape), dtype=np.int64
        )

    def discrete_gaussian(self, sigma: float, size: int) -> IntArray:
        """Draw `size` integers with P(x) proportional to exp(-x^2 / (2 sigma^2)).

        Raises
        ------
        ParameterError
            If a parameter is out of its range.
        """
        check_scale("sigma", sigma)
        # places that were refused draw again, so that each keeps its first accepted offer
        drawn = np.empty(check_count("size", size, minimum=0), dtype=np.int64)
        waiting = np.arange(size)
        scale = np.floor(sigma) + 1.0
        while len(waiting):
            offered = self.discrete_laplace(scale, len(waiting))
            distance = np.abs(offered) - sigma**2 / scale
            kept = self._rng.random(len(waiting)) < np.exp(-(distance**2) / (2 * sigma**2))
            drawn[waiting[kept]] = offered[kept]
            waiting = waiting[~kept]
        return drawn

    def uniform_integers(self, bits: int, size: int) -> IntArray:
        """Draw `size` integers, uniform on 0, ..., 2^bits - 1.

        Raises
        ------
        ParameterError
            If a parameter is out of its range.
        """
        high = 2 ** check_count("bits", bits)
        return self._rng.integers(high, size=check_count("size", size, minimum=0), dtype=np.int64)
