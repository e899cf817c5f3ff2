"""Find the teachers that a run left in its vault, without the records that they learned from."""

from pathlib import Path

from secretballot.ensemble.teacher_store import TeacherStore, binding_in
from secretballot.ensemble.teachers import TeacherEnsemble

__all__ = ["kept_teachers"]


def kept_teachers(
    vault: Path, n_classes: int, *, n_teachers: int, random_state: int = 0
) -> TeacherEnsemble | None:
    """Return the teachers kept in a vault.

    None unless there is exactly one whole set of them that can be read.

    Only reads. A set is the files of one binding: teachers of the same records, settings and
    library versions.

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
    for binding in _bindings_in_use(vault):
        found = TeacherStore(vault, binding).load()
        if len(found) == n_teachers and sorted(found) == list(range(n_teachers)):
            whole.append([found[number] for number in range(n_teachers)])
    return TeacherEnsemble(whole[0], n_classes, random_state) if len(whole) == 1 else None


def _bindings_in_use(vault: Path) -> set[str]:
    """Return the bindings that the files of teachers name.

    The store checks each file against its own.
    """
    named = map(binding_in, (vault / "teachers").glob("*.teachers"))
    return {binding for binding in named if binding is not None}
