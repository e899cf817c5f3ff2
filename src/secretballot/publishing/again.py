"""Make a release again from its published files and public inputs, and compare every byte."""

import json
import tempfile
from pathlib import Path
from typing import Any

from secretballot.exceptions import CertificateError
from secretballot.publishing.job import AskedInRounds, ReleaseJob, StudentSource
from secretballot.publishing.place import released_certificate
from secretballot.publishing.release import publish
from secretballot.released import ReleasedLabels, ReleasedSums, ReleasedTable
from secretballot.report.certificate.build import certificate_digest
from secretballot.report.certificate.fields import read_certificate
from secretballot.report.certificate.labels_file import read_labels
from secretballot.report.certificate.methods import WITHOUT_CLASSES, has_table
from secretballot.report.certificate.models import CERTIFICATE_FILE
from secretballot.report.certificate.regular_files import read_regular
from secretballot.report.certificate.verify import verify_certificate

_MAX_BYTES = 250 * 10**6  # of a file that is read
_FILE_OF_PART = {"report": "report.html", "student": "student.onnx"}


def read_release(folder: str | Path) -> ReleasedLabels | ReleasedSums:
    """Return the labels, the table or the sums of a release folder, with the certificate of the
    release.

    Raises
    ------
    CertificateError
        If the folder does not verify.
    """
    folder = Path(folder)
    failures = verify_certificate(folder).failures
    if failures:
        raise CertificateError(f"The release does not verify: {failures[0].detail}")
    certificate = read_certificate(folder / CERTIFICATE_FILE)
    bound = certificate["released"]
    own = released_certificate(certificate)
    own["digest"] = certificate_digest(own)
    if has_table(certificate):
        return ReleasedTable(own)
    if certificate["public"]["method"] in WITHOUT_CLASSES:
        return ReleasedSums(own)
    table = read_labels(
        read_regular(folder / "labels.csv", _MAX_BYTES), bound["classes"], bound["count_columns"]
    )
    return ReleasedLabels(
        table.queries,
        table.labels,
        tuple(bound["classes"]),
        bound["n_teachers"],
        None if table.noisy_counts is None else certificate["mechanism"]["scale"],
        table.noisy_counts,
        own,
    )


def differing_files(
    folder: str | Path,
    *,
    student: StudentSource | None = None,
    X_public: Any = None,
    asked: AskedInRounds | None = None,
    abstentions: str = "drop",
    seed: int = 0,
) -> list[str]:
    """Make a release again, in a temporary folder, and return the names of files that differ.

    None does where software, public inputs, settings and seed are those of the release: its bytes
    follow from them.

    Parameters
    ----------
    folder : path
        A release that verifies.
    student : StudentSource, optional
        As it was fitted then, such as ``NamedStudent("auto")``.
    X_public : array, sparse matrix or frame of shape (n, n_features), optional
        Public points, encoded by the schema of the release.
    asked : AskedInRounds, optional
        How the queries of a run with a strategy were chosen.
    abstentions, seed
        As for `ReleaseJob`.

    Returns
    -------
    list of str
        Also files that one of the two lacks.

    Raises
    ------
    CertificateError
        If the folder does not verify.
    DataError
        If the student cannot learn from what was released, or a file cannot be read.
    """
    # the folder is verified first: what is made again from forged files would prove nothing
    folder = Path(folder)
    released = read_release(folder)
    schema = folder / "schema.json"
    job = ReleaseJob(
        released,
        student,
        X_public,
        json.loads(read_regular(schema, _MAX_BYTES)) if schema.is_file() else None,
        asked,
        abstentions,
        seed,
        tuple(part for part, name in _FILE_OF_PART.items() if not (folder / name).is_file()),
        about=read_certificate(folder / CERTIFICATE_FILE).get("about", {}),
    )
    with tempfile.TemporaryDirectory() as place:
        again = publish(Path(place) / "release", job).path
        names = sorted({path.name for path in (*folder.iterdir(), *again.iterdir())})
        return [
            name
            for name in names
            if _content_or_none(folder / name) != _content_or_none(again / name)
        ]


def _content_or_none(path: Path) -> bytes | None:
    return read_regular(path, _MAX_BYTES) if path.exists() else None
