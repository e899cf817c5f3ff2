"""Numbers, dates and points in time, read from one text at a time.

A typed cell of a Parquet file and the text that a CSV file has for it become one text before they
come here (`data.cells.texts_of`), so both give one number.
"""

import datetime
import re
from typing import Literal, get_args

#: Numbers with a decimal comma; points may part the thousands.
_DECIMAL_COMMA = re.compile(r"[+-]?(?:\d*|\d{1,3}(?:\.\d{3})+),\d+(?:[eE][+-]?\d{1,3})?", re.ASCII)


def with_point(text: str) -> str:
    """Return a number with a decimal comma as one with a point, any other string as it is."""
    if _DECIMAL_COMMA.fullmatch(text.strip()) is None:
        return text
    return text.replace(".", "").replace(",", ".")


#: How days are written where it is not as in ISO 8601, which is always read.
DateFormat = Literal["iso", "day-first", "month-first", "day-name", "name-day", "compact"]
DATE_FORMATS: tuple[str, ...] = get_args(DateFormat)
SECONDS_A_DAY = 86400
#: What a date has beside how many days it lies from another: the name of the part, the middle of
#: its values, and their deviation were all of them alike frequent.
DATE_PARTS: dict[str, tuple[float, float]] = {
    "month": (6.5, 3.5),
    "day": (16.0, 9.0),
    "weekday": (3.0, 2.0),
    "hour": (11.5, 7.0),
}

#: How each month may be called, in English and in German, by its number.
MONTHS = (
    "",
    "Jan|January|Januar|JAN",
    "Feb|February|Februar|FEB",
    "Mar|March|Mär|März|Mrz|MAR",
    "Apr|April|APR",
    "May|Mai|MAY|MAI",
    "Jun|June|Juni|JUN",
    "Jul|July|Juli|JUL",
    "Aug|August|AUG",
    "Sep|Sept|September|SEP",
    "Oct|October|Okt|Oktober|OCT|OKT",
    "Nov|November|NOV",
    "Dec|December|Dez|Dezember|DEC|DEZ",
)
_MONTH_OF = {name: month for month, names in enumerate(MONTHS) for name in names.split("|")}

_EPOCH = datetime.date(1970, 1, 1).toordinal()
_FIRST = (datetime.date.min.toordinal() - _EPOCH) * SECONDS_A_DAY
_LAST = (datetime.date.max.toordinal() - _EPOCH + 1) * SECONDS_A_DAY - 1
_CLOCK = (
    r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,]\d{1,9})?)?"
    r"(?:\s?(?P<half>[AaPp])\.?[Mm]\.?)?"
)
_ZONE = (
    r"(?:\s?(?:[Zz]|UTC|GMT)|\s?(?P<sign>[+-])(?P<zone_hour>\d{2})(?::?(?P<zone_minute>\d{2})"
    r"(?::(?P<zone_second>\d{2}))?)?)?"  # seconds: local mean time, before there were zones
)
TIME = rf"(?:(?:[Tt]|\s+){_CLOCK}{_ZONE})?"
DAYS = {
    "iso": r"(?P<year>\d{4})(?:(?P<gap>[-/.])(?P<month>\d{1,2})(?P=gap)(?P<day>\d{1,2})"
    r"|-(?P<only_month>\d{2}))",
    "day-first": r"(?P<day>\d{1,2})(?P<gap>[-/.])(?P<month>\d{1,2})(?P=gap)(?P<year>\d{4})",
    "month-first": r"(?P<month>\d{1,2})(?P<gap>[-/.])(?P<day>\d{1,2})(?P=gap)(?P<year>\d{4})",
    "day-name": r"(?P<day>\d{1,2})\.?[- ]?(?P<name>[A-Za-zä]+)\.?[- ]?(?P<year>\d{4})",
    "name-day": r"(?P<name>[A-Za-zä]+)\.?[- ](?P<day>\d{1,2}),?[- ](?P<year>\d{4})",
    "compact": r"(?P<year>\d{4})(?P<month>\d{2})(?P<day>\d{2})",
}
# only the digits 0 to 9, as in every program that writes dates
_POINTS = {name: re.compile(days + TIME, re.ASCII) for name, days in DAYS.items()}


def time_seconds(text: str, style: str = "iso") -> int | None:
    """Return the point in time that a text says, in seconds since 1970-01-01 00:00.

    Parameters
    ----------
    text : str
        A day, with a time of day or without, as in ISO 8601 or in the given style. Fractions of a
        second are cut off; a time with an offset from UTC is taken to UTC, any other as it is.
    style : str
        One of `DATE_FORMATS`.

    Returns
    -------
    int or None
        None where the text says no day of the years 1 to 9999.
    """
    for name in dict.fromkeys(("iso", style)):
        found = _POINTS[name].fullmatch(text)
        if found is not None:
            return _seconds_of(found)
    return None


def _seconds_of(found: re.Match[str]) -> int | None:
    parts = found.groupdict()
    month = parts.get("month") or parts.get("only_month") or _MONTH_OF.get(parts.get("name", ""), 0)
    try:
        day = datetime.date(int(parts["year"]), int(month), int(parts["day"] or 1))
    except ValueError:  # no such day
        return None
    clock = _clock_seconds(found)
    if clock is None:
        return None
    offset = 0
    if parts["sign"]:
        hours, minutes, rest = (
            int(parts[name] or 0) for name in ("zone_hour", "zone_minute", "zone_second")
        )
        if hours > 23 or minutes > 59 or rest > 59:
            return None
        offset = (3600 * hours + 60 * minutes + rest) * (-1 if parts["sign"] == "-" else 1)
    seconds = (day.toordinal() - _EPOCH) * SECONDS_A_DAY + clock - offset
    return seconds if _FIRST <= seconds <= _LAST else None


def _clock_seconds(found: re.Match[str]) -> int | None:
    """Return the seconds since midnight, 0 where no time is given, None for none there is."""
    parts = found.groupdict()
    if parts["hour"] is None:
        return 0
    hour, minute, second = (int(parts[name] or 0) for name in ("hour", "minute", "second"))
    if parts["half"]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if parts["half"] in "Pp" else 0)
    if hour > 23 or minute > 59 or second > 59:
        return None
    return 3600 * hour + 60 * minute + second


def iso_text(seconds: int) -> str:
    """Return a point in time as `time_seconds` reads it: the day, and the time of day unless it is
    midnight."""
    days, rest = divmod(seconds, SECONDS_A_DAY)
    day = datetime.date.fromordinal(days + _EPOCH).isoformat()
    hours, minutes = divmod(rest // 60, 60)
    return day if not rest else f"{day}T{hours:02}:{minutes:02}:{rest % 60:02}"
