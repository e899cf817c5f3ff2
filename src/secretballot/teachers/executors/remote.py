"""Teachers that stay with the workers of a cluster: the driver has handles, and sees sums."""

import itertools
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

import numpy as np
import sklearn

from secretballot._typing import CountArray
from secretballot.exceptions import DataError
from secretballot.teachers.executors.cluster import Cluster, Ref, raise_trouble
from secretballot.teachers.executors.tasks import (
    Packed,
    add_counts,
    keep_teacher,
    train_teacher,
    versions_here,
    vote,
)
from secretballot.teachers.rows import n_rows
from secretballot.teachers.training import Recipe, ShardSource, source_for_worker

#: Tasks in the cluster at once, for each that can run: enough to keep every worker busy.
_AHEAD = 8
#: Voting tasks for each that can run, so that slow and fast teachers even out.
_GROUPS = 4
#: How many counts one task adds up.
_FAN_IN = 8


class RemoteTeachers:
    """Teachers in a cluster, by number.

    Parameters
    ----------
    cluster : Cluster
    n_teachers : int
    """

    def __init__(self, cluster: Cluster, n_teachers: int) -> None:
        self._cluster = cluster
        self.n_teachers = n_teachers
        self._refs: dict[int, Ref] = {}

    def add(self, models: Mapping[int, Any]) -> None:
        """Take in teachers that were trained before."""
        for number, model in models.items():
            self._refs[number] = self._cluster.submit(keep_teacher, _packed_value(model))

    def train(
        self, recipe: Recipe, source: ShardSource, numbers: Sequence[int], *, send: bool = False
    ) -> Generator[int, None, None]:
        """Train teachers, and yield the number of each as it is finished.

        Parameters
        ----------
        recipe : Recipe
        source : ShardSource
        numbers : sequence of int
            Of the teachers.
        send : bool
            Whether shards are sent with their tasks though workers could read them. So many are
            read here at a time as tasks wait or run.

        Raises
        ------
        ResourceError
            If the machine failed, here or in the cluster.
        DataError
            If a shard cannot be read, or the teachers cannot be pickled.
        """
        most = _AHEAD * self._cluster.n_slots + _AHEAD
        waiting, running = iter(numbers), dict[Ref, int]()
        try:
            while True:
                for number in itertools.islice(waiting, most - len(running)):
                    part = source.sent(number) if send else source_for_worker(source, number)
                    work = _packed_value((recipe, part))
                    self._refs[number], trouble = self._cluster.submit_training(
                        train_teacher, versions_here(), work, number
                    )
                    running[trouble] = number
                if not running:
                    return
                for ref in self._cluster.some_done(list(running)):
                    raise_trouble(self._cluster.result(ref))
                    yield running.pop(ref)
        finally:
            # an error, Ctrl-C, or a caller that wants no more
            if running:
                self._cluster.cancel(
                    [*running, *(self._refs[number] for number in running.values())]
                )

    def model(self, number: int) -> Any:
        """Return one teacher, brought here; to be kept in the vault."""
        self._cluster.some_done([self._refs[number]])  # it may have been lost since
        found = self._cluster.result(self._refs[number])
        packed = found[0] if isinstance(found, tuple) else found
        return packed.value()

    def counts(
        self,
        table: Any,
        n_classes: int,
        block_rows: int,
        random_state: int,
        cast: Callable[[int], None],
    ) -> CountArray:
        """Return the votes of all teachers on a public table, added up in the cluster.

        Parameters
        ----------
        table : table of shape (n_queries, n_features)
        n_classes, block_rows, random_state
            As for `count_ballots`.
        cast : callable
            Called with the number of votes that were cast since it was called last.

        Raises
        ------
        ResourceError
            If the machine failed, here or in the cluster.
        """
        points = self._cluster.shared(_packed_value(table))
        about = _packed_value((n_classes, block_rows, random_state, sklearn.get_config()))
        running: dict[Ref, int] = {}
        for group in self._voting_groups():
            teachers = [self._refs[number] for number in group]
            ref = self._cluster.submit(vote, versions_here(), about, points, group, *teachers)
            running[ref] = len(group)
        added, total = self._sum_of(list(running))
        try:
            while running:
                for ref in self._cluster.some_done(list(running)):
                    cast(running.pop(ref) * n_rows(table))
            self._cluster.some_done([total])
            counted = self._cluster.result(total)
        # an interrupt, too: tasks that nobody waits for would hold the workers
        except BaseException:
            self._cluster.cancel([*running, *added])
            raise
        raise_trouble(counted)
        return np.array(counted, dtype=np.int32)

    def _voting_groups(self) -> list[list[int]]:
        """Return the teachers in groups that vote in one task, each of teachers of one place."""
        numbers = sorted(self._refs)
        places: dict[str, list[int]] = {}
        found = self._cluster.places([self._refs[number] for number in numbers])
        for number, place in zip(numbers, found, strict=True):
            places.setdefault(place, []).append(number)
        size = -(-len(numbers) // (_GROUPS * self._cluster.n_slots))
        return [
            group[at : at + size] for group in places.values() for at in range(0, len(group), size)
        ]

    def _sum_of(self, counts: list[Ref]) -> tuple[list[Ref], Ref]:
        """Return the tasks that add up, a tree of them, and the last one."""
        tasks: list[Ref] = []
        level = counts
        while len(level) > 1 or not tasks:
            level = [
                self._cluster.submit(add_counts, *level[at : at + _FAN_IN])
                for at in range(0, len(level), _FAN_IN)
            ]
            tasks += level
        return tasks, level[0]


def _packed_value(value: Any) -> Packed:
    """Return a value packed for the cluster.

    Raises
    ------
    DataError
        If it cannot be pickled.
    """
    try:
        return Packed.of(value)
    except MemoryError:
        raise
    except Exception:
        unpicklable = True
    assert unpicklable
    raise DataError(
        "The teacher or its data cannot be pickled, so they cannot be sent to a cluster; use"
        " another learner, or engine='local'."
    )
