"""Who vouches for a release: an Ed25519 signature of its certificate, in a file beside it.

The certificate lists the digests of all other files, so a signature of its bytes is one of the
release. The file is the bare signature of RFC 8032, 64 bytes, which other programs check too:
``openssl pkeyutl -verify -pubin -inkey KEY -rawin -in certificate.json -sigfile certificate.sig``.
"""

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from secretballot.exceptions import CertificateError, Parameter, ParameterError
from secretballot.report.certificate.fields import (
    certificate_bytes,
    certificate_in,
    named,
    read_regular,
)
from secretballot.report.certificate.models import CERTIFICATE_FILE
from secretballot.report.extras import require_extra

SIGNATURE_FILE, SIGNATURE_BYTES = "certificate.sig", 64
_LONGEST_KEY = 10_000  # bytes of a key file


def check_signature(document: Mapping[str, Any], folder: Path | None, public: Any) -> str:
    """Return a sentence once the certificate in a folder is signed with a key.

    Parameters
    ----------
    document : mapping
        What was read of the certificate.
    folder : Path or None
        Where it lies, if that is known.
    public : Ed25519PublicKey
        As `read_public_key` returns it.

    Raises
    ------
    CertificateError
        If it is not signed, or with another key.
    DataError
        If a file cannot be read.
    """
    if folder is None or not os.path.lexists(folder / SIGNATURE_FILE):
        raise CertificateError(
            f"There is no {SIGNATURE_FILE} beside {CERTIFICATE_FILE}: nobody has signed this"
            " release, or another file was given."
        )
    signature = read_regular(folder / SIGNATURE_FILE, _LONGEST_KEY)
    text = certificate_bytes(folder / CERTIFICATE_FILE)
    invalid = require_extra("cryptography.exceptions", "sign").InvalidSignature
    mark, held = fingerprint(public), True
    try:
        public.verify(signature, text)
    except invalid:
        held = False
    # what was signed must be what was checked, should the file have changed meanwhile
    if not held or _text_of(certificate_in(text)) != _text_of(document):
        raise CertificateError(f"The signature is none of this certificate by the key {mark}.")
    return f"Signed with the key {mark}."


def _text_of(document: Mapping[str, Any]) -> str:
    return json.dumps(dict(document), sort_keys=True)  # in which 1, 1.0 and true differ


def fingerprint(public: Any) -> str:
    """Return the SHA-256 of a public key in DER, in hexadecimal."""
    names = serialization()
    form = names.PublicFormat.SubjectPublicKeyInfo
    der: bytes = public.public_bytes(names.Encoding.DER, form)
    return hashlib.sha256(der).hexdigest()


def key_file(path: Path) -> bytes:
    """Return the content of a key file, to which a link may lead.

    Raises
    ------
    DataError
        If it cannot be read.
    """
    return read_regular(path.resolve(), _LONGEST_KEY)


def read_public_key(path: Path) -> Any:
    """Return the public Ed25519 key in a PEM file.

    Raises
    ------
    DataError
        If there is no such file.
    ParameterError
        If it holds something else.
    MissingExtraError
        If cryptography is not installed.
    """
    key = key_or_none(serialization().load_pem_public_key, key_file(path))
    if not isinstance(key, ed25519().Ed25519PublicKey):
        raise ParameterError(
            Parameter("key"),
            f" is the file {named(path)}, which holds no public Ed25519 key in PEM; give the .pub"
            " file of whoever signed.",
        )
    return key


def key_or_none(load: Callable[..., Any], *given: Any) -> Any:
    """Return the key that a file holds, None if it holds none: errors of the other package may
    quote the file."""
    try:
        return load(*given)
    except (TypeError, ValueError):
        return None


def serialization() -> Any:
    """Return the module that reads and writes keys."""
    return require_extra("cryptography.hazmat.primitives.serialization", "sign")


def ed25519() -> Any:
    """Return the module of this kind of signature."""
    return require_extra("cryptography.hazmat.primitives.asymmetric.ed25519", "sign")
