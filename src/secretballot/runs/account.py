"""The account behind a run: opened or made, asked early, and never paid twice for one run."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from secretballot._places import is_url, shown_place
from secretballot._validation import shown
from secretballot.accounting import PrivacyBudget
from secretballot.core.ledger import Ledger
from secretballot.core.ledger.urls import DatabasePlace, file_or_database
from secretballot.exceptions import LedgerError, Parameter, ParameterError
from secretballot.learners.pate.estimated_size import EstimatedSize
from secretballot.learners.training.account import refuse_beyond
from secretballot.runs.folder import RunFolder
from secretballot.runs.questions import Caution, Watch
from secretballot.runs.spec import OWN, RunSpec
from secretballot.vault import is_other_ledger, keep_in_step

_VARIABLE = "SECRETBALLOT_LEDGER"


class Account:
    """The account of a run before it pays.

    Parameters
    ----------
    spec : RunSpec
    folder : RunFolder, optional
        Of the run, which goes on with the account that it began with.

    Attributes
    ----------
    place : Path or DatabasePlace
    own : bool
        Whether it is that of the run alone.
    ledger : Ledger or None
        None where there is none yet, and one can be made.

    Raises
    ------
    LedgerError
        If it is that of something else, or cannot be used.
    """

    def __init__(self, spec: RunSpec, folder: RunFolder | None = None) -> None:
        self.place = place_of_account(spec, folder)
        self.own = folder is not None and self.place == folder.ledger
        self._price, self._dataset = spec.price, spec.dataset_name
        self._unit, self._relation = spec.data.unit_kind, spec.budget.relation
        ledger = self.ledger = self._found()
        if folder is None:
            return
        # What was paid on one account is unknown to any other, which would be charged again.
        other = ledger is not None and folder.resumed and is_other_ledger(folder.vault, ledger)
        if other or (folder.account is not None and ledger is None):
            raise LedgerError(
                "The interrupted run goes on with the account"
                f" {folder.account or 'that it began with'} alone, which is not found any more; put"
                " it back in its place, or begin anew in another folder with --out. Nothing was"
                " spent."
            )

    def _found(self) -> Ledger | None:
        # a link that leads nowhere is no free place: what it points to may be anybody's
        if Ledger.exists(self.place):
            ledger = Ledger.open_existing(self.place)
            if ledger.dataset != self._dataset:
                raise LedgerError(
                    f"The ledger {str(self.place)!r} is the account of the dataset"
                    f" {ledger.dataset!r}, and this run is about {self._dataset!r}; give the right"
                    " ledger, or the dataset's name with --dataset."
                )
            ledger.check_promise(self._unit, self._relation)
            return ledger
        # the folder of a run's own account is made by the run
        parent = None if self.own else getattr(self.place, "parent", None)
        if parent is not None and not os.access(parent, os.W_OK):
            raise LedgerError(
                f"No account can be made at {str(self.place)!r}, since its folder does not exist,"
                " or may not be written into; name another place with --ledger. Nothing was spent."
            )
        return None

    def refuse_beyond(self, request: str) -> None:
        """Refuse a price that the ledger will not admit; what was paid under this key, or what an
        estimate of it left, is not paid again.

        Raises
        ------
        BudgetError
            If less is left.
        """
        ledger = self.ledger
        if ledger is not None and ledger.entry(EstimatedSize.request_of(request)) is None:
            refuse_beyond(ledger, self._price, request)

    def questions(self, total: PrivacyBudget | None) -> Iterator[Caution]:
        """Yield the question what all releases may cost, where an account would be opened without
        that total."""
        if self.own or self.ledger is not None or total is not None:
            return
        beside = ""
        if isinstance(self.place, Path):
            found = sorted(path.name for path in self.place.parent.glob("*.ledger"))[:3]
            beside = f" (beside it: {', '.join(found)})" if found else ""
        yield Caution(
            "total",
            f"no account exists for {shown(self._dataset)} at {str(self.place)!r}{beside}; set the"
            " limit of all its releases, or name an account",
        )

    def opened(self, total: PrivacyBudget | None) -> Ledger:
        """Return the ledger, which is made with this total where there is none.

        Raises
        ------
        ParameterError
            If it was made with another total.
        """
        total = self._price if self.own else total
        ledger = self.ledger or self._found()  # another run may have made it meanwhile
        if ledger is None:
            return Ledger(
                self.place,
                dataset=self._dataset,
                budget=total,
                unit=self._unit,
                relation=self._relation,
            )
        if total is not None and ledger.budget != total:
            admitted = ledger.budget
            raise ParameterError(
                Parameter("total"),
                f" is {total.epsilon:g},{total.delta:g}, and the account at {ledger.place} was"
                f" opened with {admitted.epsilon:g},{admitted.delta:g}; leave it out, or name"
                " another account.",
            )
        return ledger

    def to_json(self) -> dict[str, Any]:
        """Return the state for machines."""
        found: dict[str, Any] = {"path": str(self.place), "own": self.own}
        found |= {"exists": self.ledger is not None, "releases": 0}
        if self.ledger is not None:
            total, left = self.ledger.budget.to_json(), self.ledger.remaining()._asdict()
            found |= {"total": total, "left": left, "releases": self.ledger.releases()}
        return found


def place_of_account(spec: RunSpec, folder: RunFolder | None) -> Path | DatabasePlace:
    """Return where the account of a run lies.

    It is the ledger that is named by the run, or by the environment variable `SECRETBALLOT_LEDGER`.
    Where nothing is named, it lies beside the private file, wherever links lead to it. A run that
    has begun goes on with the account that it began with, wherever that would be by now.

    Raises
    ------
    ParameterError
        If none is named, and the private file is no local one.
    """
    named, usual = spec.budget.ledger, os.environ.get(_VARIABLE)
    if folder is not None and (named == OWN or os.path.lexists(folder.ledger)):
        return folder.ledger
    if named in (None, OWN):
        named = file_or_database(usual) if usual and named is None else _beside(spec.private)
    began = None if folder is None else folder.account
    # a place that is named anew stays as it is: of a database it has the password, kept nowhere
    here = named.absolute() if isinstance(named, Path) else named
    return began if began not in (None, here) and Ledger.exists(began) else named


def _beside(private: Path | str) -> Path:
    """Return where the account of a private file lies that nobody named."""
    if is_url(private):
        raise ParameterError(
            f"The account of {shown_place(private)!r} has no place beside it; name one with"
            " --ledger, or by SECRETBALLOT_LEDGER."
        )
    named, real = Path(private), Path(os.path.realpath(private))
    # "." and ".." have no name of their own
    has_name = named.name not in ("", "..") and real == Path(os.path.abspath(named))
    place = named if has_name else real
    return place.with_name(f"{place.name}.ledger")


def settle_request(folder: RunFolder, ledger: Ledger, watch: Watch) -> None:
    """Tie a run to its ledger, where what it paid for goes on.

    Raises
    ------
    LedgerError
        If the ledger is older than what the vault of the run has seen of it, does not hold what a
        damaged release was made of, or a release of the run was forfeited.
    """
    if folder.resumed and not folder.damaged:
        watch.note(
            "An interrupted run is taken up: what was learnt and paid for is kept.", private=False
        )
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
