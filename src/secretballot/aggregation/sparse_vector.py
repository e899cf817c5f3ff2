"""Sparse-vector voting: Algorithm 2 of Liu et al. 2021 and of Bassily, Thakurta, Thakkar 2018,
made right."""

from collections.abc import Mapping
from typing import Any, ClassVar

from secretballot._validation import check_choice, check_count
from secretballot.accounting import Event, PrivacyBudget, sparse_vector
from secretballot.accounting.stream_recipes import answer_chance, check_answerable
from secretballot.aggregation.base import Aggregator, budget_or_price, check_fields
from secretballot.core.mechanisms import SparseVector

_NOISE = ("threshold_scale", "query_scale", "threshold", "max_unstable")
_FIELDS = (*_NOISE, "n_queries", "n_classes", "calibration", "budget")


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
        self.mechanism = SparseVector(
            threshold_scale=threshold_scale,
            query_scale=query_scale,
            threshold=threshold,
            max_abstentions=max_unstable,
        )
        self.n_queries = check_count("n_queries", n_queries)
        self.n_classes = check_count("n_classes", n_classes, minimum=2)
        self.release = "labels"
        self.calibration = check_choice(
            "calibration", calibration, ("given", "tight", "liu2021", "btt2018")
        )
        # last: the price follows from all that was set above
        self.budget = budget_or_price(budget, delta, (self.mechanism.stream_event(),))

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
        found = sparse_vector(
            budget, n_queries, max_abstentions=max_unstable, calibration=calibration
        )
        return cls(
            found.threshold_scale,
            found.query_scale,
            found.threshold,
            found.max_abstentions,
            n_queries=n_queries,
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
        return self.mechanism.max_abstentions

    def core_mechanism(self, n_teachers: int) -> SparseVector:
        """Return the mechanism."""
        return self.mechanism

    def events(self, n_teachers: int) -> tuple[Event, ...]:
        """Return what one release is to the accountant; the number of teachers does not enter."""
        check_count("n_teachers", n_teachers)
        return (self.mechanism.stream_event(),)

    def describe(self) -> dict[str, Any]:
        """Return the parameters as a JSON object from which `aggregator_from_description`
        rebuilds it."""
        noise = self.mechanism
        return {
            "name": self.name,
            "threshold_scale": noise.threshold_scale,
            "query_scale": noise.query_scale,
            "threshold": noise.threshold,
            "max_unstable": noise.max_abstentions,
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
        return answer_chance(self.mechanism, distance)

    def check_useful(self, n_teachers: int) -> None:
        """Refuse a threshold that even unanimous votes hardly ever pass.

        Raises
        ------
        ParameterError
            If a unanimous vote is answered with probability below 1 %.
        """
        check_answerable(self.mechanism, check_count("n_teachers", n_teachers))
