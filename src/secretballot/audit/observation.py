"""Everything that can be seen of a folder of released files, as named fields with plain values.

A field is a place (`certificate.json:$.public.weights`) with a number or a string.
What can be read is: leaves of a JSON document, cells of a table, lines and numbers of a string.
Everything else still shows by its size, its digest and the digests of its blocks.
"""

import csv
import hashlib
import io
import itertools
import json
import math
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Field = str | int | float
Fields = dict[str, Field]

_MOST_FIELDS = 4_000  # of one file; larger files show by blocks and digests as well
_LONGEST_TEXT = 80
_BLOCK = 64  # bytes
_LARGEST_OPENED = 20_000_000  # bytes
_INTEGER = re.compile(r"\d{3,18}")
_NUMBER = re.compile(r"[-+]?(?:\d+\.\d+(?:[eE][-+]?\d+)?|\d{3,18})")

Found = Iterator[tuple[str, Field]]


def observed_files(folder: Path) -> Fields:
    """Return the fields of all files below a folder.

    Parameters
    ----------
    folder : Path
        May be missing: that is a field as well.

    Returns
    -------
    dict
        Field name to value; for every file also mode, number of links, size and place in the order
        of writing.
    """
    if not folder.is_dir():
        return {"(folder)": "missing"}
    paths = sorted(path for path in folder.rglob("*") if not path.is_dir() or path.is_symlink())
    names = {path: path.relative_to(folder).as_posix() for path in paths}
    fields: Fields = {
        "(folder):names": _short_text("\n".join(names.values())),
        "(folder):mode": oct(stat.S_IMODE(folder.stat().st_mode)),
        "(folder):order written": _short_text(
            "\n".join(names[path] for path in sorted(paths, key=_time_written))
        ),
    }
    for path, name in names.items():
        fields.update(_observed_file(path, name))
    return fields


def observed_text(name: str, text: str) -> Fields:
    """Return the fields of a string: its lines and its numbers, by position."""
    return dict(_text_fields(name, text))


def _time_written(path: Path) -> tuple[int, str]:
    return path.lstat().st_mtime_ns, path.name


def _observed_file(path: Path, name: str) -> Fields:
    status = path.lstat()
    fields: Fields = {
        f"{name}:mode": oct(status.st_mode),
        f"{name}:links": status.st_nlink,
        f"{name}:size": status.st_size,
    }
    if path.is_symlink():
        return fields | {f"{name}:target": _short_text(os.readlink(path))}
    if stat.S_ISREG(status.st_mode) and status.st_size <= _LARGEST_OPENED:
        fields.update(_content_fields(name, path.read_bytes()))
    return fields


def _content_fields(name: str, content: bytes) -> Fields:
    """Return the fields of a file's bytes: the digest first, then the structure that they have."""
    fields: Fields = {f"{name}:digest": _digest_of(content)}
    try:
        fields.update(itertools.islice(_structure_of(name, content), _MOST_FIELDS))
    except (ValueError, csv.Error, RecursionError):
        # not what it looked like: its blocks are shown instead
        fields.update(_block_fields(name, content))
    return fields


def _structure_of(name: str, content: bytes) -> Found:
    text = content.decode("utf-8")
    if text.lstrip()[:1] in ("{", "["):
        return _json_fields(f"{name}:$", json.loads(text))
    return _table_fields(name, text) if name.endswith(".csv") else _text_fields(name, text)


def _json_fields(place: str, document: Any) -> Found:
    if isinstance(document, dict):
        yield f"{place}:keys", _short_text("\n".join(document))
        for key, value in document.items():
            yield from _json_fields(f"{place}.{key}", value)
    elif isinstance(document, list):
        yield f"{place}:length", len(document)
        for number, value in enumerate(document):
            yield from _json_fields(f"{place}[{number}]", value)
    elif isinstance(document, str):
        yield from _text_and_integers(place, document)
    else:
        yield place, _plain_field(document)


def _table_fields(name: str, text: str) -> Found:
    """Yield totals of the columns first, as the strongest, then the cells."""
    rows = list(csv.reader(io.StringIO(text)))
    header, body = (rows[0], rows[1:]) if rows else ([], [])
    yield f"{name}:rows", len(body)
    yield f"{name}:header", _short_text(",".join(header))
    for number, column in enumerate(header):
        cells = [row[number] for row in body if number < len(row)]
        numbers = [
            float(cell) for cell in cells if _NUMBER.fullmatch(cell) or cell.lstrip("-").isdigit()
        ]
        if numbers:
            yield f"{name}:{column}:sum", math.fsum(numbers)
        for value in sorted(set(cells))[:10]:
            yield f"{name}:{column}:count of {_short_text(value)}", cells.count(value)
    for number, row in enumerate(body):
        for column, cell in zip(header, row, strict=False):
            yield f"{name}:{column}[{number}]", _plain_cell(cell)


def _text_fields(name: str, text: str) -> Found:
    """Yield the lines and the numbers of a string, by position."""
    lines = text.splitlines()
    yield f"{name}:lines", len(lines)
    yield f"{name}:digest", _digest_of(text.encode("utf-8", "replace"))
    for number, line in enumerate(lines[: _MOST_FIELDS // 2], 1):
        yield f"{name}:line {number}", _short_text(line)
    for number, match in enumerate(_NUMBER.finditer(text)):
        yield f"{name}:number {number}", _plain_cell(match[0])


def _block_fields(name: str, content: bytes) -> Found:
    for start in range(0, len(content), _BLOCK):
        yield f"{name}:bytes from {start}", _digest_of(content[start : start + _BLOCK])


def _text_and_integers(place: str, text: str) -> Found:
    """Yield a string and the integers in it: names of members have been addresses."""
    yield place, _short_text(text)
    for number, match in enumerate(_INTEGER.finditer(text[:1000])):
        yield f"{place}:integer {number}", int(match[0])


def _plain_cell(cell: str) -> Field:
    try:
        return int(cell) if cell.lstrip("+-").isdigit() else float(cell)
    except ValueError:
        return _short_text(cell)


def _plain_field(value: Any) -> Field:
    """Return a value as a plain number or text; not-a-number as text, since it equals nothing."""
    plain = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return value if plain else _short_text(repr(value))


def _short_text(text: str) -> str:
    """Return a string if it is short, else its length and digest."""
    if len(text) <= _LONGEST_TEXT:
        return text
    return f"{len(text)} characters, {_digest_of(text.encode('utf-8', 'replace'))}"


def _digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
