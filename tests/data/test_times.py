"""Dates and lengths of time, read from one text at a time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secretballot._written import iso_text, time_seconds

NOON = 12 * 3600
LEAP_DAY = 18321 * 86400  # 2020-02-29


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *(("1970-01-01", 0), ("2020-02-29", LEAP_DAY), ("2020/02/29", LEAP_DAY)),
        *(("2020.2.29", LEAP_DAY), ("2020-02-29 12:00:00", LEAP_DAY + NOON)),
        ("2020-02-29T12:00", LEAP_DAY + NOON),
        ("2020-02-29T12:00:00.999999999", LEAP_DAY + NOON),
        ("2020-02-29T12:00:00Z", LEAP_DAY + NOON),
        ("2020-02-29 12:00:00 UTC", LEAP_DAY + NOON),
        ("2020-02-29 13:00:00+01:00", LEAP_DAY + NOON),
        ("2020-02-29 06:30:00-0530", LEAP_DAY + NOON),
        ("2020-02-29 14:00:00+02", LEAP_DAY + NOON),
        ("2020-02-29 12:19:32+00:19:32", LEAP_DAY + NOON),
        *(("2020-02-29t12:00z", LEAP_DAY + NOON), ("2020-02-29 12:05 AM", LEAP_DAY + 300)),
        *(("2020-02", LEAP_DAY - 28 * 86400), ("1969-12-31 23:59:59", -1)),
        *(("0001-01-01", -719162 * 86400), ("9999-12-31 23:59:59", 253402300799)),
    ],
)
def test_points_in_time_are_seconds_since_1970(text: str, seconds: int) -> None:
    assert time_seconds(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "2021-02-29", "2020-13-01", "2020-00-10", "2020-02-29 24:00", "2020-02-29 12:60",
        "2020-02-29 12:00:60", "2020-02-29 13:00 PM", "2020-02-29 0:00 AM", "20-02-29", "2020",
        "2020-02/29", "29.02.2020", "20200229", "2020-02-29 12", "2020-02-29x", " 2020-02-29", "",
        "0000-01-01", "10000-01-01", "2020-02-29 12:00+99:00", "2020-02-29 12:00+01:00:60",
        "0001-01-01 00:00+01:00",
        "9999-12-31 23:59-01:00", "٢٠٢٠-٠٢-٢٩", "2020-02-29\n", "NaT", "2020-2", "-2020-02-29",
    ],
)  # fmt: skip
def test_what_is_no_point_in_time_is_none(text: str) -> None:
    assert time_seconds(text) is None


def test_day_and_month_change_places_with_the_style() -> None:
    assert time_seconds("03/04/2020", "day-first") == time_seconds("2020-04-03")
    assert time_seconds("03/04/2020", "month-first") == time_seconds("2020-03-04")


@given(st.text(max_size=30))
def test_no_text_is_too_odd(text: str) -> None:
    for style in ("iso", "day-first", "month-first", "compact"):
        seconds = time_seconds(text, style)
        assert seconds is None or time_seconds(iso_text(seconds)) == seconds
