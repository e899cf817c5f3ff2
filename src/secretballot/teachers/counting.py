"""Ask fitted teachers for their votes on public points, block by block, and count them."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from secretballot._seeded import seed_of
from secretballot._typing import Classifier, CountArray, Matrix
from secretballot.foreign_code import isolated, one_thread, result_of, result_once_seeded
from secretballot.teachers.linear import LinearStack
from secretballot.teachers.rows import block_bounds, n_rows, row_block
from secretballot.teachers.training import (
    Group,
    as_votes,
    each_slot,
    fixed_vote,
    predicted,
    voting_groups,
)
from secretballot.teachers.workers import end_with


def count_ballots(
    teachers: Mapping[int, Classifier | None],
    X: Matrix,
    n_classes: int,
    block_rows: int,
    random_state: int,
    settings: Mapping[str, Any],
) -> CountArray:
    """Count the votes of some teachers on every row of `X`.

    Parameters
    ----------
    teachers : mapping of teacher number to fitted learner or None
        None, and any learner that fails on any block, votes its fixed class on every row.
    X : table of shape (n_queries, n_features)
    block_rows : int
        Rows given to a learner at once.
    random_state : int
        Public number from which the global random states are seeded while a learner predicts.
    settings : mapping
        scikit-learn's configuration while a learner predicts.

    Returns
    -------
    ndarray of shape (n_queries, n_classes), int32

    Raises
    ------
    ResourceError
        If the machine failed, and not a learner at its shard.
    """
    counts = np.zeros((n_rows(X), n_classes), dtype=np.int32)
    every_row = np.arange(n_rows(X))
    for number, model in teachers.items():
        # a teacher's randomness follows from its number, not from who was asked before it
        seed = seed_of(random_state, number, 1)
        votes = (
            None
            if model is None
            else _votes_on_all(model, X, n_classes, block_rows, seed, settings)
        )
        # a teacher that cannot vote still casts one vote, fixed by its number: how many failed is
        # private
        if votes is None:
            counts[:, fixed_vote(number, n_classes)] += 1
        else:
            counts[every_row, votes] += 1
    return counts


def count_in_worker(giver: int, *args: Any) -> tuple[int, CountArray]:
    """Count as `count_ballots` does, in a worker of the process `giver`.

    Return the number of teachers too.
    """
    end_with(giver)
    with one_thread():
        return len(args[0]), count_ballots(*args)


def _votes_on_all(
    model: Classifier,
    X: Matrix,
    n_classes: int,
    block_rows: int,
    seed: int,
    settings: Mapping[str, Any],
) -> npt.NDArray[Any] | None:
    votes = np.empty(n_rows(X), dtype=np.min_scalar_type(n_classes))

    def vote() -> npt.NDArray[Any]:
        with isolated(seed, settings):
            for start, stop in block_bounds(n_rows(X), block_rows):
                votes[start:stop] = predicted(model, row_block(X, start, stop), n_classes)
        return votes

    return result_once_seeded(vote)


# Votes of a group held at once: 2**19 of eight bytes are 4 MiB.
_TOGETHER_CELLS = 2**19

#: From teachers that are not linear to (how many were asked, their counts), in parts.
Apart = Callable[[dict[int, Any]], Iterable[tuple[int, CountArray]]]


def counted_votes(
    teachers: Mapping[int, Any],
    table: Any,
    n_classes: int,
    block_rows: int,
    random_state: int,
    settings: Mapping[str, Any],
    *,
    apart: Apart | None = None,
    cast: Callable[[int], None] | None = None,
    kept: dict[Hashable, list[LinearStack]] | None = None,
) -> CountArray:
    """Return the counts of some teachers' votes on all rows of a table.

    Parameters
    ----------
    teachers : mapping of teacher number to fitted learner or None
        None votes its fixed class.
    table : table of shape (n_queries, n_features)
    n_classes, block_rows, random_state, settings
        As for `count_ballots`.
    apart : callable, optional
        How teachers that are not linear are asked; one by one, here, by default.
    cast : callable, optional
        Called with the number of votes that were cast since it was called last.
    kept : dict, optional
        Of these teachers and no others: what one table's count leaves for the next.

    Returns
    -------
    ndarray of shape (n_queries, n_classes), int32

    Raises
    ------
    ResourceError
        If the machine failed.
    """
    # linear teachers first, then those that vote together; what either leaves is asked one by one
    rest = dict(teachers)
    counts = np.zeros((n_rows(table), n_classes), dtype=np.int32)
    tell = _tell_nobody if cast is None else cast
    for stack in LinearStack.gather(rest, table, n_classes, kept):
        counted = _stack_counts(stack, table, n_classes, block_rows, random_state, settings, tell)
        if counted is not None:
            counts += counted
            rest = {number: model for number, model in rest.items() if number not in stack.models}
    for group in voting_groups(rest, table):
        counted = np.zeros_like(counts)
        rows = max(block_rows, _TOGETHER_CELLS // len(group.models))
        for start, stop in block_bounds(n_rows(table), rows):
            count_together(
                group,
                row_block(table, start, stop),
                counted[start:stop],
                seed_of(random_state, group.first, 3),
                settings,
            )
            tell((stop - start) * len(group.members))
        counts += counted
        rest = {number: model for number, model in rest.items() if number not in group.members}
    asked = (
        ((1, count_ballots({number: model}, table, n_classes, block_rows, random_state, settings)))
        for number, model in rest.items()
    )
    for done, counted in asked if apart is None else apart(rest):
        counts += counted
        tell(done * n_rows(table))
    return counts


def _stack_counts(
    stack: LinearStack,
    table: Any,
    n_classes: int,
    block_rows: int,
    random_state: int,
    settings: Mapping[str, Any],
    tell: Callable[[int], None],
) -> CountArray | None:
    """Return the votes of linear teachers, or None if one of them fails and all must be asked one
    by one."""
    counts = np.zeros((n_rows(table), n_classes), dtype=np.int32)

    def count(start: int, stop: int) -> bool:
        with isolated(seed_of(random_state), settings):
            stack.count(row_block(table, start, stop), counts[start:stop])
        return True

    for start, stop in block_bounds(n_rows(table), block_rows):
        if not result_of(partial(count, start, stop)):
            return None
        tell((stop - start) * len(stack.models))
    return counts


def _tell_nobody(votes: int) -> None:
    """Tell nobody."""


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

    answers = each_slot(work, group.models)
    every_row = np.arange(len(counts))
    for number, slot in group.members.items():
        votes = None
        if answers[slot] is not None:
            votes = result_once_seeded(partial(as_votes, answers[slot], len(counts), n_classes))
        counts[every_row, fixed_vote(number, n_classes) if votes is None else votes] += 1
