"""Train one black-box learner per shard and count their votes on public points."""

import hashlib
import json
import pickle
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import joblib
import numpy as np
import sklearn

from secretballot._typing import Classifier, CountArray, IntArray
from secretballot._validation import check_count
from secretballot.core.private import Votes
from secretballot.core.types import Guarantee, Sample
from secretballot.data.tally import check_classes
from secretballot.drafts import sweep_drafts
from secretballot.exceptions import DataError, Parameter
from secretballot.foreign_code import one_thread, result_of
from secretballot.teachers.counting import LinearStack, Poll, counted_votes
from secretballot.teachers.executors import LOCAL, Workers, workers_of
from secretballot.teachers.margins import vote_margins
from secretballot.teachers.rows import as_table, n_rows
from secretballot.teachers.training import Recipe, Shards, ShardSource, trained
from secretballot.vault import make_vault, read_secret, write_secret

_FLUSH_SECONDS = 2.0


class TeacherStore:
    """Finished teachers of one run, under `vault`/teachers, so that an interrupted run resumes
    where it stopped.

    A teacher's file holds private data. It is written whole or not at all, readable by its owner
    alone, and read back only when it belongs to the current user and to the very same run:
    unpickling runs code, and a teacher of other data would break the account of what was released.

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


Progress = Callable[[int, int], None]

# Entries of a block's decision values held at once: 2**21 doubles are 16 MiB.
_BLOCK_CELLS, _LEAST_ROWS = 2**21, 256
_BY_RECORD = Guarantee(unit="record", relation="add-remove")


class TeacherEnsemble:
    """Teachers trained on disjoint shards.

    Private, so it shows its shape alone and refuses to be pickled.

    Make one with `fit`.

    Attributes
    ----------
    n_teachers, n_classes : int
        The public shape.

    Privacy
    -------
    Unit : whatever the shards keep together.
    Sensitivity : a teacher is a function of its own shard, its number and public values, so one
        unit changes the votes of one teacher. What passes the process by other ways (time, a crash
        of the machine) is not covered.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> X, y = np.zeros((6, 1)), np.array([0, 0, 1, 1, 1, 1])
    >>> shards = np.array([0, 0, 1, 1, 2, 2])
    >>> teachers = sb.teachers.TeacherEnsemble.fit(
    ...     DummyClassifier(), X, y, shards, n_teachers=3, n_classes=2
    ... )
    >>> teachers
    TeacherEnsemble(n_teachers=3, n_classes=2, teachers=<private>)
    >>> teachers.vote_counts(np.zeros((4, 1))).shape.n_queries
    4
    """

    def __init__(
        self,
        teachers: Sequence[Classifier | None],
        n_classes: int,
        random_state: int = 0,
        *,
        workers: Workers | None = None,
    ) -> None:
        self._teachers = list(teachers)
        self.n_teachers = len(self._teachers)
        self.n_classes = n_classes
        self._random_state = random_state
        self._workers = workers
        # a session asks the same teachers point by point, and folding their weights takes longer
        # than a vote; a teacher is never fitted again
        self._stacks: dict[int, list[LinearStack]] = {}

    @classmethod
    def fit(
        cls,
        teacher: Classifier,
        X: Any,
        y_index: Any,
        shards: Any,
        *,
        n_teachers: int,
        n_classes: int,
        **training: Any,
    ) -> "TeacherEnsemble":
        """Train one copy of `teacher` on every shard.

        A shard that cannot be trained (no records, one class, a learner that fails) is no error:
        its teacher votes the class (teacher number mod `n_classes`) on every query, a rule that
        reads nothing.

        Parameters
        ----------
        teacher : classifier or pipeline
            With scikit-learn's fit, predict and get_params; copied for every shard.
        X : table of shape (n_records, n_features)
            Array, sparse matrix or pandas frame. Its column types count as public: encode it by a
            public schema.
        y_index : array-like of shape (n_records,), int
            Class indices from 0 to `n_classes` - 1.
        shards : array-like of shape (n_records,), int
            Shard numbers from 0 to `n_teachers` - 1, from a partition.
        n_teachers, n_classes : int
            Public numbers, fixed without looking at the data.
        **training
            n_jobs, engine, random_state, kept, progress, as for `of_shards`.

        Raises
        ------
        ParameterError
            If a setting is out of range.
        DataError
            If the vault cannot be used.
        ResourceError
            If memory, files or processes ran out: that is no shard's failure, and no vote is made
            of it.
        """
        table = as_table(X)
        check_count("n_teachers", n_teachers)
        check_count("n_classes", n_classes, minimum=2)
        parts = Shards(table, np.asarray(y_index), np.asarray(shards), n_teachers)
        return cls.of_shards(teacher, parts, n_classes=n_classes, **training)

    @classmethod
    def of_shards(
        cls,
        teacher: Classifier,
        source: ShardSource,
        *,
        n_classes: int,
        n_jobs: int | None = None,
        engine: Any = LOCAL,
        random_state: int = 0,
        kept: tuple[Path, str] | None = None,
        progress: Progress | None = None,
        send_shards: bool = False,
    ) -> "TeacherEnsemble":
        """Train one copy of `teacher` on every shard of a source, as `fit` does on a table's.

        Parameters
        ----------
        teacher : classifier or pipeline
        source : ShardSource
            Its labels are class indices from 0 to `n_classes` - 1: whoever made it checked that.
        n_classes : int
        n_jobs : int, optional
            Worker processes; None follows `joblib.parallel_config`, else one. Work too short for
            them stays here.
        engine : str, distributed.Client or concurrent.futures.Executor, default "local"
            Where teachers are trained, and vote: here, or on the workers of a cluster that runs
            already inside the trusted side. "dask://HOST:PORT", a client, or "dask" for this
            process's client; "ray" for the Ray that runs; or any executor.
            The votes are the same.
        random_state : int
            Public; with a teacher's number it fixes that teacher's randomness.
        kept : tuple of path and str, optional
            Folder in which finished teachers are kept, so that an interrupted run resumes, and a
            digest of the data and all settings that led to the shards.
        progress : callable, optional
            Called with (teachers done, teachers in all).
        send_shards : bool
            Whether a cluster's workers are sent the shards that lie in files, rather than read
            them.

        Raises
        ------
        ParameterError
            If a setting is out of range.
        DataError
            If the vault cannot be used, or a shard cannot be read.
        ResourceError
            If memory, files or processes ran out.
        """
        n_teachers = source.n_teachers
        check_count("random_state", random_state, minimum=0)
        recipe, workers = Recipe.of(teacher, random_state), workers_of(engine, n_jobs)
        store, finished = None, dict[int, Any]()
        if kept is not None and (learner := learner_identity(recipe.teacher)) is not None:
            about = learner, random_state, n_teachers, n_classes
            store = TeacherStore(kept[0], _binding_of([kept[1], *about]))
            finished = store.load()
        # only numbers of this run count, whatever a stored file names
        finished = {number: finished[number] for number in range(n_teachers) if number in finished}
        waiting = [number for number in range(n_teachers) if number not in finished]
        if progress is not None and finished:
            progress(len(finished), n_teachers)
        models = trained(recipe, source, waiting, workers, send=send_shards)
        # an interrupted fit keeps what it has; the same call goes on from there
        try:
            # closed at once where one of these raises, which takes back what waits elsewhere
            with one_thread(), closing(models):
                for number, model in models:
                    finished[number] = model
                    if store is not None:
                        store.add(number, model)
                    if progress is not None:
                        progress(len(finished), n_teachers)
        finally:
            if store is not None:
                store.flush()
        return cls(
            [finished[number] for number in range(n_teachers)],
            n_classes,
            random_state,
            workers=workers,
        )

    def vote_counts(
        self,
        X_public: Any,
        *,
        classes: object = None,
        guarantee: Guarantee = _BY_RECORD,
        sample: Sample | None = None,
    ) -> Votes:
        """Let every teacher vote on every public point.

        Parameters
        ----------
        X_public : table of shape (n_queries, n_features)
            Public points with the columns that the teachers were trained on.
        classes : list, optional
            The class values behind the indices; 0 to n_classes - 1 where none are given.
        guarantee : Guarantee, optional
            What the shards were made for; by record under add-remove by default.
        sample : Sample, optional
            The secret sample that the teachers learned from.

        Raises
        ------
        DataError
            If `X_public` has no rows.
        ResourceError
            If memory, files or processes ran out.
        """
        values = None if classes is None else check_classes(classes)
        counts = self._counted_votes(X_public)
        return Votes.of_teachers(counts, guarantee, classes=values, sample=sample)

    def margins(self, X_public: Any) -> IntArray:
        """Return the margin of the vote on every public point, shape (n_queries,).

        Parameters
        ----------
        X_public : table of shape (n_queries, n_features)

        Raises
        ------
        DataError
            If `X_public` has no rows.
        ResourceError
            If memory, files or processes ran out.

        Privacy
        -------
        Sensitivity : private, and not releasable: see `margins.vote_margins`. For the curator, and
            the vault.
        """
        return vote_margins(self._counted_votes(X_public))

    def _counted_votes(self, X_public: Any) -> CountArray:
        table = as_table(X_public, "X_public")
        if not n_rows(table):
            raise DataError(
                Parameter("X_public"), " has no rows; give at least one public point to vote on."
            )
        poll = Poll(
            table,
            self.n_classes,
            # blocks bound the memory, whatever the number of teachers and classes
            max(_LEAST_ROWS, _BLOCK_CELLS // (self.n_teachers * self.n_classes)),
            self._random_state,
            sklearn.get_config(),
        )
        teachers = dict(enumerate(self._teachers))
        return counted_votes(teachers, poll, workers=self._workers, kept=self._stacks)

    def packed(self, about: Any) -> bytes:
        """Return the teachers as a file of a vault, with what else is to be known of them, for
        `unpacked`.

        Raises
        ------
        DataError
            If a teacher cannot be pickled.
        """
        payload = pickled_model((self._teachers, self.n_classes, self._random_state, about))
        if payload is None:
            raise DataError(
                "The teachers cannot be pickled, so they cannot be kept in a vault; use another"
                " learner."
            )
        return bound(payload, _binding_of(["kept"]))

    @classmethod
    def unpacked(cls, content: bytes) -> "tuple[TeacherEnsemble, Any] | None":
        """Return the teachers of a file that is our own and what else is known of them, None if it
        is damaged or of other library versions."""
        found = result_of(partial(value_in, content, _binding_of(["kept"])))
        return None if found is None else (cls(*found[:3]), found[3])

    def __repr__(self) -> str:
        return (
            f"TeacherEnsemble(n_teachers={self.n_teachers}, n_classes={self.n_classes},"
            " teachers=<private>)"
        )

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            "private teachers refuse to be pickled or copied; give fit a vault to keep them in."
        )


def _binding_of(bound: Sequence[Any]) -> str:
    """Return the name of what teachers depend on, the versions of the libraries that pickled
    them included."""
    versions = [sys.version, np.__version__, sklearn.__version__]
    return hashlib.sha256(json.dumps([list(bound), versions]).encode()).hexdigest()
