"""Budget groups of a run: what its settings say of them, and what a fit is told."""

import warnings
from collections.abc import Mapping
from typing import Any, Protocol

from secretballot._validation import shown
from secretballot.aggregation import WeakSignalWarning, WeightedGaussianAggregator
from secretballot.exceptions import Parameter, ParameterError
from secretballot.learners.pate.voters import teachers_for_groups, voters_in_groups
from secretballot.learners.training.budget_groups import BudgetGroups, GivenGroups, largest_of
from secretballot.planning.plan.model import Plan
from secretballot.privacy.accounting import PrivacyBudget
from secretballot.runs.tables import RunInputs, RunTables
from secretballot.runs.voting import VotingSettings, number_of_teachers, unfitted_learner

__all__ = [
    "GroupedRun",
    "GroupedVotingRun",
    "check_groups",
    "groups_for_fit",
    "teachers_of_run",
    "weights_of_run",
]


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
    # called for its errors: one budget must be the largest, and the run's own, if it has one
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


def teachers_of_run(run: GroupedVotingRun, inputs: RunInputs) -> int:
    """Return the number of teachers: as asked, else by the stated records, else the default; more
    where votes of some groups count for less.

    Raises
    ------
    ParameterError, DataError
        If groups do not fit the table.
    """
    found = number_of_teachers(run, inputs.n_columns)
    if run.group_budgets is None or run.teachers is not None or run.records is None:
        return found
    shares, sizes = run.group_shares, _public_groups(run, inputs)
    if shares is None and sizes is not None:
        shares = {name: sizes.records_of(at) for at, name in enumerate(run.group_budgets)}
    assert shares is not None  # the settings were checked
    return teachers_for_groups(found, run.group_budgets, shares, run.records)


def weights_of_run(
    run: GroupedVotingRun, inputs: RunInputs, n_points: int
) -> WeightedGaussianAggregator:
    """Return weights, noise and queries of a run with budget groups, from public numbers alone;
    nothing is paid.

    Raises
    ------
    ParameterError, DataError
        If the groups do not fit the table or each other.
    """
    assert run.group_budgets is not None
    n_teachers = teachers_of_run(run, inputs)
    groups = _public_groups(run, inputs)
    voters = voters_in_groups(dict(run.group_budgets), n_teachers, run.group_shares, groups)
    learner = unfitted_learner(run, len(inputs.classes), n_teachers)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WeakSignalWarning)  # it is asked about
        return learner.planned_weights(n_points, len(inputs.classes), voters)


def _public_groups(run: GroupedVotingRun, inputs: RunInputs) -> BudgetGroups | None:
    """Return which record is in which group where the sizes of groups are public; None where they
    are private."""
    if run.neighbours != "replace-one":
        return None
    given = GivenGroups(inputs.budget_groups, run.group_budgets, run.groups_are_public or False)
    budgets = given.checked_budgets()
    assert budgets is not None  # they were checked with the settings
    return given.read(budgets, inputs.n_private)
