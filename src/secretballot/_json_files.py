"""Our own JSON files, read back: bounded in size and depth, every field of its type, and never
quoted when damaged."""

import json
from collections.abc import Mapping
from typing import Any, NoReturn

LARGEST_JSON = 1 << 24  # bytes; the largest of these files lists the columns of a table
_DEEPEST = 64  # our own are at most six levels deep
_LONGEST_NUMBER = 400  # digits; Python takes quadratic time to read longer integers

Kind = type | tuple[type, ...]


def json_fields(content: bytes, kinds: Mapping[str, Kind]) -> dict[str, Any] | None:
    """Return the named fields of a JSON object, or None where it is damaged.

    Nothing is raised here: the errors of the `json` module carry the whole text, which may be
    secret, and would stay attached to whatever the caller raises.

    Parameters
    ----------
    content : bytes
        UTF-8 text; at most `LARGEST_JSON` of it is looked at.
    kinds : mapping of str to type or tuple of types
        What each field must be; further fields are left out. A truth value is no integer.

    Returns
    -------
    dict or None
    """
    if len(content) > LARGEST_JSON:
        return None
    try:
        found = json.loads(
            content.decode(),
            parse_constant=_refuse_constant,
            parse_int=_short_integer,
            object_pairs_hook=_without_repeats,
        )
    except (ValueError, RecursionError, MemoryError):
        return None
    if not isinstance(found, dict) or not _is_flat_enough(found):
        return None
    if not all(name in found and _is_of(found[name], kind) for name, kind in kinds.items()):
        return None
    return {name: found[name] for name in kinds}


def _is_of(value: object, kind: Kind) -> bool:
    kinds = kind if isinstance(kind, tuple) else (kind,)
    return type(value) in kinds  # JSON makes plain types only, and True is then no 1


def _is_flat_enough(value: object) -> bool:
    """Return whether nothing is nested deeper than `_DEEPEST`.

    What follows may walk it by recursion.
    """
    level: list[Any] = [value]
    for _ in range(_DEEPEST):
        inside = [item for item in level if isinstance(item, dict | list)]
        level = [
            part for item in inside for part in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return True
    return False


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError  # two readers could see two files
    return fields


def _short_integer(digits: str) -> int:
    if len(digits) > _LONGEST_NUMBER:
        raise ValueError
    return int(digits)


def _refuse_constant(_: str) -> NoReturn:
    raise ValueError  # NaN and infinities are no JSON
