"""The folder of one run, and the account behind it.

The folder has a secret vault, and a release that may be published. The vault holds `run.json`: what
the run was asked to do, and the key under which the ledger knows it. A run that was interrupted is
taken up only when it is asked to do exactly the same; then nothing is paid twice. The account is
opened or made, asked early, and never paid twice for one run.
"""

import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from secretballot._files import LARGEST_JSON, is_url, shown_place
from secretballot._typing import Json, JsonView, Place
from secretballot._validation import refusal, shown
from secretballot.accounting import PrivacyBudget
from secretballot.core.errors import UnknownEndError
from secretballot.core.ledger import Ledger
from secretballot.core.ledger.urls import DatabasePlace, file_or_database
from secretballot.core.noise import entropy_bytes
from secretballot.core.types import Model
from secretballot.drafts import make_folder, try_lock, write_file
from secretballot.exceptions import DataError, LedgerError, ParameterError
from secretballot.learners.learner import refuse_beyond
from secretballot.learners.pate_mechanisms import EstimatedSize
from secretballot.runs.questions import Caution, Watch
from secretballot.runs.spec import OWN, RunSpec
from secretballot.vault import is_other_ledger, keep_in_step, make_vault, read_secret, write_secret

SPEC_FILE = "spec.toml"
#: What a run leaves in its vault before anything was learnt.
_BEGINNINGS = {"run.json", SPEC_FILE, "run.lock", "ledgers", "partition.key", "table"}
_BEGINNINGS |= {"ledger.sqlite", "ledger.sqlite-journal"}


class _StoredRun(Model):
    """What a run was asked to do, and how the ledger knows it."""

    format: Literal["secretballot/run"] = "secretballot/run"
    version: Literal[1] = 1
    request: str
    account: str | None
    description: Json


def check_outside_of_runs(folder: Place) -> None:
    """Refuse a folder that is or lies in a vault, where all is secret, or in a release.

    Raises
    ------
    DataError
        If it does.
    """
    place = Path(os.path.realpath(folder))  # a link may lead there
    for above in (place, *place.parents):
        # What identifies the vault of a run or of a fit.
        if any(
            (above / name).exists()
            for name in ("run.lock", "partition.key", "record.ids", "certificate.json")
        ):
            raise DataError(
                f"{os.fspath(folder)!r} lies in the vault of a run, which stays secret, or in a"
                " release, which is complete; give another one with --out."
            )


def check_new_folder(folder: Path) -> None:
    """Refuse a folder that is neither new nor empty.

    Raises
    ------
    DataError
        If it is not.
    """
    if os.path.lexists(folder) and not (folder.is_dir() and not any(folder.iterdir())):
        raise DataError(f"{str(folder)!r} exists; give a new folder with --out, or remove it.")


def check_new_file(path: Path, read: Path, *, overwrite: bool) -> None:
    """Refuse a file that exists, unless it may be replaced, or a folder that is no place for it;
    and always the table that is `read`.

    Raises
    ------
    DataError
        If it is such a one.
    """
    check_outside_of_runs(path.parent)
    # a device or a link would be replaced by the file
    if path.is_symlink() or (path.exists() and not (overwrite and path.is_file())):
        raise DataError(f"{str(path)!r} exists; give another name, or add --overwrite to a file.")
    if path.exists() and read.exists() and path.samefile(read):
        raise DataError(f"{str(path)!r} is the table that is read; give another name with --out.")


def write_files(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write files into a folder, which is made where there is none."""
    make_folder(folder)
    for name, content in contents.items():
        write_file(folder / name, content)


class RunFolder:
    """Hold the folder of one run: make it, resume the run in it, or find that finished.

    Use it as a context manager: leaving it lets go of the folder, and takes a folder away again in
    which an error came before anything was learnt or paid.

    Parameters
    ----------
    root : path
        New, empty, or holding the same run.
    description : mapping
        JSON values: the settings, and the digests of the files, that make a run the same run.

    Attributes
    ----------
    root, vault, release : Path
        The folder, its secret part (mode 0700) and its publishable part.
    ledger : Path
        Where a run keeps its ledger unless it was given one.
    request : str
        Key of this run in the ledger.
    account : Path, DatabasePlace or None
        Where the ledger lay that this run began with, None where it has not begun with any or did
        not say which.
    resumed : bool
        Whether an interrupted run is taken up.
    finished : bool
        Whether this very run is complete already; there is nothing to enter then.

    Raises
    ------
    DataError
        If the folder holds another run, something else, or is in use, or lies in the vault or the
        release of a run.
    """

    def __init__(self, root: Place, description: JsonView) -> None:
        check_outside_of_runs(root)
        self.root = Path(root)
        self.vault = self.root / "vault"
        self.release = self.root / "release"
        self.ledger = self.vault / "ledger.sqlite"
        self._description = dict(description)
        self.account: Path | DatabasePlace | None = None
        self._in_use: Ledger | None = None
        self._lock: int | None = None
        self._read_state()

    def __enter__(self) -> "RunFolder":
        try:
            make_vault(self.vault)
            self._lock_vault()
            self._read_state()  # another run may have begun, or ended, before the lock was ours
            if self.finished:
                raise DataError(
                    f"The same run was finished in {str(self.root)!r} meanwhile; its release is"
                    " complete, so there is nothing to do."
                )
            self._write_run()  # of a run that is taken up too: its student may be another one
        except Exception as error:
            self.__exit__(type(error))
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if self._lock is None:
            return
        # An interruption by hand leaves everything: only an error says that nobody will go on. What
        # may have been paid, and is not seen yet, goes on under its key.
        failed = (
            kind is not None
            and issubclass(kind, Exception)
            and not issubclass(kind, UnknownEndError)
        )
        if failed and not self.resumed and self._nothing_kept():
            shutil.rmtree(self.vault, ignore_errors=True)
            with suppress(OSError):
                self.root.rmdir()
        os.close(self._lock)
        self._lock = None

    def pays_from(self, ledger: Ledger) -> None:
        """Remember the ledger in use: the key of a run that it knows is never thrown away, and the
        run goes on with this ledger, whatever its surroundings name by then."""
        self._in_use = ledger
        place = None if ledger.place is None else file_or_database(ledger.place)
        if place is not None and self.account != place:
            self.account = place
            self._write_run()

    def _read_state(self) -> None:
        """Take up the interrupted run in this folder, or be a new one, or a finished one."""
        stored = self._stored_run()
        # of another run it would have been refused
        self.finished = stored is not None and os.path.lexists(self.release)
        self.resumed = stored is not None and not self.finished
        if stored:
            self.request = stored.request
        else:  # a new key is random, so that it reveals nothing about the files
            self.request = f"{self._description.get('method', 'run')}-{entropy_bytes(12).hex()}"
        account = stored.account if stored else None
        self.account = file_or_database(account) if account else None

    def _stored_run(self) -> _StoredRun | None:
        """Return what the run in this folder left, None where there is no run yet."""
        if not os.path.lexists(self.root) or self._is_untouched():
            return None
        # the target of a link would be closed to others and filled, whosever it is
        own = self.root.is_dir() and not self.vault.is_symlink()
        stored = _read_run(self.vault) if own else None
        if own and stored is None and os.path.lexists(self.vault / "run.json"):
            raise DataError(
                f"{str(self.vault / 'run.json')!r} is damaged or of another version, and it alone"
                " says under which key this run paid; put it back as it was, or pay anew in another"
                " folder with --out. Nothing was spent."
            )
        if stored is None:
            raise DataError(
                f"{str(self.root)!r} exists and holds no run; give another folder with --out."
            )
        self._refuse_other(stored.description, finished=os.path.lexists(self.release))
        return stored

    def _is_untouched(self) -> bool:
        """Return whether nothing is in the folder but a vault in which a run was about to begin."""
        if not self.root.is_dir() or self.vault.is_symlink():
            return False
        return {*_names_in(self.root)} <= {"vault"} and {*_names_in(self.vault)} <= {"run.lock"}

    def _refuse_other(self, stored: JsonView, *, finished: bool) -> None:
        now = self._description
        # What shapes the student, or what is stated of the release, alone: post-processing,
        # which another attempt may do otherwise.
        free = () if finished else ("student", "title", "controller", "contact")
        keys = {*stored, *now}.difference(free)
        other = sorted(key for key in keys if stored.get(key) != now.get(key))
        if other:
            # what else is in the file may be anything, and may be long
            named = [key for key in other if key in now] or ["settings that this run does not have"]
            state = "a finished" if finished else "an interrupted"
            raise DataError(
                f"The folder {str(self.root)!r} holds {state} run that differs in"
                f" {', '.join(named)}; repeat its command to go on with it, or give another folder"
                " with --out."
            )

    def _lock_vault(self) -> None:
        """Lock the vault against a second run at the same time."""
        place, problem = self.vault / "run.lock", ""
        try:
            # never through a link, and never emptied: until it is ours, nobody knows what is in
            # its place
            handle = os.open(place, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
            # else it was taken away with its vault meanwhile
            if try_lock(handle) and _is_file_at(handle, place):
                self._lock = handle
                return
            os.close(handle)
            problem = "another run is at work there"
        except OSError as error:
            problem = error.strerror or type(error).__name__
        raise DataError(
            f"{str(place)!r} cannot be locked ({problem}); wait, or give another folder with --out."
        )

    def _write_run(self) -> None:
        account = None if self.account is None else str(self.account)
        run = _StoredRun(request=self.request, account=account, description=self._description)
        write_secret(self.vault / "run.json", run.model_dump_json(indent=1).encode())

    def _nothing_kept(self) -> bool:
        """Return whether nothing was learnt or paid; where that cannot be known, something was."""
        if self.release.exists() or not {*_names_in(self.vault)} <= _BEGINNINGS:
            return False
        try:
            if os.path.lexists(self.ledger) and Ledger.open_existing(self.ledger).releases():
                return False  # whoever paid from it: another run may have been given this ledger
            # an entry under the key of this run, or one made of it
            entries = () if self._in_use is None else self._in_use.history()
            return not any(entry.request.startswith(self.request) for entry in entries)
        except LedgerError:
            return False


def begun_description(root: Place) -> Json:
    """Return the description of the run that was begun in a folder; empty where there is none."""
    vault = Path(root) / "vault"
    stored = None if vault.is_symlink() else _read_run(vault)
    return {} if stored is None else stored.description


def _read_run(vault: Path) -> _StoredRun | None:
    """Return what a run left; None where there is no such file, or it is no run's."""
    with suppress(DataError, ValidationError):  # a file that cannot be read is no run's either
        content = read_secret(vault / "run.json", largest=LARGEST_JSON)
        return None if content is None else _StoredRun.model_validate_json(content)
    return None


def _is_file_at(handle: int, place: Path) -> bool:
    """Return whether an open file is the ordinary file that is at `place` now."""
    with suppress(OSError):
        found = os.fstat(handle)
        return stat.S_ISREG(found.st_mode) and os.path.samestat(found, os.lstat(place))
    return False


def _names_in(folder: Path) -> list[str]:
    """Return what is in a folder, nothing where it is none, without drafts of a broken write."""
    if not folder.is_dir():
        return []
    return [path.name for path in folder.iterdir() if not path.name.startswith(".run.json-")]


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
        self._spec, self._dataset = spec, spec.dataset_name
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
            ledger.check_promise(self._spec.data.unit_kind, self._spec.relation)
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
            refuse_beyond(ledger, self._spec.price, request)

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
        total = self._spec.price if self.own else total
        ledger = self.ledger or self._found()  # another run may have made it meanwhile
        if ledger is None:
            return Ledger(
                self.place,
                dataset=self._dataset,
                budget=total,
                unit=self._spec.data.unit_kind,
                relation=self._spec.relation,
            )
        if total is not None and ledger.budget != total:
            admitted = ledger.budget
            raise refusal(
                "total",
                f" is {total.epsilon:g},{total.delta:g}, and the account at {ledger.place} was"
                f" opened with {admitted.epsilon:g},{admitted.delta:g}; leave it out, or name"
                " another account.",
            )
        return ledger

    def to_json(self) -> Json:
        """Return the state for machines."""
        found: Json = {"path": str(self.place), "own": self.own}
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
    named, usual = spec.budget.ledger, os.environ.get("SECRETBALLOT_LEDGER")
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
        If the ledger is older than what the vault of the run has seen of it, or a release of the
        run was forfeited.
    """
    if folder.resumed:
        watch.note(
            "An interrupted run is taken up: what was learnt and paid for is kept.", private=False
        )
    keep_in_step(folder.vault, ledger)
    folder.pays_from(ledger)
    # an estimate comes first, and without it nothing can go on
    for request in (folder.request, EstimatedSize.request_of(folder.request)):
        entry = ledger.entry(request)
        if entry is not None and entry.state == "forfeited":
            raise LedgerError(
                "The run was ended by a fault while it drew, so what it paid stays spent and it"
                " cannot go on; begin anew in another folder with --out, which is a new charge."
            )
