"""Raw columns of a table as ONNX: a stranger gives cells, and the graph encodes them as
`data.columns` does."""

import datetime
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from secretballot._typing import FloatArray, JsonView
from secretballot._validation import shown
from secretballot._written import DATE_PARTS, DAYS, MONTHS, SECONDS_A_DAY, TIME
from secretballot.exceptions import DataError
from secretballot.report.student_graph import DOUBLE, MISSING_TEXTS, TEXT, Graph, Value

#: Numbers beyond this size count as missing, as in the package (`data.cells`).
_LARGEST_NUMBER = 1e30
#: Words of one column of free text that a graph looks for, at most.
_MOST_WORDS = 2000
_TRUTHS = ("False", "True")


@dataclass(frozen=True, eq=False)
class RawRows:
    """Public rows before and after their encoding, by which a graph is checked.

    Attributes
    ----------
    cells : DataFrame of texts, shape (n_rows, n_columns)
        Of the columns that become features.
    X : ndarray of shape (n_rows, n_features)
        As the package encodes them.
    columns : sequence of n_features str
        Name of the raw column that each encoded one is of.
    """

    cells: Any
    X: FloatArray
    columns: Sequence[str] = ()


def can_encode(schema: JsonView | None) -> bool:
    """Return whether there is a complete schema whose columns a graph encodes: it hashes no
    words."""
    columns = {} if schema is None else schema["columns"]
    return bool(columns) and all(one.get("encoding") != "hashed" for one in columns.values())


def add_raw_columns(graph: Graph, schema: JsonView) -> Value:
    """Declare an input for each column of a schema, and return the encoded matrix.

    Numbers and vectors are doubles, NaN where nothing is known; all else is texts as they are in a
    file, "" where nothing is known.

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
        if (kind := column["kind"]) in _ADDERS:
            width = len(column["center"]) if kind == "vector" else 1
            held = DOUBLE if kind in ("numeric", "vector") else TEXT
            parts += _ADDERS[kind](graph.input(name, held, width), column)
    return graph.joined(parts)


def refuse_long_vocabularies(schema: JsonView) -> None:
    """Refuse free text with more words than a graph looks for.

    Raises
    ------
    DataError
        Naming the column.
    """
    for name, column in schema["columns"].items():
        if column["kind"] == "text" and len(column.get("words", ())) > _MOST_WORDS:
            raise DataError(
                f"Column {shown(name)} lists {len(column['words']):,} words, and student.onnx looks"
                f" for at most {_MOST_WORDS:,}; list fewer, or hash them ('encoding': 'hashed')."
            )


def _numbers(cells: Value, column: JsonView) -> list[Value]:
    """Add the median where nothing is known, centre and scale."""
    known = abs(cells) <= _LARGEST_NUMBER
    number = known.where(cells, [[column["median"]]])
    parts = [_scaled(number, column["center"], column["scale"])]
    return [*parts, *([(~known).as_numbers()] if column["indicator"] else [])]


def _scaled(number: Value, center: Any, scale: float) -> Value:
    """Add a number that is centred, scaled and kept within bounds."""
    centred: Value = number - center
    return (centred / scale).clipped(-_LARGEST_NUMBER, _LARGEST_NUMBER)


def _vectors(cells: Value, column: JsonView) -> list[Value]:
    """Add vectors in single precision; the centre where one of the numbers is none."""
    beyond = (~(abs(cells) <= _LARGEST_NUMBER)).as_numbers()
    known = beyond.sums().equals(0.0)
    vector = known.where(cells.in_single(), [column["center"]])
    return [_scaled(vector, column["center"], column["scale"])]


def _dates(cells: Value, column: JsonView) -> list[Value]:
    """Add days since the median, and parts of the date."""
    moment = datetime.datetime.fromisoformat(column["median"])
    median = (moment - datetime.datetime(1970, 1, 1)) // datetime.timedelta(seconds=1)
    read, absent = _add_seconds(cells, column["format"])
    seconds = absent.where([[float(median)]], read)
    days = seconds / float(SECONDS_A_DAY)
    parts = [_scaled(days, median / SECONDS_A_DAY, column["scale"])]
    dates = _date_from_days(seconds // float(SECONDS_A_DAY))
    found = dict(zip(("weekday", "month", "day"), dates, strict=True))
    found["hour"] = seconds % float(SECONDS_A_DAY) // 3600.0
    parts += [_scaled(found[part], *DATE_PARTS[part]) for part in column["parts"]]
    return [*parts, *([absent.as_numbers()] if column["indicator"] else [])]


def _texts(cells: Value, column: JsonView) -> list[Value]:
    """Add which words a free text has, and whether it has none."""
    has = _add_words(cells, column["words"])
    none = has.sums().equals(0.0).as_numbers()
    return [has, none]


def _categories(cells: Value, column: JsonView) -> list[Value]:
    """Add one column for each category, and the one of all others."""
    truths = column["kind"] == "boolean"
    categories = _TRUTHS if truths else column["categories"]
    spellings = _places_of_spellings(categories, truths=truths)
    place = cells.places_among(spellings, len(categories))
    each = cells.graph.integers([range(len(categories) + 1)])
    return [place.equals(each).as_numbers()]


_ADDERS = {
    "numeric": _numbers,
    "categorical": _categories,
    "boolean": _categories,
    "date": _dates,
    "text": _texts,
    "vector": _vectors,
}


def _places_of_spellings(categories: Sequence[str], *, truths: bool) -> dict[str, int]:
    """Return the place of each category, and of what the package reads as the same text.

    It takes space around a cell away, and 1.0 for 1. A graph cannot, so the commonest of these
    spellings are listed: one space before, and a decimal point with one zero.
    """
    places: dict[str, int] = {text: place for place, text in enumerate(categories)}
    for place, text in enumerate(categories):
        if text.lstrip("+-").isdigit():
            places.setdefault(f"{text}.0", place)
        if truths:
            places |= dict.fromkeys((text.lower(), text.upper()), place)
    for text, place in list(places.items()):
        places.setdefault(f" {text}", place)
    return places


# --- dates and words, by the regular expressions of ONNX ---

_NEVER = r"[^\s\S]"
_GAPS = ("-", "/", r"\.")
_GROUP = re.compile(r"\(\?P<(\w+)>([^()]*)\)")
#: What parts of a date are there, so that it is one.
_VALID = {
    "month": "0?[1-9]|1[0-2]",
    "only_month": "0[1-9]|1[0-2]",
    "name": "|".join(MONTHS[1:]),
    "day": r"0?[1-9]|[12]\d|3[01]",
    "hour": r"[01]?\d|2[0-3]",
    **dict.fromkeys(("minute", "second", "zone_minute", "zone_second"), r"[0-5]\d"),
    "zone_hour": r"[01]\d|2[0-3]",
}


def _date_pattern(style: str, parts: Mapping[str, str]) -> str:
    """Return a pattern of RE2 for dates in ISO 8601 or a style, with some parts as given."""
    # RE2 knows no references to earlier groups, so each gap is written out
    days = [
        DAYS[name].replace("(?P<gap>[-/.])", gap).replace("(?P=gap)", gap)
        for name in dict.fromkeys(("iso", style))
        for gap in (_GAPS if "gap" in DAYS[name] else ("",))
    ]
    whole = rf"\s*(?:{'|'.join(days)}){TIME}\s*"
    return _GROUP.sub(lambda found: f"(?:{parts.get(found[1], found[2])})", whole)


def _two_digits(first: int) -> list[tuple[int, str]]:
    tens = [(10 * digit, rf"{digit}\d") for digit in range(1, first + 1)]
    return [*tens, *((digit, rf"\d{digit}") for digit in range(1, 10))]


def _after_one(last: int) -> list[tuple[int, str]]:
    """Return a pattern for each number beyond 1, as what it is more than 1."""
    return [
        (number - 1, f"0?{number}" if number < 10 else str(number)) for number in range(2, last + 1)
    ]


#: For each part of a date, texts that each add so much to its number.
_DIGITS: dict[str, list[tuple[int, str]]] = {
    "year": [
        (digit * 10 ** (3 - place), rf"\d{{{place}}}{digit}\d{{{3 - place}}}")
        for place in range(4)
        for digit in range(1, 10)
    ],
    "month": _after_one(12),
    "day": _after_one(31),
    "hour": [(hour, f"0?{hour}" if hour < 10 else str(hour)) for hour in range(1, 24)],
    "minute": _two_digits(5),
    "second": _two_digits(5),
    "half": [(1, "[Aa]"), (2, "[Pp]")],
    "sign": [(1, "-")],
    "zone_hour": _two_digits(2),
    "zone_minute": _two_digits(5),
    "zone_second": _two_digits(5),
}
_FIRST_OF = ("month", "day")  # which are counted from 1


def _add_seconds(texts: Value, style: str) -> tuple[Value, Value]:
    """Add points in time as `_times.time_seconds` reads them: seconds since 1970, and whether a
    text says none.

    Parameters
    ----------
    texts : Value
        Of shape (n, 1).
    style : str
        As for `time_seconds`.
    """
    graph, truths, weights = texts.graph, [], []
    for place, (name, digits) in enumerate(_DIGITS.items()):
        # where the part is left out, every text matches: taken away by one that matches then alone
        never = -sum(amount for amount, _ in digits)
        for amount, pattern in [*digits, (never, _NEVER)]:
            parts = {name: pattern}
            if name == "month":
                parts["only_month"] = pattern.replace("0?", "0")
                parts["name"] = MONTHS[max(0, amount + 1)]
            truths.append(texts.matches(_date_pattern(style, parts)))
            weights.append(amount * np.eye(len(_DIGITS))[place])
    numbers = graph.joined(truths).as_numbers() @ np.array(weights)
    numbers += [[float(name in _FIRST_OF) for name in _DIGITS]]
    of = {name: numbers.columns([place]) for place, name in enumerate(_DIGITS)}
    days = _days_from_date(of["year"], of["month"], of["day"])
    half = of["half"] > 0.0
    hour = half.where(of["hour"] % 12.0 + of["half"] // 2.0 * 12.0, of["hour"])
    clock = _clock_seconds(hour, of["minute"], of["second"])
    offset = _clock_seconds(of["zone_hour"], of["zone_minute"], of["zone_second"])
    seconds = days * float(SECONDS_A_DAY) + clock + offset * (of["sign"] * 2.0 + -1.0)
    of_clock = of["hour"].clipped(1.0, 12.0).equals(of["hour"])
    absent = ~texts.matches(_date_pattern(style, _VALID))
    absent |= ~_date_from_days(days)[2].equals(of["day"])
    absent |= (of["year"] < 1.0) | (half & ~of_clock)
    return seconds, absent


def _clock_seconds(hours: Value, minutes: Value, seconds: Value) -> Value:
    return hours * 3600.0 + minutes * 60.0 + seconds


def _days_from_date(year: Value, month: Value, day: Value) -> Value:
    """Add days since 1970-01-01.

    Years of the Gregorian calendar are counted from 1 March, so that a leap day is the last of its
    year, and repeat after 146,097 days (400 years); Fliegel and Van Flandern 1968, Communications
    of the ACM 11(10), in the form of Howard Hinnant's "chrono-Compatible Low-Level Date
    Algorithms".
    """
    early = (month < 3.0).as_numbers()
    year -= early
    of_march = month - 3.0 + early * 12.0
    of_year = (of_march * 153.0 + 2.0) // 5.0 + day - 1.0
    leaps = year // 4.0 - year // 100.0 + year // 400.0
    return year * 365.0 + leaps + of_year - 719468.0


def _date_from_days(days: Value) -> tuple[Value, Value, Value]:
    """Add the weekday from Monday as 0, the month and the day of the month of days since
    1970-01-01; as in `_days_from_date`."""
    of_era = (days + 719468.0) % 146097.0
    corrected = of_era - of_era // 1460.0 + of_era // 36524.0 - of_era // 146096.0
    year = corrected // 365.0
    of_year = of_era - (year * 365.0 + year // 4.0 - year // 100.0)
    month = (of_year * 5.0 + 2.0) // 153.0  # 0 is March
    day = of_year - (month * 153.0 + 2.0) // 5.0 + 1.0
    return (days + 3.0) % 7.0, (month + 2.0) % 12.0 + 1.0, day


def _add_words(texts: Value, words: Sequence[str]) -> Value:
    """Add which words a free text has, 0 or 1 of shape (n, n_words); none where it says nothing."""
    said = ~texts.matches(MISSING_TEXTS)
    found = [texts.matches(_word_pattern(word)) for word in words]
    return (texts.graph.joined(found) & said).as_numbers()


def _word_pattern(word: str) -> str:
    """Return a pattern of RE2 for texts with this word, as `data.columns` finds it."""
    spelt = "".join(_spellings(word)).replace("ss", "(?:ss|ß)")
    edge = r"[^\p{L}\p{N}\p{M}]"
    return f"(?is)(?:.*{edge})?{spelt}(?:{edge}.*)?"


def _spellings(word: str) -> Iterator[str]:
    """Yield a pattern for each letter of a word; those with an accent may be two characters."""
    for letter in word:
        apart = unicodedata.normalize("NFD", letter)
        yield letter if apart == letter else f"(?:{letter}|{apart})"
