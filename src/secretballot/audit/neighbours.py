"""Neighbouring tables made from one: a record dropped, added, added with a missing value, or
replaced."""

import contextlib
from pathlib import Path
from typing import Any

import pandas as pd

from secretballot._validation import check_count
from secretballot.data.cells import texts_of, vector_width, vectors_of
from secretballot.data.reading import read_table
from secretballot.exceptions import Parameter, ParameterError

# how much larger the numbers of a replaced or added record are: it should matter to its teacher
_FAR = 1000.0


def made_worlds(
    table: Path, change: str, *, target: str | None = None, row: int = 0
) -> tuple[bytes, bytes]:
    """Return a table and a neighbour of it as CSV files, in one style.

    Parameters
    ----------
    table : Path
        CSV or Parquet; vectors in it are written into the CSV files.
    change : {"drop", "add", "add-missing", "replace"}
        What happens to the record; an added one is a copy of it with numbers a thousand times as
        large and another class, a replaced one becomes that, and one added with a missing value is
        a copy without its first value.
    target : str, optional
        Column with the class.
    row : int
        Number of the record, from 0.

    Raises
    ------
    ParameterError
        If there is no such record.
    DataError
        If the table cannot be read.
    """
    number = check_count("row", row, minimum=0)
    before = read_table(table, role="private file")
    for name in before.columns:  # vectors, too, are texts in CSV files
        before[name] = texts_of(before[name])
    if not number < len(before):
        raise ParameterError(
            Parameter("row"),
            f" is {number}; the private file has no such record: give a number below its rows.",
        )
    record = before.iloc[[number]]
    if change == "drop":
        after = before.drop(index=before.index[number])
    elif change == "add-missing":
        feature = next(name for name in record.columns if name != target)
        after = pd.concat([before, record.assign(**{feature: ""})])
    else:
        unlike = _unlike_record(before, record, target)
        kept = before if change == "add" else before.drop(index=before.index[number])
        after = pd.concat([kept, unlike])
    # both are written anew by the same writer: another style of numbers would
    # distinguish the worlds by itself
    first, second = (world.to_csv(index=False).encode() for world in (before, after))
    return first, second


def _unlike_record(table: pd.DataFrame, record: pd.DataFrame, target: str | None) -> pd.DataFrame:
    """Return a record that its teacher will not overlook: far away, and of another class."""
    changed = record.copy()
    for name in record.columns:
        if name == target:
            others = [value for value in table[name] if value != record[name].iloc[0]]
            changed[name] = others[0] if others else record[name].iloc[0]
        else:
            with contextlib.suppress(ValueError, TypeError):  # texts stay as they are
                changed[name] = _far_value(record[name].iloc[0])
    return changed


def _far_value(cell: Any) -> str:
    """Return a number, or a vector, that is far away.

    Raises
    ------
    ValueError, TypeError
        If the cell is none.
    """
    width = vector_width(cell)
    if width is None:
        return str((float(cell) or 1.0) * _FAR)
    (vector,) = vectors_of(pd.Series([cell], dtype=object), width)
    return str([(number or 1.0) * _FAR for number in vector.tolist()])
