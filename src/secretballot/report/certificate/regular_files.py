"""Files of a stranger: regular ones only, of bounded size, read in bounded steps.

A named pipe would wait for ever, a device has no end, a link leads elsewhere: none of them is
opened for reading.
"""

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from secretballot.exceptions import DataError

_BLOCK = 1 << 20  # bytes
_LONGEST_NAME = 120  # characters of a path in a message

# Never follow a link, never wait for the other end of a pipe; names that a system lacks are no
# flags there.
_FLAGS = os.O_RDONLY | sum(
    getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY")
)


def named(path: str | Path) -> str:
    """Return how a message names a path: its end where it is long, without control characters."""
    text = repr(str(path))[1:-1]
    return f"'{text if len(text) <= _LONGEST_NAME else '...' + text[-_LONGEST_NAME:]}'"


@contextmanager
def _opened_regular(path: Path, limit: int) -> Iterator[tuple[IO[bytes], int]]:
    """Give an open regular file and its size.

    Raises
    ------
    DataError
        If it cannot be opened, is no regular file, or is larger than `limit` bytes.
    """
    try:
        # Looked at before it is opened: to open a device can do something.
        _refuse_odd(path, os.lstat(path))
        with os.fdopen(os.open(path, _FLAGS), "rb") as file:
            # and once more when it is open: the name may stand for another file by now
            about = os.fstat(file.fileno())
            _refuse_odd(path, about)
            if about.st_size > limit:
                raise DataError(
                    f"{named(path)} has {about.st_size} bytes; at most {limit // 10**6} MB are"
                    " read."
                )
            yield file, about.st_size
    except DataError:
        raise
    except (OSError, ValueError) as error:  # a name with a null byte is a ValueError
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise DataError(f"{named(path)} cannot be read: {reason}.") from None


def _refuse_odd(path: Path, about: os.stat_result) -> None:
    if not stat.S_ISREG(about.st_mode):
        raise DataError(
            f"{named(path)} is no regular file; links, pipes, devices and folders are not read."
        )


def _blocks_of(path: Path, limit: int) -> Iterator[bytes]:
    """Yield the content of a regular file, which must be as long as it stated."""
    with _opened_regular(path, limit) as (file, size):
        left = size
        while block := file.read(min(_BLOCK, left + 1)):
            left -= len(block)
            if left < 0:
                break
            yield block
        if left:
            raise DataError(
                f"{named(path)} changed while it was read; verify a folder that nobody writes to."
            )


def read_regular(path: Path, limit: int) -> bytes:
    """Return the content of a regular file of at most `limit` bytes.

    Raises
    ------
    DataError
        If it cannot be read, is no regular file, or is larger.
    """
    return b"".join(_blocks_of(path, limit))


def regular_digest(path: Path, limit: int) -> tuple[str, int, bytes]:
    """Return the SHA-256 of a regular file of at most `limit` bytes, its size and its first bytes.

    Raises
    ------
    DataError
        As `read_regular`.
    """
    digest, size, start = hashlib.sha256(), 0, b""
    for block in _blocks_of(path, limit):
        digest.update(block)
        size += len(block)
        start = start or block[:64]
    return digest.hexdigest(), size, start
