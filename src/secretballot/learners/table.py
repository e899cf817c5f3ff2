"""The private records of a fit, in memory or on disk: which record goes to which teacher, or
represents its unit, and what ties finished teachers to their shards.

Whether rows that are to be public are private ones, more of them than chance explains, and whether
private columns say what public ones do, is computed from private rows and is for the curator alone:
it decides whether something is refused before it is paid, and changes no release. The refusal is
not for publication (`docs/explanation/threat-model.md`)."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import betainc

from secretballot._typing import IntArray, Values
from secretballot._validation import (
    RELATIONS,
    check_choice,
    check_count,
    check_probability,
    refusal,
    shown,
    shown_classes,
)
from secretballot.core.noise import entropy_bytes
from secretballot.core.partition import KeyedHashPartition, PositionPartition, shards_of_digests
from secretballot.core.private import Private
from secretballot.data.stored import (
    PERSONS,
    SHARDS,
    RowBlock,
    StoredShards,
    StoredTable,
    dealt_shards,
    forget_shards,
)
from secretballot.exceptions import Argument, DataError, Parameter, ParameterError
from secretballot.foreign_code import result_of
from secretballot.learners.inputs import Target, as_matrix, n_columns, with_public_types
from secretballot.teachers.ensemble import Shards, ShardSource
from secretballot.teachers.rows import (
    block_bounds,
    check_ids,
    is_sparse,
    n_rows,
    row_block,
    take_rows,
    unit_numbers,
)
from secretballot.vault import read_secret, write_secret

_Hashes = NDArray[np.uint64]
_NO_HASHES: _Hashes = np.empty(0, dtype=np.uint64)

_MOST_SAMPLED = 1 << 17  # values by which chance is estimated: 3 MiB
#: Public rows that exactly one private unit has are refused, and those that two have, since whole
#: private tables are doubled by mistake.
_EQUAL_UNITS = (1, 2)
_COUNTED = max(_EQUAL_UNITS) + 2  # units of a value: so many or more are all alike
#: So much larger may the share of such rows be than among private rows, since two tables are hardly
#: ever drawn alike.
_OF_CHANCE = 1.25

#: A fit is refused where more than this share of what a column says is nowhere in the public one:
#: the column then informs the model of fewer records than it leaves out.
STOPS = 0.5
#: So often may the public table's own share be exceeded: where many values are rare, some cells say
#: what no other public one does.
OF_PUBLIC = 2


class PrivateRows:
    """Private rows beside tables that are to be public.

    By chance as large a share of public rows have exactly one private unit that equals them as of
    private rows have exactly one *other* one (Good 1953); so for two. Of the private rows are kept
    hashes, and of them those of the tables and a sample.

    Parameters
    ----------
    tables : sequence of arrays, sparse matrices or frames of shape (n_rows, n_features)
    """

    def __init__(self, tables: Sequence[Any]) -> None:
        self._tables = [row_hashes(table) for table in tables]
        known = [table for table in self._tables if table is not None]
        self._watched = np.unique(np.concatenate([*known, _NO_HASHES]))
        self._pairs = pd.DataFrame({"value": _NO_HASHES, "unit": _NO_HASHES})
        self._largest = 2**64 - 1
        self._n_rows = self._n_pairs = self._digest = 0

    def add(self, X: Any, units: Any = None) -> None:
        """Add private rows, behind those that are there.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
        units : integers of shape (n_rows,), optional
            Of each row's unit; None makes every row one.
        """
        values = row_hashes(X)
        if values is None:
            return
        apart = units is None
        if apart:
            units = np.arange(self._n_rows, self._n_rows + len(values))
        self._n_rows += len(values)
        self._digest = (self._digest + _rows_digest(values)) % 2**64
        pairs = pd.DataFrame({"value": values, "unit": np.asarray(units).astype(np.uint64)})
        # the same row of one unit again is no coincidence
        pairs = pairs if apart else pairs.drop_duplicates()
        self._n_pairs += len(pairs)
        pairs = pd.concat([self._pairs, pairs[self._kept(pairs["value"])]])
        pairs = pairs if apart else pairs.drop_duplicates()
        self._pairs = pairs.groupby("value").head(_COUNTED)
        sampled = np.unique(self._pairs["value"])
        sampled = sampled[sampled <= self._largest]
        if len(sampled) > _MOST_SAMPLED:
            self._largest = int(sampled[_MOST_SAMPLED - 1])
            self._pairs = self._pairs[self._kept(self._pairs["value"])]

    def add_stored(self, table: StoredTable) -> None:
        """Add the private rows of a table on disk, block by block."""
        for block in table.blocks():
            self.add(block.X, None if block.units is None else block.units[:, 0])

    def _kept(self, values: Any) -> Any:
        return (values <= self._largest) | np.isin(values, self._watched)

    def hold(self, place: int) -> bool:
        """Return whether private rows are in the table at that place, more than chance explains.

        Private, and not protected.
        """
        table = self._tables[place]
        if table is None or not self._n_pairs:
            return False
        same = (len(table), _rows_digest(table)) == (self._n_rows, self._digest)
        # small tables may be the same by chance
        if same and len(table) >= 20:
            return True
        values, counts = np.unique(self._pairs["value"], return_counts=True)
        public, sampled = counts[np.isin(values, table)], counts[values <= self._largest]
        n_sampled = self._n_pairs * (self._largest + 1) / 2**64
        return any(
            _beyond_chance(
                int((public == equal).sum()),
                len(table),
                int((sampled == equal + 1).sum()),
                n_sampled / (equal + 1),
            )
            for equal in _EQUAL_UNITS
        )


def _beyond_chance(found: int, n_rows: int, usual: int, n_usual: float) -> bool:
    """Return whether a rate of `found` in `n_rows` is beyond that of `usual` in `n_usual`, both of
    Poisson's law: given their sum, one of them is binomial."""
    if not found:
        return False
    part = _OF_CHANCE * n_rows / (_OF_CHANCE * n_rows + n_usual)
    # Probability of so many equal rows by chance below which they are refused.
    return not float(betainc(found, usual + 1, part)) >= 1e-4


def _refuse_unlike_cells(X: Any, typed: Any, X_public: Any) -> None:
    """Refuse private columns that mostly say what no public point does.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n_records, n_features)
        Private, as it was given. Of numbers types alone are compared, elsewhere.
    typed : like X
        The same with the types of the public points; what these have no place for is missing.
    X_public : like X, of shape (n_public, n_features)

    Raises
    ------
    DataError
        Naming the column, and no cell.
    """
    named = getattr(X_public, "columns", None)
    if named is None and isinstance(X, np.ndarray) and X.dtype == object:
        named = range(X.shape[1])
    for place, name in enumerate(() if named is None else named):
        if result_of(partial(_is_unlike, place, X, typed, X_public)):
            raise DataError(
                f"Column {shown(name)} of X does not fit: most of its cells are none of the values"
                " of X_public; write cells alike in both, add public points that have them, or drop"
                " the column. Nothing was spent."
            )


def _is_unlike(place: int, *tables: Any) -> bool:
    given, typed, public = (
        pd.Series(one[:, place]) if isinstance(one, np.ndarray) else one.iloc[:, place]
        for one in tables
    )
    there = given.dropna()
    # pandas reads texts of digits as numbers where no other text is in the column
    if len(there) and _has_text(public) and not _has_text(there):
        return True
    # fewer public cells are examples of what a column holds
    if public.count() < 20:
        return False
    strange, usual = typed.isna(), 0.0
    if pd.api.types.is_object_dtype(typed) or pd.api.types.is_string_dtype(typed):
        strange |= ~typed.isin(public.unique())
        usual = float((public.value_counts() == 1).sum() / public.count())
    said = given.notna().to_numpy()
    return bool(strange.to_numpy()[said].sum() > max(STOPS, OF_PUBLIC * usual) * said.sum())


def _has_text(cells: "pd.Series[Any]") -> bool:
    return any(isinstance(cell, str) for cell in cells)


# --- hashes of rows, by which equal rows are found without keeping a row ---


def row_hashes(X: Any) -> _Hashes | None:
    """Return a hash of every row of a table of shape (n_rows, n_features), equal for numbers that
    are equal, of whatever kind a file made them; None where a cell cannot be hashed."""
    return result_of(partial(_row_hashes, X))


def _row_hashes(X: Any) -> _Hashes:
    blocks = [_NO_HASHES]
    # so many cells at once
    for start, stop in block_bounds(n_rows(X), max(1, (1 << 20) // n_columns(X))):
        rows = row_block(X, start, stop)
        frame = pd.DataFrame(rows.toarray() if is_sparse(rows) else rows)
        alike = {
            place: column.to_numpy(np.float64, na_value=np.nan) + 0.0  # -0.0 is 0.0
            if pd.api.types.is_numeric_dtype(column.dtype)
            else column
            for place, (_, column) in enumerate(frame.items())
        }
        hashed = pd.util.hash_pandas_object(pd.DataFrame(alike), index=False)
        blocks.append(np.asarray(hashed, dtype=np.uint64))
    return np.concatenate(blocks)


def _rows_digest(hashes: _Hashes) -> int:
    """Return the digest of rows, in any order, by their hashes."""
    return int(np.add.reduce(hashes, dtype=np.uint64))


_KEY_BYTES = 32
_ID_BYTES = 8
_RECORD_IDS = "record.ids"
_ROWS_TOGETHER = 2**16  # about
_PARTS = 10**6  # shares are whole millionths


def assign_shards(
    n_records: int, n_teachers: int, relation: str, units: Any, vault: Path | None
) -> IntArray:
    """Return the shard number of every record.

    Parameters
    ----------
    n_records, n_teachers : int
    relation : {"add-remove", "replace-one"}
    units : array of shape (n_records,) or None
        Ids of the units; None makes every record a unit.
    vault : Path or None
        Where the key and the record ids are kept, so that an interrupted fit finds the same shards
        again. The ids go before anything is released (`forget_records`).

    Privacy
    -------
    Unit : the id, or the record.
    Relation : add/remove: a keyed hash of the id, or of a random id drawn once per record.
        Replace-one: the position.
    Sensitivity : one shard.
    """
    if relation == "replace-one":  # which knows no units
        return PositionPartition(n_teachers, n_records).assign()
    key, ids = partition_key(vault), units
    if units is None:
        # a collision of two random ids only puts two records in one shard
        raw = _kept_entropy(vault, _RECORD_IDS, _ID_BYTES * n_records)
        ids = np.frombuffer(raw, dtype=np.uint64) >> np.uint64(1)
    digests = KeyedHashPartition(n_teachers, key).digests(ids)
    check_ids(len(digests), n_records)
    return shards_of_digests(digests, n_teachers)


def hold_out(
    n_records: int, share: float, *, units: Any = None, relation: str = "add-remove"
) -> tuple[IntArray, IntArray]:
    """Return the rows for the teachers and the rows held out for a choice.

    Parameters
    ----------
    n_records : int
    share : float
        Share of the units to hold out, about; strictly between 0 and 1, in millionths.
    units : array of shape (n_records,), optional
        Ids: all records of one id go to one side. Without them every record is a unit.
    relation : {"add-remove", "replace-one"}
        Relation of the promise. Units go with add-remove alone.

    Returns
    -------
    taught, held : ndarrays of int64
        Row numbers, ascending.

    Raises
    ------
    ParameterError, DataError
        If a setting is out of its range, or an id is missing; rows are named, never values.

    Privacy
    -------
    Unit, relation, sensitivity : add-remove: the side of a unit follows from a keyed hash of its id
        (of a random number drawn for a record without one), so that nobody else's side depends on
        it. Replace-one: the side follows from the position. A shuffled or stratified split, or one
        of exactly the share, moves others too when a unit comes.
    Price : none here; the teachers and the choice each have their own, and the ledger adds them up.

    Examples
    --------
    >>> taught, held = sb.hold_out(1000, 0.1, relation="replace-one")
    >>> len(taught), len(held), np.intersect1d(taught, held).size
    (900, 100, 0)
    """
    # Each unit's side must depend on that unit alone: on its position where positions are public,
    # else on a hash of its own id. Exact shares would let one unit move another.
    n = check_count("n_records", n_records)
    parts = round(check_probability("share", share) * _PARTS)
    if check_choice("relation", relation, RELATIONS) == "replace-one":
        refuse_units(units, relation)
        place = np.arange(n, dtype=np.int64)
        held = (place + 1) * parts // _PARTS > place * parts // _PARTS
    else:
        held = assign_shards(n, _PARTS, relation, units, vault=None) < parts
    return np.flatnonzero(~held), np.flatnonzero(held)


def _assign_stored_shards(
    table: StoredTable, n_teachers: int, relation: str, vault: Path
) -> StoredShards:
    """Return a stored table dealt out to shards, in files of a vault, by the rules of
    `assign_shards`.

    Parameters
    ----------
    table : StoredTable
    n_teachers : int
    relation : {"add-remove", "replace-one"}
    vault : Path
        Where the shards are kept, so that an interrupted fit finds them again. They go before
        anything is released (`forget_records`).

    Privacy
    -------
    As for `assign_shards`; a record without a unit goes to a shard by fresh randomness of its own.

    Raises
    ------
    ParameterError
        If under replace-one there are more teachers than records, or the table was not given as one
        file.
    DataError
        If the vault cannot be read or written.
    """
    rule = "record" if table.unit == "record" else "user"
    if relation == "replace-one":
        check_positions(single=table.single)
        PositionPartition(n_teachers, table.count_rows())  # refuses too many teachers
        rule = "position"
    return _dealt(table, vault, n_teachers, rule)


def _dealt(table: StoredTable, folder: Path, n_shards: int, rule: str) -> StoredShards:
    """Return a stored table dealt out by the hash of a unit, by position, or at random."""

    def shard_of(units: Any, first: int, count: int) -> IntArray:
        if rule == "user":
            return shards_of_digests(units, n_shards)
        if rule == "position":
            return np.arange(first, first + count, dtype=np.int64) % n_shards
        # 64 bits reduced modulo K: the bias between shards is below K / 2**64
        drawn = np.frombuffer(entropy_bytes(_ID_BYTES * count), dtype=np.uint64)
        return (drawn % np.uint64(n_shards)).astype(np.int64)

    serial = entropy_bytes(16).hex()
    return dealt_shards(table, folder, n_shards, shard_of, rule=rule, serial=serial)


def refuse_units(units: object, relation: str) -> None:
    """Refuse ids of units under replace-one, which is about single records and their positions.

    Raises
    ------
    ParameterError
    """
    if units is not None and relation == "replace-one":
        raise refusal(
            "units",
            " are given with ",
            Argument("relation", "replace-one"),
            ", which is about single records; use 'add-remove' for units.",
        )


def check_positions(*, single: bool) -> None:
    """Refuse shards by position unless the private table was given as one file.

    Raises
    ------
    ParameterError
        If it was not.
    """
    if not single:
        raise ParameterError(
            Argument("relation", "replace-one"),
            " splits by position, and in a folder or a dataset of files a record's position may"
            " follow from what it says; give one file that is not sorted by content, or use"
            " 'add-remove'.",
        )


def partition_key(vault: Path | None) -> bytes:
    """Return the key of a vault by which units are hashed, drawn now if there is none."""
    return _kept_entropy(vault, "partition.key", _KEY_BYTES)


def forget_records(vault: Path) -> None:
    """Remove the record ids and the shards of a stored table, before anything is released: they
    serve to resume one fit and never a second one.

    Two releases over one random partition compose only if a record has the same shard in both
    worlds. Ids that are kept, and drawn anew once the number of records has changed, would tell of
    that change.
    """
    (vault / _RECORD_IDS).unlink(missing_ok=True)
    forget_shards(vault)


def _kept_entropy(vault: Path | None, name: str, size: int) -> bytes:
    """Return entropy from the vault if it is there in the wanted size, else draw it and keep it."""
    if vault is None:
        return entropy_bytes(size)
    stored = read_secret(vault / name)
    if stored is None or len(stored) != size:
        stored = entropy_bytes(size)
        write_secret(vault / name, stored)
    return stored


def _one_record_each(units: Any, n_records: int, key: bytes | None = None) -> IntArray:
    """Return one row of every unit, ascending: by a fresh keyed hash of its id, so that no other
    unit has a say in it.

    Parameters
    ----------
    units : array of shape (n_records,)
        Ids.
    n_records : int
    key : bytes, optional
        Drawn at random for a whole table of which these records are a part; a fresh one by default.

    Raises
    ------
    DataError
        If an id is missing, or there is not one for each record.

    Privacy
    -------
    Unit : all records of one id.
    Sensitivity : 1 record. Under a fixed key the row taken of a unit depends on its id, on how many
        records it has and on their order among themselves. So when a unit comes, one record comes
        and the others stay: for every key the choice keeps its epsilon, hence also for a key drawn
        at random and kept secret.

    Notes
    -----
    A unit's majority, as for `candidates`, is no sum over records: the two ends of an interval then
    no longer add up to its mistakes.
    """
    # Records of a unit are brought together in their own order; its hash, modulo how many it has,
    # picks one.
    owner = unit_numbers(units, n_records)
    # of 64 bits, so that a remainder is as good as uniform
    hashes = KeyedHashPartition(1, key or entropy_bytes(_KEY_BYTES)).digests(units)[:, 0]
    order = np.argsort(owner, kind="stable")
    starts = np.flatnonzero(np.diff(owner[order], prepend=-1))
    sizes = np.diff(np.append(starts, n_records))
    picked = hashes[order[starts]] % sizes.astype(np.uint64)
    return np.sort(order[starts + picked.astype(np.int64)])


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
    like : array, sparse matrix or frame of shape (n, n_features)
        Has the columns of the records, and their missing values; private.
    most_kept : int
        Numbers of four bytes that may be kept beside it.
    """

    most_kept = 2**29
    _refusal = "a private table is not shown, copied or kept; give it to a learner."

    def __init__(self, X: Any, targets: Any, units: Any, unit_name: str | None) -> None:
        self._records, self._targets, self._units = X, targets, units
        self.like = X
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
        key = entropy_bytes(_KEY_BYTES)
        for part in self._parts_with_ids():
            chosen = None
            if part.units is not None:
                chosen = _one_record_each(part.units, n_rows(part.rows), key)
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
        learner.n_features_in_ = n_columns(self.like)
        names = getattr(self.like, "columns", [None])
        if all(isinstance(name, str) for name in names):
            learner.feature_names_in_ = np.asarray(names, dtype=object)

    @property
    def targets(self) -> Any:
        """The targets of all records; private."""
        return self._targets

    @property
    def identity(self) -> Values:
        """All that teachers of these records depend on besides settings; private."""
        return self._records, self._targets, self._units

    def shards(
        self, n_teachers: int, relation: str, vault: Path | None
    ) -> AbstractContextManager[tuple[ShardSource, Any]]:
        """Give the teachers' shards, and what stands for them in a digest, None where no teacher
        is kept before all are trained; private.

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

    def __repr__(self) -> str:
        return f"{type(self).__name__}(unit={self.unit!r}, records=<private>)"


class _TableOnDisk(Table):
    """Private records with their classes, of which a bounded part is held at a time; teachers get
    one file for each shard.

    Rows encoded by a schema have no missing values and no names, like the public points.
    """

    most_kept = 2**26

    def __init__(self, table: StoredTable, X_public: Any) -> None:
        self._records, self.like, self._units = table, X_public, None
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
    def identity(self) -> Values:
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
            dealt = _assign_stored_shards(self._records, n_teachers, relation, Path(folder))
            # shards have the form of the points: both are asked of the same teachers
            yield replace(dealt, sparse=is_sparse(self.like)), dealt.serial


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
        table: Table = _TableOnDisk(X, points)
    else:
        if X_public is X:  # few equal rows may be chance
            raise DataError(_HOLDS_RECORDS)
        rows = as_matrix("X", X)
        given, rows = rows, with_public_types(rows, points)
        _refuse_unlike_cells(given, rows, points)
        table = Table(rows, target.read(y, n_rows(rows)), units, unit_name)
    return table, with_public_types(points, points)


# --- a stored table in the place of X ---


@contextmanager
def _units_together(table: StoredTable) -> Iterator[StoredTable | StoredShards]:
    """Give a stored table in blocks, all records of a unit of privacy in one of them."""
    if table.unit == "record":
        yield table
        return
    # what counts a person once must have all of the person's records at hand: the parts are few
    # enough records to be held at once, and no more than an order of the records
    n_parts = max(1, table.count_rows() // _ROWS_TOGETHER)
    with TemporaryDirectory(dir=table.vault, prefix=PERSONS) as folder:
        yield _dealt(table, Path(folder), n_parts, "user")


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
            raise refusal(
                name, " is given beside a stored table, which holds its own; leave it out."
            )
    # the table holds places among these classes, which mean others in another order
    if list(classes) != list(table.classes):
        raise refusal(
            "classes",
            f" is {shown_classes(classes)}, and the table was stored with"
            f" {shown_classes(table.classes)}; give the same in the same order, and anything but"
            " classes with a table in memory.",
        )
    if hasattr(X_public, "iloc") or n_columns(X_public) != table.n_columns:
        raise DataError(
            Parameter("X_public"),
            f" does not have the {table.n_columns} encoded columns of the stored table; encode the"
            " public rows by the same schema: schema.encode(rows).",
        )
