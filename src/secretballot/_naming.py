"""Phrases that name rows and columns in messages; never a cell."""

import re
from collections.abc import Iterable, Sequence

from secretballot._validation import shown

#: Rows or columns a message names; it counts the rest.
NAMED_AT_MOST = 10
_INTEGER = re.compile(r"-?[0-9]{1,18}")


def name_rows(rows: Iterable[int], *, total: int | None = None) -> str:
    """Return a phrase that names rows, the first ten by number; of `total` where these are but the
    first of them."""
    numbers = sorted(int(row) for row in rows)
    total = len(numbers) if total is None else total
    listed = ", ".join(str(number) for number in numbers[:NAMED_AT_MOST])
    rest = total - NAMED_AT_MOST
    return f"{'row' if total == 1 else 'rows'} {listed}" + (f" and {rest} more" if rest > 0 else "")


def name_columns(names: Sequence[str]) -> str:
    """Return a phrase that names columns, the first ten by name."""
    listed = ", ".join(shown(name) for name in names[:NAMED_AT_MOST])
    rest = len(names) - NAMED_AT_MOST
    return f"{'column' if len(names) == 1 else 'columns'} {listed}" + (
        f" and {rest} more" if rest > 0 else ""
    )


def integers_or_words(names: Iterable[object]) -> tuple[str, ...] | tuple[int, ...]:
    """Return names of classes as text, or as integers where all of them are."""
    # "01" and 1 are two classes, so a number counts as one only in its usual form
    texts = [str(name) for name in names]
    if all(_INTEGER.fullmatch(text) and str(int(text)) == text for text in texts):
        return tuple(int(text) for text in texts)
    return tuple(texts)
