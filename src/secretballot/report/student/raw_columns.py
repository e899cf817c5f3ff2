"""Raw columns of a table as ONNX: a stranger gives cells, and the graph encodes them as
`data.columns` does."""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from secretballot._times import DATE_PARTS, SECONDS_A_DAY
from secretballot._typing import FloatArray
from secretballot._validation import shown
from secretballot.exceptions import DataError
from secretballot.report.student.graph import DOUBLE, TEXT, Graph, Value
from secretballot.report.student.texts_graph import add_seconds, add_words, date_from_days

#: Numbers beyond this size count as missing, as in the package (`data.cells`).
LARGEST_NUMBER = 1e30
#: Words of one column of free text that a graph looks for, at most.
MOST_WORDS = 2000
_TRUTHS = ("False", "True")


@dataclass(frozen=True, eq=False)
class RawRows:
    """Public rows before and after their encoding, by which a graph is checked.

    Attributes
    ----------
    cells : mapping of str to sequence
        For each column that becomes a feature, what `input_type` says of it.
    X : ndarray of shape (n_rows, n_features)
        As the package encodes them.
    """

    cells: Mapping[str, Sequence[Any]]
    X: FloatArray


def input_type(column: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return type and width of the input for a column of a complete schema; None if it is no
    feature.

    Doubles, NaN where nothing is known: numbers; lengths of time in seconds; vectors; and a free
    text that is hashed, which no graph can do, as the package encodes it. Any other column is
    texts as they are in a file, "" where nothing is known.
    """
    match column.get("kind"):
        case "numeric" | "duration":
            return DOUBLE, 1
        case "categorical" | "boolean" | "date":
            return TEXT, 1
        case "text":
            hashed = column.get("encoding") == "hashed"
            return (DOUBLE, column["width"] + 1) if hashed else (TEXT, 1)
        case "vector":
            return DOUBLE, len(column["center"])
    return None


def encoded_width(column: Mapping[str, Any]) -> int:
    """Return how many encoded columns a column of a complete schema becomes."""
    match column.get("kind"):
        case "numeric" | "duration" | "date":
            return 1 + len(column.get("parts", ())) + bool(column.get("indicator"))
        case "boolean":
            return 1 + len(_TRUTHS)
        case "categorical" | "text":
            listed = column.get("categories", column.get("words", ()))
            return 1 + int(column.get("width", len(listed)))
        case "vector":
            return len(column.get("center", ()))
    return 0


def add_raw_columns(graph: Graph, schema: Mapping[str, Any]) -> Value:
    """Declare an input for each column of a schema, and return the encoded matrix.

    Parameters
    ----------
    graph : Graph
    schema : mapping
        Complete, as `Schema.to_json` writes it.

    Raises
    ------
    DataError
        If a column is beyond what a graph can do.
    """
    parts = []
    for name, column in schema["columns"].items():
        about = input_type(column)
        if about is None:
            continue
        parts += _ADDERS[column["kind"]](graph.input(name, *about), column)
    return graph.joined(parts)


def refuse_long_vocabularies(schema: Mapping[str, Any]) -> None:
    """Refuse free text with more words than a graph looks for.

    Raises
    ------
    DataError
        Naming the column.
    """
    for name, column in schema["columns"].items():
        if column["kind"] == "text" and len(column.get("words", ())) > MOST_WORDS:
            raise DataError(
                f"Column {shown(name)} lists {len(column['words']):,} words, and student.onnx looks"
                f" for at most {MOST_WORDS:,}; list fewer, or hash them ('encoding': 'hashed')."
            )


def _numbers(cells: Value, column: Mapping[str, Any]) -> list[Value]:
    """Add the median where nothing is known, centre and scale."""
    known = abs(cells) <= LARGEST_NUMBER
    number = known.where(cells, [[column["median"]]])
    parts = [_scaled(number, column["center"], column["scale"])]
    return [*parts, *([(~known).as_numbers()] if column["indicator"] else [])]


def _scaled(number: Value, center: Any, scale: float) -> Value:
    """Add a number that is centred, scaled and kept within bounds."""
    centred: Value = number - center
    return (centred / scale).clipped(-LARGEST_NUMBER, LARGEST_NUMBER)


def _vectors(cells: Value, column: Mapping[str, Any]) -> list[Value]:
    """Add vectors in single precision; the centre where one of the numbers is none."""
    beyond = (~(abs(cells) <= LARGEST_NUMBER)).as_numbers()
    known = beyond.sums().equals(0.0)
    vector = known.where(cells.in_single(), [column["center"]])
    return [_scaled(vector, column["center"], column["scale"])]


def _dates(cells: Value, column: Mapping[str, Any]) -> list[Value]:
    """Add days since the median, and parts of the date."""
    moment = datetime.datetime.fromisoformat(column["median"])
    median = (moment - datetime.datetime(1970, 1, 1)) // datetime.timedelta(seconds=1)
    read, absent = add_seconds(cells, column["format"])
    seconds = absent.where([[float(median)]], read)
    days = seconds / float(SECONDS_A_DAY)
    parts = [_scaled(days, median / SECONDS_A_DAY, column["scale"])]
    dates = date_from_days(seconds // float(SECONDS_A_DAY))
    found = dict(zip(("weekday", "month", "day"), dates, strict=True))
    found["hour"] = seconds % float(SECONDS_A_DAY) // 3600.0
    parts += [_scaled(found[part], *DATE_PARTS[part]) for part in column["parts"]]
    return [*parts, *([absent.as_numbers()] if column["indicator"] else [])]


def _texts(cells: Value, column: Mapping[str, Any]) -> list[Value]:
    """Add which words a free text has, weighted where they have weights, and whether it has
    none."""
    if column.get("encoding") == "hashed":
        return [cells]
    has = add_words(cells, column["words"])
    none = has.sums().equals(0.0).as_numbers()
    if "weights" in column:
        # in whole thousandths, as the package computes
        has *= np.rint(np.array(column["weights"]) / 0.001)
        has /= (has * has).sums().at_least(1.0).root()
    return [has, none]


def _categories(cells: Value, column: Mapping[str, Any]) -> list[Value]:
    """Add one column for each category, and the one of all others."""
    truths = column["kind"] == "boolean"
    categories = _TRUTHS if truths else column["categories"]
    spellings = _spellings_of_truths() if truths else _places_of_spellings(categories)
    place = cells.places_among(spellings, len(categories))
    each = cells.graph.integers([range(len(categories) + 1)])
    return [place.equals(each).as_numbers()]


_ADDERS = {
    "numeric": _numbers,
    "duration": _numbers,
    "categorical": _categories,
    "boolean": _categories,
    "date": _dates,
    "text": _texts,
    "vector": _vectors,
}


def _places_of_spellings(categories: Sequence[str]) -> dict[str, int]:
    """Return the place of each category, and of what the package reads as the same text.

    It takes space around a cell away, and 1.0 for 1. A graph cannot, so the commonest of these
    spellings are listed: one space before, and a decimal point with one zero.
    """
    places: dict[str, int] = {text: place for place, text in enumerate(categories)}
    for place, text in enumerate(categories):
        if text.lstrip("+-").isdigit():
            places.setdefault(f"{text}.0", place)
    for text, place in list(places.items()):
        places.setdefault(f" {text}", place)
    return places


def _spellings_of_truths() -> dict[str, int]:
    """Return the place of each truth value, as the package reads it; also with a space before."""
    return {
        f"{space}{spelling}": place
        for place, text in enumerate(_TRUTHS)
        for space in ("", " ")
        for spelling in (text, text.lower(), text.upper())
    }
