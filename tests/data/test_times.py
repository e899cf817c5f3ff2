"""Dates, lengths of time and free text, read from one cell at a time."""

import hashlib
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secretballot._written import iso_text, time_seconds
from secretballot.data.columns import HashedTextColumn, is_word, words_in
from secretballot.data.schema import Schema

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
def test_points_in_time_are_seconds_since_1970(text, seconds):
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
def test_what_is_no_point_in_time_is_none(text):
    assert time_seconds(text) is None


@given(st.text(max_size=30))
def test_no_text_is_too_odd(text):
    for style in ("iso", "day-first", "month-first", "compact"):
        seconds = time_seconds(text, style)
        assert seconds is None or time_seconds(iso_text(seconds)) == seconds


WORDS = ["pain", "fever", "cough", "rash", "since", "today", "knee", "no", "some", "left"]
RNG = np.random.default_rng(5)
NOTES = [" ".join(RNG.choice(WORDS, size=RNG.integers(2, 8))) for _ in range(200)]
PUBLIC = pd.DataFrame({"note": NOTES})
HASHED = {"kind": "text", "encoding": "hashed", "width": 32}
FEW = {"kind": "text", "width": 6}


def schema_of(spec, public=PUBLIC):
    return Schema.from_json({"columns": {"note": spec}}, public=public)


def test_hashed_words_need_no_public_table_and_are_the_same_everywhere():
    column = HashedTextColumn(name="note")
    # BLAKE2b of eight bytes, big-endian, modulo the width: promised, since students rest on it
    assert column.places_of("Pain, pain!") == {789}
    assert column.places_of("knee pain") == {789, 155}
    assert schema_of(HASHED, public=None) == schema_of(HASHED)


def test_a_schema_is_complete_and_the_same_in_every_process():
    """Each process hashes texts by a seed of its own, so what is written here is of another one."""
    declared = {"columns": {"a": FEW, "b": HASHED, "c": {"kind": "text", "width": 4}}}
    frame = pd.DataFrame({"a": NOTES, "b": NOTES, "c": NOTES})
    schema = Schema.from_json(declared, public=frame)
    assert Schema.from_json(json.loads(json.dumps(schema.to_json()))) == schema
    assert [len(one.feature_names) for one in schema.columns] == [7, 33, 5]
    assert schema.columns[0].words == ("cough", "fever", "pain", "rash", "since", "some")
    digest = hashlib.sha256(schema.encode(frame).tobytes()).hexdigest()
    assert digest == "c127f9ea5e6a74a4a9be841d97d8b497456ae386eda9a43d91e10c18dfc02312"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Caf\u00e9 cafe\u0301", {"caf\u00e9"}),  # composed and not
        ("\u0939\u093f\u0928\u094d\u0926\u0940 \u092d\u093e\u0937\u093e", 2),
        ("\u0130stanbul_1", {"i\u0307stanbul", "1"}),
        ("\u0301a", {"a"}),  # a mark without a letter before it
    ],
)
def test_marks_belong_to_their_letters(text, words):
    found = words_in(text)
    assert found == words if isinstance(words, set) else len(found) == words
    assert all(is_word(word) for word in found)
