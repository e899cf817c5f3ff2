"""The folder of one run: a vault that is never published, a release that may be, and how to take up a broken run.

The vault holds `run.json`: what the run was asked to do, and the key under which the ledger knows it. A run that was
interrupted is taken up only when it is asked to do exactly the same; then nothing is paid twice.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from secretballot.exceptions import DataError
from secretballot.privacy.ledger import Ledger
from secretballot.privacy.noise import entropy_bytes
from secretballot.vault import make_vault, write_secret

try:
    import fcntl
except ImportError:  # Windows has no such locks; two runs in one folder are then the user's own care
    fcntl = None  # type: ignore[assignment]

__all__ = ["RunFolder", "check_outside_of_runs", "file_digest"]

FORMAT = "secretballot/run"
VERSION = 1
#: What shapes the student alone: post-processing of what was released, which another attempt may do otherwise.
_FREE = frozenset({"student", "abstentions"})
#: What a run leaves in its vault before anything was learnt.
_BEGINNINGS = frozenset({"run.json", "run.lock", "ledger.sqlite", "ledger.sqlite-journal"})
#: What tells the vault of a run or of a fit.
_SECRETS = ("run.lock", "partition.key", "record.ids")


def file_digest(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal.

    Raises
    ------
    DataError
        If the file cannot be read.
    """
    problem = ""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        problem = error.strerror or "no reason given"
    raise DataError(f"The file {os.fspath(path)!r} cannot be read ({problem}).")


def check_outside_of_runs(folder: str | os.PathLike[str]) -> None:
    """Refuse a folder that is or lies in a vault, where all is secret, or in a release, where nothing is.

    Raises
    ------
    DataError
        If it does.
    """
    place = Path(os.path.realpath(folder))  # a link may lead there
    for above in (place, *place.parents):
        if any((above / name).exists() for name in _SECRETS):
            raise DataError(
                f"{os.fspath(folder)!r} lies in the vault of a run, which stays secret; give another one with --out."
            )
        if (above / "certificate.json").exists():
            raise DataError(f"{os.fspath(folder)!r} lies in a release, which is complete; give another one with --out.")


class RunFolder:
    """Hold the folder of one run: make it, or take up the run that was interrupted in it.

    Use it as a context manager: leaving it lets go of the folder, and takes a folder away again in which an error
    ended the run before anything was learnt or paid.

    Parameters
    ----------
    root : path
        The folder; it must not exist, be empty, or hold an interrupted run with the same description.
    description : mapping
        What the run does, as JSON: every public parameter that shapes the result, and the digests of its files.

    Attributes
    ----------
    root, vault, release : Path
        The folder, its secret part (mode 0700) and its publishable part.
    ledger : Path
        Where a run keeps its ledger unless it was given one.
    request : str
        Key of this run in the ledger.
    resumed : bool
        Whether an interrupted run is taken up.

    Raises
    ------
    DataError
        If the folder holds a finished run, another run, something else, or is in use, or lies in the vault or the
        release of a run.
    """

    def __init__(self, root: str | os.PathLike[str], description: Mapping[str, Any]) -> None:
        check_outside_of_runs(root)
        self.root = Path(root)
        self.vault = self.root / "vault"
        self.release = self.root / "release"
        self.ledger = self.vault / "ledger.sqlite"
        self._description = dict(description)
        self._lock: IO[bytes] | None = None
        self._look()

    def __enter__(self) -> "RunFolder":
        try:
            make_vault(self.vault)
            self._take()
            self._look()  # another run may have begun, or ended, before the lock was ours
            if not self.resumed:
                self._write()
        except Exception as error:
            self.__exit__(type(error))
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if self._lock is None:
            return
        if kind is not None and issubclass(kind, Exception) and not self.resumed and self._nothing_kept():
            shutil.rmtree(self.vault, ignore_errors=True)
            with suppress(OSError):
                self.root.rmdir()
        self._lock.close()
        self._lock = None

    def renew_request(self) -> None:
        """Take a new key in the ledger, because the old one was reserved and never answered."""
        self.request = new_request(self._description)
        self._write()

    @property
    def finished(self) -> bool:
        """Whether the release is complete."""
        return (self.release / "certificate.json").exists()

    def _look(self) -> None:
        """Take up the interrupted run in this folder, or be a new one."""
        stored = self._stored()
        self.resumed = stored is not None
        self.request = stored["request"] if stored else new_request(self._description)

    def _stored(self) -> dict[str, Any] | None:
        """Return the description of the interrupted run in this folder, None where there is no folder yet."""
        if not self.root.exists() or self._untouched():
            return None
        if not self.root.is_dir():
            raise DataError(f"{str(self.root)!r} is a file; give another folder with --out.")
        if self.finished:
            raise DataError(f"The folder {str(self.root)!r} holds a finished release; give another one with --out.")
        try:
            stored = json.loads((self.vault / "run.json").read_text(encoding="utf-8"))
            known = stored["format"] == FORMAT and stored["version"] == VERSION and isinstance(stored["request"], str)
            described = dict(stored["description"])
        except (OSError, ValueError, LookupError, TypeError):
            known = False
        if not known:
            raise DataError(f"The folder {str(self.root)!r} exists and holds no run; give another one with --out.")
        self._refuse_other(described)
        return dict(stored)

    def _untouched(self) -> bool:
        """Return whether nothing is in the folder but, maybe, a vault in which a run was about to begin."""
        return self.root.is_dir() and {*_names(self.root)} <= {"vault"} and {*_names(self.vault)} <= {"run.lock"}

    def _refuse_other(self, described: Mapping[str, Any]) -> None:
        now = self._description
        other = sorted(key for key in {*described, *now} - _FREE if described.get(key) != now.get(key))
        if other:
            raise DataError(
                f"The folder {str(self.root)!r} holds an interrupted run that differs in {', '.join(other)}; "
                "repeat its command to go on with it, or give another folder with --out."
            )

    def _take(self) -> None:
        """Lock the vault against a second run at the same time."""
        lock = (self.vault / "run.lock").open("wb")
        try:
            if fcntl is not None:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            raise DataError(
                f"Another run is at work in {str(self.root)!r}; wait for it, or give another folder with --out."
            ) from None
        self._lock = lock

    def _write(self) -> None:
        text = json.dumps(
            {"format": FORMAT, "version": VERSION, "request": self.request, "description": self._description}, indent=1
        )
        write_secret(self.vault / "run.json", text.encode())

    def _nothing_kept(self) -> bool:
        names = {*_names(self.vault)}
        if self.release.exists() or not names <= _BEGINNINGS:
            return False
        return "ledger.sqlite" not in names or not Ledger.open_existing(self.ledger).history()


def _names(folder: Path) -> list[str]:
    """Return what is in a folder, nothing where it is none, without files that a broken write left behind."""
    if not folder.is_dir():
        return []
    return [path.name for path in folder.iterdir() if not path.name.startswith(".run.json-")]


def new_request(description: Mapping[str, Any]) -> str:
    """Return a fresh key for the ledger; random, so that it tells nothing about the files."""
    return f"{description.get('verb', 'run')}-{entropy_bytes(12).hex()}"
