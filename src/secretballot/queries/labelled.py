"""What was learnt so far: the answered queries, their labels, and how far to trust each."""

from dataclasses import dataclass

import numpy as np
from scipy.special import erf

from secretballot._typing import FloatArray, IntArray
from secretballot.exceptions import DataError
from secretballot.queries.base import PublicPool
from secretballot.released import ReleasedLabels


@dataclass(frozen=True)
class LabelledRows:
    """Rows of the pool with released labels.

    Attributes
    ----------
    rows, labels : ndarray of int64, shape (n,)
        Rows of the pool, and positions among the classes. Abstentions are not among them.
    weights : ndarray of float64, shape (n,)
        Confidence in each label, from 0 to 1; 1 where labels alone were released.
    asked : ndarray of int64, shape (n_queries,)
        All rows that were asked, abstentions included.
    """

    rows: IntArray
    labels: IntArray
    weights: FloatArray
    asked: IntArray

    @classmethod
    def none(cls) -> "LabelledRows":
        """Return what is known before the first answer."""
        nothing = np.empty(0, dtype=np.int64)
        return cls(nothing, nothing, np.empty(0), nothing)

    def among(self, rows: IntArray) -> "LabelledRows":
        """Return the part that belongs to `rows`, of shape (k,)."""
        kept = np.isin(self.rows, rows)
        return LabelledRows(
            self.rows[kept],
            self.labels[kept],
            self.weights[kept],
            self.asked[np.isin(self.asked, rows)],
        )

    @property
    def n_classes(self) -> int:
        """Number of classes of which a label is known."""
        return len(np.unique(self.labels))


def labelled_rows(released: ReleasedLabels, pool: PublicPool) -> LabelledRows:
    """Return the answered queries of a release.

    The confidence in a label, where noisy counts are released, is 2 Phi(gap / noise) - 1: Phi(gap /
    noise) is the probability, under a flat prior, that the class with the larger noisy count also
    has the larger true one; 0 says that the label is no better than a guess. Labels alone are
    trusted fully.

    Raises
    ------
    DataError
        If the release belongs to another pool.
    """
    queries = released.queries
    if len(queries) and not int(queries.max()) < pool.n_points:
        raise DataError(
            f"the release asked row {int(queries.max())} of a public pool of {pool.n_points} rows."
        )
    if tuple(released.classes) != tuple(pool.classes):
        raise DataError(
            "the release names other classes than the pool; give the release of this pool."
        )
    labels = released.labels
    # -1 stands for a query without an answer
    answered = labels >= 0
    weights = (
        _label_confidences(released) if released.noisy_counts is not None else np.ones(len(labels))
    )
    return LabelledRows(queries[answered], labels[answered], weights[answered], queries)


def _label_confidences(released: ReleasedLabels) -> FloatArray:
    """Return 2 Phi(gap / noise) - 1 = erf(gap / (noise sqrt 2)) of queries, shape (n_queries,)."""
    counts, sigma = released.noisy_counts, released.sigma
    assert counts is not None
    assert sigma is not None
    if counts.ndim == 1:
        gap, noise = np.abs(counts - released.n_teachers / 2), sigma
    else:
        ordered = np.sort(counts, axis=1)
        gap, noise = (ordered[:, -1] - ordered[:, -2]).astype(np.float64), sigma * np.sqrt(2.0)
    return np.asarray(erf(gap / (noise * np.sqrt(2.0))), dtype=np.float64)
