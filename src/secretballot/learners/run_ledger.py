"""The account behind a run: opened or made, asked early, and never paid twice for one run."""

import os
from pathlib import Path

from secretballot.door.known_ledger import keep_in_step
from secretballot.exceptions import BudgetError, LedgerError
from secretballot.learners.estimates import EstimatedPlan
from secretballot.learners.run_folder import RunFolder
from secretballot.learners.watch import Watch
from secretballot.privacy.accounting import PrivacyBudget
from secretballot.privacy.ledger import Ledger

__all__ = ["open_ledger", "refuse_beyond", "settle_request"]

#: Remaining budgets are rounded down; a refusal this early must not rest on the last digit.
_SLACK = 1 - 1e-6


def open_ledger(path: Path, *, dataset: str, budget: PrivacyBudget, unit: str, neighbours: str) -> Ledger:
    """Open the ledger at `path`, or make one whose whole budget, unit and relation are those of this run.

    Raises
    ------
    LedgerError
        If the file is the account of another dataset, unit or relation, or cannot be used.
    """
    if not os.path.lexists(path):
        return Ledger(path, dataset=dataset, budget=budget, unit=unit, neighbours=neighbours)
    ledger = Ledger.open_existing(path)
    if ledger.dataset != dataset:
        raise LedgerError(
            f"The ledger {str(path)!r} is the account of the dataset {ledger.dataset!r}, and this run is about "
            f"{dataset!r}; give the right ledger, or the dataset's name with --dataset."
        )
    ledger.check_promise(unit, neighbours)
    return ledger


def settle_request(folder: RunFolder, ledger: Ledger, watch: Watch, *, goes_on: bool) -> None:
    """Take a new key where the run was broken off between paying and answering; what was paid stays spent.

    A plan that is answered query by query goes on where it was.

    Raises
    ------
    LedgerError
        If the ledger is older than what the vault of the run has seen of it.
    """
    keep_in_step(folder.vault, ledger)
    folder.pays_from(ledger)
    estimate = EstimatedPlan.request_of(folder.request)  # which comes first, and without which nothing can go on
    if _is_broken(ledger, folder.request, goes_on=goes_on) or _is_broken(ledger, estimate, goes_on=False):
        watch.note(
            "The interrupted run had paid for a release and not finished it; that stays spent, and this is a new one.",
            private=False,
        )
        folder.renew_request()


def _is_broken(ledger: Ledger, request: str, *, goes_on: bool) -> bool:
    """Return whether a request was paid for and gets no answer any more."""
    entry = ledger.entry(request)
    return entry is not None and {"reserved": not goes_on, "forfeited": True, "committed": False}[entry.state]


def refuse_beyond(ledger: Ledger, budget: PrivacyBudget, request: str, *, goes_on: bool) -> None:
    """Refuse a price that the ledger will not admit before hours go into teachers; the ledger itself judges later.

    A run that was answered before costs nothing, nor does a plan that goes on.

    Raises
    ------
    BudgetError
        If less is left than the run would cost. Nothing is said of Renyi accounts, whose sums are not additive.
    """
    entry = ledger.entry(request)
    paid = entry is not None and (entry.state == "committed" or goes_on)
    if ledger.composition != "basic" or paid:
        return
    left = ledger.remaining()
    if not (left.epsilon >= budget.epsilon * _SLACK and left.delta >= budget.delta * _SLACK):
        raise BudgetError(
            f"Of the budget of the dataset {ledger.dataset!r}, epsilon {left.epsilon:.4g} and delta {left.delta:.4g} "
            f"are left, and this run would cost epsilon {budget.epsilon:.4g} and delta {budget.delta:.4g}; "
            "ask for less. Nothing was spent."
        )
