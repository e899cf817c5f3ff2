"""Whether two tables write their columns alike, before anything is trained, drawn or paid.

What is reported of the private table depends on private data and is for the curator alone: names of
columns and shares of their cells, never a cell.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial

import pandas as pd

from secretballot._naming import NAMED_AT_MOST, name_columns, name_rows
from secretballot._validation import shown
from secretballot.data.cells import OddCells
from secretballot.data.columns import Column, HashedTextColumn, OneHotColumn, TextColumn
from secretballot.data.frames import check_columns, check_named
from secretballot.data.schema import Encoding, Schema
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.runs.questions import Watch
from secretballot.runs.spec import DataSpec

PRIVATE, PUBLIC, TEST = "private file", "public file", "test file"

#: A run stops where more than this share of what a column says is nowhere in its encoding: the
#: column then informs the model of fewer records than it leaves out.
STOPS = 0.5
#: From this share on the curator is informed.
NOTED = 0.1
#: So often may the public table's own share be exceeded: where many values are rare, some of them
#: are nowhere in the encoding of the public table either.
OF_PUBLIC = 2
_TOLD_OF = 2  # columns; of more the sentence would be too long


@dataclass(frozen=True)
class Misfit:
    """A column whose cells are written otherwise than those that its encoding was made of.

    Attributes
    ----------
    name : str
    share : float
        Of the cells that say something, those that the encoding has no place for.
    stops : bool
        Whether it is so many that a run stops.
    of_categories : bool
        Whether the cells count as "other", rather than as missing.
    words : str
        What is the matter.
    """

    name: str
    share: float
    stops: bool
    of_categories: bool
    words: str


@dataclass(repr=False)
class _OddColumn:
    """The cells of a column that could not be read, of all rows so far; of a private table,
    private."""

    strange: int = 0
    missing: int = 0
    first_rows: list[int] = field(default_factory=list)


@dataclass(repr=False)
class TableCells:
    """Which cells of a table could not be read, added up block by block; of a private table,
    private.

    Attributes
    ----------
    n_rows : int
    columns : dict of str to _OddColumn
        By feature column: how many cells are strange (say something that the column has no place
        for) or missing, and the first strange rows.
    """

    n_rows: int = 0
    columns: dict[str, _OddColumn] = field(default_factory=dict)

    @classmethod
    def of(cls, frame: pd.DataFrame, encoding: Encoding) -> "TableCells":
        """Return the odd cells of a table that was encoded at once."""
        cells = cls()
        cells.add(frame, encoding.odd)
        return cells

    def add(self, frame: pd.DataFrame, odd: Mapping[str, OddCells]) -> None:
        """Add the rows of a block, which follow on those before."""
        for name, found in odd.items():
            column = self.columns.setdefault(name, _OddColumn())
            column.strange += found.strange.size
            column.missing += found.missing
            wanted = max(0, NAMED_AT_MOST - len(column.first_rows))
            column.first_rows += (self.n_rows + found.strange[:wanted]).tolist()
        self.n_rows += len(frame)

    def strange_share(self, name: str) -> float:
        """Return the share of strange cells among those that say anything, 0 where none does."""
        said = self.n_rows - self.columns[name].missing
        return self.columns[name].strange / said if said else 0.0

    def missing_share(self, name: str) -> float:
        """Return the share of cells that say nothing."""
        return self.columns[name].missing / self.n_rows


def misfits(schema: Schema, found: TableCells, expected: TableCells | None = None) -> list[Misfit]:
    """Return the columns of a table that do not fit their encoding, worst first.

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
        if share > max(NOTED, usual):
            of_categories = column.has_other
            words = f"{percent(share)} of its cells {_misfit_words(column, schema.source)}"
            found_ones.append(Misfit(column.name, share, share > STOPS, of_categories, words))
    return sorted(found_ones, key=lambda one: (-one.share, one.name))


def settle_cells(
    schema: Schema,
    found: TableCells,
    watch: Watch,
    *,
    role: str,
    accepted: Collection[str] = (),
    expected: TableCells | None = None,
) -> None:
    """Refuse a table with a column that mostly does not fit, unless that was accepted; tell of
    other misfits, and of the private table to the curator which cells count as missing.

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

    Raises
    ------
    DataError
        Naming the columns, and what to do.
    """
    stopping, private = list[Misfit](), role == PRIVATE
    for one in misfits(schema, found, expected):
        if one.stops and one.name not in accepted:
            stopping.append(one)
        elif one.stops or one.of_categories:  # of a few that are no numbers the rows are listed
            watch.note(f"Column {one.name!r} of the {role}: {one.words}.", private=private)
    if private:
        note_odd_cells(schema, found, watch, role=role, private=True)
    if stopping:
        listed = "; ".join(f"column {shown(one.name)}, {one.words}" for one in stopping[:_TOLD_OF])
        rest = name_columns([one.name for one in stopping[_TOLD_OF:]])
        more = f"; likewise {rest}" if len(stopping) > _TOLD_OF else ""
        raise DataError(
            f"The {role} does not fit ({listed}{more}); write cells alike in all files, add public"
            " points that have them, declare the column with --schema, leave it out with --drop, or"
            " go on with --set accept_unseen=COLUMN."
        )


def note_odd_cells(
    schema: Schema, found: TableCells, watch: Watch, *, role: str, private: bool
) -> None:
    """Tell which cells of a table count as missing; of a public one also those that count as
    "other", which a private one may have."""
    for column in schema.columns:
        odd = found.columns.get(column.name)
        if odd is not None and odd.strange and not (private and column.has_other):
            rows = name_rows(odd.first_rows, total=odd.strange)
            counts_as = '"other"' if column.has_other else "missing"
            watch.note(
                f"Column {column.name!r} of the {role}: cells that"
                f" {_misfit_words(column, schema.source)} and count as {counts_as}:"
                f" {odd.strange:,} ({rows}).",
                private=private,
            )


def check_labelled_columns(
    data: DataSpec, frame: pd.DataFrame, schema: Schema, *, role: str
) -> None:
    """Refuse a labelled table without the columns that it needs; only in the private one are extra
    columns refused.

    Raises
    ------
    DataError
        Naming them.
    """
    if data.unit in data.target:
        raise DataError(
            f"The column of unit ids, {shown(data.unit)}, is the one with the labels; name the"
            " column that says whose a record is with --unit."
        )
    aside = {*data.aside, *schema.ignored}
    check = partial(
        check_columns, frame, schema.names, role=role, source=schema.source, aside=aside
    )
    check(extra_allowed=True)
    # before surplus columns are refused: a name misspelt makes the true one a surplus column
    for target in data.target:
        check_named(frame, target, "its label column with --target", role=role)
    if role == PRIVATE:
        if data.unit is not None:
            check_named(frame, data.unit, "the column of unit ids with --unit", role=role)
        check(extra_allowed=False)


def check_accepted(accepted: Collection[str], schema: Schema) -> None:
    """Refuse a column that is to be accepted and is no feature.

    Raises
    ------
    ParameterError
        Naming it.
    """
    for name in accepted:
        if name not in schema.names:
            raise ParameterError(
                Parameter("accept_unseen"),
                f" names {shown(name)}, which is no feature column; spell columns as the public"
                " file does.",
            )


def percent(share: float) -> str:
    """Return a share in words that never round something to nothing, nor most to all."""
    if 0 < share < 0.001:
        return "< 0.1 %"
    if 0.999 < share < 1:
        return "> 99.9 %"
    return f"{100 * share:.1f} %".replace(".0 %", " %")


def _misfit_words(column: Column, source: str) -> str:
    """Return what cells are, or have, for which a column has no place."""
    if isinstance(column, OneHotColumn):
        return f"are none of the {column.holds} of {source}"
    if isinstance(column, HashedTextColumn):
        return "have no word"
    if isinstance(column, TextColumn):
        return f"have none of the words of {source}"
    return f"are no {column.holds}"
