"""The account behind a run: opened or made, asked early, and never paid twice for one run."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from secretballot._places import is_url, shown_place
from secretballot._validation import shown
from secretballot.accounting import PrivacyBudget
from secretballot.core.ledger import Amount, Ledger
from secretballot.core.ledger.urls import DatabasePlace, file_or_database
from secretballot.exceptions import BudgetError, LedgerError, Parameter, ParameterError
from secretballot.learners.pate.estimated_size import EstimatedSize
from secretballot.learners.training.account import refuse_beyond
from secretballot.runs.folder import RunFolder
from secretballot.runs.questions import Caution, Watch
from secretballot.runs.spec import OWN, RunSpec
from secretballot.vault import is_other_ledger, keep_in_step

_VARIABLE = "SECRETBALLOT_LEDGER"
TAKEN_UP = "An interrupted run is taken up: what was learnt and paid for is kept."


@dataclass(frozen=True)
class AccountState:
    """What an account says before a run pays from it.

    Attributes
    ----------
    path : Path or DatabasePlace
    own : bool
        Whether it is that of the run alone.
    budget : PrivacyBudget or None
        That it admits in all; None where there is no account yet.
    left : Amount or None
        That it admits still.
    releases : int
        That were paid for before.
    admits : bool
        Whether the price of the run fits, as far as sums can tell.
    """

    path: Path | DatabasePlace
    own: bool
    budget: PrivacyBudget | None = None
    left: Amount | None = None
    releases: int = 0
    admits: bool = True

    @property
    def exists(self) -> bool:
        """Whether there is one already."""
        return self.budget is not None

    def to_json(self) -> dict[str, Any]:
        """Return the state for machines."""
        budget = None if self.budget is None else self.budget.to_json()
        left = None if self.left is None else self.left._asdict()
        more = {"path": str(self.path), "exists": self.exists, "budget": budget, "left": left}
        return {**vars(self), **more}


def place_of_account(spec: RunSpec, folder: RunFolder) -> Path | DatabasePlace:
    """Return where the account of a run lies.

    It is the ledger that is named by the run, or by the environment variable `SECRETBALLOT_LEDGER`;
    in a folder that is named, the one with the dataset's name. Where nothing is named, it lies
    beside the private file, wherever links lead to it. A run that has begun goes on with the
    account that it began with, wherever that would be by now.
    """
    if spec.budget.ledger == OWN or os.path.lexists(folder.ledger):
        return folder.ledger
    named = _named_place(spec)
    if folder.account is not None and folder.account == named:
        return named  # a database's password is given now, and kept nowhere
    if folder.account is not None and Ledger.exists(folder.account):
        return folder.account
    return named_account(spec)


def named_account(spec: RunSpec) -> Path | DatabasePlace:
    """Return where the account lies that is named for a run, or that of its private file.

    Raises
    ------
    ParameterError
        If none is named, and the private file is no local one.
    """
    named = _named_place(spec)
    if named is None:
        if is_url(spec.private):
            raise ParameterError(
                f"The account of {shown_place(spec.private)!r} has no place beside it; name"
                " one with --ledger, or by SECRETBALLOT_LEDGER."
            )
        private, real = Path(spec.private), Path(os.path.realpath(spec.private))
        # "." and ".." have no name of their own
        has_name = private.name not in ("", "..")
        private = private if has_name and real == Path(os.path.abspath(private)) else real
        return private.with_name(f"{private.name}.ledger")
    if isinstance(named, Path) and named.is_dir():
        return named / f"{_file_name(spec.dataset_name)}.ledger"
    return named


def _named_place(spec: RunSpec) -> Path | DatabasePlace | None:
    """Return the ledger that is named by a run, or by its surroundings."""
    named, usual = spec.budget.ledger, os.environ.get(_VARIABLE)
    if named is None and usual:
        return file_or_database(usual)
    return None if isinstance(named, str) else named


def question_of_total(spec: RunSpec, place: Path | DatabasePlace, own: bool) -> Iterator[Caution]:
    """Yield the question what all releases may cost, where the run would open an account.

    Raises
    ------
    BudgetError
        If the stated limit is less than the price.
    """
    if own or Ledger.exists(place):
        return
    _refuse_small_total(spec)
    if spec.total is not None:
        return
    beside = ""
    if isinstance(place, Path) and place.parent.is_dir():
        found = sorted(path.name for path in place.parent.glob("*.ledger"))[:3]
        beside = f" (beside it: {', '.join(found)})" if found else ""
    yield Caution(
        "total",
        f"no account exists for {shown(spec.dataset_name)} at {str(place)!r}{beside}; set the"
        " limit of all its releases, or name an account",
    )


def _refuse_small_total(spec: RunSpec) -> None:
    """Refuse a limit of a new account that does not admit its first run."""
    total, price = spec.total, spec.price
    if total is not None and (total.epsilon < price.epsilon or total.delta < price.delta):
        raise BudgetError(
            f"The total of {total.epsilon:g}, {total.delta:g} is less than the price of this run,"
            f" {price.epsilon:g}, {price.delta:g}; give a larger total. No account was made."
        )


def state_of_account(spec: RunSpec, folder: RunFolder, unit: str) -> AccountState:
    """Return what the account of a run about records or users says; none is made.

    Raises
    ------
    LedgerError
        If it is that of something else, or cannot be used.
    """
    path, unit_of = place_of_account(spec, folder), (unit, spec.budget.relation)
    own = path == folder.ledger
    ledger = _found_ledger(path, spec.dataset_name, *unit_of, own=own)
    if ledger is None:
        return AccountState(path, own)
    left, price = ledger.remaining(), spec.price
    admits = ledger.composition != "basic" or (
        left.epsilon >= price.epsilon and left.delta >= price.delta
    )
    return AccountState(path, own, ledger.budget, left, ledger.releases(), admits)


def ledger_of_run(spec: RunSpec, folder: RunFolder, unit: str, watch: Watch) -> Ledger:
    """Return the account of a run, opened or made, after asking whether it admits the price.

    Parameters
    ----------
    spec : RunSpec
    folder : RunFolder
        Entered.
    unit : {"record", "user"}
        Whose account it is.
    watch : Watch
        Called where an interrupted run is resumed.

    Raises
    ------
    BudgetError
        If the ledger does not admit the price; nothing was spent.
    LedgerError
        If the ledger is that of something else, or cannot be used.
    """
    if folder.resumed and not folder.damaged:
        watch.note(TAKEN_UP, private=False)
    place = place_of_account(spec, folder)
    if folder.account is not None and not Ledger.exists(place):
        raise _other_account(str(folder.account))
    if place != folder.ledger and not Ledger.exists(place):
        _refuse_small_total(spec)
    ledger = open_ledger(
        place,
        dataset=spec.dataset_name,
        total=spec.price if place == folder.ledger else spec.total,
        unit=unit,
        relation=spec.budget.relation,
    )
    # What was paid on one account is unknown to any other, which would be charged again.
    if folder.resumed and is_other_ledger(folder.vault, ledger):
        raise _other_account(str(folder.account or "that it began with"))
    settle_request(folder, ledger, watch)
    # of an estimate that was paid for the rest alone is to be paid, as the learner knows
    if ledger.entry(EstimatedSize.request_of(folder.request)) is None:
        refuse_beyond(ledger, spec.price, folder.request)
    return ledger


def _other_account(began_with: str) -> LedgerError:
    """Return the refusal of an account other than that of the interrupted run."""
    return LedgerError(
        f"The interrupted run goes on with the account {began_with} alone, which is not found any"
        " more; put it back in its place, or begin anew in another folder with --out. Nothing was"
        " spent."
    )


def open_ledger(
    path: Path | DatabasePlace,
    *,
    dataset: str,
    total: PrivacyBudget | None,
    unit: str,
    relation: str,
) -> Ledger:
    """Open the ledger at `path`, or make one with this total, unit and relation.

    Raises
    ------
    LedgerError
        If the file is the account of another dataset, unit or relation, or cannot be used.
    ParameterError
        If it is to be made without a total, or was made with another one.
    """
    ledger = _found_ledger(path, dataset, unit, relation)
    if ledger is None:
        if total is None:
            raise ParameterError(
                Parameter("total"),
                " is missing, and a new account needs the limit of all releases.",
            )
        return Ledger(path, dataset=dataset, budget=total, unit=unit, relation=relation)
    if total is not None and ledger.budget != total:
        admitted = ledger.budget
        raise ParameterError(
            Parameter("total"),
            f" is {total.epsilon:g},{total.delta:g}, and the account at {ledger.place} was opened"
            f" with {admitted.epsilon:g},{admitted.delta:g}; leave it out, or name another"
            " account.",
        )
    return ledger


def _found_ledger(
    path: Path | DatabasePlace, dataset: str, unit: str, relation: str, *, own: bool = False
) -> Ledger | None:
    """Return the ledger at a place; None where there is none, and one can be made."""
    # a link that leads nowhere is no free place: what it points to may be anybody's
    if Ledger.exists(path):
        ledger = Ledger.open_existing(path)
        if ledger.dataset != dataset:
            raise LedgerError(
                f"The ledger {str(path)!r} is the account of the dataset {ledger.dataset!r}, and"
                f" this run is about {dataset!r}; give the right ledger, or the dataset's name with"
                " --dataset."
            )
        ledger.check_promise(unit, relation)
        return ledger
    # the folder of a run's own account is made by the run
    if isinstance(path, Path) and not own and not os.access(path.parent, os.W_OK):
        missing = not os.path.lexists(path.parent)
        why = "does not exist" if missing else "may not be written into"
        raise LedgerError(
            f"No account can be made at {str(path)!r}, since its folder {why}; name another place"
            " with --ledger. Nothing was spent."
        )
    return None


def _file_name(dataset: str) -> str:
    """Return the name of a dataset as that of a file: nothing in it leads to another folder."""
    return "".join(char if char.isalnum() or char in "-_. " else "_" for char in dataset)


def settle_request(folder: RunFolder, ledger: Ledger, watch: Watch) -> None:
    """Tie a run to its ledger, where what it paid for goes on.

    Raises
    ------
    LedgerError
        If the ledger is older than what the vault of the run has seen of it, does not hold what a
        damaged release was made of, or a release of the run was forfeited.
    """
    keep_in_step(folder.vault, ledger)
    folder.pays_from(ledger)
    if folder.damaged:
        damage = f"The release {str(folder.release)!r} is damaged ({folder.damaged})"
        entry = ledger.entry(folder.request)
        if entry is None or entry.state != "committed":
            raise LedgerError(
                f"{damage}, and the ledger does not hold the answer that it was made of; restore"
                " the newest copy of the ledger and repeat the command. Nothing was spent."
            )
        watch.note(
            f"{damage}, so it is made again from what was paid for; nothing is spent.",
            private=False,
        )
    # an estimate comes first, and without it nothing can go on
    for request in (folder.request, EstimatedSize.request_of(folder.request)):
        entry = ledger.entry(request)
        if entry is not None and entry.state == "forfeited":
            raise LedgerError(
                "The run was ended by a fault while it drew, so what it paid stays spent and it"
                " cannot go on; begin anew in another folder with --out, which is a new charge."
            )
