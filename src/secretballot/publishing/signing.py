"""Sign releases: a key of the curator's, and a signature beside the certificate."""

import os
from pathlib import Path
from typing import Any

from secretballot.drafts import draft_file, put_in_place, write_new
from secretballot.exceptions import CertificateError, DataError
from secretballot.report.certificate_models import CERTIFICATE_FILE
from secretballot.report.verification import (
    SIGNATURE_FILE,
    certificate_bytes,
    certificate_in,
    ed25519,
    fingerprint,
    key_file,
    key_or_none,
    named,
    serialization,
    verify_certificate,
)


def new_signing_key(path: str | os.PathLike[str]) -> str:
    """Make a key to sign releases with, and return the fingerprint of its public part.

    Parameters
    ----------
    path : path
        New file for the private key, PKCS 8 in PEM, for its owner alone (mode 0600); the public key
        goes beside it, with ``.pub`` at the end of its name.

    Returns
    -------
    str

    Raises
    ------
    DataError
        If a file is there already, or cannot be written.
    MissingExtraError
        If cryptography is not installed.
    """
    names = serialization()
    place = Path(path)
    public_place = place.with_name(f"{place.name}.pub")
    private = ed25519().Ed25519PrivateKey.generate()
    form = names.Encoding.PEM, names.PrivateFormat.PKCS8, names.NoEncryption()
    pem = private.private_bytes(*form)
    # a key that is there may have signed releases, and is never replaced
    for file in (place, public_place):
        if os.path.lexists(file):
            raise DataError(f"{named(file)} is there already; name a new file.")
    try:
        write_new(place, pem, 0o600)
        public_form = names.Encoding.PEM, names.PublicFormat.SubjectPublicKeyInfo
        write_new(public_place, private.public_key().public_bytes(*public_form), 0o644)
    except OSError as error:
        raise _unwritten(place, error) from None
    return fingerprint(private.public_key())


def sign_release(folder: str | os.PathLike[str], key: str | os.PathLike[str]) -> str:
    """Sign the certificate of a release folder, and return the fingerprint of the public key.

    A signature that is there is replaced. The same certificate and key give the same bytes.

    Parameters
    ----------
    folder : path
        Release folder; it must verify.
    key : path
        File with a private Ed25519 key in PEM, which nobody else may read; see `new_signing_key`,
        or ``openssl genpkey -algorithm ed25519``.

    Returns
    -------
    str
        SHA-256 of the public key (its DER form), in hexadecimal.

    Raises
    ------
    CertificateError
        If the release does not verify: nobody should vouch for it.
    DataError
        If the key cannot be read, or the signature not written.
    MissingExtraError
        If cryptography is not installed.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = sb.PATEClassifier(
    ...     n_teachers=20, n_queries=5, epsilon=20.0, delta=1e-3)
    >>> model = model.fit(X, X[:, 0] > 0, X_public=X[:40] + 0.1, classes=[False, True])
    >>> folder = Path(mkdtemp())
    >>> made = sb.write_release(folder / "release", model.released_, without=["report"])
    >>> mark = sb.new_signing_key(folder / "signing.pem")
    >>> sb.sign_release(folder / "release", folder / "signing.pem") == mark
    True
    >>> sb.verify_certificate(folder / "release", key=folder / "signing.pem.pub").ok
    True
    """
    place = Path(folder)
    # what is signed is what was verified, should the file be replaced meanwhile
    content = certificate_bytes(place / CERTIFICATE_FILE)
    verification = verify_certificate(certificate_in(content), place)
    if not verification.ok:
        failed = verification.failures[0]
        raise CertificateError(
            f"The release does not verify ({failed.name}: {failed.detail}) It was not signed."
        )
    private = read_private_key(Path(key))
    signature = private.sign(content)
    try:
        with draft_file(place.parent / SIGNATURE_FILE) as (file, draft):
            file.write(signature)
            draft.chmod(0o644)
            put_in_place(file, draft, place / SIGNATURE_FILE)
    except OSError as error:
        raise _unwritten(place / SIGNATURE_FILE, error) from None
    return fingerprint(private.public_key())


def _unwritten(place: Path, error: OSError) -> DataError:
    return DataError(f"{named(place)} cannot be written: {error.strerror or type(error).__name__}.")


def read_private_key(path: Path) -> Any:
    """Return the private Ed25519 key in a PEM file that its owner alone may read.

    Raises
    ------
    DataError
        If it cannot be read, others may read it, or it holds something else.
    """
    pem = key_file(path)
    key = key_or_none(serialization().load_pem_private_key, pem, None)
    if not isinstance(key, ed25519().Ed25519PrivateKey):
        raise DataError(
            f"The key file {named(path)} holds no private Ed25519 key in PEM, or one with a"
            " passphrase; make one with: secretballot sign --new-key FILE"
        )
    if path.stat().st_mode & 0o077:
        raise DataError(
            f"The key file {named(path)} may be read by others; make it its owner's alone with:"
            f" chmod 600 {path.name}"
        )
    return key
