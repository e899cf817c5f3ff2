"""The vault: the secret folder of a run. Mode 0700, files 0600, written whole or not at all.

It remembers how far each ledger had come that it was used with. A ledger that is put back alone
from an older copy has lost answers that were given; a reservation would answer the same queries
anew, with fresh noise, for nothing. The vault beside it has seen them, and refuses such a copy.
"""

import fcntl
import functools
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from secretballot._validation import check_path
from secretballot.drafts import make_folder, write_file
from secretballot.exceptions import DataError, LedgerError

if TYPE_CHECKING:
    from secretballot.core.ledger import Ledger

_LEDGERS, _HEAD = "ledgers", ".head"
_LARGEST_STATE = 10**6  # bytes


def make_vault(path: str | Path) -> Path:
    """Return the folder at `path`, made with mode 0700 if it is not there, closed to others if it
    is.

    Raises
    ------
    ParameterError
        If it is no path.
    DataError
        If it cannot be made, is not a folder, or lies in a release.
    """
    check_path("The vault", path)
    folder = Path(path)
    released = _release_above(folder)
    if released is not None:
        raise DataError(
            f"The vault {folder} lies in the release {released}, which is published; name another"
            " folder."
        )
    try:
        make_folder(folder, 0o700)
        folder.chmod(0o700)
    except OSError as error:
        raise DataError(
            f"The vault {folder} cannot be used ({error.strerror}); name a folder of your own."
        ) from None
    return folder


def _release_above(place: Path) -> Path | None:
    """Return the release that a place lies in, links followed, None where it lies in none."""
    real = Path(os.path.realpath(place))
    return next(
        (above for above in (real, *real.parents) if os.path.lexists(above / "certificate.json")),
        None,
    )


def read_secret(path: Path, *, largest: int | None = None, own: bool = False) -> bytes | None:
    """Return the bytes of a file in the vault, None if there is none.

    Parameters
    ----------
    path : Path
    largest : int, optional
        Bytes; a file of more is refused before it is read.
    own : bool
        Whether a link, and a file that others own or may write, is refused: what is unpickled runs.

    Raises
    ------
    DataError
        If it cannot be read, is no ordinary file, is too large, or is not our own.
    """
    try:
        # a pipe in its place would make a plain open wait for ever
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW * own)
        try:
            problem = _reason_unfit(os.fstat(handle), largest, own)
            if not problem:
                with os.fdopen(handle, "rb", closefd=False) as file:
                    return file.read()
        finally:
            os.close(handle)
    except FileNotFoundError:
        return None
    except OSError as error:
        problem = error.strerror or type(error).__name__
    raise DataError(f"{path} cannot be read ({problem}); put the vault back as it was.")


def _reason_unfit(found: os.stat_result, largest: int | None, own: bool) -> str:
    """Return why a file is not read, nothing where it may be."""
    if not stat.S_ISREG(found.st_mode):
        return "it is no ordinary file"
    if largest is not None and found.st_size > largest:
        return f"it has {found.st_size:,} bytes, and none of ours has more than {largest:,}"
    if own and (found.st_uid != os.geteuid() or found.st_mode & 0o022):
        return "others own it, or may write it"
    return ""


def write_secret(path: Path, content: bytes, *, only_new: bool = False) -> None:
    """Write a file of the vault with mode 0600.

    To a temporary name, to the disk, then under its own name; with `only_new` a file that is there
    stays.

    Raises
    ------
    DataError
        If it cannot be written; a file that was there before is unchanged.
    """
    make_vault(path.parent)
    try:
        write_file(path, content, mode=0o600, only_new=only_new)
    except OSError as error:
        raise DataError(
            f"{path} cannot be written ({error.strerror}); free some space or name another folder."
        ) from None


class VaultFiles:
    """The secret files of streams, as `core.releasing` keeps them.

    Parameters
    ----------
    vault : Path
    """

    def __init__(self, vault: Path) -> None:
        self._vault = make_vault(vault)

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, None if there is none; `DataError` if it cannot be read."""
        return read_secret(self._vault / name, largest=_LARGEST_STATE)

    def write(self, name: str, content: bytes) -> None:
        """Write a file as `write_secret` does."""
        write_secret(self._vault / name, content)


def is_other_ledger(vault: Path, ledger: "Ledger") -> bool:
    """Return whether this vault was used with ledgers, and with this one never."""
    seen = {path.name for path in (vault / _LEDGERS).glob(f"*{_HEAD}")}
    return bool(seen) and _head_name(ledger) not in seen


def keep_in_step(vault: Path, ledger: "Ledger") -> None:
    """Refuse a ledger that does not hold what this vault has seen of it, and remember how far it
    comes from now on.

    Nothing is kept of a ledger in memory. Where the memory cannot be written it lags behind, which
    refuses less, not more.

    Raises
    ------
    LedgerError
        If the ledger is an older copy, or another one of the same terms; nothing was spent.
    DataError
        If the vault cannot be used.
    """
    if not ledger.durable:
        return
    place = make_vault(vault.resolve() / _LEDGERS) / _head_name(ledger)
    last = _seen_head(place)
    if last is not None and not ledger.contains(*last):
        raise LedgerError(
            f"The ledger of {ledger.dataset!r} is an older copy, or another one: it does not hold"
            " what this vault has seen of it, so answers that were given could be drawn anew;"
            " restore the newest copy of the ledger. Nothing was spent."
        )
    _remember_head(place, *ledger.head())
    ledger.after_commit[str(place)] = functools.partial(_remember_head, place)


def _head_name(ledger: "Ledger") -> str:
    return f"{ledger.account[:32]}{_HEAD}"


def _seen_head(place: Path) -> tuple[int, str] | None:
    """Return number and SHA-256 of the furthest row that was seen of a ledger, None where there is
    none.

    Raises
    ------
    DataError
        If the file cannot be read.
    """
    if not place.parent.is_dir():
        return None
    with _held(place.parent):
        return _head_of(read_secret(place, largest=_LARGEST_STATE) or b"")


def _remember_head(place: Path, position: int, chain: str) -> None:
    """Remember a row if it is further than the one before. Where that fails, the memory lags
    behind.

    Several processes may write at once: one at a time reads and writes, so that the furthest row
    stays.
    """
    row = f"{position:018d} {chain}".encode()
    with suppress(OSError, DataError), _held(place.parent) as alone:
        if alone and not _overwritten(place, position, row):
            write_secret(place, row)


@contextmanager
def _held(folder: Path) -> Iterator[bool]:
    """Give whether others read and write nothing in a folder until the end of the block."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        yield _wait_for_lock(handle, _PATIENCE_S)
    finally:
        os.close(handle)


def _wait_for_lock(handle: int, seconds: float) -> bool:
    """Return whether the open file is locked by this handle, after so many seconds at most.

    Where the file system knows no locks there is nobody to wait for.
    """
    end = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                return False
            time.sleep(0.002)
        except OSError:
            return True
        else:
            return True


def _head_of(row: bytes) -> tuple[int, str] | None:
    found = _ROW.fullmatch(row)
    return None if found is None else (int(found[1]), found[2].decode())


def _overwritten(place: Path, position: int, row: bytes) -> bool:
    """Write a row in the place of one of its size that is less far; return whether that was done,
    or there is one as far.

    Every answer of a session waits for this, and one block of the disk, which is written whole or
    not at all, takes a third of the time of a new file.
    """
    with suppress(FileNotFoundError):
        handle = os.open(place, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW)
        try:
            known = os.read(handle, _LARGEST_STATE)
            if position <= (_head_of(known) or (-1,))[0]:
                return True
            if len(known) == len(row):
                os.pwrite(handle, row, 0)
                getattr(os, "fdatasync", os.fsync)(handle)  # macOS has one of them
                return True
        finally:
            os.close(handle)
    return False


_ROW = re.compile(rb"([0-9]{1,18}) ([0-9a-f]{64})")
_PATIENCE_S = 2.0  # seconds; a write takes some milliseconds
