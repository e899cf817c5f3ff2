"""The tables of a run, checked before anything is trained, drawn or paid.

All reports here are for the curator alone: it names columns, counts and row numbers, never a
cell.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

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
from secretballot.data.tally import check_classes as distinct_classes
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.learners.training.inputs import object_array
from secretballot.learners.training.private_rows import PrivateRows
from secretballot.learners.training.targets import number_of
from secretballot.report.student.raw_columns import RawRows
from secretballot.runs.questions import Caution, Watch
from secretballot.runs.spec import DataSpec, RunSpec
from secretballot.runs.stored_records import read_to_disk
from secretballot.runs.table_match import (
    PRIVATE,
    PUBLIC,
    TEST,
    TableCells,
    check_accepted,
    check_labelled_columns,
    settle_cells,
)
from secretballot.teachers.records import unit_numbers

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

Found = TypeVar("Found")


@dataclass(frozen=True)
class LabelledTable:
    """Features and targets of labelled records; each is None where `RunInputs.attempt` keeps why it
    could not be read.

    Attributes
    ----------
    X : ndarray of float, shape (n_rows, n_features)
    targets : ndarray of int64, shape (n_rows,) or (n_rows, n_labels), or of numbers
        Class of each row, as an index into the declared classes; or 1 for each label that it has;
        or its number: of private records the text of its cell.
    units : ndarray of str objects, shape (n_rows,), or None
        Of the private table, where a column of units was named.
    """

    X: Any = field(repr=False)
    targets: Any = field(repr=False)
    units: ObjectArray | None = field(default=None, repr=False)


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
    test : LabelledTable or None
    private : LabelledTable, StoredTable or None
        In memory; or, of a table that is too large for it, on disk; None where that was only
        looked at.
    n_private, n_units : int
        Number of private rows and of units, of a table on disk about; private but under
        replace-one.
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

    def __init__(self, spec: RunSpec, watch: Watch, vault: Path | None = None) -> None:
        self._data, self._watch = spec.data, watch
        data, evaluate = spec.data, spec.output.evaluate
        # The public table settles the schema and classes are declared before the private one is
        # read: nothing about how a record is encoded may follow from private records.
        self.schema, self.public, not_public = public_table(data, watch)
        self._names = self.attempt(lambda: declared_names(data, self.schema))
        self.classes = (self._names or ()) if data.kind == "class" else ()
        self.attempt(lambda: check_accepted(data.accept_unseen, self.schema))
        encoding = self.schema.encoding(self.public, role=PUBLIC)
        self.X_public: FloatArray = encoding.matrix
        self.cells = {PUBLIC: TableCells.of(self.public, encoding)}
        if data.schema_file is not None:
            self._settle(self.schema, self.cells[PUBLIC], PUBLIC, None)
        self.test = None if evaluate is None else self._labelled(evaluate, TEST)[0]
        test = None if self.test is None else self.test.X
        rows = PrivateRows([self.X_public] if test is None else [self.X_public, test])
        columns = self._read_private(spec.private, vault, rows)
        self.attempt(lambda: _refuse_private_rows(rows, None if test is None else evaluate))
        if columns is not None:
            nowhere = [name for name in not_public if name not in columns]
            self.attempt(lambda: refuse_nowhere(nowhere, "no file"))
        self.public = self.public.head(_RAW_ROWS).copy()  # the others are needed no more

    def attempt(self, look: Callable[[], Found]) -> Found | None:
        """Return what a look finds; None where it refuses, and that is kept instead of raised."""
        return look()

    @property
    def for_fit(self) -> dict[str, Any]:
        """What a learner's fit takes: private records, public points, and what is learnt."""
        given: dict[str, Any] = {"X": self.private, "y": None, "X_public": self.X_public}
        if isinstance(self.private, LabelledTable):
            targets = self.private.targets
            y = object_array(self.classes)[targets] if self.classes else targets
            units = {"units": self.private.units, "unit_name": self._data.unit}
            given |= {"X": self.private.X, "y": y, **units}
        if self._data.kind == "number":
            return {**given, "bounds": self._data.bounds}
        if self._data.kind == "labels":
            return {**given, "labels": self._data.target}
        return {**given, "classes": list(self.classes)}

    @property
    def test_rows(self) -> tuple[FloatArray, AnyArray] | None:
        """Points and targets of the test table."""
        return None if self.test is None else (self.test.X, self.test.targets)

    @property
    def raw_rows(self) -> RawRows:
        """Public rows before and after their encoding, as a stranger would give them, and one of
        which nothing is known, and one that is like no other."""
        raw = (
            (one.name, [*texts_of(self.public[one.name]), "", _odd_text(one)])
            for one in self.schema.features
        )
        frame = pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in raw})
        cells = {one.name: _graph_cells(one, frame[one.name]) for one in self.schema.features}
        columns = [one.name for one in self.schema.features for _ in one.feature_names]
        return RawRows(cells, self.schema.encode(frame, role=PUBLIC), columns)

    def _read_private(
        self, place: Path | str, vault: Path | None, rows: PrivateRows
    ) -> tuple[str, ...] | None:
        """Read the private table, add its rows, and return its columns; None if it cannot be
        read."""
        self.private: LabelledTable | StoredTable | None = None
        self.n_private = self.n_units = 0
        self.repeating_ids = self._ids_of(self.public)
        if goes_to_disk(place, self.X_public.shape[1]):
            known = self._names is not None
            return self.attempt(lambda: self._read_to_disk(place, vault, rows)) if known else None
        table, frame = self._labelled(place, PRIVATE)
        if frame is None:
            return None
        units, self.private, self.n_private = table.units, table, len(frame)
        self.n_units = self.n_private if units is None else len(set(units))
        if table.X is not None:
            rows.add(table.X, None if units is None else unit_numbers(units, len(frame)))
        note_copies(frame, self.public, self._watch)
        self.repeating_ids = tuple(dict.fromkeys(self.repeating_ids + self._ids_of(frame)))
        return tuple(frame.columns)

    def _read_to_disk(
        self, place: Path | str, vault: Path | None, rows: PrivateRows
    ) -> tuple[str, ...]:
        """Read a table that is no local file that fits into memory: rows are encoded block by
        block, and kept in the vault."""
        data, n_rows = self._data, estimated_rows(place, role=PRIVATE)
        if data.kind != "class":
            raise ParameterError(
                Parameter("private"),
                " is a table that is read block by block, and teachers of a number, or of several"
                " labels, learn from one local file that fits into memory; give a part of it.",
            )
        read = read_to_disk(
            data,
            self.schema,
            self.classes,
            vault,
            lambda cells: self._settle(self.schema, cells, PRIVATE, self.cells[PUBLIC]),
            lambda count: self._watch.progress(min(count, n_rows), n_rows),
            rows,
        )
        self.private, self.n_private, self.n_units = read.table, read.n_rows, read.n_units
        return read.columns

    def _labelled(self, place: Path | str, role: str) -> tuple[LabelledTable, pd.DataFrame | None]:
        """Return the private or the test table, encoded and as it was read."""
        data, schema = self._data, self.schema
        frame = self.attempt(lambda: read_table(place, role=role))
        if frame is None:
            return LabelledTable(None, None), None
        self.attempt(lambda: check_labelled_columns(data, frame, schema, role=role))
        targets = units = X = None
        # a column that is missing was refused, and the others are looked at all the same
        if self._names is not None and {*data.target} <= {*frame.columns}:
            names = self._names
            targets = self.attempt(lambda: targets_of(data, frame, names, role=role))
        there = tuple(column for column in schema.columns if column.name in frame.columns)
        own = replace(schema, columns=there)
        if own.names:
            encoding = own.encoding(frame, role=role)
            X = encoding.matrix if len(there) == len(schema.columns) else None
            self._settle(own, TableCells.of(frame, encoding), role, self.cells[PUBLIC])
        if role == PRIVATE and data.unit in frame.columns:
            units = self.attempt(lambda: unit_ids(frame, str(data.unit), role=role))
        return LabelledTable(X, targets, units), frame

    def _settle(
        self, schema: Schema, cells: TableCells, role: str, expected: TableCells | None
    ) -> None:
        """Keep which cells of a table could not be read; refuse one whose cells mostly do not
        fit."""
        self.cells[role] = cells
        accepted = self._data.accept_unseen
        self.attempt(
            lambda: settle_cells(
                schema, cells, self._watch, role=role, accepted=accepted, expected=expected
            )
        )

    def _ids_of(self, frame: pd.DataFrame) -> tuple[str, ...]:
        """Return the columns that were taken for ids and have values in more than one row, none
        where the unit is declared."""
        ids = () if self._data.unit is not None else self.schema.identifiers
        return tuple(
            name
            for name in ids
            if name in frame.columns and len(set(cells := known_texts(frame[name]))) < len(cells)
        )


def check_classes(classes: Sequence[Any]) -> tuple[Any, ...]:
    """Return declared classes, which cells of a file tell apart.

    Raises
    ------
    ParameterError
        If they are not two or more distinct values, or two of them are written alike.
    """
    values = distinct_classes(classes)
    texts = [whole(str(value)) for value in values]
    if len(set(texts)) < len(texts) or "" in texts:
        raise ParameterError(
            Parameter("classes"),
            f" are {', '.join(map(repr, classes))}; declare two or more distinct values, of which"
            " no two are written alike and none is empty.",
        )
    return tuple(values)


def check_files(spec: RunSpec) -> None:
    """Refuse files that cannot be tables, before time goes into reading or digesting any of them.

    Raises
    ------
    ParameterError
        If the public table or the target is not named.
    DataError
        If a file is no regular one, empty, unreadable or too large.
    """
    for name in ("public", "target"):
        if not getattr(spec.data, name):
            raise ParameterError(Parameter(name), " is missing; give it.")
    evaluate = spec.output.evaluate
    for role, place in ((PRIVATE, spec.private), (PUBLIC, spec.data.public), (TEST, evaluate)):
        if place is not None:
            # the private one may be larger than memory, and goes to disk then
            checked_source(place, role=role, whole=role != PRIVATE)


def refuse_swapped(spec: RunSpec) -> None:
    """Refuse the private file in the place of a public one, by name or by content.

    The report of a student on the test file is computed without noise, so on private records it
    would be revealed without a price, and of records that were learnt from it says too much good.

    Raises
    ------
    DataError
        If a file is in two places, or cannot be read.
    """
    private, evaluate = source_of(spec.private, role=PRIVATE), spec.output.evaluate
    for role, place in ((PUBLIC, spec.data.public or ""), (TEST, evaluate)):
        if place is not None and source_of(place).shares_file(private):
            raise _refusal_of(role, evaluate, "is the private file, or a part of it")


def _refusal_of(role: str, evaluate: Path | str | None, why: str) -> DataError:
    """Return the refusal of the public or the test table, of which private rows are known."""
    if role == PUBLIC:
        return DataError(
            f"The {PUBLIC} {why}; public rows are published, so give rows that are known to"
            " everybody. Nothing was spent."
        )
    return DataError(
        f"The {TEST} {shown_place(evaluate)!r} {why}; metrics are exact and have no price, so give"
        " public labelled records with --evaluate, or none. Nothing was spent."
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


def _refuse_private_rows(rows: PrivateRows, evaluate: Path | str | None) -> None:
    """Refuse a public and a test table, in this order, that hold private rows."""
    for place, role in enumerate((PUBLIC,) if evaluate is None else (PUBLIC, TEST)):
        if rows.hold(place):
            why = "holds rows of the private file, more of them than chance explains"
            raise _refusal_of(role, evaluate, why)


def refuse_nowhere(dropped: Sequence[str], where: str) -> None:
    """Refuse columns to be dropped that are nowhere."""
    if dropped:
        raise DataError(
            f"What is to be dropped, {name_columns(dropped)}, is in {where}; spell columns as"
            " the files do."
        )


def declared_names(data: DataSpec, schema: Schema) -> tuple[Any, ...]:
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
        raise ParameterError(
            Parameter("classes"),
            f" are {', '.join(map(str, declared))}; of several labels give two spellings, of one"
            " that is not there and of one that is, such as no,yes.",
        )
    return tuple(declared)


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


def goes_to_disk(place: Path | str, width: int) -> bool:
    """Return whether a private table of so many encoded columns is read block by block and kept on
    disk: where memory could become short, and wherever it is not one local file."""
    if not is_local_file(place):
        return True
    matrix = 8 * width * estimated_rows(place, role=PRIVATE)
    return max(matrix, GROWTH * source_of(place).size()) > MOST_IN_MEMORY * memory_bytes()


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


def public_table(data: DataSpec, watch: Watch) -> tuple[Schema, pd.DataFrame, list[str]]:
    """Read the public table and settle the schema; its target column, if any, is never used.

    Also returns the columns to drop that the public file does not have.

    Raises
    ------
    DataError
        If the file or the schema cannot be read, or they do not fit.
    """
    frame = read_table(data.public or "", role=PUBLIC)
    for target in data.target:
        if target in frame.columns:
            watch.note(
                f"The public file has the column {target!r}, which is the target; it is left out"
                " and never used.",
                private=False,
            )
    not_public = [name for name in data.drop if name not in frame.columns]
    return *schema_of(data, frame, PUBLIC, watch), not_public


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
    # Public reasons about a public file, so the notes may be published.
    for name, reason in schema.ignored.items():
        watch.note(f"Column {name!r} is no feature: {reason}.", private=False)
    for column in schema.columns:
        if column.name in schema.doubtful and column.feature_names:
            reason = schema.reasons[column.name]
            watch.note(f"Column {column.name!r} holds {column.holds}: {reason}.", private=False)
    return schema, frame


def targets_of(
    data: DataSpec, frame: pd.DataFrame, names: tuple[Any, ...], *, role: str
) -> AnyArray:
    """Return the targets of a table: classes as indices, labels as 0 and 1, or numbers; private
    numbers as they are written.

    Raises
    ------
    DataError
        If a cell is none; rows are named, cells not.
    """
    if data.kind != "number":
        columns = [class_indices(frame, name, names, role=role) for name in data.target]
        return np.column_stack(columns) % 2 if data.kind == "labels" else columns[0]
    texts = texts_of(frame[data.target[0]])
    if role == PRIVATE:
        return texts
    numbers = _numbers_of(texts)
    rows = np.flatnonzero(~np.isfinite(numbers))
    if rows.size:
        raise DataError(
            f"The {role} has {rows.size} rows without a number in column"
            f" {shown(data.target[0])} ({name_rows(rows)}); complete them or take them out."
        )
    return numbers


def _numbers_of(texts: ObjectArray) -> FloatArray:
    return np.array([number_of(text) for text in texts], dtype=np.float64)


def cautions_of_targets(
    data: DataSpec, inputs: RunInputs, watch: Watch | None = None
) -> Iterator[Caution]:
    """Yield what is to be asked of the curator alone where few private targets are numbers within
    the bounds; what becomes of the others is reported to the watch."""
    if data.bounds is None:
        return
    low, high = data.bounds
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
            f"{said}; check that {shown(data.target[0])} is the column, and"
            f" {low:g},{high:g} the bounds in its unit.",
            private=True,
        )
    elif without + beyond and watch is not None:
        watch.note(f"{said}.", private=True)
