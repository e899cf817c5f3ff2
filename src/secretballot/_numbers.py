"""How people write numbers."""

import re

#: Numbers with a decimal comma; points may part the thousands.
_DECIMAL_COMMA = re.compile(r"[+-]?(?:\d*|\d{1,3}(?:\.\d{3})+),\d+(?:[eE][+-]?\d{1,3})?", re.ASCII)


def with_point(text: str) -> str:
    """Return a number with a decimal comma as one with a point, any other string as it is."""
    if _DECIMAL_COMMA.fullmatch(text.strip()) is None:
        return text
    return text.replace(".", "").replace(",", ".")
