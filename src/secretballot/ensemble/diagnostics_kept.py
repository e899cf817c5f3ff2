"""Find the teachers that a run left in its vault, without the records that they learned from."""

import json
from pathlib import Path

from secretballot.ensemble.teacher_store import TeacherStore
from secretballot.ensemble.teachers import TeacherEnsemble

__all__ = ["kept_teachers"]

_LONGEST_HEADER = 2**20


def kept_teachers(vault: Path, n_classes: int, *, n_teachers: int, random_state: int = 0) -> TeacherEnsemble | None:
    """Return the teachers kept in a vault; None unless there is exactly one whole set of them that can be read.

    Only reads. A set is the files of one binding: teachers of the same records, settings and library versions.

    Parameters
    ----------
    vault : path
    n_classes, n_teachers : int
        Of the run.
    random_state : int
        Of the run.

    Privacy
    -------
    Sensitivity : one unit touches one teacher.
    """
    if not (vault / "teachers").is_dir():
        return None
    whole = []
    for binding in _bindings(vault):
        found = TeacherStore(vault, binding).load()
        if sorted(found) == list(range(n_teachers)):
            whole.append([found[number] for number in range(n_teachers)])
    return TeacherEnsemble(whole[0], n_classes, random_state) if len(whole) == 1 else None


def _bindings(vault: Path) -> set[str]:
    """Return the bindings that the files of teachers name; the store checks each file against its own."""
    found = set()
    for path in (vault / "teachers").glob("*.teachers"):
        try:
            with path.open("rb") as file:
                header = json.loads(file.readline(_LONGEST_HEADER))
            if isinstance(header["binding"], str):
                found.add(header["binding"])
        except (OSError, ValueError, KeyError, TypeError):
            continue  # damaged or foreign: no teachers of ours
    return found
