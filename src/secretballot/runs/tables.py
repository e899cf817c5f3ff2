"""The tables of a run, checked before anything is trained, drawn or paid.

Everything said here is said to the curator alone: it names columns, counts and row numbers, never a
cell.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from secretballot._naming import name_columns, name_rows
from secretballot._places import shown_place
from secretballot._typing import AnyArray, FloatArray, ObjectArray
from secretballot._validation import shown
from secretballot.data.cells import (
    LARGEST_NUMBER,
    coded_texts,
    known_texts,
    texts_of,
    vectors_of,
    whole,
)
from secretballot.data.columns import Column, HashedTextColumn, MeasuredColumn, VectorColumn
from secretballot.data.frames import (
    check_columns,
    check_named,
    class_indices,
    memory_bytes,
    unit_ids,
)
from secretballot.data.reading import (
    GROWTH,
    checked_source,
    estimated_rows,
    is_local_file,
    read_table,
)
from secretballot.data.schema import Schema
from secretballot.data.sources import source_of
from secretballot.data.stored import StoredTable
from secretballot.data.tally import fits_a_file
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.learners.training.inputs import object_array
from secretballot.learners.training.private_rows import PrivateRows
from secretballot.learners.training.targets import number_of
from secretballot.report.student.raw_columns import RawRows
from secretballot.runs.progress import Caution, Watch
from secretballot.runs.stored_records import StoredRecords, StoredTableSpec, read_to_disk
from secretballot.runs.table_match import (
    TableCells,
    check_accepted,
    misfits,
    note_empty_columns,
    note_unreadable,
    settle_misfits,
)
from secretballot.teachers.records import unit_numbers

#: A table on disk; a str where it is a URL.
TablePlace = Path | str
#: Share of this machine's memory that a private table may take, as it is read or encoded.
MOST_IN_MEMORY = 1 / 8
#: How a label that is not there, and one that is, may be written where nobody says; by turns.
_SPELLINGS = (
    *("0", "1", "no", "yes", "No", "Yes", "NO", "YES", "n", "y", "N", "Y"),
    *("false", "true", "False", "True", "FALSE", "TRUE"),
)
#: Share of the private targets below which the run asks whether this is the column, or the bounds.
_FEW = 0.5
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
            f"{name} file": None if path is None else source_of(path).digest()
            for name, path in files.items()
        }
        return {**{name: getattr(self, name) for name in names}, **digests}

    @property
    def of_classes(self) -> bool:
        """Whether one class is learnt, rather than a number or several labels."""
        return self.bounds is None and not self.labels

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
    """Features and targets of labelled records.

    Attributes
    ----------
    X : ndarray of float, shape (n_rows, n_features)
    targets : ndarray of int64, shape (n_rows,) or (n_rows, n_labels), or of numbers
        Class of each row, as an index into the declared classes; or 1 for each label that it has;
        or its number: of private records the text of its cell.
    units : ndarray of str objects, shape (n_rows,), or None
        Of the private table, where a column of units was named.
    """

    X: FloatArray = field(repr=False)
    targets: AnyArray = field(repr=False)
    units: ObjectArray | None = field(default=None, repr=False)


@dataclass(frozen=True)
class RunInputs:
    """The tables as matrices; `private` and `test` are not for publication.

    Attributes
    ----------
    schema : Schema
        Encoding of the columns, from public knowledge.
    classes : tuple
        Declared classes; empty where a number is learnt, or several labels.
    private : LabelledTable, StoredTable or None
        In memory; or, of a table that is too large for it, on disk; None where that was only
        looked at.
    n_private, n_units : int
        Number of private rows and of units, of a table on disk about; private but under
        replace-one.
    X_public : ndarray of float, shape (n_public, n_features)
    test : LabelledTable or None
    raw_rows : RawRows
        Public rows before and after their encoding.
    unit_name : str or None
        Column of the units.
    repeating_ids : tuple of str
        What `repeating_ids` returns; it may follow from the private file.
    """

    schema: Schema
    classes: tuple[Any, ...]
    private: LabelledTable | StoredTable | None
    n_private: int = field(repr=False)
    n_units: int = field(repr=False)
    X_public: FloatArray
    test: LabelledTable | None
    raw_rows: RawRows
    unit_name: str | None
    repeating_ids: tuple[str, ...] = field(repr=False)

    @property
    def unit(self) -> str:
        """Whose records are protected together: "record" or "user"."""
        return "record" if self.unit_name is None else "user"

    @property
    def for_fit(self) -> dict[str, Any]:
        """What a learner's fit takes: private records and public points."""
        points: dict[str, Any] = {"X_public": self.X_public}
        if self.classes:
            points["classes"] = list(self.classes)
        if not isinstance(self.private, LabelledTable):
            return {"X": self.private, "y": None, **points}
        targets = self.private.targets
        y = object_array(self.classes)[targets] if self.classes else targets
        units = {"units": self.private.units, "unit_name": self.unit_name}
        return {"X": self.private.X, "y": y, **units, **points}

    @property
    def n_columns(self) -> int:
        """Columns of the tables, once encoded."""
        return int(self.X_public.shape[1])

    @property
    def test_rows(self) -> tuple[FloatArray, AnyArray] | None:
        """Points and targets of the test table."""
        return None if self.test is None else (self.test.X, self.test.targets)


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
    """Refuse the private file in the place of a public one, by name or by content.

    What is said of a student on the test file is computed without noise, so on private records it
    would be told without a price, and of records that were learnt from it says too much good.

    Raises
    ------
    DataError
        If a file is in two places, or cannot be read.
    """
    if holds_private_file(tables.public, tables):
        raise DataError(
            "The private and the public file are the same; the public one must be free to publish."
        )
    path = tables.evaluate
    if path is not None and holds_private_file(path, tables):
        raise DataError(
            f"The test file {shown_place(path)!r} is the private file; metrics are exact and have"
            " no price, so give public labelled records with --evaluate, or none."
        )


def holds_private_file(place: TablePlace, tables: RunTables) -> bool:
    """Return whether a table is the private one, or has one of its files, by whatever name.

    Raises
    ------
    DataError
        If a file cannot be read.
    """
    return source_of(place).shares_file(source_of(tables.private, role=_role_of_file(True)))


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
        if place is not None:
            # the private one may be larger than memory, and goes to disk then
            checked_source(place, role=f"{name} file", whole=place is not tables.private)


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
    # The public table settles the schema and classes are declared before the private one is read:
    # nothing about how a record is encoded may follow from private records.
    schema, public, not_public = public_table(tables, watch)
    names = declared_names(tables, schema)
    check_accepted(tables.accept_unseen, schema)
    X_public, expected = encoded_public(tables, schema, public, watch)
    on_disk = goes_to_disk(tables.private, X_public.shape[1])
    if on_disk and not tables.of_classes:
        raise ParameterError(
            Parameter("private"),
            " is a table that is read block by block, and teachers of a number, or of several"
            " labels, learn from one local file that fits into memory; give a part of it.",
        )
    test = None
    if tables.evaluate is not None:
        test, _ = _labelled_table(tables.evaluate, tables, schema, names, expected, watch)
    rows = PrivateRows([X_public] if test is None else [X_public, test.X])
    private: LabelledTable | StoredTable | None
    ids: tuple[str, ...] = ()
    if on_disk:
        # no local file that fits into memory: rows are encoded block by block, kept in the vault
        read = _read_to_disk(tables, schema, names, expected, watch, vault, rows)
        private, columns = read.table, read.columns
        n_private, n_units = read.n_rows, read.n_units
    else:
        private, frame = _labelled_table(
            tables.private, tables, schema, names, expected, watch, private=True
        )
        units, columns, n_private = private.units, tuple(frame.columns), len(frame)
        n_units = n_private if units is None else len(set(units))
        rows.add(private.X, None if units is None else unit_numbers(units, n_private))
        note_copies(frame, public, watch)
        ids = repeating_ids(tables, schema, frame)
    for error in private_row_errors(tables, rows):
        raise error
    nowhere = [name for name in not_public if name not in columns]
    if nowhere:
        raise DataError(
            f"What is to be dropped, {name_columns(nowhere)}, stands in no file; spell columns as"
            " the files do."
        )
    return RunInputs(
        schema,
        names if tables.of_classes else (),
        private,
        n_private,
        n_units,
        X_public,
        test,
        raw_rows_of(schema, public),
        tables.unit,
        tuple(dict.fromkeys((*repeating_ids(tables, schema, public), *ids))),
    )


def declared_names(tables: RunTables, schema: Schema) -> tuple[Any, ...]:
    """Return the declared classes; or how labels are written, by turns not there, and there."""
    declared = tables.classes if tables.classes is not None else schema.classes
    if tables.bounds is not None:
        return ()
    if declared is None and tables.labels:
        return _SPELLINGS
    if declared is None:
        raise ParameterError(
            f"Declare the target {shown(tables.target)} from public knowledge, never from private"
            " labels: its classes with --classes A,B (or in the schema file), or, where it is a"
            " number, its bounds with --bounds LOW,HIGH."
        )
    if len(check_classes(declared)) != 2 and tables.labels:
        raise ParameterError(
            Parameter("classes"),
            f" are {', '.join(map(str, declared))}; of several labels give two spellings, of one"
            " that is not there and of one that is, such as no,yes.",
        )
    return tuple(declared)


def _read_to_disk(
    tables: RunTables,
    schema: Schema,
    classes: tuple[Any, ...],
    expected: TableCells,
    watch: Watch,
    vault: Path | None,
    rows: PrivateRows,
) -> StoredRecords:
    """Return the private records, kept on disk and added to the rows."""
    role = _role_of_file(True)
    expected_rows = estimated_rows(tables.private, role=role)
    return read_to_disk(
        StoredTableSpec(tables.private, schema, tables.target, classes, tables.unit),
        vault,
        lambda frame: check_labelled_columns(tables, frame, schema, private=True),
        lambda cells: note_cells(tables, schema, cells, expected, watch, role=role),
        lambda count: watch.progress(min(count, expected_rows), expected_rows),
        rows,
    )


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
    raw = (
        (one.name, [*texts_of(public[one.name].iloc[:_RAW_ROWS]), "", _odd_text(one)])
        for one in schema.features
    )
    frame = pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in raw})
    cells = {one.name: _graph_cells(one, frame[one.name]) for one in schema.features}
    return RawRows(cells, schema.encode(frame, role="public file"))


def _odd_text(column: Column) -> str:
    """Return a cell that a column has no place for."""
    return "2e30" if isinstance(column, MeasuredColumn) else "none of the categories"


def _graph_cells(column: Column, cells: "pd.Series[Any]") -> list[Any]:
    """Return cells as the inputs of a student's ONNX graph: numbers, vectors or texts."""
    if isinstance(column, MeasuredColumn):
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
    place: TablePlace,
    tables: RunTables,
    schema: Schema,
    names: tuple[Any, ...],
    public: TableCells,
    watch: Watch,
    *,
    private: bool = False,
) -> tuple[LabelledTable, pd.DataFrame]:
    """Return the private or the test table, encoded and as it was read.

    Only of the private one are cells told of that are no numbers.
    """
    role = _role_of_file(private)
    frame = read_table(place, role=role)
    check_labelled_columns(tables, frame, schema, private=private)
    targets = targets_of(tables, frame, names, role=role, private=private)
    encoding = schema.encoding(frame, role=role)
    note_cells(tables, schema, TableCells.of(frame, encoding), public, watch, role=role)
    units = None
    if private and tables.unit is not None:
        units = unit_ids(frame, tables.unit, role=role)
    return LabelledTable(encoding.matrix, targets, units), frame


def targets_of(
    tables: RunTables, frame: pd.DataFrame, names: tuple[Any, ...], *, role: str, private: bool
) -> AnyArray:
    """Return the targets of a table: classes as indices, labels as 0 and 1, or numbers; private
    numbers as they are written.

    Raises
    ------
    DataError
        If a cell is none; rows are named, cells not.
    """
    if tables.bounds is not None:
        texts = texts_of(frame[tables.target])
        return texts if private else _known_numbers(texts, tables.target)
    columns = [class_indices(frame, name, names, role=role) for name in tables.targets]
    return np.column_stack(columns) % 2 if tables.labels else columns[0]


def _known_numbers(texts: ObjectArray, target: str) -> FloatArray:
    """Return the targets of the test file, which is public."""
    numbers = _numbers_of(texts)
    rows = np.flatnonzero(~np.isfinite(numbers))
    if rows.size:
        raise DataError(
            f"The test file has {rows.size} rows without a number in column"
            f" {shown(target)} ({name_rows(rows)}); complete them or take them out."
        )
    return numbers


def _numbers_of(texts: ObjectArray) -> FloatArray:
    return np.array([number_of(text) for text in texts], dtype=np.float64)


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


def cautions_of_targets(
    tables: RunTables, inputs: RunInputs, watch: Watch | None = None
) -> Iterator[Caution]:
    """Yield what is to be asked of the curator alone where few private targets are numbers within
    the bounds; what becomes of the others is told to the watch."""
    if tables.bounds is None:
        return
    low, high = tables.bounds
    assert isinstance(inputs.private, LabelledTable)
    numbers = _numbers_of(inputs.private.targets)
    # exact counts of private targets: for the curator's eyes alone
    without, beyond = int(np.isnan(numbers).sum()), int(((numbers < low) | (numbers > high)).sum())
    said = (
        f"Of the private targets {without:,} are no numbers, whose records are left out, and"
        f" {beyond:,} lie beyond the bounds and are cut to them"
    )
    if without + beyond > _FEW * len(numbers):
        yield Caution(
            "target",
            f"{said}; check that {shown(tables.target)} is the column, and"
            f" {low:g},{high:g} the bounds in its unit.",
            private=True,
        )
    elif without + beyond and watch is not None:
        watch.note(f"{said}.", private=True)
