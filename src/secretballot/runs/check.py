"""What the tables of a run are and whether they fit each other: all of it at once, before a run.

Everything here is computed from private data without noise and is for the curator alone. Nothing is
written, trained or spent.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from secretballot.data.columns import Column, MeasuredColumn
from secretballot.exceptions import DataError, ParameterError, SecretBallotError
from secretballot.runs.questions import Watch, cautions_of_ids
from secretballot.runs.spec import RunSpec
from secretballot.runs.table_match import TableCells
from secretballot.runs.tables import (
    PRIVATE,
    Found,
    LabelledTable,
    RunInputs,
    check_files,
    refuse_swapped,
)


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
        Of a column of numbers, the share of private ones outside the public range; None of others,
        and of a table that is read block by block.
    """

    name: str
    kind: str
    strange: float = field(repr=False)
    public_strange: float
    missing: float = field(repr=False)
    public_missing: float
    beyond: float | None = field(repr=False)


class TableCheck(RunInputs):
    """The tables of a run, read without the run: what it would refuse is kept, and does not hide
    what comes next. NOT RELEASABLE, since it is computed from private data without noise.

    Parameters
    ----------
    spec : RunSpec
    watch : Watch, optional
        Called with what a run would report of its tables.

    Attributes
    ----------
    rows : dict of str to int
        Of each table that could be read, by its role.
    class_counts : dict of str to int
        Private rows of each declared class.
    columns : list of CheckedColumn
        Those that become features, the worst first.
    stopping : list of DataError or ParameterError
        What would stop a run.

    Raises
    ------
    DataError
        If a file is none, or the public table cannot be read: there is nothing to compare with.

    Privacy
    -------
    Everything is for the curator's eyes: shares, counts and names, without noise. No cell is shown.
    """

    def __init__(self, spec: RunSpec, watch: Watch | None = None) -> None:
        self.columns: list[CheckedColumn] = []
        self.stopping: list[DataError | ParameterError] = []
        self.class_counts: dict[str, int] = {}
        self.rows = {"private": 0, "public": 0}
        watch = watch or Watch()
        check_files(spec)
        watch.step("Reading tables")
        self.attempt(lambda: refuse_swapped(spec))
        super().__init__(spec, watch)
        self.rows["public"] = len(self.X_public)
        private = self.private if isinstance(self.private, LabelledTable) else None
        if self.classes and private is not None and private.targets is not None:
            counts = np.bincount(private.targets, minlength=len(self.classes))
            self.class_counts = dict(zip(map(str, self.classes), counts.tolist(), strict=True))
        # ids that repeat are a question to a run, which would not go on without an answer
        self.stopping += [
            ParameterError(caution.text[:1].upper() + caution.text[1:])
            for caution in cautions_of_ids(self.repeating_ids)
        ]

    def attempt(self, look: Callable[[], Found]) -> Found | None:
        """Return what a look finds; what it refuses is kept."""
        try:
            return look()
        except (DataError, ParameterError) as error:
            self.stopping.append(error)
        return None

    def saw(self, role: str, frame: pd.DataFrame | None, cells: TableCells) -> None:
        """Note how many rows a table has, and how columns of the private one compare."""
        self.rows[role.removesuffix(" file")] = cells.n_rows
        if role == PRIVATE:
            self.columns = [
                self._compared(column, frame, cells)
                for column in self.schema.columns
                if column.name in cells.columns and column.feature_names
            ]
            # what fits worst is shown first
            self.columns.sort(key=lambda one: (-one.strange, -one.missing, one.name))

    def _compared(
        self, column: Column, frame: pd.DataFrame | None, cells: TableCells
    ) -> CheckedColumn:
        """Return how a column compares with the public one."""
        name, beyond = column.name, None
        if isinstance(column, MeasuredColumn) and frame is not None:
            numbers, own = (column.numbers(one[name]) for one in (frame, self.public))
            numbers, own = numbers[np.isfinite(numbers)], own[np.isfinite(own)]
            outside = (numbers < own.min(initial=np.inf)) | (numbers > own.max(initial=-np.inf))
            beyond = float(outside.mean()) if numbers.size and own.size else 0.0
        return CheckedColumn(
            name,
            column.to_json()["kind"],
            cells.strange_share(name),
            self.expected.strange_share(name),
            cells.missing_share(name),
            self.expected.missing_share(name),
            beyond,
        )

    @property
    def units(self) -> int | None:
        """How many units the private rows belong to; None where every row is one."""
        return None if getattr(self.private, "units", None) is None else self.n_units

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

    def to_private_json(self, spelled: Callable[[SecretBallotError], str] = str) -> dict[str, Any]:
        """Return all of it as JSON values, errors as they are spelled; not for publication."""
        return {
            "releasable": False,
            "rows": self.rows,
            "classes": self.class_counts,
            "units": self.units,
            "columns": [vars(column) for column in self.columns],
            "stopping": [spelled(error) for error in self.stopping],
        }
