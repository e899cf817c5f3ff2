"""Where a table lies, as people name it: a path, or a URL.

A URL stays a text: as a path it would lose a stroke. What is shown of it carries no credentials.
Our own JSON files are read back here too: bounded in size and depth, every field of its type, and
never quoted when damaged.
"""

import os
import re
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from pydantic_core import from_json

_SCHEME = r"[a-z][a-z0-9+.\-]+"
#: Also of several in a row, as fsspec has them ("simplecache::s3://...").
_URL = re.compile(rf"{_SCHEME}(::{_SCHEME})*://", re.IGNORECASE)


def is_url(place: Any) -> bool:
    """Return whether a table is named by a URL."""
    return isinstance(place, str) and _URL.match(place) is not None


def place_of(text: str) -> Path | str:
    """Return a URL as it is, any other text as a path."""
    return text if is_url(text) else Path(text)


def shown_place(place: Any) -> str:
    """Return how messages and files name a table: a URL without user, password and query."""
    if not isinstance(place, str) or not is_url(place):
        return str(place) if isinstance(place, str | os.PathLike) else type(place).__name__
    scheme, _, rest = place.partition("://")
    # a secret may have any stroke in it, where nobody has replaced these by their numbers
    if ":" in rest.partition("@")[0]:
        rest = rest.rpartition("@")[2]
    parts = urlsplit(f"x://{rest}")
    bare = urlunsplit(("x", parts.netloc.rpartition("@")[2], parts.path, "", ""))
    return f"{scheme}{bare[1:]}"


def table_name(place: Path | str) -> str:
    """Return the name of a table: that of its file or folder, without the kind of file."""
    if not isinstance(place, str):
        # "." and ".." have no name of their own
        return (place if place.name not in ("", "..") else Path(os.path.realpath(place))).stem
    parts = urlsplit(shown_place(place))
    return PurePosixPath(parts.path).stem or parts.netloc.partition(":")[0]


LARGEST_JSON = 1 << 24  # bytes; the largest of these files lists the columns of a table


def json_text(content: bytes, name: str) -> str | None:
    """Return the text in a field of a JSON object, or None where it is damaged.

    Nothing is raised here: the errors of a reader may carry the whole text, which may be secret,
    and would stay attached to whatever the caller raises.

    Parameters
    ----------
    content : bytes
        UTF-8 text, at most `LARGEST_JSON` of it; nested no deeper than what follows can walk by
        recursion.
    name : str
        Of the field; there may be others.
    """
    if len(content) <= LARGEST_JSON:
        with suppress(ValueError):
            found = from_json(content, allow_inf_nan=False)
            if isinstance(found, dict) and isinstance(found.get(name), str):
                return str(found[name])
    return None
