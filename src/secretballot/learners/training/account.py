"""The account of a fit: its budget, the ledger that pays, and refusals before hours go into
teachers."""

from collections.abc import Sequence
from dataclasses import replace

from secretballot.aggregation.listed import listed_event
from secretballot.exceptions import BudgetError, ParameterError
from secretballot.privacy.accounting import Event, PrivacyBudget, VectorSumEvent, epsilon_upper
from secretballot.privacy.ledger import Ledger

__all__ = [
    "account_of_fit",
    "has_list",
    "listed_sums_of",
    "refuse_beyond",
    "refuse_unlisted",
    "required_budget",
]

#: Remaining budgets are rounded down; a refusal this early must not rest on the last digit.
_SLACK = 1 - 1e-6


def required_budget(budget: object) -> PrivacyBudget:
    """Return the budget of a fit.

    Raises
    ------
    ParameterError
        If there is none.
    """
    if not isinstance(budget, PrivacyBudget):
        raise ParameterError(
            "budget is missing; give one, such as PrivacyBudget(epsilon=1.0, delta=1e-6)."
        )
    return budget


def has_list(ledger: object) -> bool:
    """Return whether this is a ledger with a list, whose noise is the only one that may be
    drawn."""
    return isinstance(ledger, Ledger) and ledger.composition == "list"


def listed_sums_of(
    ledger: Ledger, budget: PrivacyBudget | None, count: int
) -> tuple[VectorSumEvent, PrivacyBudget]:
    """Return so many of the sums that a ledger lists, and what they cost by themselves.

    Parameters
    ----------
    ledger : Ledger
        With a list.
    budget : PrivacyBudget or None
        That of the caller, who must have left it open.
    count : int

    Raises
    ------
    ParameterError
        If there is a budget, which would have noise of its own.
    BudgetError
        If not so many sums are listed.
    """
    if budget is not None:
        raise ParameterError(
            f"A budget is given, and the noise of the ledger of {ledger.dataset!r} is fixed by its"
            " list; leave the budget out. Nothing was spent."
        )
    listed = replace(listed_event(ledger, VectorSumEvent, count, "count"), count=count)
    delta = ledger.budget.delta
    # the sums that are drawn cost as much but for the last digits, in which their own price must
    # not exceed this one
    return listed, PrivacyBudget(epsilon_upper([listed], delta) * (1 + 1e-9), delta)


def refuse_unlisted(ledger: Ledger, events: Sequence[Event], request: str) -> None:
    """Refuse events that are not left on a ledger's list before hours go into teachers.

    Parameters and exceptions are those of `refuse_beyond`.

    Raises
    ------
    BudgetError
        If they are not left.
    """
    if ledger.entry(request) is None:
        ledger.check_listed(events)


def account_of_fit(
    ledger: Ledger | None, budget: PrivacyBudget, *, unit: str, neighbours: str
) -> Ledger:
    """Return the ledger if it takes a fit with this promise; without one, an account of this fit
    alone, in memory.

    Raises
    ------
    LedgerError
        If the ledger promises something else.
    """
    if ledger is None:
        return Ledger.in_memory(
            dataset="this fit alone", budget=budget, unit=unit, neighbours=neighbours
        )
    ledger.check_promise(unit, neighbours)
    return ledger


def refuse_beyond(ledger: Ledger, budget: PrivacyBudget, request: str) -> None:
    """Refuse a price that the ledger will not admit before hours go into teachers; the ledger
    itself judges later.

    A run that was paid for before costs nothing: it has its answer, or goes on.

    Raises
    ------
    BudgetError
        If less is left than the run would cost, or the ledger has a list, whose noise it would not
        have. Nothing is said of Renyi accounts, whose sums are not additive.
    """
    paid = ledger.entry(request) is not None
    if ledger.composition == "list" and not paid:
        raise BudgetError(
            f"The ledger of {ledger.dataset!r} has a list, whose noise is the only one that may be"
            " drawn, and this release finds its own by an epsilon; take noise off the list (label,"
            " votes and moments do where neither epsilon nor delta is given, aggregators by"
            " from_ledger), or use another ledger. Nothing was spent."
        )
    if ledger.composition != "basic" or paid:
        return
    left = ledger.remaining()
    if not (left.epsilon >= budget.epsilon * _SLACK and left.delta >= budget.delta * _SLACK):
        raise BudgetError(
            f"Of the budget of the dataset {ledger.dataset!r}, epsilon {left.epsilon:.4g} and delta"
            f" {left.delta:.4g} are left, and this run would cost epsilon {budget.epsilon:.4g} and"
            f" delta {budget.delta:.4g}; ask for less. Nothing was spent."
        )
