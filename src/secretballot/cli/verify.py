"""`secretballot verify`: does a certificate hold by its own words?"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from secretballot._validation import check_positive
from secretballot.cli.outcome import DONE, NOT_CONFIRMED, NOT_VERIFIED, Answer, lines, say
from secretballot.cli.screens import argument, option
from secretballot.exceptions import DataError, ParameterError
from secretballot_verify import CONFIRMED, WAIT, Finding, each_finding, exit_code
from secretballot_verify.games import MINUTES

if TYPE_CHECKING:
    from secretballot.report.certificate.verify import Verification

#: Checks that are shown of a release that verifies, by the names that rows give them.
_ROWS = {"files": "files", "price": "price", "budget": "account"}


def verify(
    certificate: Annotated[
        Path,
        argument("RELEASE", "A release folder, the folder of a run, or a certificate.json alone."),
    ],
    independent: Annotated[
        bool,
        typer.Option("--independent", help="Let a second, separate program check the release too."),
    ] = False,
    minutes: Annotated[
        float | None,
        option("N", "Minutes that one game of the second program may take.  [default: 2]"),
    ] = None,
    key: Annotated[Path | None, option("FILE", "Public key of the signer, Ed25519 in PEM.")] = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="Print every check.")] = False,
    as_json: bool = False,
) -> Answer:
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
    trusted = _statements(certificate) if verification.ok else []
    folder = _folder_of(certificate) if independent else None
    if not as_json:
        _print_checks(verification, trusted, verbose=verbose)
    second = []
    for finding in () if folder is None else each_finding(str(folder), allowed):
        # each as soon as it is found: a game takes minutes
        if not as_json and (verbose or finding.verdict != CONFIRMED):
            say(f"{finding.verdict:<8}second: {finding.name:<13}{finding.detail}")
            sys.stdout.flush()
        if finding.verdict != WAIT:
            second.append(finding)
    unknown = verification.signature == "not checked"
    end = "verifies; who signed it was not checked" if unknown else "verifies"
    said = [f"The certificate {end if verification.ok else 'does NOT verify'}."]
    code = DONE if verification.ok else NOT_VERIFIED
    if verification.ok and second:
        code = exit_code(second)
        ends = {DONE: "confirms the release", NOT_CONFIRMED: "can neither confirm nor refuse it"}
        said.append(f"The second program {ends.get(code, 'REFUSES it')}.")
    document = {"certificate": str(certificate), **verification.to_json(), "trusted": trusted}
    return lines(document | _opinion(second, independent=independent), *said, code=code)


def _opinion(second: list[Finding], *, independent: bool) -> dict[str, Any]:
    return {"independent": [finding._asdict() for finding in second]} if independent else {}


def _statements(certificate: Path) -> list[str]:
    """Return what the curator states and nobody can check, as a certificate lists it."""
    from secretballot.report.certificate.fields import read_certificate
    from secretballot.report.certificate.models import CERTIFICATE_FILE

    path = certificate / CERTIFICATE_FILE if certificate.is_dir() else certificate
    return list(read_certificate(path)["assumptions"])


def _print_checks(verification: "Verification", trusted: list[str], *, verbose: bool) -> None:
    """Print what failed and what a reader wants to know; all checks where they are asked for."""
    for check in verification.checks:
        if verbose or not check.ok:
            say(f"{'ok' if check.ok else 'FAILED':<8}{check.name:<11}{check.detail}")
        elif check.name in _ROWS:
            say(f"{_ROWS[check.name]:<11}{check.detail}")
    for sentence in verification.unchecked:
        say(f"{'note':<11}{sentence}")
    if verification.ok and not verbose:
        say(f"{'signature':<11}{verification.signature}")
        say(f"{'trusted':<11}{len(trusted)} statements of the curator (--json lists them)")


def _folder_of(certificate: Path) -> Path:
    """Return the release folder of a certificate, for the second program."""
    if certificate.is_dir():
        return certificate
    if certificate.name != "certificate.json":
        raise DataError(
            "The second program checks release folders; give the folder of the certificate."
        )
    return certificate.parent
