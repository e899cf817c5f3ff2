"""Phrases that name rows and columns in messages, never a cell; and names with settings."""

import re
from collections.abc import Iterable, Mapping, Sequence

from secretballot._validation import check_choice, name_part, shown
from secretballot.exceptions import ParameterError

#: Rows or columns a message names; it counts the rest.
NAMED_AT_MOST = 10
_INTEGER = re.compile(r"-?[0-9]{1,18}")
Setting = int | float | str


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


def named(
    parameter: str, text: object, known: Mapping[str, Sequence[str]]
) -> tuple[str, dict[str, Setting]]:
    """Return the name and the settings of ``NAME`` or ``NAME:key=value,...``.

    Parameters
    ----------
    parameter : str
        What the text is given for.
    text : str
    known : mapping of str to sequence of str
        The names that there are, and the settings that each of them has.

    Raises
    ------
    ParameterError
        If it is not written so, or the name or a setting is none of these.
    """
    head, _, rest = text.partition(":") if isinstance(text, str) else (text, "", "")
    name = check_choice(parameter, head, tuple(known))
    has = known[name]
    settings: dict[str, Setting] = {}
    for pair in filter(None, rest.split(",")):
        key, equals, value = (part.strip() for part in pair.partition("="))
        if not (equals and key and value) or key in settings:
            raise ParameterError(
                name_part(parameter),
                f" is {shown(text)}; write NAME:key=value,key=value, each key once.",
            )
        if key not in has:
            raise ParameterError(
                name_part(parameter),
                f" is {shown(text)}, and {name} has no setting {shown(key)}; it has"
                f" {', '.join(has) or 'none'}.",
            )
        settings[key] = _number_or_word(value)
    return name, settings


def _number_or_word(text: str) -> Setting:
    if _INTEGER.fullmatch(text):
        return int(text)
    try:
        return float(text)
    except ValueError:
        return text
