"""The encoder knows public data alone and treats every row by itself."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

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


def infer() -> Schema:
    return Schema.infer(PUBLIC, ignore=["income"])


def test_numbers_are_scaled_by_the_public_file_and_categories_have_an_other() -> None:
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
        ({"columns": {"height": "numeric"}}, "column 'height' open"),
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
    for content in ("{", "[" * 100_000):
        path.write_text(content)
        with pytest.raises(DataError, match="no JSON text") as caught:
            Schema.read(path)
        # an error of the json module carries the whole text
        assert caught.value.__context__ is None
    with pytest.raises(DataError, match="cannot be read") as caught:
        Schema.read(tmp_path / "nowhere.json")
    assert caught.value.__context__ is None
