"""`secretballot verify`: does a certificate hold by its own words?"""

from pathlib import Path
from typing import Annotated

import typer

from secretballot.cli.options import AsJson
from secretballot.cli.outcome import NOT_VERIFIED, print_json
from secretballot.exceptions import DataError

__all__ = ["verify"]


def verify(
    certificate: Annotated[
        Path, typer.Argument(metavar="CERTIFICATE", help="A certificate.json, or a release folder with its labels.")
    ],
    as_json: AsJson = False,
) -> None:
    """Price the events of a certificate again and compare it with what it promises.

    Given a release folder, it also checks that labels.csv is the file that was released. The digest shows damage and
    is no signature: take certificates from those you trust.

    \b
    Example: secretballot verify secretballot-out/release
    """
    from secretballot.report.verification import verify_certificate

    if not certificate.exists():
        raise DataError(f"There is no {str(certificate)!r}; give a certificate.json or a release folder.")
    if (certificate / "release").is_dir():
        certificate = certificate / "release"
    verification = verify_certificate(certificate)
    if as_json:
        print_json({"certificate": str(certificate), **verification.to_json()})
    else:
        for check in verification.checks:
            print(f"{'ok    ' if check.ok else 'FAILED'}  {check.name:<10} {check.detail}")
        print("The certificate verifies." if verification.ok else "The certificate does NOT verify.")
    if not verification.ok:
        raise typer.Exit(NOT_VERIFIED)
