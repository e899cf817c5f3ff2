"""Where a user's machine remembers which installed sampler has passed its check, so that each is
checked once.

A mark is a convenience, not a proof: who can write the cache folder of a user can forge one, and
can change the sampler too. It names the version, the files of the package by size and time, the
interpreter and the machine; whatever changes brings the check back. Where no folder can be written,
every process checks anew.
"""

import hashlib
import json
import os
import platform
import stat
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

# never through a link, and a pipe keeps nobody waiting
_AS_IT_IS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
CHECK_VERSION = 1  # of the check itself: another number forgets every mark


def identity_of(version: str, package: Path) -> str:
    """Return what tells one installed sampler on one machine from another, as JSON.

    Parameters
    ----------
    version : str
        Version of the package.
    package : Path
        Its folder.

    Raises
    ------
    OSError
        If the folder cannot be listed.
    """
    files = sorted(path for path in (*package.iterdir(), *package.glob("lib/*")) if path.is_file())
    stamps = [
        (path.name, found.st_size, found.st_mtime_ns) for path in files if (found := path.stat())
    ]
    return json.dumps(
        {
            "check": CHECK_VERSION,
            "version": version,
            "package": str(package),
            "files": stamps,
            "python": [sys.implementation.name, platform.python_version(), sys.executable],
            "machine": [platform.node(), platform.machine(), platform.system(), platform.release()],
        }
    )


def has_passed(identity: str) -> bool:
    """Return whether a sampler of this identity has passed its check before, by this user's
    marks."""
    expected = identity.encode()
    try:
        handle = os.open(_mark_file(identity), os.O_RDONLY | _AS_IT_IS)
        try:
            return _is_own_file(os.fstat(handle)) and os.read(handle, len(expected) + 1) == expected
        finally:
            os.close(handle)
    except (OSError, RuntimeError):  # no home folder is a RuntimeError
        return False


def _is_own_file(found: os.stat_result) -> bool:
    """Return whether it is an ordinary file of this user.

    The folder may be one that others can write, too.
    """
    return stat.S_ISREG(found.st_mode) and (os.name == "nt" or found.st_uid == os.geteuid())


def remember(identity: str) -> None:
    """Leave a mark that a sampler of this identity has passed.

    Where none can be written, the next process checks.
    """
    with suppress(OSError, RuntimeError):
        mark = _mark_file(identity)
        mark.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=mark.parent, prefix=f".{mark.name}-")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(identity)
            Path(draft).replace(mark)
        except BaseException:
            Path(draft).unlink(missing_ok=True)
            raise


def _mark_file(identity: str) -> Path:
    return _cache_folder() / f"sampler-{hashlib.sha256(identity.encode()).hexdigest()[:32]}.json"


def _cache_folder() -> Path:
    """Return the user's folder for what can be made again, by the custom of the system."""
    if os.name == "nt" and os.environ.get("LOCALAPPDATA"):
        return Path(os.environ["LOCALAPPDATA"]) / "secretballot"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "secretballot"
    given = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(given) if os.path.isabs(given) else Path.home() / ".cache"
    return base / "secretballot"
