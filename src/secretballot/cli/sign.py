"""`secretballot sign`: who vouches for a release."""

from pathlib import Path
from typing import Annotated

from secretballot.cli.outcome import Answer, lines
from secretballot.cli.screens import argument, option
from secretballot.exceptions import ParameterError


def sign(
    release: Annotated[
        Path | None,
        argument("RELEASE", "A release folder, or the folder of a run."),
    ] = None,
    key: Annotated[
        Path | None,
        option("FILE", "Your private key, Ed25519 in PEM, readable by you alone."),
    ] = None,
    new_key: Annotated[
        Path | None,
        option("FILE", "Make a key, and its public part FILE.pub."),
    ] = None,
) -> Answer:
    """Sign a release, or make a key.

    The release must verify; certificate.sig is written beside its certificate. The passphrase of a
    key that has one is taken from SECRETBALLOT_KEY_PASSPHRASE; with it, a new key is encrypted.

    Example: secretballot sign secretballot-out --key signing.pem
    """
    from secretballot.publishing.signing import new_signing_key, sign_release

    if new_key is not None:
        if release is not None or key is not None:
            raise ParameterError("--new-key makes a key and signs nothing; give it alone.")
        mark = new_signing_key(new_key)
        found = {"private": str(new_key), "public": f"{new_key}.pub", "key": mark}
    elif release is not None and key is not None:
        # the folder of a run holds the release beside its vault
        folder = release / "release" if (release / "release").is_dir() else release
        found = {"release": str(folder), "key": sign_release(folder, key)}
    else:
        raise ParameterError("Name a release and the key to sign it with, or --new-key FILE.")
    more = {"private": ": keep it secret", "public": ": publish it"}
    said = (
        f"{'signed' if name == 'release' else name:<11}{value}{more.get(name, '')}"
        for name, value in found.items()
    )
    return lines(found, *said)
