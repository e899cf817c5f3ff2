"""Where a release goes: made beside its place, complete or not at all, then moved into it."""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from secretballot.drafts import (
    draft_folder,
    make_folder,
    sweep_drafts,
    sync,
    sync_tree,
    try_lock,
)
from secretballot.exceptions import CertificateError, DataError
from secretballot.report.certificate.build import check_digest
from secretballot.report.certificate.fields import read_certificate, regular_digest
from secretballot.report.certificate.models import CERTIFICATE_FILE, LISTED_FILES
from secretballot.report.certificate.release_files import BEGINNINGS, MAX_TOTAL

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


def damaged_file(target: Path) -> str:
    """Return the name of a file of a release that is missing or not the one that was released.

    Returns
    -------
    str
        Empty where every file is the one that the certificate lists.

    Raises
    ------
    DataError
        If a file is damaged, and the place is no folder or holds something else than a release:
        nobody may remove that.
    """
    name = _first_damaged(target)
    if not name:
        return ""
    if target.is_symlink() or not target.is_dir():
        raise DataError(
            f"{str(target)!r} is no folder, and holds no whole release; move it elsewhere, and"
            " repeat the command. Nothing was spent."
        )
    for found in sorted(target.iterdir()):
        ours = found.name == CERTIFICATE_FILE or found.name in BEGINNINGS
        if not ours or found.is_symlink() or not found.is_file():
            raise DataError(
                f"The release {str(target)!r} is damaged ({name}), and {found.name!r} in it is not"
                " of this run; move that elsewhere, and repeat the command. Nothing was spent."
            )
    return name


def _first_damaged(target: Path) -> str:
    certificate = _whole_certificate(target)
    if certificate is None:
        return CERTIFICATE_FILE
    for name, about in certificate.get("files", {}).items():
        try:
            digest, size, _ = regular_digest(target / name, MAX_TOTAL)
        except DataError:
            return str(name)
        if (digest, size) != (about["sha256"], about["bytes"]):
            return str(name)
    return ""


def _whole_certificate(target: Path) -> dict[str, Any] | None:
    """Return the certificate of a release, None where it is not as it was written."""
    try:
        certificate = read_certificate(target / CERTIFICATE_FILE)
        check_digest(certificate)
        if "files" in certificate:
            LISTED_FILES.validate_python(certificate["files"])
    except (CertificateError, ValidationError):
        return None
    return certificate


def released_certificate(certificate: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a certificate stated before there was a folder, without its digest."""
    written_later = ("files", "about", "digest")
    return {key: value for key, value in certificate.items() if key not in written_later}


def remove_damaged(target: Path, certificate: Mapping[str, Any]) -> None:
    """Remove a damaged release, since the same one was made again.

    Parameters
    ----------
    target : Path
        Where `damaged_file` found one.
    certificate : mapping
        Of the one that was made.

    Raises
    ------
    DataError
        If the damaged one has a whole certificate, which is of something else; it stays.
    OSError
        If it cannot be removed.
    """
    found = _whole_certificate(target)
    if found is not None and released_certificate(found) != released_certificate(certificate):
        raise DataError(
            f"The damaged release {str(target)!r} is of another run; move it elsewhere, and repeat"
            " the command. Nothing was spent."
        )
    shutil.rmtree(target)


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
