"""`secretballot verify`: does a certificate hold by its own words?"""

import sys
from pathlib import Path
from typing import Annotated

import typer

from secretballot._validation import check_positive
from secretballot.cli.outcome import NOT_CONFIRMED, NOT_VERIFIED, print_json, say
from secretballot.cli.settings import AsJson
from secretballot.exceptions import DataError, ParameterError
from secretballot_verify import WAIT, Finding, each_finding, exit_code
from secretballot_verify.games import MINUTES


def verify(
    certificate: Annotated[
        Path,
        typer.Argument(
            metavar="RELEASE",
            help="A release folder, the folder of a run, or a certificate.json alone.",
        ),
    ],
    independent: Annotated[
        bool,
        typer.Option("--independent", help="Let a second, separate program check the release too."),
    ] = False,
    minutes: Annotated[
        float | None,
        typer.Option(
            metavar="N",
            help="Minutes that one game of the second program may take.  [default: 2]",
        ),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Public key of the signer, Ed25519 in PEM."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check a release; needs nothing private.

    Computes the price of the certificate's events again and compares it with the guarantee. Of a
    folder it also checks that it holds the released files and no others, and that every row of
    labels.csv was paid for. A digest shows damage and is no signature: take releases from people
    you trust, or check with --key that they signed them.

    The second program needs Python alone: python -m secretballot_verify.

    Example: secretballot verify secretballot-out --independent
    """
    # Imported here, so that help and usage errors of all verbs come at once.
    from secretballot.report.certificate.verify import verify_certificate

    if not certificate.exists():
        raise DataError(
            f"There is no {str(certificate)!r}; give a certificate.json or a release folder."
        )
    if minutes is not None and not independent:
        raise ParameterError("--minutes is for the second program; give --independent with it.")
    allowed = MINUTES if minutes is None else check_positive("minutes", minutes)
    # the folder of a run, whose vault is no part of what is verified
    if (certificate / "release").is_dir():
        certificate = certificate / "release"
    verification = verify_certificate(certificate, key=key)
    folder = _folder_of(certificate) if independent else None
    if not as_json:
        for check in verification.checks:
            say(f"{'ok' if check.ok else 'FAILED':<8}{check.name:<11}{check.detail}")
        for sentence in verification.unchecked:
            say(f"{'note':<19}{sentence}")
    second = [] if folder is None else _second_opinion(folder, allowed, printed=not as_json)
    if as_json:
        opinion = {"independent": [finding._asdict() for finding in second]} if independent else {}
        print_json({"certificate": str(certificate), **verification.to_json(), **opinion})
    else:
        unknown = verification.signature == "not checked"
        end = "verifies; who signed it was not checked" if unknown else "verifies"
        say(f"The certificate {end if verification.ok else 'does NOT verify'}.")
    if not verification.ok:
        raise typer.Exit(NOT_VERIFIED)
    if second:
        code = exit_code(second)
        ends = {0: "confirms the release", NOT_CONFIRMED: "can neither confirm nor refuse it"}
        if not as_json:
            say(f"The second program {ends.get(code, 'REFUSES it')}.")
        raise typer.Exit(code)


def _folder_of(certificate: Path) -> Path:
    """Return the release folder of a certificate, for the second program."""
    if certificate.is_dir():
        return certificate
    if certificate.name != "certificate.json":
        raise DataError(
            "The second program checks release folders; give the folder of the certificate."
        )
    return certificate.parent


def _second_opinion(folder: Path, minutes: float, *, printed: bool) -> list[Finding]:
    """Return what the second program finds in a release folder; printed: each as soon as found."""
    found = []
    for finding in each_finding(str(folder), minutes):
        if printed:
            say(f"{finding.verdict:<8}second: {finding.name:<13}{finding.detail}")
            sys.stdout.flush()
        if finding.verdict != WAIT:
            found.append(finding)
    return found
