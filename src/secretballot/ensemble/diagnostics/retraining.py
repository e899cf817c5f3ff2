"""Train ensembles again on resamples of the private records, to see what teachers would say on
average."""

from collections.abc import Callable
from typing import Any

import numpy as np

from secretballot._typing import Classifier, IntArray
from secretballot._validation import RESAMPLINGS, check_choice, check_count
from secretballot.ensemble.engines import LOCAL
from secretballot.ensemble.rows import as_table, n_rows, take_rows
from secretballot.ensemble.teachers import TeacherEnsemble
from secretballot.ensemble.votes import VoteCounts
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.foreign_code import seed_of

__all__ = ["retrained_votes"]


def retrained_votes(
    teacher: Classifier,
    X: Any,
    y_index: Any,
    X_public: Any,
    *,
    n_teachers: int,
    n_classes: int,
    classes: object = None,
    n_ensembles: int = 5,
    resampling: str = "splits",
    even: bool = False,
    units: Any = None,
    n_jobs: int | None = None,
    engine: Any = LOCAL,
    random_state: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> list[VoteCounts]:
    """Return the votes of freshly trained ensembles, each on its own resample of the records.

    Parameters
    ----------
    teacher : classifier
        As for `TeacherEnsemble.fit`.
    X, y_index
        Private records and class indices.
    X_public : table of shape (n_queries, n_features)
        Points to vote on.
    n_teachers, n_classes : int
        Of each ensemble.
    classes : list, optional
        Class values; 0 to n_classes - 1 where none are given.
    n_ensembles : int
        R.
    resampling : {"splits", "bootstrap"}
        "splits" parts all records anew, so that every teacher has a shard as the real one had: what
        the expected margin is about. "bootstrap" draws as many units with replacement before.
    even : bool
        Shards of equal size, as under replace-one; otherwise every unit falls into a shard by
        itself. Not with `units`.
    units : array of shape (n_records,), optional
        Ids; records of one id share a shard, and are drawn together.
    n_jobs : int, optional
    engine : str or distributed.Client, default "local"
        As for `TeacherEnsemble.fit`.
    random_state : int
        Public; random seed of the splits and of the teachers. Nothing here is hidden by it.
    progress : callable, optional
        Called with (teachers done, teachers in all).

    Raises
    ------
    ParameterError, DataError
        If something does not fit.

    Privacy
    -------
    Sensitivity : one unit touches one teacher in every ensemble of "splits", any number of them
        under "bootstrap".
    Price : none; the votes are sealed, and what is computed from them is not releasable.
    """
    r, k = check_count("n_ensembles", n_ensembles), check_count("n_teachers", n_teachers)
    check_choice("resampling", resampling, RESAMPLINGS)
    if even and units is not None:
        raise ParameterError(
            "even shards are given with units, whose records must stay together; leave one of them."
        )
    table, labels = as_table(X), np.asarray(y_index)
    if n_rows(table) == 0 or labels.shape != (n_rows(table),):
        raise DataError("X and y_index must hold one class index for each of at least one record.")
    members = _unit_numbers(n_rows(table), units)
    votes = []
    for number in range(r):
        # each ensemble has its own randomness by its number, whatever the order or the number of
        # workers
        rows, shards = _resampled_shards(
            members, k, resampling, even, np.random.default_rng([random_state, number])
        )
        ensemble = TeacherEnsemble.fit(
            teacher,
            take_rows(table, rows),
            labels[rows],
            shards,
            n_teachers=k,
            n_classes=n_classes,
            n_jobs=n_jobs,
            engine=engine,
            random_state=seed_of(random_state, number),
            progress=None if progress is None else _shifted_progress(progress, number * k, r * k),
        )
        votes.append(ensemble.vote_counts(X_public, n_jobs=n_jobs, classes=classes))
    return votes


def _unit_numbers(n_records: int, units: Any) -> IntArray:
    """Return the unit number of every record; every record is one where no ids are given."""
    if units is None:
        return np.arange(n_records)
    ids = np.asarray(units)
    if ids.shape != (n_records,):
        raise DataError(
            Parameter("units"),
            f" has shape {ids.shape}; give one id for each of the {n_records} records.",
        )
    return np.asarray(np.unique(ids.astype(str), return_inverse=True)[1], dtype=np.int64)


def _resampled_shards(
    members: IntArray, n_teachers: int, resampling: str, even: bool, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Return the rows of one resample, and the shard of each."""
    n_units = int(members.max()) + 1
    drawn = np.arange(n_units) if resampling == "splits" else rng.integers(n_units, size=n_units)
    shard = (
        rng.permutation(n_units) % n_teachers if even else rng.integers(n_teachers, size=n_units)
    )
    by_unit = np.argsort(members, kind="stable")
    sizes = np.bincount(members, minlength=n_units)
    starts = np.cumsum(sizes) - sizes
    lengths = sizes[drawn]
    within = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    rows = by_unit[np.repeat(starts[drawn], lengths) + within]
    return np.asarray(rows, dtype=np.int64), np.asarray(np.repeat(shard, lengths), dtype=np.int64)


def _shifted_progress(
    progress: Callable[[int, int], None], before: int, total: int
) -> Callable[[int, int], None]:
    return lambda done, _: progress(before + done, total)
