"""What budget groups make of the bounds of records' vectors."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from secretballot._validation import shown
from secretballot.exceptions import Parameter, ParameterError
from secretballot.learners.training.budget_groups import BudgetGroups
from secretballot.privacy.accounting import (
    BudgetGroup,
    PrivacyBudget,
    VectorSumEvent,
    largest_vector_bound,
)

__all__ = ["GroupTerms", "effective_number", "terms_of_groups"]


@dataclass(frozen=True)
class GroupTerms:
    """What is promised to the units of one group, and how long their vectors may be; public.

    Attributes
    ----------
    name : str
    bound : int
        Largest norm of a unit's vector.
    budget : PrivacyBudget
    records : int or None
        How many there are, where that is public.
    """

    name: str
    bound: int
    budget: PrivacyBudget
    records: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the terms as JSON values, for the certificate."""
        counted = {} if self.records is None else {"records": self.records}
        return {"name": self.name, "bound": self.bound, **self.budget.to_json(), **counted}

    def event_part(self, *, replaced: bool) -> BudgetGroup:
        """Return the group as an event has it."""
        squared = (4 if replaced else 1) * self.bound**2
        return BudgetGroup(self.name, squared, self.budget.epsilon, self.budget.delta)


def terms_of_groups(
    groups: BudgetGroups,
    event: VectorSumEvent,
    bound: int,
    mark_weight: int,
    *,
    counted: bool,
) -> tuple[GroupTerms, ...]:
    """Return what each group is promised, with the largest bound that keeps it.

    Parameters
    ----------
    groups : BudgetGroups
    event : VectorSumEvent
        What is drawn, for vectors of norm `bound`.
    bound : int
    mark_weight : int
        What a record of full length adds to a number that counts records.
    counted : bool
        Whether the sums count the records; their number is public otherwise.

    Raises
    ------
    ParameterError
        If a group's budget is so small that its records would not be counted.
    """
    found = []
    for place, (name, budget) in enumerate(groups.budgets.items()):
        own = largest_vector_bound(budget, event, bound)
        # what a record adds is rounded down, and 0 would count nobody of the group
        if own * mark_weight // bound < 1:
            raise ParameterError(
                Parameter("group_budgets"),
                f" has epsilon {budget.epsilon:g} for the group {shown(name)}, beside which its"
                " records would add nothing; leave them out, or give them more.",
            )
        # where the sums count the records, the size of a group is private
        records = None if counted else groups.records_of(place)
        found.append(GroupTerms(name, own, budget, records))
    return tuple(found)


def effective_number(groups: Sequence[GroupTerms], bound: int) -> float:
    """Return how many records of full length public numbers of records come to."""
    return sum((group.records or 0) * group.bound for group in groups) / bound
