"""Whether two tables write their columns alike, before anything is trained, drawn or paid.

What is reported of the private table depends on private data and is for the curator alone: names of
columns and shares of their cells, never a cell.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from secretballot._naming import NAMED_AT_MOST, name_columns, name_rows
from secretballot._validation import shown
from secretballot.data.cells import OddCells, texts_of
from secretballot.data.columns import Column, HashedTextColumn, OneHotColumn, TextColumn
from secretballot.data.near_misses import TEXTS_LOOKED_AT, near_categories, near_numbers
from secretballot.data.schema import Encoding, Schema
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.runs.questions import Watch

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
        What is the matter, and what would make the cells fit.
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
    texts: list[str] = field(default_factory=list)


@dataclass(repr=False)
class TableCells:
    """Which cells of a table could not be read, added up block by block; of a private table,
    private.

    Attributes
    ----------
    n_rows : int
    columns : dict of str to _OddColumn
        By feature column: how many cells are strange (say something that the column has no place
        for) or missing, the first strange rows, and what the first strange cells say.
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
            wanted = max(0, TEXTS_LOOKED_AT - len(column.texts))
            if wanted and found.strange.size:
                column.texts += texts_of(frame[name].iloc[found.strange[:wanted]]).tolist()
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
            texts = found.columns[column.name].texts
            words = _mismatch_words(column, texts, share, schema.source)
            found_ones.append(Misfit(column.name, share, share > STOPS, of_categories, words))
    return sorted(found_ones, key=lambda one: (-one.share, one.name))


def settle_misfits(
    misfitting: Sequence[Misfit],
    watch: Watch,
    *,
    role: str,
    accepted: Collection[str],
    private: bool,
) -> None:
    """Refuse a table with a column that mostly does not fit, unless that was accepted; tell of the
    others.

    Parameters
    ----------
    misfitting : sequence of Misfit
    watch : Watch
    role : str
        What the messages call the table.
    accepted : collection of str
        Columns that may be as they are.
    private : bool
        Whether the table is, so that the notes must not be published.

    Raises
    ------
    DataError
        Naming the columns, and what to do.
    """
    stopping = [one for one in misfitting if one.stops and one.name not in accepted]
    if stopping:
        listed = "; ".join(f"column {shown(one.name)}, {one.words}" for one in stopping[:_TOLD_OF])
        rest = name_columns([one.name for one in stopping[_TOLD_OF:]])
        more = f"; likewise {rest}" if len(stopping) > _TOLD_OF else ""
        raise DataError(
            f"The {role} does not fit ({listed}{more}); write cells alike in all files, add public"
            " points that have them, declare the column with --schema, leave it out with --drop, or"
            " go on with --set accept_unseen=COLUMN."
        )
    for one in misfitting:
        if one.stops or one.of_categories:  # of a few that are no numbers the rows are listed
            watch.note(f"Column {one.name!r} of the {role}: {one.words}.", private=private)


def note_unreadable(schema: Schema, found: TableCells, watch: Watch, *, role: str) -> None:
    """Tell the curator which cells of a private table were read as missing."""
    for column in schema.columns:
        odd = found.columns.get(column.name)
        if odd is not None and odd.strange and not column.has_other:
            rows = name_rows(odd.first_rows, total=odd.strange)
            watch.note(
                f"Column {column.name!r} of the {role} has {odd.strange} cells that are no"
                f" {column.holds} and count as missing ({rows}).",
                private=True,
            )


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


def _mismatch_words(column: Column, strange: Sequence[str], share: float, source: str) -> str:
    near, what = None, f"are no {column.holds}"
    if isinstance(column, OneHotColumn):
        near = near_categories(strange, column.categories)
        what = f"are none of the {column.holds} of {source}"
    elif isinstance(column, TextColumn):
        what = f"have none of the words of {source}"
        if isinstance(column, HashedTextColumn):
            what = "have no word"
    elif column.holds == "numbers":
        near = near_numbers(strange)
    return f"{percent(share)} of its cells {what}" + ("" if near is None else f": {near}")
