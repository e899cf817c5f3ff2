"""Points as they come in: JSON, an Arrow stream or a Parquet file, made a table for the session.

What is read here is anybody's. Sizes are bounded before anything is built of them.
"""

import contextlib
import io
import json
from typing import Any, NoReturn

import numpy as np
import pandas as pd

from secretballot._arrow import frame_of_arrow
from secretballot.exceptions import DataError
from secretballot.service.problems import ProblemError

__all__ = ["ARROW", "JSON", "PARQUET", "points_in"]

JSON = "application/json"
ARROW = "application/vnd.apache.arrow.stream"
PARQUET = "application/vnd.apache.parquet"

_LONGEST_NUMBER = 400  # digits; Python takes quadratic time to read longer integers
_MOST_CELLS = 20_000_000  # of one table: 160 MB as doubles
_NUMBERS = frozenset((int, float))
_CELL_KINDS = (str, int, float, bool, type(None))


def points_in(content: bytes, media_type: str, columns: dict[str, Any], most: int) -> Any:
    """Return the points in a body as an array or a frame, as the teachers' columns ask for.

    Parameters
    ----------
    content : bytes
        The body.
    media_type : str
    columns : dict
        As `LabelingSession.columns` describes them.
    most : int
        Points of one request.

    Raises
    ------
    ProblemError
        If they cannot be read, or are too many.
    """
    kind = media_type.partition(";")[0].strip().lower()
    if kind in ("", JSON):
        return _table_of_json(content, columns, most)
    if kind not in (ARROW, PARQUET):
        raise ProblemError("wrong-media-type", f"The body must be {JSON}, {ARROW} or {PARQUET}.")
    frame = _frame_of_columnar(content, kind, most)
    return frame if columns["kind"] == "frame" else _array_of_frame(frame)


def _table_of_json(content: bytes, columns: dict[str, Any], most: int) -> Any:
    document = _json_document(content)
    if not isinstance(document, dict) or set(document) != {"points"}:
        raise ProblemError("unreadable", 'The body must be a JSON object of one field, "points".')
    rows = document["points"]
    if not isinstance(rows, list) or not rows:
        raise ProblemError("unreadable", '"points" must be a list of one point or more.')
    _refuse_many(len(rows), most)
    if columns["kind"] == "frame":
        return _frame_of_rows(rows, [str(name) for name, _, _ in columns["columns"]])
    if not all(isinstance(row, list) for row in rows):
        raise ProblemError("wrong-points", "A point must be a list with one value for each column.")
    width = columns["columns"]
    if all(len(row) == width and _NUMBERS.issuperset(map(type, row)) for row in rows):
        with contextlib.suppress(OverflowError):  # an integer beyond the floats
            return np.array(rows, dtype=np.float64)
    if not all(isinstance(cell, _CELL_KINDS) for row in rows for cell in row):
        raise ProblemError("wrong-points", "A value of a point must be a number or a string.")
    return rows


def _json_document(content: bytes) -> Any:
    try:
        return json.loads(content, parse_constant=_refuse_constant, parse_int=_short_integer)
    except (ValueError, RecursionError):
        pass
    raise ProblemError("unreadable", "The body is no JSON, or nested too deeply.")


def _short_integer(digits: str) -> int:
    if len(digits) > _LONGEST_NUMBER:
        raise ValueError
    return int(digits)


def _refuse_constant(_: str) -> NoReturn:
    raise ValueError  # NaN and infinities are no JSON


def _refuse_many(points: int, most: int) -> None:
    if points > most:
        raise ProblemError("too-large", f"There are {points} points; ask at most {most} at once.")


def _frame_of_rows(rows: list[Any], names: list[str]) -> pd.DataFrame:
    if not all(isinstance(row, dict) for row in rows):
        raise ProblemError(
            "wrong-points", "A point must be an object with one value for each column."
        )
    wanted = set(names)
    for row in rows:
        if set(row) != wanted:
            missing = sorted(wanted - set(row))
            said = f"misses {missing[0]!r}" if missing else "has a column that is not there"
            raise ProblemError("wrong-points", f"A point {said}; give the columns of the session.")
        if not all(isinstance(cell, _CELL_KINDS) for cell in row.values()):
            raise ProblemError("wrong-points", "A value of a point must be a number or a string.")
    columns = {}
    for name in names:
        cells = np.empty(len(rows), dtype=object)
        cells[:] = [row[name] for row in rows]
        columns[name] = cells
    return pd.DataFrame(columns)


def _frame_of_columnar(content: bytes, kind: str, most: int) -> pd.DataFrame:
    table = None
    try:
        with contextlib.suppress(*_refusals()):
            table = (_arrow_table if kind == ARROW else _parquet_table)(content, most)
    except ImportError:
        raise ProblemError(
            "wrong-media-type", f"This service reads no {kind}; send {JSON}, or have pyarrow added."
        ) from None
    if table is None:
        raise ProblemError("unreadable", f"The body is no {kind} that can be read.")
    if not table.num_rows or not table.num_columns:
        raise ProblemError("unreadable", "The table has no points.")
    problem = ""
    try:
        return frame_of_arrow(table, "The table")
    except DataError as error:
        problem = str(error)
    raise ProblemError("wrong-points", problem)


def _refusals() -> tuple[type[Exception], ...]:
    """Return what the library raises for damaged content, in words that may quote it."""
    import pyarrow as pa

    return (pa.ArrowException, OSError, ValueError, TypeError, KeyError, OverflowError, MemoryError)


def _arrow_table(content: bytes, most: int) -> Any:
    import pyarrow as pa

    batches, rows = [], 0
    with pa.ipc.open_stream(pa.BufferReader(content)) as reader:
        for batch in reader:
            batch.validate(full=True)
            rows += batch.num_rows
            _refuse_many(rows, most)
            _refuse_wide(batch.num_rows, batch.num_columns)
            batches.append(batch)
        return pa.Table.from_batches(batches, reader.schema)


def _parquet_table(content: bytes, most: int) -> Any:
    import pyarrow.parquet as pq

    with pq.ParquetFile(io.BytesIO(content)) as file:
        # the file's own numbers first: few bytes may stand for very many rows
        _refuse_many(file.metadata.num_rows, most)
        _refuse_wide(file.metadata.num_rows, file.metadata.num_columns)
        table = file.read()
        _refuse_many(table.num_rows, most)
        return table


def _refuse_wide(rows: int, columns: int) -> None:
    if rows * columns > _MOST_CELLS:
        raise ProblemError(
            "too-large", f"A table may have at most {_MOST_CELLS} cells; ask in parts."
        )


def _array_of_frame(frame: pd.DataFrame) -> Any:
    """Return the rows of a frame for teachers that learned from an array."""
    if all(pd.api.types.is_numeric_dtype(kind) for kind in frame.dtypes):
        return frame.to_numpy(dtype=np.float64, na_value=np.nan)
    return frame.astype(object).to_numpy()
