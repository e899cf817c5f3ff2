"""Drafts: written beside their place, put on the disk and renamed into it.

Locked while the writer lives, removed once it is dead. What has its name is whole, also after a
power cut.
"""

import fcntl
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO

# a dot, the name to be, and what `tempfile` adds
_DRAFT = re.compile(r"\.(?P<name>.+)-[a-z0-9_]{8}")


@contextmanager
def draft_file(path: Path) -> Iterator[tuple[IO[bytes], Path]]:
    """Give a new file of mode 0600 beside `path`, and its place.

    It is gone at the end unless it was renamed.

    Raises
    ------
    OSError
        If it cannot be made.
    """
    while True:  # one that was swept before it was locked is made again
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
        _hold(handle)
        if os.fstat(handle).st_nlink:
            break
        os.close(handle)
    draft = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:  # closing it lets go of the lock, so rename first
            yield file, draft
    finally:
        draft.unlink(missing_ok=True)


def put_in_place(file: IO[bytes], draft: Path, path: Path, *, only_new: bool = False) -> None:
    """Write a draft through to the disk and give it its name, which is on the disk too afterwards.

    Parameters
    ----------
    file : binary file
        The open draft.
    draft, path : Path
        Its place and its name to be, in one folder or not.
    only_new : bool
        Whether a file that is at `path` already stays.

    Raises
    ------
    OSError
        If the disk fails.
    """
    file.flush()
    os.fsync(file.fileno())
    if only_new:
        # a link takes no name that is taken, as a replacement would
        with suppress(FileExistsError):
            os.link(draft, path)
    else:
        draft.replace(path)
    sync(path.parent)


def write_file(path: Path, content: bytes, *, mode: int = 0o644, only_new: bool = False) -> None:
    """Write a file, by default a public one, whole or not at all.

    Parameters
    ----------
    path : Path
    content : bytes
    mode : int
    only_new : bool
        Whether a file that is there already stays, and is not replaced.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    sweep_drafts(path.parent, path.name)
    with draft_file(path) as (file, draft):
        file.write(content)
        draft.chmod(mode)
        put_in_place(file, draft, path, only_new=only_new)


def write_new(path: Path, content: bytes, mode: int) -> None:
    """Write a file that is not there yet.

    Raises
    ------
    FileExistsError
        If there is one.
    OSError
        If it cannot be written.
    """
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    sync(path.parent)


def make_folder(folder: Path, mode: int = 0o777) -> None:
    """Make a folder, with those above it, where there is none.

    Raises
    ------
    OSError
        If it cannot be made.
    """
    places = (folder, *folder.parents)
    missing = [place for place in places if not place.exists()]
    folder.mkdir(mode, parents=True, exist_ok=True)
    for place in missing:
        sync(place.parent)


def sync_tree(folder: Path) -> None:
    """Write a folder through to the disk: its files, then the names in it, from below upwards.

    Raises
    ------
    OSError
        If the disk fails.
    """
    for place, _, names in os.walk(folder, topdown=False):
        for name in names:
            sync(Path(place, name))
        sync(Path(place))


def sync(place: Path) -> None:
    """Write a file, or the names in a folder, through to the disk.

    Raises
    ------
    OSError
        If the disk fails.
    """
    handle = os.open(place, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def draft_folder(parent: Path, name: str) -> Iterator[Path]:
    """Give a new folder of mode 0700 in `parent` for what will be called `name`.

    It is gone at the end.

    Raises
    ------
    OSError
        If it cannot be made.
    """
    while True:  # one that was swept before it was locked is made again
        with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=parent) as draft:
            try:
                handle = os.open(draft, os.O_RDONLY)
            except FileNotFoundError:
                continue
            try:
                _hold(handle)
                # its name is a random one: what has it now is this folder
                if os.path.isdir(draft):
                    yield Path(draft)
                    return
            finally:
                os.close(handle)


def _hold(handle: int) -> None:
    # a file system without locks has no sweepers either: they cannot lock
    with suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_SH)


def sweep_drafts(folder: Path, *names: str) -> None:
    """Remove the drafts that dead writers left in a folder, and nothing else.

    Whatever cannot be removed stays.

    Parameters
    ----------
    folder : Path
        Looked at itself, not below.
    *names : str
        What the drafts would have been called, with ``*`` for any characters.
    """
    if not folder.is_dir():
        return
    with suppress(OSError):
        for path in list(folder.iterdir()):
            found = _DRAFT.fullmatch(path.name)
            if found and any(fnmatchcase(found["name"], name) for name in names):
                _remove_if_dead(path)


def try_lock(handle: int) -> bool:
    """Return whether the open file is now locked by this handle; false where another one holds
    it."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _remove_if_dead(path: Path) -> None:
    """Remove a draft, a file or a folder, that nobody holds; never what a link points to."""
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            kind = os.fstat(handle).st_mode
            if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)) or not try_lock(handle):
                return
            if stat.S_ISDIR(kind):
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()
        finally:
            os.close(handle)
