"""Texts that verbs print: the macros of `texts.txt.j2`, line by line."""

import functools
import re
import shutil
import sys
import textwrap
from importlib.resources import files
from typing import Any

import jinja2
from markupsafe import Markup

from secretballot._validation import without_controls
from secretballot.cli.outcome import say

#: The name before what a line says of it.
_LABEL = re.compile(r"\S+(?: \S+)* {2,}")


def _on_one_line(value: Any) -> Any:
    """Return a value for a text: a name from anybody's file begins no line of its own."""
    plain = not isinstance(value, str) or isinstance(value, Markup)
    return value if plain else without_controls(value)


@functools.cache
def _texts() -> Any:
    from secretballot.report.certificate.models import total_price

    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_on_one_line,
    )
    environment.filters |= {
        "g": lambda number, digits=6: number if number == "-" else f"{number:.{digits}g}",
        "fixed": lambda number, digits=3: "-" if number is None else f"{number:.{digits}f}",
        "interval": lambda one, form: f"{one.low:{form}} to {one.high:{form}}",
        "signed": lambda number: f"{number:+.4f}",
        "count": lambda number: f"{number:,}",
        "amount": lambda number: f"{number:,}" if number not in (None, 0, "-") else "-",
        # to the right, or to the left of a negative width
        "cell": lambda value, width: f"{value!s:{'<' if width < 0 else '>'}{abs(width)}}",
        "repr": repr,
        "lines": Markup,  # of a macro, whose own values were made harmless
    }
    environment.filters["price"] = lambda one: "{:g}, {:g}".format(*total_price(one))
    environment.globals["zip"] = zip
    text = files("secretballot.cli").joinpath("texts.txt.j2").read_text("utf-8")
    return environment.from_string(text).module


def show(name: str, *facts: Any) -> None:
    """Print a text; on a terminal its lines are wrapped beside their labels, but for commands."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    for line in str(getattr(_texts(), name)(*facts)).splitlines():
        label = _LABEL.match(line)
        lines = [line.rstrip()]
        if label is not None and 0 < width < len(line) and "secretballot " not in line:
            # a path, or a key, stays whole
            how: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
            lines = textwrap.wrap(line, width, subsequent_indent=" " * label.end(), **how)
        for one in lines:
            say(one)
