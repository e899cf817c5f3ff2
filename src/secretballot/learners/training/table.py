"""The private records of a fit: a table in memory, or one on disk."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import joblib
import numpy as np

from secretballot._typing import IntArray
from secretballot._validation import shown_classes
from secretballot.core.private import Private
from secretballot.data.stored import PERSONS, SHARDS, RowBlock, StoredShards, StoredTable
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.learners.training.inputs import (
    Target,
    as_matrix,
    check_same_columns,
    n_columns,
    with_public_types,
)
from secretballot.learners.training.private_rows import (
    PrivateRows,
    refuse_unlike_cells,
)
from secretballot.learners.training.shards import (
    assign_shards,
    assign_stored_shards,
    fresh_key,
    one_record_each,
    persons_together,
)
from secretballot.learners.training.trial_fit import check_teacher
from secretballot.teachers.ensemble import TeacherEnsemble
from secretballot.teachers.records import unit_numbers
from secretballot.teachers.rows import block_bounds, is_sparse, n_rows, row_block, take_rows
from secretballot.teachers.training import Shards, ShardSource

#: Cells of a part of a table in memory; several parts for each worker are on their way at a time.
_PART_CELLS = 2**21
_HOLDS_RECORDS = (
    "X_public holds private records, more of them than chance explains, and public points are"
    " published; give points that are known to everybody, and X with all its equal rows, or, if the"
    " features are public and the labels alone private, give public_features=True and no X_public."
    " Nothing was spent."
)


class Block(NamedTuple):
    """Some private records.

    Attributes
    ----------
    rows : array, sparse matrix or frame of shape (n, n_features)
    targets : ndarray, shape (n,) or (n, n_labels)
        As `Target.read` returns them.
    units : array of shape (n,), or None
        Numbers of their units, or ids; None where every record is one.
    """

    rows: Any
    targets: Any
    units: Any

    def taken(self, start: int, stop: int, order: IntArray | None = None) -> "Block":
        """Return a copy of the records from place to place, in an order if one is given."""
        if order is None:
            places: Any = slice(start, stop)
            rows = row_block(self.rows, start, stop)
        else:
            places = order[start:stop]
            rows = take_rows(self.rows, places)
        return Block(rows, self.targets[places], None if self.units is None else self.units[places])

    def pieces(self, most: int, order: IntArray | None = None) -> "Iterator[Block]":
        """Yield all records, or those that an order names, at most so many at once."""
        n = n_rows(self.rows) if order is None else len(order)
        return (self.taken(start, stop, order) for start, stop in block_bounds(n, most))

    def __repr__(self) -> str:
        return "Block(<private>)"


#: Loads some records. It can be pickled.
Loader = Callable[[], Block]
#: Yields what loads all records, each time it is called.
Parts = Callable[[], Iterator[Loader]]


class Table(Private):
    """Private records with their targets, in memory.

    Attributes
    ----------
    unit : {"record", "user"}
    unit_name : str or None
    n_records : int
        Private, but under replace-one.
    most_kept : int
        Numbers of four bytes that may be kept beside it.
    """

    most_kept = 2**29
    _refusal = "a private table is not shown, copied or kept; give it to a learner."

    def __init__(self, X: Any, targets: Any, units: Any, unit_name: str | None) -> None:
        self._records, self._targets, self._units = X, targets, units
        self._like = X  # has the columns of the records, and their missing values
        self.unit = "record" if units is None else "user"
        self.unit_name = None if units is None else unit_name
        self.n_records = n_rows(X)

    def parts(self, *, send: bool = False) -> AbstractContextManager[Parts]:
        """Give all records in parts, as long as the context lasts.

        Parameters
        ----------
        send : bool
            Whether loaders hold rows that could be read from files.

        Returns
        -------
        context manager of Parts
            All records of a unit are in one part, one after the other; units have numbers, which
            ascend.
        """
        persons, order, starts = self._persons, None, np.arange(self.n_records)
        if persons is not None:
            order = np.argsort(persons, kind="stable")
            starts = np.flatnonzero(np.diff(persons[order], prepend=-1))
        size = max(1, _PART_CELLS // max(1, n_columns(self._records)))
        # a part begins where a unit does
        begun = np.searchsorted(starts, np.arange(0, self.n_records, size))
        bounds = np.unique([*starts[begun[begun < len(starts)]], self.n_records]).tolist()
        whole = Block(self._records, self._targets, persons)

        def loaders() -> Iterator[Loader]:
            for start, stop in pairwise(bounds):
                yield partial(Block, *whole.taken(start, stop, order))

        return nullcontext(loaders)

    @property
    def _persons(self) -> IntArray | None:
        """The number of each record's unit, None where every record is one."""
        return None if self._units is None else unit_numbers(self._units, self.n_records)

    def one_of_each_unit(self, most: int) -> Iterator[Block]:
        """Yield one record of every unit, at most so many at once."""
        # one key for all parts: which units are together then has no say in who is chosen
        key = fresh_key()
        for part in self._parts_with_ids():
            chosen = None
            if part.units is not None:
                chosen = one_record_each(part.units, n_rows(part.rows), key)
            yield from part._replace(units=None).pieces(most, chosen)

    def _parts_with_ids(self) -> Iterator[Block]:
        """Yield records with the ids of their units, all records of a unit in one block."""
        yield Block(self._records, self._targets, self._units)

    def refuse_points(self, X_public: Any) -> None:
        """Refuse public points, of shape (n_public, n_features), that are the records."""
        rows = PrivateRows([X_public])
        if isinstance(self._records, StoredTable):
            rows.add_stored(self._records)
        else:
            rows.add(self._records, self._persons)
        if rows.hold(0):
            raise DataError(_HOLDS_RECORDS)

    def note_columns(self, learner: Any) -> None:
        """Note at a learner how many columns there are, and their names if they have any."""
        learner.n_features_in_ = n_columns(self._like)
        names = getattr(self._like, "columns", [None])
        if all(isinstance(name, str) for name in names):
            learner.feature_names_in_ = np.asarray(names, dtype=object)

    @property
    def targets(self) -> Any:
        """The targets of all records; private."""
        return self._targets

    @property
    def identity(self) -> tuple[Any, ...]:
        """All that teachers of these records depend on besides settings; private."""
        return self._records, self._targets, self._units

    def checked_teacher(self, teacher: Any, X_public: Any, target: Target) -> Any:
        """Return the learner to clone for every shard, after a trial with dummy targets at public
        points, of shape (n_public, n_features)."""
        return check_teacher(teacher, self._like, X_public, len(target.learnt))

    def shards(
        self, n_teachers: int, relation: str, vault: Path | None
    ) -> AbstractContextManager[tuple[ShardSource, Any]]:
        """Give the teachers' shards, and what stands for them in a digest; private.

        Parameters
        ----------
        n_teachers : int
        relation : {"add-remove", "replace-one"}
        vault : Path or None
            Where an interrupted fit finds the same shards again.
        """
        numbers = assign_shards(self.n_records, n_teachers, relation, self._units, vault)
        source = Shards(self._records, self._targets, numbers, n_teachers)
        return nullcontext((source, (self._records, self._targets, numbers)))

    def teachers(
        self,
        teacher: Any,
        n_teachers: int,
        relation: str,
        vault: Path | None,
        random_state: int | None,
        **training: Any,
    ) -> TeacherEnsemble:
        """Return one teacher for every shard; `training` as for `TeacherEnsemble.of_shards`."""
        with self.shards(n_teachers, relation, vault) as (source, content):
            # The digest ties kept teachers to these very shards: a fit that is taken up again with
            # other data finds none of them.
            kept = None if vault is None else (vault, joblib.hash(content, hash_name="sha1"))
            return TeacherEnsemble.of_shards(
                teacher, source, kept=kept, random_state=random_state or 0, **training
            )

    def __repr__(self) -> str:
        return f"{type(self).__name__}(unit={self.unit!r}, records=<private>)"


class TableOnDisk(Table):
    """Private records with their classes, of which a bounded part is held at a time; teachers get
    one file for each shard.

    Rows encoded by a schema have no missing values and no names, like the public points.
    """

    most_kept = 2**26

    def __init__(self, table: StoredTable, X_public: Any) -> None:
        self._records, self._like, self._units = table, X_public, None
        self.unit, self.unit_name = table.unit, table.unit_name
        self.n_records = table.count_rows()

    @contextmanager
    def parts(self, *, send: bool = False) -> Iterator[Parts]:
        with _units_together(self._records) as source:
            yield lambda: (partial(_part_by_unit, load) for load in source.loaders(send=send))

    def _parts_with_ids(self) -> Iterator[Block]:
        with _units_together(self._records) as source:
            for load in source.loaders():
                part = Block(*load())
                if part.units is not None:
                    # whole hashes stand for the ids: which record of a unit is chosen follows from
                    # its own
                    halves = part.units.astype(object)
                    part = part._replace(units=[high << 64 | low for high, low in halves])
                yield part

    @property
    def identity(self) -> tuple[Any, ...]:
        return (self._records.identity,)

    @contextmanager
    def shards(
        self, n_teachers: int, relation: str, vault: Path | None
    ) -> Iterator[tuple[ShardSource, Any]]:
        # shards hold private records: where no vault keeps them they go after the training
        place: Any = nullcontext(vault)
        if vault is None:
            place = TemporaryDirectory(dir=self._records.vault, prefix=SHARDS)
        with place as folder:
            dealt = assign_stored_shards(self._records, n_teachers, relation, Path(folder))
            # shards have the form of the points: both are asked of the same teachers
            yield replace(dealt, sparse=is_sparse(self._like)), dealt.serial


def private_table(
    X: Any, y: Any, X_public: Any, target: Target, units: Any, unit_name: str | None
) -> tuple[Table, Any]:
    """Return the private records of a fit, and the public points with their types.

    Parameters
    ----------
    X : array, sparse matrix, list of rows or frame of shape (n_records, n_features), or StoredTable
        Private.
    y : as `Target.read` takes it, or None
        Private; None beside a stored table.
    X_public : like X, of shape (n_public, n_features)
    target : Target
    units : array of shape (n_records,), or None
    unit_name : str or None

    Raises
    ------
    ParameterError, DataError
        If they do not fit together, or a target is none; no value is named.
    """
    # Private columns take the types of public ones before anything else is done with them: a type
    # that all private rows chose together would reach every shard.
    points = as_matrix("X_public", X_public)
    if isinstance(X, StoredTable):
        _check_stored_table(X, y, units, points, target.classes)
        table: Table = TableOnDisk(X, points)
    else:
        if X_public is X:  # few equal rows may be chance
            raise DataError(_HOLDS_RECORDS)
        rows = as_matrix("X", X)
        check_same_columns(rows, points)
        given, rows = rows, with_public_types(rows, points)
        refuse_unlike_cells(given, rows, points)
        table = Table(rows, target.read(y, n_rows(rows)), units, unit_name)
    return table, with_public_types(points, points)


# --- a stored table in the place of X ---


@contextmanager
def _units_together(table: StoredTable) -> Iterator[StoredTable | StoredShards]:
    """Give a stored table in blocks, all records of a unit of privacy in one of them."""
    if table.unit == "record":
        yield table
        return
    # what counts a person once must have all of the person's records at hand
    with TemporaryDirectory(dir=table.vault, prefix=PERSONS) as folder:
        yield persons_together(table, folder)


def _part_by_unit(load: Callable[[], RowBlock]) -> Block:
    """Return stored rows with numbers in the place of the hashes of their units, which ascend."""
    block = Block(*load())
    if block.units is None:
        return block
    numbers = np.unique(block.units, axis=0, return_inverse=True)[1].reshape(-1)
    order = np.argsort(numbers, kind="stable")
    return block._replace(units=numbers).taken(0, len(order), order)


def _check_stored_table(
    table: StoredTable, y: Any, units: Any, X_public: Any, classes: Sequence[Any]
) -> None:
    """Refuse what does not go with a stored table: it holds classes and units itself."""
    for name, given in (("y", y), ("units", units)):
        if given is not None:
            raise ParameterError(
                Parameter(name),
                " is given beside a stored table, which holds its own; leave it out.",
            )
    # the table holds places among these classes, which mean others in another order
    if list(classes) != list(table.classes):
        raise ParameterError(
            Parameter("classes"),
            f" is {shown_classes(classes)}, and the table was stored with"
            f" {shown_classes(table.classes)}; give the same in the same order, and anything but"
            " classes with a table in memory.",
        )
    if hasattr(X_public, "iloc") or n_columns(X_public) != table.n_columns:
        kind = "a frame" if hasattr(X_public, "iloc") else f"of {n_columns(X_public)} columns"
        raise DataError(
            Parameter("X_public"),
            f" is {kind}, and the stored table has {table.n_columns}"
            " encoded columns; encode the public rows by the same schema: schema.encode(rows).",
        )
