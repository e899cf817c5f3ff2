"""Train one black-box learner per shard and count their votes on public points."""

import hashlib
import json
import os
import sys
from collections.abc import Callable, Hashable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NoReturn

import joblib
import numpy as np
import sklearn

from secretballot._typing import Classifier, CountArray, IntArray
from secretballot._validation import check_count, name_part
from secretballot.core.private import Votes
from secretballot.core.types import Guarantee, Sample
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.foreign_code import one_thread, results_of
from secretballot.teachers.counting import count_ballots, count_in_worker, counted_votes
from secretballot.teachers.executors import LOCAL, cluster_of
from secretballot.teachers.executors.remote import RemoteTeachers
from secretballot.teachers.linear import LinearStack
from secretballot.teachers.rows import as_csr, as_table, n_rows
from secretballot.teachers.store import TeacherStore
from secretballot.teachers.tally import check_classes
from secretballot.teachers.training import (
    Recipe,
    Shards,
    ShardSource,
    check_workers,
    refuse_joblib_on_dask,
    results_of_pool,
    return_form,
    trained,
)

Progress = Callable[[int, int], None]

# Entries of a block's decision values held at once: 2**21 doubles are 16 MiB.
_BLOCK_CELLS = 2**21
_ROWS_NAMED = 5
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
        sparse: bool = False,
        remote: RemoteTeachers | None = None,
    ) -> None:
        self._teachers = list(teachers)
        self._remote = remote
        self.n_teachers = len(self._teachers) if remote is None else remote.n_teachers
        self.n_classes = n_classes
        self._random_state = random_state
        #: Whether points are given to the teachers as CSR matrices, as their shards were; public.
        self.sparse = sparse
        # a session asks the same teachers point by point, and folding their weights takes longer
        # than a vote; a teacher is never fitted again
        self._stacks: dict[Hashable, list[LinearStack]] = {}

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
        n_jobs: int | None = None,
        engine: Any = LOCAL,
        random_state: int = 0,
        vault: Path | None = None,
        fingerprint: str | None = None,
        progress: Progress | None = None,
        sparse: bool = False,
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
        n_jobs : int, optional
            Worker processes; None follows `joblib.parallel_config`, else one. Work too short for
            them stays here.
        engine : str or distributed.Client, default "local"
            Where teachers are trained, stay and vote: here, or on the workers of a cluster that
            runs already inside the trusted side. "dask://HOST:PORT", a client, or "dask" for this
            process's client; "ray" for the Ray that runs, or "ray://HOST:PORT". The votes are the
            same.
        random_state : int
            Public; with a teacher's number it fixes that teacher's randomness.
        vault : path, optional
            Folder in which finished teachers are kept, so that an interrupted run resumes.
        fingerprint : str, optional
            Names the data and all settings that led to the shards; needed with `vault`.
        progress : callable, optional
            Called with (teachers done, teachers in all).
        sparse : bool
            Whether teachers get their shards, and the points that they vote on, as CSR matrices;
            public, decided without looking at the private table.

        Raises
        ------
        ParameterError
            If a setting is out of range.
        DataError
            If lengths differ, a label or shard number is out of range (rows are named, never
            values), or the vault cannot be used.
        ResourceError
            If memory, files or processes ran out: that is no shard's failure, and no vote is made
            of it.
        """
        check_count("n_teachers", n_teachers)
        check_count("n_classes", n_classes, minimum=2)
        # before anything is trained, so that a fault names rows of the whole table
        table = as_table(X)
        labels = _checked_indices(y_index, "y_index", n_rows(table), n_classes)
        numbers = _checked_indices(shards, "shards", n_rows(table), n_teachers)
        parts = Shards(table, labels, numbers, n_teachers, sparse=sparse)
        return cls.of_shards(
            teacher,
            parts,
            n_classes=n_classes,
            n_jobs=n_jobs,
            engine=engine,
            random_state=random_state,
            vault=vault,
            fingerprint=fingerprint,
            progress=progress,
            sparse=sparse,
        )

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
        vault: Path | None = None,
        fingerprint: str | None = None,
        progress: Progress | None = None,
        sparse: bool = False,
        send_shards: bool = False,
    ) -> "TeacherEnsemble":
        """Train one copy of `teacher` on every shard of a source, as `fit` does on a table's.

        Parameters
        ----------
        teacher : classifier or pipeline
        source : ShardSource
            Its labels are class indices from 0 to `n_classes` - 1: whoever made it checked that.
        n_classes, n_jobs, engine, random_state, vault, fingerprint, progress
            As for `fit`.
        sparse : bool
            Whether the parts of the source are CSR matrices, and points are to be.
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
        n_teachers = check_count("n_teachers", source.n_teachers)
        check_count("n_classes", n_classes, minimum=2)
        check_count("random_state", random_state, minimum=0)
        check_workers(n_jobs)
        recipe = Recipe.of(teacher, random_state)
        cluster = cluster_of(engine, n_jobs)
        if cluster is None:
            refuse_joblib_on_dask()
        store = _open_store(vault, fingerprint, recipe, n_teachers, n_classes, sparse)
        finished = {} if store is None else store.load()
        # only numbers of this run count, whatever a stored file names
        finished = {number: finished[number] for number in range(n_teachers) if number in finished}
        waiting = [number for number in range(n_teachers) if number not in finished]
        if progress is not None and finished:
            progress(len(finished), n_teachers)
        if cluster is not None:
            remote = RemoteTeachers(cluster, n_teachers)
            remote.add(finished)
            finished.clear()
            _train_remotely(remote, recipe, source, waiting, store, progress, send_shards)
            return cls([], n_classes, random_state, sparse=sparse, remote=remote)
        try:
            with one_thread():
                for number, model in trained(recipe, source, waiting, n_jobs):
                    finished[number] = model
                    if store is not None:
                        store.add(number, model)
                    if progress is not None:
                        progress(len(finished), n_teachers)
        # an interrupted fit keeps what it has; the same call goes on from there
        finally:
            if store is not None:
                store.flush()
        teachers = [finished[number] for number in range(n_teachers)]
        return cls(teachers, n_classes, random_state, sparse=sparse)

    def vote_counts(
        self,
        X_public: Any,
        *,
        block_rows: int | None = None,
        n_jobs: int | None = None,
        classes: object = None,
        guarantee: Guarantee = _BY_RECORD,
        sample: Sample | None = None,
        progress: Progress | None = None,
    ) -> Votes:
        """Let every teacher vote on every public point.

        Parameters
        ----------
        X_public : table of shape (n_queries, n_features)
            Public points with the columns that the teachers were trained on.
        block_rows : int, optional
            Rows given to a teacher at once; by default so many that a block's votes take 16 MiB.
        n_jobs : int, optional
            Worker processes for teachers that are not linear; None follows
            `joblib.parallel_config`, else one.
        classes : list, optional
            The class values behind the indices; 0 to n_classes - 1 where none are given.
        guarantee : Guarantee, optional
            What the shards were made for; by record under add-remove by default.
        sample : Sample, optional
            The secret sample that the teachers learned from.
        progress : callable, optional
            Called with (votes cast, votes in all).

        Raises
        ------
        ParameterError
            If a setting is out of range.
        DataError
            If `X_public` has no rows.
        ResourceError
            If memory, files or processes ran out.
        """
        check_workers(n_jobs)
        if self._remote is None:
            refuse_joblib_on_dask()
        table = as_table(X_public, "X_public")
        if n_rows(table) == 0:
            raise DataError(
                Parameter("X_public"), " has no rows; give at least one public point to vote on."
            )
        if self.sparse:
            table = as_csr(table)
        cells = self.n_teachers * self.n_classes
        # blocks bound the memory, whatever the number of teachers and classes
        rows = (
            max(256, _BLOCK_CELLS // cells)
            if block_rows is None
            else check_count("block_rows", block_rows)
        )
        with one_thread():
            counts = self._counted_votes(
                table, rows, n_jobs, _Meter(progress, n_rows(table) * self.n_teachers)
            )
        values = check_classes(range(self.n_classes) if classes is None else classes)
        return Votes.of_teachers(counts, guarantee, classes=values, sample=sample)

    def _counted_votes(
        self, table: Any, rows: int, n_jobs: int | None, meter: "_Meter"
    ) -> CountArray:
        if self._remote is not None:
            return self._remote.counts(table, self.n_classes, rows, self._random_state, meter.add)
        settings = sklearn.get_config()
        shared = (table, self.n_classes, rows, self._random_state, settings)
        return counted_votes(
            dict(enumerate(self._teachers)),
            *shared,
            apart=lambda rest: _counted_apart(rest, *shared, n_jobs),
            cast=meter.add,
            kept=self._stacks,
        )

    def keep(self, vault: Path, serial: str) -> None:
        """Keep all teachers in the vault under a name of their own, for `kept`.

        Parameters
        ----------
        vault : path
            Secret folder.
        serial : str
            Drawn at random, never computed from data.

        Raises
        ------
        DataError
            If a teacher cannot be pickled, or the vault cannot be written.
        """
        store = TeacherStore(vault, _binding_of(["kept", serial, self._random_state]))
        for number in range(self.n_teachers):
            store.add(
                number,
                self._teachers[number] if self._remote is None else self._remote.model(number),
            )
        store.flush()
        if len(store.load()) < self.n_teachers:
            raise DataError(
                "The teachers cannot be pickled, so they cannot be kept in a vault; use another"
                " learner."
            )

    @classmethod
    def kept(
        cls, vault: Path, serial: str, *, n_teachers: int, n_classes: int, random_state: int = 0
    ) -> "TeacherEnsemble | None":
        """Return the teachers that `keep` wrote, None if they are not all there or of other
        library versions."""
        found = TeacherStore(vault, _binding_of(["kept", serial, random_state])).load()
        if len(found) != n_teachers or sorted(found) != list(range(n_teachers)):
            return None
        return cls([found[number] for number in range(n_teachers)], n_classes, random_state)

    def __repr__(self) -> str:
        return (
            f"TeacherEnsemble(n_teachers={self.n_teachers}, n_classes={self.n_classes},"
            " teachers=<private>)"
        )

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            "private teachers refuse to be pickled or copied; give fit a vault to keep them in."
        )


def _train_remotely(
    remote: RemoteTeachers,
    recipe: Recipe,
    source: ShardSource,
    waiting: Sequence[int],
    store: TeacherStore | None,
    progress: Progress | None,
    send: bool,
) -> None:
    """Train in a cluster; with a vault every finished teacher is brought here and kept, one at a
    time."""
    done = source.n_teachers - len(waiting)
    try:
        # closed at once where one of these raises, which takes back what waits in the cluster
        with closing(remote.train(recipe, source, waiting, send=send)) as finished:
            for number in finished:
                done += 1
                if store is not None:
                    store.add(number, remote.model(number))
                if progress is not None:
                    progress(done, source.n_teachers)
    finally:
        if store is not None:
            store.flush()


class _Meter:
    """Report votes cast to a progress callback, never more than there are."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress, self._total, self._done = progress, total, 0

    def add(self, votes: int) -> None:
        self._done = min(self._total, self._done + votes)
        if self._progress is not None:
            self._progress(self._done, self._total)


def _counted_apart(
    teachers: dict[int, Any],
    table: Any,
    n_classes: int,
    rows: int,
    random_state: int,
    settings: Any,
    n_jobs: int | None,
) -> Any:
    """Yield (teachers counted, their counts), each teacher asked by its own `predict`."""
    workers = min(joblib.effective_n_jobs(n_jobs), len(teachers))
    shared = (table, n_classes, rows, random_state, settings)
    if workers <= 1:
        for number, model in teachers.items():
            yield 1, count_ballots({number: model}, *shared)
        return
    numbers = list(teachers)
    # Four tasks per worker balance slow and fast teachers; each returns counts and not votes.
    size = -(-len(numbers) // (4 * workers))
    groups = [
        {n: teachers[n] for n in numbers[at : at + size]} for at in range(0, len(numbers), size)
    ]
    yield from results_of(_counted_by_workers(groups, shared, n_jobs))


def _counted_by_workers(
    groups: Sequence[dict[int, Any]], shared: tuple[Any, ...], n_jobs: int | None
) -> Any:
    pool = joblib.Parallel(n_jobs=n_jobs, return_as=return_form(), batch_size=1)
    work = joblib.delayed(count_in_worker)
    yield from results_of_pool(pool, (work(os.getpid(), group, *shared) for group in groups))


def _checked_indices(values: Any, name: str, length: int, bound: int) -> IntArray:
    indices = np.asarray(values)
    if indices.shape != (length,):
        raise DataError(
            name_part(name),
            f" has the shape {indices.shape} with {length} records in X; give one number per"
            " record.",
        )
    if length == 0:
        return np.zeros(0, dtype=np.int64)
    if indices.dtype.kind not in "iu":
        raise DataError(
            name_part(name),
            f" has the type {indices.dtype}; it must hold integers from 0 to {bound - 1}.",
        )
    # written so that nothing but a number in range passes; rows are named, values are private
    bad = np.flatnonzero(~((indices >= 0) & (indices < bound)))
    if bad.size:
        named = ", ".join(str(row) for row in bad[:_ROWS_NAMED])
        raise DataError(
            name_part(name),
            f" is out of the range 0 to {bound - 1} in {bad.size} rows (rows {named}, counted"
            " from 0).",
        )
    return indices.astype(np.int64)


def _open_store(
    vault: Path | None,
    fingerprint: str | None,
    recipe: Recipe,
    n_teachers: int,
    n_classes: int,
    sparse: bool,
) -> TeacherStore | None:
    if vault is None:
        return None
    if not fingerprint:
        raise ParameterError(
            Parameter("fingerprint"),
            " is missing; teachers kept in a vault must name the data they were trained on.",
        )
    try:
        learner = joblib.hash(recipe.teacher)
    except Exception:
        # A learner that cannot be pickled cannot be kept either.
        return None
    bound = [fingerprint, learner, recipe.random_state, n_teachers, n_classes, sparse]
    return TeacherStore(Path(vault), _binding_of(bound))


def _binding_of(bound: Sequence[Any]) -> str:
    """Return the name of what teachers depend on, the versions of the libraries that pickled
    them included."""
    versions = [sys.version, np.__version__, sklearn.__version__]
    return hashlib.sha256(json.dumps([list(bound), versions]).encode()).hexdigest()
