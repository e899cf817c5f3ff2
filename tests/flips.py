"""The law of permute-and-flip."""

from typing import Any

import numpy as np


def flip_law(scores: Any, scale: float) -> np.ndarray:
    """Return the chance of each candidate: it shows heads, and is drawn among all heads.

    One of 1 + N is the mean of t^N over t from 0 to 1, and the coins of the others are independent:
    a polynomial of t, which a rule of Gauss and Legendre integrates exactly.
    """
    given = np.asarray(scores)
    heads = np.exp((given - given.max()) / scale)[:, None]
    nodes, weights = np.polynomial.legendre.leggauss(len(given) // 2 + 1)
    coins = 1 - heads + heads * (nodes + 1) / 2
    return (heads * coins.prod(axis=0) / coins) @ weights / 2
