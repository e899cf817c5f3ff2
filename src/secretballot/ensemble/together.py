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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np

from secretballot._typing import CountArray, IntArray
from secretballot.ensemble.ballots import as_votes, fixed_vote
from secretballot.foreign_code import isolated, result_once_seeded

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

    return _each_slot(work, parts)


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


def count_together(
    group: Group, block: Any, counts: CountArray, seed: int, settings: Mapping[str, Any]
) -> None:
    """Add a group's votes on one block to `counts`, of shape (n_rows, n_classes).

    A teacher that cannot vote on a block votes its fixed class there.

    Raises
    ------
    ResourceError
        If the machine failed.
    """
    n_classes = counts.shape[1]
    predict_shards = type(next(model for model in group.models if model is not None)).predict_shards

    def work(kept: Sequence[Any]) -> list[Any]:
        with isolated(seed, settings):
            return list(predict_shards(kept, block))

    answers = _each_slot(work, group.models)
    every_row = np.arange(len(counts))
    for number, slot in group.members.items():
        votes = None
        if answers[slot] is not None:
            votes = result_once_seeded(partial(as_votes, answers[slot], len(counts), n_classes))
        counts[every_row, fixed_vote(number, n_classes) if votes is None else votes] += 1


def _works_together(learner: Any) -> bool:
    return all(
        callable(getattr(learner, name, None)) for name in ("slots", "fit_shards", "predict_shards")
    )


def _slots_of_learner(learner: Any, table: Any) -> int:
    """Return how many slots a learner takes for such a table, whose width alone is looked at."""
    if len(table.shape) != 2:
        return 1
    return result_once_seeded(lambda: int(learner.slots(int(table.shape[1])))) or 1


def _each_slot(work: Callable[[Sequence[Any]], list[T | None]], slots: Sequence[Any]) -> list[Any]:
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
