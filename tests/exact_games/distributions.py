"""Noise distributions written out: probabilities on integers, and what is left out.

Computed here from their definitions, not from the accountant's code: a second opinion.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from secretballot._typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Distribution:
    """Probabilities of the integers low, low + 1, ...

    Attributes
    ----------
    low : int
        Smallest listed value.
    pmf : ndarray of float64, shape (n_values,)
        Probabilities, summing to 1 - `missing` up to float error.
    missing : float
        Probability of all values that are not listed.
    """

    low: int
    pmf: FloatArray
    missing: float

    @property
    def support(self) -> IntArray:
        """The listed values, shape (n_values,)."""
        return np.arange(self.low, self.low + len(self.pmf), dtype=np.int64)

    def at_least(self, values: Any) -> FloatArray:
        """Return P(X >= value) over the listed values, for an array of integers."""
        upper = np.append(np.cumsum(self.pmf[::-1])[::-1], 0.0)
        return np.asarray(
            upper[np.clip(np.asarray(values) - self.low, 0, len(self.pmf))], dtype=np.float64
        )

    def at_most(self, values: Any) -> FloatArray:
        """Return P(X <= value) over the listed values, for an array of integers."""
        lower = np.concatenate([[0.0], np.cumsum(self.pmf)])
        return np.asarray(
            lower[np.clip(np.asarray(values) - self.low + 1, 0, len(self.pmf))], dtype=np.float64
        )


def discrete_laplace_distribution(scale: float, tail: float = 1e-14) -> Distribution:
    """Return P(x) proportional to exp(-|x| / scale), up to `tail` in total."""
    reach = math.ceil(scale * math.log(2 / tail))
    ratio = math.exp(-1 / scale)
    pmf = np.exp(-np.abs(np.arange(-reach, reach + 1.0)) / scale) * ((1 - ratio) / (1 + ratio))
    return Distribution(-reach, pmf, 2 * ratio ** (reach + 1) / (1 + ratio))


def discrete_gaussian_distribution(sigma: float, tail: float = 1e-14) -> Distribution:
    """Return P(x) proportional to exp(-x^2 / (2 sigma^2)), up to `tail` in total."""
    reach = math.ceil(sigma * math.sqrt(2 * math.log(2 / tail))) + 1
    weight = np.exp(-(np.arange(-2.0 * reach, 2 * reach + 1) ** 2) / (2 * sigma * sigma))
    pmf = weight / weight.sum()
    return Distribution(-reach, pmf[reach:-reach], float(2 * pmf[:reach].sum()))
