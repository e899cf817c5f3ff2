"""Sparse-vector voting: Algorithm 2 of Liu et al. 2021 and of Bassily, Thakurta, Thakkar 2018,
made right."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from secretballot._typing import IntArray
from secretballot._validation import check_choice, check_count
from secretballot.aggregation.base import (
    Aggregator,
    AnswerRun,
    Answers,
    budget_or_price,
    check_fields,
    check_votes,
)
from secretballot.core import mechanisms
from secretballot.core.noise import NoiseSource
from secretballot.exceptions import Parameter, ParameterError
from secretballot.privacy.accounting import (
    Event,
    PrivacyBudget,
    SparseStream,
    calibrate_sparse_vector,
    delta_upper,
)
from secretballot.privacy.mechanisms import (
    ABSTAINED,
    SparseVector,
    SparseVectorRun,
    plurality,
    stability,
)

_NOISE = ("threshold_scale", "query_scale", "threshold", "max_unstable")
_FIELDS = (*_NOISE, "n_queries", "n_classes", "calibration", "budget")
_HARDLY_EVER = 0.01  # a unanimous vote answered less often than this makes a release useless


def _needs_delta(budget: PrivacyBudget) -> None:
    if not budget.delta > 0:
        raise ParameterError(
            Parameter("delta"), " is 0; the sparse vector needs a delta above 0, such as 1e-6."
        )


def liu_noise(budget: PrivacyBudget, n_queries: int, max_unstable: int) -> SparseStream:
    """Return the noise that Liu et al. 2021 print in Algorithm 2, the threshold rounded up to a
    whole vote.

    Parameters
    ----------
    budget : PrivacyBudget
        With delta above 0.
    n_queries, max_unstable : int
        The paper's l and T.

    Raises
    ------
    ParameterError
        If delta is 0.

    Notes
    -----
    lambda = (sqrt(2 T (epsilon + log(2 / delta))) + sqrt(2 T log(2 / delta))) / epsilon on the
    threshold, 2 lambda on every query, w = 3 lambda log(2 (l + T) / delta).
    """
    _needs_delta(budget)
    log = math.log(2 / budget.delta)
    scale = (
        math.sqrt(2 * max_unstable)
        * (math.sqrt(budget.epsilon + log) + math.sqrt(log))
        / budget.epsilon
    )
    threshold = math.ceil(3 * scale * math.log(2 * (n_queries + max_unstable) / budget.delta))
    return SparseStream(
        threshold_scale=scale,
        query_scale=2 * scale,
        threshold=threshold,
        abstentions=max_unstable,
    )


def bassily_noise(budget: PrivacyBudget, n_queries: int, max_unstable: int) -> SparseStream:
    """Return the noise that Bassily, Thakurta, Thakkar 2018 print in Algorithm 2, the threshold
    rounded up.

    Parameters
    ----------
    budget : PrivacyBudget
        With delta above 0.
    n_queries, max_unstable : int
        The paper's m and T.

    Raises
    ------
    ParameterError
        If delta is 0.

    Notes
    -----
    lambda = sqrt(32 T log(2 / delta)) / epsilon on the threshold, 2 lambda on every query, w = 2
    lambda log(2 m / delta). Their stability is the un-halved margin, of sensitivity 2; ours is
    halved.
    """
    _needs_delta(budget)
    scale = math.sqrt(32 * max_unstable * math.log(2 / budget.delta)) / budget.epsilon
    threshold = math.ceil(2 * scale * math.log(2 * n_queries / budget.delta))
    return SparseStream(
        threshold_scale=scale,
        query_scale=2 * scale,
        threshold=threshold,
        abstentions=max_unstable,
    )


class SparseVectorAggregator(Aggregator):
    """Answer queries with the exact plurality where it is stable; stop at the T-th abstention.

    Parameters
    ----------
    threshold_scale, query_scale : float
        Scales of the discrete Laplace noise on the threshold and on every query's stability, in
        votes.
    threshold : int
        Public threshold w, in votes: a query is answered if stability + noise > w + threshold
        noise.
    max_unstable : int
        Number T of abstentions at which the stream stops.
    n_queries : int
        Most queries that one release asks; it does not enter the price.
    n_classes : int
        Number of classes, public.
    budget : PrivacyBudget, optional
        Price of a release; the door checks it.
    delta : float, optional
        Instead of `budget`: price the noise at this delta.
    calibration : str
        How the noise was found, for the record.

    Privacy
    -------
    Unit : one record or user, which reaches one shard, hence one teacher.
    Relation : add or remove one unit, or replace it in place.
    Sensitivity : stability = max(0, ceil(margin / 2) - 1) moves by at most 1 when one teacher moves
        one vote, and is 0 on both sides wherever the plurality changes.
    Price : the better of optimal composition of T epochs and the charge per abstention; at least
        one answer differs with probability at most 1 - (1 - p0)^T, whatever the number of queries,
        which may be chosen adaptively.
    Source : Liu et al. 2021, Algorithm 2; Bassily, Thakurta, Thakkar 2018, Algorithm 2, stopped one
        abstention earlier; proofs in docs/explanation/prices.md.
    Rounding : upward, in the accountant.

    Raises
    ------
    ParameterError
        If a parameter is out of its range, or both or none of `budget` and `delta` are given.

    Examples
    --------
    >>> budget = sb.PrivacyBudget(1.0, 1e-6)
    >>> aggregator = sb.SparseVectorAggregator.calibrate(budget, 1000, max_unstable=5)
    >>> aggregator.max_unstable, aggregator.release
    (5, 'labels')
    >>> aggregator.answer_probability(distance=400) > 0.99
    True
    """

    name: ClassVar[str] = "sparse-vector"

    def __init__(
        self,
        threshold_scale: float,
        query_scale: float,
        threshold: int,
        max_unstable: int,
        *,
        n_queries: int,
        n_classes: int = 2,
        budget: PrivacyBudget | None = None,
        delta: float | None = None,
        calibration: str = "given",
    ) -> None:
        self.mechanism = SparseVector(threshold_scale, query_scale, threshold, max_unstable)
        self.n_queries = check_count("n_queries", n_queries)
        self.n_classes = check_count("n_classes", n_classes, minimum=2)
        self.release = "labels"
        self.calibration = check_choice(
            "calibration", calibration, ("given", "tight", "liu2021", "btt2018")
        )
        # last: the price follows from all that was set above
        self.budget = budget_or_price(budget, delta, self._all_events())

    @classmethod
    def calibrate(
        cls,
        budget: PrivacyBudget,
        n_queries: int,
        *,
        max_unstable: int,
        n_classes: int = 2,
        calibration: str = "tight",
    ) -> "SparseVectorAggregator":
        """Return the aggregator with noise that keeps the budget.

        Parameters
        ----------
        budget : PrivacyBudget
            For the whole stream.
        n_queries, max_unstable, n_classes : int
            As for the class.
        calibration : {"tight", "liu2021", "btt2018"}
            "tight": the least noise among several designs, priced exactly. The others: the papers'
            closed forms, for comparison, with our halved margin and our stop; they are priced too.

        Raises
        ------
        ParameterError
            If a parameter is out of its range, or no noise keeps the budget.
        """
        check_choice("calibration", calibration, ("tight", "liu2021", "btt2018"))
        queries, unstable = (
            check_count("n_queries", n_queries),
            check_count("max_unstable", max_unstable),
        )
        if calibration == "tight":
            event = calibrate_sparse_vector(budget, unstable)
        else:
            printed = liu_noise if calibration == "liu2021" else bassily_noise
            event = printed(budget, queries, unstable)
            # a printed formula is trusted no more than any other noise: it is priced before it is
            # used
            if not delta_upper([event], budget.epsilon) <= budget.delta:
                raise ParameterError(
                    f"calibration {calibration!r} does not keep epsilon {budget.epsilon}, delta"
                    f" {budget.delta} at ",
                    Parameter("max_unstable"),
                    f" {unstable}; use 'tight'.",
                )
        return cls(
            event.threshold_scale,
            event.query_scale,
            event.threshold,
            unstable,
            n_queries=queries,
            n_classes=n_classes,
            budget=budget,
            calibration=calibration,
        )

    @property
    def sigma_of_counts(self) -> float | None:
        """None: no counts are released."""
        return None

    @property
    def max_unstable(self) -> int:
        """Number T of abstentions at which the stream stops."""
        return self.mechanism.max_below

    @property
    def most_abstentions(self) -> int:
        """Abstentions after which nothing more is answered: `max_unstable`."""
        return self.max_unstable

    def core_mechanism(self, n_teachers: int) -> mechanisms.SparseVector:
        """Return the mechanism of the core that draws the same answers."""
        return mechanisms.SparseVector(
            threshold_scale=self.mechanism.threshold_scale,
            query_scale=self.mechanism.query_scale,
            threshold=self.mechanism.threshold,
            max_abstentions=self.max_unstable,
        )

    def _all_events(self) -> tuple[Event, ...]:
        return (self.mechanism.event(),)

    def events(self, n_teachers: int) -> tuple[Event, ...]:
        """Return what one release is to the accountant; the number of teachers does not enter."""
        check_count("n_teachers", n_teachers)
        return self._all_events()

    def describe(self) -> dict[str, Any]:
        """Return the parameters as a JSON object from which `aggregator_from_description`
        rebuilds it."""
        noise = self.mechanism
        return {
            "name": self.name,
            "threshold_scale": noise.threshold_scale,
            "query_scale": noise.query_scale,
            "threshold": noise.threshold,
            "max_unstable": noise.max_below,
            "n_queries": self.n_queries,
            "n_classes": self.n_classes,
            "calibration": self.calibration,
            "budget": self.budget.to_json(),
        }

    @classmethod
    def from_description(cls, description: Mapping[str, Any]) -> "SparseVectorAggregator":
        """Rebuild the aggregator that `describe` describes.

        Raises
        ------
        ParameterError
            If a field is missing, unknown or out of its range.
        """
        return cls(**check_fields(description, cls.name, _FIELDS))

    def answer_probability(self, distance: int) -> float:
        """Return the probability that the first query is answered if its stability is
        `distance`."""
        return self.mechanism.above_probability(distance)

    def check_useful(self, n_teachers: int) -> None:
        """Refuse a threshold that even unanimous votes hardly ever pass.

        Raises
        ------
        ParameterError
            If a unanimous vote is answered with probability below 1 %.
        """
        k = check_count("n_teachers", n_teachers)
        largest = _largest_distance(k)
        if self.answer_probability(largest) >= _HARDLY_EVER:
            return
        # at distance w + 1 the noises decide evenly, so half of the unanimous votes pass
        enough = 2 * (self.mechanism.threshold + 2)
        fewer: tuple[str | Parameter, ...] = ()
        if self.max_unstable > 1:
            fewer = ("a smaller ", Parameter("max_unstable"), f" (now {self.max_unstable}), ")
        raise ParameterError(
            f"threshold {self.mechanism.threshold} cannot be passed: {k} teachers reach a distance"
            f" of {largest}, so even a unanimous vote is answered with probability below"
            f" {_HARDLY_EVER:.0%}; use ",
            *fewer,
            f"a larger epsilon, or at least {enough} teachers.",
        )

    def answer(self, counts: IntArray, n_teachers: int, noise: NoiseSource) -> Answers:
        """Draw the answers to at most `n_queries` queries.

        Parameters
        ----------
        counts : ndarray of int64, shape (l, n_classes)
            Votes; every row sums to `n_teachers`.
        n_teachers : int
            Number of teachers.
        noise : NoiseSource

        Returns
        -------
        Answers
            Labels -1 where it abstained and after it stopped; `n_reached` queries were looked at.

        Raises
        ------
        DataError
            If the counts do not fit; no count is named.
        """
        check_votes(counts, self, n_teachers)
        return self.start(n_teachers, noise).answer(counts)

    def start(
        self, n_teachers: int, noise: NoiseSource, state: Mapping[str, int] | None = None
    ) -> "SparseVectorVoting":
        """Begin a stream, or go on where an earlier run left its secret state.

        Raises
        ------
        ParameterError
            If the state is not one of this stream.
        """
        run = self.mechanism.start(noise) if state is None else self.mechanism.resume(noise, state)
        return SparseVectorVoting(self, n_teachers, run)


class SparseVectorVoting(AnswerRun):
    """Sparse-vector voting a few queries at a time; obtained from
    `SparseVectorAggregator.start`."""

    def __init__(
        self, aggregator: SparseVectorAggregator, n_teachers: int, run: SparseVectorRun
    ) -> None:
        self._aggregator, self._n_teachers, self._run = aggregator, n_teachers, run

    def answer(self, counts: IntArray) -> Answers:
        """Draw the answers to the next queries; those after the last abstention are not reached.

        `counts` has shape (n_queries, n_classes).
        """
        votes = check_votes(counts, self._aggregator, self._n_teachers)
        answered = self._run.test(stability(votes))
        labels = np.full(len(votes), ABSTAINED, dtype=np.int64)
        labels[: len(answered)] = np.where(answered, plurality(votes[: len(answered)]), ABSTAINED)
        return Answers(labels, None, len(answered))

    @property
    def secret_state(self) -> dict[str, int]:
        """The noisy threshold and the abstentions so far; the threshold is secret for ever."""
        return self._run.secret_state

    @property
    def stopped(self) -> bool:
        """Whether the last abstention has happened."""
        return self._run.stopped


def _largest_distance(n_teachers: int) -> int:
    """Return the stability of a unanimous vote, in votes."""
    return max(0, (n_teachers + 1) // 2 - 1)
