"""How a certificate is read from a file: JSON of one meaning, within bounds."""

import json
import math
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from secretballot._validation import LARGEST_INTEGER, shown
from secretballot.exceptions import CertificateError, DataError
from secretballot.report.certificate.models import FORMAT, VERSION
from secretballot.report.certificate.regular_files import read_regular

_MAX_BYTES = 10 * 1000 * 1000
_MAX_DEPTH = 32
_MAX_TEXT = 10_000  # characters of one string
_MAX_TABLE = 2**20  # of the weights of a table of abstentions
_MAX_KEY_SHOWN = 40  # characters of a field name in a message


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
    if len(content) > _MAX_BYTES:
        raise CertificateError(f"The certificate has more than {_MAX_BYTES // 10**6} MB.")
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
    if document.get("format") != FORMAT:
        raise CertificateError(
            f"The format is not {FORMAT}; give the certificate.json of a release."
        )
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
    if depth > _MAX_DEPTH:
        raise CertificateError(f"The certificate is nested more than {_MAX_DEPTH} deep.")
    match value:
        case dict():
            for key, item in value.items():
                inner = f"{place}.{key[:_MAX_KEY_SHOWN]}" if depth < 3 else place
                _refuse_other_than_json(item, inner, depth + 1)
            return
        case list():
            for item in value:
                _refuse_other_than_json(item, place, depth + 1)
            return
        case None | bool():
            fits = True
        case int():
            fits = abs(value) <= LARGEST_INTEGER
        case float():
            fits = math.isfinite(value)
        case str():
            fits = len(value) <= (_MAX_TABLE if place.endswith(".weights") else _MAX_TEXT)
        case _:
            fits = False
    if not fits:
        raise CertificateError(
            f"{place} is {shown(value)}; numbers must be finite, integers at most 2^53, texts of at"
            f" most {_MAX_TEXT} characters, and nothing is read but what JSON has."
        )
