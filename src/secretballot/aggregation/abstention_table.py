"""Voting by a table of chances: the exact plurality, withheld the more often the nearer it is to a
tie, charged for what is withheld."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar

from secretballot._validation import check_choice, check_count
from secretballot.accounting import (
    Event,
    PrivacyBudget,
    TableStream,
    calibrate_abstention_table,
    needed_distance,
)
from secretballot.accounting.abstention_table import answer_weights
from secretballot.accounting.stream_recipes import check_answerable, stream_mechanism
from secretballot.aggregation.base import Aggregator, budget_or_price, check_fields
from secretballot.core.mechanisms import AbstentionTable
from secretballot.core.streams import BITS

_TABLE = ("order", "charge", "false_answer", "max_unstable")
_FIELDS = (*_TABLE, "n_queries", "n_classes", "calibration", "budget")


class AbstentionTableAggregator(Aggregator):
    """Answer queries with the exact plurality, or abstain with a chance that falls with its lead.

    Only abstentions are charged; it stops at the T-th. It answers far less stable queries than the
    sparse vector where T is above a few, and has no hidden threshold.

    Parameters
    ----------
    order : float
        Order a of the two inequalities that the chances at neighbouring distances keep, above 1.
    charge : float
        What one abstention may add to the logarithm of the moment of that order.
    false_answer : float
        Largest chance of an answer at a tie.
    max_unstable : int
        Number T of abstentions at which the stream stops.
    n_queries : int
        Most queries that one release asks; it does not enter the price.
    n_classes : int
        Number of classes, public.
    budget : PrivacyBudget, optional
        Price of a release; the door checks it.
    delta : float, optional
        Instead of `budget`: price the table at this delta.
    calibration : str
        How the table was found, for the record.

    Privacy
    -------
    Unit : one record or user, which reaches one shard, hence one teacher.
    Relation : add or remove one unit, or replace it in place.
    Sensitivity : stability = max(0, ceil(margin / 2) - 1) moves by at most 1 when one teacher moves
        one vote, and is 0 on both sides wherever the plurality changes.
    Price : a Renyi divergence of T charge / (a - 1) at the order a, for any number of queries,
        adaptively chosen; at least one answer differs with probability at most
        1 - (1 - false_answer)^T.
    Source : docs/explanation/prices.md, section 14.
    Rounding : upward, in the accountant; chances are integers, checked with sixty digits.

    Raises
    ------
    ParameterError
        If a parameter is out of its range, or both or none of `budget` and `delta` are given.

    Examples
    --------
    >>> budget = sb.PrivacyBudget(1.0, 1e-6)
    >>> table = sb.AbstentionTableAggregator.calibrate(budget, 1000, max_unstable=50)
    >>> table.max_unstable, table.answer_probability(distance=364) > 0.999
    (50, True)
    >>> sparse = sb.SparseVectorAggregator.calibrate(budget, 1000, max_unstable=50)
    >>> sparse.answer_probability(distance=364) < 0.001
    True
    """

    name: ClassVar[str] = "abstention-table"

    def __init__(
        self,
        order: float,
        charge: float,
        false_answer: float,
        max_unstable: int,
        *,
        n_queries: int,
        n_classes: int = 2,
        budget: PrivacyBudget | None = None,
        delta: float | None = None,
        calibration: str = "given",
    ) -> None:
        self.table = TableStream(
            order=order,
            charge=charge,
            false_answer=false_answer,
            abstentions=check_count("max_unstable", max_unstable),
        )
        self.n_queries = check_count("n_queries", n_queries)
        self.n_classes = check_count("n_classes", n_classes, minimum=2)
        self.release = "labels"
        self.calibration = check_choice("calibration", calibration, ("given", "tight"))
        self.budget = budget_or_price(budget, delta, (self.table,))

    @classmethod
    def calibrate(
        cls,
        budget: PrivacyBudget,
        n_queries: int,
        *,
        max_unstable: int,
        n_classes: int = 2,
        order: float | None = None,
    ) -> "AbstentionTableAggregator":
        """Return the aggregator whose table answers the least stable queries within the budget.

        Parameters
        ----------
        budget : PrivacyBudget
            For the whole stream; delta above 0.
        n_queries, max_unstable, n_classes : int
            As for the class.
        order : float, optional
            Order of the inequalities; the best one by default. A ledger with Renyi composition
            admits it only where this is at least the ledger's order.

        Raises
        ------
        ParameterError
            If a parameter is out of its range, or no table keeps the budget.
        """
        event = calibrate_abstention_table(budget, max_unstable, order=order)
        return cls(
            event.order,
            event.charge,
            event.false_answer,
            event.abstentions,
            n_queries=n_queries,
            n_classes=n_classes,
            budget=budget,
            calibration="tight",
        )

    @property
    def sigma_of_counts(self) -> float | None:
        """None: no counts are released."""
        return None

    @property
    def max_unstable(self) -> int:
        """Number T of abstentions at which the stream stops."""
        return self.table.abstentions

    def core_mechanism(self, n_teachers: int) -> AbstentionTable:
        """Return the mechanism, for the distances that so many teachers can have."""
        found = stream_mechanism(self.table, n_teachers)
        assert isinstance(found, AbstentionTable)
        return found

    def events(self, n_teachers: int) -> tuple[Event, ...]:
        """Return what one release is to the accountant; the number of teachers does not enter."""
        check_count("n_teachers", n_teachers)
        return (self.table,)

    def describe(self) -> dict[str, Any]:
        """Return the parameters as a JSON object from which `aggregator_from_description`
        rebuilds it."""
        return {
            "name": self.name,
            **self.table.model_dump(exclude={"kind", "abstentions"}),
            "max_unstable": self.max_unstable,
            "n_queries": self.n_queries,
            "n_classes": self.n_classes,
            "calibration": self.calibration,
            "budget": self.budget.to_json(),
        }

    @classmethod
    def from_description(cls, description: Mapping[str, Any]) -> "AbstentionTableAggregator":
        """Rebuild the aggregator that `describe` describes.

        Raises
        ------
        ParameterError
            If a field is missing, unknown or out of its range.
        """
        return cls(**check_fields(description, cls.name, _FIELDS))

    def answer_probability(self, distance: int) -> float:
        """Return the probability that a query is answered if its stability is `distance`."""
        weights = answer_weights(self.table, max(0, distance))
        return float(weights[-1]) / 2.0**BITS

    @property
    def votes_per_e(self) -> float:
        """Votes over which the chance of an abstention falls by a factor of e, far from a tie.

        For the sparse vector this is the scale of the noise on a query.
        """
        far, nearer = (needed_distance(self.table, 1 - chance) for chance in (1e-6, math.e * 1e-6))
        return far - nearer if math.isfinite(far) else math.inf

    def check_useful(self, n_teachers: int) -> None:
        """Refuse a table by which even unanimous votes are hardly ever answered.

        Raises
        ------
        ParameterError
            If a unanimous vote is answered with probability below 1 %.
        """
        check_answerable(self.core_mechanism(n_teachers), n_teachers)
