"""Rows to Markdown."""

import math
from collections.abc import Iterable, Sequence

__all__ = ["as_figure", "markdown_table"]


def as_figure(value: float | None) -> str:
    """Return a number as a person would write it: 1,234; 1.2e+07; a dash for none."""
    if value is None or math.isnan(value):
        return "-"
    if abs(value) < 1e6 and value == int(value):
        return f"{int(value):,}"
    return f"{value:.3g}"


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
