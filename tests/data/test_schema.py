"""The encoder knows public data alone and treats every row by itself."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secretballot.data import schema as schema_module
from secretballot.data.columns import CategoricalColumn, NumericColumn
from secretballot.data.schema import Schema
from secretballot.exceptions import DataError

PUBLIC = pd.DataFrame(
    {
        "age": ["20", "30", "40", "?"],
        "size": ["1.5", "2.5", "3.5", "4.5"],
        "state": ["CA", "NY", "CA", ""],
        "income": ["x", "y", "x", "y"],
    }
)

cells = st.one_of(
    st.none(),
    st.text(max_size=6),
    st.integers(),
    st.floats(),
    st.booleans(),
    st.sampled_from(["CA", " NY ", "30", "1e400", "?", "nan", "-0.0", "1_0"]),
)
rows = st.fixed_dictionaries({"age": cells, "size": cells, "state": cells})


def infer() -> Schema:
    return Schema.infer(PUBLIC, ignore=["income"])


def table(records: list[dict[str, object]]) -> pd.DataFrame:
    return pd.DataFrame(
        {name: [record[name] for record in records] for name in ("age", "size", "state")},
        dtype=object,
    )


def test_numbers_are_scaled_by_the_public_file_and_categories_have_an_other() -> None:
    schema = infer()
    assert schema.feature_names == (
        "age",
        "age=missing",
        "size",
        "state=CA",
        "state=NY",
        "state=(other)",
    )
    matrix = schema.encode(PUBLIC)
    spread = np.std([20.0, 30.0, 40.0])
    assert matrix[:, 0] == pytest.approx(np.array([-10, 0, 10, 0]) / spread)
    assert matrix[:, 1].tolist() == [0, 0, 0, 1]
    assert matrix[:, 2].mean() == pytest.approx(0)
    assert matrix[:, 2].std() == pytest.approx(1)
    assert matrix[:, 3:].tolist() == [[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1]]


def test_the_indicator_appears_only_where_the_public_file_misses_something() -> None:
    age, size = infer().columns[:2]
    assert isinstance(age, NumericColumn)
    assert age.indicator
    assert isinstance(size, NumericColumn)
    assert not size.indicator


@settings(max_examples=40, deadline=None)
@given(st.lists(rows, min_size=1, max_size=8))
def test_private_cells_never_change_the_width(records: list[dict[str, object]]) -> None:
    matrix = infer().encode(table(records))
    assert matrix.shape == (len(records), 6)
    assert np.isfinite(matrix).all()
    assert np.isfinite(matrix.astype(np.float32)).all()


@settings(max_examples=40, deadline=None)
@given(st.lists(rows, min_size=2, max_size=6), st.integers(0, 5))
def test_a_row_is_encoded_by_itself(records: list[dict[str, object]], which: int) -> None:
    which %= len(records)
    schema = infer()
    together = schema.encode(table(records))[which]
    assert together.tolist() == schema.encode(table([records[which]]))[0].tolist()


@settings(max_examples=20, deadline=None)
@given(st.lists(rows, min_size=1, max_size=8))
def test_encoding_is_deterministic_and_survives_json(records: list[dict[str, object]]) -> None:
    schema = infer()
    again = Schema.from_json(json.loads(json.dumps(schema.to_json())))
    assert (schema.encode(table(records)) == again.encode(table(records))).all()
    assert again.to_json() == schema.to_json()


def test_text_and_typed_cells_of_the_same_value_encode_alike() -> None:
    typed = pd.DataFrame({"age": [30, 40], "size": [1.5, np.nan], "state": ["NY", None]})
    text = pd.DataFrame({"age": ["30", "40.0"], "size": ["1.5", ""], "state": ["NY ", "?"]})
    assert (infer().encode(typed) == infer().encode(text)).all()


def test_cells_that_are_no_numbers_are_placed_and_count_as_missing() -> None:
    frame = pd.DataFrame(
        {"age": ["thirty", "?", "30", "inf"], "size": ["1", "2", "3", "4"], "state": ["CA"] * 4}
    )
    encoding = infer().encoding(frame)
    assert {name: rows.tolist() for name, rows in encoding.unreadable.items()} == {"age": [0, 3]}
    assert encoding.matrix[:, 1].tolist() == [1, 1, 0, 1]


def test_a_constant_public_column_is_not_divided_by_its_spread() -> None:
    schema = Schema.infer(pd.DataFrame({"a": ["0.1"] * 10}))
    assert schema.encode(pd.DataFrame({"a": ["1.1"]})) == pytest.approx(np.array([[1.0]]))


def test_a_declared_schema_is_completed_from_the_public_file() -> None:
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
        ({"columns": {"age": "numeric"}, "classes": ["one"]}, "at least two classes"),
        ({"columns": {"age": {"kind": "numeric", "scale": 0}}}, "scale of column 'age' is 0"),
        (
            {"columns": {"age": {"kind": "numeric", "center": float("nan")}}},
            "center of column 'age' is nan",
        ),
        ({"columns": {"age": "ignored"}}, "no column that could be a feature"),
        ({"columns": {"height": "numeric"}}, "'height' that the public file lacks"),
        ({"columns": {"state": "numeric"}}, "No public row has a number in column 'state'"),
    ],
)
def test_a_schema_that_says_too_little_or_nonsense_is_refused(
    declared: object, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        Schema.from_json(declared, public=PUBLIC)  # type: ignore[arg-type]


def test_schema_files_are_read_and_bad_ones_refused(tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(infer().to_json()))
    assert Schema.read(path).to_json() == infer().to_json()
    path.write_text("{")
    with pytest.raises(DataError, match="no JSON text") as caught:
        Schema.read(path)
    assert caught.value.__context__ is None  # an error of the json module carries the whole text
    with pytest.raises(DataError, match="cannot be read") as caught:
        Schema.read(tmp_path / "nowhere.json")
    assert caught.value.__context__ is None


def test_a_matrix_beyond_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_module, "memory_bytes", lambda: 100)
    with pytest.raises(DataError, match="more than this machine's memory"):
        infer().encode(PUBLIC)
