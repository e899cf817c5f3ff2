"""`secretballot sign`: who vouches for a release."""

from pathlib import Path
from typing import Annotated

import typer

from secretballot.cli.outcome import print_json, say
from secretballot.cli.settings import AsJson
from secretballot.exceptions import ParameterError


def sign(
    release: Annotated[
        Path | None,
        typer.Argument(metavar="RELEASE", help="A release folder, or the folder of a run."),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(
            "--key", metavar="FILE", help="Your private key, Ed25519 in PEM, readable by you alone."
        ),
    ] = None,
    new_key: Annotated[
        Path | None,
        typer.Option("--new-key", metavar="FILE", help="Make a key, and its public part FILE.pub."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Sign the certificate of a release, which must verify, or make a key.

    Writes certificate.sig beside the certificate. The passphrase of a key that has one is taken
    from SECRETBALLOT_KEY_PASSPHRASE; with it, a new key is encrypted.

    \b
    Example: secretballot sign secretballot-out --key signing.pem
    New key: secretballot sign --new-key signing.pem
    """
    from secretballot.publishing.signing import new_signing_key, sign_release

    if new_key is not None:
        if release is not None or key is not None:
            raise ParameterError("--new-key makes a key and signs nothing; give it alone.")
        mark = new_signing_key(new_key)
        if as_json:
            print_json({"private": str(new_key), "public": f"{new_key}.pub", "key": mark})
        else:
            say(f"private    {new_key}: keep it secret")
            say(f"public     {new_key}.pub: publish it")
            say(f"key        {mark}")
        return
    if release is None or key is None:
        raise ParameterError("Name a release and the key to sign it with, or --new-key FILE.")
    # the folder of a run holds the release beside its vault
    folder = release / "release" if (release / "release").is_dir() else release
    mark = sign_release(folder, key)
    if as_json:
        print_json({"release": str(folder), "key": mark})
    else:
        say(f"signed     {folder}")
        say(f"key        {mark}")
