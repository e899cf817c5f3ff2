"""Whether two tables write their columns alike, before anything is trained, drawn or paid.

What is said of the private table depends on private data and is for the curator alone: names of
columns and shares of their cells, never a cell.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from secretballot._naming import name_columns, name_rows
from secretballot._validation import shown
from secretballot.datasets.cells import texts_of
from secretballot.datasets.columns import CategoricalColumn, Column, TextColumn
from secretballot.datasets.near_misses import near_categories, near_numbers
from secretballot.datasets.schema import Encoding, Schema
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.runs.progress import Watch

__all__ = [
    "Misfit",
    "check_accepted",
    "misfits",
    "note_empty_columns",
    "note_unreadable",
    "percent",
    "settle_misfits",
]

#: A run stops where more than this share of what a column says is nowhere in its encoding: the
#: column then tells the model of fewer records than it leaves out.
STOPS = 0.5
#: From this share on the curator is told.
TOLD = 0.1
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


def misfits(
    schema: Schema, frame: pd.DataFrame, found: Encoding, expected: Encoding | None = None
) -> list[Misfit]:
    """Return the columns of a table that do not fit their encoding, worst first.

    Parameters
    ----------
    schema : Schema
    frame : pandas.DataFrame, shape (n_rows, n_columns)
    found : Encoding
        Of the table.
    expected : Encoding, optional
        Of the public table, whose own share is allowed for.
    """
    found_ones = []
    for column in schema.columns:
        if not column.feature_names:
            continue
        share = found.strange_share(column.name)
        usual = 0.0 if expected is None else OF_PUBLIC * expected.strange_share(column.name)
        if share > max(TOLD, usual):
            of_categories = column.name in found.unseen
            words = _words(column, frame, found, share, schema.source)
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
            " go on with --accept-unseen."
        )
    for one in misfitting:
        if one.stops or one.of_categories:  # of a few that are no numbers the rows are told
            watch.note(f"Column {one.name!r} of the {role}: {one.words}.", private=private)


def note_empty_columns(found: Encoding, expected: Encoding, watch: Watch, *, role: str) -> None:
    """Tell the curator of columns that mostly say nothing in a private table, and say more in the
    public one."""
    for name, missing in found.missing.items():
        share = missing / len(found.matrix)
        usual = expected.missing[name] / len(expected.matrix)
        if share > max(STOPS, OF_PUBLIC * usual):
            watch.note(
                f"Column {name!r} of the {role}: {percent(share)} of its cells are empty, and"
                f" {percent(usual)} in the public file.",
                private=True,
            )


def note_unreadable(schema: Schema, found: Encoding, watch: Watch, *, role: str) -> None:
    """Tell the curator which cells of a private table were read as missing."""
    holds = {column.name: column.holds for column in schema.columns}
    for name, rows in found.unreadable.items():
        watch.note(
            f"Column {name!r} of the {role} has {rows.size} cells that are no {holds[name]} and"
            f" count as missing ({name_rows(rows)}).",
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


def _words(column: Column, frame: pd.DataFrame, found: Encoding, share: float, source: str) -> str:
    rows = found.strange(column.name)
    strange: Iterator[str] = (
        text
        for start in range(0, len(rows), 10_000)
        for text in texts_of(frame[column.name].iloc[rows[start : start + 10_000]])
    )
    near, what = None, f"are no {column.holds}"
    if isinstance(column, CategoricalColumn):
        near = near_categories(strange, column.categories)
        what = f"are none of the {column.holds} of {source}"
    elif isinstance(column, TextColumn):
        what = f"have none of the words of {source}"
    elif column.holds == "numbers":
        near = near_numbers(strange)
    return f"{percent(share)} of its cells {what}" + ("" if near is None else f": {near}")
