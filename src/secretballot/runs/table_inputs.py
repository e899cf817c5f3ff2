"""The tables of a run on a number, or on several labels, checked before anything is trained, drawn
or paid.

Everything said here is said to the curator alone: it names columns, counts and row numbers, never a
cell.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from secretballot._naming import name_columns, name_rows
from secretballot._typing import AnyArray, FloatArray, IntArray, ObjectArray
from secretballot._validation import shown
from secretballot.datasets.cells import texts_of
from secretballot.datasets.schema import Schema
from secretballot.datasets.tables import class_indices, read_table, unit_ids
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.learners.training.private_rows import PrivateRows
from secretballot.learners.training.target_cells import number_of
from secretballot.report.student.raw_columns import RawRows
from secretballot.runs.progress import Caution, Watch
from secretballot.runs.table_match import TableCells, check_accepted
from secretballot.runs.tables import (
    RunTables,
    TablePlace,
    check_classes,
    check_labelled_columns,
    encoded_public,
    goes_to_disk,
    note_cells,
    note_copies,
    private_row_errors,
    public_table,
    raw_rows_of,
    repeating_ids,
)
from secretballot.teachers.records import unit_numbers

#: How a label that is not there, and one that is, may be written where nobody says; by turns.
_SPELLINGS = (
    *("0", "1", "no", "yes", "No", "Yes", "NO", "YES", "n", "y", "N", "Y"),
    *("false", "true", "False", "True", "FALSE", "TRUE"),
)
#: Share of the private targets below which the run asks whether this is the column, or the bounds.
_FEW = 0.5


@dataclass(frozen=True)
class TableInputs:
    """The tables as matrices; `X`, `y`, `units` and `test` are not for publication.

    Attributes
    ----------
    schema : Schema
        Encoding of the columns, from public knowledge.
    X : ndarray of float, shape (n_private, n_features)
    y : ndarray of str objects, shape (n_private,), or of 0 and 1, shape (n_private, n_labels)
        Private targets: numbers as they are written, or labels.
    units : ndarray of str objects, shape (n_private,), or None
    unit_name : str or None
        Column of the units.
    labels : tuple of str
        Names of several labels; empty of a number.
    X_public : ndarray of float, shape (n_public, n_features)
    test : tuple of two ndarrays, or None
        Points of the test file, and their numbers, or labels.
    raw_rows : RawRows
        Public rows before and after their encoding.
    repeating_ids : tuple of str
        As in `RunInputs`.
    """

    schema: Schema
    X: FloatArray = field(repr=False)
    y: AnyArray = field(repr=False)
    units: ObjectArray | None = field(repr=False)
    unit_name: str | None
    labels: tuple[str, ...]
    X_public: FloatArray
    test: tuple[FloatArray, AnyArray] | None = field(repr=False)
    raw_rows: RawRows
    repeating_ids: tuple[str, ...] = field(default=(), repr=False)

    @property
    def unit(self) -> str:
        """Whose records are protected together: "record" or "user"."""
        return "record" if self.unit_name is None else "user"

    @property
    def n_private(self) -> int:
        """Number of private rows, which is private but under replace-one."""
        return len(self.X)

    @property
    def n_units(self) -> int:
        """Number of private units; private but under replace-one."""
        return self.n_private if self.units is None else len(set(self.units))

    @property
    def test_rows(self) -> tuple[FloatArray, AnyArray] | None:
        """Points of the test file, and their numbers, or labels."""
        return self.test

    @property
    def for_fit(self) -> dict[str, Any]:
        """What a learner's fit takes: private records and public points."""
        units = {"units": self.units, "unit_name": self.unit_name}
        labels = {"labels": self.labels} if self.labels else {}
        return {"X": self.X, "y": self.y, **units, **labels, "X_public": self.X_public}


def read_table_inputs(tables: RunTables, watch: Watch) -> TableInputs:
    """Read and check every table of a run on a number, or on several labels.

    Parameters
    ----------
    tables : RunTables
        With bounds, or with labels.
    watch : Watch
        Told what was left out, completed or counted as missing.

    Raises
    ------
    DataError
        If a table cannot be read or does not fit the others.
    ParameterError
        If the private table does not fit into memory, or the bounds or spellings cannot be.
    """
    # as in a run on classes: nothing about how a record is encoded follows from private records
    schema, public, not_public = public_table(tables, watch)
    check_accepted(tables.accept_unseen, schema)
    X_public, expected = encoded_public(tables, schema, public, watch)
    if goes_to_disk(tables.private, X_public.shape[1]):
        raise ParameterError(
            Parameter("private"),
            " is a table that is read block by block, and a number, or several labels, are learnt"
            " from one local file that fits into memory; give a part of it.",
        )
    test = None
    if tables.evaluate is not None:
        X_test, frame = _encoded_table(
            tables, tables.evaluate, schema, expected, watch, role="test file"
        )
        test = X_test, known_targets(tables, frame, schema)
    X, frame = _encoded_table(tables, tables.private, schema, expected, watch, role="private file")
    nowhere = [name for name in not_public if name not in frame.columns]
    if nowhere:
        raise DataError(
            f"What is to be dropped, {name_columns(nowhere)}, stands in no file; spell columns as"
            " the files do."
        )
    units = None if tables.unit is None else unit_ids(frame, tables.unit, role="private file")
    rows = PrivateRows([X_public] if test is None else [X_public, test[0]])
    rows.add(X, None if units is None else unit_numbers(units, len(units)))
    for error in private_row_errors(tables, rows):
        raise error
    if tables.bounds is None:
        y: AnyArray = _label_matrix(tables, frame, schema, role="private file")
    else:
        y = texts_of(frame[tables.target])
    note_copies(frame, public, watch)
    of_private = repeating_ids(tables, schema, frame)
    ids = tuple(dict.fromkeys((*repeating_ids(tables, schema, public), *of_private)))
    return TableInputs(
        schema,
        X,
        y,
        units,
        tables.unit,
        tables.labels,
        X_public,
        test,
        raw_rows_of(schema, public),
        ids,
    )


def _encoded_table(
    tables: RunTables,
    place: TablePlace,
    schema: Schema,
    public: TableCells,
    watch: Watch,
    *,
    role: str,
) -> tuple[FloatArray, pd.DataFrame]:
    """Return a table with targets, encoded and as it was read."""
    frame = read_table(place, role=role)
    check_labelled_columns(tables, frame, schema, private=role == "private file")
    encoding = schema.encoding(frame, role=role)
    note_cells(tables, schema, TableCells.of(frame, encoding), public, watch, role=role)
    return encoding.matrix, frame


def _label_spellings(tables: RunTables, schema: Schema) -> tuple[Any, ...]:
    """Return how labels are written: by turns not there, and there."""
    declared = tables.classes if tables.classes is not None else schema.classes
    if declared is None:
        return _SPELLINGS
    if len(check_classes(declared)) != 2:
        raise ParameterError(
            Parameter("classes"),
            f" are {', '.join(map(str, declared))}; of several labels give two spellings, of one"
            " that is not there and of one that is, such as no,yes.",
        )
    return tuple(declared)


def _label_matrix(tables: RunTables, frame: pd.DataFrame, schema: Schema, *, role: str) -> IntArray:
    """Return which labels every row has, 0 and 1 of shape (n_rows, n_labels).

    Raises
    ------
    DataError
        If a cell says neither; rows are named, cells not.
    """
    spellings = _label_spellings(tables, schema)
    columns = [class_indices(frame, name, spellings, role=role) % 2 for name in tables.labels]
    return np.column_stack(columns)


def known_targets(tables: RunTables, frame: pd.DataFrame, schema: Schema) -> AnyArray:
    """Return the targets of the test file, which is public.

    Raises
    ------
    DataError
        If a row has none.
    """
    if tables.bounds is None:
        return _label_matrix(tables, frame, schema, role="test file")
    numbers = _numbers_of(texts_of(frame[tables.target]))
    rows = np.flatnonzero(~np.isfinite(numbers))
    if rows.size:
        raise DataError(
            f"The test file has {rows.size} rows without a number in column"
            f" {shown(tables.target)} ({name_rows(rows)}); complete them or take them out."
        )
    return numbers


def _numbers_of(texts: ObjectArray) -> FloatArray:
    return np.array([number_of(text) for text in texts], dtype=np.float64)


def cautions_of_targets(
    tables: RunTables, inputs: TableInputs, watch: Watch | None = None
) -> Iterator[Caution]:
    """Yield what is to be asked of the curator alone where few private targets are numbers within
    the bounds; what becomes of the others is told to the watch."""
    if tables.bounds is None:
        return
    low, high = tables.bounds
    numbers = _numbers_of(inputs.y)
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
