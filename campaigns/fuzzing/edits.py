"""Edits of genuine files, drawn from a generator of random numbers."""

import copy
import csv
import io
import json
from collections.abc import Sequence
from random import Random
from typing import Any

#: Stands in private cells; it must not come back in anything that is said.
MARKER = "MARKER-7719-private"

#: Texts that have broken parsers before: numbers at their limits, quotes, delimiters, control
#: characters, formulas.
_WORDS = "nan NaN inf -inf 1e400 -0.0 0x10 1_000 1e-400 ١٢ ½ =1+1 @x - None null true no yes"
_TEXTS = [
    *_WORDS.split(),
    *["../../x", "/dev/zero", "9" * 400, "a" * 3000, "", " ", "\0", "\x1b[31m", "\n", "\r\n"],
    *["\t", "\u2028", "\ufeff", "\ud7ff", "\x85", '"', '""', "'", ",", ";", "|", MARKER],
]
_NUMBERS = [0, 1, -1, 2**31, 2**63, -(2**63), 10**30, 10**400, 1e308, 5e-324, float("nan")]


def hostile_cell(rng: Random) -> str:
    """Return a text for a cell, often one that has broken a parser."""
    drawn = rng.random()
    if drawn < 0.5:
        return rng.choice(_TEXTS)
    if drawn < 0.6:
        return MARKER
    if drawn < 0.7:
        return repr(rng.choice([rng.randrange(-300, 300), rng.gauss(0, 1000), float("inf")]))
    letters = [rng.randrange(32, 127), rng.randrange(0xD800), rng.randrange(0xE000, 0x110000)]
    return "".join(chr(rng.choice(letters)) for _ in range(rng.randrange(9)))


def hostile_value(rng: Random, depth: int = 2) -> Any:
    """Return a value for a field of a JSON document."""
    drawn = rng.random()
    if depth and drawn < 0.1:
        return [hostile_value(rng, depth - 1) for _ in range(rng.randrange(4))]
    if depth and drawn < 0.2:
        return {
            hostile_cell(rng)[:5]: hostile_value(rng, depth - 1) for _ in range(rng.randrange(4))
        }
    small = [None, True, False, rng.randrange(-5, 300), rng.gauss(0, 10)]
    return rng.choice([rng.choice(small), rng.choice(_NUMBERS), hostile_cell(rng)])


def _fields_of(document: Any) -> list[tuple[Any, Any]]:
    """Return every (container, key) of a JSON document, breadth first."""
    found: list[tuple[Any, Any]] = []
    waiting = [document]
    while waiting:
        holder = waiting.pop(0)
        keys: Sequence[Any] = list(holder) if isinstance(holder, dict) else range(len(holder))
        found += [(holder, key) for key in keys]
        waiting += [holder[key] for key in keys if isinstance(holder[key], dict | list)]
    return found


def edited_document(document: Any, rng: Random) -> Any:
    """Return a copy of a JSON document with one to four edits."""
    changed = copy.deepcopy(document)
    for _ in range(rng.randint(1, 4)):
        if fields := _fields_of(changed):
            (holder, key), other = rng.choice(fields), rng.choice(fields)
            _edit_field(holder, key, rng, copy.deepcopy(other[0][other[1]]))
    return changed


def _edit_field(holder: Any, key: Any, rng: Random, other: Any) -> None:
    old, value = holder[key], hostile_value(rng)
    match rng.choice(("set", "set", "set", "remove", "copy", "nest", "append", "scale", "rename")):
        case "remove":
            del holder[key]
        case "copy":
            holder[key] = other
        case "nest":
            holder[key] = [[[old]]]
        case "append" if isinstance(old, list):
            old.append(value)
        case "scale" if isinstance(old, int | float) and not isinstance(old, bool):
            holder[key] = old * 1e6 if isinstance(old, float) else old * 10**6
        case "rename" if isinstance(holder, dict):
            holder[hostile_cell(rng)[:40]] = holder.pop(key)
        case _:
            holder[key] = value


def json_bytes(document: Any, rng: Random | None = None) -> bytes:
    """Return a document as JSON; with a generator, at times with edited bytes, or much too deep.

    Such documents are public, and a message may quote them: the marker is in private cells alone.
    """
    content = json.dumps(document).encode().replace(MARKER.encode(), b"word")
    if rng is None:
        return content
    if rng.random() < 0.05:
        content = content.replace(b": ", b": " + b"[" * rng.choice([5_000, 200_000]), 1)
    return seldom_edited(content, rng)


def edited_rows(rows: Sequence[Sequence[str]], rng: Random) -> list[list[str]]:
    """Return a copy of a table of text with one to four edits."""
    changed = [list(row) for row in rows]
    for _ in range(rng.randint(1, 4)):
        if changed:
            _edit_row(changed, rng.choice(changed), rng)
    return changed


def _edit_row(rows: list[list[str]], row: list[str], rng: Random) -> None:
    column, cell = rng.randrange(max(len(row), 1)), hostile_cell(rng)
    match rng.choice(
        ("set", "set", "set", "remove", "insert", "row", "drop", "cut", "wide", "empty")
    ):
        case "row":
            rows.append(list(row))
        case "drop":
            rows.remove(row)
        case "cut":
            del row[column:]
        case "wide":
            row.extend([cell] * 50)
        case "empty":
            row.clear()
        case "insert":
            row.insert(column, cell)
        case action if row:
            row[column : column + 1] = [cell] if action == "set" else []


def csv_bytes(rows: Sequence[Sequence[str]]) -> bytes:
    """Return a table of text as CSV."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue().encode("utf-8", "surrogatepass")


def edited_bytes(content: bytes, rng: Random) -> bytes:
    """Return a copy of bytes with one to three edits."""
    data = bytearray(content)
    for _ in range(rng.randint(1, 3)):
        if not data:
            break
        at, new = rng.randrange(len(data)), rng.randbytes(rng.randint(1, 6))
        match rng.choice(("set", "flip", "remove", "insert", "cut", "repeat")):
            case "set":
                data[at : at + len(new)] = new
            case "flip":
                data[at] ^= new[0] or 1
            case "remove":
                del data[at : at + 1 + new[0]]
            case "insert":
                data[at:at] = new
            case "cut":
                del data[at:]
            case "repeat":
                data += data[at : at + 4096] * (1 + new[0] % 8)
    return bytes(data)


def seldom_edited(content: bytes, rng: Random) -> bytes:
    """Return bytes, in one case of four edited: an edited byte is often refused before anything
    else is read."""
    return edited_bytes(content, rng) if rng.random() < 0.25 else content
