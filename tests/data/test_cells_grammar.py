"""The grammar of cells: which text of a file gives which value in which declared kind of column.

Each case is read through a CSV file, once alone and once between hostile records: a cell means what
it means by itself. Dates have a table of their own below; the types of Parquet and of frames are in
`test_cell_independence`.
"""

import csv
import hashlib
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secretballot._written import DATE_FORMATS, iso_text, time_seconds
from secretballot.data.cells import texts_of
from secretballot.data.columns import _HashedTextColumn, _is_word, words_in
from secretballot.data.reading import read_table, table_blocks
from secretballot.data.schema import Schema
from secretballot.exceptions import DataError

NUMBER = {"kind": "numeric", "median": 0, "center": 0, "scale": 1, "indicator": True}
COMMA = {**NUMBER, "decimal": ","}
DAY = {"kind": "date", "median": "1970-01-01", "scale": 1, "parts": [], "indicator": True}
VECTOR = {"kind": "vector", "center": [0, 0], "scale": 1}
WORDS = {"kind": "text", "words": ["heart", "2020"]}
CATEGORIES = ["1", "yes", "No"]

#: A cell that says nothing, and one that says something for which the column has no place.
MISSING, STRANGE = "missing", "strange"

#: Declared kind, text of the cell, value of its first encoded columns.
CASES = [
    *((NUMBER, text, value) for text, value in [
        ("41", 41), (" 41 ", 41), ("+1.50", 1.5), ("-0", 0), ("-0.0", 0), ("1e3", 1000),
        (".5", 0.5),
        ("1_000", 1000), ("1E-3", 0.001), ("1e30", 1e30), ("1e31", STRANGE), ("1e400", STRANGE),
        ("inf", STRANGE), ("1,5", STRANGE), ("1 000", STRANGE), ("0x10", STRANGE), ("5 %", STRANGE),
        ("12a", STRANGE), ("٣", 3), ("True", STRANGE),
        *((word, MISSING) for word in
          ("", "  ", "?", "NA", "n/a", "NaN", "None", "NULL", "nan")),
        ("-", STRANGE), ("k.A.", STRANGE), ("missing", STRANGE), ("<NA>", STRANGE),
    ]),
    *((COMMA, text, value) for text, value in [
        ("1,5", 1.5), ("-1,5", -1.5), ("1.234,5", 1234.5), ("1.234", 1.234), ("41", 41),
        (",5", 0.5), ("1,5e2", 150), ("1,234,5", STRANGE), ("12.34,5", STRANGE), ("NA", MISSING),
    ]),
    *((CATEGORIES, text, place) for text, place in [
        ("1", 0), ("1.0", 0), ("1.00", 0), ("01", STRANGE), ("1.5", STRANGE), ("yes", 1),
        (" yes ", 1), ("Yes", STRANGE), ("No", 2), ("no", STRANGE), ("", MISSING), ("NA", MISSING),
        ('"yes"', STRANGE), ("y\u0301", STRANGE),
    ]),
    *(({"kind": "boolean"}, text, place) for text, place in [
        ("True", 1), ("true", 1), ("TRUE", 1), ("False", 0), ("tRuE", STRANGE), ("1", STRANGE),
        ("yes", STRANGE), ("", MISSING),
    ]),
    *((DAY, text, value) for text, value in [
        ("1970-01-03", 2), ("1970/1/3", 2), ("1970-01-03T12:00", 2.5), ("03.01.1970", STRANGE),
        ("1970-02-30", STRANGE), ("", MISSING), ("NaN", MISSING), ("NaT", STRANGE),
    ]),
    *(({**DAY, "format": style}, text, value) for style, text, value in [
        ("day-first", "03/01/1970", 2), ("month-first", "01/03/1970", 2),
        ("day-first", "1970-01-03", 2), ("compact", "19700103", 2), ("day-name", "3Jan1970", 2),
        ("name-day", "January 03, 1970", 2), ("day-name", "3 Brumaire 1970", STRANGE),
    ]),
    *((VECTOR, text, value) for text, value in [
        ("[1, 2]", (1, 2)), ("[1,nan]", STRANGE), ("[1]", STRANGE), ("1, 2", STRANGE),
        ("", MISSING),
    ]),
    *((WORDS, text, value) for text, value in [
        ("Heart, 2020!", (1, 1, 0)), ("hearts", STRANGE), ("HEART\u0301", STRANGE), ("", MISSING),
        ("...", STRANGE),
    ]),
]  # fmt: skip

HOSTILE = ["", "1e400", "x", "-0.0", "[9]", "1,9", "2020-02-30", "NA", "٣", "True", '"']


def write(path, cells):
    """Write one column of cells, each quoted, beside one that is never empty."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerows([["a", "b"], *([cell, "."] for cell in cells)])
    return path


def meaning(path, spec):
    """Return the encoded first row of a file to the bit, and what it says."""
    encoding = Schema.from_json({"columns": {"a": spec}}).encoding(read_table(path))
    said = encoding.matrix[0]
    if 0 in encoding.odd["a"].strange:
        said = STRANGE
    elif encoding.odd["a"].missing:
        said = MISSING
    return encoding.matrix[0].tobytes(), said


@pytest.mark.parametrize(("spec", "text", "value"), CASES)
def test_a_text_has_one_value_whatever_the_other_records_hold(tmp_path, spec, text, value):
    alone, said = meaning(write(tmp_path / "alone.csv", [text]), spec)
    assert meaning(write(tmp_path / "among.csv", [text, *HOSTILE, text]), spec)[0] == alone
    if isinstance(said, str) or value in (MISSING, STRANGE):
        assert said == value
    else:
        kind = spec["kind"] if isinstance(spec, dict) else "categorical"
        found = said.argmax() if kind in ("categorical", "boolean") else said[: np.size(value)]
        assert np.array_equal(np.ravel(found), np.ravel(value))


SECRET = b"s3cr3t"
#: Content of a file, and its cells; or what is said of one that is none.
FILES = [
    ("plain", b"a,b\n1,x\n", [["1", "x"]]),
    ("ends of lines", b"a,b\r\n1,x\r\n2,y", [["1", "x"], ["2", "y"]]),
    ("old Macintosh", b"a,b\r1,x\r2,y\r", [["1", "x"], ["2", "y"]]),
    ("ends of two sorts", b"a,b\r\n1,x\n2,y", [["1", "x"], ["2", "y"]]),
    ("stray carriage return", b"a,b\n1,x\ry,z\n", "does not end as its first line does"),
    ("another one", b"a,b\r\n1,x\r2,y\r\n", "does not end as its first line does"),
    ("stray line feed", b"a,b\r1,x\r2,y\n3,z\r", "does not end as its first line does"),
    ("no type is guessed", b"a,b\n01234,NA\n", [["01234", "NA"]]),
    ("byte order mark", "\ufeffa,b\n1,é\n".encode(), [["1", "é"]]),
    ("spaces", b" a , b\n 1 ,\tx\n", [["1", "x"]]),
    ("quotes", b'a,b\n"1,5","say ""x"""\n', [["1,5", 'say "x"']]),
    ("quoted blank", b'a,b\n"",""\n', [["", ""]]),
    ("single quotes are cells", b"a,b\n'1',x\n", [["'1'", "x"]]),
    ("mark inside a cell", b'a,b\n1"2,x\n', [['1"2', "x"]]),
    ("mark that opens", b'a,b\n"1,x\n' + SECRET + b",y\n", "no well-formed CSV"),
    ("mark that stays open", b'a,b\n1,"' + SECRET + b"\n", "no well-formed CSV"),
    ("mark alone", b'a,b\n"\n1,' + SECRET + b"\n", "no well-formed CSV"),
    ("mark in two records", b'a,b\n1,"x\n' + SECRET + b',y"\n', r"its line \(line 2\)"),
    ("text after a mark", b'a,b\n"' + SECRET + b'"0,x\n', "no well-formed CSV"),
    ("empty lines", b"a,b\n\n1,x\n\n\n2,y\n\n", [["1", "x"], ["2", "y"]]),
    ("too few", b"a,b\n" + SECRET + b"\n", "first line of 2 cells but another number in row 0"),
    ("too many", b"a,b\n1,x\n2,y," + SECRET + b"\n", "another number in row 1"),
    ("semicolons", b"a;b\n1,5;x\n", [["1,5", "x"]]),
    ("commas in cells", b"a,b\n1;1;1,2\n3;3;3,4\n", [["1;1;1", "2"], ["3;3;3", "4"]]),
    ("tabs", b"a\tb\n1\t\n", [["1", ""]]),
    ("bars", b"a|b\n1|x\n", [["1", "x"]]),
    ("nothing", b"", "is empty"),
    ("no name", b"\n\n", "columns without a name"),
    ("a name left out", SECRET + b",\n1,2\n", r"in its header \(column number 2\)"),
    ("a name twice", SECRET + b"," + SECRET + b"\n1,2\n", r"name twice, .* \(column number 2\)"),
    ("no rows", b"a,b\n", "has a header but no rows"),
    ("cp1252", b"a,b\n" + SECRET + b",\xe9\n", "is not UTF-8 but reads as cp1252: convert it"),
    ("UTF-16", "a,b\ns3cr3t,x\n".encode("utf-16"), "is not UTF-8 but reads as utf-16: convert it"),
    ("binary", b"a,b\n" + SECRET + b",\0\n", "is binary"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "cells"), [case[1:] for case in FILES],
                         ids=[case[0] for case in FILES])  # fmt: skip
def test_a_file_is_lines_of_cells(tmp_path, content, cells):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    if isinstance(cells, str):
        for read in (read_table, lambda place, role: list(table_blocks(place, role=role))):
            with pytest.raises(DataError, match=cells) as caught:
                read(path, role="private file")
            assert "private file" in str(caught.value)
            # no cell in the message, nor in an exception that rides along
            assert SECRET.decode() not in str(caught.value)
            assert caught.value.__cause__ is caught.value.__context__ is None
        return
    frame = read_table(path)
    assert list(frame.columns) == ["a", "b"]
    found = [[*row] for row in zip(*(texts_of(frame[name]) for name in "ab"), strict=True)]
    assert found == cells
    (block,) = table_blocks(path)
    assert block.equals(frame)


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
    for style in DATE_FORMATS:
        seconds = time_seconds(text, style)
        assert seconds is None or time_seconds(iso_text(seconds)) == seconds


VOCABULARY = ["pain", "fever", "cough", "rash", "since", "today", "knee", "no", "some", "left"]
RNG = np.random.default_rng(5)
NOTES = [" ".join(RNG.choice(VOCABULARY, size=RNG.integers(2, 8))) for _ in range(200)]
PUBLIC = pd.DataFrame({"note": NOTES})
HASHED = {"kind": "text", "encoding": "hashed", "width": 32}
FEW = {"kind": "text", "width": 6}


def schema_of(spec, public=PUBLIC):
    return Schema.from_json({"columns": {"note": spec}}, public=public)


def test_hashed_words_need_no_public_table_and_are_the_same_everywhere():
    column = _HashedTextColumn(name="note")
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
    assert all(_is_word(word) for word in found)
