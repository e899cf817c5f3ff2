"""Gaussian voting in which the teachers of some groups cast more votes than those of others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from secretballot._validation import check_choice, check_count, check_instance, shown
from secretballot.aggregation.base import check_fields
from secretballot.aggregation.gaussian import right_chance, warn_if_drowned
from secretballot.aggregation.noisy_voting import NoisyVoting
from secretballot.exceptions import Parameter, ParameterError
from secretballot.privacy.accounting import (
    BudgetGroup,
    GroupedEvent,
    GroupedLabelEvent,
    GroupedVectorSumEvent,
    PrivacyBudget,
    VectorSumEvent,
    WeightedLabelEvent,
    calibrate_vector_sum,
    calibrate_weighted_labels,
    largest_vector_bound,
    largest_weight,
)
from secretballot.privacy.accounting.events import MAX_GROUPS, is_group_name
from secretballot.privacy.mechanisms import (
    GaussianNoisyArgmax,
    GaussianNoisyCount,
    GaussianNoisyHistogram,
    GaussianNoisyMajority,
)
from secretballot.privacy.noise import check_scale

__all__ = ["FULL_WEIGHT", "VotingGroup", "WeightedGaussianAggregator"]

#: Votes of a teacher of the group with the largest budget; weights are told apart by a hundredth.
FULL_WEIGHT = 100
_FIELDS = ("sigma", "n_queries", "n_classes", "release", "groups", "calibration", "budget")
_GROUP_FIELDS = {"name", "weight", "teachers", "epsilon", "delta"}
_ONE_BUDGET = "give each group a PrivacyBudget(epsilon, delta)"


@dataclass(frozen=True)
class VotingGroup:
    """Teachers whose units are of one budget group: how many, how many votes each of them casts,
    and what is promised to each unit; public, as is who is in the group.

    Parameters
    ----------
    name : str
        On one line, at most 60 characters.
    weight : int
        Votes that each teacher of the group casts at every query, all for one class.
    n_teachers : int
        How many they are.
    budget : PrivacyBudget

    Examples
    --------
    >>> from secretballot.aggregation import VotingGroup
    >>> VotingGroup("strict", 50, 100, sb.PrivacyBudget(0.5, 1e-6)).votes
    5000
    """

    name: str
    weight: int
    n_teachers: int
    budget: PrivacyBudget

    def __post_init__(self) -> None:
        if not is_group_name(self.name):
            raise ParameterError(
                f"A budget group is named {shown(self.name)}; a name is a text on one line, of at"
                " most 60 characters."
            )
        check_instance("budget", self.budget, PrivacyBudget, hint=_ONE_BUDGET)
        for field in ("weight", "n_teachers"):
            object.__setattr__(self, field, check_count(field, getattr(self, field)))

    @property
    def votes(self) -> int:
        """Votes of all its teachers together."""
        return self.weight * self.n_teachers

    def to_json(self) -> dict[str, Any]:
        """Return the group as JSON values, for the certificate."""
        said = {"name": self.name, "weight": self.weight, "teachers": self.n_teachers}
        return said | self.budget.to_json()

    def event_part(self, moved: int) -> BudgetGroup:
        """Return the group as an event has it that moves so many counts."""
        squared = moved * self.weight**2
        return BudgetGroup(self.name, squared, self.budget.epsilon, self.budget.delta)


class WeightedGaussianAggregator(NoisyVoting):
    """Answer every query with the plurality of weighted votes under discrete Gaussian noise.

    Every teacher casts the votes of its group, all for one class. Two classes: noise on the number
    of votes for class 1, label 1 if it is at least half of all. More: noise on every count and the
    arg max, ties to the lowest class.

    Parameters
    ----------
    sigma : float
        Scale of the noise, in votes.
    n_queries : int
        Most queries that one release answers.
    groups : sequence of VotingGroup
        At most 16, each with a name of its own; one has the largest epsilon and the largest delta.
    n_classes : int
        Number of classes, public.
    release : {"labels", "counts"}
        Labels alone, or the noisy counts with the labels read off them.
    calibration : str
        How sigma was found, for the record.

    Attributes
    ----------
    budget : PrivacyBudget
        The largest of the groups' budgets: price of a release.

    Privacy
    -------
    Unit : one record or user of a group, which reaches one teacher of that group.
    Relation : add or remove one unit, or replace it in place by one of the same group.
    Sensitivity : one teacher moves the votes of its group from one class to another: one count by
        its weight (two classes), two counts by that each (more).
    Price : each group by its own weight (docs/explanation/prices.md, section 19). Two classes,
        labels alone: an adaptive game. Otherwise the counts, as noisy vectors.
    Source : Boenisch et al. 2022, arXiv:2202.10517, for weights of votes; Liu et al. 2021,
        Algorithm 1.
    Rounding : upward, in the accountant.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    Examples
    --------
    >>> budgets = {"strict": sb.PrivacyBudget(0.5, 1e-6), "open": sb.PrivacyBudget(1.0, 1e-6)}
    >>> aggregator = sb.aggregation.WeightedGaussianAggregator.calibrate(
    ...     budgets, {"strict": 100, "open": 150}, n_queries=20)
    >>> [group.weight for group in aggregator.groups]
    [52, 100]
    >>> aggregator.total_votes
    20200
    """

    name: ClassVar[str] = "weighted-gaussian"

    def __init__(
        self,
        sigma: float,
        n_queries: int,
        groups: Sequence[VotingGroup],
        *,
        n_classes: int = 2,
        release: str = "labels",
        calibration: str = "given",
    ) -> None:
        self.sigma = check_scale("sigma", sigma)
        self.n_queries = check_count("n_queries", n_queries)
        self.n_classes = check_count("n_classes", n_classes, minimum=2)
        self.release = check_choice("release", release, ("labels", "counts"))
        self.calibration = check_choice("calibration", calibration, ("given", "tight"))
        self.groups = _checked_groups(groups)
        self.budget = max((group.budget for group in self.groups), key=_budget_size)
        if any(group.budget.delta > self.budget.delta for group in self.groups):
            raise ParameterError(
                Parameter("groups"),
                " have one with the largest epsilon and another with the largest delta; give all of"
                " them the same delta.",
            )
        _ = self._grouped_event()  # refuses what no event has

    @classmethod
    def calibrate(
        cls,
        budgets: Mapping[str, PrivacyBudget],
        teachers: Mapping[str, int],
        n_queries: int,
        *,
        n_classes: int = 2,
        release: str = "labels",
    ) -> "WeightedGaussianAggregator":
        """Return the aggregator with the least noise that keeps the largest budget at the full
        weight, and the largest weight that keeps each other one.

        Parameters
        ----------
        budgets : mapping of str to PrivacyBudget
            Of each group, for all `n_queries` queries together.
        teachers : mapping of str to int
            Number of teachers of each group; public.
        n_queries, n_classes, release
            As for the class.

        Raises
        ------
        ParameterError
            If a parameter is out of its range, no noise keeps the largest budget, or no vote keeps
            another one.
        """
        queries = check_count("n_queries", n_queries)
        classes = check_count("n_classes", n_classes, minimum=2)
        check_choice("release", release, ("labels", "counts"))
        for given in (budgets, teachers):
            if not isinstance(given, Mapping) or not given:
                raise ParameterError(
                    f"The budgets and teachers of groups are {shown(budgets)} and"
                    f" {shown(teachers)}; give a mapping of one group's name or more each."
                )
        for budget in budgets.values():
            check_instance("budget", budget, PrivacyBudget, hint=_ONE_BUDGET)
        if set(budgets) != set(teachers):
            raise ParameterError(
                Parameter("teachers"), " name other groups than the budgets; give each its number."
            )
        largest = max(budgets.values(), key=_budget_size)
        if classes == 2 and release == "labels":
            sigma = calibrate_weighted_labels(largest, queries, FULL_WEIGHT)
        else:
            # a changed vote moves one count of two classes, and two counts of more
            moved = 1 if classes == 2 else 2
            columns = 1 if classes == 2 else classes
            sigma = calibrate_vector_sum(largest, moved * FULL_WEIGHT**2, columns, queries)
        drawn = _event_of(sigma, queries, classes, release, FULL_WEIGHT)
        groups = [
            VotingGroup(name, _weight_of(name, budget, drawn), teachers[name], budget)
            for name, budget in budgets.items()
        ]
        return cls(sigma, queries, groups, n_classes=classes, release=release, calibration="tight")

    @property
    def sigma_of_counts(self) -> float | None:
        """Scale of the noise on released counts, in votes; None where labels alone are released."""
        return self.sigma if self.release == "counts" else None

    @property
    def n_teachers(self) -> int:
        """Number of all teachers."""
        return sum(group.n_teachers for group in self.groups)

    @property
    def total_votes(self) -> int:
        """Votes of all teachers together, at one query."""
        return sum(group.votes for group in self.groups)

    def _grouped_event(self) -> GroupedEvent:
        heaviest = max(group.weight for group in self.groups)
        terms = self.sigma, self.n_queries, self.n_classes, self.release
        drawn, moved = _event_of(*terms, heaviest), 1 if self.n_classes == 2 else 2
        parts = tuple(group.event_part(moved) for group in self.groups)
        squared = drawn.squared_sensitivity
        if isinstance(drawn, WeightedLabelEvent):
            return GroupedLabelEvent(self.sigma, self.n_queries, squared, parts)
        return GroupedVectorSumEvent(self.sigma, squared, drawn.coordinates, self.n_queries, parts)

    def events(self, n_teachers: int) -> tuple[GroupedEvent, ...]:
        """Return what one release of `n_queries` queries is to the accountant.

        Parameters
        ----------
        n_teachers : int
            All votes together, as many single teachers would cast.

        Raises
        ------
        ParameterError
            If the votes are others.
        """
        self._check_teachers(n_teachers)
        return (self._grouped_event(),)

    def _check_teachers(self, n_teachers: int) -> int:
        votes = check_count("n_teachers", n_teachers)
        if votes != self.total_votes:
            raise ParameterError(
                f"There are {votes} votes in all, and the groups of this aggregator cast"
                f" {self.total_votes}; calibrate it for the teachers that vote."
            )
        return votes

    def _mechanism_for(
        self, n_teachers: int
    ) -> GaussianNoisyCount | GaussianNoisyHistogram | GaussianNoisyMajority | GaussianNoisyArgmax:
        # drawn as single votes are; that one teacher moves several is what the events say
        if self.n_classes == 2 and self.release == "labels":
            return GaussianNoisyMajority(self.sigma, n_teachers)
        if self.n_classes == 2:
            return GaussianNoisyCount(self.sigma)
        if self.release == "counts":
            return GaussianNoisyHistogram(self.sigma, self.n_classes)
        return GaussianNoisyArgmax(self.sigma, self.n_classes)

    def describe(self) -> dict[str, Any]:
        """Return the parameters as a JSON object from which `aggregator_from_description`
        rebuilds it."""
        fields = {field: getattr(self, field) for field in _FIELDS if field != "budget"}
        fields |= {"groups": [group.to_json() for group in self.groups]}
        return {"name": self.name, **fields, "budget": self.budget.to_json()}

    @classmethod
    def from_description(cls, description: Mapping[str, Any]) -> "WeightedGaussianAggregator":
        """Rebuild the aggregator that `describe` describes.

        Raises
        ------
        ParameterError
            If a field is missing, unknown or out of its range.
        """
        fields = check_fields(description, cls.name, _FIELDS)
        stated, groups = fields.pop("budget"), fields.pop("groups")
        known = isinstance(groups, list | tuple) and all(
            isinstance(group, Mapping) and set(group) == _GROUP_FIELDS for group in groups
        )
        if not known:
            raise ParameterError(
                "The description's groups must be a list of objects with the fields"
                f" {', '.join(sorted(_GROUP_FIELDS))}."
            )
        found = cls(
            groups=[
                VotingGroup(
                    group["name"],
                    group["weight"],
                    group["teachers"],
                    PrivacyBudget(group["epsilon"], group["delta"]),
                )
                for group in groups
            ],
            **fields,
        )
        # the class takes it from the groups, so a stated one can only be compared
        if found.budget != stated:
            raise ParameterError("The description's budget is not the largest of its groups.")
        return found

    def right_probability(self, margin: float) -> float:
        """Return the probability that a query of this margin keeps its label.

        Parameters
        ----------
        margin : float
            Most votes minus second most, in votes; the other classes are taken to tie for second.

        Notes
        -----
        The continuous distribution stands in for the discrete one: for planning, not for privacy.
        """
        return right_chance(margin, self.sigma, self.n_classes)

    def check_useful(self, n_teachers: int) -> None:
        """Warn if the noise drowns even unanimous votes, as `GaussianAggregator.check_useful`."""
        votes = self._check_teachers(n_teachers)
        warn_if_drowned(self, votes, f"{self.n_teachers} teachers with {votes} votes")


def _budget_size(budget: PrivacyBudget) -> tuple[float, float]:
    return budget.epsilon, budget.delta


def _checked_groups(groups: Sequence[VotingGroup]) -> tuple[VotingGroup, ...]:
    """Return groups that differ in their names."""
    found = tuple(groups)
    if not all(isinstance(group, VotingGroup) for group in found):
        raise ParameterError(Parameter("groups"), " hold something else than a VotingGroup.")
    if not 1 <= len(found) <= MAX_GROUPS:
        raise ParameterError(
            Parameter("groups"), f" are {len(found)}; there may be from 1 to {MAX_GROUPS}."
        )
    if len({group.name for group in found}) < len(found):
        raise ParameterError(Parameter("groups"), " name one twice; give each its own name.")
    return found


def _event_of(
    sigma: float, n_queries: int, n_classes: int, release: str, weight: int
) -> WeightedLabelEvent | VectorSumEvent:
    """Return what is drawn, as far as a teacher of one weight is concerned."""
    if n_classes == 2 and release == "labels":
        return WeightedLabelEvent(sigma, n_queries, weight**2)
    # no price of labels of more classes is known but that of their counts
    moved, columns = (1, 1) if n_classes == 2 else (2, n_classes)
    return VectorSumEvent(sigma, moved * weight**2, columns, n_queries)


def _weight_of(name: str, budget: PrivacyBudget, drawn: WeightedLabelEvent | VectorSumEvent) -> int:
    """Return the largest weight, at most the full one, whose price keeps a budget.

    Raises
    ------
    ParameterError
        If there is none.
    """
    if isinstance(drawn, WeightedLabelEvent):
        weight = largest_weight(budget, drawn)
    else:
        weight = largest_vector_bound(budget, drawn, FULL_WEIGHT)
    if weight < 1:
        raise ParameterError(
            Parameter("group_budgets"),
            f" has epsilon {budget.epsilon:g} for the group {shown(name)}, beside which a vote of"
            " its teachers would count for less than a hundredth of one; leave its records out, or"
            " give them more.",
        )
    return weight
