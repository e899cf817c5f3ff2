"""One cell of a typed table changes no other row's encoding, hence one record reaches one
teacher."""

import datetime
import decimal
import functools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secretballot._written import DATE_FORMATS
from secretballot.data.cells import numbers_of, texts_of
from secretballot.data.frames import class_indices, frame_of, unit_ids
from secretballot.data.reading import read_table
from secretballot.data.schema import Schema
from secretballot.exceptions import DataError

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

Decimal, HUGE = decimal.Decimal, 2**60
DAY = datetime.date(2020, 2, 29)
NOON = datetime.datetime(2020, 2, 29, 12)

#: Arrow type, cells of every column of that type, and what one record may add.
KINDS = [
    (pa.int64(), [0, 1, HUGE + 1, HUGE + 3, -(10**16)], [None, -1, 2**63 - 1]),
    (pa.int8(), [0, 1, -3], [None, 127]),
    (pa.uint64(), [0, 1, 2**63 + 1, 2**63 + 3], [None, 2**64 - 1]),
    (
        pa.float64(),
        [0.0, 1.0, 1e16, 0.1, -2.5],
        [None, float("nan"), -0.0, 1e-300, float("inf"), 1e22],
    ),
    (pa.float32(), [0.0, 1.0, 0.1], [None, float("nan"), -0.0, 1e-40]),
    (pa.float16(), [0.0, 1.0, 0.5], [None, -0.0, float("nan")]),
    (pa.bool_(), [True, False, True], [None, True, False]),
    (
        pa.decimal128(30, 2),
        [Decimal("1.50"), Decimal("0.00"), Decimal(HUGE)],
        [None, Decimal("-0.00"), Decimal("1")],
    ),
    (pa.decimal256(60, 3), [Decimal("1.5"), Decimal("1e50")], [None, Decimal("1e-3")]),
    (
        pa.string(),
        ["0", "-0", "1.0", "x", "x\0y", "True"],
        [None, "", "x\0", "nan", "1e400", "-0.0"],
    ),
    (pa.large_string(), ["a", "b"], [None, "?"]),
    (pa.string_view(), ["a", "b"], [None, "?"]),
    (pa.dictionary(pa.int8(), pa.string()), ["b", "a", "b"], [None, "0", "a"]),
    (pa.dictionary(pa.int32(), pa.large_string()), ["b", "a", "b"], [None, "0", "a"]),
    (pa.binary(), [b"x", b"1"], [None, b"\xff", b"x\0"]),
    (pa.date32(), [DAY], [None, 2**31 - 1]),
    (pa.timestamp("s"), [NOON], [None, 2**40]),
    (pa.timestamp("ms"), [NOON], [None, 2**60]),
    (pa.timestamp("us"), [NOON], [None, 1]),
    (pa.timestamp("ns"), [NOON], [None, 1]),
    (pa.timestamp("us", "Europe/Berlin"), [NOON], [None, 2**60]),
    (pa.time64("us"), [datetime.time(12)], [None, datetime.time(0)]),
    (pa.duration("ms"), [datetime.timedelta(days=1)], [None, 1]),
    (pa.duration("ns"), [datetime.timedelta(days=1)], [None, 1]),
    (pa.null(), [None, None], [None]),
]

ANY_CELL = st.one_of(
    st.none(),
    st.booleans(),
    st.text(max_size=4),
    st.integers(),
    st.floats(),
    st.complex_numbers(),
    st.decimals(),
    st.dates(),
    st.timedeltas(),
    st.sampled_from(
        [
            *(-0.0, 1e-320, 10**400, 10**5000, float("nan"), pd.NA, pd.NaT, b"x"),
            *(Decimal("1e-9"), 0j, -0.0j),
            *("9999-12-31 23:59:59.999999999", "0001-01-01", "2020-02-29T24:00", "99999999 days"),
            *("NaT", "1e400", "x\0y", "\ud800", "2020-02-29\u00a0", "²²²²0101", "٢٠٢٠-٠٢-٢٩"),
            *("TRUE ", "true\u0130", "word " * 2000, b"2020-01-01"),
            *(np.datetime64(10**12, "s"), np.timedelta64(2**62, "ns"), ["x"], {"x": 1}, "\u202e x"),
        ]
    ),
    st.sampled_from(
        [pd.Timestamp(1), pd.Timedelta(1), pd.Timestamp(0, tz="UTC"), np.float32(0.1), np.int8(3)]
    ),
)


#: A column of every kind, each of which reads the same cells.
EVERY_KIND = Schema.from_json(
    {
        "columns": {
            "number": {"kind": "numeric", "median": 1, "center": 0, "scale": 1, "indicator": True},
            "category": ["0", "1", "x", "True", "1.5", str(HUGE + 1), "1e+16"],
            "truth": {"kind": "boolean"},
            "text": {"kind": "text", "words": ["x", "2020", "days", "0", "true"]},
            "hashed text": {"kind": "text", "encoding": "hashed", "width": 13},
            **{
                style: {
                    "kind": "date",
                    "format": style,
                    "median": "2020-02-29",
                    "scale": 30,
                    "parts": ["month", "day", "weekday", "hour"],
                    "indicator": True,
                }
                for style in DATE_FORMATS
            },
        }
    }
)


def meaning(cells, kept):
    """Return all that is ever taken from a column, for the rows of all records but one, to the
    bit."""
    texts, numbers = texts_of(cells)[kept], numbers_of(cells)[kept]
    frame = pd.DataFrame(dict.fromkeys(EVERY_KIND.names, cells))
    encoding = EVERY_KIND.encoding(frame)
    matrix, rows = encoding.matrix[kept], np.arange(len(cells))
    assert np.isfinite(matrix.astype(np.float32)).all()
    strange = [np.isin(rows, odd.strange)[kept].tolist() for odd in encoding.odd.values()]
    return texts.tolist(), numbers.tobytes(), matrix.tobytes(), strange


def array_of_one(cell, kind):
    """Return an Arrow array of one cell, made in a way that old versions know."""
    if pa.types.is_dictionary(kind):
        place = pa.array([None if cell is None else 0], type=kind.index_type)
        return pa.DictionaryArray.from_arrays(
            place, pa.array([] if cell is None else [cell], type=kind.value_type)
        )
    if pa.types.is_float16(kind) and cell is not None:
        cell = np.float16(cell)
    return pa.array([cell], type=kind)


def through_parquet(folder, kind, cells):
    held = pa.chunked_array([array_of_one(cell, kind) for cell in cells], type=kind)
    if not pa.types.is_dictionary(kind):
        held = held.combine_chunks()
    table = pa.table({"a": held})
    try:
        parquet.write_table(table, folder / "t.parquet")
    except pa.ArrowNotImplementedError:  # an old version that writes no views of texts
        assert kind == pa.string_view()
        return frame_of(table)["a"]
    return read_table(folder / "t.parquet")["a"]


@pytest.mark.parametrize(("kind", "cells", "news"), KINDS, ids=[str(kind) for kind, _, _ in KINDS])
def test_a_cell_of_a_parquet_file_changes_no_other(tmp_path, kind, cells, news):
    alone = meaning(through_parquet(tmp_path, kind, cells), slice(None))
    for new in news:
        assert meaning(through_parquet(tmp_path, kind, [new, *cells]), slice(1, None)) == alone, new
        assert meaning(through_parquet(tmp_path, kind, [*cells, new]), slice(None, -1)) == alone, (
            new
        )


#: What a frame's column holds before one record joins, up to what pandas' own types hold exactly,
#: its declared type, and what joins.
FRAMES = [
    (None, [0, 1, 2**53, -(10**16) + 2**53], ANY_CELL),
    (None, [0.0, 1.0, 1e16, 0.1, -2.5], ANY_CELL),
    (None, [True, False, True], ANY_CELL),
    (None, ["x", "1.0", "-0", "x\0y"], ANY_CELL),
    (None, [Decimal("1.50"), Decimal("0.00")], ANY_CELL),
    (None, [DAY, DAY], ANY_CELL),
    (None, [NOON, NOON + datetime.timedelta(microseconds=1)], ANY_CELL),
    (None, [datetime.timedelta(days=1), datetime.timedelta(seconds=1)], ANY_CELL),
    (None, [None, None], ANY_CELL),
    ("Int64", [HUGE + 1, HUGE + 3], st.none() | st.integers(-(2**63), 2**63 - 1)),
    ("Float64", [0.0, 1.0, 0.1], st.none() | st.floats()),
    ("boolean", [True, False], st.none() | st.booleans()),
    ("string", ["x", "x\0"], st.none() | st.text(st.characters(exclude_categories=["Cs"]))),
    ("category", [1, 2, 2], st.none() | st.text(max_size=3) | st.floats() | st.integers(-9, 9)),
    ("float32", [0.0, 0.5, 0.1], st.floats(width=32)),
]
EVERY_FRAME = pytest.mark.parametrize(
    "number", range(len(FRAMES)), ids=[kind or type(cells[0]).__name__ for kind, cells, _ in FRAMES]
)


@functools.cache
def meaning_alone(number):
    """Return what is taken from a column that is all there is, in whichever of two types."""
    kind, cells, _ = FRAMES[number]
    alone = meaning(pd.Series(cells, dtype=kind), slice(None))
    assert kind or meaning(pd.Series(cells, dtype=object), slice(None)) == alone
    return alone


def check_cell_of_frame(number, data):
    kind, cells, joining = FRAMES[number]
    new, alone = data.draw(joining), meaning_alone(number)
    try:
        first, last = pd.Series([new, *cells], dtype=kind), pd.Series([*cells, new], dtype=kind)
    except (OverflowError, ValueError):  # pandas itself refuses to make the frame
        assert kind is None
        return
    assert meaning(first, slice(1, None)) == alone
    assert meaning(last, slice(None, -1)) == alone


@EVERY_FRAME
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_a_cell_of_a_frame_changes_no_other_though_pandas_changes_the_type(number, data):
    check_cell_of_frame(number, data)


@pytest.mark.slow
@EVERY_FRAME
@settings(max_examples=1000, deadline=None)
@given(data=st.data())
def test_no_cell_of_many_changes_another_of_its_frame(number, data):
    check_cell_of_frame(number, data)


def test_zero_has_no_sign_and_whole_floats_have_no_exponent():
    assert texts_of(pd.Series([-0.0, 0.0, 1.0, 0.0])).tolist() == ["0", "0", "1", "0"]
    assert not np.signbit(numbers_of(pd.Series([-0.0, 0.0]))).any()
    assert texts_of(pd.Series([1e16, 2.0**60])).tolist() == [str(10**16), str(2**60)]
    assert texts_of(pd.Series([1e16, None, Decimal("1E+2"), 1 + 0j], dtype=object)).tolist() == [
        str(10**16),
        "",
        "100",
        "1",
    ]
    assert texts_of(
        pd.Series(pd.IntervalIndex.from_tuples([(0.0, 1.0), (-0.0, 0.5)]))
    ).tolist() == ["(0, 1]", "(0, 0.5]"]


def test_numbers_beyond_every_type_are_unreadable_and_no_crash():
    cells = pd.Series(
        [10**400, 10**5000, Decimal("1e999999"), "1", np.timedelta64(1, "D")], dtype=object
    )
    assert np.isnan(numbers_of(cells)).tolist() == [True, True, True, False, True]
    assert len(set(texts_of(cells))) == 5


def test_ids_and_classes_beyond_double_precision_stay_apart_beside_a_null(tmp_path):
    frame = pd.DataFrame({"a": through_parquet(tmp_path, pa.int64(), [HUGE + 1, HUGE + 3, None])})
    assert unit_ids(frame[:2], "a", role="file").tolist() == [str(HUGE + 1), str(HUGE + 3)]
    assert class_indices(frame[:2], "a", [HUGE + 1, HUGE + 3], role="file").tolist() == [0, 1]


def test_arrow_and_polars_tables_are_taken_cell_by_cell():
    table = pa.table({" a ": pa.array([HUGE + 1, None])})

    class Polarlike:
        def to_arrow(self):
            return table

    for given_table in (table, Polarlike()):
        frame = frame_of(given_table)
        assert texts_of(frame["a"]).tolist() == [str(HUGE + 1), ""]
    with pytest.raises(DataError, match="The public table has cells in column 'a'"):
        frame_of(pa.table({"a": [["x"]]}), role="public table")


def test_damaged_cells_are_refused_by_column_without_a_cell(tmp_path):
    offsets, content = pa.array([b"s3cr3t\xff"]).buffers()[1:]
    damaged = pa.Array.from_buffers(pa.string(), 1, [None, offsets, content])
    parquet.write_table(pa.table({"a": damaged, "b": [1]}), tmp_path / "t.parquet")
    with pytest.raises(DataError, match="cells in column 'a' that are damaged") as caught:
        read_table(tmp_path / "t.parquet")
    assert "s3cr3t" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
