"""What the tables of a run are and whether they fit each other: all of it at once, before a run.

Everything here is computed from private data without noise and is for the curator alone. Nothing is
written, trained or spent.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from secretballot.exceptions import DataError, ParameterError, SecretBallotError
from secretballot.runs.questions import Watch, cautions_of_ids
from secretballot.runs.spec import RunSpec
from secretballot.runs.table_match import PRIVATE, PUBLIC, TableCells
from secretballot.runs.tables import (
    Found,
    LabelledTable,
    RunInputs,
    check_files,
    refuse_swapped,
)


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
    class_counts : dict of str to int
        Private rows of each declared class.
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
        self.stopping: list[DataError | ParameterError] = []
        self.class_counts: dict[str, int] = {}
        watch = watch or Watch()
        check_files(spec)
        watch.step("Reading tables")
        self.attempt(lambda: refuse_swapped(spec))
        super().__init__(spec, watch)
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

    @property
    def rows(self) -> dict[str, int]:
        """Rows of each table that could be read, by its role."""
        rows = {role: cells.n_rows for role, cells in self.cells.items()}
        return {role.removesuffix(" file"): rows[role] for role in sorted(rows)}

    @property
    def columns(self) -> list[dict[str, Any]]:
        """Each column that becomes a feature, the worst first: its name and kind, and in both
        tables the share of the cells that say something for which the encoding has no place, and
        of those that say nothing."""
        private, public = self.cells.get(PRIVATE, TableCells()), self.cells[PUBLIC]
        found = [
            {
                "name": one.name,
                "kind": one.to_json()["kind"],
                "strange": private.strange_share(one.name),
                "public_strange": public.strange_share(one.name),
                "missing": private.missing_share(one.name),
                "public_missing": public.missing_share(one.name),
            }
            for one in self.schema.features
            if one.name in private.columns
        ]
        return sorted(found, key=lambda one: (-one["strange"], -one["missing"], one["name"]))

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
            "columns": self.columns,
            "stopping": [spelled(error) for error in self.stopping],
        }
