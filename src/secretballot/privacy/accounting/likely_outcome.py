"""How little a noisy label tells where its vote is clear: Papernot et al. 2018, Theorem 6."""

import math

import numpy as np

from secretballot._typing import FloatArray

__all__ = ["likely_outcome_renyi"]


def likely_outcome_renyi(log_q: FloatArray, sigma: float, order: float) -> FloatArray:
    """Return bounds on the Renyi divergence of one order, from the actual votes to a neighbour's.

    Parameters
    ----------
    log_q : ndarray of float, shape (n,)
        Logarithms of bounds on the chance that the outcome is not the likeliest one.
    sigma : float
        The divergence of order a is at most a / sigma^2 whatever the votes are.
    order : float
        Above 1.

    Returns
    -------
    ndarray of float, shape (n,)

    Notes
    -----
    Theorem 6 of arXiv:1802.08908 with the orders of its Proposition 10, where its conditions hold;
    else what holds for any votes. Any upper bound on the chance gives a bound.
    """
    variance, plain = sigma**2, order / sigma**2
    log_q = np.asarray(log_q, dtype=np.float64)
    with np.errstate(all="ignore"):
        mu2 = sigma * np.sqrt(-log_q)
        mu1 = mu2 + 1
        loss1, loss2 = mu1 / variance, mu2 / variance
        limit = (mu2 - 1) * loss2 - mu2 * (np.log1p(1 / (mu1 - 1)) + np.log1p(1 / (mu2 - 1)))
        holds = (mu2 > 1) & (order <= mu1) & (-log_q > loss2) & (log_q <= limit)
        log_right = np.log1p(-np.exp(log_q))
        first = log_right - np.log1p(-np.exp((log_q + loss2) * (1 - 1 / mu2)))
        second = loss1 - log_q / (mu1 - 1)
        both = np.logaddexp(log_right + (order - 1) * first, log_q + (order - 1) * second)
        # a relative 1e-9, and as much for the order's division, for float error
        bound = np.maximum(both / (order - 1), 0.0) * (1 + 1e-9) + 1e-14 / (order - 1)
    found: FloatArray = np.where(holds, np.minimum(bound, plain), plain)
    return np.where(np.isnan(found), plain, found) if math.isfinite(plain) else found
