"""Keep finished teachers in the vault, so that an interrupted run resumes where it stopped.

A teacher's file holds private data. It is written whole or not at all, readable by its owner alone,
and read back only when it belongs to the current user and to the very same run: unpickling runs
code, and a teacher of other data would break the account of what was released.
"""

import hashlib
import pickle
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import joblib

from secretballot.drafts import sweep_drafts
from secretballot.vault import make_vault, read_secret, write_secret

_FLUSH_SECONDS = 2.0


class TeacherStore:
    """Finished teachers of one run, under `vault`/teachers.

    Parameters
    ----------
    vault : path
        Made with mode 0700 where absent, and closed to others where open.
    binding : str
        Digest of all that a teacher depends on; files of another binding are left alone.

    Raises
    ------
    DataError
        If the folder cannot be made or closed to others, or cannot be written.
    """

    def __init__(self, vault: Path, binding: str) -> None:
        self._folder = vault / "teachers"
        self._binding = binding
        self._waiting: dict[int, Any] = {}
        self._flushed = time.monotonic()
        for folder in (vault, self._folder):
            make_vault(folder)
        sweep_drafts(self._folder, "*.teachers")

    def load(self) -> dict[int, Any]:
        """Return the teachers found, by number.

        A file that is damaged, foreign or of another run counts as absent.
        """
        found: dict[int, Any] = {}
        for path in sorted(self._folder.glob(f"{self._binding[:16]}-*.teachers")):
            found.update(self._read_models(path))
        return found

    def add(self, number: int, model: Any) -> None:
        """Keep one teacher; it reaches the disk within two seconds of fitting or at `flush`."""
        self._waiting[number] = model
        if time.monotonic() - self._flushed > _FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write every waiting teacher to the disk."""
        waiting, self._waiting = self._waiting, {}
        pickled = {
            number: data
            for number, model in waiting.items()
            if (data := pickled_model(model)) is not None
        }
        self._flushed = time.monotonic()
        if pickled:
            place = self._folder / f"{self._binding[:16]}-{min(pickled):06d}.teachers"
            write_secret(place, bound(pickle.dumps(pickled), self._binding))

    def _read_models(self, path: Path) -> dict[int, Any]:
        # Whatever is wrong with the file, the teachers can be trained again.
        with suppress(Exception):
            models: dict[int, bytes] = value_in(read_secret(path, own=True), self._binding) or {}
            return {number: pickle.loads(data) for number, data in models.items()}
        return {}


def bound(payload: bytes, binding: str) -> bytes:
    """Return a pickled value as a file holds it: behind its digest, and that of what it depends
    on."""
    return f"{binding} {hashlib.sha256(payload).hexdigest()}\n".encode() + payload


def value_in(content: bytes | None, binding: str) -> Any:
    """Return the value of a file, None where it is damaged or depends on something else."""
    _, _, payload = (content or b"").partition(b"\n")
    return pickle.loads(payload) if content == bound(payload, binding) else None


def pickled_model(model: Any) -> bytes | None:
    """Return a pickled model; None where it cannot be pickled, and is trained again in the next
    run."""
    try:
        return pickle.dumps(model)
    except Exception:
        return None


def learner_identity(learner: Any) -> str | None:
    """Return a digest of an unfitted learner with its settings, the same in every process; None
    where it cannot be pickled, since two that look alike may differ."""
    try:
        return str(joblib.hash(learner, hash_name="sha1"))
    except Exception:
        return None
