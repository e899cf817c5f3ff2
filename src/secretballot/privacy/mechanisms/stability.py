"""The plurality of votes and its distance to instability, in whole votes."""

import numpy as np

from secretballot._typing import IntArray
from secretballot.core import mechanisms
from secretballot.exceptions import DataError, Parameter


def plurality(counts: IntArray) -> IntArray:
    """Return `core.mechanisms.plurality` of votes, shape (n_queries,)."""
    return mechanisms.plurality(_count_table(counts))


def margin(counts: IntArray) -> IntArray:
    """Return most votes minus second most, shape (n_queries,), in votes; counts need not be
    sorted."""
    return mechanisms.margin(_count_table(counts))


def stability(counts: IntArray) -> IntArray:
    """Return `core.mechanisms.stability` of votes, shape (n_queries,): how many of them may move
    before the plurality can change."""
    return mechanisms.stability(_count_table(counts))


def _count_table(counts: IntArray) -> IntArray:
    votes = np.asarray(counts)
    if votes.dtype.kind not in "iu" or votes.ndim != 2 or votes.shape[1] < 2:
        raise DataError(
            Parameter("counts"),
            f" have dtype {votes.dtype} and shape {votes.shape}; give integers of shape"
            " (n_queries, n_classes), two classes or more.",
        )
    # int64 before any difference: unsigned counts would wrap around
    return votes.astype(np.int64, copy=False)
