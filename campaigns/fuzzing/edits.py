"""Edits of genuine files, as Hypothesis strategies and the functions that carry them out."""

import copy
import json
import random
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

from campaigns.fuzzing.rules import MARKER

_PLACES = st.integers(0, 2**20)

#: Texts that have broken parsers before: numbers at their limits, quotes, delimiters, control
#: characters, formulas.
_TEXTS = (
    *(
        "",
        " ",
        "nan",
        "NaN",
        "inf",
        "-inf",
        "1e400",
        "-0.0",
        "0x10",
        "1_000",
        "1e-400",
        "9" * 400,
        "١٢",
        "½",
    ),
    *(
        "\0",
        "\x1b[31m",
        "\n",
        "\r\n",
        "\t",
        "\u2028",
        "\ufeff",
        "\ud7ff",
        "\x85",
        '"',
        '""',
        "'",
        ",",
        ";",
        "|",
    ),
    *(
        "=1+1",
        "@x",
        "-",
        "None",
        "null",
        "true",
        "no",
        "yes",
        "../../x",
        "/dev/zero",
        "a" * 3000,
        MARKER,
    ),
)

hostile_cells = st.one_of(
    st.sampled_from(_TEXTS),
    st.text(max_size=8),
    st.integers().map(str),
    st.floats().map(repr),
    st.just(MARKER),
)

_scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, 1, -1, 2**31, 2**63, -(2**63), 10**30, 10**400]),
    st.integers(-5, 300),
    st.floats(),
    st.sampled_from(_TEXTS),
    st.text(max_size=8),
)
hostile_values = st.recursive(
    _scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)

#: (place, what to do, value): the place picks one of all fields of the document.
field_edits = st.lists(
    st.tuples(
        _PLACES,
        st.sampled_from(
            ("set", "set", "set", "remove", "copy", "nest", "append", "scale", "rename")
        ),
        hostile_values,
    ),
    min_size=1,
    max_size=4,
)
cell_edits = st.lists(
    st.tuples(
        _PLACES,
        _PLACES,
        st.sampled_from(
            ("set", "set", "set", "remove", "insert", "row", "drop row", "cut", "wide", "empty row")
        ),
        hostile_cells,
    ),
    min_size=1,
    max_size=4,
)
byte_edits = st.lists(
    st.tuples(
        _PLACES,
        st.sampled_from(("set", "flip", "remove", "insert", "cut", "repeat")),
        st.binary(min_size=1, max_size=6),
    ),
    max_size=3,
)

#: Mostly none: an edited byte is often refused before anything else is read.
few_byte_edits = st.one_of(st.just([]), st.just([]), byte_edits)


def moved(found: Any, rng: random.Random) -> Any:
    """Return a copy of drawn edits at other places.

    The integers in front of the last part of every tuple.
    """
    if isinstance(found, list):
        return [moved(part, rng) if isinstance(part, tuple) else part for part in found]
    if not found:
        return found
    *places, last = found
    return (
        *(_moved_part(part, rng) for part in places),
        moved(last, rng) if isinstance(last, list | tuple) else last,
    )


def _moved_part(part: Any, rng: random.Random) -> Any:
    if isinstance(part, list | tuple):
        return moved(part, rng)
    return rng.randrange(2**20) if type(part) is int else part


def _fields_of(document: Any) -> list[tuple[Any, Any]]:
    """Return every (container, key) of a JSON document, breadth first."""
    found: list[tuple[Any, Any]] = []
    waiting = [document]
    while waiting:
        holder = waiting.pop(0)
        keys: Sequence[Any] = list(holder) if isinstance(holder, dict) else range(len(holder))
        for key in keys:
            found.append((holder, key))
            if isinstance(holder[key], dict | list):
                waiting.append(holder[key])
    return found


def edited_document(document: Any, edits: Sequence[tuple[int, str, Any]]) -> Any:
    """Return a copy of a JSON document with the edits carried out."""
    changed = copy.deepcopy(document)
    for place, action, value in edits:
        fields = _fields_of(changed)
        if not fields:
            break
        holder, key = fields[place % len(fields)]
        # a copy: the same value drawn twice would otherwise stand inside itself after a later edit
        _edit_field(
            holder, key, action, copy.deepcopy(value), fields[(place * 7 + 3) % len(fields)]
        )
    return changed


def _edit_field(holder: Any, key: Any, action: str, value: Any, other: tuple[Any, Any]) -> None:
    old = holder[key]
    if action == "remove":
        del holder[key]
    elif action == "copy":
        holder[key] = copy.deepcopy(other[0][other[1]])
    elif action == "nest":
        holder[key] = [[[old]]]
    elif action == "append" and isinstance(old, list):
        old.append(value)
    elif action == "scale" and isinstance(old, int | float) and not isinstance(old, bool):
        holder[key] = old * 1e6 if isinstance(old, float) else old * 10**6
    elif action == "rename" and isinstance(holder, dict):
        holder[str(value)[:40]] = holder.pop(key)
    else:
        holder[key] = value


def text_of(document: Any) -> bytes:
    """Return a document as JSON bytes.

    Nan and infinity as Python writes them, half surrogates as escapes.
    """
    return json.dumps(document).encode()


def edited_rows(
    rows: Sequence[Sequence[str]], edits: Sequence[tuple[int, int, str, str]]
) -> list[list[str]]:
    """Return a copy of a table of text with the edits carried out."""
    changed = [list(row) for row in rows]
    for down, across, action, cell in edits:
        if not changed:
            break
        row = changed[down % len(changed)]
        column = across % max(len(row), 1)
        _edit_row(changed, row, column, action, cell)
    return changed


def _edit_row(rows: list[list[str]], row: list[str], column: int, action: str, cell: str) -> None:
    if action == "row":
        rows.append(list(row))
    elif action == "drop row":
        rows.remove(row)
    elif action == "cut":
        del row[column:]
    elif action == "wide":
        row.extend([cell] * 50)
    elif action == "empty row":
        row.clear()
    elif action == "insert":
        row.insert(column, cell)
    elif action == "remove" and row:
        del row[column]
    elif row:
        row[column] = cell


def edited_bytes(content: bytes, edits: Sequence[tuple[int, str, bytes]]) -> bytes:
    """Return a copy of bytes with the edits carried out."""
    changed = bytearray(content)
    actions: dict[str, Callable[[bytearray, int, bytes], None]] = {
        "set": lambda data, at, new: data.__setitem__(slice(at, at + len(new)), new),
        "flip": lambda data, at, new: data.__setitem__(
            slice(at, at + 1), bytes([data[at] ^ (new[0] or 1)])
        ),
        "remove": lambda data, at, new: data.__delitem__(slice(at, at + 1 + new[0])),
        "insert": lambda data, at, new: data.__setitem__(slice(at, at), new),
        "cut": lambda data, at, _: data.__delitem__(slice(at, None)),
        "repeat": lambda data, at, new: data.extend(data[at : at + 4096] * (1 + new[0] % 8)),
    }
    for place, action, new in edits:
        if changed:
            actions[action](changed, place % len(changed), new)
    return bytes(changed)
