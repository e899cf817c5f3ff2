"""Encrypt, decrypt and rekey a vault that is there, file by file.

A conversion that breaks off leaves every file whole, in the one form or the other, and an envelope
that says so; it is repeated, or turned back.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from secretballot._drafts import draft_file, put_in_place, sweep_drafts, sync_folder, try_lock
from secretballot.encryption import unlocked
from secretballot.encryption.envelope import (
    CHANGING,
    ENVELOPE,
    WHOLE,
    Envelope,
    new_envelope,
    read_envelope,
    write_envelope,
)
from secretballot.encryption.key_sources import KeySource
from secretballot.encryption.sealed_files import FileKey, FileSealer, has_mark, is_sealed, opened
from secretballot.exceptions import VaultError

__all__ = ["VaultFiles", "decrypt_vault", "encrypt_vault", "files_of", "rekey_vault"]

_PIECE = 1 << 20  # bytes that are held at once
_SQLITE = b"SQLite format 3\0"
_LOCK = "run.lock"


@dataclass(frozen=True)
class VaultFiles:
    """The files of a vault, by their places in it.

    Attributes
    ----------
    key_id : str or None
        Of the key it is encrypted with; None where it is not encrypted.
    whole : bool
        Whether no conversion broke off.
    encrypted, plain : tuple of str
        Files that are encrypted; files that ought to be, and are not.
    open_by_rule : tuple of str
        Files that never are: ledgers, how far they had come, locks, the envelope.
    links : tuple of str
        Links, which are left as they are.
    """

    key_id: str | None
    whole: bool
    encrypted: tuple[str, ...]
    plain: tuple[str, ...]
    open_by_rule: tuple[str, ...]
    links: tuple[str, ...]


def files_of(vault: Path) -> VaultFiles:
    """Return what is encrypted in a vault and what is not; no key is needed.

    Raises
    ------
    VaultError
        If it is no folder, or its files cannot be read.
    """
    root = _vault_root(vault)
    envelope = read_envelope(root)
    encrypted: list[str] = []
    plain: list[str] = []
    by_rule: list[str] = []
    links: list[str] = []
    for place in _files_and_links(root):
        role = _role_of(root, place)
        # before anything is opened: a link may lead out of the vault
        if place.is_symlink():
            links.append(role)
        elif _is_open_by_rule(root, place):
            by_rule.append(role)
        else:
            with _opened_file(place) as file:
                (encrypted if is_sealed(file) else plain).append(role)
    return VaultFiles(
        None if envelope is None else envelope.key_id,
        envelope is None or envelope.state == WHOLE,
        tuple(encrypted),
        tuple(plain),
        tuple(by_rule),
        tuple(links),
    )


def encrypt_vault(vault: Path, source: KeySource) -> VaultFiles:
    """Encrypt every secret file of a vault, and return what became of which.

    Repeat it where it broke off, or where plain files came in later.

    Raises
    ------
    VaultError
        If the key is another one than that of the vault, a run is at work in it, or a file cannot
        be written. Nothing is lost.
    """
    root = _vault_root(vault)
    with _run_lock(root):
        envelope, key = read_envelope(root), source.lasting_key()
        if envelope is None:
            above = unlocked.root_above(str(root))
            if above is not None:
                raise VaultError(f"{root} lies in the encrypted vault {above}; name that one.")
            if any(has_mark(place) for place in _secret_places(root)):
                raise unlocked.lost_envelope(str(root))
            envelope, data_key = new_envelope(key, CHANGING)
        else:
            data_key = envelope.data_key_of(key, str(source), root)
            envelope = envelope.wrapped_by(key, data_key, CHANGING)
        write_envelope(root, envelope)
        for place in _secret_places(root):
            _encrypt_file(root, place, data_key, envelope)
        # by the very key that the envelope has: what a source gives later could be another one
        write_envelope(root, envelope.wrapped_by(key, data_key, WHOLE))
    return files_of(root)


def decrypt_vault(vault: Path, source: KeySource) -> VaultFiles:
    """Put every file of a vault back in the clear, and return what became of which.

    Raises
    ------
    VaultError
        If the key is another one, a file was changed, or cannot be written. Nothing is lost.
    """
    root = _vault_root(vault)
    with _run_lock(root):
        envelope = _known_envelope(root)
        key = source.key()
        data_key = envelope.data_key_of(key, str(source), root)
        envelope = envelope.wrapped_by(key, data_key, CHANGING)
        write_envelope(root, envelope)
        for place in _secret_places(root):
            _decrypt_file(root, place, data_key, envelope)
        (root / ENVELOPE).unlink()
        sync_folder(root)
        unlocked.forget_vault(str(root))
    return files_of(root)


def rekey_vault(vault: Path, old: KeySource, new: KeySource) -> str:
    """Wrap the data key of a vault by another key, and return what that is called.

    One small file is written; all others stay as they are.

    Raises
    ------
    VaultError
        If the old key is another one, the new one cannot be had, or a conversion broke off.
    """
    root = _vault_root(vault)
    envelope = _known_envelope(root)
    if envelope.state != WHOLE:
        raise unlocked.half_changed(str(root))
    changed = envelope.wrapped_by(new.lasting_key(), envelope.data_key(old, root), WHOLE)
    write_envelope(root, changed)
    return changed.key_id


def _vault_root(vault: Path) -> Path:
    """Return the vault itself, where the folder of a run was named."""
    place = vault / "vault" if (vault / "vault").is_dir() else vault
    if not place.is_dir():
        raise VaultError(f"There is no vault {place}; name the folder of one.")
    return Path(os.path.realpath(place))


def _known_envelope(root: Path) -> Envelope:
    envelope = read_envelope(root)
    if envelope is None:
        raise VaultError(f"The vault {root} is not encrypted; there is nothing to do.")
    return envelope


@contextmanager
def _run_lock(root: Path) -> Iterator[None]:
    """Hold the lock of a run, if its vault has one."""
    handle = None
    try:
        if (root / _LOCK).is_file() and not (root / _LOCK).is_symlink():
            handle = os.open(root / _LOCK, os.O_RDWR)
            if not try_lock(handle):
                raise VaultError(f"A run is at work in the vault {root}; wait for it.")
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _files_and_links(root: Path) -> list[Path]:
    """Return all files and links below a folder."""
    found = []
    for folder, folders, names in os.walk(root):
        here = Path(folder)
        folders.sort()
        found += [here / name for name in sorted(names) if (here / name).exists()]
        found += [here / name for name in folders if (here / name).is_symlink()]
    return found


def _secret_places(root: Path) -> list[Path]:
    """Return the files that are encrypted in an encrypted vault, without what dead writers left."""
    for folder, _, _ in os.walk(root):
        sweep_drafts(Path(folder), "*")
    return [
        place
        for place in _files_and_links(root)
        if not place.is_symlink() and not _is_open_by_rule(root, place)
    ]


def _is_open_by_rule(root: Path, place: Path) -> bool:
    """Return whether a file is never encrypted.

    Ledgers are SQLite's to write, and hold prices and released answers; how far they had come is
    overwritten in place.
    """
    if place == root / ENVELOPE or place.name == _LOCK:
        return True
    if place.parent.name == "ledgers" and place.suffix == ".head":
        return True
    for ending in ("-journal", "-wal", "-shm"):
        if place.name.endswith(ending):
            return _is_open_by_rule(root, place.with_name(place.name.removesuffix(ending)))
    if not os.path.lexists(place) or not stat.S_ISREG(place.lstat().st_mode):
        return True
    with _opened_file(place) as file:
        return file.read(len(_SQLITE)) == _SQLITE


def _role_of(root: Path, place: Path) -> str:
    return os.path.relpath(place, root).replace(os.sep, "/")


@contextmanager
def _opened_file(place: Path) -> Iterator[IO[bytes]]:
    problem = ""
    try:
        handle = os.open(
            place, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        )
        with os.fdopen(handle, "rb") as file:
            yield file
    except OSError as error:
        problem = error.strerror or type(error).__name__
    if problem:
        raise VaultError(f"{place} cannot be read or written ({problem}); free some space.")


def _encrypt_file(root: Path, place: Path, data_key: bytes, envelope: Envelope) -> None:
    role = _role_of(root, place)

    def key_of(salt: bytes) -> FileKey:
        return FileKey(data_key, envelope.serial, role, salt)

    with _opened_file(place) as file:
        if is_sealed(file):
            opened(file, key_of, str(place))  # refuses what was put here from elsewhere
            return
        with draft_file(place) as (target, draft):
            sealer = FileSealer(target.write, key_of)
            while piece := file.read(_PIECE):
                sealer.add(piece)
            sealer.finish()
            put_in_place(target, draft, place)


def _decrypt_file(root: Path, place: Path, data_key: bytes, envelope: Envelope) -> None:
    role = _role_of(root, place)
    with _opened_file(place) as file:
        if not is_sealed(file):
            return
        content, _ = opened(
            file, lambda salt: FileKey(data_key, envelope.serial, role, salt), str(place)
        )
        with draft_file(place) as (target, draft):
            while piece := content.read(_PIECE):
                target.write(piece)
            put_in_place(target, draft, place)
