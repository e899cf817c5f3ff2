"""What a column is, as the user declares it in a schema; public cells say what is left open."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd

from secretballot._times import DATE_FORMATS, DATE_PARTS, time_seconds
from secretballot._validation import shown
from secretballot.data.cells import LARGEST_NUMBER, numbers_of, whole
from secretballot.data.columns import (
    HASHED_PLACES,
    MOST_TERMS,
    MOST_WEIGHT,
    MOST_WORDS,
    TEXT_ENCODINGS,
    WEIGHT_UNIT,
    BooleanColumn,
    CategoricalColumn,
    Column,
    DateColumn,
    DurationColumn,
    HashedTextColumn,
    IgnoredColumn,
    NumericColumn,
    TextColumn,
    VectorColumn,
    WeightedTextColumn,
    WordsColumn,
    folded,
    is_word,
)
from secretballot.data.inferred import (
    date_column,
    duration_column,
    known_texts,
    numeric_column,
    text_column,
    vector_column,
    weighted_column,
)
from secretballot.exceptions import DataError

Fixed = TypeVar("Fixed", bound=Column)


class _Part(NamedTuple):
    """What a schema may say of a column under one key.

    Attributes
    ----------
    fits : callable
        Whether a value from JSON may be given.
    rule : str
        What it must be, for messages.
    read : callable
        Returns the value as columns have it.
    """

    fits: Callable[[Any], bool]
    rule: str
    read: Callable[[Any], Any]


def _is_number(value: Any, low: float = -LARGEST_NUMBER, high: float = LARGEST_NUMBER) -> bool:
    usable = isinstance(value, int | float) and not isinstance(value, bool)
    return usable and low <= value <= high


def _one_of(names: Collection[str]) -> _Part:
    return _Part(
        lambda value: isinstance(value, str) and value in names, f"one of {', '.join(names)}", str
    )


def _is_list(fits: Callable[[Any], bool], value: Any, least: int = 1) -> bool:
    return isinstance(value, list) and least <= len(value) and all(map(fits, value))


_NUMBER = _Part(_is_number, "a number", float)
_SCALE = _Part(lambda value: _is_number(value) and value > 0, "a positive number", float)
_TRUTH = _Part(lambda value: isinstance(value, bool), "true or false", bool)
_NUMBERS = {"median": _NUMBER, "center": _NUMBER, "scale": _SCALE, "indicator": _TRUTH}
_WIDTH = _Part(
    lambda value: isinstance(value, int) and _is_number(value, 1, MOST_TERMS),
    f"an integer from 1 to {MOST_TERMS}",
    int,
)
#: What the schema may say of a column of each kind, beside the kind and a reason.
_PARTS: dict[str, dict[str, _Part]] = {
    "numeric": {
        **_NUMBERS,
        "decimal": _one_of((".", ",")),
    },
    "duration": _NUMBERS,
    "date": {
        "format": _one_of(DATE_FORMATS),
        "median": _Part(
            lambda value: isinstance(value, str) and time_seconds(value) is not None,
            "a date such as 2020-02-29",
            time_seconds,
        ),
        "scale": _SCALE,
        "parts": _Part(
            lambda value: (
                _is_list(lambda part: isinstance(part, str) and part in DATE_PARTS, value, 0)
                and len(set(value)) == len(value)
            ),
            f"a list of {', '.join(DATE_PARTS)}, each at most once",
            tuple,
        ),
        "indicator": _TRUTH,
    },
    "vector": {
        "center": _Part(
            partial(_is_list, _is_number),
            "a list of numbers, one for each place of a vector",
            lambda value: tuple(map(float, value)),
        ),
        "scale": _SCALE,
    },
    "text": {
        "encoding": _one_of(TEXT_ENCODINGS),
        "width": _WIDTH,
        "bigrams": _TRUTH,
        "words": _Part(
            lambda value: (
                _is_list(lambda word: isinstance(word, str) and is_word(folded(word)), value)
                and len(value) <= MOST_TERMS
            ),
            f"a list of 1 to {MOST_TERMS} single words, letters and digits alone",
            # folded as the words of cells are, so that they are found there
            lambda value: tuple(dict.fromkeys(map(folded, value))),
        ),
        "weights": _Part(
            partial(_is_list, partial(_is_number, low=WEIGHT_UNIT, high=MOST_WEIGHT)),
            f"a list of numbers, each from {WEIGHT_UNIT} to {MOST_WEIGHT:g}",
            lambda value: tuple(round(float(weight), 3) for weight in value),
        ),
    },
    "categorical": {
        "categories": _Part(
            partial(_is_list, lambda value: isinstance(value, str | int | float | bool), least=0),
            "a list of strings or numbers",
            lambda value: tuple(dict.fromkeys(whole(str(entry).strip()) for entry in value)),
        )
    },
    "boolean": {},
    "ignored": {},
}
#: What a free text may have: a width without a list of words, weights with one.
_PARTS_OF_TEXT = {
    "words": {"words", "width"},
    "tfidf": {"words", "width", "weights"},
    "hashed": {"bigrams", "width"},
}
_KINDS = ("numeric", "categorical", "boolean", "date", "duration", "text", "vector", "ignored")


def declared_column(name: str, spec: object, public: pd.DataFrame | None) -> Column:
    """Build one column from its JSON, with public cells for what the JSON leaves open.

    Parameters
    ----------
    name : str
    spec : str, list or mapping
        As `Schema.from_json` takes it.
    public : DataFrame or None
        Public table for the parts left out.

    Raises
    ------
    DataError
        If `spec` is no column, or leaves open what no public table is there to say.
    """
    # short forms of the object that `to_json` writes
    if isinstance(spec, str):
        spec = {"kind": spec}
    elif isinstance(spec, list):
        spec = {"kind": "categorical", "categories": spec}
    if not isinstance(spec, Mapping) or spec.get("kind") not in _KINDS:
        raise DataError(
            f"The schema says nothing usable about column {shown(name)}; "
            f"say one of {', '.join(_KINDS)}, or list its categories."
        )
    kind, given = spec["kind"], _given_parts(name, spec)
    match kind:
        case "ignored":
            return IgnoredColumn(name, str(spec.get("reason", "declared so")))
        case "boolean":
            return BooleanColumn(name)
        case "text":
            return _declared_text(name, given, public)
        case "categorical":
            if not given:
                texts = set(known_texts(_public_cells(name, public)))
                given = {"categories": tuple(sorted(texts))}
            return CategoricalColumn(name, **given)
        case "vector":
            width = len(given["center"]) if "center" in given else None
            find: Callable[[Any], Column | None] = partial(vector_column, name, width=width)
            return _completed(VectorColumn, name, given, find, "a vector", public)
        case "date":
            given["style"] = given.pop("format", "iso")
            open_parts = {"style": given["style"], "parts": given.get("parts")}
            what = f"a date of format {given['style']}"
            find = partial(date_column, name, **open_parts)
            return _completed(DateColumn, name, given, find, what, public)
        case "duration":
            given["decimal_comma"] = False
            find = partial(duration_column, name)
            return _completed(DurationColumn, name, given, find, "a length of time", public)
    comma = given["decimal_comma"] = given.pop("decimal", ".") == ","
    return _completed(
        NumericColumn,
        name,
        given,
        lambda cells: numeric_column(name, numbers_of(cells, decimal_comma=comma)),
        "a number",
        public,
    )


def _given_parts(name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a schema says of a column, checked and as columns have it."""
    parts, given = _PARTS[spec["kind"]], {}
    for key in spec:
        if key in ("kind", "reason"):
            continue
        if key not in parts:
            known = ", ".join(sorted({"kind", "reason", *parts}))
            raise DataError(
                f"The schema says {shown(key)} of column {shown(name)}, which a {spec['kind']}"
                f" column does not have; it may say {known}."
            )
        if not parts[key].fits(spec[key]):
            raise DataError(
                f"The schema's {key} of column {shown(name)} is {shown(spec[key])}; it must be"
                f" {parts[key].rule}."
            )
        given[key] = parts[key].read(spec[key])
    return given


def _completed(
    kind: type[Fixed],
    name: str,
    given: Mapping[str, Any],
    find: Callable[["pd.Series[Any]"], Any],
    what: str,
    public: pd.DataFrame | None,
) -> Fixed:
    """Return a column by its declared parts; public cells are read for those left open alone."""
    if {part.name for part in fields(kind)} <= {"name", *given}:
        return kind(name, **given)
    found: Fixed | None = find(_public_cells(name, public))
    if found is None:
        raise DataError(
            f"No public row has {what} in column {shown(name)}; give all of its parts in the"
            " schema."
        )
    return replace(found, **given)


def _declared_text(name: str, given: dict[str, Any], public: pd.DataFrame | None) -> TextColumn:
    encoding = given.pop("encoding", TEXT_ENCODINGS[0])
    # listed words set the width, and weights belong to listed words
    known = _PARTS_OF_TEXT[encoding] - ({"width"} if "words" in given else {"weights"})
    idle = sorted({*given} - known)
    if idle:
        listed = "with" if "words" in given else "without"
        raise DataError(
            f"The schema's {idle[0]} of column {shown(name)} means nothing beside the encoding"
            f" {encoding} {listed} a list of words; leave it out."
        )
    if encoding == "hashed":
        if public is not None and name in public.columns:
            _refuse_numbers_alone(name, public[name])
        return HashedTextColumn(name, **{"width": HASHED_PLACES, **given})
    words = given.get("words") or _public_words(name, given.get("width", MOST_WORDS), public)
    if encoding == "words":
        return WordsColumn(name, words)
    weights = given.get("weights")
    if weights is None:
        return weighted_column(name, words, _public_cells(name, public))
    if len(weights) != len(words):
        raise DataError(
            f"The schema's weights of column {shown(name)} must be {len(words)} numbers, one for"
            " each of its words (without regard to case)."
        )
    return WeightedTextColumn(name, words, weights)


def _refuse_numbers_alone(name: str, cells: "pd.Series[Any]") -> None:
    """Refuse public cells of a free text that are numbers alone."""
    numbers = np.isfinite(numbers_of(cells))
    if numbers.any() and int(numbers.sum()) == len(known_texts(cells)):
        raise DataError(
            f"Column {shown(name)} is declared text, and every public cell of it is a number;"
            " declare it numeric, categorical or ignored."
        )


def _public_words(name: str, most: int, public: pd.DataFrame | None) -> tuple[str, ...]:
    """Return the vocabulary of a column from public cells."""
    cells = _public_cells(name, public)
    _refuse_numbers_alone(name, cells)
    found = text_column(name, cells, most=most)
    if found is None:
        raise DataError(
            f"No word stands in two public cells of column {shown(name)} without standing in"
            " nearly all of them; list its words in the schema, or declare it hashed or"
            " ignored."
        )
    return found.words


def _public_cells(name: str, public: pd.DataFrame | None) -> "pd.Series[Any]":
    if public is None:
        raise DataError(
            f"The schema leaves column {shown(name)} open and there is no public table to say the"
            " rest."
        )
    if name not in public.columns:
        raise DataError(
            f"The schema has a column {shown(name)} that the public file lacks; add it or declare"
            " it ignored."
        )
    return public[name]
