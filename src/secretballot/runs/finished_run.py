"""A run that is repeated after it was finished: nothing is done again, and its release is shown."""

from dataclasses import dataclass
from typing import Any

from secretballot._validation import shown
from secretballot.data.stored import forget_table
from secretballot.exceptions import CertificateError
from secretballot.report.certificate.fields import read_certificate
from secretballot.runs.folder import RunFolder
from secretballot.runs.progress import Watch


@dataclass(frozen=True)
class FinishedRun:
    """What the release of a finished run says of itself.

    Attributes
    ----------
    certificate : dict
    queries, answered : int
        Public points asked, and answered.
    files : tuple of str
        Names of the files in the release.
    """

    certificate: dict[str, Any]
    queries: int
    answered: int
    files: tuple[str, ...]


def look_again(folder: RunFolder, watch: Watch) -> FinishedRun:
    """Return what is in the release of a finished run, and say that nothing was done.

    Raises
    ------
    CertificateError
        If its certificate cannot be read.
    """
    # The file is as anybody may have changed it since, so its fields are checked like a stranger's.
    path = folder.release / "certificate.json"
    certificate = read_certificate(path)
    released = certificate.get("released")
    stated = released if isinstance(released, dict) else {}
    queries, answered = stated.get("queries"), stated.get("answered")
    rows = stated.get("rows")
    if isinstance(rows, list):  # the answers of a table stand on the certificate
        queries = answered = len(rows)
    if not (isinstance(queries, int) and isinstance(answered, int)):
        raise CertificateError(
            f"{shown(path)} is damaged; see what `secretballot verify` says of it."
        )
    watch.note(
        "This very run is finished already: nothing was done and nothing was spent. For another"
        " one, give another folder with --out.",
        private=False,
    )
    # a crash may have come between the release and this
    forget_table(folder.vault)
    return FinishedRun(
        certificate,
        queries,
        answered,
        tuple(sorted(found.name for found in folder.release.iterdir())),
    )
