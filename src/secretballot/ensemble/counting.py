"""Count the votes of fitted teachers on public points: linear ones stacked, those that vote
together in their stacks, the others one by one.

The same here and in a worker of a cluster.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np

from secretballot._seeded import seed_of
from secretballot._typing import CountArray
from secretballot.ensemble.ballots import count_ballots
from secretballot.ensemble.linear import LinearStack
from secretballot.ensemble.rows import block_bounds, n_rows, row_block
from secretballot.ensemble.together import count_together, voting_groups
from secretballot.foreign_code import isolated, result_of

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
