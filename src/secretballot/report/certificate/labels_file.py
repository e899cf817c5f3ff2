"""The released labels as text: the bytes of ``labels.csv``, and their digest."""

import csv
import hashlib
import io
import json
from array import array
from collections.abc import Iterator, Sequence

import numpy as np

from secretballot._typing import IntArray
from secretballot.exceptions import DataError

ABSTAINED = -1
_BLOCK_ROWS = 1 << 12
_FIXED_COLUMNS = 3  # query, label, abstained


def class_value(value: object) -> str | int | float | bool:
    """Return a class value as JSON can hold it: string, number or truth value; else its string."""
    plain = value.item() if isinstance(value, np.generic) else value
    return plain if isinstance(plain, str | int | float) else str(plain)


def class_text(value: object) -> str:
    """Return the string that stands for a class in ``labels.csv``; strings stay as they are."""
    plain = class_value(value)
    return plain if isinstance(plain, str) else json.dumps(plain)


def quoted_if_needed(text: str) -> str:
    """Quote a CSV field by RFC 4180 where it must be quoted; never change its value."""
    if any(mark in text for mark in ',"\r\n') or text != text.strip():
        return '"' + text.replace('"', '""') + '"'
    return text


def labels_blocks(
    queries: IntArray,
    labels: IntArray,
    classes: Sequence[object],
    noisy_counts: IntArray | None = None,
) -> Iterator[bytes]:
    """Yield the bytes of ``labels.csv``, block by block (UTF-8, lines end in a line feed).

    Values are quoted where CSV asks for it and never altered: a class that starts with ``=`` is
    written as it is, since a changed label would be a wrong label.

    Parameters
    ----------
    queries : int array of shape (l,)
        Rows of the public pool.
    labels : int array of shape (l,)
        Class indices, -1 where abstained.
    classes : sequence
        Class values, by index.
    noisy_counts : int array of shape (l,) or (l, C), optional
        Released noisy counts, in votes.
    """
    queries, labels = np.asarray(queries), np.asarray(labels)
    noisy_counts = None if noisy_counts is None else np.asarray(noisy_counts)
    header = ["query", "label", "abstained"]
    if noisy_counts is not None:
        # counts of two classes may have one column, of the second
        counted = classes[1:] if noisy_counts.ndim == 1 else classes
        header += [f"noisy_count[{class_text(value)}]" for value in counted]
    yield f"{','.join(map(quoted_if_needed, header))}\n".encode("utf-8", "surrogatepass")
    # Index -1 picks the last entry: the abstention.
    endings = [f",{quoted_if_needed(class_text(value))},false" for value in classes] + [",,true"]
    ending = np.array(endings, dtype=object)
    columns = [] if noisy_counts is None else list(np.atleast_2d(noisy_counts.T))
    line = "%d%s" + ",%d" * len(columns) + "\n"
    # in blocks: a release may have millions of rows, and their strings take much more memory; a
    # block is written at once, since a session of 10^5 answers is digested with every new one
    for start in range(0, len(queries), _BLOCK_ROWS):
        rows = slice(start, start + _BLOCK_ROWS)
        numbers = [column[rows].astype(object) for column in (queries, *columns)]
        cells = np.column_stack([numbers[0], ending[labels[rows]], *numbers[1:]])
        text = line * len(cells) % tuple(cells.ravel().tolist())
        yield text.encode("utf-8", "surrogatepass")


def labels_digest(
    queries: IntArray,
    labels: IntArray,
    classes: Sequence[object],
    noisy_counts: IntArray | None = None,
) -> str:
    """Return the SHA-256 of the bytes of ``labels.csv``, as ``sha256sum`` prints it.

    Parameters
    ----------
    queries, labels, classes, noisy_counts
        As in `labels_blocks`.
    """
    digest = hashlib.sha256()
    for block in labels_blocks(queries, labels, classes, noisy_counts):
        digest.update(block)
    return digest.hexdigest()


def read_labels(
    content: bytes, classes: Sequence[object], count_columns: int
) -> tuple[IntArray, IntArray, IntArray | None]:
    """Read a ``labels.csv`` that is, byte by byte, what `labels_blocks` writes.

    It is read, written again by the writer's rules, and compared: no other way to spell a cell, a
    header or the end of a line comes through, and nothing is in the file beside queries, labels
    and counts.

    Parameters
    ----------
    content : bytes
        Of the file.
    classes : sequence
        Class values, by index; their texts differ.
    count_columns : int
        Columns of noisy counts: 0, 1 (two classes), or one for each class.

    Returns
    -------
    queries, labels : ndarray of int64, shape (l,)
        Rows of the public pool, and class indices, -1 where abstained.
    noisy_counts : ndarray of int64, shape (l,) or (l, C), or None
        In votes; None where the file has no columns of counts.

    Raises
    ------
    DataError
        If it is another file.
    """
    queries, labels, noisy_counts = _parsed_cells(content, classes, count_columns)
    written = labels_digest(queries, labels, classes, noisy_counts)
    if written != hashlib.sha256(content).hexdigest():
        raise DataError(f"labels.csv is not as a release writes it; {_ADVICE}.")
    return queries, labels, noisy_counts


_ADVICE = "give the labels.csv of the release"


def _parsed_cells(
    content: bytes, classes: Sequence[object], count_columns: int
) -> tuple[IntArray, IntArray, IntArray | None]:
    """Return queries, labels and counts, read generously: who asks compares the bytes."""
    known = {class_text(value): index for index, value in enumerate(classes)}
    queries, labels, counts = array("q"), array("q"), array("q")
    try:
        text = io.TextIOWrapper(
            io.BytesIO(content), encoding="utf-8", errors="surrogatepass", newline=""
        )
        rows = csv.reader(text)
        next(rows, None)
        # arrays of machine integers: lists of Python's would take several times the memory
        for row in rows:
            if len(row) != _FIXED_COLUMNS + count_columns:
                raise ValueError
            queries.append(int(row[0]))
            labels.append(ABSTAINED if row[2] == "true" else known[row[1]])
            counts.extend(map(int, row[_FIXED_COLUMNS:]))
    except (csv.Error, ValueError, KeyError, OverflowError):
        raise DataError(
            f"labels.csv has a row {len(queries) + 1} that is no query, label of one of the"
            f" classes, abstention and {count_columns} noisy counts; {_ADVICE}."
        ) from None
    table = np.frombuffer(counts, dtype=np.int64) if count_columns else None
    if table is not None and count_columns > 1:
        table = table.reshape(-1, count_columns)
    return np.frombuffer(queries, dtype=np.int64), np.frombuffer(labels, dtype=np.int64), table
