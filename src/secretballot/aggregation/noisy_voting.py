"""Noisy votes and tables of chances as sessions still take them: mechanism, number of queries and
budget. It goes when sessions take mechanisms."""

from collections.abc import Mapping
from typing import Any, ClassVar

from secretballot.accounting import (
    Event,
    PrivacyBudget,
    check_useful,
    noisy_votes,
    teacher_shape,
)
from secretballot.accounting.recipes import deviation
from secretballot.aggregation.base import Aggregator, check_fields
from secretballot.core.mechanisms import NoisyVotes, TableLabels, mechanism_in
from secretballot.core.types import VoteShape
from secretballot.exceptions import Parameter, ParameterError

_FIELDS = ("mechanism", "n_queries", "n_classes", "n_teachers", "budget")


class NoisyVoting(Aggregator):
    """A mechanism that answers every query by itself, with what its session needs to know.

    Parameters
    ----------
    mechanism : NoisyVotes or TableLabels
    n_queries, n_classes, n_teachers : int
    budget : PrivacyBudget

    Privacy
    -------
    Unit, relation, sensitivity, price : of the mechanism, on votes of this shape.

    Examples
    --------
    >>> budget = sb.PrivacyBudget(1.0, 1e-6)
    >>> sb.aggregation.NoisyVoting.calibrate(budget, 10, n_teachers=100).release
    'labels'
    """

    name: ClassVar[str] = "noisy-voting"

    def __init__(
        self,
        mechanism: NoisyVotes | TableLabels,
        n_queries: int,
        *,
        n_classes: int,
        n_teachers: int,
        budget: PrivacyBudget,
    ) -> None:
        self.mechanism, self.budget = mechanism, budget
        self.shape = teacher_shape(n_queries, n_classes, n_teachers)
        self.n_queries, self.n_classes = n_queries, n_classes
        self.release = getattr(mechanism, "release", "labels")

    @classmethod
    def of(
        cls, mechanism: NoisyVotes | TableLabels, shape: VoteShape, budget: PrivacyBudget
    ) -> "NoisyVoting":
        """Return the one for votes of this shape."""
        assert shape.n_teachers is not None
        return cls(
            mechanism,
            shape.n_queries,
            n_classes=shape.n_classes,
            n_teachers=shape.n_teachers,
            budget=budget,
        )

    @classmethod
    def calibrate(
        cls,
        budget: PrivacyBudget,
        n_queries: int,
        *,
        n_teachers: int,
        n_classes: int = 2,
        **kind: str,
    ) -> "NoisyVoting":
        """Return the least noise that keeps a budget; `kind` as for `noisy_votes`."""
        shape = teacher_shape(n_queries, n_classes, n_teachers)
        return cls.of(noisy_votes(budget, shape, **kind), shape, budget)

    @property
    def sigma_of_counts(self) -> float | None:
        """Standard deviation of the noise on released counts; None for labels alone."""
        counts = isinstance(self.mechanism, NoisyVotes) and self.release == "counts"
        return deviation(self.mechanism) if counts else None  # type: ignore[arg-type]

    def core_mechanism(self, n_teachers: int) -> NoisyVotes | TableLabels:
        """Return the mechanism."""
        return self.mechanism

    def events(self, n_teachers: int) -> tuple[Event, ...]:
        """Return what all queries are to the accountant.

        Raises
        ------
        ParameterError
            If it is priced for another number of teachers.
        """
        if n_teachers != self.shape.n_teachers:
            raise ParameterError(
                Parameter("n_teachers"),
                f" is {n_teachers}; this is priced for {self.shape.n_teachers}. Calibrate it"
                " again.",
            )
        return (self.mechanism.event(self.shape),)

    def describe(self) -> dict[str, Any]:
        """Return the terms as a JSON object."""
        return {
            "name": self.name,
            "mechanism": self.mechanism.model_dump(mode="json"),
            "n_queries": self.n_queries,
            "n_classes": self.n_classes,
            "n_teachers": self.shape.n_teachers,
            "budget": self.budget.to_json(),
        }

    @classmethod
    def from_description(cls, description: Mapping[str, Any]) -> "NoisyVoting":
        """Return the one that was described.

        Raises
        ------
        ParameterError
            If a field is missing, unknown or out of its range.
        """
        given = check_fields(description, cls.name, _FIELDS)
        mechanism = mechanism_in(given.pop("mechanism"))
        if not isinstance(mechanism, NoisyVotes | TableLabels):
            raise ParameterError(Parameter("mechanism"), " is neither noisy votes nor a table.")
        return cls(mechanism, **given)

    def check_useful(self, n_teachers: int) -> None:
        """Warn if the noise drowns even unanimous votes."""
        self.events(n_teachers)
        check_useful(self.mechanism, self.shape)
