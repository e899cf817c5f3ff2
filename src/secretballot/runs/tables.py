"""The tables of a run, checked before anything is trained, drawn or paid: whether they write their
columns alike, and what becomes of one that is too large for memory.

All reports here are for the curator alone: they name columns, counts and row numbers, never a cell.
"""

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from secretballot._files import shown_place
from secretballot._typing import (
    AnyArray,
    BoolArray,
    FloatArray,
    Json,
    JsonView,
    Names,
    ObjectArray,
    Place,
    Values,
)
from secretballot._validation import NAMED_AT_MOST, name_columns, name_rows, refusal, shown
from secretballot._written import DATE_FORMATS, with_point
from secretballot.core.noise import entropy_bytes
from secretballot.core.partition import KeyedHashPartition
from secretballot.data.cells import OddCells, coded_texts, known_texts, texts_of
from secretballot.data.columns import FeatureColumn, NumericColumn
from secretballot.data.frames import (
    check_columns,
    check_named,
    class_indices,
    memory_bytes,
    unit_ids,
)
from secretballot.data.reading import (
    GROWTH,
    TableSource,
    checked_source,
    estimated_rows,
    is_local_file,
    read_table,
    source_of,
    table_blocks,
)
from secretballot.data.schema import Encoding, Schema
from secretballot.data.stored import About, StoredTable, TableWriter, forget_table
from secretballot.data.tally import check_classes
from secretballot.exceptions import DataError, ParameterError
from secretballot.learners.inputs import declared_classes, number_of, object_array
from secretballot.learners.table import OF_PUBLIC, STOPS, Block, PrivateRows, partition_key
from secretballot.report.raw_columns import RawRows
from secretballot.runs.questions import Caution, Watch, cautions_of_ids
from secretballot.runs.spec import DataSpec, RunSpec
from secretballot.teachers.rows import unit_numbers

_PRIVATE, _PUBLIC, _TEST = "private file", "public file", "test file"


@dataclass(repr=False)
class TableCells:
    """Which cells of a table could not be read, added up block by block; of a private table,
    private.

    Attributes
    ----------
    n_rows : int
    strange, missing : Counter of str
        By feature column, how many cells are strange (say something that the column has no place
        for), or missing.
    first_rows : dict of str to list of int
        The first strange rows of each column.
    """

    n_rows: int = 0
    strange: Counter[str] = field(default_factory=Counter)
    missing: Counter[str] = field(default_factory=Counter)
    first_rows: dict[str, list[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, encoding: Encoding) -> "TableCells":
        """Return the odd cells of a table that was encoded at once."""
        cells = cls()
        cells.add(encoding.odd, len(encoding.matrix))
        return cells

    def add(self, odd: Mapping[str, OddCells], n_rows: int) -> None:
        """Add the rows of a block, which follow on those before."""
        for name, found in odd.items():
            self.strange[name] += found.strange.size
            self.missing[name] += found.missing
            rows = self.first_rows.setdefault(name, [])
            rows += (self.n_rows + found.strange[: NAMED_AT_MOST - len(rows)]).tolist()
        self.n_rows += n_rows

    def strange_share(self, name: str) -> float:
        """Return the share of strange cells among those that say anything, 0 where none does."""
        said = self.n_rows - self.missing[name]
        return self.strange[name] / said if said else 0.0

    def missing_share(self, name: str) -> float:
        """Return the share of cells that say nothing."""
        return self.missing[name] / self.n_rows


def misfits(
    schema: Schema, found: TableCells, expected: TableCells | None = None
) -> list[tuple[FeatureColumn, float, str]]:
    """Return the columns of a table whose cells are written otherwise than those that their
    encoding was made of, worst first: each with the share that the encoding has no place for, of
    the cells that say something, and what is the matter.

    Parameters
    ----------
    schema : Schema
    found : TableCells
        Of the table.
    expected : TableCells, optional
        Of the public table, whose own share is allowed for.
    """
    found_ones = []
    for column in schema.features:
        share = found.strange_share(column.name)
        usual = 0.0 if expected is None else OF_PUBLIC * expected.strange_share(column.name)
        # From this share on the curator is informed.
        if share > max(0.1, usual):
            words = f"{percent(share)} of its cells {schema.strange(column)}"
            found_ones.append((column, share, words))
    return sorted(found_ones, key=lambda one: (-one[1], one[0].name))


def _settled_cells(
    schema: Schema,
    found: TableCells,
    watch: Watch,
    role: str,
    accepted: Collection[str] = (),
    expected: TableCells | None = None,
) -> str:
    """Return why a table is refused of which a column mostly does not fit, nothing where that was
    accepted; tell of other misfits, and of the private table to the curator which cells count as
    missing.

    Parameters
    ----------
    schema : Schema
    found : TableCells
        Of the table.
    watch : Watch
    role : str
        What the messages call the table.
    accepted : collection of str
        Columns that may be as they are.
    expected : TableCells, optional
        Of the public table, whose own share is allowed for.
    """
    stopping, private = list[str](), role == _PRIVATE
    for column, share, words in misfits(schema, found, expected):
        if share > STOPS and column.name not in accepted:
            stopping.append(f"column {shown(column.name)}, {words}")
        elif share > STOPS or column.has_other:  # of a few that are no numbers the rows are listed
            watch.note(f"Column {column.name!r} of the {role}: {words}.", private=private)
    if private:
        note_odd_cells(schema, found, watch, role=role, private=True)
    if not stopping:
        return ""
    return (
        f"The {role} does not fit ({'; '.join(stopping)}); write cells alike in all files, add"
        " public points that have them, declare the column with --schema, leave it out with --drop,"
        " or go on with --set accept_unseen=COLUMN."
    )


def note_odd_cells(
    schema: Schema, found: TableCells, watch: Watch, *, role: str, private: bool
) -> None:
    """Tell which cells of a table count as missing; of a public one also those that count as
    "other", which a private one may have."""
    for column in schema.columns:
        strange = found.strange[column.name]
        if strange and not (private and column.has_other):
            rows = name_rows(found.first_rows[column.name], total=strange)
            counts_as = '"other"' if column.has_other else "missing"
            watch.note(
                f"Column {column.name!r} of the {role}: cells that"
                f" {schema.strange(column)} and count as {counts_as}:"
                f" {strange:,} ({rows}).",
                private=private,
            )


def _check_labelled_columns(
    data: DataSpec, frame: pd.DataFrame, schema: Schema, *, role: str
) -> None:
    """Refuse a labelled table without the columns that it needs; only in the private one are extra
    columns refused.

    Raises
    ------
    DataError
        Naming them.
    """
    aside = {*data.aside, *schema.ignored}
    check = partial(
        check_columns, frame, schema.names, role=role, source=schema.source, aside=aside
    )
    check(extra_allowed=True)
    # before surplus columns are refused: a name misspelt makes the true one a surplus column
    for target in data.target:
        check_named(frame, target, "its label column with --target", role=role)
    if role == _PRIVATE:
        if data.unit is not None:
            check_named(frame, data.unit, "the column of unit ids with --unit", role=role)
        check(extra_allowed=False)


def percent(share: float) -> str:
    """Return a share in words."""
    return f"{100 * share:.3g} %"


#: Share of this machine's memory that a private table may take, as it is read or encoded.
_MOST_IN_MEMORY = 1 / 8
#: How a label that is not there, and one that is, may be written where nobody says; by turns.
_SPELLINGS = (
    *("0", "1", "no", "yes", "No", "Yes", "NO", "YES", "n", "y", "N", "Y"),
    *("false", "true", "False", "True", "FALSE", "TRUE"),
)


class RunInputs:
    """The tables of a run as matrices, read and checked; the private and the test one are not for
    publication.

    Parameters
    ----------
    spec : RunSpec
        Its `public` and its `target` are given.
    watch : Watch
        Called with what was left out, completed or counted as missing.
    vault : Path, optional
        Where a private table is kept that is too large for memory; without one it is only looked
        at, and nothing can learn from it.
    settles : bool
        Whether a table is refused of which most cells of a column do not fit.

    Attributes
    ----------
    schema : Schema
        Encoding of the columns, from public knowledge.
    classes : tuple
        Declared classes; empty where a number is learnt, or several labels.
    public : DataFrame
        First rows of the public table, as they were read.
    X_public : ndarray of float, shape (n_public, n_features)
    cells : dict of str to TableCells
        Cells of each table that could not be read, by its role.
    test : Block or None
        Rows encoded, and targets as `targets_of` returns them.
    private : Block, StoredTable or None
        In memory, with the ids of units where a column of them was named; or, of a table that is
        too large for it, on disk; None where that was only looked at.
    n_units : int
        Number of private units, of a table on disk about; private.
    repeating_ids : tuple of str
        Columns that were taken for ids and have values in more than one row, none where the unit is
        declared; it may follow from the private file.

    Raises
    ------
    DataError
        If a table cannot be read or does not fit the others.
    ParameterError
        If the classes are not declared, or not properly.
    """

    def __init__(
        self, spec: RunSpec, watch: Watch, vault: Path | None = None, *, settles: bool = True
    ) -> None:
        self._data, self._watch, self._settles = spec.data, watch, settles
        data, evaluate = spec.data, spec.output.evaluate
        # The public table settles the schema and classes are declared before the private one is
        # read: nothing about how a record is encoded may follow from private records.
        self.schema, self.public, not_public = public_table(data, watch)
        self._names = declared_names(data, self.schema)
        self.classes = self._names if data.kind == "class" else ()
        encoding = self.schema.encoding(self.public, role=_PUBLIC)
        self.X_public: FloatArray = encoding.matrix
        self.cells: dict[str, TableCells] = {}
        self._keep_cells(_PUBLIC, TableCells.of(encoding))
        self.test = None if evaluate is None else self._labelled(evaluate, _TEST)[0]
        known = {} if data.public_features else {_PUBLIC: self.X_public}
        known |= {} if self.test is None else {_TEST: self.test.rows}
        rows = PrivateRows([*known.values()])
        columns = self._read_private(spec.private, vault, rows)
        for place, role in enumerate(known):
            if rows.hold(place):
                raise _refusal_of(role, evaluate)
        refuse_nowhere([name for name in not_public if name not in columns], "no file")
        # public rows by which the student's ONNX file is checked
        self.public = self.public.head(1000).copy()  # the others are needed no more

    def settle(self, role: str) -> str:
        """Return why the table of a role is refused, nothing where most cells of all columns fit,
        or may be as they are; tell of other misfits, and of what counts as missing, or as
        "other"."""
        known = role == _PUBLIC and self._data.schema_file is not None
        # a public table fits the encoding that was made of it
        expected = None if known else self.cells[_PUBLIC]
        accepted, found = self._data.accept_unseen, self.cells[role]
        return _settled_cells(self.schema, found, self._watch, role, accepted, expected)

    @property
    def n_columns(self) -> int:
        """Columns of the tables once encoded."""
        return len(self.schema.feature_names)

    @property
    def for_fit(self) -> Json:
        """What a learner's fit takes: private records, public points, and what is learnt."""
        data, given = self._data, Json(X=self.private, y=None, X_public=self.X_public)
        if isinstance(self.private, Block):
            rows, targets, units = self.private
            y = object_array(self.classes)[targets] if self.classes else targets
            given |= {"X": rows, "y": y, "units": units, "unit_name": data.unit}
        if data.public_features:
            given = {"X": self.X_public, "y": given["y"], "public_features": True}
        learnt = {"number": ("bounds", data.bounds), "labels": ("labels", data.target)}
        name, value = learnt.get(data.kind, ("classes", list(self.classes)))
        return {**given, name: value}

    @property
    def rarest_share(self) -> float | None:
        """Share of the rarest class, or label, in the test table, where it has one."""
        if self.test is None or self._data.kind == "number":
            return None
        targets = self.test.targets
        if self._data.kind == "class":
            targets = targets[:, None] == np.arange(len(self.classes))
        return float(targets.mean(axis=0).min()) or None

    @property
    def raw_rows(self) -> RawRows:
        """Public rows before and after their encoding, as a stranger would give them, and one of
        which nothing is known, and one that is like no other."""
        raw = {}
        for one in self.schema.features:
            odd = "2e30" if isinstance(one, NumericColumn) else "none of the categories"
            raw[one.name] = [*texts_of(self.public[one.name]), "", odd]
        frame = pd.DataFrame(raw, dtype=object)
        columns = [one.name for one in self.schema.features for _ in one.feature_names]
        return RawRows(frame, self.schema.encode(frame, role=_PUBLIC), columns)

    def _read_private(self, place: Path | str, vault: Path | None, rows: PrivateRows) -> Names:
        """Read the private table, add its rows, and return its columns."""
        self.private: Block | StoredTable | None = None
        self.repeating_ids = self._ids_of(self.public)
        if _goes_to_disk(place, self.n_columns):
            return self._read_to_disk(place, vault, rows)
        table, frame = self._labelled(place, _PRIVATE)
        self.private, units = table, table.units
        self.n_units = len(frame) if units is None else len(set(units))
        rows.add(table.rows, None if units is None else unit_numbers(units, len(frame)))
        _note_copies(frame, self._watch)
        self.repeating_ids = tuple(dict.fromkeys(self.repeating_ids + self._ids_of(frame)))
        return tuple(frame.columns)

    def _read_to_disk(self, place: Path | str, vault: Path | None, rows: PrivateRows) -> Names:
        """Read a table that is no local file that fits into memory: rows are encoded block by
        block, and kept in the vault."""
        data, n_rows = self._data, estimated_rows(place, role=_PRIVATE)
        if data.kind != "class" or data.public_features:
            raise refusal(
                "private",
                " is a table that is read block by block, and a number, several labels, or labels"
                " that alone are private, are learnt from one local file that fits into memory;"
                " give a part of it.",
            )
        self.private, self.n_units, columns = read_to_disk(
            data,
            self.schema,
            self.classes,
            vault,
            partial(self._keep_cells, _PRIVATE),
            lambda count: self._watch.progress(min(count, n_rows), n_rows),
            rows,
        )
        return columns

    def _labelled(self, place: Path | str, role: str) -> tuple[Block, pd.DataFrame]:
        """Return the private or the test table, encoded and as it was read."""
        data, schema, units = self._data, self.schema, None
        frame = read_table(place, role=role, encoding=data.encoding)
        _check_labelled_columns(data, frame, schema, role=role)
        targets = targets_of(data, frame, self._names, schema, role=role)
        encoding = schema.encoding(frame, role=role)
        self._keep_cells(role, TableCells.of(encoding))
        if role == _PRIVATE and data.unit is not None:
            units = unit_ids(frame, data.unit, role=role)
        return Block(encoding.matrix, targets, units), frame

    def _keep_cells(self, role: str, cells: TableCells) -> None:
        """Keep which cells of a table could not be read, and refuse it if they are too many."""
        self.cells[role] = cells
        problem = self.settle(role) if self._settles else ""
        if problem:
            raise DataError(problem)

    def _ids_of(self, frame: pd.DataFrame) -> Names:
        """Return the columns that were taken for ids and have values in more than one row, none
        where the unit is declared."""
        ids = [one.column.name for one in self.schema.inferred if one.identifier]
        return tuple(
            name
            for name in (ids if self._data.unit is None else ())
            if name in frame.columns and len(set(cells := known_texts(frame[name]))) < len(cells)
        )


def check_files(spec: RunSpec) -> None:
    """Refuse files that cannot be tables, and the private one or a part of it in the place of a
    public one, before time goes into reading or digesting any of them.

    Raises
    ------
    ParameterError
        If the public table or the target is not named.
    DataError
        If a file is no regular one, empty, unreadable or too large.
    """
    data, evaluate = spec.data, spec.output.evaluate
    for name, given, what in (
        ("public", data.points, "the public table without labels, after the private one"),
        ("target", data.target, "the column to learn"),
    ):
        if not given:
            raise refusal(name, f" is missing; give {what}.")
    private = checked_source(spec.private, role=_PRIVATE)  # which may be larger than memory
    for role, place in ((_PUBLIC, data.points), (_TEST, evaluate)):
        if place is None:
            continue
        found = checked_source(place, role=role, whole=True)
        if found.shares_file(private) and not (role == _PUBLIC and data.public_features):
            raise _refusal_of(role, evaluate)


def _refusal_of(role: str, evaluate: Path | str | None) -> DataError:
    """Return the refusal of the public or the test table, which holds private rows."""
    where, why = _PUBLIC, "public rows are published, so give rows that are known to everybody. If"
    why += " labels alone are private, set data.public_features=true"
    if role == _TEST:
        where = f"{_TEST} {shown_place(evaluate)!r}"
        why = "metrics are exact and have no price, so give public labelled records with --evaluate"
    return DataError(
        f"The {where} holds rows of the private file, more of them than chance explains; {why}."
        " Nothing was spent."
    )


def table_digests(spec: RunSpec) -> dict[str, str | None]:
    """Return the digests of the files that shape a result.

    The test file shapes nothing, so it may be another one when a run is taken up.
    """
    data = spec.data
    files = {"private": spec.private, "public": data.public, "schema": data.schema_file}
    return {
        f"{name} file": None if place is None else source_of(place).digest()
        for name, place in files.items()
    }


def refuse_nowhere(dropped: Sequence[str], where: str) -> None:
    """Refuse columns to be dropped that are nowhere."""
    if dropped:
        raise DataError(
            f"What is to be dropped, {name_columns(dropped)}, is in {where}; spell columns as"
            " the files do."
        )


def declared_names(data: DataSpec, schema: Schema) -> Values:
    """Return the declared classes; or how labels are written, by turns not there, and there."""
    declared = data.classes if data.classes is not None else schema.classes
    if data.kind == "number":
        return ()
    if declared is None and data.kind == "labels":
        return _SPELLINGS
    if declared is None:
        raise ParameterError(
            f"Declare the target {shown(data.target[0])} from public knowledge, never from private"
            " labels: its classes with --classes A,B (or in the schema file), or, where it is a"
            " number, its bounds with --bounds LOW,HIGH."
        )
    if len(check_classes(declared)) != 2 and data.kind == "labels":
        raise refusal(
            "classes",
            f" are {', '.join(map(str, declared))}; of several labels give two spellings, of one"
            " that is not there and of one that is, such as no,yes.",
        )
    return tuple(declared)


def _note_copies(frame: pd.DataFrame, watch: Watch) -> None:
    """Tell the curator how many private rows repeat another one in all of their cells."""
    codes = pd.DataFrame({name: coded_texts(frame[name])[0] for name in frame.columns})
    copies = int(codes.duplicated().sum())
    if copies:
        watch.note(
            f"{copies:,} rows of the private file repeat another row in all cells; each of them"
            " counts as a record.",
            private=True,
        )


def _goes_to_disk(place: Path | str, width: int) -> bool:
    """Return whether a private table of so many encoded columns is read block by block and kept on
    disk: where memory could become short, and wherever it is not one local file."""
    if not is_local_file(place):
        return True
    matrix = 8 * width * estimated_rows(place, role=_PRIVATE)
    return max(matrix, GROWTH * source_of(place).size()) > _MOST_IN_MEMORY * memory_bytes()


def public_table(data: DataSpec, watch: Watch) -> tuple[Schema, pd.DataFrame, list[str]]:
    """Read the public table and settle the schema; its target column, if any, is never used.

    Also returns the columns to drop that the public file does not have.

    Raises
    ------
    DataError
        If the file or the schema cannot be read, or they do not fit.
    """
    frame = read_table(data.points or "", role=_PUBLIC, encoding=data.encoding)
    for target in data.target:
        if target in frame.columns and not data.public_features:
            watch.note(
                f"The public file has the column {target!r}, which is the target; it is left out"
                " and never used.",
                private=False,
            )
    not_public = [name for name in data.drop if name not in frame.columns]
    return *schema_of(data, frame, _PUBLIC, watch), not_public


def schema_of(
    data: DataSpec, frame: pd.DataFrame, role: str, watch: Watch
) -> tuple[Schema, pd.DataFrame]:
    """Return the schema of a public table, and the table without the columns that are never
    features; tell of columns that are none, or could as well be something else.

    Raises
    ------
    DataError
        If the declared schema cannot be read, or does not fit.
    """
    # Columns with a duty leave before the schema is made, or they would become features.
    frame = frame.drop(columns=[name for name in data.aside if name in frame.columns])
    if data.schema_file is None:
        schema = Schema.infer(frame)
    else:
        schema = Schema.read(data.schema_file, public=frame, ignore=data.aside)
        check_columns(frame, schema.names, role=role, source="the schema", aside=schema.ignored)
    if data.columns is not None:
        schema = _with_kinds(schema, data.columns, frame)
    # Public reasons about a public file, so the notes may be published.
    for name, reason in schema.ignored.items():
        watch.note(f"Column {name!r} is no feature: {reason}.", private=False)
    if schema.decimal_commas:
        named = name_columns(schema.decimal_commas)
        watch.note(
            f"Decimal commas are read in {named}: 1.234,5 is 1234.5, and 1.234, which has no comma,"
            " is 1.234; write thousands without points.",
            private=False,
        )
    for column, reason, doubt, _ in schema.inferred:
        if doubt and column.feature_names:
            watch.note(f"Column {column.name!r} holds {column.holds}: {reason}.", private=False)
    return schema, frame


def _with_kinds(schema: Schema, kinds: JsonView, frame: pd.DataFrame) -> Schema:
    """Return a schema whose columns of these names are of declared kinds; none of them is an id."""
    missing = [name for name in kinds if name not in frame.columns]
    if missing:
        raise DataError(
            f"The public file has no {name_columns(missing)}, of which a kind is declared; spell"
            " columns as the file does."
        )
    columns = {
        name: {"kind": "date", "format": kind} if kind in DATE_FORMATS else kind
        for name, kind in kinds.items()
    }
    own = Schema.from_json({"columns": columns}, public=frame[[*kinds]]).columns
    declared = {one.name: one for one in own}
    return replace(
        schema,
        columns=tuple(declared.get(one.name, one) for one in schema.columns),
        inferred=tuple(one for one in schema.inferred if one.column.name not in kinds),
    )


def targets_of(
    data: DataSpec, frame: pd.DataFrame, names: Values, schema: Schema, *, role: str
) -> AnyArray:
    """Return the targets of a table: classes as indices, labels as 0 and 1, or numbers; private
    numbers as texts, with a point. A comma is read where a column of the schema has one.

    Raises
    ------
    DataError
        If a cell is none; rows are named, cells not.
    """
    if data.kind != "number":
        columns = [class_indices(frame, name, names, role=role) for name in data.target]
        return np.column_stack(columns) % 2 if data.kind == "labels" else columns[0]
    texts = texts_of(frame[data.target[0]])
    if schema.decimal_commas:
        texts = np.array([*map(with_point, texts)], dtype=object)
    if role == _PRIVATE:
        return texts
    numbers = _numbers_of(texts)
    rows = np.flatnonzero(~np.isfinite(numbers))
    if rows.size:
        raise DataError(
            f"The {role} has {rows.size} rows without a number in column"
            f" {shown(data.target[0])} ({name_rows(rows)}); write numbers with a point (or with"
            " a comma, where a public column has one), complete them or take them out."
        )
    return numbers


def _numbers_of(texts: ObjectArray) -> FloatArray:
    return np.array([number_of(text) for text in texts], dtype=np.float64)


def cautions_of_targets(data: DataSpec, inputs: RunInputs, watch: Watch) -> Iterator[Caution]:
    """Yield what is to be asked of the curator alone where few private targets are numbers within
    the bounds; what becomes of the others is reported to the watch."""
    if data.bounds is None:
        return
    low, high = data.bounds
    assert isinstance(inputs.private, Block)
    numbers = _numbers_of(inputs.private.targets)
    # exact counts of private targets: for the curator's eyes alone
    without, beyond = int(np.isnan(numbers).sum()), int(((numbers < low) | (numbers > high)).sum())
    said = (
        f"Of the private targets {without:,} are no numbers, whose records are left out, and"
        f" {beyond:,} lie beyond the bounds and are cut to them"
    )
    # Share of the private targets below which the run asks whether this is the column, or the
    # bounds.
    if without + beyond > 0.5 * len(numbers):
        yield Caution(
            "target",
            f"{said}; check that {shown(data.target[0])} is the column (a decimal comma is read"
            f" where a public column has one), and {low:g},{high:g} the bounds in its unit.",
            private=True,
        )
    elif without + beyond:
        watch.note(f"{said}.", private=True)


_BLOCK_ROWS = 2**16
#: Places of which each unit marks one; how many are marked shows about how many units there are.
_PLACES = 2**26


#: Of a private table that is too large for memory: the table, None where it was only looked at;
#: about how many units it has, private; and its columns.
_StoredRecords = tuple[StoredTable | None, int, Names]


def read_to_disk(
    data: DataSpec,
    schema: Schema,
    classes: Values,
    vault: Path | None,
    settle: Callable[[TableCells], None],
    progress: Callable[[int], None],
    beside: PrivateRows | None = None,
) -> _StoredRecords:
    """Read a private table block by block, and keep it in a vault unless that is None.

    A table that lies there whole, of the same files by the same settings, was found to be fit
    before, and is not read again.

    Parameters
    ----------
    data : DataSpec
        The table, its target, of one of classes, its unit, and columns that are left out.
    schema : Schema
    classes : tuple
    vault : Path or None
    settle : callable
        Takes which cells could not be read; raises where they are too many.
    progress : callable
        Takes rows read.
    beside : PrivateRows, optional
        Takes all rows, encoded, to compare them with public ones.

    Raises
    ------
    DataError
        If the table cannot be read, or a row has no class, none of the declared, or no unit; or if
        the vault cannot be written. No cell is named.
    """
    writer, partition, identity, place = None, None, "", data.private or ""
    with _kept_whole(place, vault) as source:
        if vault is not None:
            public = schema, classes, data.unit
            # of all that shapes the rows; private, as it depends on the files
            named = [source.digest(), data.encoding, data.target[0], data.unit, list(classes)]
            shaping = json.dumps([*named, schema.to_json()], default=str)
            identity = hashlib.sha256(shaping.encode()).hexdigest()
            found = StoredTable.found(vault, *public, identity)
            if found is not None:
                if beside is not None:
                    beside.add_stored(found)
                return found, found.count_units(), found.columns
            writer = TableWriter(vault, *public)
        if data.unit is not None:
            # without a vault units are only counted, by a key that nobody needs again
            partition = KeyedHashPartition(1, partition_key(vault))
        cells, marked, columns = TableCells(), np.zeros(_PLACES, dtype=np.bool_), Names()
        for frame in table_blocks(place, role=_PRIVATE, rows=_BLOCK_ROWS, encoding=data.encoding):
            first = cells.n_rows
            if not columns:
                columns = tuple(map(str, frame.columns))
                _check_labelled_columns(data, frame, schema, role=_PRIVATE)
            index = class_indices(frame, data.target[0], classes, role=_PRIVATE, first_row=first)
            rows, odd = schema.compact(frame)
            cells.add(odd, len(frame))
            digests = None
            if data.unit is not None and partition is not None:
                digests = partition.digests(
                    unit_ids(frame, data.unit, role=_PRIVATE, first_row=first)
                )
                marked[digests[:, 0] % np.uint64(_PLACES)] = True
            if beside is not None:
                beside.add(schema.widen(rows), None if digests is None else digests[:, 0])
            if writer is not None:
                writer.add(rows, index, digests)
            progress(cells.n_rows)
        n_units = cells.n_rows if data.unit is None else _units_that_mark(marked)
        settle(cells)
        table = None
        if writer is not None:
            # last: what is whole in the vault was read from beginning to end and found to be fit
            about = About(
                identity=identity,
                serial=entropy_bytes(16).hex(),
                n_units=n_units,
                columns=columns,
                single=source.single,
            )
            table = writer.finish(about)
    return table, n_units, columns


@contextmanager
def _kept_whole(place: Place, vault: Path | None) -> Iterator[TableSource]:
    """Refuse files that change while they are read; of what is refused no table stays."""
    # what is reported of the files is reported before they are read
    source = source_of(place, role=_PRIVATE)
    before = source.signatures()
    try:
        yield source
        if source_of(place, role=_PRIVATE).signatures() != before:
            raise DataError(
                f"The {_PRIVATE} {source.shown!r} was changed while it was read; repeat once"
                " nothing writes to it."
            )
    except DataError:
        if vault is not None:
            forget_table(vault)
        raise


def store_table(
    place: Place,
    vault: str | Path,
    *,
    schema: Schema,
    target: str,
    classes: Sequence[Any],
    unit: str | None = None,
    drop: Sequence[str] = (),
    accept_unseen: Sequence[str] = (),
    encoding: str = "utf-8",
    progress: Callable[[int], None] | None = None,
) -> StoredTable:
    """Read a private table that may be larger than memory, and keep it in a vault to learn from.

    Rows are encoded one by one, by public knowledge alone, and kept in few bytes each: numbers as
    they are, categories as codes. A learner that gets the stored table as `X`, and no `y`, reads it
    block by block.

    Parameters
    ----------
    place : path or URL
        A CSV or Parquet file, a folder of Parquet files (Hive's partitions too), or a URL of either
        by any file system of pyarrow or fsspec.
    vault : path
        Secret folder, made with mode 0700 where absent; holds the rows in the clear, in its folder
        "table". The same call finds a table there that is whole and of the same files.
    schema : Schema
        From public rows, or declared.
    target : str
        Column with the class.
    classes : sequence of two or more values
        Public; never inferred from the private labels.
    unit : str, optional
        Column with the id of the person that a record belongs to. In its place a keyed hash of 128
        bits is kept.
    drop : sequence of str
        Columns that are left out.
    accept_unseen : sequence of str
        Columns that may be as they are though most of their cells do not fit the schema.
    encoding : str
        Of the text of CSV files, as Python names it, such as cp1252.
    progress : callable, optional
        Takes the number of rows read.

    Returns
    -------
    StoredTable

    Raises
    ------
    DataError
        If the table cannot be read, or does not fit; or if the vault cannot be written. No cell is
        named.

    Privacy
    -------
    Price : none; nothing leaves the vault until a learner's release is paid for.
    Sensitivity : a row on disk is a function of one record and public values; with `unit`, of the
        key of the vault, too. Two persons share a hash with a probability below n^2 / 2^129, over
        the key and whatever the data are; they then count as one.

    Examples
    --------
    >>> import pandas as pd, pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> rows = pd.DataFrame({"age": range(20, 80), "ill": ["no", "yes"] * 30})
    >>> rows.to_csv(folder / "private.csv", index=False)
    >>> schema = sb.data.Schema.infer(pd.DataFrame({"age": ["30", "50", "70"]}))
    >>> sb.store_table(folder / "private.csv", folder / "vault",
    ...     schema=schema, target="ill", classes=["no", "yes"])
    StoredTable(n_columns=1, classes=['no', 'yes'], unit='record', records=<private>)
    """
    named = {"target": (target,), "unit": unit, "drop": drop, "accept_unseen": accept_unseen}
    data = DataSpec.of_tree({"private": place, "encoding": encoding, **named})

    def settle(cells: TableCells) -> None:
        # a watch that nobody listens to: what is noted of private cells goes nowhere
        problem = _settled_cells(schema, cells, Watch(), _PRIVATE, data.accept_unseen)
        if problem:
            raise DataError(problem)

    notice = progress or (lambda rows: None)
    named_classes = tuple(declared_classes(classes))
    table = read_to_disk(data, schema, named_classes, Path(vault), settle, notice)[0]
    assert table is not None
    return table


def _units_that_mark(marked: BoolArray) -> int:
    """Return about how many different units have marked these places, each one of them by its hash
    (linear counting, Whang et al. 1990: a ten-thousandth off at 50 million)."""
    empty = len(marked) - int(np.count_nonzero(marked))
    return round(-len(marked) * math.log(max(1, empty) / len(marked)))


def check_tables(spec: RunSpec, watch: Watch | None = None) -> Json:
    """Read the tables of a run without the run. NOT RELEASABLE, since what is returned is computed
    from private data without noise.

    Parameters
    ----------
    spec : RunSpec
    watch : Watch, optional
        Called with what a run would report of its tables.

    Returns
    -------
    dict
        As JSON values: the ``rows`` of each table; the private rows of each of the ``classes``; the
        ``units`` of the private rows, None where every row is one; which tables do not fit, and
        what would be asked, as what would be ``stopping`` a run; and the feature ``columns``, the
        worst first, with the share of cells in both tables that are ``strange`` (the encoding has
        no place for them), and of those that are ``missing``.

    Raises
    ------
    DataError, ParameterError
        If a file cannot be read, or there is nothing to compare.

    Privacy
    -------
    Everything is for the curator's eyes: shares, counts and names, without noise. No cell is shown.
    """
    watch = watch or Watch()
    check_files(spec)
    watch.step("Reading tables")
    inputs = RunInputs(spec, watch, settles=False)
    stopping = [problem for role in inputs.cells if (problem := inputs.settle(role))]
    # ids that repeat are a question to a run, which would not go on without an answer
    asked = [one.text[:1].upper() + one.text[1:] for one in cautions_of_ids(inputs.repeating_ids)]
    table, counts = inputs.private, dict[str, int]()
    if inputs.classes and isinstance(table, Block):
        found = np.bincount(table.targets, minlength=len(inputs.classes))
        counts = dict(zip(map(str, inputs.classes), found.tolist(), strict=True))
    private, public = inputs.cells[_PRIVATE], inputs.cells[_PUBLIC]
    columns = [
        {
            "name": one.name,
            "kind": one.to_json()["kind"],
            "strange": private.strange_share(one.name),
            "public_strange": public.strange_share(one.name),
            "missing": private.missing_share(one.name),
            "public_missing": public.missing_share(one.name),
        }
        for one in inputs.schema.features
    ]
    return {
        "releasable": False,
        "rows": {
            role.removesuffix(" file"): one.n_rows for role, one in sorted(inputs.cells.items())
        },
        "classes": counts,
        "units": None if spec.data.unit is None else inputs.n_units,
        "columns": sorted(columns, key=lambda one: (-one["strange"], -one["missing"], one["name"])),
        "stopping": stopping + asked,
    }
