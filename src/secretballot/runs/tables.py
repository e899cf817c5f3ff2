"""The tables of a run, checked before anything is trained, drawn or paid.

Everything said here is said to the curator alone: it names columns, counts and row numbers, never a
cell.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd

from secretballot._naming import name_columns
from secretballot._typing import FloatArray, IntArray, ObjectArray
from secretballot.datasets.cells import LARGEST_NUMBER, texts_of, whole
from secretballot.datasets.columns import Column, DateColumn, NumericColumn
from secretballot.datasets.schema import Schema
from secretballot.datasets.tables import (
    check_columns,
    check_file,
    check_named,
    class_indices,
    read_table,
    unit_ids,
)
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.report.metrics import Metrics, metrics_of_student
from secretballot.report.student.raw_columns import NO_TIME, RawRows
from secretballot.runs.folder import RunFolder, file_digest
from secretballot.runs.progress import Watch
from secretballot.runs.table_match import (
    TableCells,
    check_accepted,
    misfits,
    note_empty_columns,
    note_unreadable,
    settle_misfits,
)

__all__ = [
    "LabelledTable",
    "RunInputs",
    "RunTables",
    "check_classes",
    "check_files",
    "check_labelled_columns",
    "encoded_public",
    "folder_of_run",
    "metrics_on_test",
    "note_columns",
    "public_table",
    "raw_rows_of",
    "read_inputs",
]

_RAW_ROWS = 1000  # public rows by which the student's ONNX file is checked


@dataclass(frozen=True)
class RunTables:
    """Which files a run reads, and which of their columns have a duty.

    Attributes
    ----------
    private, public : Path
        Labelled private records; unlabelled public ones.
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
    evaluate : Path or None
        Public labelled records to measure the student on.
    publish_metrics : bool
        Whether these metrics are written into the release, too.
    accept_unseen : tuple of str
        Columns with which the run goes on though most of their cells do not fit the public ones.
    """

    private: Path
    public: Path
    target: str
    classes: tuple[Any, ...] | None = None
    unit: str | None = None
    schema: Path | None = None
    drop: tuple[str, ...] = ()
    evaluate: Path | None = None
    publish_metrics: bool = False
    accept_unseen: tuple[str, ...] = ()

    def description(self) -> dict[str, Any]:
        """Return all that shapes a result: the columns with a duty, and the digests of the files.

        The test file shapes nothing, so it may be another one when a run is taken up; nor do the
        columns whose cells are accepted as they are.
        """
        names = {name: getattr(self, name) for name in ("target", "classes", "unit", "drop")}
        files = {"private": self.private, "public": self.public, "schema": self.schema}
        digests = {
            f"{name} file": None if path is None else file_digest(path)
            for name, path in files.items()
        }
        return {**names, **digests}


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
    private : LabelledTable
    units : ndarray of str objects, shape (n_private,), or None
    X_public : ndarray of float, shape (n_public, n_features)
    test : LabelledTable or None
    raw_rows : RawRows or None
        Public rows before and after their encoding.
    published_test : LabelledTable or None
        The test table, where its metrics are to be published.
    """

    schema: Schema
    classes: tuple[Any, ...]
    private: LabelledTable
    units: ObjectArray | None = field(repr=False)
    X_public: FloatArray
    test: LabelledTable | None
    raw_rows: RawRows | None = None
    published_test: LabelledTable | None = None

    @property
    def unit(self) -> str:
        """Whose records are protected together: "record" or "user"."""
        return "record" if self.units is None else "user"

    @property
    def n_columns(self) -> int:
        """Columns of the tables, once encoded."""
        return int(self.X_public.shape[1])

    @property
    def n_units(self) -> int:
        """Number of private units, which is private but under replace-one."""
        return len(self.private.X) if self.units is None else len(set(self.units))

    @property
    def published_rows(self) -> tuple[FloatArray, IntArray] | None:
        """Points and classes of the published test table."""
        test = self.published_test
        return None if test is None else (test.X, test.index)


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
    return tuple(classes)


class RunOnTables(Protocol):
    """A run that reads tables and writes a folder."""

    @property
    def tables(self) -> RunTables: ...

    @property
    def out(self) -> Path: ...

    def description(self) -> dict[str, Any]: ...


def folder_of_run(run: RunOnTables) -> RunFolder:
    """Return the folder of a run whose files can be tables; nothing is read but for digests.

    Raises
    ------
    DataError
        If a file is none, the private one stands in the place of the public one, or the folder
        holds something else.
    """
    if run.tables.publish_metrics and run.tables.evaluate is None:
        raise ParameterError(
            "There are no metrics to publish; name public labelled records with --evaluate."
        )
    check_files(run.tables)
    description = run.description()
    _refuse_private_as_public(description)
    _refuse_private_as_test(run.tables, description)
    return RunFolder(run.out, description)


def _refuse_private_as_public(description: Mapping[str, Any]) -> None:
    """Refuse the most expensive slip of the hand: the private file in the place of the public one.

    Raises
    ------
    DataError
        If the digests in the description of a run say so.
    """
    if description["private file"] == description["public file"]:
        raise DataError(
            "The private and the public file are the same; the public one must be free to publish."
        )


def _refuse_private_as_test(tables: RunTables, description: Mapping[str, Any]) -> None:
    """Refuse to measure a student on the private file.

    What is said of it is computed without noise, so on private records it would be told without a
    price, and of records that were learnt from it says too much good.

    Raises
    ------
    DataError
        If the files are the same, by name or by content.
    """
    path = tables.evaluate
    if path is None:
        return
    if path.samefile(tables.private) or file_digest(path) == description["private file"]:
        raise DataError(
            f"The test file {str(path)!r} is the private file; metrics are exact and have no price,"
            " so give public labelled records with --evaluate, or none."
        )


def metrics_on_test(student: Any, inputs: RunInputs) -> Metrics | None:
    """Return how good a student is on the test rows, None where there are none."""
    if inputs.test is None or student is None:
        return None
    return metrics_of_student(student, inputs.test.X, inputs.test.index, inputs.classes)


def check_files(tables: RunTables) -> None:
    """Refuse files that cannot be tables, before time goes into reading or digesting any of them.

    Raises
    ------
    DataError
        If one of them is no regular file, empty, unreadable or too large.
    """
    check_file(tables.private, role="private file")
    check_file(tables.public, role="public file")
    if tables.evaluate is not None:
        check_file(tables.evaluate, role="test file")


def read_inputs(tables: RunTables, watch: Watch) -> RunInputs:
    """Read and check every table of a run.

    Parameters
    ----------
    tables : RunTables
    watch : Watch
        Told what was left out, completed or counted as missing.

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
    declared = tables.classes if tables.classes is not None else schema.classes
    if declared is None:
        raise ParameterError(
            "The classes are not declared, and they must not be inferred from private labels; "
            'list them with --classes, or under "classes" in the schema file.'
        )
    classes = check_classes(declared)
    check_accepted(tables.accept_unseen, schema)
    X_public, expected = encoded_public(tables, schema, public, watch)
    test = None
    if tables.evaluate is not None:
        test, _ = _labelled_table(tables, tables.evaluate, schema, classes, expected, watch)
    private, frame = _labelled_table(
        tables, tables.private, schema, classes, expected, watch, private=True
    )
    nowhere = [name for name in not_public if name not in frame.columns]
    if nowhere:
        raise DataError(
            f"What is to be dropped, {name_columns(nowhere)}, stands in no file; spell columns as"
            " the files do."
        )
    units = None if tables.unit is None else unit_ids(frame, tables.unit, role="private file")
    raw_rows = raw_rows_of(schema, public)
    published = test if tables.publish_metrics else None
    return RunInputs(schema, classes, private, units, X_public, test, raw_rows, published)


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
    """Return cells as the inputs of a student's ONNX graph: numbers, seconds or texts."""
    if isinstance(column, NumericColumn):
        numbers = column.numbers(cells).tolist()
        # a number too large for the encoding is one for the graph to refuse by itself
        return [*numbers[:-1], 2 * LARGEST_NUMBER]
    if isinstance(column, DateColumn):
        seconds, unknown = column.seconds(cells)
        return list(np.where(unknown, NO_TIME, seconds).tolist())
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
    aside = [name for name in (tables.target, tables.unit, *tables.drop) if name is not None]
    not_public = [name for name in tables.drop if name not in public.columns]
    if tables.target in public.columns:
        watch.note(
            f"The public file has the column {tables.target!r}, which is the target; it is left out"
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
    role = _role(private)
    aside = {tables.target, tables.unit or tables.target, *tables.drop, *schema.ignored}
    check = partial(
        check_columns, frame, schema.names, role=role, source=schema.source, aside=aside
    )
    check(extra_allowed=True)
    # before surplus columns are refused: a name misspelt makes the true one a surplus column
    check_named(frame, tables.target, "its label column with --target", role=role)
    if private:
        if tables.unit is not None:
            check_named(frame, tables.unit, "the column of unit ids with --unit", role=role)
        check(extra_allowed=False)


def _role(private: bool) -> str:
    return "private file" if private else "test file"


def _labelled_table(
    tables: RunTables,
    path: Path,
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
    role = _role(private)
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
    private = role == _role(True)
    misfitting = misfits(schema, found, public)
    settle_misfits(misfitting, watch, role=role, accepted=tables.accept_unseen, private=private)
    if private:
        note_empty_columns(found, public, watch, role=role)
        note_unreadable(schema, found, watch, role=role)
