"""A sum of bounded integer vectors, with discrete Gaussian noise on every coordinate."""

from dataclasses import dataclass

import numpy as np

from secretballot._typing import IntArray
from secretballot._validation import LARGEST_INTEGER, check_count
from secretballot.core.noise import NoiseSource, check_scale
from secretballot.exceptions import DataError
from secretballot.privacy.accounting import (
    VectorSum,
)


@dataclass(frozen=True)
class NoisyVectorSum:
    """Release a sum of integer vectors with discrete Gaussian noise of scale sigma on each integer.

    How far a sum moves is a parameter here, and no number of votes as in a `Mechanism`.

    Parameters
    ----------
    sigma : float
        Scale of the noise, in units of the integers.
    bound : int
        Largest L2 norm of the vector of one unit of privacy.
    coordinates : int
        Number of integers in a sum.
    replaced : bool, default False
        Whether a neighbour has one unit replaced, which moves a sum by twice the bound, and not
        one more or one less.

    Privacy
    -------
    Unit : whatever has one vector: a record, or all records of a person.
    Relation : add or remove one unit, or replace one in place (`replaced`).
    Sensitivity : `bound`, or twice that, in L2 norm.
    Price : `VectorSum`, by `docs/explanation/prices.md`, section 10.
    Rounding : none: the vectors, the sum and the noise are integers. A released integer beyond
        2^53 is cut there, which costs nothing.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    Examples
    --------
    >>> from secretballot.privacy import mechanisms
    >>> mechanism = mechanisms.NoisyVectorSum(sigma=80.0, bound=10, coordinates=3)
    >>> mechanism.release(np.array([5, -2, 0]), sb.audit.ScriptedNoise([1, 0, -7])).tolist()
    [6, -2, -7]
    >>> mechanism.event(2)
    VectorSum(sigmas=(80.0, 80.0), squared_sensitivity=100, coordinates=3, count=1)
    """

    sigma: float
    bound: int
    coordinates: int
    replaced: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", check_scale("sigma", self.sigma))
        for name in ("bound", "coordinates"):
            object.__setattr__(self, name, check_count(name, getattr(self, name)))

    @property
    def squared_sensitivity(self) -> int:
        """Largest squared L2 distance of neighbouring sums."""
        return (4 if self.replaced else 1) * self.bound**2

    def event(self, count: int = 1) -> VectorSum:
        """Return what `count` sums, adaptively chosen, are to the accountant."""
        return VectorSum(
            sigmas=(self.sigma,) * count,
            squared_sensitivity=self.squared_sensitivity,
            coordinates=self.coordinates,
        )

    def release(self, total: IntArray, noise: NoiseSource) -> IntArray:
        """Return the noisy sum, int64 of shape (coordinates,).

        Parameters
        ----------
        total : ndarray of int64, shape (coordinates,)
            The exact sum: private.
        noise : NoiseSource

        Raises
        ------
        DataError
            If the sum does not fit; no value is named.
        """
        exact = np.asarray(total)
        if exact.dtype.kind not in "iu" or exact.shape != (self.coordinates,):
            raise DataError(
                f"The sum has dtype {exact.dtype} and shape {exact.shape}; give"
                f" {self.coordinates} integers."
            )
        drawn = noise.discrete_gaussian(self.sigma, self.coordinates)
        # a sum that noise takes beyond is cut, and never wraps around
        cut = np.clip(exact.astype(np.int64), -(2**61), 2**61)
        released: IntArray = np.clip(cut + drawn, 1 - LARGEST_INTEGER, LARGEST_INTEGER - 1)
        return released
