"""The folder of a release as a stranger gives it: the files of its certificate, nothing else."""

import os
from collections.abc import Mapping
from itertools import islice
from pathlib import Path

from secretballot.exceptions import CertificateError
from secretballot.report.certificate.methods import TABLES, WITHOUT_CLASSES
from secretballot.report.certificate.models import CERTIFICATE_FILE, Certificate
from secretballot.report.certificate.regular_files import named, regular_digest
from secretballot.report.certificate.released_rows import ANSWERS_FILE
from secretballot.report.certificate.signature import SIGNATURE_BYTES, SIGNATURE_FILE
from secretballot.report.wording import count_text

LABELS_FILE = "labels.csv"
README_FILE = "README.txt"  # of every release
_MAX_FILES = 1000
MAX_TOTAL = 2 * 10**9  # bytes of all files together: what is read and digested in a few seconds

# The files that a release may consist of, with how each begins where it has a beginning of its own.
BEGINNINGS: Mapping[str, bytes] = {
    LABELS_FILE: b"query,label,abstained",
    ANSWERS_FILE: b"query,",
    README_FILE: b"",
    "model-card.md": b"# Model card",
    "schema.json": b"{",
    "student.onnx": b"\x08",
    "report.html": b"<!doctype html>",
}


def values_file(method: str) -> str | None:
    """Return the name of the file with the released values, answers of a table or labels; None of
    sums alone, which are on the certificate."""
    if method in TABLES:
        return ANSWERS_FILE
    return None if method in WITHOUT_CLASSES else LABELS_FILE


def check_files(certificate: Certificate, folder: Path) -> str:
    """Return a sentence once the folder holds the listed files, unchanged, and nothing more.

    Raises
    ------
    CertificateError
        Naming the first file that is missing, not listed, or another one.
    DataError
        If a file cannot be read or is no regular file.
    """
    listed = certificate.files
    if listed is None:
        raise CertificateError(
            "The certificate does not list the files of its folder; write the release again (the"
            " stored answer costs nothing)."
        )
    # names and sizes before contents: a forger's folder may hold more than anybody can read
    values = values_file(certificate.public["method"])
    _check_names(set(listed), _names_in(folder), values)
    if not sum(about.bytes for about in listed.values()) <= MAX_TOTAL:
        raise CertificateError(
            f"The listed files have more than {MAX_TOTAL // 10**9} GB; so much is not read."
        )
    for name, about in listed.items():
        digest, size, beginning = regular_digest(folder / name, MAX_TOTAL)
        if (digest, size) != (about.sha256, about.bytes):
            raise CertificateError(
                f"{name} is not the file that was released: its size or SHA-256 is another."
            )
        if not beginning.lower().startswith(BEGINNINGS[name].lower()):
            raise CertificateError(f"{name} is no file of its kind: it does not begin like one.")
    # which the certificate cannot list, being what is signed: no other content fits in
    if os.path.lexists(folder / SIGNATURE_FILE):
        _, size, _ = regular_digest(folder / SIGNATURE_FILE, MAX_TOTAL)
        if size != SIGNATURE_BYTES:
            raise CertificateError(
                f"{SIGNATURE_FILE} has {size} bytes; a signature has {SIGNATURE_BYTES}."
            )
    # answers are on the certificate itself, and need no digest
    if values == LABELS_FILE and listed[LABELS_FILE].sha256 != certificate.released.labels_sha256:
        raise CertificateError(f"The certificate states two digests of {LABELS_FILE}.")
    return f"{count_text(len(listed), 'file')} and no other, each the one that was released."


def _names_in(folder: Path) -> set[str]:
    """Return the names of everything in a folder, hidden things and folders included."""
    try:
        with os.scandir(folder) as entries:
            found = {entry.name for entry in islice(entries, _MAX_FILES + 1)}
    except OSError as error:
        raise CertificateError(
            f"{named(folder)} cannot be read: {error.strerror or error}."
        ) from None
    if len(found) > _MAX_FILES:
        raise CertificateError(
            f"The folder holds more than {_MAX_FILES} files; a release has a few."
        )
    return found - {CERTIFICATE_FILE, SIGNATURE_FILE}


def _check_names(listed: set[str], found: set[str], values: str | None) -> None:
    allowed = BEGINNINGS.keys() - ({LABELS_FILE, ANSWERS_FILE} - {values})
    for names, problem in (
        (listed - allowed, "The certificate lists {}, which is no file of a release."),
        (set(filter(None, [values])) - listed, "The certificate lists no {}."),
        (found - listed, "The folder holds {}, which the certificate does not list; take it out."),
        (listed - found, "The folder lacks {}, which the certificate lists."),
    ):
        if names:
            raise CertificateError(problem.format(named(min(names))))
