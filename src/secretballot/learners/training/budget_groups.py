"""Budget groups of units: who has which budget, as a caller gives it and declares it public."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from secretballot._typing import IntArray
from secretballot._validation import shown, shown_kind
from secretballot.exceptions import Argument, DataError, Parameter, ParameterError
from secretballot.privacy.accounting import PrivacyBudget
from secretballot.privacy.accounting.events import MAX_GROUP_NAME, MAX_GROUPS, is_group_name

__all__ = ["BudgetGroups", "GivenGroups", "check_group_budgets", "largest_of"]


@dataclass(frozen=True, eq=False)
class BudgetGroups:
    """Groups of records with budgets of their own.

    Attributes
    ----------
    budgets : dict of str to PrivacyBudget
    numbers : ndarray of int64, shape (n_records,)
        Place of each record's group in `budgets`.
    """

    budgets: dict[str, PrivacyBudget]
    numbers: IntArray = field(repr=False)  # a list of who is there, under add-remove

    def records_of(self, place: int) -> int:
        """Return how many records a group has; private under add-remove."""
        return int((self.numbers == place).sum())

    def check_public_sizes(self) -> None:
        """Refuse a group of one record, whose budget would point at a person; where sizes are
        public alone, as this refusal tells them.

        Raises
        ------
        DataError
            If there is one; nobody is named.
        """
        for place, name in enumerate(self.budgets):
            if self.records_of(place) == 1:
                raise DataError(
                    f"The budget group {shown(name)} has a single record, so that its budget would"
                    " point at a person; put that record into the group with the next smaller"
                    " budget."
                )


@dataclass(frozen=True, eq=False)
class GivenGroups:
    """What the caller of a fit says of groups, unchecked.

    Attributes
    ----------
    names : sequence of str, shape (n_records,), or None
    budgets : mapping of str to PrivacyBudget, or None
    are_public : bool
    """

    names: Any = field(default=None, repr=False)
    budgets: Any = None
    are_public: object = False

    def checked_budgets(self) -> dict[str, PrivacyBudget] | None:
        """Return the budgets of groups that are declared public; None where there are no groups.

        Raises
        ------
        ParameterError
            If something is missing, no budget, or not declared public.
        """
        if self.names is None and self.budgets is None:
            if self.are_public is not False:
                raise ParameterError(
                    Parameter("groups_are_public"),
                    " is given without groups; give ",
                    Parameter("budget_groups"),
                    " and ",
                    Parameter("group_budgets"),
                    ", or leave it out.",
                )
            return None
        if self.names is None or self.budgets is None:
            raise ParameterError(
                Parameter("budget_groups" if self.names is None else "group_budgets"),
                " is missing; individual budgets need the group of every record and a budget for"
                " every group.",
            )
        # only True itself declares it, and nothing that merely counts as true
        if self.are_public is not True:
            raise ParameterError(
                Parameter("budget_groups"),
                " are not declared public: a budget that follows from protected values tells of"
                " them, and nothing pays for that. Where everybody's budget was chosen"
                " independently of these values, such as on a consent form, give ",
                Argument("groups_are_public", True),
                ".",
            )
        return _checked_budgets(self.budgets)

    def read(self, budgets: dict[str, PrivacyBudget], n_records: int) -> BudgetGroups:
        """Return the groups of so many records.

        Raises
        ------
        DataError
            If there is not a known one for each record.
        """
        return BudgetGroups(budgets, _numbers_of(self.names, list(budgets), n_records))


def _checked_budgets(group_budgets: Any) -> dict[str, PrivacyBudget]:
    """Return a budget for each group, all of them with a delta above 0."""
    if not isinstance(group_budgets, Mapping) or not group_budgets:
        raise ParameterError(
            Parameter("group_budgets"),
            f" is {shown(group_budgets)}; give a mapping of names to budgets, such as"
            " {'strict': PrivacyBudget(0.1, 1e-6), 'open': PrivacyBudget(1.0, 1e-6)}.",
        )
    if len(group_budgets) > MAX_GROUPS:
        raise ParameterError(
            Parameter("group_budgets"),
            f" has {len(group_budgets)} groups; there may be {MAX_GROUPS}, as a budget that few"
            " have points at them.",
        )
    for name, budget in group_budgets.items():
        if not is_group_name(name):
            raise ParameterError(
                Parameter("group_budgets"),
                f" names a group {shown(name)}; a name is a text on one line, of at most"
                f" {MAX_GROUP_NAME} characters.",
            )
        if not isinstance(budget, PrivacyBudget):
            raise ParameterError(
                Parameter("group_budgets"),
                f" has {shown(budget)} for the group {shown(name)}; give a PrivacyBudget.",
            )
        if not budget.delta > 0:
            raise ParameterError(
                Parameter("group_budgets"),
                f" has delta 0 for the group {shown(name)}; Gaussian noise needs more, such as"
                " 1e-6.",
            )
    return {str(name): budget for name, budget in group_budgets.items()}


def _numbers_of(budget_groups: Any, names: list[str], n_records: int) -> IntArray:
    """Return the place of each record's group among the names."""
    if isinstance(budget_groups, str | bytes) or not isinstance(budget_groups, Iterable):
        raise DataError(
            Parameter("budget_groups"),
            f" is {shown_kind(budget_groups)}; give a list with the name of each record's group.",
        )
    cells = budget_groups.tolist() if hasattr(budget_groups, "tolist") else list(budget_groups)
    if len(cells) != n_records:
        raise DataError(
            Parameter("budget_groups"),
            f" has {len(cells)} names; give one for each of the {n_records} records.",
        )
    # groups are public, so a refusal may name the row
    places = {name: place for place, name in enumerate(names)}
    known = [isinstance(cell, str) and cell in places for cell in cells]
    if not all(known):
        raise DataError(
            Parameter("budget_groups"),
            f" has, in row {known.index(False)}, no group of ",
            Parameter("group_budgets"),
            f" ({', '.join(map(shown, names))}); every record needs a group, and every group a"
            " budget.",
        )
    return np.array([places[cell] for cell in cells], dtype=np.int64)


def largest_of(budget: PrivacyBudget | None, groups: Mapping[str, PrivacyBudget]) -> PrivacyBudget:
    """Return the budget of a release with groups: that of the group with the largest one.

    Raises
    ------
    ParameterError
        If another budget was given, or no group's is the largest in both of its numbers.
    """
    largest = max(groups.values(), key=lambda own: (own.epsilon, own.delta))
    for name, own in groups.items():
        if own.delta > largest.delta:
            raise ParameterError(
                Parameter("group_budgets"),
                f" has delta {own.delta:g} for the group {shown(name)} and {largest.delta:g} for"
                " the one with the largest epsilon; give all of them the same delta.",
            )
    if budget is not None and budget != largest:
        raise ParameterError(
            Parameter("budget"),
            f" is ({budget.epsilon:g}, {budget.delta:g}), and the largest of ",
            Parameter("group_budgets"),
            f" ({largest.epsilon:g}, {largest.delta:g}); the largest is that of the release, so"
            " leave the budget out or give the same.",
        )
    return largest


def check_group_budgets(groups: Mapping[str, PrivacyBudget], whole: PrivacyBudget) -> None:
    """Refuse a group whose budget is above that of the ledger.

    Raises
    ------
    ParameterError
        If there is one; nothing was spent.
    """
    for name, own in groups.items():
        if own.epsilon > whole.epsilon or own.delta > whole.delta:
            raise ParameterError(
                Parameter("group_budgets"),
                f" has ({own.epsilon:g}, {own.delta:g}) for the group {shown(name)}, more than the"
                f" budget of the ledger, ({whole.epsilon:g}, {whole.delta:g}); give less. Nothing"
                " was spent.",
            )
