"""Count the votes of fitted teachers on public points: linear ones stacked, those that vote
together in their stacks, the others one by one."""

import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from secretballot._seeded import seed_of
from secretballot._typing import Classifier, CountArray
from secretballot.foreign_code import isolated, result_of, result_once_seeded
from secretballot.teachers.executors import Workers
from secretballot.teachers.linear import LinearStack, as_votes, predicted
from secretballot.teachers.rows import block_bounds, n_rows, row_block
from secretballot.teachers.training import alone, each_slot, pay_processes, slots_of, works_together

# Votes of a group held at once: 2**19 of eight bytes are 4 MiB.
_TOGETHER_CELLS = 2**19


class Poll(NamedTuple):
    """What teachers are asked; public.

    Attributes
    ----------
    X : table of shape (n_queries, n_features)
    n_classes : int
    block_rows : int
        Rows given to a learner at once.
    random_state : int
        From which the global random states are seeded while a learner predicts.
    settings : mapping
        scikit-learn's configuration while a learner predicts.
    """

    X: Any
    n_classes: int
    block_rows: int
    random_state: int
    settings: Mapping[str, Any]

    def no_votes(self) -> CountArray:
        """Return counts of 0, of shape (n_queries, n_classes)."""
        return np.zeros((n_rows(self.X), self.n_classes), dtype=np.int32)

    def blocks(self, block_rows: int | None = None) -> Iterator[tuple[slice, Any]]:
        """Yield copies of consecutive rows, and their places."""
        for start, stop in block_bounds(n_rows(self.X), block_rows or self.block_rows):
            yield slice(start, stop), row_block(self.X, start, stop)


def fixed_vote(number: int, n_classes: int) -> int:
    """Return the class for which a teacher that could not be trained always votes.

    A rule that reads no data.
    """
    return number % n_classes


def count_ballots(teachers: Mapping[int, Classifier | None], poll: Poll) -> CountArray:
    """Count the votes of some teachers, asked one by one.

    Parameters
    ----------
    teachers : mapping of teacher number to fitted learner or None
        None, and any learner that fails on any block, votes its fixed class on every row.
    poll : Poll

    Returns
    -------
    ndarray of shape (n_queries, n_classes), int32

    Raises
    ------
    ResourceError
        If the machine failed, and not a learner at its shard.
    """
    counts = poll.no_votes()
    for number, model in teachers.items():
        # a teacher's randomness follows from its number, not from who was asked before it
        work, seed = partial(_votes_on_all, model, poll), seed_of(poll.random_state, number, 1)
        _add_votes(counts, number, None if model is None else alone(work, seed, poll.settings))
    return counts


def _votes_on_all(model: Any, poll: Poll) -> npt.NDArray[Any]:
    votes = np.empty(n_rows(poll.X), dtype=np.min_scalar_type(poll.n_classes))
    for rows, block in poll.blocks():
        votes[rows] = predicted(model, block, poll.n_classes)
    return votes


def _add_votes(counts: CountArray, number: int, votes: npt.NDArray[Any] | None) -> None:
    # a teacher that cannot vote still casts one vote, fixed by its number: how many failed is
    # private
    cast = fixed_vote(number, counts.shape[1]) if votes is None else votes
    counts[np.arange(len(counts)), cast] += 1


def counted_votes(
    teachers: Mapping[int, Any],
    poll: Poll,
    *,
    workers: Workers | None,
    kept: dict[int, list[LinearStack]],
) -> CountArray:
    """Return the counts of some teachers' votes on all rows of a table.

    Parameters
    ----------
    teachers : mapping of teacher number to fitted learner or None
        None votes its fixed class.
    poll : Poll
    workers : Workers, optional
        Of those that are asked one by one the first are asked here and timed; the others there, if
        that repays sending them.
    kept : dict
        Stacks of these teachers, by the number of columns: what one table's count leaves for the
        next.

    Returns
    -------
    ndarray of shape (n_queries, n_classes), int32

    Raises
    ------
    ResourceError
        If the machine failed.
    """
    # linear teachers first, then those that vote together; what either leaves is asked one by one
    rest, counts = dict(teachers), poll.no_votes()
    for stack in LinearStack.gather(rest, poll.X, poll.n_classes, kept):
        counted = _stack_counts(stack, poll)
        if counted is not None:
            counts += counted
            rest = {number: model for number, model in rest.items() if number not in stack.models}
    for slots in _voting_groups(rest, poll.X, len(teachers)):
        for rows, block in poll.blocks(max(poll.block_rows, _TOGETHER_CELLS // len(slots))):
            _count_together(slots, block, counts[rows], poll)
        rest = {number: model for number, model in rest.items() if slots.get(number) is None}
    return sum(_counted_apart(rest, poll, workers), counts)


def _counted_apart(
    teachers: dict[int, Any], poll: Poll, workers: Workers | None
) -> Iterator[CountArray]:
    """Yield the counts of some teachers after others, each asked by its own `predict`."""
    started, numbers = time.monotonic(), list(teachers)
    for done, number in enumerate(numbers):
        if workers is not None and pay_processes(started, done, len(numbers)):
            rest = numbers[done:]
            # one group for each worker, so that the points are sent once to each
            dealt = [rest[first :: workers.n_slots] for first in range(workers.n_slots)]
            tasks = (({n: teachers[n] for n in group},) for group in dealt if group)
            with closing(workers.results(count_ballots, tasks, poll)) as finished:
                yield from finished
            return
        yield count_ballots({number: teachers[number]}, poll)


def _stack_counts(stack: LinearStack, poll: Poll) -> CountArray | None:
    """Return the votes of linear teachers, or None if one of them fails and all must be asked one
    by one."""
    counts = poll.no_votes()

    def count() -> CountArray:
        with isolated(seed_of(poll.random_state), poll.settings):
            for rows, block in poll.blocks():
                stack.count(block, counts[rows])
        return counts

    return result_of(count)


def _voting_groups(
    teachers: Mapping[int, Any], table: Any, n_teachers: int
) -> list[dict[int, Any]]:
    """Return the teachers that vote together, by number, None for one whose slot is empty.

    Groups are of one size, and each teacher has a place of its own.
    """
    able = {number: model for number, model in teachers.items() if works_together(model)}
    if not able:
        return []
    one = next(iter(able.values()))
    able = {number: model for number, model in able.items() if type(model) is type(one)}
    n_slots = slots_of(one, table, n_teachers)
    if n_slots == 1:
        return []
    firsts = sorted({number - number % n_slots for number in able})
    return [{number: able.get(number) for number in range(at, at + n_slots)} for at in firsts]


def _count_together(slots: Mapping[int, Any], block: Any, counts: CountArray, poll: Poll) -> None:
    """Add a group's votes on one block to `counts`, of shape (n_rows, n_classes).

    A teacher that cannot vote on a block votes its fixed class there.
    """
    members = [number for number, model in slots.items() if model is not None]
    predict_shards = type(slots[members[0]]).predict_shards
    found = each_slot(
        lambda kept: list(predict_shards(kept, block)),
        list(slots.values()),
        seed_of(poll.random_state, min(slots), 3),
        poll.settings,
    )
    for number, answer in zip(slots, found, strict=True):
        if number in members:
            own = partial(as_votes, answer, len(counts), counts.shape[1])
            _add_votes(counts, number, None if answer is None else result_once_seeded(own))
