"""A student between rounds: what it predicts, and what of that an interactive mechanism left
standing.

Everything here is read off released labels and public points, so it costs nothing (Papernot et al.
2018, Algorithm 2, line 4).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from secretballot._points import class_shares, take_rows
from secretballot._typing import FloatArray, IntArray
from secretballot.exceptions import DataError
from secretballot.released import ReleasedLabels

#: Name of the mechanism whose certificate says what was confirmed.
_NO_LABEL = -1


class StudentInRounds:
    """Fit a student again before each round, to what was released and confirmed so far.

    Parameters
    ----------
    fit : callable
        Released labels to a student fitted to them.
    X_public : array, sparse matrix or frame of shape (n, n_features)
        Public points.
    classes : sequence
        Class values.
    n_teachers : int
    confidence : float
        Probability from which on a prediction that was not corrected counts as confirmed.
    """

    def __init__(
        self, fit: Any, X_public: Any, classes: Sequence[Any], n_teachers: int, confidence: float
    ) -> None:
        self._fit, self._X, self._classes = fit, X_public, tuple(classes)
        self._n_teachers, self._confidence = n_teachers, confidence
        self._rows = np.empty(0, dtype=np.int64)
        self._labels = np.empty(0, dtype=np.int64)

    @property
    def labels(self) -> IntArray:
        """Class index of every point so far, released or confirmed; -1 for the others."""
        return self._labels

    def predictions(self, rows: IntArray) -> FloatArray:
        """Return class probabilities of rows of the public points, shape (n, n_classes).

        Zeros as long as no student can be had: before two classes were released, or where it gives
        no probabilities.
        """
        nothing = np.zeros((len(rows), len(self._classes)))
        if not len(rows) or len(np.unique(self._labels[self._labels >= 0])) < 2:
            return nothing
        so_far = ReleasedLabels(
            queries=self._rows,
            labels=self._labels,
            classes=self._classes,
            n_teachers=self._n_teachers,
            sigma=None,
            noisy_counts=None,
        )
        try:
            student = self._fit(so_far)
        except DataError:  # it cannot learn from so little; it may from more
            return nothing
        if not hasattr(student, "predict_proba"):
            return nothing
        found = class_shares(student, take_rows(self._X, rows), self._classes)
        if not np.isfinite(found).all():
            return nothing
        shares = np.clip(found, 0.0, 1.0)
        scaled: FloatArray = shares / np.maximum(1.0, shares.sum(axis=1, keepdims=True))
        return scaled

    def tell(self, rows: IntArray, labels: IntArray, predictions: FloatArray) -> None:
        """Note the answers of one round, shape (n,), and what they confirm of its predictions."""
        sure = predictions.max(axis=1, initial=0.0) >= self._confidence
        confirmed = np.where(sure, predictions.argmax(axis=1), _NO_LABEL)
        self._rows = np.concatenate([self._rows, rows])
        self._labels = np.concatenate([self._labels, np.where(labels < 0, confirmed, labels)])


def with_confirmations(fit: Any, X_public: Any, released: ReleasedLabels) -> ReleasedLabels:
    """Return a release with the predictions that were confirmed, as labels of their points.

    The rounds of an interactive release are on its certificate, and the student is fitted again
    before each of them, as it was. Any other release is returned as it is.

    Parameters
    ----------
    fit : callable
        Released labels to a student fitted to them, as between the rounds.
    X_public : array, sparse matrix or frame of shape (n, n_features)
        The whole public pool.
    released : ReleasedLabels
    """
    public = released.certificate.get("public", {})
    rounds = released.certificate.get("plan", {}).get("rounds", ())
    if "confidence" not in public or sum(rounds) != len(released.queries):
        return released
    student = StudentInRounds(
        fit, X_public, released.classes, released.n_teachers, public["confidence"]
    )
    start = 0
    # round by round, since the student of each round learns from those before
    for size in rounds:
        rows, labels = (part[start : start + size] for part in (released.queries, released.labels))
        student.tell(rows, labels, student.predictions(rows))
        start += size
    return replace(released, labels=student.labels, certificate={})


def predicted_votes(predictions: ArrayLike, n_teachers: int) -> IntArray:
    """Return how many of the teachers a student's class probabilities stand for, rounded down.

    Whatever they are, the difference from them moves by one vote at most: they serve accuracy.

    Parameters
    ----------
    predictions : array of shape (n_queries, n_classes)
        Class probabilities; rows of zeros stand for no prediction.
    n_teachers : int
    """
    return np.asarray(np.floor(np.asarray(predictions) * n_teachers), dtype=np.int64)
