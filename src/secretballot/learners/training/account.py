"""What is left of an account, before hours go into teachers."""

import math
from fractions import Fraction

from secretballot.accounting import PrivacyBudget
from secretballot.core.ledger import Ledger
from secretballot.exceptions import BudgetError

#: Remaining budgets are rounded down; a refusal this early must not rest on the last digit.
_SLACK = 1 - 1e-9


def rest_of(epsilon: float, part: float) -> float:
    """Return what is left of epsilon beside a part of it, rounded down, so that a ledger, which
    reads decimals, finds no more than epsilon in both."""
    left = Fraction(repr(epsilon)) - Fraction(repr(part))
    nearest = float(left)
    while Fraction(repr(nearest)) > left:
        nearest = math.nextafter(nearest, 0.0)
    return nearest


def refuse_beyond(ledger: Ledger, budget: PrivacyBudget, request: str | None) -> None:
    """Refuse a price that the ledger will not admit before hours go into teachers; the ledger
    itself judges later.

    A run that was paid for before costs nothing: it has its answer, or goes on.

    Raises
    ------
    BudgetError
        If less is left than the run would cost. Nothing is stated of Renyi accounts, whose sums are
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
