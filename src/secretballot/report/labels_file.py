"""The released labels as text: the bytes of ``labels.csv``, and their digest."""

import csv
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secretballot.exceptions import DataError

__all__ = [
    "ABSTAINED",
    "class_text",
    "class_value",
    "labels_blocks",
    "labels_digest",
    "labels_header",
    "summarise_labels_file",
]

IntArray = NDArray[np.int64]
ABSTAINED = -1
_BLOCK_ROWS = 1 << 16


def class_value(value: object) -> str | int | float | bool:
    """Return a class value as JSON can hold it: text, number or truth value; anything else as its text."""
    plain = value.item() if isinstance(value, np.generic) else value
    return plain if isinstance(plain, str | int | float) else str(plain)


def class_text(value: object) -> str:
    """Return the text that stands for a class in ``labels.csv``; words stay as they are."""
    plain = class_value(value)
    return plain if isinstance(plain, str) else json.dumps(plain)


def _quoted(text: str) -> str:
    """Quote a CSV field by RFC 4180 where it must be quoted; never change its value."""
    if any(mark in text for mark in ',"\r\n') or text != text.strip():
        return '"' + text.replace('"', '""') + '"'
    return text


def labels_header(classes: Sequence[object], noisy_counts: IntArray | None) -> list[str]:
    """Return the column names of ``labels.csv``; binary counts have one column, of the second class."""
    columns = ["query", "label", "abstained"]
    if noisy_counts is None:
        return columns
    counted = classes[1:] if noisy_counts.ndim == 1 else classes
    return columns + [f"noisy_count[{class_text(value)}]" for value in counted]


def _check_shapes(
    queries: IntArray, labels: IntArray, classes: Sequence[object], noisy_counts: IntArray | None
) -> None:
    if queries.ndim != 1 or labels.shape != queries.shape:
        raise DataError(
            f"queries has shape {queries.shape} and labels {labels.shape}; "
            "both must be one-dimensional and of the same length."
        )
    if labels.size and not (labels.min() >= ABSTAINED and labels.max() < len(classes)):
        raise DataError(f"labels must be class indices from -1 (abstained) to {len(classes) - 1}.")
    if noisy_counts is not None:
        allowed = [(len(queries), len(classes))] + ([(len(queries),)] if len(classes) == 2 else [])
        if noisy_counts.shape not in allowed:
            raise DataError(f"noisy_counts has shape {noisy_counts.shape}; it must be {allowed[-1]}.")


def _joined(counts: IntArray) -> list[Any]:
    """Return the counts of each row as CSV writes them."""
    rows = counts.tolist()
    return rows if counts.ndim == 1 else [",".join(map(str, row)) for row in rows]


def labels_blocks(
    queries: IntArray, labels: IntArray, classes: Sequence[object], noisy_counts: IntArray | None = None
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

    Raises
    ------
    DataError
        If shapes or class indices do not fit.
    """
    queries, labels = np.asarray(queries), np.asarray(labels)
    noisy_counts = None if noisy_counts is None else np.asarray(noisy_counts)
    _check_shapes(queries, labels, classes, noisy_counts)
    header = ",".join(_quoted(column) for column in labels_header(classes, noisy_counts))
    yield f"{header}\n".encode("utf-8", "surrogatepass")
    # Index -1 picks the last entry: the abstention.
    endings = [f",{_quoted(class_text(value))},false" for value in classes] + [",,true"]
    for start in range(0, len(queries), _BLOCK_ROWS):
        rows = slice(start, start + _BLOCK_ROWS)
        lines = [f"{q}{endings[y]}" for q, y in zip(queries[rows].tolist(), labels[rows].tolist(), strict=True)]
        if noisy_counts is not None:
            counts = _joined(noisy_counts[rows])
            lines = [f"{line},{count}" for line, count in zip(lines, counts, strict=True)]
        yield ("\n".join(lines) + "\n").encode("utf-8", "surrogatepass")


def labels_digest(
    queries: IntArray, labels: IntArray, classes: Sequence[object], noisy_counts: IntArray | None = None
) -> str:
    """Return the SHA-256, in hexadecimal, of the bytes of ``labels.csv``, as ``sha256sum`` prints it.

    Parameters
    ----------
    queries, labels, classes, noisy_counts
        As in `labels_blocks`.

    Raises
    ------
    DataError
        If shapes or class indices do not fit.
    """
    digest = hashlib.sha256()
    for block in labels_blocks(queries, labels, classes, noisy_counts):
        digest.update(block)
    return digest.hexdigest()


@dataclass(frozen=True)
class LabelsFile:
    """What a ``labels.csv`` holds, counted.

    Attributes
    ----------
    queries, answered : int
        Rows of the file, and rows with a label.
    sha256 : str
        SHA-256 of its bytes, in hexadecimal.
    """

    queries: int
    answered: int
    sha256: str


def summarise_labels_file(path: Path) -> LabelsFile:
    """Read a ``labels.csv`` and count it.

    Raises
    ------
    DataError
        If the file cannot be read or is no file of released labels.
    """
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        with path.open(encoding="utf-8", errors="surrogatepass", newline="") as file:
            rows = csv.reader(file)
            column = next(rows, []).index("abstained")
            abstained = [row[column] == "true" for row in rows]
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from None
    except (csv.Error, ValueError, IndexError):
        raise DataError(f"{path} is not a file of released labels; give the labels.csv of the release.") from None
    return LabelsFile(len(abstained), abstained.count(False), digest)
