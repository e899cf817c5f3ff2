"""`secretballot sign` and `secretballot signing-key`: who vouches for a release."""

from pathlib import Path
from typing import Annotated

import typer

from secretballot.cli.options import AsJson
from secretballot.cli.outcome import print_json, say


def sign(
    release: Annotated[
        Path, typer.Argument(metavar="RELEASE", help="A release folder, or the folder of a run.")
    ],
    key: Annotated[
        Path,
        typer.Option(
            "--key", metavar="FILE", help="Your private key, Ed25519 in PEM, readable by you alone."
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Sign the certificate of a release, which must verify, and write certificate.sig beside it.

    The passphrase of a key that has one is taken from SECRETBALLOT_KEY_PASSPHRASE.

    \b
    Example: secretballot sign secretballot-out --key signing.pem
    """
    from secretballot.publishing.signing import sign_release

    # the folder of a run holds the release beside its vault
    folder = release / "release" if (release / "release").is_dir() else release
    mark = sign_release(folder, key)
    if as_json:
        print_json({"release": str(folder), "key": mark})
    else:
        say(f"signed       {folder}")
        say(f"key          {mark}")


def signing_key(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="New file for the private key; keep it secret.")
    ],
    as_json: AsJson = False,
) -> None:
    """Make a key to sign releases with, and its public part beside it, in FILE.pub.

    With SECRETBALLOT_KEY_PASSPHRASE set, the private key is encrypted.

    \b
    Example: secretballot signing-key signing.pem
    """
    from secretballot.publishing.signing import new_signing_key

    mark = new_signing_key(file)
    if as_json:
        print_json({"private": str(file), "public": f"{file}.pub", "key": mark})
    else:
        say(f"private      {file}: keep it secret")
        say(f"public       {file}.pub: publish it")
        say(f"key          {mark}")
