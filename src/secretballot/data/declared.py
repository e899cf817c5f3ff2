"""What a column is, as the user declares it in a schema; public cells say what is left open."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from secretballot._times import DATE_FORMATS, DATE_PARTS, time_seconds
from secretballot._validation import shown
from secretballot.data.cells import LARGEST_NUMBER, is_missing, numbers_of, texts_of, whole
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

#: What the schema may say of a free text: a width without a list of words, weights with one.
_PARTS_OF_TEXT = {
    "words": {"words", "width"},
    "tfidf": {"words", "width", "weights"},
    "hashed": {"bigrams", "width"},
}
_OF_ANY_TEXT = {"kind", "reason", "encoding"}.union(*_PARTS_OF_TEXT.values())
_KINDS = ("numeric", "categorical", "boolean", "date", "duration", "text", "vector", "ignored")


def declared_column(name: str, spec: object, public: pd.DataFrame | None) -> Column:
    """Build one column from its JSON, with public cells for what the JSON leaves open.

    Parameters
    ----------
    name : str
        Name of the column.
    spec : object
        "numeric", "categorical", "boolean", "date", "duration", "text", "vector", "ignored", a list
        of categories, or an object as `to_json` writes it.
    public : pandas.DataFrame or None
        Public table.

    Raises
    ------
    DataError
        If the JSON is no column, or leaves open what no public table is there to say.
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
    match spec["kind"]:
        case "ignored":
            return IgnoredColumn(name, str(spec.get("reason", "declared so")))
        case "boolean":
            return BooleanColumn(name)
        case "date":
            return _declared_date(name, spec, public)
        case "text":
            return _declared_text(name, spec, public)
        case "vector":
            return _declared_vector(name, spec, public)
        case "categorical":
            return _declared_categorical(name, spec, public)
    return _declared_numeric(name, spec, public)


def _declared_numeric(
    name: str, spec: Mapping[str, Any], public: pd.DataFrame | None
) -> NumericColumn:
    """Return a column of numbers or of lengths of time."""
    of_time = spec["kind"] == "duration"
    parts = {key: spec[key] for key in ("median", "center", "scale", "indicator") if key in spec}
    for key in ("median", "center", "scale"):
        _check_number(name, key, parts.get(key, 1))
    if not isinstance(parts.get("indicator", False), bool):
        raise DataError(
            f"The schema's indicator of column {shown(name)} is {shown(parts['indicator'])}; it"
            " must be true or false."
        )
    mark = spec.get("decimal", ".")
    if mark not in (".", ",") or (of_time and "decimal" in spec):
        raise DataError(
            f'The schema\'s decimal of column {shown(name)} is {shown(mark)}; it must be "." or'
            ' ",", of a numeric column.'
        )
    # what the schema leaves open comes from public rows alone; with all four given none is read
    if len(parts) < 4:
        cells = _public_cells(name, public)
        numbers = numbers_of(cells, decimal_comma=mark == ",")
        found = duration_column(name, cells) if of_time else numeric_column(name, numbers)
        if found is None:
            what = "a length of time" if of_time else "a number"
            raise DataError(
                f"No public row has {what} in column {shown(name)}; give its median and scale in"
                " the schema."
            )
        parts = {
            key: parts.get(key, getattr(found, key))
            for key in ("median", "center", "scale", "indicator")
        }
    kind = DurationColumn if of_time else NumericColumn
    return kind(
        name,
        float(parts["median"]),
        float(parts["center"]),
        float(parts["scale"]),
        bool(parts["indicator"]),
        mark == ",",
    )


def _check_number(name: str, key: str, number: object) -> None:
    usable = (
        isinstance(number, int | float)
        and not isinstance(number, bool)
        and abs(number) <= LARGEST_NUMBER
    )
    if not usable or (key == "scale" and not number > 0):  # type: ignore[operator]
        raise DataError(
            f"The schema's {key} of column {shown(name)} is {shown(number)}; it must be a"
            " number (scale: positive)."
        )


def _declared_date(name: str, spec: Mapping[str, Any], public: pd.DataFrame | None) -> DateColumn:
    style, parts = spec.get("format", "iso"), spec.get("parts")
    if style not in DATE_FORMATS:
        raise DataError(
            f"The schema's format of column {shown(name)} is {shown(style)}; it must be one of"
            f" {', '.join(DATE_FORMATS)}."
        )
    if parts is not None and not (
        isinstance(parts, list)
        and all(isinstance(part, str) and part in DATE_PARTS for part in parts)
        and len(set(parts)) == len(parts)
    ):
        raise DataError(
            f"The schema's parts of column {shown(name)} must be a list of"
            f" {', '.join(DATE_PARTS)}, each at most once."
        )
    _check_number(name, "scale", spec.get("scale", 1))
    median = None
    if "median" in spec:
        given = spec["median"]
        median = time_seconds(given) if isinstance(given, str) else None
        if median is None:
            raise DataError(
                f"The schema's median of column {shown(name)} is {shown(given)}; it must be a date"
                " such as 2020-02-29."
            )
    listed = None if parts is None else tuple(parts)
    # nothing is left open, so no public table is needed
    if median is not None and listed is not None and {"scale", "indicator"} <= {*spec}:
        return DateColumn(
            name, median, float(spec["scale"]), listed, bool(spec["indicator"]), style
        )
    found = date_column(name, _public_cells(name, public), style=style, parts=listed)
    if found is None:
        raise DataError(
            f"No public row has a date of format {style} in column {shown(name)}; give the format"
            " in the schema."
        )
    return DateColumn(
        name,
        found.median if median is None else median,
        float(spec.get("scale", found.scale)),
        found.parts,
        bool(spec.get("indicator", found.indicator)),
        style,
    )


def _declared_text(name: str, spec: Mapping[str, Any], public: pd.DataFrame | None) -> TextColumn:
    encoding = spec.get("encoding", TEXT_ENCODINGS[0])
    if encoding not in TEXT_ENCODINGS:
        raise DataError(
            f"The schema's encoding of column {shown(name)} is {shown(encoding)}; it must be one of"
            f" {', '.join(TEXT_ENCODINGS)}."
        )
    _check_parts_of_text(name, encoding, spec)
    if encoding == "hashed":
        if public is not None and name in public.columns:
            _refuse_numbers_alone(name, public[name])
        width = _width_of_text(name, spec, HASHED_PLACES)
        return HashedTextColumn(name, width, spec.get("bigrams", False))
    words = _declared_words(name, spec, public)
    if encoding == "words":
        return WordsColumn(name, words)
    weights = spec.get("weights")
    if weights is None:
        return weighted_column(name, words, _public_cells(name, public))
    return WeightedTextColumn(name, words, _checked_weights(name, words, weights))


def _check_parts_of_text(name: str, encoding: str, spec: Mapping[str, Any]) -> None:
    """Refuse what does not go with an encoding, rather than leave it unread."""
    strange = sorted(map(str, {*spec} - _OF_ANY_TEXT))
    if strange:
        raise DataError(
            f"The schema says {shown(strange[0])} of column {shown(name)}, which a text does not"
            f" have; it may say {', '.join(sorted(_OF_ANY_TEXT))}."
        )
    # listed words set the width, and weights belong to listed words
    known = _PARTS_OF_TEXT[encoding] - ({"width"} if "words" in spec else {"weights"})
    idle = sorted({"words", "weights", "bigrams", "width"} & {*spec} - known)
    if idle:
        listed = "with" if "words" in spec else "without"
        raise DataError(
            f"The schema's {idle[0]} of column {shown(name)} means nothing beside the encoding"
            f" {encoding} {listed} a list of words; leave it out."
        )
    if not isinstance(spec.get("bigrams", False), bool):
        raise DataError(
            f"The schema's bigrams of column {shown(name)} is {shown(spec['bigrams'])}; it must be"
            " true or false."
        )


def _width_of_text(name: str, spec: Mapping[str, Any], usual: int) -> int:
    width = spec.get("width", usual)
    whole_number = isinstance(width, int) and not isinstance(width, bool)
    if not whole_number or not 1 <= width <= MOST_TERMS:
        raise DataError(
            f"The schema's width of column {shown(name)} is {shown(width)}; it must be an integer"
            f" from 1 to {MOST_TERMS}."
        )
    return int(width)


def _refuse_numbers_alone(name: str, cells: "pd.Series[Any]") -> None:
    """Refuse public cells of a free text that are numbers alone."""
    numbers = np.isfinite(numbers_of(cells))
    if numbers.any() and int(numbers.sum()) == len(known_texts(cells)):
        raise DataError(
            f"Column {shown(name)} is declared text, and every public cell of it is a number;"
            " declare it numeric, categorical or ignored."
        )


def _declared_words(
    name: str, spec: Mapping[str, Any], public: pd.DataFrame | None
) -> tuple[str, ...]:
    """Return the vocabulary of a column, from the schema or from public cells."""
    listed = spec.get("words")
    if listed is None:
        cells = _public_cells(name, public)
        _refuse_numbers_alone(name, cells)
        found = text_column(name, cells, most=_width_of_text(name, spec, MOST_WORDS))
        if found is None:
            raise DataError(
                f"No word stands in two public cells of column {shown(name)} without standing in"
                " nearly all of them; list its words in the schema, or declare it hashed or"
                " ignored."
            )
        return found.words
    if (
        not isinstance(listed, list)
        or not 1 <= len(listed) <= MOST_TERMS
        or not all(isinstance(word, str) and is_word(folded(word)) for word in listed)
    ):
        raise DataError(
            f"The schema's words of column {shown(name)} must be a list of single words, letters"
            f" and digits alone, at least one and at most {MOST_TERMS}."
        )
    # folded as the words of cells are, so that they are found there
    return tuple(dict.fromkeys(map(folded, listed)))


def _checked_weights(name: str, words: tuple[str, ...], weights: object) -> tuple[float, ...]:
    usable = (
        isinstance(weights, list)
        and len(weights) == len(words)
        and all(
            isinstance(weight, int | float)
            and not isinstance(weight, bool)
            and WEIGHT_UNIT <= weight <= MOST_WEIGHT
            for weight in weights
        )
    )
    if not usable:
        raise DataError(
            f"The schema's weights of column {shown(name)} must be {len(words)} numbers, one for"
            f" each of its words (without regard to case), each from {WEIGHT_UNIT} to"
            f" {MOST_WEIGHT:g}."
        )
    assert isinstance(weights, list)
    return tuple(round(float(weight), 3) for weight in weights)


def _declared_vector(
    name: str, spec: Mapping[str, Any], public: pd.DataFrame | None
) -> VectorColumn:
    center, scale = spec.get("center"), spec.get("scale")
    if "center" in spec and (not isinstance(center, list) or not center):
        raise DataError(
            f"The schema's center of column {shown(name)} must be a list of numbers, one for each"
            " place of a vector."
        )
    for number in center or ():
        _check_number(name, "center", number)
    _check_number(name, "scale", 1 if scale is None else scale)
    # only what the schema leaves open is read off public cells
    if center is None or scale is None:
        found = vector_column(
            name, _public_cells(name, public), None if center is None else len(center)
        )
        if found is None:
            raise DataError(
                f"No public row has a vector in column {shown(name)}; give its center and scale in"
                " the schema."
            )
        center = found.center if center is None else center
        scale = found.scale if scale is None else scale
    return VectorColumn(name, tuple(map(float, center)), float(scale))


def _declared_categorical(
    name: str, spec: Mapping[str, Any], public: pd.DataFrame | None
) -> CategoricalColumn:
    listed = spec.get("categories")
    if listed is None:
        texts = texts_of(_public_cells(name, public))
        return CategoricalColumn(
            name, tuple(sorted({text for text in texts if not is_missing(text)}))
        )
    if not isinstance(listed, list) or not all(
        isinstance(entry, str | int | float | bool) for entry in listed
    ):
        raise DataError(
            f"The schema's categories of column {shown(name)} must be a list of strings or numbers."
        )
    categories = tuple(dict.fromkeys(whole(str(entry).strip()) for entry in listed))
    return CategoricalColumn(name, categories)


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
