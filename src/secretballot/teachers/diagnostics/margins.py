"""What votes look like from inside: margins, expected margins, agreement, stability.

Everything here is private.

These functions take and return plain arrays; `diagnostics_votes` seals the same quantities, so that
they cannot slip out. One record moves one vote at every query, so that counts of clear queries,
means and curves are as private as the votes: nothing of this may be published without noise and a
price.

A label is an index into the classes, as the columns of the counts are ordered.
"""

import math

import numpy as np
import numpy.typing as npt

from secretballot._typing import FloatArray, IntArray
from secretballot._validation import check_probability
from secretballot.exceptions import DataError, Parameter, ParameterError


def vote_margins(counts: npt.ArrayLike) -> IntArray:
    """Return the votes for the first class less those for the second, at every query, shape (m,).

    Parameters
    ----------
    counts : array of shape (m, C), int
        Votes per query and class.

    Privacy
    -------
    Sensitivity : one unit moves one vote, hence every margin by up to 2.
    """
    table = _count_table(counts)
    ranked = np.partition(table, -2, axis=1)
    return np.asarray(ranked[:, -1] - ranked[:, -2], dtype=np.int64)


def instability_distances(counts: npt.ArrayLike) -> IntArray:
    """Return how many teachers must change before the label may, less one.

    Max(0, ceil(margin / 2) - 1), shape (m,).

    The stability that sparse-vector voting tests (Liu et al. 2021, Algorithm 2); the whole margin,
    which earlier papers print, moves by 2 with one vote.

    Parameters
    ----------
    counts : array of shape (m, C), int

    Privacy
    -------
    Sensitivity : one unit moves every distance by up to 1.
    """
    return np.maximum(0, (vote_margins(counts) + 1) // 2 - 1)


def label_margins(counts: npt.ArrayLike, labels: npt.ArrayLike) -> IntArray:
    """Return the votes for a given label less those for the best other class, shape (m,).

    Negative where outvoted.

    Parameters
    ----------
    counts : array of shape (m, C), int
    labels : array of shape (m,), int
        Class indices, such as those of one model trained on all records, or the truth.

    Privacy
    -------
    Sensitivity : one unit moves every margin by up to 2; more where the labels depend on it, too.
    """
    table = _count_table(counts)
    chosen = _label_column(labels, *table.shape)[:, None]
    others = table.copy()
    np.put_along_axis(others, chosen, -1, axis=1)
    return np.asarray(
        np.take_along_axis(table, chosen, axis=1)[:, 0] - others.max(axis=1), dtype=np.int64
    )


def expected_margins(counts: npt.ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """Return the expected margin Delta_n(x) at every point, estimated from retrained ensembles,
    with two errors.

    Delta_n(x) = |E[h(x)] - 1/2| for a teacher h trained on one shard (Liu et al. 2021, section
    3.2), from 0 to 1/2; for more classes half the chance of the likeliest class less that of the
    second. Estimated from the vote shares of all ensembles together; close to 0 the estimate is a
    little high, since it cannot be negative.

    Parameters
    ----------
    counts : array of shape (R, m, C), int
        Votes of R ensembles of equally many teachers at the same m points; one may be enough, since
        its teachers are independent.

    Returns
    -------
    margins : ndarray of shape (m,)
    standard_errors : ndarray of shape (m,)
        Against the margins of the distribution that the records come from: sqrt(v / K), v the
        variance of one teacher's half vote. An upper bound: splitting the same records again takes
        away the luck of the split, not that of the records (Hoeffding 1948, the variance of
        U-statistics).
    resampling_errors : ndarray of shape (m,), or None for one ensemble
        Against the mean over infinitely many ensembles of the same records.

    Raises
    ------
    DataError
        If the votes do not fit; no vote is named.

    Privacy
    -------
    Sensitivity : one unit may move all of it.
    """
    tables = np.asarray(counts)
    if tables.ndim != 3 or not len(tables):
        raise DataError(
            Parameter("counts"),
            " must hold the votes of one or more ensembles, in shape (ensembles, points, classes).",
        )
    stacked = np.stack([_count_table(table) for table in tables])
    sizes = np.unique(stacked.sum(axis=2))
    if len(sizes) != 1:
        raise DataError(
            "counts differ in the number of votes; every ensemble must vote at every point."
        )
    k, totals, rows = int(sizes[0]), stacked.sum(axis=0), np.arange(stacked.shape[1])
    first, second = np.argsort(-totals, axis=1, kind="stable")[:, :2].T
    leads = stacked[:, rows, first] - stacked[:, rows, second]
    # Integers until the last division: sums of rounded shares fall below 0 at ties, and miss
    # levels.
    voters = k * len(stacked)
    margins = leads.sum(axis=0) / (2 * voters)
    variance = (totals[rows, first] + totals[rows, second]) / (4 * voters) - margins**2
    resampling = (
        leads.std(axis=0, ddof=1) / (2 * k * math.sqrt(len(leads))) if len(leads) > 1 else None
    )
    return margins, np.sqrt(np.maximum(variance, 0) / k), resampling


def high_margin_shares(
    margins: npt.ArrayLike, levels: npt.ArrayLike, confidence: float = 0.95
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return nu(Delta), the share of points with an expected margin of at most Delta, with a band
    about the curve.

    A task has (nu, Delta)-approximate high margin if P[Delta_n(x) <= Delta] <= nu (Liu et al. 2021,
    Definition 10, with the inequality the right way round: the printed one bounds the share of
    points with a high margin).

    Parameters
    ----------
    margins : array of shape (m,)
        Expected margins at independent points, each from 0 to 1/2.
    levels : array of shape (k,)
        Values of Delta.
    confidence : float
        Chance that the whole curve of the distribution lies in the band (Dvoretzky, Kiefer and
        Wolfowitz 1956, with Massart's constant), were the margins known exactly.

    Returns
    -------
    shares, low, high : ndarray of shape (k,)

    Raises
    ------
    DataError
        If the margins do not fit; no margin is named. `ParameterError` for levels that do not.

    Privacy
    -------
    Sensitivity : one unit may move all of it.
    """
    values, at = np.asarray(margins, dtype=np.float64), np.asarray(levels, dtype=np.float64)
    if values.ndim != 1 or not values.size or not ((values >= 0) & (values <= 0.5)).all():
        raise DataError(
            Parameter("margins"),
            " must be one number from 0 to 0.5 for each of at least one point.",
        )
    if at.ndim != 1 or not np.isfinite(at).all():
        raise ParameterError(Parameter("levels"), " must be a list of finite numbers.")
    shares = np.searchsorted(np.sort(values), at, side="right") / values.size
    width = math.sqrt(
        math.log(2 / (1 - check_probability("confidence", confidence))) / (2 * values.size)
    )
    return shares, np.maximum(0, shares - width), np.minimum(1, shares + width)


def agreement(counts: npt.ArrayLike, labels: npt.ArrayLike) -> tuple[float, float, float]:
    """Return how often the vote, and how often a teacher, agrees with given labels.

    Parameters
    ----------
    counts : array of shape (m, C), int
    labels : array of shape (m,), int
        Class indices.

    Returns
    -------
    vote : float
        Share of points at which the label has the most votes, alone.
    ties : float
        Share at which it has the most votes, with another class.
    teacher : float
        Mean share of votes for the label: the agreement of a single teacher.

    Privacy
    -------
    Sensitivity : one unit may move all of it.
    """
    table = _count_table(counts)
    margins = label_margins(table, labels)
    chosen = _label_column(labels, *table.shape)[:, None]
    teacher = np.mean(np.take_along_axis(table, chosen, axis=1)[:, 0] / table.sum(axis=1))
    return float(np.mean(margins > 0)), float(np.mean(margins == 0)), float(teacher)


def unstable_shares(distances: npt.ArrayLike, needed: npt.ArrayLike) -> FloatArray:
    """Return, for every needed distance, the share of queries that fall short of it.

    The unstable ones, shape (k,).

    Parameters
    ----------
    distances : array of shape (m,)
        To instability, in votes.
    needed : array of shape (k,)
        Distances from which on a query counts as stable, such as those that a sparse vector
        answers.

    Raises
    ------
    DataError
        If a distance is none; no value is named.

    Privacy
    -------
    Sensitivity : one unit may move all of it, if many distances are alike.
    """
    values, at = (
        np.sort(np.asarray(distances, dtype=np.float64)),
        np.asarray(needed, dtype=np.float64),
    )
    if values.ndim != 1 or not values.size or not (values >= 0).all():
        raise DataError(
            Parameter("distances"),
            " must be one number of at least 0 for each of at least one query.",
        )
    if at.ndim != 1 or np.isnan(at).any():
        raise ParameterError(Parameter("needed"), " must be a list of numbers.")
    return np.asarray(np.searchsorted(values, at, side="left") / values.size, dtype=np.float64)


def _count_table(counts: npt.ArrayLike) -> IntArray:
    """Return counts as a table of integers; what is wrong is said without a value."""
    table = np.asarray(counts)
    if table.ndim != 2 or table.shape[0] == 0 or table.shape[1] < 2 or table.dtype.kind not in "iu":
        raise DataError(
            Parameter("counts"),
            " must be integers, one row for each query and one column for each of the classes.",
        )
    if (table < 0).any() or not (table.sum(axis=1) > 0).all():
        raise DataError(
            Parameter("counts"), " must be at least 0, with at least one vote in every row."
        )
    return table.astype(np.int64)


def _label_column(labels: npt.ArrayLike, n_queries: int, n_classes: int) -> IntArray:
    index = np.asarray(labels)
    if index.shape != (n_queries,) or index.dtype.kind not in "iu":
        raise DataError(
            Parameter("labels"),
            f" have shape {index.shape}; give one class index for each of the {n_queries} queries.",
        )
    if not ((index >= 0) & (index < n_classes)).all():
        raise DataError(Parameter("labels"), f" must be class indices from 0 to {n_classes - 1}.")
    return index.astype(np.int64)
