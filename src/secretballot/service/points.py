"""Points as they come in: JSON, an Arrow stream or a Parquet file, made a table for the session.

What is read here is anybody's. Sizes are bounded before anything is built of them.
"""

import asyncio
import contextlib
import io
import struct
from typing import Any

import numpy as np
import pandas as pd
from pydantic_core import from_json
from starlette.requests import ClientDisconnect, Request

from secretballot._typing import Json
from secretballot._validation import shown
from secretballot.data.frames import frame_of_arrow
from secretballot.service.problems import ProblemError, points_at_fault

JSON = "application/json"
ARROW = "application/vnd.apache.arrow.stream"
PARQUET = "application/vnd.apache.parquet"

_MOST_CELLS = 20_000_000  # of one table: 160 MB as doubles
_MOST_TEXT = 100_000_000  # bytes, with what a dictionary holds once written out in every cell
_NUMBERS = frozenset((int, float))
_CELL_KINDS = (str, int, float, bool, type(None))


async def body_of(request: Request, *, most: int, seconds: float) -> bytes:
    """Return the body of a request, of at most so many bytes and seconds until its end; of one that
    is too large or too slow the rest is not read.

    Raises
    ------
    ProblemError
        If it is too large or too slow, or its sender went away.
    """
    # what a request declares may be wrong, so what comes is counted
    parts, size = [], 0
    try:
        async with asyncio.timeout(seconds):
            async for part in request.stream():
                size += len(part)
                if size > most:
                    raise ProblemError(
                        "too-large", f"The body has more than {most} bytes; ask in parts."
                    )
                parts.append(part)
    except TimeoutError:
        raise ProblemError(
            "too-slow", f"The body did not come within {seconds:g} seconds; send it faster."
        ) from None
    except ClientDisconnect:
        raise ProblemError("unreadable", "The body broke off; send it again.") from None
    return b"".join(parts)


def points_in(content: bytes, media_type: str, columns: Json, most: int) -> Any:
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
    if is_json(media_type):
        return _table_of_json(content, columns, most)
    kind, by_name = _plain_kind(media_type), columns["kind"] == "frame"
    if kind not in (ARROW, PARQUET):
        raise ProblemError("wrong-media-type", f"The body must be {JSON}, {ARROW} or {PARQUET}.")
    width = len(columns["columns"]) if by_name else columns["columns"]
    frame = _frame_of_columnar(content, kind, most, width)
    return frame if by_name else _array_of_frame(frame)


def is_json(media_type: str) -> bool:
    """Return whether a body of a media type is read as JSON."""
    return _plain_kind(media_type) in ("", JSON)


def _plain_kind(media_type: str) -> str:
    return media_type.partition(";")[0].strip().lower()


def _table_of_json(content: bytes, columns: Json, most: int) -> Any:
    document: Any = None
    with contextlib.suppress(ValueError):  # of no JSON in UTF-8, or nested too deeply
        document = from_json(content, allow_inf_nan=False)
    rows = document.get("points") if isinstance(document, dict) and len(document) == 1 else None
    if not isinstance(rows, list) or not rows:
        raise ProblemError(
            "unreadable",
            'The body must be a JSON object of one field, "points": a list of one point or more.',
        )
    _refuse_large(len(rows), most)
    form = dict if columns["kind"] == "frame" else list
    if not all(isinstance(row, form) for row in rows):
        said = "an object" if form is dict else "a list"
        raise ProblemError("wrong-points", f"A point must be {said} with a value for each column.")
    width = columns["columns"]
    if form is list and all(
        len(row) == width and _NUMBERS.issuperset(map(type, row)) for row in rows
    ):
        with contextlib.suppress(OverflowError):  # an integer beyond the floats
            return np.array(rows, dtype=np.float64)
    cells = (cell for row in rows for cell in (row.values() if form is dict else row))
    if not all(isinstance(cell, _CELL_KINDS) for cell in cells):
        raise ProblemError("wrong-points", "A value of a point must be a number or a string.")
    if form is list:
        return rows
    names = [str(name) for name, _, _ in width]
    if any(row.keys() != set(names) for row in rows):
        said = ", ".join(map(shown, names))
        raise ProblemError("wrong-points", f"A point has other columns; give all of these: {said}.")
    # as objects: pandas would guess the type of a column by the values
    return pd.DataFrame(rows, columns=names, dtype=object)


def _frame_of_columnar(content: bytes, kind: str, most: int, width: int) -> pd.DataFrame:
    try:
        import pyarrow as pa
    except ImportError:
        raise ProblemError(
            "wrong-media-type", f"This service reads no {kind}; send {JSON}, or have pyarrow added."
        ) from None
    table: Any = None
    size: int | None = None
    # what the library raises for damaged content, in words that may quote it
    with contextlib.suppress(
        pa.ArrowException, OSError, ValueError, TypeError, KeyError, OverflowError, MemoryError
    ):
        table = (_arrow_table if kind == ARROW else _parquet_table)(content, most, width)
        size = sum(_text_size(chunk) for column in table.columns for chunk in column.chunks)
    if size is None or not table.num_rows:
        raise ProblemError("unreadable", f"The body is no {kind} that can be read.")
    if size > _MOST_TEXT:
        raise ProblemError(
            "too-large", f"A table may have at most {_MOST_TEXT} bytes of text; ask in parts."
        )
    with points_at_fault():
        return frame_of_arrow(table, "The table")


def _arrow_table(content: bytes, most: int, width: int) -> Any:
    import pyarrow as pa

    # looked at before the reader allocates memory for what a few bytes represent
    for message in pa.ipc.MessageReader.open_stream(pa.BufferReader(content)):
        if _is_compressed(message.metadata.to_pybytes()):
            raise ProblemError(
                "wrong-media-type", f"An {ARROW} must come uncompressed; write it so."
            )
    batches, rows = [], 0
    with pa.ipc.open_stream(pa.BufferReader(content)) as reader:
        for batch in reader:
            # offsets in a body may point anywhere
            batch.validate(full=True)
            rows += batch.num_rows
            _refuse_large(rows, most, batch.num_columns, width)
            batches.append(batch)
        return pa.Table.from_batches(batches, reader.schema)


def _is_compressed(metadata: bytes) -> bool:
    """Return whether the buffers of an Arrow message are compressed: a few bytes of those stand for
    any number of bytes, and the reader allocates memory before anybody can look.

    The metadata is a flatbuffer of the schema Message.fbs.
    """

    def field(table: int, number: int) -> int:
        """Return the place of a field, 0 where it is left out."""
        fields = table - struct.unpack_from("<i", metadata, table)[0]
        entry = 4 + 2 * number
        if entry >= struct.unpack_from("<H", metadata, fields)[0]:
            return 0
        offset: int = struct.unpack_from("<H", metadata, fields + entry)[0]
        return offset and table + offset

    def table_at(place: int) -> int:
        found: int = place + struct.unpack_from("<I", metadata, place)[0]
        return found

    message = table_at(0)
    kind, header = field(message, 1), field(message, 2)
    what = metadata[kind] if kind and header else 0
    if what not in (_DICTIONARY, _BATCH):
        return False
    batch = table_at(header)
    return bool(field(table_at(field(batch, 1)) if what == _DICTIONARY else batch, 3))


_DICTIONARY, _BATCH = 2, 3  # kinds of messages


def _parquet_table(content: bytes, most: int, width: int) -> Any:
    import pyarrow.parquet as pq

    # the file's own numbers first: few bytes may stand for very many rows
    about = pq.read_metadata(io.BytesIO(content))
    groups = [about.row_group(group) for group in range(about.num_row_groups)]
    rows = max(about.num_rows, sum(group.num_rows for group in groups))
    _refuse_large(rows, most, about.num_columns, width)
    columns = [about.schema.column(place) for place in range(width)]
    if any(column.max_repetition_level for column in columns):
        raise ProblemError("wrong-points", "The table has lists in its cells; flatten them.")
    used = {group.column(place).compression for group in groups for place in range(width)}
    if not used <= _BOUNDED_CODECS:
        raise ProblemError(
            "wrong-media-type",
            f"A {PARQUET} must be compressed by Snappy or not at all; write it so.",
        )
    # A value that is in many cells stays one value: written out it may take any memory. Where
    # an encoding does not allow that, the reader refuses it.
    texts = [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]
    with pq.ParquetFile(io.BytesIO(content), read_dictionary=texts) as file:
        table = file.read()
    _refuse_large(table.num_rows, most)
    return table


#: Others turn a byte into hundreds or thousands; this one into 21 at most.
_BOUNDED_CODECS = frozenset(("UNCOMPRESSED", "SNAPPY"))


def _text_size(chunk: Any) -> int:
    """Return the bytes of the texts in a piece of a column once every cell has its own: cells and
    columns may share them."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import types

    if isinstance(chunk.type, pa.BaseExtensionType):
        return _text_size(chunk.storage)
    if types.is_string_view(chunk.type) or types.is_binary_view(chunk.type):
        # a view is 16 bytes, of which four are the length
        lengths = np.frombuffer(chunk.buffers()[1], dtype="<i4")[::4]
        own = lengths[chunk.offset : chunk.offset + len(chunk)]
        return int(own[chunk.is_valid().to_numpy(zero_copy_only=False)].sum(dtype=np.int64))
    texts = chunk.dictionary if types.is_dictionary(chunk.type) else chunk
    if types.is_primitive(texts.type) or types.is_null(texts.type):
        return 0
    # of anything else, such as lists, nobody knows the size
    sizes = pc.binary_length(texts)
    return pc.sum(sizes if texts is chunk else sizes.take(chunk.indices)).as_py() or 0


def _refuse_large(rows: int, most: int, columns: int = 1, width: int = 1) -> None:
    """Refuse too many points, and columns that are not those of the session."""
    if columns != width:
        raise ProblemError("wrong-points", f"The table has {columns} columns; give {width}.")
    if rows > most or rows * columns > _MOST_CELLS:
        raise ProblemError(
            "too-large",
            f"There are {rows} points; ask at most {min(most, _MOST_CELLS // columns)} at once.",
        )


def _array_of_frame(frame: pd.DataFrame) -> Any:
    """Return the rows of a frame for teachers that learned from an array."""
    if all(pd.api.types.is_numeric_dtype(kind) for kind in frame.dtypes):
        return frame.to_numpy(dtype=np.float64, na_value=np.nan)
    return frame.astype(object).to_numpy()
