"""The account of a fit: its budget, the ledger that pays, and refusals before hours go into
teachers."""

from secretballot.exceptions import BudgetError, ParameterError
from secretballot.privacy.accounting import PrivacyBudget
from secretballot.privacy.ledger import Ledger

__all__ = ["account_of_fit", "refuse_beyond", "required_budget"]

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


def refuse_beyond(ledger: Ledger, budget: PrivacyBudget, request: str, *, goes_on: bool) -> None:
    """Refuse a price that the ledger will not admit before hours go into teachers; the ledger
    itself judges later.

    A run that was answered before costs nothing, nor does a reservation that goes on.

    Raises
    ------
    BudgetError
        If less is left than the run would cost, or the ledger has a list, whose noise it would not
        have. Nothing is said of Renyi accounts, whose sums are not additive.
    """
    entry = ledger.entry(request)
    paid = entry is not None and (entry.state == "committed" or goes_on)
    if ledger.composition == "list" and not paid:
        raise BudgetError(
            f"The ledger of {ledger.dataset!r} has a list, whose noise is the only one that may be"
            " drawn, and this release finds its noise by an epsilon; use GaussianAggregator or"
            " VoteTableAggregator with from_ledger, record moments, or another ledger. Nothing was"
            " spent."
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
