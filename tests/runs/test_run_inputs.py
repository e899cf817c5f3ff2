"""The tables of a run: what is refused, what is said, and to whom."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from secretballot.exceptions import DataError, ParameterError
from secretballot.runs.questions import Watch
from secretballot.runs.spec import RunSpec
from secretballot.runs.tables import RunInputs, check_classes

SECRET = "s3cr3t-cell"
PRIVATE = "age,state,income\n20,CA,low\n30,TX,high\n40,NY,low\n"
PUBLIC = "age,state\n25,CA\n35,NY\n"


def read(
    folder: Path, private: str = PRIVATE, public: str = PUBLIC, **settings: Any
) -> tuple[RunInputs, Watch]:
    (folder / "private.csv").write_text(private)
    (folder / "public.csv").write_text(public)
    files = {name: folder / f"{name}.csv" for name in ("private", "public")}
    fixed = {"target": "income", "classes": ("low", "high"), "epsilon": 1, "delta": 1e-6}
    watch = Watch()
    return RunInputs(RunSpec.read(**files | fixed | settings), watch), watch


def test_a_public_target_is_left_out_and_said(tmp_path: Path) -> None:
    plain = read(tmp_path)[0]
    inputs, watch = read(tmp_path, public="age,income,state\n25,low,CA\n35,high,NY\n")
    assert (inputs.X_public == plain.X_public).all()
    assert [note.private for note in watch.notes] == [False, True]
    assert "'income', which is the target" in watch.notes[0].text


def test_unread_numbers_are_placed_for_the_curator_alone(tmp_path: Path) -> None:
    _, watch = read(tmp_path, private=PRIVATE.replace("30", SECRET).replace("TX", "CA"))
    (note,) = watch.notes
    assert note.private
    assert (
        "Column 'age' of the private file: cells that are no numbers and count as missing: 1"
        in note.text
    )
    assert "(row 1)" in note.text
    assert SECRET not in note.text


def test_a_test_file_may_have_more_columns_but_needs_the_features_and_labels(
    tmp_path: Path,
) -> None:
    test = tmp_path / "test.csv"
    test.write_text("note,age,state,income\nx,20,CA,high\n")
    inputs, _ = read(tmp_path, evaluate=test)
    assert inputs.test is not None
    assert inputs.test.targets.tolist() == [1]
    test.write_text("age,state\n20,CA\n")
    with pytest.raises(DataError, match="test file has no column 'income'"):
        read(tmp_path, evaluate=test)


def test_classes_must_be_declared_by_option_or_schema(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"never from private labels.*--bounds"):
        read(tmp_path, classes=None)
    schema = tmp_path / "schema.json"
    schema.write_text(
        json.dumps(
            {"columns": {"age": "numeric", "state": ["CA", "NY"]}, "classes": ["high", "low"]}
        )
    )
    inputs, _ = read(tmp_path, classes=None, schema=schema)
    assert inputs.classes == ("high", "low")
    assert inputs.private.targets.tolist() == [1, 0, 1]
    assert read(tmp_path, schema=schema)[0].classes == ("low", "high")
    for value in ("1e400", '"\\ud800"'):  # which no file can hold
        columns = '{"age": "numeric", "state": ["CA", "NY"]}'
        schema.write_text(f'{{"columns": {columns}, "classes": ["low", {value}]}}')
        with pytest.raises((DataError, ParameterError)):
            read(tmp_path, classes=None, schema=schema)


def test_ids_that_repeat_and_copies_of_rows_are_shown_to_the_curator(tmp_path: Path) -> None:
    rows = "".join(f"{n % 40},{n % 7},CA,low\n" for n in range(80))
    public = "".join(f"{n},{n % 5},CA\n" for n in range(40))
    copies = "0,0,CA,low\n" * 12
    private = f"patient_id,age,state,income\n{rows}{copies}"
    public = f"patient_id,age,state\n{public}"
    inputs, watch = read(tmp_path, private=private, public=public)
    assert inputs.repeating_ids == ("patient_id",)
    assert "patient_id" not in inputs.schema.names
    (note,) = [note for note in watch.notes if "repeat another row" in note.text]
    assert note.private
    assert note.text.startswith("12 rows of the private file")
    assert read(tmp_path, private, public, unit="patient_id")[0].repeating_ids == ()
    assert read(tmp_path, private, public, drop=("patient_id",))[0].repeating_ids == ()


def test_kinds_of_columns_are_declared_where_the_file_leaves_them_open(tmp_path: Path) -> None:
    private = "id,seen,income\n1,01/02/2020,low\n2,03/02/2020,high\n2,13/02/2020,low\n"
    public = "id,seen\n1,01/02/2020\n2,02/03/2020\n3,04/05/2020\n"
    given = {"columns": "seen:day-first,id:numeric"}
    inputs, watch = read(tmp_path, private=private, public=public, **given)
    kinds = {name: one["kind"] for name, one in inputs.schema.to_json()["columns"].items()}
    assert kinds == {"id": "numeric", "seen": "date"}
    assert inputs.repeating_ids == ()
    assert not any("seen" in note.text for note in watch.notes)
    with pytest.raises(DataError, match="has no column 'saw', of which a kind is declared"):
        read(tmp_path, private=private, public=public, columns={"saw": "text"})


@pytest.mark.parametrize("classes", [(), ("a",), ("a", "a"), (1, "1"), (1, "1.0"), ("a", "")])
def test_classes_that_are_not_two_different_ones_are_refused(classes: tuple[object, ...]) -> None:
    with pytest.raises(ParameterError, match="two or more distinct values"):
        check_classes(classes)


def test_a_representation_shows_no_cell_class_or_unit(tmp_path: Path) -> None:
    """An error of a caller, a log or a debugger may print an object of the run."""
    inputs, _ = read(
        tmp_path,
        private=f"id,age,state,income\n{SECRET}1,31337,CA,low\n{SECRET}2,30,TX,high\n",
        unit="id",
    )
    encoding = inputs.schema.encoding(
        pd.DataFrame({"age": ["31337", SECRET], "id": ["1", "2"], "state": ["CA", "TX"]}),
        role="private file",
    )
    assert encoding.odd["age"].strange.size == 1
    for shown in (repr(inputs), repr(inputs.private), repr(encoding)):
        assert SECRET not in shown
        assert "31337" not in shown
