"""How a certificate is read from a file: JSON of one meaning, within bounds.

Files are a stranger's: regular ones only, of bounded size, are read in bounded steps. A named pipe
would wait for ever, a device has no end, a link leads elsewhere: none is opened.
"""

import hashlib
import json
import math
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from secretballot._validation import LARGEST_INTEGER, shown
from secretballot.exceptions import CertificateError, DataError
from secretballot.report.certificate.models import FORMAT, VERSION, require

_MAX_BYTES = 10 * 1000 * 1000
_MAX_DEPTH = 32
_MAX_TEXT = 10_000  # characters of one string
_MAX_TABLE = 2**20  # of the weights of a table of abstentions
_MAX_KEY_SHOWN = 40  # characters of a field name in a message
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


def _refuse_odd(path: Path, about: os.stat_result) -> None:
    if not stat.S_ISREG(about.st_mode):
        raise DataError(
            f"{named(path)} is no regular file; links, pipes, devices and folders are not read."
        )


def _blocks_of(path: Path, limit: int) -> Iterator[bytes]:
    """Yield the content of a regular file of at most `limit` bytes, as long as it stated."""
    try:
        # Looked at before it is opened: to open a device can do something.
        _refuse_odd(path, os.lstat(path))
        with os.fdopen(os.open(path, _FLAGS), "rb") as file:
            # and once more when it is open: the name may stand for another file by now
            about = os.fstat(file.fileno())
            _refuse_odd(path, about)
            left = about.st_size
            if left > limit:
                raise DataError(
                    f"{named(path)} has {left} bytes; at most {limit // 10**6} MB are read."
                )
            while block := file.read(min(_BLOCK, left + 1)):
                left -= len(block)
                if left < 0:
                    break
                yield block
    except DataError:
        raise
    except (OSError, ValueError) as error:  # a name with a null byte is a ValueError
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise DataError(f"{named(path)} cannot be read: {reason}.") from None
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


def regular_digest(path: Path, limit: int) -> tuple[str, int]:
    """Return the SHA-256 of a regular file of at most `limit` bytes, and its size.

    Raises
    ------
    DataError
        As `read_regular`.
    """
    digest, size = hashlib.sha256(), 0
    for block in _blocks_of(path, limit):
        digest.update(block)
        size += len(block)
    return digest.hexdigest(), size


def read_certificate(path: str | Path) -> dict[str, Any]:
    """Return the JSON object in a certificate file.

    Raises
    ------
    CertificateError
        If the file cannot be read, is no regular file, is larger than 10 MB, or is no JSON object.
    """
    return certificate_in(certificate_bytes(path))


def certificate_bytes(path: str | Path) -> bytes:
    """Return the content of a certificate file.

    Raises
    ------
    CertificateError
        If it cannot be read, is no regular file, or is larger than 10 MB.
    """
    try:
        return read_regular(Path(path), _MAX_BYTES)
    except DataError as error:
        raise CertificateError(str(error)) from None


def certificate_in(content: bytes) -> dict[str, Any]:
    """Return the JSON object in the content of a certificate file.

    Raises
    ------
    CertificateError
        If it is larger than 10 MB, or is no JSON object.
    """
    require(len(content) <= _MAX_BYTES, "The certificate has more than 10 MB.")
    document = None
    with suppress(ValueError, RecursionError):
        document = json.loads(content.decode("utf-8"), object_pairs_hook=_without_repeated_names)
    if not isinstance(document, dict):
        raise CertificateError(
            "The file is not JSON, or no JSON object; give the certificate.json of a release."
        )
    return document


def _without_repeated_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse an object that names a field twice: two readers could see two certificates."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError
    return fields


def check_format(document: Mapping[str, Any]) -> str:
    """Return a sentence on format and version.

    Raises
    ------
    CertificateError
        If it is another format, another version, or not made of JSON values.
    """
    known = document.get("format") == FORMAT
    require(known, f"The format is not {FORMAT}; give the certificate.json of a release.")
    version = document.get("version")
    if type(version) is not int or version != VERSION:
        raise CertificateError(
            f"The certificate has version {shown(version)} and this program reads version"
            f" {VERSION}; use the version of secretballot that wrote it."
        )
    _refuse_other_than_json(dict(document), "certificate", 0)
    return f"{FORMAT}, version {version}."


def _refuse_other_than_json(value: object, place: str, depth: int) -> None:
    # first, so that no document exhausts the stack
    require(depth <= _MAX_DEPTH, f"The certificate is nested more than {_MAX_DEPTH} deep.")
    if isinstance(value, dict):
        for key, item in value.items():
            inner = f"{place}.{key[:_MAX_KEY_SHOWN]}" if depth < 3 else place
            _refuse_other_than_json(item, inner, depth + 1)
    elif isinstance(value, list):
        for item in value:
            _refuse_other_than_json(item, place, depth + 1)
    elif not _is_scalar(value, _MAX_TABLE if place.endswith(".weights") else _MAX_TEXT):
        raise CertificateError(
            f"{place} is {shown(value)}; numbers must be finite, integers at most 2^53, texts of at"
            f" most {_MAX_TEXT} characters, and nothing is read but what JSON has."
        )


def _is_scalar(value: object, longest: int) -> bool:
    """Return whether a value of JSON is within bounds, and is no object or list."""
    if isinstance(value, str):
        return len(value) <= longest
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or (isinstance(value, int) and abs(value) <= LARGEST_INTEGER)
