"""The account behind a run: opened or made, asked early, and never paid twice for one run."""

import os
from pathlib import Path

from secretballot.door.known_ledger import keep_in_step
from secretballot.exceptions import LedgerError
from secretballot.learners.pate.estimated_size import EstimatedSize
from secretballot.privacy.accounting import PrivacyBudget
from secretballot.privacy.ledger import Ledger
from secretballot.runs.folder import RunFolder
from secretballot.runs.progress import Watch

__all__ = ["open_ledger", "settle_request"]


def open_ledger(
    path: Path, *, dataset: str, budget: PrivacyBudget, unit: str, neighbours: str
) -> Ledger:
    """Open the ledger at `path`, or make one with budget, unit and relation of this run.

    Raises
    ------
    LedgerError
        If the file is the account of another dataset, unit or relation, or cannot be used.
    """
    # A link that leads nowhere is no free place: what it points to may be anybody's.
    if not os.path.lexists(path):
        return Ledger(path, dataset=dataset, budget=budget, unit=unit, neighbours=neighbours)
    ledger = Ledger.open_existing(path)
    if ledger.dataset != dataset:
        raise LedgerError(
            f"The ledger {str(path)!r} is the account of the dataset {ledger.dataset!r}, and this"
            f" run is about {dataset!r}; give the right ledger, or the dataset's name with"
            " --dataset."
        )
    ledger.check_promise(unit, neighbours)
    return ledger


def settle_request(folder: RunFolder, ledger: Ledger, watch: Watch, *, goes_on: bool) -> None:
    """Take a new key where the run was broken off between paying and answering.

    What was paid stays spent. A reservation that is answered query by query goes on where it was.

    Raises
    ------
    LedgerError
        If the ledger is older than what the vault of the run has seen of it.
    """
    keep_in_step(folder.vault, ledger)
    folder.pays_from(ledger)
    broken = _is_broken(ledger, folder.request, goes_on=goes_on)
    # an estimate comes first, and without it nothing can go on
    estimate = EstimatedSize.request_of(folder.request)
    if broken or _is_broken(ledger, estimate, goes_on=False):
        watch.note(
            "The interrupted run had paid for a release and not finished it; that stays spent, and"
            " this is a new one.",
            private=False,
        )
        folder.renew_request()


def _is_broken(ledger: Ledger, request: str, *, goes_on: bool) -> bool:
    """Return whether a request was paid for and gets no answer any more."""
    entry = ledger.entry(request)
    if entry is None:
        return False
    return {"reserved": not goes_on, "forfeited": True, "committed": False}[entry.state]
