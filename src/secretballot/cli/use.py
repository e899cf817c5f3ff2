"""`secretballot predict`, `evaluate`, `verify` and `sign`: what is done with a release."""

import sys
from pathlib import Path
from typing import Any

from secretballot._places import place_of
from secretballot._validation import check_positive
from secretballot.cli.outcome import DONE, NOT_VERIFIED, Answer, say
from secretballot.cli.texts import show
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.runs.spec import words_of
from secretballot_verify import CONFIRMED, WAIT, each_finding, exit_code
from secretballot_verify.games import MINUTES


def predict(
    student: Path,
    table: Path,
    *,
    watch: Any,
    out: Path | None = None,
    overwrite: bool = False,
    as_json: bool = False,
) -> Answer:
    """Predict the rows of a table.

    The schema of the release encodes raw cells; the order of columns does not matter, and further
    columns are not read. Cells that count as missing or as "other" are counted on standard error.

    Example: secretballot predict secretballot-out new.csv --out predictions.csv

    Parameters
    ----------
    student : STUDENT
        A release folder, the folder of a run, or a student.onnx.
    table : TABLE
        Rows with the columns of the public file, CSV or Parquet.
    out : FILE
        Where to write them, as CSV; by default to standard output.
    overwrite
        Replace a file that exists.
    """
    from secretballot.runs.use import run_predict

    if as_json and out is None:
        raise ParameterError(Parameter("out"), " is missing: --json prints no predictions.")
    rows = run_predict(student, table, out, overwrite=overwrite, reporter=watch)
    if out is not None:
        watch.note(f"{rows:,} rows, written to {out}.", private=False)
    return Answer({"rows": rows, "out": str(out)})


def evaluate(paths: list[str], *, watch: Any, target: str | None = None) -> Answer:
    """Measure models on a public labelled table.

    Every release is verified first. Several students are compared with the first one row by row,
    which distinguishes them better than their separate intervals do.

    TABLE must be public, since the figures are exact. Where the private file of a run is still in
    its place, TABLE is refused if it holds more rows of it than chance explains; a few are not
    noticed.

    Example: secretballot evaluate first second test.csv

    Parameters
    ----------
    paths : RELEASE... TABLE
        Release folders, or folders of runs; last a public labelled table.
    target : COL[,COL...]
        Column of TABLE to compare with; by default the release's.
    """
    from secretballot.runs.use import evaluate as evaluate_releases

    *releases, table = paths
    if not releases:
        raise ParameterError("Name a release, or several, and last a public labelled table.")
    watch.step("Evaluating")
    found, cautions = evaluate_releases(
        list(map(Path, releases)), place_of(table), words_of(target) if target else ()
    )
    letters = [chr(ord("A") + i % 26) * (1 + i // 26) for i in range(len(found))]
    document = {"releases": [one.to_json() for one in found], "cautions": cautions}
    return Answer(document, "evaluated", (found, letters, cautions))


def verify(
    certificate: Path,
    *,
    independent: bool = False,
    minutes: float = MINUTES,
    key: Path | None = None,
    as_json: bool = False,
) -> Answer:
    """Check a release; needs nothing private.

    Computes the price of the certificate's events again and compares it with the guarantee. Of a
    folder it also checks that it holds the released files and no others, and that every row of
    labels.csv was paid for. A digest shows damage and is no signature: take releases from people
    you trust, or check with --key that they signed them.

    The second program needs Python alone: python -m secretballot_verify.

    Example: secretballot verify secretballot-out --independent

    Parameters
    ----------
    certificate : RELEASE
        A release folder, the folder of a run, or a certificate.json alone.
    independent
        Let a second, separate program check the release too.
    minutes : N
        Minutes that one game of the second program may take.
    key : FILE
        Public key of the signer, Ed25519 in PEM.
    """
    # Imported here, so that help and usage errors of all verbs come at once.
    from secretballot.report.certificate.verify import verify_certificate
    from secretballot.runs.use import release_of

    folder = release_of(certificate)
    if certificate.is_dir():  # that of a run too, whose vault is no part of what is verified
        certificate = folder
    elif independent and certificate.name != "certificate.json":
        raise DataError(
            "The second program checks release folders; give the folder of the certificate."
        )
    verification = verify_certificate(certificate, key=key)
    trusted = _statements(certificate) if verification.ok else []
    if not as_json:
        show("checks", verification, trusted)
    second = []
    check_positive("minutes", minutes)
    for finding in each_finding(str(folder), minutes) if independent else ():
        # each as soon as it is found: a game takes minutes
        if not as_json and finding.verdict != CONFIRMED:
            say(f"{finding.verdict:<8}second: {finding.name:<13}{finding.detail}")
            sys.stdout.flush()
        if finding.verdict != WAIT:
            second.append(finding)
    code = DONE if verification.ok else NOT_VERIFIED
    if verification.ok and second:
        code = exit_code(second)
    document = {"certificate": str(certificate), **verification.to_json(), "trusted": trusted}
    if independent:
        document["independent"] = [finding._asdict() for finding in second]
    return Answer(document, "verified", (verification, code if second else None), code)


def _statements(certificate: Path) -> list[str]:
    """Return what the curator states and nobody can check, as a certificate lists it."""
    from secretballot.report.certificate.files import read_certificate
    from secretballot.report.certificate.models import CERTIFICATE_FILE

    path = certificate / CERTIFICATE_FILE if certificate.is_dir() else certificate
    return list(read_certificate(path)["assumptions"])


def sign(
    release: Path | None = None, *, key: Path | None = None, new_key: Path | None = None
) -> Answer:
    """Sign a release, or make a key.

    The release must verify; certificate.sig is written beside its certificate. The passphrase of a
    key that has one is taken from SECRETBALLOT_KEY_PASSPHRASE; with it, a new key is encrypted.

    Example: secretballot sign secretballot-out --key signing.pem

    Parameters
    ----------
    release : RELEASE
        A release folder, or the folder of a run.
    key : FILE
        Your private key, Ed25519 in PEM, readable by you alone.
    new_key : FILE
        Make a key, and its public part FILE.pub.
    """
    from secretballot.publishing.signing import new_signing_key, sign_release
    from secretballot.runs.use import release_of

    if new_key is not None:
        if release is not None or key is not None:
            raise ParameterError("--new-key makes a key and signs nothing; give it alone.")
        mark = new_signing_key(new_key)
        found = {"private": str(new_key), "public": f"{new_key}.pub", "key": mark}
    elif release is not None and key is not None:
        folder = release_of(release)
        found = {"release": str(folder), "key": sign_release(folder, key)}
    else:
        raise ParameterError("Name a release and the key to sign it with, or --new-key FILE.")
    return Answer(found, "signed", (found,))
