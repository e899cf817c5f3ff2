"""Numbers and names as a reader without mathematics reads them."""

import math
from collections.abc import Mapping, Sequence

from secretballot._validation import without_controls

_MOST_DIGITS = 9


def shown(text: object) -> str:
    """Return text with invisible and control characters written out: nothing hides in a name."""
    return without_controls(str(text))


def number_text(value: float) -> str:
    """Return a number with up to six digits; whole ones with thousands apart."""
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:.6g}".replace("e-0", "e-").replace("e+0", "e+")


def count_text(count: int, noun: str) -> str:
    """Return a count with its noun, in the plural where it must be."""
    irregular = {"query": "queries", "class": "classes", "canary": "canaries"}
    *before, last = noun.split(" ")
    plural = " ".join([*before, irregular.get(last, last + "s")])
    return f"{count:,} {noun if count == 1 else plural}"


def one_in(probability: float) -> str:
    """Return a small probability as "one in so many"; 0 as "never"."""
    return f"one in {round(1 / probability):,}" if probability > 0 else "never"


def at_most_text(value: float, digits: int = 3) -> str:
    """Return a positive number with so many digits, rounded up: it follows "at most"."""
    exponent = math.floor(math.log10(value)) if value > 0 else 0
    places = digits - 1 - exponent
    # a float may be a little above the number that it means
    raised = math.ceil(value * 10.0**places * (1 - 1e-12)) / 10.0**places
    return f"{raised:.{max(0, places)}f}" if raised < 1e6 else f"{raised:.1e}"


def percent_text(percent: float) -> str:
    """Return a share in percent with three digits, rounded up, or as many as tell it from the
    whole: 99.99938 is not written as 100."""
    digits = 3
    while percent < 100 and float(at_most_text(percent, digits)) >= 100 and digits < _MOST_DIGITS:
        digits += 1
    text = at_most_text(percent, digits)
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} %"


def value_text(value: object, key: str = "") -> str:
    """Return a public setting in words, by its name where that matters: objects as names and
    values, an object inside another one in brackets, lists by commas, places of what is true."""
    if key == "start" and isinstance(value, Mapping):
        value = value["certificate"]
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return number_text(value)
    if isinstance(value, Mapping):
        return ", ".join(
            f"{shown(name)} ".replace("_", " ")
            + (f"({value_text(one)})" if isinstance(one, Mapping) else value_text(one, str(name)))
            for name, one in value.items()
            if name != "kind" and one is not None
        )
    if not isinstance(value, list):
        return shown(value)
    if value and all(isinstance(one, bool) for one in value):
        return places_text(value)
    return ", ".join(map(value_text, value))


def places_text(flags: Sequence[bool]) -> str:
    """Return the places, from 1, of what is true."""
    return ", ".join(str(place) for place, one in enumerate(flags, 1) if one) or "none"
