"""The tables of a run, checked before anything is trained, drawn or paid.

Everything said here is said to the curator alone: it names columns, counts and row numbers, never a
cell.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from secretballot._naming import name_columns
from secretballot._places import shown_place
from secretballot._typing import FloatArray, IntArray, ObjectArray
from secretballot._validation import shown
from secretballot.datasets.cells import LARGEST_NUMBER, coded_texts, texts_of, vectors_of, whole
from secretballot.datasets.columns import Column, NumericColumn, VectorColumn
from secretballot.datasets.inferred_columns import known_texts
from secretballot.datasets.schema import Schema
from secretballot.datasets.table_source import source_of
from secretballot.datasets.tables import (
    GROWTH,
    check_columns,
    check_file,
    check_named,
    class_indices,
    estimated_rows,
    is_local_file,
    memory_bytes,
    read_table,
    unit_ids,
)
from secretballot.datasets.text_columns import HashedTextColumn
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.learners.training.inputs import object_array
from secretballot.learners.training.private_rows import PrivateRows
from secretballot.report.student.raw_columns import RawRows
from secretballot.runs.progress import Watch
from secretballot.runs.stored_records import StoredRecords, Wanted, read_to_disk
from secretballot.runs.table_match import (
    TableCells,
    check_accepted,
    misfits,
    note_empty_columns,
    note_unreadable,
    settle_misfits,
)
from secretballot.teachers.records import unit_numbers
from secretballot.teachers.tally import fits_a_file

#: A table on disk; a str where it is a URL.
TablePlace = Path | str
#: Share of this machine's memory that a private table may take, as it is read or encoded.
MOST_IN_MEMORY = 1 / 8
_RAW_ROWS = 1000  # public rows by which the student's ONNX file is checked


@dataclass(frozen=True)
class RunTables:
    """Which files a run reads, and which of their columns have a duty.

    Attributes
    ----------
    private, public : Path, or str where it is a URL
        Labelled private records; unlabelled public ones. A CSV or Parquet file, a folder of Parquet
        files, or a URL of either.
    target : str
        Column with the class.
    classes : tuple or None
        Declared classes; None takes those of the schema file.
    unit : str or None
        Column with the id of the person a record belongs to; None makes every record its own unit.
    schema : Path or None
        Schema file; None takes types and categories from the public file.
    drop : tuple of str
        Columns left out of every file.
    evaluate : Path, URL or None
        Public labelled records to measure the student on.
    publish_metrics : bool
        Whether these metrics are written into the release, too.
    accept_unseen : tuple of str
        Columns with which the run goes on though most of their cells do not fit the public ones.
    bounds : tuple of two floats, or None
        Public bounds of a target that is a number; None where it is a class.
    labels : tuple of str
        Where there are several labels, the column of each; the first of them is the `target`.
    """

    private: TablePlace
    public: TablePlace
    target: str
    classes: tuple[Any, ...] | None = None
    unit: str | None = None
    schema: Path | None = None
    drop: tuple[str, ...] = ()
    evaluate: TablePlace | None = None
    publish_metrics: bool = False
    accept_unseen: tuple[str, ...] = ()
    bounds: tuple[float, float] | None = None
    labels: tuple[str, ...] = ()

    def description(self) -> dict[str, Any]:
        """Return all that shapes a result: the columns with a duty, and the digests of the files.

        The test file shapes nothing, so it may be another one when a run is taken up; nor do the
        columns whose cells are accepted as they are.
        """
        names = ("target", "classes", "unit", "drop", "bounds", "labels")
        files = {"private": self.private, "public": self.public, "schema": self.schema}
        digests = {
            f"{name} file": None if path is None else table_digest(path)
            for name, path in files.items()
        }
        return {**{name: getattr(self, name) for name in names}, **digests}

    @property
    def targets(self) -> tuple[str, ...]:
        """Columns that are learnt."""
        return self.labels or (self.target,)

    @property
    def aside(self) -> list[str]:
        """Columns that are never features, whichever file has them."""
        given = (*self.targets, self.unit, *self.drop)
        return [name for name in given if name is not None]


@dataclass(frozen=True)
class LabelledTable:
    """Features and class indices of labelled records.

    Attributes
    ----------
    X : ndarray of float, shape (n_rows, n_features)
    index : ndarray of int64, shape (n_rows,)
        Class of each row, as an index into the declared classes.
    """

    X: FloatArray = field(repr=False)
    index: IntArray = field(repr=False)


@dataclass(frozen=True)
class RunInputs:
    """The tables as matrices; `private`, `units` and `test` are not for publication.

    Attributes
    ----------
    schema : Schema
        Encoding of the columns, from public knowledge.
    classes : tuple
        Declared classes.
    private : LabelledTable or StoredRecords
        In memory; or, of a table that is too large for it, on disk.
    units : ndarray of str objects, shape (n_private,), or None
        Of a table in memory.
    X_public : ndarray of float, shape (n_public, n_features)
    test : LabelledTable or None
    raw_rows : RawRows or None
        Public rows before and after their encoding.
    unit_name : str or None
        Column of the units.
    repeating_ids : tuple of str
        What `repeating_ids` returns; it may follow from the private file.
    """

    schema: Schema
    classes: tuple[Any, ...]
    private: LabelledTable | StoredRecords
    units: ObjectArray | None = field(repr=False)
    X_public: FloatArray
    test: LabelledTable | None
    raw_rows: RawRows | None = None
    unit_name: str | None = None
    repeating_ids: tuple[str, ...] = field(default=(), repr=False)

    @property
    def unit(self) -> str:
        """Whose records are protected together: "record" or "user"."""
        return "record" if self.unit_name is None else "user"

    @property
    def n_private(self) -> int:
        """Number of private rows, which is private but under replace-one."""
        if isinstance(self.private, StoredRecords):
            return self.private.n_rows
        return len(self.private.X)

    @property
    def for_fit(self) -> dict[str, Any]:
        """What a learner's fit takes: private records and public points."""
        points = {"X_public": self.X_public, "classes": list(self.classes)}
        if isinstance(self.private, StoredRecords):
            return {"X": self.private.table, "y": None, **points}
        labels = object_array(self.classes)[self.private.index]
        units = {"units": self.units, "unit_name": self.unit_name}
        return {"X": self.private.X, "y": labels, **units, **points}

    @property
    def n_columns(self) -> int:
        """Columns of the tables, once encoded."""
        return int(self.X_public.shape[1])

    @property
    def n_units(self) -> int:
        """Number of private units, of a table on disk about; private but under replace-one."""
        if isinstance(self.private, StoredRecords):
            return self.private.n_units
        return self.n_private if self.units is None else len(set(self.units))

    @property
    def test_rows(self) -> tuple[FloatArray, IntArray] | None:
        """Points and classes of the test table."""
        return None if self.test is None else (self.test.X, self.test.index)


def check_classes(classes: Sequence[Any]) -> tuple[Any, ...]:
    """Return declared classes, at least two and all different.

    Raises
    ------
    ParameterError
        If they are not.
    """
    texts = [whole(str(value)) for value in classes]
    if len(texts) < 2 or len(set(texts)) < len(texts) or "" in texts:
        raise ParameterError(
            Parameter("classes"),
            f" are {', '.join(map(repr, classes)) or 'none'}; declare two or more different ones.",
        )
    strange = [value for value in classes if not fits_a_file(value)]
    if strange:
        raise ParameterError(
            Parameter("classes"),
            f" hold {shown(strange[0])}, which no certificate and no table can hold; give another"
            " value.",
        )
    return tuple(classes)


def check_tables(tables: RunTables) -> None:
    """Refuse files that cannot be tables, and the private one in the place of a public one.

    Raises
    ------
    DataError
        Naming the file.
    """
    check_files(tables)
    refuse_swapped(tables)


def refuse_swapped(tables: RunTables) -> None:
    """Refuse the private file in the place of a public one."""
    _refuse_private_as_public(tables)
    _refuse_private_as_test(tables)


def holds_private_file(place: TablePlace, tables: RunTables) -> bool:
    """Return whether a table is the private one, or has one of its files, by whatever name.

    Raises
    ------
    DataError
        If a file cannot be read.
    """
    return source_of(place).shares_file(source_of(tables.private, role=_role_of_file(True)))


def _refuse_private_as_public(tables: RunTables) -> None:
    """Refuse the most expensive slip of the hand: the private file in the place of the public one.

    Raises
    ------
    DataError
        If one file is in both, by name or by content.
    """
    if holds_private_file(tables.public, tables):
        raise DataError(
            "The private and the public file are the same; the public one must be free to publish."
        )


def _refuse_private_as_test(tables: RunTables) -> None:
    """Refuse to measure a student on the private file.

    What is said of it is computed without noise, so on private records it would be told without a
    price, and of records that were learnt from it says too much good.

    Raises
    ------
    DataError
        If the files are the same, by name or by content.
    """
    path = tables.evaluate
    if path is not None and holds_private_file(path, tables):
        raise DataError(
            f"The test file {shown_place(path)!r} is the private file; metrics are exact and have"
            " no price, so give public labelled records with --evaluate, or none."
        )


def private_row_errors(tables: RunTables, rows: PrivateRows) -> Iterator[DataError]:
    """Yield the refusals of a public and a test table that hold private rows, by the private rows
    beside their encoded points, in this order."""
    if rows.hold(0):
        yield DataError(
            "The public file holds rows of the private file, more of them than chance explains, and"
            " public rows are published; give rows that are known to everybody, and the private"
            " file with all its equal rows. Nothing was spent."
        )
    if tables.evaluate is not None and rows.hold(1):
        yield DataError(
            f"The test file {shown_place(tables.evaluate)!r} holds rows of the private file, more"
            " of them than chance explains; metrics are exact and have no price, so give public"
            " labelled records with --evaluate, or none. Nothing was spent."
        )


def check_files(tables: RunTables) -> None:
    """Refuse files that cannot be tables, before time goes into reading or digesting any of them.

    Raises
    ------
    DataError
        If one of them is no regular file, empty, unreadable or too large.
    """
    given = {"private": tables.private, "public": tables.public, "test": tables.evaluate}
    for name, place in given.items():
        if place is None:
            continue
        role = f"{name} file"
        if is_local_file(place):
            # the private one may be larger than memory, and goes to disk then
            check_file(place, role=role, whole=place is not tables.private)
        else:
            source_of(place, role=role)


def table_digest(place: TablePlace) -> str:
    """Return the digest of a table's files, as `table_source.TableSource.digest` has it.

    Raises
    ------
    DataError
        If they cannot be read.
    """
    return source_of(place).digest()


def read_inputs(tables: RunTables, watch: Watch, vault: Path | None = None) -> RunInputs:
    """Read and check every table of a run.

    Parameters
    ----------
    tables : RunTables
    watch : Watch
        Told what was left out, completed or counted as missing.
    vault : Path, optional
        Where a private table is kept that is too large for memory; without one it is only looked
        at, and nothing can learn from it.

    Raises
    ------
    DataError
        If a table cannot be read or does not fit the others.
    ParameterError
        If the classes are not declared, or not properly.
    """
    if tables.bounds is not None or tables.labels:
        raise ParameterError(
            "Numbers, and several labels, are learnt by `read_table_inputs`; this run"
            " is of one class each."
        )
    # The public table settles the schema and classes are declared before the private one is read:
    # nothing about how a record is encoded may follow from private records.
    schema, public, not_public = public_table(tables, watch)
    declared = tables.classes if tables.classes is not None else schema.classes
    if declared is None:
        raise ParameterError(
            f"Declare the target {shown(tables.target)} from public knowledge, never from private"
            " labels: its classes with --classes A,B (or in the schema file), or, where it is a"
            " number, its bounds with --bounds LOW,HIGH."
        )
    classes = check_classes(declared)
    check_accepted(tables.accept_unseen, schema)
    X_public, expected = encoded_public(tables, schema, public, watch)
    test = None
    if tables.evaluate is not None:
        test, _ = _labelled_table(tables, tables.evaluate, schema, classes, expected, watch)
    raw_rows = raw_rows_of(schema, public)
    rows = PrivateRows([X_public] if test is None else [X_public, test.X])
    private, units, columns, ids = _private_records(
        tables, schema, classes, rows, public, expected, watch, vault
    )
    for error in private_row_errors(tables, rows):
        raise error
    nowhere = [name for name in not_public if name not in columns]
    if nowhere:
        raise DataError(
            f"What is to be dropped, {name_columns(nowhere)}, stands in no file; spell columns as"
            " the files do."
        )
    ids = tuple(dict.fromkeys((*repeating_ids(tables, schema, public), *ids)))
    return RunInputs(schema, classes, private, units, X_public, test, raw_rows, tables.unit, ids)


def _private_records(
    tables: RunTables,
    schema: Schema,
    classes: tuple[Any, ...],
    rows: PrivateRows,
    public: pd.DataFrame,
    expected: TableCells,
    watch: Watch,
    vault: Path | None,
) -> tuple[LabelledTable | StoredRecords, ObjectArray | None, Collection[str], tuple[str, ...]]:
    """Return the private records, their units if they have any and are in memory, the columns of
    the file, and those of ids that repeat in memory; the records are added to the rows."""
    role = _role_of_file(True)
    if not goes_to_disk(tables.private, len(schema.feature_names)):
        private, frame = _labelled_table(
            tables, tables.private, schema, classes, expected, watch, private=True
        )
        units = None if tables.unit is None else unit_ids(frame, tables.unit, role=role)
        rows.add(private.X, None if units is None else unit_numbers(units, len(units)))
        note_copies(frame, public, watch)
        return private, units, set(frame.columns), repeating_ids(tables, schema, frame)
    # no local file that fits into memory: rows are encoded block by block and kept in the vault
    expected_rows = estimated_rows(tables.private, role=role)
    read = read_to_disk(
        Wanted(tables.private, schema, tables.target, classes, tables.unit),
        vault,
        lambda frame: check_labelled_columns(tables, frame, schema, private=True),
        lambda cells: note_cells(tables, schema, cells, expected, watch, role=role),
        lambda count: watch.progress(min(count, expected_rows), expected_rows),
        rows,
    )
    return read, None, read.columns, ()


def repeating_ids(tables: RunTables, schema: Schema, frame: pd.DataFrame) -> tuple[str, ...]:
    """Return the columns that were taken for ids and have values in more than one row, none where
    the unit is declared."""
    if tables.unit is not None:
        return ()
    return tuple(
        name
        for name in schema.identifiers
        if name in frame.columns and len(set(ids := known_texts(frame[name]))) < len(ids)
    )


def note_copies(frame: pd.DataFrame, public: pd.DataFrame, watch: Watch) -> None:
    """Tell the curator how many private rows repeat another one in all of their cells, where that
    is more than chance explains: pairs of equal rows grow with the square of their number."""
    by_chance = (_n_copies(public) + 1) * (len(frame) / len(public)) ** 2
    copies = _n_copies(frame)
    if copies > by_chance:
        watch.note(
            f"{copies:,} rows of the private file repeat another row in all cells; each of them"
            " counts as a record.",
            private=True,
        )


def _n_copies(frame: pd.DataFrame) -> int:
    """Return how many rows repeat an earlier one in all of their cells."""
    codes = pd.DataFrame({name: coded_texts(frame[name])[0] for name in frame.columns})
    return int(codes.duplicated().sum())


def goes_to_disk(place: TablePlace, width: int) -> bool:
    """Return whether a private table of so many encoded columns is read block by block and kept on
    disk: where memory could become short, and wherever it is not one local file."""
    if not is_local_file(place):
        return True
    matrix = 8 * width * estimated_rows(place, role=_role_of_file(True))
    return max(matrix, GROWTH * source_of(place).size()) > MOST_IN_MEMORY * memory_bytes()


def raw_rows_of(schema: Schema, public: pd.DataFrame) -> RawRows:
    """Return public rows as a stranger would give them, and one of which nothing is known, and one
    that is like no other."""
    frame = pd.DataFrame(
        {
            column.name: pd.Series(
                [*texts_of(public[column.name].iloc[:_RAW_ROWS]), "", _odd_text(column)],
                dtype=object,
            )
            for column in schema.columns
            if column.feature_names
        }
    )
    cells = {
        column.name: _graph_cells(column, frame[column.name])
        for column in schema.columns
        if column.feature_names
    }
    return RawRows(cells, schema.encode(frame, role="public file"))


def _odd_text(column: Column) -> str:
    """Return a cell that a column has no place for."""
    return "2e30" if isinstance(column, NumericColumn) else "none of the categories"


def _graph_cells(column: Column, cells: "pd.Series[Any]") -> list[Any]:
    """Return cells as the inputs of a student's ONNX graph: numbers, vectors or texts."""
    if isinstance(column, NumericColumn):
        numbers = column.numbers(cells).tolist()
        # a number too large for the encoding is one for the graph to refuse by itself
        return [*numbers[:-1], 2 * LARGEST_NUMBER]
    if isinstance(column, VectorColumn):
        return list(vectors_of(cells, column.width))
    if isinstance(column, HashedTextColumn):
        encoded = np.empty((len(cells), len(column.feature_names)))
        column.widen(column.compact(cells)[0], encoded)
        return list(encoded)
    return list(texts_of(cells))


def public_table(tables: RunTables, watch: Watch) -> tuple[Schema, pd.DataFrame, list[str]]:
    """Read the public table and settle the schema; its target column, if any, is never used.

    Also returns the columns to drop that the public file does not have.

    Raises
    ------
    DataError
        If the file or the schema cannot be read, or they do not fit.
    """
    # Columns with a duty leave before the schema is made, or they would become features.
    public = read_table(tables.public, role="public file")
    aside = tables.aside
    not_public = [name for name in tables.drop if name not in public.columns]
    for target in tables.targets:
        if target in public.columns:
            watch.note(
                f"The public file has the column {target!r}, which is the target; it is left out"
                " and never used.",
                private=False,
            )
    public = public.drop(columns=[name for name in aside if name in public.columns])
    if tables.schema is None:
        schema = Schema.infer(public)
    else:
        schema = Schema.read(tables.schema, public=public, ignore=aside)
        check_columns(
            public, schema.names, role="public file", source="the schema", aside=schema.ignored
        )
    note_columns(schema, watch)
    return schema, public, not_public


def note_columns(schema: Schema, watch: Watch) -> None:
    """Tell of each column that is no feature, and of each that could as well be something else."""
    # Public reasons about a public file, so the notes may be published.
    for name, reason in schema.ignored.items():
        watch.note(f"Column {name!r} is no feature: {reason}.", private=False)
    for column in schema.columns:
        if column.name in schema.doubtful and column.feature_names:
            reason = schema.reasons[column.name]
            watch.note(f"Column {column.name!r} holds {column.holds}: {reason}.", private=False)


def encoded_public(
    tables: RunTables, schema: Schema, public: pd.DataFrame, watch: Watch
) -> tuple[FloatArray, TableCells]:
    """Return the public table encoded, and its cells that could not be read.

    Raises
    ------
    DataError
        If a declared schema does not fit it: most cells of a column are nowhere in it.
    """
    encoded = schema.encoding(public, role="public file")
    cells = TableCells.of(public, encoded)
    if tables.schema is not None:
        settle_misfits(
            misfits(schema, cells),
            watch,
            role="public file",
            accepted=tables.accept_unseen,
            private=False,
        )
    return encoded.matrix, cells


def check_labelled_columns(
    tables: RunTables, frame: pd.DataFrame, schema: Schema, *, private: bool
) -> None:
    """Refuse a labelled table without the columns that it needs; only in the private one are extra
    columns refused.

    Raises
    ------
    DataError
        Naming them.
    """
    role = _role_of_file(private)
    if tables.unit in tables.targets:
        raise DataError(
            f"The column of unit ids, {shown(tables.unit)}, is the one with the labels; name the"
            " column that says whose a record is with --unit."
        )
    aside = {*tables.aside, *schema.ignored}
    check = partial(
        check_columns, frame, schema.names, role=role, source=schema.source, aside=aside
    )
    check(extra_allowed=True)
    # before surplus columns are refused: a name misspelt makes the true one a surplus column
    for target in tables.targets:
        check_named(frame, target, "its label column with --target", role=role)
    if private:
        if tables.unit is not None:
            check_named(frame, tables.unit, "the column of unit ids with --unit", role=role)
        check(extra_allowed=False)


def _role_of_file(private: bool) -> str:
    return "private file" if private else "test file"


def _labelled_table(
    tables: RunTables,
    path: TablePlace,
    schema: Schema,
    classes: tuple[Any, ...],
    public: TableCells,
    watch: Watch,
    *,
    private: bool = False,
) -> tuple[LabelledTable, pd.DataFrame]:
    """Return a labelled table, encoded and as it was read.

    Only of the private one are cells told of that are no numbers.
    """
    role = _role_of_file(private)
    frame = read_table(path, role=role)
    check_labelled_columns(tables, frame, schema, private=private)
    index = class_indices(frame, tables.target, classes, role=role)
    encoding = schema.encoding(frame, role=role)
    note_cells(tables, schema, TableCells.of(frame, encoding), public, watch, role=role)
    return LabelledTable(encoding.matrix, index), frame


def note_cells(
    tables: RunTables,
    schema: Schema,
    found: TableCells,
    public: TableCells,
    watch: Watch,
    *,
    role: str,
) -> None:
    """Refuse a labelled table whose cells mostly do not fit, and tell of those that do not; only of
    the private one are cells told of that say nothing or are no numbers.

    Raises
    ------
    DataError
        Naming the columns, and what to do.
    """
    private = role == _role_of_file(True)
    misfitting = misfits(schema, found, public)
    settle_misfits(misfitting, watch, role=role, accepted=tables.accept_unseen, private=private)
    if private:
        note_empty_columns(found, public, watch, role=role)
        note_unreadable(schema, found, watch, role=role)
