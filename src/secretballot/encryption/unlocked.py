"""Which vaults this process can read: their data keys, in memory alone.

A file belongs to the innermost folder above it that has an `encryption.json`. Whether there is one
is looked at each time, so that a vault that is encrypted or decrypted meanwhile is noticed.
"""

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from secretballot.encryption.envelope import (
    CHANGING,
    ENVELOPE,
    WHOLE,
    Envelope,
    new_envelope,
    read_envelope,
    write_envelope,
)
from secretballot.encryption.key_sources import VARIABLE, KeySource, source_in_environment
from secretballot.encryption.sealed_files import FileKey, has_mark
from secretballot.exceptions import VaultError

__all__ = [
    "PLAIN_NAMES",
    "begin_encryption",
    "file_keys",
    "forget_vault",
    "half_changed",
    "lost_envelope",
    "open_vault",
    "remember_source",
    "root_above",
    "source_of",
]

#: What may lie in a folder that becomes an encrypted vault.
PLAIN_NAMES = frozenset({ENVELOPE, "run.lock"})


@dataclass(frozen=True, repr=False)
class _Open:
    """An opened vault; it refuses to be pickled or copied, since its key would go along."""

    serial: bytes
    data_key: bytes
    mark: tuple[int, int, int]

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("the key of a vault refuses to be pickled or copied.")

    def __repr__(self) -> str:
        return "_Open(<secret>)"


_lock = threading.RLock()
_open: dict[str, _Open] = {}
_sources: dict[str, KeySource] = {}


def open_vault(vault: Path, source: KeySource) -> None:
    """Read and write a vault with a key from now on; it is encrypted from its first file on.

    Raises
    ------
    VaultError
        If it holds files that are not encrypted, or the key is another one. Nothing was changed.
    """
    root = os.path.realpath(vault)
    above = root_above(root)
    if above is not None:
        with _lock:
            _sources[above] = source
            _open.pop(above, None)
            _opened_vault(above)
        return
    _refuse_plain(Path(root))
    # a key that cannot be had is told now, and not after hours of work
    source.lasting_key()
    with _lock:
        _sources[root] = source


def begin_encryption(folder: Path) -> None:
    """Make the envelope of the vault that a folder is or lies in, if it is to be encrypted and has
    none yet.

    Raises
    ------
    VaultError
        If it holds files already that are not encrypted.
    """
    root = _wanted_above(os.path.realpath(folder))
    if root is None or root_above(root) is not None:
        return
    with _lock:
        source = _sources[root]
        try:
            _refuse_plain(Path(root))
        except VaultError:
            # another process has made it meanwhile, and its first files
            if root_above(root) is None:
                raise
        write_envelope(Path(root), new_envelope(source.lasting_key(), WHOLE)[0], only_new=True)
        _opened_vault(root)


def file_keys(path: Path) -> Callable[[bytes], FileKey] | None:
    """Return what gives the key of a file for a salt; None where its vault is not encrypted.

    Raises
    ------
    VaultError
        If the vault is encrypted and its key is not at hand, or it is half encrypted.
    """
    place = os.path.join(os.path.realpath(path.parent), path.name)
    root = root_above(os.path.dirname(place))
    if root is None:
        lost = _wanted_above(os.path.dirname(place))
        if lost is not None:
            raise lost_envelope(lost)
        return None
    with _lock:
        found = _opened_vault(root)
    role = os.path.relpath(place, root).replace(os.sep, "/")
    return lambda salt: FileKey(found.data_key, found.serial, role, salt)


def source_of(folder: Path) -> tuple[str, KeySource] | None:
    """Return the vault of a folder and where its key comes from, for another process; None where
    nobody has said so, or the source would take the key along."""
    root = root_above(os.path.realpath(folder))
    with _lock:
        source = None if root is None else _sources.get(root)
    return None if root is None or source is None or not source.travels else (root, source)


def remember_source(root: str, source: KeySource) -> None:
    """Take a key for a vault from a source once it is needed: in a process that was just begun."""
    with _lock:
        _sources.setdefault(root, source)


def forget_vault(root: str) -> None:
    """Forget the key of a vault, which is not encrypted any more."""
    with _lock:
        _open.pop(root, None)
        _sources.pop(root, None)


def _opened_vault(root: str) -> _Open:
    """Return an encrypted vault, opened now if it was not."""
    mark = _mark_of(root)
    known = _open.get(root)
    if known is not None and known.mark == mark:
        return known
    envelope = read_envelope(Path(root))
    if envelope is None:
        raise VaultError(f"The {ENVELOPE} of {root} has gone; put the vault back as it was.")
    if envelope.state == CHANGING:
        raise half_changed(root)
    # another key since then: the data key is the same
    if known is not None and known.serial == envelope.serial:
        opened = _Open(known.serial, known.data_key, mark)
    else:
        opened = _Open(envelope.serial, _data_key(root, envelope), mark)
    _open[root] = opened
    return opened


def _data_key(root: str, envelope: Envelope) -> bytes:
    source = _sources.get(root) or source_in_environment()
    if source is None:
        raise VaultError(
            f"The vault {root} is encrypted with the key {envelope.key_id}, and no key was given;"
            f" name its source with --vault-key or in {VARIABLE}."
        )
    return envelope.data_key(source, Path(root))


def half_changed(root: str) -> VaultError:
    """Return the refusal of a vault that is half encrypted."""
    return VaultError(
        f"The vault {root} is half encrypted, since that broke off or is at work; repeat"
        " secretballot vault encrypt, or decrypt. Nothing is lost."
    )


def lost_envelope(root: str) -> VaultError:
    """Return the refusal of a vault that is encrypted, and lacks what its key opens."""
    return VaultError(
        f"The vault {root} is encrypted or was to be, and its {ENVELOPE} is not there; put it back"
        " from a backup: without this file the key opens nothing."
    )


def _mark_of(root: str) -> tuple[int, int, int]:
    try:
        found = os.stat(os.path.join(root, ENVELOPE), follow_symlinks=False)
    except OSError:
        return (0, 0, 0)
    return (found.st_ino, found.st_mtime_ns, found.st_size)


def root_above(folder: str) -> str | None:
    """Return the innermost of a folder and those above it that has an envelope."""
    place = Path(folder)
    return next(
        (str(one) for one in (place, *place.parents) if os.path.lexists(one / ENVELOPE)), None
    )


def _wanted_above(folder: str) -> str | None:
    """Return the vault above a folder that somebody gave a key for."""
    place = Path(folder)
    with _lock:
        return next((str(one) for one in (place, *place.parents) if str(one) in _sources), None)


def _refuse_plain(vault: Path) -> None:
    if not os.path.lexists(vault):
        return
    if not vault.is_dir():
        raise VaultError(f"The vault {vault} is no folder; name a folder of your own.")
    files = [
        Path(folder, name)
        for folder, _, names in os.walk(vault)
        for name in names
        if name not in PLAIN_NAMES
    ]
    if any(has_mark(file) for file in files):
        raise lost_envelope(str(vault))
    if files:
        raise VaultError(
            f"A key was given for the vault {vault}, whose files are not encrypted; encrypt them"
            " with secretballot vault encrypt, or leave the key out. Nothing was changed."
        )
