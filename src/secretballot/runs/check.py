"""What the tables of a run are and whether they fit each other: all of it at once, before a run.

Everything here is computed from private data without noise and is for the curator alone. Nothing is
written, trained or spent.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from secretballot._naming import name_columns
from secretballot._typing import FloatArray, ObjectArray
from secretballot.data.columns import MeasuredColumn
from secretballot.data.frames import class_indices, unit_ids
from secretballot.data.reading import read_table
from secretballot.data.schema import Schema
from secretballot.exceptions import DataError, ParameterError, SecretBallotError
from secretballot.learners.training.private_rows import PrivateRows
from secretballot.runs.caution import cautions_of_ids
from secretballot.runs.progress import Watch
from secretballot.runs.table_match import TableCells, check_accepted, misfits, settle_misfits
from secretballot.runs.tables import (
    RunTables,
    check_classes,
    check_files,
    check_labelled_columns,
    encoded_public,
    holds_private_file,
    private_row_errors,
    public_table,
    repeating_ids,
)
from secretballot.teachers.records import unit_numbers

Found = TypeVar("Found")


@dataclass(frozen=True)
class CheckedColumn:
    """How a column of the private table compares with the public one.

    Attributes
    ----------
    name, kind : str
    strange, public_strange : float
        Share of the cells that say something for which the encoding has no place.
    missing, public_missing : float
        Share of the rows that say nothing.
    beyond : float or None
        Of a column of numbers, the share of private ones outside the public range.
    """

    name: str
    kind: str
    strange: float = field(repr=False)
    public_strange: float
    missing: float = field(repr=False)
    public_missing: float
    beyond: float | None = field(repr=False)


@dataclass
class TableCheck:
    """What was found; NOT RELEASABLE, since it is computed from private data without noise.

    Attributes
    ----------
    rows : dict of str to int
        Of each table that could be read, by its role.
    classes : dict of str to int
        Private rows of each declared class.
    units : int or None
        How many units the private rows belong to.
    columns : list of CheckedColumn
        Those that become features, the worst first.
    stopping : list of DataError or ParameterError
        What would stop a run.
    """

    rows: dict[str, int] = field(default_factory=dict, repr=False)
    classes: dict[str, int] = field(default_factory=dict, repr=False)
    units: int | None = field(default=None, repr=False)
    columns: list[CheckedColumn] = field(default_factory=list, repr=False)
    stopping: list[DataError | ParameterError] = field(default_factory=list, repr=False)

    def to_private_json(self, spelled: Callable[[SecretBallotError], str] = str) -> dict[str, Any]:
        """Return all of it as JSON values, errors as they are spelled; not for publication."""
        columns = [vars(column) for column in self.columns]
        stopping = [spelled(error) for error in self.stopping]
        return {"releasable": False, **vars(self), "columns": columns, "stopping": stopping}

    @property
    def problem(self) -> str | None:
        """How many findings would stop a run, in a sentence; None without any."""
        count = len(self.stopping)
        if not count:
            return None
        return (
            f"{count} {'finding' if count == 1 else 'findings'} above would stop the run; nothing"
            " was trained, written or spent."
        )

    def attempt(self, look: Callable[[], Found]) -> Found | None:
        """Return what a look finds; what it refuses is kept."""
        try:
            return look()
        except (DataError, ParameterError) as error:
            self.stopping.append(error)
        return None


def check_tables_of_run(tables: RunTables, watch: Watch | None = None) -> TableCheck:
    """Read and compare the tables of a run, without the run.

    Parameters
    ----------
    tables : RunTables
    watch : Watch, optional
        Told what a run would be told of its tables.

    Returns
    -------
    TableCheck

    Raises
    ------
    DataError
        If a file is none, or the public table cannot be read: there is nothing to compare with.

    Privacy
    -------
    Everything is for the curator's eyes: shares, counts and names, without noise. No cell is shown.
    """
    watch = watch or Watch()
    check, step = TableCheck(), watch.step
    check_files(tables)
    step("Reading tables")
    schema, public, not_public = public_table(tables, watch)
    check.rows |= {"private": 0, "public": len(public)}
    # each look is an attempt: one refusal is noted and does not hide the next
    check.attempt(lambda: check_accepted(tables.accept_unseen, schema))
    declared = tables.classes if tables.classes is not None else schema.classes
    classes = check.attempt(lambda: _declared_classes(declared))
    check.attempt(lambda: encoded_public(tables, schema, public, watch))
    encoding = schema.encoding(public, role="public file")
    expected = TableCells.of(public, encoding)
    points, ids = {"public file": encoding.matrix}, None
    for path, role in ((tables.evaluate, "test file"), (tables.private, "private file")):
        frame = None if path is None else check.attempt(partial(read_table, path, role=role))
        if frame is not None:
            check.rows[role.removesuffix(" file")] = len(frame)
            found = _check_labelled(check, tables, frame, role, schema, classes, expected, watch)
            if found is not None:
                points[role] = found
            if role == "private file":
                ids = _check_private(check, tables, frame, not_public, schema, public, expected)
    _check_private_rows(check, tables, points, ids)
    return check


def _declared_classes(declared: tuple[Any, ...] | None) -> tuple[Any, ...]:
    if declared is None:
        raise ParameterError(
            "The classes are not declared; list them with --classes, or in the schema file."
        )
    return check_classes(declared)


def _check_labelled(
    check: TableCheck,
    tables: RunTables,
    frame: pd.DataFrame,
    role: str,
    schema: Schema,
    classes: tuple[Any, ...] | None,
    expected: TableCells,
    watch: Watch,
) -> FloatArray | None:
    """Look at columns, labels and cells of a labelled table, and return it encoded, None where it
    lacks a column."""
    private = role == "private file"
    check.attempt(lambda: check_labelled_columns(tables, frame, schema, private=private))
    if tables.target in frame.columns and classes is not None:
        index = check.attempt(lambda: class_indices(frame, tables.target, classes, role=role))
        if index is not None and private:
            counts = np.bincount(index, minlength=len(classes)).tolist()
            check.classes = dict(zip(map(str, classes), counts, strict=True))
    # a missing column was noted above; the cells of the others are looked at all the same
    own = _columns_of(schema, frame)
    if own is None:
        return None
    encoding = own.encoding(frame, role=role)
    found = misfits(own, TableCells.of(frame, encoding), expected)
    check.attempt(
        lambda: settle_misfits(
            found, watch, role=role, accepted=tables.accept_unseen, private=private
        )
    )
    return encoding.matrix if len(own.columns) == len(schema.columns) else None


def _check_private(
    check: TableCheck,
    tables: RunTables,
    frame: pd.DataFrame,
    not_public: list[str],
    schema: Schema,
    public: pd.DataFrame,
    expected: TableCells,
) -> ObjectArray | None:
    """Look at what the private table alone has: units, columns to drop, shares beside the public
    ones. Return the units, None without any."""
    unit, ids = tables.unit, None
    if unit is not None and unit in frame.columns:
        ids = check.attempt(lambda: unit_ids(frame, unit, role="private file"))
        check.units = None if ids is None else len(set(ids))
    ids_of_files = {
        *repeating_ids(tables, schema, public),
        *repeating_ids(tables, schema, frame),
    }
    check.stopping += [
        ParameterError(caution.text[:1].upper() + caution.text[1:])
        for caution in cautions_of_ids(sorted(ids_of_files))
    ]
    nowhere = [name for name in not_public if name not in frame.columns]
    if nowhere:
        check.stopping.append(
            DataError(
                f"What is to be dropped, {name_columns(nowhere)}, stands in no file; spell columns"
                " as the files do."
            )
        )
    own = _columns_of(schema, frame)
    if own is None:
        return ids
    cells = TableCells.of(frame, own.encoding(frame, role="private file"))
    for column in own.columns:
        name = column.name
        if column.feature_names:
            check.columns.append(
                CheckedColumn(
                    name,
                    column.to_json()["kind"],
                    cells.strange_share(name),
                    expected.strange_share(name),
                    cells.missing_share(name),
                    expected.missing_share(name),
                    _share_beyond(column, frame[name], public[name])
                    if isinstance(column, MeasuredColumn)
                    else None,
                )
            )
    # what fits worst is shown first
    check.columns.sort(key=lambda one: (-one.strange, -one.missing, one.name))
    return ids


def _columns_of(schema: Schema, frame: pd.DataFrame) -> Schema | None:
    """Return the schema of those columns that a table has, None without any."""
    columns = tuple(column for column in schema.columns if column.name in frame.columns)
    own = Schema(columns, schema.classes, schema.source)
    return own if own.names else None


def _share_beyond(
    column: MeasuredColumn, cells: "pd.Series[Any]", public: "pd.Series[Any]"
) -> float:
    """Return the share of numbers that lie outside the range of the public ones."""
    numbers, own = column.numbers(cells), column.numbers(public)
    numbers, own = numbers[np.isfinite(numbers)], own[np.isfinite(own)]
    if not numbers.size or not own.size:
        return 0.0
    return float(((numbers < own.min()) | (numbers > own.max())).mean())


def _check_private_rows(
    check: TableCheck,
    tables: RunTables,
    points: Mapping[str, FloatArray],
    ids: ObjectArray | None,
) -> None:
    """Say so where the private file, or rows of it, stand in the place of public ones."""
    same = []
    for path, role in ((tables.public, "public"), (tables.evaluate, "test")):
        if path is not None and holds_private_file(path, tables):
            same.append(
                DataError(f"The {role} file is the private file; give public records in its place.")
            )
    check.stopping += same
    if not same and len(points) == (2 if tables.evaluate is None else 3):
        X = points["private file"]
        rows = PrivateRows([one for role, one in points.items() if role != "private file"])
        rows.add(X, None if ids is None else unit_numbers(ids, len(X)))
        check.stopping += private_row_errors(tables, rows)
