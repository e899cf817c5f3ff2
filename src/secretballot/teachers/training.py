"""Train one learner per shard, each from its own part, public settings and randomness of its own.

Some learners are trained many at a time. Such a learner has, besides what a classifier has:

- ``slots(n_features, n_teachers)``: how many shards of so many it takes at once, a public number;
- ``fit_shards(learners, parts)``, a class method that takes one learner and one part for each slot,
  with None for a slot that is empty, and returns one result for each.

It promises that what comes out of a slot follows from what went into it, from the number of slots
and from the slot's place, bit for bit. What is done here keeps all else fixed: which teachers share
a stack, and their places, follow from their numbers; a slot without a shard stays in its place and
is empty; and where a stack fails, its parts are tried again in the same places with the others
empty, until the shard that made it fail is alone.
"""

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
import sklearn

from secretballot._seeded import seed_of
from secretballot._typing import BoolArray, FloatArray, IntArray, Matrix
from secretballot._validation import shown
from secretballot.data.stored import StoredShards
from secretballot.exceptions import ParameterError
from secretballot.foreign_code import isolated, one_thread, result_once_seeded
from secretballot.named_learners import check_learner
from secretballot.teachers.executors import Workers
from secretballot.teachers.rows import as_table, n_rows, take_rows

T = TypeVar("T")
Progress = Callable[[int, int], None]

#: Rows of one shard, of shape (n_records, n_features), and the indices of their classes.
Part = tuple[Any, IntArray]
#: Numbers of the teachers that are trained at once, one for each slot, and whether each is wanted.
Unit = tuple[tuple[int, bool], ...]

# Below this many seconds of work left, starting worker processes costs more than it saves.
_WORTH_WORKERS = 3.0
_PILOT_SECONDS = 0.5


@dataclass(frozen=True)
class Recipe:
    """What every shard shares: the unfitted learner, its own seeds, the public random state,
    scikit-learn's settings."""

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
        check_learner("teacher", teacher)
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
        seeds = {
            name: seed_of(self.random_state, number, place, own)
            for place, (name, own) in enumerate(self.seeds.items())
        }
        return model.set_params(**seeds) if seeds else model


class Shards:
    """Rows of the private table by shard, cut out one shard at a time."""

    def __init__(self, X: Matrix, y_index: IntArray, shards: IntArray, n_teachers: int) -> None:
        self.n_teachers = n_teachers
        self._X, self._y = as_table("X", X), y_index
        # stable: rows keep their order inside a shard, whatever the other shards hold
        order = np.argsort(shards, kind="stable")
        sizes = np.bincount(shards, minlength=n_teachers)
        self._rows = np.split(order, np.cumsum(sizes)[:-1])

    def part(self, number: int) -> Part:
        """Return a copy of one shard's rows and labels."""
        rows = self._rows[number]
        return take_rows(self._X, rows), self._y[rows]

    def loader(self, number: int, *, send: bool) -> Callable[[], Part]:
        """Return what holds one shard."""
        return partial(tuple, self.part(number))


#: Where the teachers' shards come from, one at a time: `part`, or a `loader` that can be pickled,
#: and holds the rows where they are sent or there is nothing to read them from. A shard that cannot
#: be read is no fault of its content and becomes no vote.
ShardSource = Shards | StoredShards


def _can_be_learned(y: IntArray) -> bool:
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
    if not _can_be_learned(y):
        return None

    def fit() -> Any:
        model = recipe.fresh(number)
        model.fit(X, y)
        return model

    return alone(fit, seed_of(recipe.random_state, number), recipe.settings)


def alone(work: Callable[[], T], seed: int, settings: Mapping[str, Any]) -> T | None:
    """Return what a learner makes of its own part, in silence and with global random states of its
    own; None where it fails.

    Parameters
    ----------
    work : callable
    seed : int
        Of the random states.
    settings : mapping
        scikit-learn's configuration.

    Raises
    ------
    ResourceError
        If the machine failed, and not the learner.
    """

    def isolated_work() -> T:
        with isolated(seed, settings):
            return work()

    return result_once_seeded(isolated_work)


def trained(
    recipe: Recipe,
    source: ShardSource,
    numbers: Sequence[int],
    workers: Workers | None,
    *,
    send: bool = False,
) -> Generator[tuple[int, Any]]:
    """Yield (number, teacher or None) as the teachers are finished, in any order.

    Parameters
    ----------
    recipe : Recipe
    source : ShardSource
    numbers : list of int
        Of the teachers that are not finished.
    workers : Workers, optional
        For processes of this machine, the first teachers are trained here and timed.
    send : bool
        Whether shards are sent though workers could read them.

    Raises
    ------
    ResourceError
        If the machine failed, here or where a task ran.
    DataError
        If a shard cannot be read, or teachers cannot be pickled.
    """
    started, units = time.monotonic(), _units_of(recipe.teacher, source, numbers)
    for done, unit in enumerate(units):
        if workers is not None and (not workers.here or pay_processes(started, done, len(units))):
            tasks = (
                (one, [source.loader(number, send=send) if go else None for number, go in one])
                for one in units[done:]
            )
            with closing(workers.results(_train_unit, tasks, recipe)) as finished:
                for some in finished:
                    yield from some
            return
        yield from _train_unit(
            unit, [partial(source.part, number) if go else None for number, go in unit], recipe
        )


def pay_processes(started: float, done: int, total: int) -> bool:
    """Return whether so much work is left that worker processes repay their start.

    Parameters
    ----------
    started : float
        When the work began, by the monotonic clock.
    done, total : int
        Pieces of it.
    """
    spent = time.monotonic() - started
    left = spent / max(1, done) * (total - done)
    return done > 0 and spent > _PILOT_SECONDS and left > _WORTH_WORKERS


def _train_unit(
    unit: Unit, loaders: Sequence[Callable[[], Part] | None], recipe: Recipe
) -> list[tuple[int, Any]]:
    """Return (number, teacher or None) for every wanted teacher of a unit.

    Parameters
    ----------
    unit : tuple of (int, bool)
    loaders : list of callable or None
        Return the shard of each that is wanted.
    recipe : Recipe
    """
    parts = [None if load is None else load() for load in loaders]
    if len(unit) == 1:
        ((number, _),), (part,) = unit, parts
        assert part is not None
        return [(number, train_shard(recipe, *part, number))]
    learners = [recipe.fresh(number) for number, _ in unit]
    fit_shards = type(learners[0]).fit_shards
    # one that cannot be learned gets the fixed vote, and must not stop the others of its unit
    models = each_slot(
        lambda kept: list(fit_shards(learners, kept)),
        [part if part is not None and _can_be_learned(part[1]) else None for part in parts],
        seed_of(recipe.random_state, unit[0][0], 2),
        recipe.settings,
    )
    return [(number, model) for (number, go), model in zip(unit, models, strict=True) if go]


def _units_of(teacher: Any, source: ShardSource, numbers: Sequence[int]) -> list[Unit]:
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
    n_slots = 1
    if numbers and all(callable(getattr(teacher, name, None)) for name in ("slots", "fit_shards")):
        shape = source.part(0)[0].shape
        if len(shape) == 2:
            slots = partial(teacher.slots, int(shape[1]), source.n_teachers)
            n_slots = result_once_seeded(lambda: int(slots())) or 1
    if n_slots == 1:
        return [((number, True),) for number in numbers]
    waiting = set(numbers)
    units = [
        tuple((number, number in waiting) for number in range(at, at + n_slots))
        for at in range(0, source.n_teachers, n_slots)
    ]
    return [unit for unit in units if any(go for _, go in unit)]


def each_slot(
    work: Callable[[Sequence[Any]], list[T | None]],
    slots: Sequence[Any],
    seed: int,
    settings: Mapping[str, Any],
) -> list[Any]:
    """Return what the work makes of every slot, as `alone`, None for the empty ones and those that
    make it fail."""
    filled = [place for place, what in enumerate(slots) if what is not None]
    results: list[Any] = [None] * len(slots)
    waiting = [filled] if filled else []
    while waiting:
        places = waiting.pop()
        kept = [slots[place] if place in places else None for place in range(len(slots))]
        done = alone(partial(work, kept), seed, settings)
        if done is not None and len(done) == len(slots):
            for place in places:
                results[place] = done[place]
        elif len(places) > 1:
            middle = len(places) // 2
            waiting += [places[:middle], places[middle:]]
    return results


def ballots(
    ask: Callable[[Recipe, int, Any, Any, Any], T],
    teacher: Any,
    source: ShardSource,
    X_public: Any,
    *,
    random_state: int = 0,
    progress: Progress | None = None,
) -> Iterator[T]:
    """Yield what a teacher of every shard says of the public points.

    Parameters
    ----------
    ask : `labels_of_shard` or `numbers_of_shard`
    teacher : classifier of 0 and 1, or regressor
    source : ShardSource
        Of parts with targets of 0 and 1, shape (n_records, n_labels), or numbers, shape
        (n_records,).
    X_public : table of shape (n_public, n_features)
    random_state : int
    progress : callable, optional
        Called with (teachers done, teachers in all).

    Raises
    ------
    ResourceError
        If the machine failed, and not a learner at its shard.

    Privacy
    -------
    Sensitivity : a ballot follows from the teacher's own shard, its number and public values.
    """
    recipe = Recipe.of(teacher, random_state)
    with one_thread():
        for number in range(source.n_teachers):
            ballot = ask(recipe, number, *source.part(number), X_public)
            if progress is not None:
                progress(number + 1, source.n_teachers)
            yield ballot


def labels_of_shard(
    recipe: Recipe, number: int, X: Any, Y: IntArray, points: Any
) -> tuple[BoolArray, FloatArray]:
    """Return what a teacher names at the public points, and how sure it is, shapes (n_public,
    n_labels).

    One copy of it learns each label. A label that the shard has throughout, or nowhere, is named
    throughout, or nowhere; one that cannot be learnt there is not named.
    """
    named = np.zeros((n_rows(points), Y.shape[1]), dtype=bool)
    sure = np.zeros(named.shape)
    for label, has in enumerate(Y.T if len(Y) else ()):
        if (has == has[0]).all():
            named[:, label], sure[:, label] = bool(has[0]), float(has[0])
            continue
        # of the teacher and the label alone: a ballot depends on no other shard
        seed = seed_of(recipe.random_state, number, 3, label)
        work = partial(_named_points, recipe, number, X, has, points)
        found = alone(work, seed, recipe.settings)
        if found is not None:
            named[:, label], sure[:, label] = found
    return named, sure


def numbers_of_shard(recipe: Recipe, number: int, X: Any, y: FloatArray, points: Any) -> FloatArray:
    """Return the numbers that a teacher predicts at the public points, shape (n_public,).

    One that cannot be trained, or asked, predicts no number anywhere. A target that is nan leaves
    its record out.
    """
    known, found = np.flatnonzero(~np.isnan(y)), None
    if len(known):
        work = partial(_predicted_numbers, recipe, number, take_rows(X, known), y[known], points)
        # the seed is the teacher's own: a ballot depends on no other shard
        seed = seed_of(recipe.random_state, number, 3)
        found = alone(work, seed, recipe.settings)
    return np.full(n_rows(points), np.nan) if found is None else np.asarray(found)


def _named_points(
    recipe: Recipe, number: int, X: Any, has: IntArray, points: Any
) -> tuple[BoolArray, FloatArray]:
    """Return which points a learner of this shard gives the label, and how sure it is of that."""
    model = recipe.fresh(number).fit(X, has)
    labels = np.asarray(model.predict(points), dtype=np.float64)
    if labels.shape != (n_rows(points),) or not np.isin(labels, (0.0, 1.0)).all():
        raise ValueError("a prediction must be 0 or 1 per row")
    sure = labels
    if hasattr(model, "predict_proba"):
        shares = np.asarray(model.predict_proba(points), dtype=np.float64)
        sure = shares[:, list(model.classes_).index(1)]
    return labels == 1, sure


def _predicted_numbers(
    recipe: Recipe, number: int, X: Any, y: FloatArray, points: Any
) -> FloatArray:
    """Return what a learner of this shard predicts at the points, shape (n_points,)."""
    model = recipe.fresh(number).fit(X, y)
    numbers = np.asarray(model.predict(points), dtype=np.float64)
    if numbers.shape == (n_rows(points), 1):
        numbers = numbers[:, 0]
    if numbers.shape != (n_rows(points),):
        raise ValueError("a prediction must be one number per row")
    return numbers
