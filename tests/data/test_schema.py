"""What public cells make of columns; the encoder knows public data and treats rows one by one."""

import datetime
import decimal
import json

import numpy as np
import pandas as pd
import pytest

from public_data import ADULT_CLASSES, ADULT_SCHEMA, ADULT_TARGET, adult
from reference_data import reference
from secretballot.data.columns import (
    BooleanColumn,
    CategoricalColumn,
    DateColumn,
    IgnoredColumn,
    NumericColumn,
    _TextColumn,
    declared_column,
)
from secretballot.data.reading import read_table
from secretballot.data.schema import Schema, _inferred_column
from secretballot.exceptions import DataError

PUBLIC = pd.DataFrame(
    {
        "age": ["20", "30", "40", "?"],
        "size": ["1.5", "2.5", "3.5", "4.5"],
        "state": ["CA", "NY", "CA", ""],
        "income": ["x", "y", "x", "y"],
    }
)


def infer():
    return Schema.infer(PUBLIC, ignore=["income"])


def test_numbers_are_scaled_by_the_public_file_and_categories_have_an_other():
    schema = infer()
    names = ("age", "age=missing", "size", "state=CA", "state=NY", "state=(other)")
    assert schema.feature_names == names
    matrix = schema.encode(PUBLIC)
    spread = np.std([20.0, 30.0, 40.0])
    assert matrix[:, 0] == pytest.approx(np.array([-10, 0, 10, 0]) / spread)
    assert matrix[:, 1].tolist() == [0, 0, 0, 1]
    assert matrix[:, 2].mean() == pytest.approx(0)
    assert matrix[:, 2].std() == pytest.approx(1)
    assert matrix[:, 3:].tolist() == [[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1]]


def test_a_constant_public_column_is_not_divided_by_its_spread():
    schema = Schema.infer(pd.DataFrame({"a": ["0.1"] * 10}))
    assert schema.encode(pd.DataFrame({"a": ["1.1"]})) == pytest.approx(np.array([[1.0]]))


def test_a_declared_schema_is_completed_from_the_public_file():
    declared = {
        "columns": {
            "age": {"kind": "numeric", "scale": 10},
            "state": ["NY", "TX"],
            "size": "categorical",
            "z": "ignored",
        },
        "classes": ["<=50K", ">50K"],
    }
    schema = Schema.from_json(declared, public=PUBLIC)
    assert schema.classes == ("<=50K", ">50K")
    assert schema.names == ("age", "state", "size")
    age = schema.columns[0]
    assert isinstance(age, NumericColumn)
    assert (age.median, age.center, age.scale, age.indicator) == (30, 30, 10, True)
    assert schema.columns[1] == CategoricalColumn(name="state", categories=("NY", "TX"))
    assert schema.columns[2] == CategoricalColumn(
        name="size", categories=("1.5", "2.5", "3.5", "4.5")
    )


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ([], "JSON object"),
        ({"columns": {"age": "numeric"}, "format": "other"}, "format 'other'"),
        ({"columns": {"age": "numeric"}, "version": 99}, "version 99"),
        ({"columns": {"age": "numeric"}, "classes": ["one"]}, "a list of two or more"),
        ({"columns": {"height": "numeric"}}, "column 'height' open"),
    ],
)
def test_a_schema_that_says_too_little_or_nonsense_is_refused(declared, message):
    with pytest.raises(DataError, match=message):
        Schema.from_json(declared, public=PUBLIC)


def test_schema_files_are_read_and_bad_ones_refused(tmp_path):
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(infer().to_json()))
    assert Schema.read(path).to_json() == infer().to_json()
    for content in ("{", "[" * 100_000):
        path.write_text(content)
        with pytest.raises(DataError, match="no JSON text") as caught:
            Schema.read(path)
        # an error of the json module carries the whole text
        assert caught.value.__context__ is None
    with pytest.raises(DataError, match="cannot be read") as caught:
        Schema.read(tmp_path / "nowhere.json")
    assert caught.value.__context__ is None


N = 120
RNG = np.random.default_rng(8)
DAYS = [datetime.date(2018, 1, 1) + datetime.timedelta(int(d)) for d in RNG.integers(0, 900, N)]
MOMENTS = [
    datetime.datetime.combine(day, datetime.time(int(h), int(m)))
    for day, h, m in zip(DAYS, RNG.integers(0, 24, N), RNG.integers(0, 60, N), strict=True)
]


def inferred(cells, name="a"):
    return _inferred_column(name, pd.Series(cells, dtype=object))


def encoded(column, cells):
    kept, odd = column.compact(cells)
    assert kept.dtype == column.compact_type.base
    out = np.empty((len(cells), len(column.feature_names)))
    column.widen(kept, out)
    return out, odd


@pytest.mark.parametrize(
    ("cells", "style", "parts"),
    [
        ([str(day) for day in DAYS], "iso", ("month", "weekday")),
        ([str(moment) for moment in MOMENTS], "iso", ("month", "weekday", "hour")),
        ([f"{day:%d.%m.%Y}" for day in DAYS], "day-first", ("month", "weekday")),
        ([f"{day:%d/%m/%Y}" for day in DAYS], "day-first", ("month", "weekday")),
        ([f"{day:%m/%d/%Y}" for day in DAYS], "month-first", ("month", "weekday")),
        ([f"{day:%d. %B %Y}" for day in DAYS], "day-name", ("month", "weekday")),
        ([f"{day:%b %d, %Y}" for day in DAYS], "name-day", ("month", "weekday")),
        (DAYS, "iso", ("month", "weekday")),
        ([pd.Timestamp(one, tz="UTC") for one in MOMENTS], "iso", ("month", "weekday", "hour")),
        (["2020-02-03"] * 5, "iso", ()),
    ],
)  # fmt: skip
def test_dates_are_found_in_every_usual_style(cells, style, parts):
    found = inferred(cells)
    assert isinstance(found.column, DateColumn)
    assert (found.column.format, found.column.parts) == (style, parts)
    assert not found.doubt


def test_dates_become_days_from_the_median_and_parts():
    cells = pd.Series(["2020-02-29", "2020-03-02 13:30", "2020-03-01", ""])
    column = _inferred_column("a", cells).column
    assert isinstance(column, DateColumn)
    assert column.feature_names == ("a", "a=month", "a=weekday", "a=hour", "a=missing")
    assert column.to_json()["median"] == "2020-03-01"
    out, odd = encoded(column, cells)
    days = np.array([-1, 1 + 13.5 / 24, 0, 0])
    assert out[:, 0] * column.scale == pytest.approx(days)
    assert (out[:, 1] * 3.5 + 6.5).tolist() == [2, 3, 3, 3]
    assert (out[:, 2] * 2 + 3).tolist() == [5, 0, 6, 6]  # Saturday, Monday, Sunday
    assert (out[:, 3] * 7 + 11.5).tolist() == [0, 13, 0, 0]
    assert out[:, 4].tolist() == [0, 0, 0, 1]
    assert (odd.strange.tolist(), odd.missing) == ([], 1)
    _, bad = encoded(column, pd.Series(["soon", "?", "2020-02-30", "2020-02-01"]))
    assert (bad.strange.tolist(), bad.missing) == ([0, 2], 1)


def test_truth_values_are_one_kind_whatever_wrote_them():
    for cells in (["true", "false"], ["TRUE", "FALSE", "?"], [True, False, None], ["True"]):
        found = inferred(cells)
        assert isinstance(found.column, BooleanColumn), cells
    assert isinstance(inferred(["yes", "no"]).column, CategoricalColumn)


def test_codes_with_leading_zeros_are_categories_and_said():
    found = inferred(["01234", "94110", "01234", "94110"] * 5, "area")
    assert isinstance(found.column, CategoricalColumn)
    assert found.column.categories == ("01234", "94110")
    assert found.doubt
    assert "codes, not numbers" in found.reason
    named = inferred(["94110", "94111"] * 30, "home_zip")
    assert isinstance(named.column, CategoricalColumn)
    assert named.doubt
    # what a Parquet file of integers is left with
    assert isinstance(inferred([1234, 94110] * 30, "Zip Code").column, CategoricalColumn)
    padded = inferred(["007", "12", "1234"] * 30, "amount")
    assert isinstance(padded.column, NumericColumn)
    plain = inferred(["94110", "94111"] * 30, "income")
    assert isinstance(plain.column, NumericColumn)
    assert not plain.doubt


@pytest.mark.parametrize(
    ("cells", "name"),
    [
        (range(9 * N, 0, -9), "Lfd. Nr."),
        (range(1000, 1000 + N), "anything"),
        (RNG.permutation(10**6)[:N], "patient_id"),
        ([f"{i:032x}" for i in RNG.permutation(10**6)[:N]], "uuid"),
        ([f"name {i}" for i in range(N)], "who"),
    ],
)
def test_ids_are_no_features_and_said(cells, name):
    found = inferred([str(cell) for cell in cells], name)
    assert isinstance(found.column, IgnoredColumn)
    assert found.doubt
    assert "id" in found.reason
    assert "declare" in found.reason


@pytest.mark.parametrize(
    ("name", "values", "rows_of_each", "an_id"),
    [
        ("patient_id", 50, 4, True),
        ("patientId", 50, 4, True),
        ("id", 40, 100, True),  # so many measurements of each person
        ("Patienten-Nr", 40, 100, True),
        ("subject", 40, 100, True),
        ("station_id", 40, 100, False),  # of no person, and few of many rows
        ("station_id", 40, 10, True),
        ("subject", 15, 20, False),  # so few are categories
        ("ward", 50, 4, False),
    ],
)
def test_ids_that_repeat_are_no_features(name, values, rows_of_each, an_id):
    numbers = RNG.permutation(np.repeat(3 * np.arange(values), rows_of_each))
    for cells in (numbers.astype(str), [f"P{number}" for number in numbers]):
        found = inferred([str(cell) for cell in cells], name)
        assert found.identifier == isinstance(found.column, IgnoredColumn) == an_id


def test_numbers_with_a_decimal_comma_are_read_and_doubtful_ones_are_declared():
    cells = [f"{number:.1f}".replace(".", ",") for number in RNG.normal(60, 9, N)]
    found = inferred([*cells, "1.234,5"], "weight")
    column = found.column
    assert isinstance(column, NumericColumn)
    assert column.decimal == ","
    kept = column.kept(pd.Series(["59,5", "59.5", "1.234,5", "1,2,3", "x"]))[0]
    assert kept.tolist()[:3] == [59.5, 59.5, 1234.5]
    assert column.kept(pd.Series([59.5, 59]))[0][0] == 59.5
    assert declared_column("weight", column.to_json(), None) == column
    thousands = inferred([f"{number},{number:03d}" for number in range(100, 200)], "income")
    assert isinstance(thousands.column, IgnoredColumn)
    assert thousands.doubt


def test_numbers_with_a_sign_are_said():
    rate = inferred([f"{row % 5},5 %" for row in range(N)], "rate")
    assert (rate.column.holds, rate.doubt) == ("categories", True)
    paid = inferred([f"{row:,}.00 $" for row in range(5000, 5000 + N)], "paid")
    assert (paid.column.feature_names, paid.identifier) == ((), False)


def test_few_words_among_numbers_mean_that_nothing_is_known():
    cells = [str(number) for number in RNG.normal(size=N)]
    few = inferred([*cells[: N * 9 // 10], *["k.A.", "-"] * (N // 20)], "crp")
    assert isinstance(few.column, NumericColumn)
    assert "'-', 'k.A.' count as missing" in few.reason
    commas = [cell.replace(".", ",") for cell in cells]
    german = inferred([*commas[: N * 9 // 10], *["k.A.", "-"] * (N // 20)], "crp")
    assert german.reason.endswith("decimal comma; '-', 'k.A.' count as missing")
    many = inferred([*cells[: N * 9 // 10], *map("word{}".format, range(N // 10))], "crp")
    assert not isinstance(many.column, NumericColumn)


def test_free_text_is_no_feature_until_it_is_declared():
    notes = [f"patient {i} has {('pain', 'fever')[i % 2]} since today" for i in range(N)]
    found = inferred(notes)
    assert isinstance(found.column, IgnoredColumn)
    assert "free text" in found.reason
    assert 'declare "text"' in found.reason
    public = pd.DataFrame({"note": notes})
    (column,) = Schema.from_json({"columns": {"note": "text"}}, public=public).columns
    assert isinstance(column, _TextColumn)
    assert column.words == ("fever", "pain")  # words of all cells tell nothing, those of one less
    cells = pd.Series(["PAIN, pain!", "no fever; pain?", "painful", "", None], dtype=object)
    out, odd = encoded(column, cells)
    assert out.tolist() == [[0, 1, 0], [1, 1, 0], [0, 0, 1], [0, 0, 1], [0, 0, 1]]
    assert (odd.strange.tolist(), odd.missing) == ([2], 2)


TEXTS = {
    "note": "text",
    "letter": {"kind": "text", "width": 20},
    "memo": {"kind": "text", "encoding": "hashed", "width": 64},
}
TYPED = {
    "day": DAYS,
    "moment": MOMENTS,
    "flag": [bool(i % 3) for i in range(N)],
    "price": [decimal.Decimal(int(c)) / 100 for c in RNG.integers(1, 10**6, N)],
    "ward": ["north" if i % 2 else "south" for i in range(N)],
    "count": RNG.integers(0, 9, N).tolist(),
    "dose": RNG.normal(size=N).round(3).tolist(),
    **{
        name: [f"pain and fever no {i % 90}" for i in range(N)]
        for name in ("note", "letter", "memo")
    },
}


def parquet_of(folder, typed, *, null_at=None):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    cells = {name: list(own) for name, own in typed.items()}
    if null_at is not None:
        for own in cells.values():
            own[null_at] = None
    columns = {name: pa.array(own) for name, own in cells.items()}
    columns["ward"] = columns["ward"].dictionary_encode()
    columns["moment"] = columns["moment"].cast(pa.timestamp("ns"))
    columns["zone"] = columns["moment"].cast(pa.timestamp("ms", "UTC"))
    if null_at is None:
        columns["zone"] = columns["zone"].cast(pa.timestamp("ms", "Asia/Kolkata"))
    parquet.write_table(pa.table(columns), folder / "t.parquet")
    return folder / "t.parquet"


def csv_of(folder, typed, *, null_at=None):
    frame = pd.DataFrame(typed)
    frame["moment"] = pd.to_datetime(frame["moment"])
    frame["zone"] = frame["moment"].dt.tz_localize("UTC")
    frame["flag"] = frame["flag"].map({True: "true", False: "false"})
    if null_at is not None:
        frame = frame.astype(object)
        frame.loc[null_at] = None
    frame.to_csv(folder / "t.csv", index=False)
    return folder / "t.csv"


@pytest.mark.parametrize("null_at", [None, 7])
def test_every_kind_means_the_same_in_csv_and_in_parquet(tmp_path, null_at):
    text = read_table(csv_of(tmp_path, TYPED, null_at=null_at))
    typed = read_table(parquet_of(tmp_path, TYPED, null_at=null_at))[list(text.columns)]
    of_text, of_types = Schema.infer(text), Schema.infer(typed)
    assert of_text.to_json() == of_types.to_json()
    kinds = {name: one["kind"] for name, one in of_text.to_json()["columns"].items()}
    assert kinds == {
        "day": "date", "moment": "date", "flag": "boolean", "price": "numeric",
        "ward": "categorical", "count": "numeric",
        "dose": "numeric", "zone": "date", **dict.fromkeys(TEXTS, "ignored"),
    }  # fmt: skip
    with_text = Schema.from_json({"columns": of_text.to_json()["columns"] | TEXTS}, public=text)
    one, other = with_text.encoding(text), with_text.encoding(typed)
    assert one.matrix.tobytes() == other.matrix.tobytes()
    for encoding in (one, other):
        assert {odd.missing for odd in encoding.odd.values()} == {0 if null_at is None else 1}
    read = [column.name for column in with_text.features if not column.has_other]
    assert not any(one.odd[name].strange.size for name in read)
    again = Schema.from_json(json.loads(json.dumps(with_text.to_json())))
    assert again.encode(typed).tobytes() == one.matrix.tobytes()
    # rows that were kept in few bytes, block by block and through a file, become the same matrix
    blocks = [text.iloc[start : start + 50] for start in range(0, len(text), 50)]
    kept = b"".join(with_text.compact(block)[0].tobytes() for block in blocks)
    rows = np.frombuffer(kept, dtype=with_text.compact_type)
    assert with_text.widen(rows).tobytes() == one.matrix.tobytes()
    assert rows.nbytes < one.matrix.nbytes / 3


def test_declared_dates_are_completed_from_public_cells():
    public = pd.DataFrame({"a": ["01/02/2020", "11/12/2021", ""]})

    def declared(**more):
        columns = {"a": {"kind": "date", **more}}
        return Schema.from_json({"columns": columns}, public=public).columns[0]

    found = declared(format="day-first")
    assert found.scale == pytest.approx(339.5)
    assert found.to_json()["median"] == "2020-02-01"
    assert (found.parts, found.indicator) == (("month",), True)  # both are Saturdays
    column = declared(format="month-first", parts=["day"], median="2020-02-29T12:00:01", scale=7)
    assert (column.parts, column.scale, column.indicator) == (("day",), 7, True)
    assert column.to_json()["median"] == "2020-02-29T12:00:01"
    assert declared(format="day-first", parts=[]).feature_names == ("a", "a=missing")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"kind": "date", "format": "american"}, "format of column 'a' is 'american'; it must be"),
        (
            {"kind": "date", "parts": ["year"]},
            "parts of column 'a' is .*; it must be a list of month",
        ),
        ({"kind": "date", "median": "x"}, "it must be a date such as 2020-02-29"),
        ({"kind": "date"}, "No public row of column 'a' has dates"),
        ({"kind": "numeric"}, "No public row of column 'a' has numbers"),
        ({"kind": "numeric", "scale": 0}, "scale of column 'a' is 0"),
        ({"kind": "numeric", "center": float("nan")}, "center of column 'a' is nan"),
        ({"kind": "numeric", "indicator": "false"}, "indicator .* 'false'; it must be true or"),
        ({"kind": "text", "encodng": "hashed"}, "says 'encodng' of column 'a'"),
        ("ignored", "no column that could be a feature"),
        ({"kind": "text", "words": ["two words"]}, "it must be a list of 1 to 65536 single words"),
        ({"kind": "text"}, "has words that are in two of them"),
        ("boolaen", "one of numeric, categorical, boolean, date, text, vector, ignored"),
    ],
)
def test_a_declared_kind_that_says_nonsense_is_refused(spec, message):
    public = pd.DataFrame({"a": ["one", "two", "three"]})
    with pytest.raises(DataError, match=message) as refused:
        Schema.from_json({"columns": {"a": spec}}, public=public)
    assert len(str(refused.value)) < 400


def test_odd_public_cells_end_in_some_column():
    odd = ["²²²²0101", "٢٠٢٠-٠٢-٢٩", "9999-12-31", "x\0y", "\ud800", "1e400", "99:99"]
    for text in odd:
        for count in (1, 30):
            assert inferred([text] * count).reason


def test_adult_is_as_published_and_its_schema_has_every_cell_but_the_unknown_ones():
    frames = reference(adult)
    for frame in frames:
        assert set(frame[ADULT_TARGET]) == set(ADULT_CLASSES)
        for name, spec in ADULT_SCHEMA["columns"].items():
            if spec == "numeric":
                assert frame[name].dtype == np.int64
            else:
                assert set(frame[name]) <= {*spec, "?"}
    schema = Schema.from_json(ADULT_SCHEMA, public=frames.test.drop(columns=ADULT_TARGET))
    assert schema.classes == ADULT_CLASSES
    found = schema.encoding(frames.train.head(100))
    assert not any(odd.strange.size for odd in found.odd.values())
