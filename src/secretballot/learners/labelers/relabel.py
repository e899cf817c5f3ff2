"""A secret random sample of private records, and their relabelling by one hypothesis of a class.

Neither is private by itself. What comes out holds the private points and labels computed from the
private ones: it belongs in the vault, or into the shards of teachers whose votes are released with
noise (`secretballot.learners.labelers.labeler`).

A sample makes a release cheaper only as long as nobody learns who was sampled, and only for the one
reservation that it was drawn for: once a release has revealed something of the sample, a second one
on the same sample is not amplified. So it is drawn from the operating system's entropy and never
kept as row numbers.
"""

import json
import uuid
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from secretballot._typing import FloatArray, IntArray
from secretballot._validation import check_positive
from secretballot.accounting import Sampled
from secretballot.core.exponential import least_quotient
from secretballot.core.noise import entropy_bytes
from secretballot.core.releasing import noise_source
from secretballot.hypotheses import Hypothesis, HypothesisClass
from secretballot.hypotheses.base import check_hypotheses
from secretballot.hypotheses.ranges import EMPTY, IntervalDichotomies
from secretballot.learners.training.table import Table, assign_shards
from secretballot.teachers.ensemble import TeacherEnsemble, learner_identity


class SecretSample(Table):
    """Private records of which a secret random sample, relabelled by one hypothesis, is dealt out
    to teachers; it is drawn as they are trained, and forgotten then.

    Parameters
    ----------
    X : ndarray of float64, shape (n, n_features)
    targets : ndarray of 0 and 1, shape (n,)
    event : Sampled
        How it is drawn and relabelled.
    hypotheses : HypothesisClass
    n_queries, request
        Of the one reservation that it is drawn for.
    """

    def __init__(
        self,
        X: FloatArray,
        targets: IntArray,
        event: Sampled,
        hypotheses: HypothesisClass,
        n_queries: int,
        request: str,
    ) -> None:
        super().__init__(X, targets, None, None)
        self._event, self._hypotheses = event, hypotheses
        # what cannot be pickled is never known again
        known = learner_identity(hypotheses) or uuid.uuid4().hex
        self._terms = known, json.dumps([event.model_dump(mode="json"), n_queries, request])

    @property
    def identity(self) -> tuple[Any, ...]:
        """All that teachers of the sample depend on besides settings; private."""
        return (*super().identity, *self._terms)

    def teachers(
        self,
        teacher: Any,
        n_teachers: int,
        relation: str,
        vault: Path | None,
        random_state: int | None,
        **training: Any,
    ) -> TeacherEnsemble:
        """Return one teacher for every shard of the sample."""
        # Under replace-one the place in the random order of the sample decides on the shard; under
        # add-remove a random number of the record itself does, drawn whether or not it is sampled,
        # so that no other record has a say in either.
        event = self._event
        if relation == "replace-one":
            rows = sample_in_random_order(event.out_of, event.sampled)
            shards = assign_shards(len(rows), n_teachers, relation, None, None)
        else:
            rows = sample_independently(self.n_records, event.sampled, event.out_of)
            shards = assign_shards(self.n_records, n_teachers, relation, None, None)[rows]
        sample, labels = self._records[rows], self._targets[rows]
        if len(rows):  # under add-remove a sample may be empty, and an error would tell
            epsilon = event.relabel_epsilon
            labels = relabel(sample, labels, self._hypotheses, relabel_epsilon=epsilon)
        return TeacherEnsemble.fit(
            teacher,
            sample,
            labels,
            shards,
            n_teachers=n_teachers,
            random_state=random_state or 0,
            **training,
        )


def relabel(
    X: ArrayLike, y: ArrayLike, hypotheses: HypothesisClass, *, relabel_epsilon: float = 1.0
) -> IntArray:
    """Return new labels for private points, all given by one hypothesis; PRIVATE, as `y` is.

    Among the labellings that the class gives to the points, one is drawn with probability
    proportional to exp(-relabel_epsilon * mistakes / 2), exactly. A learner that meets its records
    relabelled meets them without noise; that is what makes teachers agree.

    Parameters
    ----------
    X : array of shape (n, n_features)
        Private points; equal ones get equal labels.
    y : array of 0 and 1, shape (n,)
        Private labels.
    hypotheses : HypothesisClass
    relabel_epsilon : float
        The epsilon of the exponential mechanism, in nats: the smaller, the more mistakes, about
        (2 / relabel_epsilon) times the logarithm of the number of labellings.

    Returns
    -------
    ndarray of int64, shape (n,)
        0 and 1.

    Raises
    ------
    DataError
        If points or labels do not fit the class.
    ParameterError
        If `hypotheses` is no class of hypotheses, or `relabel_epsilon` is out of its range.

    Privacy
    -------
    None by itself: the candidates depend on private points, so that the labels of all points may
    tell of one. Paid for together with a private algorithm that runs on the relabelled records
    (`Sampled`).

    Notes
    -----
    Cost: O(d n log n) for thresholds, stumps and intervals; else that of the errors of all
    labellings.
    Source: Nandi and Bassily 2020, Algorithm 2; Beimel, Nissim, Stemmer 2015.

    Examples
    --------
    >>> thresholds = sb.hypotheses.Thresholds()
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1]
    >>> labels = sb.relabel(X, y, thresholds, relabel_epsilon=100.0)
    >>> labels.tolist() in ([0, 0, 0, 1], [0, 1, 1, 1])
    True
    """
    check_hypotheses(hypotheses)
    # a replaced record moves mistakes both ways
    scale = least_quotient(2, check_positive("relabel_epsilon", relabel_epsilon))
    # Intervals have as many labellings as pairs of points: they are drawn by their two ends, which
    # needs no list of them.
    labellings = hypotheses.dichotomies(X)
    if isinstance(labellings, IntervalDichotomies):
        ends = noise_source().exponential_range(*labellings.prefix_mistakes_on(X, y), scale)
        chosen: Hypothesis = EMPTY if ends is None else labellings.between(*ends)
    else:
        index = noise_source().exponential_index(-labellings.errors(y), scale)
        chosen = labellings.hypothesis(index)
    return chosen.predict(X)


def sample_in_random_order(n_records: int, n_sampled: int) -> IntArray:
    """Return rows drawn uniformly without replacement, in uniformly random order, shape
    (n_sampled,).

    The order matters: rows are dealt to teachers by their place in it. A sample in the order of the
    table would move many records to other teachers when one of them is exchanged for one further
    up, and nothing would be amplified.
    """
    while True:
        keys = _random_words(n_records)
        order = np.argsort(keys)
        # distinct keys are in every order with the same probability; equal ones, once in 2^64 / n^2
        # draws, are redrawn
        if (np.diff(keys[order]) > 0).all():
            return order[:n_sampled].astype(np.int64)


def sample_independently(n_records: int, sampled: int, out_of: int) -> IntArray:
    """Return the rows taken, each by itself with probability sampled / out_of (less 2^-64 at most),
    in their order.
    """
    if sampled == out_of:
        return np.arange(n_records, dtype=np.int64)
    # a lower rate costs less, so rounding down keeps the price
    return np.flatnonzero(_random_words(n_records) < np.uint64(sampled * 2**64 // out_of)).astype(
        np.int64
    )


def _random_words(n: int) -> NDArray[np.uint64]:
    return np.frombuffer(entropy_bytes(8 * n), dtype=np.uint64)
