"""The account behind a run: opened or made, asked early, and never paid twice for one run."""

import os
from pathlib import Path
from typing import Protocol

from secretballot.door.known_ledger import keep_in_step
from secretballot.exceptions import LedgerError
from secretballot.learners.pate.estimated_size import EstimatedSize
from secretballot.learners.training.account import refuse_beyond
from secretballot.privacy.accounting import PrivacyBudget
from secretballot.privacy.ledger import Ledger
from secretballot.runs.folder import RunFolder
from secretballot.runs.progress import Watch
from secretballot.runs.tables import RunInputs

__all__ = ["TAKEN_UP", "PaidRun", "ledger_of_run", "open_ledger", "settle_request"]

TAKEN_UP = "An interrupted run is taken up: what was learnt and paid for is kept."


class PaidRun(Protocol):
    """What every run on private records says of its account."""

    @property
    def budget(self) -> PrivacyBudget: ...

    @property
    def dataset_name(self) -> str: ...

    @property
    def ledger(self) -> Path | None: ...

    @property
    def neighbours(self) -> str: ...


def ledger_of_run(
    run: PaidRun,
    folder: RunFolder,
    inputs: RunInputs,
    watch: Watch,
    *,
    goes_on: bool,
    priced: bool = True,
) -> Ledger:
    """Return the account of a run, opened or made, after asking whether it admits the price.

    Parameters
    ----------
    run : PaidRun
    folder : RunFolder
        Entered; its key in the ledger is a new one where the old one gets no answer any more.
    inputs : RunInputs
        Whether units are given decides whose account it is.
    watch : Watch
        Told that an interrupted run is taken up.
    goes_on : bool
        Whether a reservation without its answer is answered later, part by part.
    priced : bool
        Whether the price is that of the run; otherwise the learner asks before it trains.

    Raises
    ------
    BudgetError
        If the ledger does not admit the price; nothing was spent.
    LedgerError
        If the ledger is that of something else, or cannot be used.
    """
    if folder.resumed:
        watch.note(TAKEN_UP, private=False)
    ledger = open_ledger(
        run.ledger or folder.ledger,
        dataset=run.dataset_name,
        budget=run.budget,
        unit="record" if inputs.units is None else "user",
        neighbours=run.neighbours,
    )
    settle_request(folder, ledger, watch, goes_on=goes_on)
    if priced:
        refuse_beyond(ledger, run.budget, folder.request, goes_on=goes_on)
    return ledger


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
