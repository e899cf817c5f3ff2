"""Our own JSON files, read back: bounded in size and depth, every field of its type, and never
quoted when damaged."""

from collections.abc import Mapping
from typing import Any

from pydantic_core import from_json

LARGEST_JSON = 1 << 24  # bytes; the largest of these files lists the columns of a table

Kind = type | tuple[type, ...]


def json_fields(content: bytes, kinds: Mapping[str, Kind]) -> dict[str, Any] | None:
    """Return the named fields of a JSON object, or None where it is damaged.

    Nothing is raised here: the errors of a reader may carry the whole text, which may be secret,
    and would stay attached to whatever the caller raises.

    Parameters
    ----------
    content : bytes
        UTF-8 text, at most `LARGEST_JSON` of it; nested no deeper than what follows can walk by
        recursion.
    kinds : mapping of str to type or tuple of types
        What each field must be; further fields are left out. A truth value is no integer.

    Returns
    -------
    dict or None
    """
    if len(content) > LARGEST_JSON:
        return None
    try:
        found = from_json(content, allow_inf_nan=False)
    except ValueError:
        return None
    if not isinstance(found, dict):
        return None
    if not all(name in found and _is_of(found[name], kind) for name, kind in kinds.items()):
        return None
    return {name: found[name] for name in kinds}


def _is_of(value: object, kind: Kind) -> bool:
    kinds = kind if isinstance(kind, tuple) else (kind,)
    return type(value) in kinds  # JSON makes plain types only, and True is then no 1
