"""`secretballot verify`: does a certificate hold by its own words?"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from secretballot._validation import check_positive
from secretballot.cli.outcome import NOT_CONFIRMED, NOT_VERIFIED, print_json, say
from secretballot.cli.settings import AsJson
from secretballot.exceptions import DataError, ParameterError
from secretballot_verify import WAIT, Finding, each_finding, exit_code
from secretballot_verify.games import MINUTES

if TYPE_CHECKING:
    from secretballot.report.certificate.verify import Verification


def verify(
    certificate: Annotated[
        Path,
        typer.Argument(
            metavar="CERTIFICATE", help="A certificate.json, or a release folder with its labels."
        ),
    ],
    independent: Annotated[
        bool,
        typer.Option(
            "--independent",
            help="Let a second program, written by itself, check the release folder too.",
        ),
    ] = False,
    minutes: Annotated[
        float | None,
        typer.Option(
            "--minutes",
            metavar="N",
            help="How long one game of the second program may take, about; 2 if not given.",
        ),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(
            "--key",
            metavar="FILE",
            help="Public key of whoever must have signed the release, Ed25519 in PEM.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Price the events of a certificate again and compare it with what it promises.

    Given a release folder, or the certificate in one, it also checks that the folder holds the
    released files and no other, and that every row of labels.csv was paid for. The digest shows
    damage and is no signature: take certificates from those you trust, or check with --key that
    they have signed it.

    The second program needs nothing but Python: python -m secretballot_verify runs it alone.

    \b
    Example: secretballot verify secretballot-out/release
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
        _print_checks(verification)
    second = [] if folder is None else _second_opinion(folder, allowed, told=not as_json)
    if as_json:
        opinion = {"independent": [finding._asdict() for finding in second]} if independent else {}
        print_json({"certificate": str(certificate), **verification.to_json(), **opinion})
    else:
        say(_sentence_on(verification))
    if not verification.ok:
        raise typer.Exit(NOT_VERIFIED)
    if second:
        _end_as(exit_code(second), as_json)


def _sentence_on(verification: "Verification") -> str:
    if not verification.ok:
        return "The certificate does NOT verify."
    if verification.signature == "not checked":
        return "The certificate verifies; who signed it was not checked."
    return "The certificate verifies."


def _print_checks(verification: "Verification") -> None:
    for check in verification.checks:
        say(f"{'ok    ' if check.ok else 'FAILED'}  {check.name:<10} {check.detail}")
    for sentence in verification.unchecked:
        say(f"note               {sentence}")


def _folder_of(certificate: Path) -> Path:
    """Return the release folder of a certificate, for the second program."""
    if certificate.is_dir():
        return certificate
    if certificate.name != "certificate.json":
        raise DataError(
            "The second program checks release folders; give the folder of the certificate."
        )
    return certificate.parent


def _second_opinion(folder: Path, minutes: float, *, told: bool) -> list[Finding]:
    """Return what the second program finds in a release folder; told: each as soon as found."""
    found = []
    for finding in each_finding(str(folder), minutes):
        if told:
            line = f"{finding.verdict:<7} second: {finding.name:<12} {finding.detail}"
            say(line)
            sys.stdout.flush()
        if finding.verdict != WAIT:
            found.append(finding)
    return found


def _end_as(code: int, as_json: bool) -> None:
    """End with the second program's exit code, and say what it means where it is not 0."""
    if not as_json:
        words = {0: "confirms the release", NOT_CONFIRMED: "can neither confirm nor refuse it"}
        say(f"The second program {words.get(code, 'REFUSES it')}.")
    if code:
        raise typer.Exit(code)
