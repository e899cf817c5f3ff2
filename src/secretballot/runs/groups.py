"""Budget groups of a run: what its settings say of them, and what a fit is told."""

import warnings
from collections.abc import Mapping
from typing import Any, Protocol

from secretballot._validation import shown
from secretballot.aggregation import WeakSignalWarning, WeightedGaussianAggregator
from secretballot.exceptions import Parameter, ParameterError
from secretballot.learners.pate.voters import voters_in_groups
from secretballot.learners.training.budget_groups import GivenGroups, largest_of
from secretballot.planning.plan.model import Plan
from secretballot.privacy.accounting import PrivacyBudget
from secretballot.runs.tables import RunInputs, RunTables
from secretballot.runs.voting import VotingSettings, unfitted_learner

__all__ = ["GroupedRun", "GroupedVotingRun", "check_groups", "groups_for_fit", "weights_of_run"]


class GroupedRun(Protocol):
    """A run that may have budget groups."""

    @property
    def tables(self) -> RunTables: ...

    @property
    def budget(self) -> PrivacyBudget: ...

    @property
    def group_budgets(self) -> Mapping[str, PrivacyBudget] | None: ...

    @property
    def groups_are_public(self) -> bool | None: ...

    @property
    def plan(self) -> Plan | None: ...


class GroupedVotingRun(GroupedRun, VotingSettings, Protocol):
    """A run of voting that may have budget groups."""

    @property
    def group_shares(self) -> Mapping[str, float] | None: ...


def check_groups(run: GroupedRun) -> None:
    """Refuse budget groups that are incomplete, not declared public, or named by a column with
    another duty.

    Raises
    ------
    ParameterError
        If they are.
    """
    column = run.tables.budget_column
    given = GivenGroups(column, run.group_budgets, run.groups_are_public or False)
    groups = given.checked_budgets()
    if groups is None:
        return
    if run.plan is not None:
        raise ParameterError(
            Parameter("group_budgets"),
            " does not go with a plan, which forecasts one budget for all; leave one of the two"
            " out.",
        )
    largest_of(run.budget, groups)
    if column in (run.tables.target, run.tables.unit):
        duty = "class" if column == run.tables.target else "id of a person"
        raise ParameterError(
            Parameter("budget_column"),
            f" is {shown(column)}, the column with the {duty}; give one that says nothing else, as"
            " groups are public.",
        )


def groups_for_fit(run: GroupedRun, inputs: RunInputs) -> dict[str, Any]:
    """Return what a fit is told of budget groups; nothing where there are none."""
    if inputs.budget_groups is None:
        return {}
    return {
        "budget_groups": inputs.budget_groups,
        "group_budgets": run.group_budgets,
        "groups_are_public": run.groups_are_public,
    }


def weights_of_run(
    run: GroupedVotingRun, inputs: RunInputs, n_points: int, n_teachers: int
) -> WeightedGaussianAggregator:
    """Return weights, noise and queries of a run with budget groups, from public numbers alone;
    nothing is paid.

    Raises
    ------
    ParameterError, DataError
        If the groups do not fit the table or each other.
    """
    given = GivenGroups(inputs.budget_groups, run.group_budgets, run.groups_are_public or False)
    budgets = given.checked_budgets()
    assert budgets is not None  # they were checked with the settings
    sizes = None
    if run.neighbours == "replace-one":  # which makes the sizes of groups public
        sizes = given.read(budgets, inputs.n_private)
    voters = voters_in_groups(budgets, n_teachers, run.group_shares, sizes)
    learner = unfitted_learner(run, len(inputs.classes), n_teachers)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WeakSignalWarning)  # it is asked about
        return learner.planned_weights(n_points, len(inputs.classes), voters)
