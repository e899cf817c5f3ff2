"""Teachers that are trained, and vote, many at a time.

Such a learner has, besides what a classifier has:

- ``slots(n_features)``: how many shards it takes at once, a public number;
- ``fit_shards(learners, parts)`` and ``predict_shards(models, X)``, class methods that take one
  learner or model for each slot, with None for a slot that is empty, and return one result for
  each.

It promises that what comes out of a slot follows from what went into it, from the number of slots
and from the slot's place, bit for bit. What is done here keeps all else fixed: which teachers stand
together, and where, follows from their numbers; a slot without a shard stays in its place and is
empty; and where a stack fails, its parts are tried again in the same places with the others empty,
until the shard that made it fail is alone.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

import joblib
import numpy as np
import sklearn

from secretballot._seeded import seed_of
from secretballot._typing import Classifier, IntArray, Matrix
from secretballot._validation import shown
from secretballot.exceptions import Parameter, ParameterError
from secretballot.foreign_code import isolated, one_thread, result_once_seeded, results_of
from secretballot.teachers.rows import as_csr, n_rows, take_rows
from secretballot.teachers.workers import end_with, interrupts_ignored

T = TypeVar("T")


@dataclass(frozen=True)
class Unit:
    """Teachers that are trained at once.

    Attributes
    ----------
    numbers : tuple of int
        Of the teachers, one for each slot.
    wanted : tuple of int or None
        The same, with None where the teacher is finished already.
    """

    numbers: tuple[int, ...]
    wanted: tuple[int | None, ...]

    def __len__(self) -> int:
        return len(self.numbers)


@dataclass(frozen=True)
class Group:
    """Fitted teachers that vote at once.

    Attributes
    ----------
    first : int
        Number of the teacher of the first slot.
    models : tuple
        One for each slot, None where it is empty.
    members : dict of int to int
        Teacher number to slot.
    """

    first: int
    models: tuple[Any, ...]
    members: Mapping[int, int]


def units_of(teacher: Any, source: Any, numbers: Sequence[int]) -> list[Unit]:
    """Return the teachers with these numbers in units that are trained at once.

    Parameters
    ----------
    teacher : classifier
        Unfitted.
    source : ShardSource
        Asked for the width of its table, by its first shard.
    numbers : list of int
        Of the teachers that are not finished.
    """
    alone = [Unit((number,), (number,)) for number in numbers]
    if not numbers or not _works_together(teacher):
        return alone
    n_slots = _slots_of_learner(teacher, source.part(0)[0])
    if n_slots == 1:
        return alone
    waiting, units = set(numbers), []
    for at in range(0, source.n_teachers, n_slots):
        group = tuple(range(at, min(at + n_slots, source.n_teachers)))
        if waiting.intersection(group):
            wanted = tuple(number if number in waiting else None for number in group)
            units.append(Unit(group, wanted))
    return units


def trained_together(
    learners: Sequence[Any],
    parts: Sequence[tuple[Any, IntArray] | None],
    seed: int,
    settings: Mapping[str, Any],
) -> list[Any | None]:
    """Return the learners, each fitted to its part; None where there is none or it cannot be.

    Parameters
    ----------
    learners : list of classifiers
    parts : list of (X, y) or None
        Table of shape (n_records, n_features) and class indices of shape (n_records,), of each
        learner's own shard.
    seed : int
        Seeds the global generators.
    settings : mapping
        scikit-learn's configuration inside.

    Raises
    ------
    ResourceError
        If the machine failed.
    """
    fit_shards = type(learners[0]).fit_shards

    def work(kept: Sequence[Any]) -> list[Any]:
        with isolated(seed, settings):
            return list(fit_shards(learners, kept))

    return each_slot(work, parts)


def voting_groups(teachers: Mapping[int, Any], table: Any) -> list[Group]:
    """Return the teachers that vote together, in groups of one size, each at a place of its own.

    Parameters
    ----------
    teachers : mapping of teacher number to fitted learner or None
    table : table of shape (n_queries, n_features)
        The public points.
    """
    able = {n: model for n, model in teachers.items() if _works_together(model)}
    if not able:
        return []
    one = next(iter(able.values()))
    able = {number: model for number, model in able.items() if type(model) is type(one)}
    n_slots = _slots_of_learner(one, table)
    if n_slots == 1:
        return []
    groups = []
    for at in sorted({number - number % n_slots for number in able}):
        numbers = [number for number in range(at, at + n_slots) if number in able]
        models = tuple(able.get(number) for number in range(at, at + n_slots))
        groups.append(Group(at, models, {number: number - at for number in numbers}))
    return groups


def _works_together(learner: Any) -> bool:
    return all(
        callable(getattr(learner, name, None)) for name in ("slots", "fit_shards", "predict_shards")
    )


def _slots_of_learner(learner: Any, table: Any) -> int:
    """Return how many slots a learner takes for such a table, whose width alone is looked at."""
    if len(table.shape) != 2:
        return 1
    return result_once_seeded(lambda: int(learner.slots(int(table.shape[1])))) or 1


def each_slot(work: Callable[[Sequence[Any]], list[T | None]], slots: Sequence[Any]) -> list[Any]:
    """Return what the work makes of every slot, None for the empty ones and those that make it
    fail."""
    filled = [place for place, what in enumerate(slots) if what is not None]
    results: list[Any] = [None] * len(slots)
    waiting = [filled] if filled else []
    while waiting:
        places = waiting.pop()
        kept = [slots[place] if place in places else None for place in range(len(slots))]
        done = result_once_seeded(partial(work, kept))
        if done is not None and len(done) == len(slots):
            for place in places:
                results[place] = done[place]
        elif len(places) > 1:
            middle = len(places) // 2
            waiting += [places[:middle], places[middle:]]
    return results


# Below this many seconds of work left, starting worker processes costs more than it saves.
_WORTH_WORKERS = 3.0
_PILOT_SECONDS = 0.5
_JOBLIB_ON_DASK = "DaskDistributedBackend"


@dataclass(frozen=True)
class Recipe:
    """What every shard shares: the unfitted learner, its own seeds, the public random state,
    scikit-learn's settings.

    Raises
    ------
    ParameterError
        If the learner has no scikit-learn face, or carries a random generator in place of a seed.
    """

    teacher: Any
    random_state: int
    seeds: Mapping[str, int]
    settings: Mapping[str, Any]

    @classmethod
    def of(cls, teacher: Any, random_state: int) -> "Recipe":
        """Check the learner and find the seeds it takes.

        Raises
        ------
        ParameterError
            If it is no learner, or shares a random generator between teachers.
        """
        if isinstance(teacher, type) or not all(
            hasattr(teacher, name) for name in ("fit", "predict", "get_params")
        ):
            kind = teacher if isinstance(teacher, type) else type(teacher)
            raise ParameterError(
                Parameter("teacher"),
                f" is {kind.__name__!r}; it must be an instance with fit, predict and get_params,"
                " as scikit-learn's classifiers have.",
            )
        # every source of randomness in the learner gets a seed of its teacher's own, nested ones
        # too
        params = teacher.get_params(deep=True)
        own_seeds = {
            name: params[name] for name in sorted(params) if name.split("__")[-1] == "random_state"
        }
        for name, own in own_seeds.items():
            # a generator that teachers share would make one depend on the shards of others
            if own is not None and (
                isinstance(own, bool) or not isinstance(own, (int, np.integer)) or own < 0
            ):
                raise ParameterError(
                    f"teacher's {name} is {shown(own)}; it must be None or an integer, never a"
                    " shared generator."
                )
        seeds = {name: 0 if own is None else int(own) + 1 for name, own in own_seeds.items()}
        return cls(teacher, random_state, seeds, sklearn.get_config())

    def fresh(self, number: int) -> Any:
        """Return an unfitted copy whose seeds depend on the teacher's number and public numbers
        alone."""
        model = sklearn.clone(self.teacher)
        if self.seeds:
            places = enumerate(self.seeds.items())
            model.set_params(
                **{
                    name: seed_of(self.random_state, number, place, own)
                    for place, (name, own) in places
                }
            )
        return model


class ShardSource(Protocol):
    """Where the teachers' shards come from, one at a time.

    A source that `travels` is small and can be pickled, and reads a shard from storage in whatever
    process asks for it: workers get the source and a number. Of any other source the part is cut
    here and sent.
    """

    @property
    def n_teachers(self) -> int:
        """Number of shards; public."""
        ...

    @property
    def travels(self) -> bool:
        """Whether workers read their shards themselves."""
        ...

    @property
    def out_of_reach(self) -> str:
        """Say what of a source that travels cannot be seen from this process; empty where all
        can."""
        ...

    def sent(self, number: int) -> "ShardSource":
        """Return a source of this shard alone, which holds it and can be pickled."""
        ...

    def part(self, number: int) -> tuple[Any, IntArray]:
        """Return the rows of one shard, of shape (n_records, n_features), and the indices of
        their classes.

        Raises
        ------
        DataError, ResourceError, OSError
            If the shard cannot be read; that is no fault of the shard and becomes no vote.
        """
        ...


class Shards:
    """Rows of the private table by shard, cut out one shard at a time."""

    travels = False
    out_of_reach = ""

    def __init__(
        self,
        X: Matrix,
        y_index: IntArray,
        shards: IntArray,
        n_teachers: int,
        *,
        sparse: bool = False,
    ) -> None:
        self.n_teachers = n_teachers
        self._X, self._y, self._sparse = X, y_index, sparse
        # Stable: rows keep their order inside a shard, whatever the other shards hold.
        self._order = np.argsort(shards, kind="stable")
        self._bounds = np.concatenate([[0], np.cumsum(np.bincount(shards, minlength=n_teachers))])

    def part(self, number: int) -> tuple[Any, IntArray]:
        """Return a copy of one shard's rows and labels."""
        rows = self._order[self._bounds[number] : self._bounds[number + 1]]
        part = take_rows(self._X, rows)
        return as_csr(part) if self._sparse else part, self._y[rows]

    def sent(self, number: int) -> "ShardSource":
        """Return one shard with its rows."""
        return OneShard(*self.part(number))


class OneShard:
    """A part that was cut from its source, to be sent to a worker."""

    travels = True
    out_of_reach = ""
    n_teachers = 1

    def __init__(self, X: Matrix, y_index: IntArray) -> None:
        self._X, self._y = X, y_index

    def sent(self, number: int) -> "ShardSource":
        """Return itself."""
        return self

    def part(self, number: int) -> tuple[Any, IntArray]:
        """Return the rows and labels."""
        return self._X, self._y


def source_for_worker(source: ShardSource, number: int) -> ShardSource:
    """Return what a worker must be sent to have this shard: the source itself where it travels."""
    return source if source.travels else source.sent(number)


def can_be_learned(y: IntArray) -> bool:
    """Return whether a shard's labels, of shape (n_records,), are of two classes or more."""
    return len(y) > 0 and not bool((y == y[0]).all())


def train_shard(recipe: Recipe, X: Matrix, y: IntArray, number: int) -> Any:
    """Fit one teacher; return None, which stands for the fixed vote, where its shard does not allow
    that.

    `X` has shape (n_records, n_features) and `y` shape (n_records,), of this shard alone.

    Raises
    ------
    ResourceError
        If the machine failed, and not the shard.
    """
    if not can_be_learned(y):
        return None

    def fit() -> Any:
        with isolated(seed_of(recipe.random_state, number), recipe.settings):
            model = recipe.fresh(number)
            model.fit(X, y)
            return model

    return result_once_seeded(fit)


def trained(
    recipe: Recipe, source: ShardSource, numbers: Sequence[int], n_jobs: int | None
) -> Iterator[tuple[int, Any]]:
    """Yield (number, teacher or None) as the teachers are finished, in any order.

    The first ones are trained here and timed; worker processes start only for work that repays
    their start.
    """
    started = time.monotonic()
    workers = joblib.effective_n_jobs(n_jobs)
    units = units_of(recipe.teacher, source, numbers)
    for done, unit in enumerate(units):
        spent = time.monotonic() - started
        left = spent / max(1, done) * (len(units) - done)
        if workers > 1 and done and spent > _PILOT_SECONDS and left > _WORTH_WORKERS:
            yield from _trained_by_workers(recipe, source, units[done:], n_jobs)
            return
        yield from _trained_unit(recipe, [source] * len(unit), unit)


def _trained_unit(
    recipe: Recipe, sources: Sequence[ShardSource | None], unit: Unit
) -> list[tuple[int, Any]]:
    """Return (number, teacher or None) for every teacher of a unit; each has its own source."""
    parts = [
        None if number is None or source is None else source.part(number)
        for number, source in zip(unit.wanted, sources, strict=True)
    ]
    if len(unit) == 1:
        (number,), (part,) = unit.wanted, parts
        assert number is not None
        assert part is not None
        return [(number, train_shard(recipe, *part, number))]
    # one that cannot be learned gets the fixed vote, and must not stop the others of its unit
    parts = [None if part is None or not can_be_learned(part[1]) else part for part in parts]
    models = trained_together(
        [recipe.fresh(number) for number in unit.numbers],
        parts,
        seed_of(recipe.random_state, unit.numbers[0], 2),
        recipe.settings,
    )
    return [
        (number, model)
        for number, model in zip(unit.wanted, models, strict=True)
        if number is not None
    ]


def _trained_by_workers(
    recipe: Recipe, source: ShardSource, units: Sequence[Unit], n_jobs: int | None
) -> Iterator[tuple[int, Any]]:
    # Without memory maps, which are read-only: a learner must find here what it finds in the main
    # process. One unit a task: how many joblib would put together follows from how long the first
    # ones took.
    pool = joblib.Parallel(n_jobs=n_jobs, return_as=return_form(), max_nbytes=None, batch_size=1)
    work = joblib.delayed(_train_in_worker)
    tasks = (work(os.getpid(), recipe, _sources_for_worker(source, unit), unit) for unit in units)
    for finished in results_of(results_of_pool(pool, tasks)):
        yield from finished


def _sources_for_worker(source: ShardSource, unit: Unit) -> list[ShardSource | None]:
    return [None if number is None else source_for_worker(source, number) for number in unit.wanted]


def results_of_pool(pool: joblib.Parallel, tasks: Iterable[Any]) -> Iterator[Any]:
    """Yield what the tasks return; the workers that start for them leave Ctrl-C to this process.

    A backend that returns a list raises when it is called, hence a generator around the call; it
    works until all is done, so that Ctrl-C must reach this process all along.
    """
    with interrupts_ignored() if pool.return_generator else nullcontext():
        results = pool(tasks)
    yield from results


def return_form() -> str:
    """Return how results can come back from the active joblib backend: one by one if it can."""
    backend, _ = joblib.parallel.get_active_backend()
    return "generator_unordered" if getattr(backend, "supports_return_generator", False) else "list"


def check_workers(n_jobs: int | None) -> None:
    """Refuse a number of worker processes that joblib would not take.

    Raises
    ------
    ParameterError
        If `n_jobs` is neither None nor an integer other than 0.
    """
    if n_jobs is not None and (
        isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0
    ):
        raise ParameterError(
            Parameter("n_jobs"), f" is {shown(n_jobs)}; it must be None or an integer other than 0."
        )


def refuse_joblib_on_dask() -> None:
    """Refuse joblib's Dask backend, which waits for ever, with idle workers, once Dask gives a
    task up.

    A worker that was killed or could not load a module does it: up to joblib 1.6 the backend notes
    the error and leaves out the callback that joblib waits for. And what a learner raises there
    stands in the workers' logs.

    Raises
    ------
    ParameterError
        If it is the active one.
    """
    backend, _ = joblib.parallel.get_active_backend()
    if type(backend).__name__ == _JOBLIB_ON_DASK:
        raise ParameterError(
            "joblib's backend is 'dask', which waits for ever where Dask gives a task up, as when a"
            " worker is killed; leave joblib.parallel_config(backend='dask') and give"
            " engine='dask://HOST:PORT' or engine=Client instead. Nothing was spent."
        )


def _train_in_worker(
    giver: int, recipe: Recipe, sources: Sequence[ShardSource | None], unit: Unit
) -> list[tuple[int, Any]]:
    end_with(giver)
    with one_thread():
        return _trained_unit(recipe, sources, unit)


def fixed_vote(number: int, n_classes: int) -> int:
    """Return the class for which a teacher that could not be trained always votes.

    A rule that reads no data.
    """
    return number % n_classes


def predicted(model: Classifier, block: Matrix, n_classes: int) -> IntArray:
    """Return one teacher's votes on a block as class indices.

    Raises
    ------
    ValueError
        If the prediction is not one declared class per row.
    """
    return as_votes(model.predict(block), n_rows(block), n_classes)


def as_votes(predictions: Any, length: int, n_classes: int) -> IntArray:
    """Return a teacher's predictions as class indices, of shape (length,).

    Raises
    ------
    ValueError
        If the prediction is not one declared class per row.
    """
    votes = np.asarray(predictions)
    if votes.ndim == 2 and votes.shape[1] == 1:
        votes = votes[:, 0]
    if votes.shape != (length,) or votes.dtype.kind not in "biufO":
        raise ValueError("a prediction must be one class per row")
    # Through floats, which compare nan and fractions away; class indices are exact in them.
    numbers = votes.astype(np.float64)
    if not bool(((numbers >= 0) & (numbers < n_classes) & (numbers == np.floor(numbers))).all()):
        raise ValueError("a prediction must be a declared class")
    return numbers.astype(np.int64)
