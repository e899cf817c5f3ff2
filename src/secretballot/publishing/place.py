"""Where a release goes: made beside its place, complete or not at all, then moved into it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path

from secretballot.drafts import (
    draft_folder,
    make_folder,
    sweep_drafts,
    sync,
    sync_tree,
    try_lock,
)
from secretballot.exceptions import DataError
from secretballot.report.certificate.models import CERTIFICATE_FILE

# in a draft: the release that is being made, and an earlier one that stepped aside
_NEW, _OLD = "new", "old"


def check_place(target: Path, *, overwrite: bool) -> None:
    """Refuse a place with something else than a release, or a release that must not be replaced.

    Raises
    ------
    DataError
        If so.
    """
    if not os.path.lexists(target):
        return
    if not overwrite:
        raise DataError(
            f"{str(target)!r} exists; name another folder, or allow it to be overwritten."
        )
    if target.is_symlink() or not target.is_dir():
        raise DataError(f"{str(target)!r} is no folder; name another one.")
    if any(target.iterdir()) and not (target / CERTIFICATE_FILE).is_file():
        raise DataError(
            f"{str(target)!r} holds something else than a release; name another folder."
        )


@contextmanager
def drafted(target: Path) -> Iterator[Path]:
    """Give an empty folder in a draft beside `target`; the draft is gone at the end.

    Raises
    ------
    OSError
        If it cannot be made.
    """
    make_folder(target.parent)
    with draft_folder(target.parent, target.name) as draft:
        (draft / _NEW).mkdir()
        yield draft / _NEW


def move_into_place(new: Path, target: Path) -> None:
    """Put a finished draft in its place, an earlier release aside; on failure it comes back.

    At the end all of it is on the disk.

    Raises
    ------
    OSError
        If a folder cannot be moved; then the earlier release is in its place again.
    """
    # a folder cannot be replaced by a rename, so there is a moment without a release: whoever is
    # killed then leaves the earlier one in the draft, and `settle_place` brings it back
    old = new.parent / _OLD
    sync_tree(new)
    if target.exists():
        target.rename(old)
    try:
        new.rename(target)
    except OSError:
        if old.exists():
            old.rename(target)
        raise
    sync(target.parent)


def settle_place(target: Path) -> None:
    """Remove the drafts of killed runs beside `target`; bring back a release one had set aside."""
    if not target.parent.is_dir():
        return
    # before drafts are swept, or the only copy of an earlier release would go with them
    if not os.path.lexists(target):
        for old in target.parent.glob(f".{escape(target.name)}-{8 * '?'}/{_OLD}"):
            _bring_back(old, target)
    sweep_drafts(target.parent, escape(target.name))


def _bring_back(old: Path, target: Path) -> None:
    """Move a release that stepped aside back to its place, unless its draft is in use."""
    with suppress(OSError):
        handle = os.open(old.parent, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        try:
            if try_lock(handle):
                old.rename(target)
        finally:
            os.close(handle)
