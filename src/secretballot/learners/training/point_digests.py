"""What tells one public point from another: a digest of its values, so that a repeated question
is known as such."""

import hashlib
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from secretballot._typing import FloatArray

__all__ = ["points_digest", "question_digests"]

BYTES = 16
_BLOCK_ROWS = 4096  # sparse rows made dense at once


def question_digests(X: Any) -> list[bytes]:
    """Return 16 bytes for every row of an array, sparse matrix or frame; equal rows, and only they,
    get equal bytes.

    Rows are equal if all values are: 0.0 and -0.0 are, all kinds of nan are, and so are a dense and
    a sparse row.
    """
    if hasattr(X, "iloc"):
        return [_digest(b"frame", row) for row in _frame_rows(X)]
    if sparse.issparse(X):
        table: Any = X
        table = table.tocsr()
        blocks = range(0, table.shape[0], _BLOCK_ROWS)
        return [
            digest
            for at in blocks
            for digest in question_digests(table[at : at + _BLOCK_ROWS].toarray())
        ]
    if X.dtype.kind in "iufb":
        return [_digest(b"numbers", row.tobytes()) for row in _plain(X)]
    return [_digest(b"values", "\0".join(map(_cell, row)).encode()) for row in X]


def points_digest(X: Any) -> str:
    """Return one SHA-256, in hexadecimal, for all rows in their order; the same for equal rows."""
    return hashlib.sha256(b"".join(question_digests(X))).hexdigest()


def _plain(numbers: Any) -> FloatArray:
    """Return numbers as little-endian doubles with one zero and one nan."""
    plain = np.ascontiguousarray(numbers, dtype="<f8") + 0.0
    plain[np.isnan(plain)] = np.nan
    return plain


def _frame_rows(frame: pd.DataFrame) -> list[bytes]:
    """Return the bytes of every row: numeric columns as doubles, the others by type and text."""
    numeric = [pd.api.types.is_numeric_dtype(kind) for kind in frame.dtypes]
    numbers = _plain(frame.loc[:, numeric].to_numpy(dtype=np.float64, na_value=np.nan))
    others = [
        column.tolist() for _, column in frame.loc[:, [not known for known in numeric]].items()
    ]
    texts = (
        ["\0".join(map(_cell, cells)) for cells in zip(*others, strict=True)]
        if others
        else [""] * len(frame)
    )
    return [row.tobytes() + text.encode() for row, text in zip(numbers, texts, strict=True)]


def _cell(value: Any) -> str:
    kind, text = type(value).__name__, str(value)
    if value is None or value is pd.NA or value != value:
        kind, text = "missing", ""
    elif isinstance(value, bool | np.bool_ | int | np.integer):
        kind, text = "number", str(int(value))
    elif isinstance(value, float | np.floating):
        # integers pass for what they are: 2.0 equals 2, and -0.0 equals 0
        kind, text = (
            "number",
            (
                str(int(value))
                if value == np.trunc(value) and np.isfinite(value)
                else repr(float(value))
            ),
        )
    # the length keeps a value that holds the separator from passing for two
    return f"{kind}:{len(text)}:{text}"


def _digest(kind: bytes, content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=BYTES, person=kind).digest()
