"""The law of permute-and-flip."""

from typing import Any

import numpy as np


def flip_law(scores: Any, scale: float) -> np.ndarray:
    """Return the chance of each candidate: it shows heads, and is drawn among all heads.

    One of 1 + N is the mean of t^N over t from 0 to 1, and the coins of the others are independent.
    """
    given = np.asarray(scores)
    heads = np.exp((given - given.max()) / scale)
    found = np.empty(len(heads))
    for i, chance in enumerate(heads):
        others = np.polynomial.Polynomial([1.0])
        for other in np.delete(heads, i):
            others = others * np.polynomial.Polynomial([1 - other, other])
        found[i] = chance * others.integ()(1.0)
    return found
