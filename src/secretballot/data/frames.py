"""Tables in memory as pandas frames without any cell changing another, the columns that two tables
must share, and the two columns with a duty.

The usual conversion of an Arrow table turns a column of integers with one null into floats, which
merges integers beyond 2**53 in every row. Here the type of a pandas column follows from the type of
the Arrow column alone, and one cell that Python cannot hold (a date in the year 20000) becomes a
string by itself. Messages name columns, counts and row numbers, never a cell. Rows are counted from
0, without the header, as in the released labels.
"""

import contextlib
import difflib
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from secretballot._typing import IntArray, ObjectArray
from secretballot._validation import name_columns, name_rows, shown
from secretballot.data.cells import coded, is_missing, texts_of, whole
from secretballot.exceptions import DataError
from secretballot.foreign_code import result_of


def as_arrow(table: Any) -> Any:
    """Return the Arrow table that an object is (pyarrow) or can be made (polars), else None."""
    if hasattr(table, "to_arrow"):
        table = table.to_arrow()
    arrow = sys.modules.get("pyarrow")
    return table if arrow is not None and isinstance(table, arrow.Table) else None


def frame_of_arrow(table: Any, where: str) -> pd.DataFrame:
    """Return the cells of an Arrow table as a pandas frame, index 0, 1, ...

    Integers and truth values become columns that can hold nulls, floats become float64, texts
    become text, points in time become those of pandas; all else becomes Python objects, and lists
    of numbers, also of fixed shape, arrays of float64 of one dimension. Dictionaries are replaced
    by their values.

    Parameters
    ----------
    table : pyarrow.Table, shape (n_rows, n_columns)
    where : str
        What the messages call it.

    Raises
    ------
    DataError
        If cells are nested, damaged (text that is not UTF-8) or of a kind that cannot be converted;
        the message names columns and holds no cell. If a name is not UTF-8.
    """
    # Before anything else: Arrow reads the names again for every column that it hands out.
    names = result_of(lambda: [str(table.field(k).name) for k in range(table.num_columns)])
    if names is None:
        raise DataError(f"{where} has a name that is not UTF-8 in its header; write it again.")
    converted = [_converted_by_arrow(_plain_storage(column)) for column in table.columns]
    failed = [name for name, column in zip(names, converted, strict=True) if column is None]
    if failed:
        raise DataError(
            f"{where} has cells in {name_columns(failed)} that are damaged or of a kind that cannot"
            " be read; write texts, numbers or lists of numbers, or take them out."
        )
    # Built by place, not by name: a name may come twice, which the caller refuses in its own words.
    frame = pd.DataFrame(
        {place: column for place, column in enumerate(converted) if column is not None}
    )
    frame.columns = pd.Index(names, dtype=object)
    return frame


def _plain_storage(column: Any) -> Any:
    """Return a column without the layers around its values: extension types and dictionaries."""
    import pyarrow as pa

    if isinstance(column.type, pa.BaseExtensionType):
        storage = [chunk.storage for chunk in column.chunks]
        return _plain_storage(pa.chunked_array(storage, type=column.type.storage_type))
    if pa.types.is_dictionary(column.type):
        decoded = [chunk.dictionary_decode() for chunk in column.chunks]
        return _plain_storage(pa.chunked_array(decoded, type=column.type.value_type))
    return column


def _is_of_numbers(kind: Any) -> bool:
    """Return whether cells of an Arrow type are lists of numbers, which may be missing."""
    from pyarrow import types

    lists = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return bool(lists and (types.is_integer(kind.value_type) or types.is_floating(kind.value_type)))


def _converted_by_arrow(column: Any) -> "pd.Series[Any] | None":
    """Return a column as pandas holds it, None where that fails."""
    import pyarrow as pa

    # The cells must not ride on an exception's context, hence no raise inside an except.
    with contextlib.suppress(
        pa.ArrowException, ValueError, TypeError, OverflowError, NotImplementedError
    ):
        column.validate(full=True)
        if _is_of_numbers(column.type) or not pa.types.is_nested(column.type):
            return _as_series(column)
    return None


def _as_series(column: Any) -> "pd.Series[Any]":
    import pyarrow as pa

    kind = column.type
    series: pd.Series[Any]
    if _is_of_numbers(kind):
        series = _arrays_of_lists(column)
    elif pa.types.is_integer(kind):
        signed = pa.types.is_signed_integer(kind)
        target, held = (pa.int64(), pd.Int64Dtype()) if signed else (pa.uint64(), pd.UInt64Dtype())
        series = column.cast(target).to_pandas(types_mapper={target: held}.get)
    elif pa.types.is_boolean(kind):
        series = column.to_pandas(types_mapper={kind: pd.BooleanDtype()}.get)
    elif pa.types.is_floating(kind):
        series = column.cast(pa.float64()).to_pandas()
    elif pa.types.is_timestamp(kind) and kind.tz is None:
        series = column.to_pandas()  # with a time zone, pandas knows the years of Python alone
    elif (
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    ):
        series = column.cast(pa.large_string()).to_pandas()
    else:
        series = _cells_as_objects(column)
    return series


def _arrays_of_lists(column: Any) -> "pd.Series[Any]":
    """Return lists of numbers as arrays of float64, nan where one is missing."""
    import pyarrow as pa

    parts = [np.empty(0, dtype=object)]
    for chunk in column.chunks:
        numbers = pa.large_list(pa.float64())
        # not "safe": an integer too large to be held exactly is rounded, and no reason to stop
        lists = chunk.cast(numbers, safe=False)
        values = lists.values.to_numpy(zero_copy_only=False)
        ends, null = lists.offsets.to_numpy(), lists.is_null().to_numpy(zero_copy_only=False)
        cells = np.empty(len(lists), dtype=object)
        for row in np.flatnonzero(~null):
            cells[row] = values[ends[row] : ends[row + 1]]
        parts.append(cells)
    return pd.Series(np.concatenate(parts), dtype=object)


def _cells_as_objects(column: Any) -> "pd.Series[Any]":
    """Return the cells as Python objects, each distinct one made once."""
    parts = [np.empty(0, dtype=object)]
    for chunk in column.chunks:
        encoded = chunk.dictionary_encode()
        objects = np.empty(len(encoded.dictionary) + 1, dtype=object)
        objects[:-1] = [_cell_as_object(cell) for cell in encoded.dictionary]
        parts.append(objects[encoded.indices.fill_null(len(encoded.dictionary)).to_numpy()])
    return pd.Series(np.concatenate(parts), dtype=object)


def _cell_as_object(cell: Any) -> object:
    try:
        value: object = cell.as_py()
    except (ValueError, OverflowError):  # beyond the years that Python knows
        value = f"{cell.type} {cell.value}"
    return value


def check_columns(
    frame: pd.DataFrame,
    expected: Sequence[str],
    *,
    role: str,
    source: str = "the public file",
    aside: Iterable[str] = (),
    extra_allowed: bool = False,
) -> None:
    """Refuse a table whose columns are not the expected ones.

    Parameters
    ----------
    frame : pandas.DataFrame
        The table.
    expected : sequence of str
        Names of the feature columns, in any order.
    role : str
        What the message calls the table.
    source : str
        Where the expectation comes from.
    aside : iterable of str
        Columns that may be there and are no features: target, unit, ignored ones.
    extra_allowed : bool
        Whether further columns are left out in silence.

    Raises
    ------
    DataError
        If columns are missing or extra. Extra names are shown only where nothing is missing: in a
        file without a header the "names" are the cells of its first record.
    """
    found = [str(name) for name in frame.columns]
    present, known = set(found), {*expected, *aside}
    missing = [name for name in expected if name not in present]
    extra = [name for name in found if name not in known]
    if missing:
        also = f" (and has {len(extra)} that {source} lacks)" if extra else ""
        raise DataError(
            f"The {role} lacks {name_columns(missing)} of {source}{also}; check that its first line"
            " is a header with the same names."
        )
    if extra and not extra_allowed:
        raise DataError(
            f"The {role} has {name_columns(extra)} that {source} lacks; "
            "give both files the same feature columns, or leave columns out with --drop."
        )


def class_indices(
    frame: pd.DataFrame, target: str, classes: Sequence[object], *, role: str, first_row: int = 0
) -> IntArray:
    """Return the class of every row as an index into the declared classes.

    Parameters
    ----------
    frame : pandas.DataFrame, shape (n_rows, n_columns)
        The table.
    target : str
        Column that holds the class.
    classes : sequence, shape (n_classes,)
        Declared classes; a cell is of the class whose text it carries ("1" and "1.0" are one text).
    role : str
        What the messages call the table.
    first_row : int
        Place of the first row in the table of which these are a block.

    Returns
    -------
    ndarray of int64, shape (n_rows,)

    Raises
    ------
    DataError
        If the column is absent, or a row has no class or none of the declared; rows are named,
        labels not.
    """
    check_named(frame, target, "its label column with --target", role=role)
    # each distinct label is looked up once, as columns are long and labels few
    codes, distinct = coded(texts_of(frame[target]))
    places = {whole(str(name)): place for place, name in enumerate(classes)}
    index = np.array([places.get(text, -1) for text in distinct], dtype=np.int64)
    rows = np.flatnonzero((index < 0)[codes])
    if rows.size:
        plain = {name.strip().casefold() for name in places}
        alike = np.array([text.strip().casefold() in plain for text in distinct])[codes][rows].sum()
        spelt = f"; {alike:,} are one but for case or blanks" if alike else ""
        raise DataError(
            f"The {role} has {rows.size} rows without a label in column {shown(target)}, or whose"
            f" label is none of the {len(places)} declared classes"
            f" ({name_rows(rows + first_row)}{spelt}); declare every class with --classes, or"
            " bounds of a number with --bounds, spell cells alike, or take the rows out."
        )
    return index[codes]


def check_named(frame: pd.DataFrame, column: str, what: str, *, role: str) -> None:
    """Refuse a table without a column that was named.

    Raises
    ------
    DataError
        If it is absent; `what` says what to name, and how.
    """
    if column not in frame.columns:
        near = difflib.get_close_matches(column, map(str, frame.columns), 1)
        meant = f" (did you mean {shown(near[0])}?)" if near else ""
        has = name_columns([str(name) for name in frame.columns])
        raise DataError(
            f"The {role} has no column {shown(column)}{meant}; name {what}. It has {has}."
        )


def unit_ids(frame: pd.DataFrame, column: str, *, role: str, first_row: int = 0) -> ObjectArray:
    """Return the unit (person, household, account) every row belongs to, as text; `first_row` as
    for `class_indices`.

    Raises
    ------
    DataError
        If the column is absent or a row names no unit.
    """
    check_named(frame, column, "the column of unit ids with --unit", role=role)
    ids = texts_of(frame[column])
    rows = np.flatnonzero([is_missing(text) for text in ids])
    if rows.size:
        raise DataError(
            f"The {role} has {rows.size} rows without a unit in column {shown(column)}"
            f" ({name_rows(rows + first_row)}); give every row the id of its unit, or"
            " take the rows out."
        )
    return ids


def memory_bytes() -> int:
    """Return the size of this machine's memory in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def frame_of(table: Any, *, role: str = "table") -> pd.DataFrame:
    """Return a pandas frame with text names and a fresh index from a pandas, polars or pyarrow
    table.

    Polars and Arrow tables are converted cell by cell; a pandas frame is taken with the types that
    it has.

    Raises
    ------
    DataError
        If the object is no frame.
    """
    if not isinstance(table, pd.DataFrame):
        arrow = as_arrow(table)
        if arrow is None:
            raise DataError(
                f"The {role} is a {type(table).__name__}; give a pandas or polars frame or a path."
            )
        return with_text_names(frame_of_arrow(arrow, f"The {role}"))
    return with_text_names(table.reset_index(drop=True))


def with_text_names(frame: pd.DataFrame) -> pd.DataFrame:
    frame.columns = [str(name).strip() for name in frame.columns]
    return frame
