"""The templates of a release: sentences, the page, and the texts beside it.

Class names, purposes and names of columns are a stranger's text. The page escapes all of it, and
the sentences that it shows come to it as plain text; in the texts `plain` and `code` keep it from
being markup.
"""

import functools
import re
import textwrap
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import jinja2

from secretballot.accounting import CHANCE_BITS
from secretballot.report.certificate.plan_checks import stands_alone, total_price
from secretballot.report.release.facts import Facts
from secretballot.report.wording import (
    count_text,
    number_text,
    one_in,
    percent_text,
    posterior_percent,
    shown,
    unit_noun,
    value_text,
)

_WIDTH = 96  # characters of a line of README.txt
_MOST_NAMES = 12  # of labels, in a sentence
_HERE = files("secretballot.report.release")


def _names(names: list[Any]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(map(shown, names[:_MOST_NAMES])) + (f" and {more} more" if more > 0 else "")


def _without_markup(text: object) -> str:
    """Return text in which nothing is markup."""
    return "".join(f"\\{char}" if char in "\\`*_{}[]<>#|!" else char for char in shown(text))


def _moment(issued: str) -> str:
    """Return a time as people write it; anything unusual as it is."""
    day, _, time = issued.partition("T")
    return f"{day} {time[:5]} UTC" if time.endswith("+00:00") else shown(issued)


def _fill(text: str, indent: str = "") -> str:
    """Return lines of a width that everybody can read."""
    return textwrap.fill(
        " ".join(text.split()), _WIDTH, initial_indent=indent, subsequent_indent=indent
    )


def _places(flags: list[bool]) -> str:
    """Return the places, from 1, of what is true."""
    return ", ".join(str(place) for place, one in enumerate(flags, 1) if one) or "none"


def _event_text(event: Mapping[str, Any]) -> str:
    """Return an event's parameters in words, those of an event inside in brackets."""
    return ", ".join(
        f"{key.replace('_', ' ')} "
        + (f"({_event_text(value)})" if isinstance(value, Mapping) else _parameter(key, value))
        for key, value in event.items()
        if key != "kind" and value is not None
    )


def _parameter(key: str, value: Any) -> str:
    """Return a public setting in words; long tables are in the certificate."""
    if key == "weights":
        first, last = (number_text(weight / 2**CHANCE_BITS) for weight in (value[0], value[-1]))
        return f"{count_text(len(value), 'chance')}, from {first} down to {last}"
    if isinstance(value, list) and all(isinstance(one, bool) for one in value):
        return _places(value)
    return value_text(value["certificate"] if key == "start" else value)


@functools.cache
def _parameters() -> dict[str, dict[str, list[str]]]:
    return tomllib.loads(_HERE.joinpath("parameters.toml").read_text("utf-8"))


def parameters_of(facts: Facts) -> list[tuple[str, str]]:
    """Return the parameters of the mechanism that `parameters.toml` has words for."""
    words, terms = _parameters().get(facts.kind, _parameters()["votes"]), facts.terms
    return [
        (name, " ".join([_parameter(key, terms[key]), *unit]))
        for key, (name, *unit) in words.items()
        # a table of abstentions has up to thousands of weights, written as one text
        if terms.get(key) is not None and not (key == "weights" and isinstance(terms[key], str))
    ]


def _environment(*, of_page: bool) -> jinja2.Environment:
    environment = jinja2.Environment(
        autoescape=of_page,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "number": number_text,
        "shown": shown,
        "count": count_text,
        "noun": unit_noun,
        "one_in": one_in,
        "posterior": lambda epsilon: percent_text(posterior_percent(epsilon)),
        "short": lambda value, digits=4: number_text(float(f"{value:.{digits}g}")),
        "share": lambda share: "-" if share is None else f"{share:.3f}",
        "names": _names,
        "places": _places,
        "plain": _without_markup,
        "code": lambda text: shown(text).replace("`", "'").replace("|", "\\|"),
        "fill": _fill,
        "moment": _moment,
        "value": value_text,
        "event_text": _event_text,
    }
    environment.globals |= {
        "total_price": total_price,
        "stands_alone": stands_alone,
        "parameters": parameters_of,
        "say": say,
        "sentences": sentences,
    }
    return environment


@functools.cache
def template(name: str) -> jinja2.Template:
    """Return a template by its file's name; one of a page escapes all that it is given."""
    environment = _environment(of_page=name.endswith(".html.j2"))
    return environment.from_string(_HERE.joinpath(name).read_text("utf-8"))


def sentences(name: str, *values: Any) -> list[str]:
    """Return the sentences of a macro of `words.txt.j2`, paragraph by paragraph, as plain text."""
    text = str(getattr(template("words.txt.j2").module, name)(*values))
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n", text) if part.strip()]


def say(name: str, *values: Any) -> str:
    """Return the sentences of a macro of `words.txt.j2` as one paragraph of plain text."""
    return " ".join(sentences(name, *values))


def text_of(name: str, **values: Any) -> str:
    """Return a text beside the page."""
    text = template(name).render(**values)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"
