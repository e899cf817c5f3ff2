"""What distinguishes public points: digests of their values, so that repeated ones are known."""

import hashlib
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from secretballot._typing import FloatArray

BYTES = 16
_BLOCK_ROWS = 4096  # sparse rows made dense at once


def question_digests(X: Any) -> list[bytes]:
    """Return 16 bytes for each row of points of shape (n, n_features), equal for equal rows alone.

    Rows are equal if all values are: 0.0 and -0.0 are, all kinds of nan are, and so are a dense and
    a sparse row.
    """
    if hasattr(X, "iloc"):
        return [_row_digest(b"frame", row) for row in _frame_rows(X)]
    if sparse.issparse(X):
        table: Any = X
        table = table.tocsr()
        # as dense rows, so that a point has the same digest in both forms
        blocks = range(0, table.shape[0], _BLOCK_ROWS)
        return [
            digest
            for at in blocks
            for digest in question_digests(table[at : at + _BLOCK_ROWS].toarray())
        ]
    if X.dtype.kind in "iufb":
        return [_row_digest(b"numbers", row.tobytes()) for row in _canonical_doubles(X)]
    return [_row_digest(b"values", "\0".join(map(_cell_text, row)).encode()) for row in X]


def points_digest(X: Any) -> str:
    """Return one SHA-256, in hexadecimal, for all rows of points of shape (n, n_features)."""
    return hashlib.sha256(b"".join(question_digests(X))).hexdigest()


def doubles_digest(points: FloatArray) -> str:
    """Return one SHA-256, in hexadecimal, of points of shape (n, n_features) as rows of doubles.

    With the points at hand, anybody can tell by it which function a certificate speaks of.
    """
    return hashlib.sha256(np.ascontiguousarray(points, dtype="<f8").tobytes()).hexdigest()


def _canonical_doubles(numbers: Any) -> FloatArray:
    """Return numbers as little-endian doubles with one zero and one nan."""
    plain = np.ascontiguousarray(numbers, dtype="<f8") + 0.0
    plain[np.isnan(plain)] = np.nan
    return plain


def _frame_rows(frame: pd.DataFrame) -> list[bytes]:
    """Return the bytes of every row: numeric columns as doubles, the others by type and text."""
    numeric = [pd.api.types.is_numeric_dtype(kind) for kind in frame.dtypes]
    numbers = _canonical_doubles(frame.loc[:, numeric].to_numpy(dtype=np.float64, na_value=np.nan))
    others = [
        column.tolist() for _, column in frame.loc[:, [not known for known in numeric]].items()
    ]
    texts = (
        ["\0".join(map(_cell_text, cells)) for cells in zip(*others, strict=True)]
        if others
        else [""] * len(frame)
    )
    return [row.tobytes() + text.encode() for row, text in zip(numbers, texts, strict=True)]


def _cell_text(value: Any) -> str:
    kind, text = type(value).__name__, str(value)
    if value is None or value is pd.NA or value != value:
        kind, text = "missing", ""
    elif isinstance(value, bool | np.bool_ | int | np.integer):
        kind, text = "number", str(int(value))
    elif isinstance(value, float | np.floating):
        # integers pass for what they are: 2.0 equals 2, and -0.0 equals 0
        is_integer = value == np.trunc(value) and np.isfinite(value)
        kind, text = "number", str(int(value)) if is_integer else repr(float(value))
    # the length keeps a value that holds the separator from passing for two
    return f"{kind}:{len(text)}:{text}"


def _row_digest(kind: bytes, content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=BYTES, person=kind).digest()
