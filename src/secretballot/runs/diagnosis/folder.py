"""Where diagnoses may be written: into the vault or a closed folder, and never into a release."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from secretballot._validation import check_path
from secretballot.ensemble.diagnostics.sealed_result import NOT_RELEASABLE
from secretballot.exceptions import DataError
from secretballot.vault import make_vault, write_secret

__all__ = ["check_private_place", "write_diagnoses"]

DOCUMENT = "diagnostics.json"
_PICTURES = (".svg", ".png")


def check_private_place(folder: str | Path) -> Path:
    """Return the path of a folder that diagnoses may be written to.

    Parameters
    ----------
    folder : path

    Raises
    ------
    DataError
        If it is a release, or lies in one, or holds something else than earlier diagnoses.
    """
    check_path("The folder", folder)
    target = Path(folder)
    whole = Path(os.path.realpath(folder))  # a link may lead into a release
    for place in (whole, *whole.parents):
        if _is_release(place):
            raise DataError(
                f"{str(folder)!r} lies in the release {str(place)!r}, which is to be published, and"
                f" diagnoses are {NOT_RELEASABLE}; leave them in the vault, or name a private"
                " folder."
            )
    free = not target.exists() or (target.is_dir() and not any(target.iterdir()))
    if not free and not (target / DOCUMENT).is_file():
        raise DataError(
            f"{str(folder)!r} exists and holds something else than diagnoses; name a new folder."
        )
    return target


def _is_release(folder: Path) -> bool:
    """Return whether a folder is a release, whole or in part, or the place of one."""
    if (folder / "certificate.json").is_file():
        return True
    if (folder / "README.txt").is_file() and (
        (folder / "labels.csv").is_file() or (folder / "report.html").is_file()
    ):
        return True
    return folder.name == "release" and (folder.parent / "vault").is_dir()


def write_diagnoses(
    folder: str | Path, document: Mapping[str, Any], pictures: Mapping[str, bytes]
) -> list[Path]:
    """Write diagnoses into a folder of mode 0700, as files of mode 0600; earlier ones go.

    Parameters
    ----------
    folder : path
    document : mapping
        JSON values, which say that they are not releasable.
    pictures : mapping of str to bytes
        Pictures by the name of their file, without "diagnostics-".

    Returns
    -------
    list of Path
        What was written.

    Raises
    ------
    DataError
        If the folder is none for diagnoses (`check_private_place`), or they cannot be written.
    """
    target = make_vault(check_private_place(folder))
    for path in target.glob("diagnostics-*"):
        if path.suffix in _PICTURES and not path.is_dir():
            path.unlink()
    drawn = {f"diagnostics-{name}": content for name, content in pictures.items()}
    files = {DOCUMENT: (json.dumps(document, indent=1, allow_nan=False) + "\n").encode(), **drawn}
    for name, content in files.items():
        write_secret(target / name, content)
    return [target / name for name in files]
