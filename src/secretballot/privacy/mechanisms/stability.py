"""The plurality of votes and its distance to instability, in whole votes."""

import numpy as np

from secretballot._typing import IntArray
from secretballot.exceptions import DataError, Parameter


def plurality(counts: IntArray) -> IntArray:
    """Return the class with the most votes, ties by a rule fixed beforehand.

    Two classes tie to class 1, as in "1 if at least half" of Liu et al. 2021; more classes tie to
    the lowest index.

    Parameters
    ----------
    counts : ndarray of int64, shape (n_queries, n_classes)
        Votes, or noisy votes.

    Returns
    -------
    ndarray of int64, shape (n_queries,)
    """
    votes = _count_table(counts)
    if votes.shape[1] == 2:
        return np.asarray(votes[:, 1] >= votes[:, 0], dtype=np.int64)
    return np.asarray(np.argmax(votes, axis=1), dtype=np.int64)


def margin(counts: IntArray) -> IntArray:
    """Return most votes minus second most, shape (n_queries,), in votes; counts need not be
    sorted."""
    votes = _count_table(counts)
    if votes.shape[1] == 2:
        return np.asarray(np.abs(votes[:, 1] - votes[:, 0]), dtype=np.int64)
    top_two = np.partition(votes, votes.shape[1] - 2, axis=1)[:, -2:]
    return np.asarray(top_two[:, 1] - top_two[:, 0], dtype=np.int64)


def stability(counts: IntArray) -> IntArray:
    """Return max(0, ceil(margin / 2) - 1): how many votes may move before the plurality can change.

    Parameters
    ----------
    counts : ndarray of int64, shape (n_queries, n_classes)
        Votes.

    Returns
    -------
    ndarray of int64, shape (n_queries,)
        Distance, in votes.

    Notes
    -----
    One teacher moves the margin by at most 2, hence this by at most 1; and where the plurality
    changes, both margins are at most 2, hence both distances 0. The un-halved margins of Bassily et
    al. 2018 and Nandi and Bassily 2020 have neither property.
    """
    half_up: IntArray = (margin(counts) + 1) // 2
    return np.maximum(half_up - 1, 0)


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
