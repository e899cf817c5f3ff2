"""The vault: the secret folder of a run. Mode 0700, files 0600, written whole or not at all."""

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from secretballot._validation import check_path
from secretballot.exceptions import DataError

__all__ = ["keep_secret", "make_vault", "read_secret", "write_secret"]


def make_vault(path: str | Path) -> Path:
    """Return the folder at `path`, made with mode 0700 if it is not there, closed to others if it is.

    Raises
    ------
    ParameterError
        If it is no path.
    DataError
        If it cannot be made, or is not a folder.
    """
    check_path("The vault", path)
    folder = Path(path)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
    except OSError as error:
        raise DataError(f"The vault {folder} cannot be used ({error.strerror}); name a folder of your own.") from None
    return folder


def read_secret(path: Path) -> bytes | None:
    """Return the bytes of a file in the vault, None if there is none.

    Raises
    ------
    DataError
        If it cannot be read.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}).") from None


def write_secret(path: Path, content: bytes) -> None:
    """Write a file of the vault with mode 0600: to a temporary name, to the disk, then under its own name.

    Raises
    ------
    DataError
        If it cannot be written; a file that was there before is unchanged.
    """
    _write(path, content, lambda draft: draft.replace(path))


def keep_secret(path: Path, content: bytes) -> bytes:
    """Write a file of the vault unless there is one, and return what is kept there: the first writer's content.

    Raises
    ------
    DataError
        If it cannot be written or read.
    """

    def link(draft: Path) -> None:
        with suppress(FileExistsError):
            os.link(draft, path)
        draft.unlink()

    _write(path, content, link)
    kept = read_secret(path)
    assert kept is not None  # just linked, or there before
    return kept


def _write(path: Path, content: bytes, settle: Callable[[Path], object]) -> None:
    make_vault(path.parent)
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")  # mkstemp opens with mode 0600
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            settle(Path(temporary))
            _sync_folder(path.parent)  # else a power cut could bring back what was there before
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise DataError(
            f"{path} cannot be written ({error.strerror}); free some space or name another folder."
        ) from None


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":  # Windows cannot open a folder, and keeps names durable itself
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
