"""The account of a fit: its budget, the ledger that pays, and refusals before hours go into
teachers."""

from secretballot._validation import check_name, check_path
from secretballot.accounting import PrivacyBudget
from secretballot.core.ledger import Ledger
from secretballot.exceptions import BudgetError, ParameterError
from secretballot.releasing import check_ledger

#: Remaining budgets are rounded down; a refusal this early must not rest on the last digit.
_SLACK = 1 - 1e-9


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


def check_keeping(ledger: object, vault: object, request: object) -> None:
    """Refuse, with `ParameterError`, an account, a vault or a key of a fit that is neither None
    nor one."""
    if ledger is not None:
        check_ledger(ledger)
    if vault is not None:
        check_path("vault", vault)
    if request is not None:
        check_name("request", request)


def account_of_fit(
    ledger: Ledger | None, budget: PrivacyBudget, *, unit: str, relation: str
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
            dataset="this fit alone", budget=budget, unit=unit, relation=relation
        )
    ledger.check_promise(unit, relation)
    return ledger


def refuse_beyond(ledger: Ledger, budget: PrivacyBudget, request: str | None) -> None:
    """Refuse a price that the ledger will not admit before hours go into teachers; the ledger
    itself judges later.

    A run that was paid for before costs nothing: it has its answer, or goes on.

    Raises
    ------
    BudgetError
        If less is left than the run would cost. Nothing is said of Renyi accounts, whose sums are
        not additive.
    """
    begun = request is not None and ledger.entry(request) is not None
    if begun or ledger.composition != "basic":
        return
    left = ledger.remaining()
    if not (left.epsilon >= budget.epsilon * _SLACK and left.delta >= budget.delta * _SLACK):
        raise BudgetError(
            f"Of the budget of the dataset {ledger.dataset!r}, epsilon {left.epsilon:.4g} and delta"
            f" {left.delta:.4g} are left, and this run would cost epsilon {budget.epsilon:.4g} and"
            f" delta {budget.delta:.4g}; ask for less. Nothing was spent."
        )
