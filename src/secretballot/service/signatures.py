"""Who vouches for what is downloaded: the service for its certificates, curators for releases."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from secretballot.exceptions import CertificateError
from secretballot.publishing.signing import public_pem, read_private_key
from secretballot.report.certificate.fields import certificate_bytes, certificate_in
from secretballot.report.certificate.models import CERTIFICATE_FILE
from secretballot.report.certificate.signature import (
    SIGNATURE_FILE,
    check_signature,
    fingerprint,
    read_public_key,
)


class Signatures:
    """The service's own key, if it has one, and the public keys that it publishes.

    Parameters
    ----------
    signing_key : Path or None
        Private key of the service, Ed25519 in PEM, which nobody else may read.
    public_keys : sequence of Path
        Further public keys: of curators who sign releases, and earlier ones of the service.

    Attributes
    ----------
    own : str or None
        Fingerprint of the service's key.
    pems : dict of str to bytes
        The public keys in PEM, by their fingerprints.

    Raises
    ------
    DataError, ParameterError
        If a file cannot be read, or holds no key.
    """

    def __init__(self, signing_key: Path | None, public_keys: tuple[Path, ...] = ()) -> None:
        self._private: Any = None if signing_key is None else read_private_key(signing_key)
        keys = [read_public_key(path) for path in public_keys]
        self.own: str | None = None
        if self._private is not None:
            keys.append(self._private.public_key())
            self.own = fingerprint(keys[-1])
        self._keys = {fingerprint(key): key for key in keys}
        self.pems = {mark: public_pem(key) for mark, key in self._keys.items()}

    def signature(self, text: bytes) -> bytes | None:
        """Return the signature of a certificate's bytes, None without a key."""
        if self._private is None:
            return None
        signature: bytes = self._private.sign(text)
        return signature

    def of_release(self, folder: Path) -> dict[str, Any]:
        """Return whether a release is signed, and by which of the published keys: "none",
        "checked", or "not checked" where the signature is by none of them.

        Raises
        ------
        DataError, CertificateError
            If the release is signed but its certificate cannot be read.
        """
        if not os.path.lexists(folder / SIGNATURE_FILE):
            return {"signature": "none", "key": None}
        certificate = certificate_in(certificate_bytes(folder / CERTIFICATE_FILE))
        for mark, key in self._keys.items():
            with suppress(CertificateError):
                check_signature(certificate, folder, key)
                return {"signature": "checked", "key": mark}
        return {"signature": "not checked", "key": None}
