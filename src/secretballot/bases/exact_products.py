"""Products of integers, exact, so that a row's do not depend on the rows around it."""

from typing import Any

import numpy as np

from secretballot._typing import IntArray

#: Floating point holds all integers up to here.
_EXACT = 2.0**53
#: Columns of weights that a product with sparse rows takes at a time: so many stay in the cache.
_COLUMNS = 64


def exact_products(rows: Any, weights: IntArray, largest: int) -> IntArray:
    """Return rows times weights, an array of int64 of shape (n_rows, n_columns).

    Parameters
    ----------
    rows : array or sparse array of int64, shape (n_rows, n_inputs)
    weights : ndarray of int64, shape (n_inputs, n_columns)
        Public.
    largest : int
        No number of `rows` is larger in size; public.

    Notes
    -----
    Where no sum can reach 2^53, floating point is exact in any order, and much faster. The weights
    alone decide, and never the rows. Otherwise the products are those of integers, of which sums
    beyond 2^63 wrap around alike in any order.
    """
    if not exact_in_floats(weights, largest):
        return np.asarray(rows.astype(np.int64) @ weights)
    floats, wide = rows.astype(np.float64, copy=False), weights.astype(np.float64)
    if isinstance(rows, np.ndarray):
        products: IntArray = (floats @ wide).astype(np.int64)
        return products
    found = np.empty((rows.shape[0], wide.shape[1]), dtype=np.int64)
    for start in range(0, wide.shape[1], _COLUMNS):
        part = slice(start, start + _COLUMNS)
        found[:, part] = floats @ np.ascontiguousarray(wide[:, part])
    return found


def exact_in_floats(weights: IntArray, largest: int) -> bool:
    """Return whether no sum over numbers up to `largest` times weights can come near 2^53.

    `weights` is an array of int64 of shape (n_inputs, n_outputs).
    """
    longest = np.abs(weights.astype(np.float64)).sum(axis=0).max(initial=0.0)
    return bool(longest * largest < _EXACT / 2)
