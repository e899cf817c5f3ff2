"""The tables of a run: what is refused, what is said, to whom, and what stops it before it pays."""

import json

import numpy as np
import pandas as pd
import pytest

from secretballot.exceptions import DataError, ParameterError
from secretballot.runs.questions import Watch
from secretballot.runs.spec import RunSpec
from secretballot.runs.tables import RunInputs, check_classes, check_tables, table_digests

SECRET = "s3cr3t-cell"
PRIVATE = "age,state,income\n20,CA,low\n30,TX,high\n40,NY,low\n"
PUBLIC = "age,state\n25,CA\n35,NY\n"


def spec_of(folder, private, public, **settings):
    files = {}
    for name, table in (("private", private), ("public", public)):
        files[name] = folder / f"{name}.csv"
        files[name].write_text(table if isinstance(table, str) else table.to_csv(index=False))
    return RunSpec.read(**files | {"epsilon": 1, "delta": 1e-6} | settings)


def read(folder, private=PRIVATE, public=PUBLIC, **settings):
    watch = Watch()
    fixed = {"target": "income", "classes": ("low", "high")}
    return RunInputs(spec_of(folder, private, public, **fixed | settings), watch), watch


def test_a_public_target_is_left_out_and_said(tmp_path):
    plain = read(tmp_path)[0]
    inputs, watch = read(tmp_path, public="age,income,state\n25,low,CA\n35,high,NY\n")
    assert (inputs.X_public == plain.X_public).all()
    assert [note.private for note in watch.notes] == [False, True]
    assert "'income', which is the target" in watch.notes[0].text


def test_a_test_file_may_have_more_columns_but_needs_the_features_and_labels(tmp_path):
    test = tmp_path / "test.csv"
    test.write_text("note,age,state,income\nx,20,CA,high\n")
    inputs, _ = read(tmp_path, evaluate=test)
    assert inputs.test is not None
    assert inputs.test.targets.tolist() == [1]
    test.write_text("age,state\n20,CA\n")
    with pytest.raises(DataError, match="test file has no column 'income'"):
        read(tmp_path, evaluate=test)


def test_a_number_is_read_with_a_decimal_comma_where_a_public_column_is(tmp_path):
    public = "age;dose;state\n25,5;1,5;CA\n35,0;2,5;NY\n"
    private = "age;dose;state;pay\n20,5;1,5;CA;1.234,5\n30,0;k.A.;NY;7\n40,0;2,0;NY;xyz\n"
    settings = {"target": "pay", "classes": None, "bounds": (0, 9999)}
    inputs, watch = read(tmp_path, private, public, **settings)
    assert inputs.private.targets.tolist() == ["1234.5", "7", "xyz"]
    assert watch.notes[0].text.startswith("Decimal commas are read in columns 'age', 'dose': ")
    private = "state;pay\nCA;1.234,5\nNY;7\n"
    assert read(tmp_path, private, "state\nCA\nNY\n", **settings)[0].private.targets[0] == "1.234,5"


def test_classes_must_be_declared_by_option_or_schema(tmp_path):
    with pytest.raises(ParameterError, match=r"never from private labels.*--bounds"):
        read(tmp_path, classes=None)
    schema = tmp_path / "schema.json"
    columns = {"age": "numeric", "state": ["CA", "NY"]}
    schema.write_text(json.dumps({"columns": columns, "classes": ["high", "low"]}))
    inputs, _ = read(tmp_path, classes=None, schema=schema)
    assert inputs.classes == ("high", "low")
    assert inputs.private.targets.tolist() == [1, 0, 1]
    assert read(tmp_path, schema=schema)[0].classes == ("low", "high")
    for value in ("1e400", '"\\ud800"'):  # which no file can hold
        schema.write_text(f'{{"columns": {json.dumps(columns)}, "classes": ["low", {value}]}}')
        with pytest.raises((DataError, ParameterError)):
            read(tmp_path, classes=None, schema=schema)


def test_ids_that_repeat_and_copies_of_rows_are_shown_to_the_curator(tmp_path):
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


def test_kinds_of_columns_are_declared_where_the_file_leaves_them_open(tmp_path):
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
def test_classes_that_are_not_two_different_ones_are_refused(classes):
    with pytest.raises(ParameterError, match="two or more distinct values"):
        check_classes(classes)


def test_a_representation_shows_no_cell_class_or_unit(tmp_path):
    """An error of a caller, a log or a debugger may print an object of the run."""
    inputs, _ = read(
        tmp_path,
        private=f"id,age,state,income\n{SECRET}1,31337,CA,low\n{SECRET}2,30,TX,high\n",
        unit="id",
    )
    frame = pd.DataFrame({"age": ["31337", SECRET], "id": ["1", "2"], "state": ["CA", "TX"]})
    encoding = inputs.schema.encoding(frame, role="private file")
    assert encoding.odd["age"].strange.size == 1
    for shown in (repr(inputs), repr(inputs.private), repr(encoding)):
        assert SECRET not in shown
        assert "31337" not in shown


N = 100


def people(rows=N):
    rng = np.random.default_rng(4)
    age, ward = rng.integers(20, 90, rows).astype(str), rng.choice(["north", "south"], rows)
    return pd.DataFrame({"age": age, "ward": ward, "ill": rng.choice(["no", "yes"], rows)})


ILL = {"target": "ill", "classes": ("no", "yes")}


def read_people(folder, private, public=None, **more):
    public = people().drop(columns="ill") if public is None else public
    return read(folder, private, public, **ILL | more)


def notes_of(watch):
    """Return the notes but that on copies of rows, of which small tables have some."""
    return [note for note in watch.notes if "repeat another row" not in note.text]


def abbreviated(share=1.0):
    private = people()
    rows = int(share * N)
    private.loc[: rows - 1, "ward"] = private["ward"].str[0].str.upper()
    return private


def test_half_of_the_cells_is_the_limit(tmp_path):
    (note,) = notes_of(read_people(tmp_path, abbreviated(0.5))[1])
    assert note.private
    assert "Column 'ward' of the private file: 50 % of its cells are none" in note.text
    with pytest.raises(DataError, match=r"column 'ward', 51 %"):
        read_people(tmp_path, abbreviated(0.51))


def test_empty_cells_do_not_count_as_misfits(tmp_path):
    private = people()
    private.loc[: N - 11, "ward"] = "?"
    _, watch = read_people(tmp_path, private)
    assert not notes_of(watch)
    # of those that say something, most are strange
    private.loc[N - 10 : N - 2, "ward"] = "N"
    with pytest.raises(DataError, match=r"column 'ward', 90 %"):
        read_people(tmp_path, private)


def test_rare_values_that_the_public_file_has_too_stop_nothing(tmp_path):
    # 200 categories are kept, so that a third of the public cells are none of them either
    kept = [f"k{i}" for i in range(200) for _ in range(4)]
    public = pd.DataFrame({"city": kept + [f"r{i}" for i in range(400)]})
    private = pd.DataFrame({"city": [f"s{i}" for i in range(60)] + ["k1"] * 40, "ill": "no"})
    (note,) = notes_of(read_people(tmp_path, private, public)[1])
    assert note.text.startswith("Column 'city' holds categories: 600 different strings in 1200")


def test_an_accepted_column_goes_on_and_nothing_of_the_run_tells_of_it(tmp_path):
    public = people().drop(columns="ill")
    plain = spec_of(tmp_path, abbreviated(0.4), public, **ILL)
    accepting = spec_of(tmp_path, abbreviated(0.4), public, **ILL, accept_unseen="ward")
    # all that a release is made of, and all that a vault remembers, is the same
    assert plain.identity() == accepting.identity()
    assert table_digests(plain) == table_digests(accepting)
    one, other = RunInputs(plain, Watch()), RunInputs(accepting, Watch())
    assert (one.private.rows == other.private.rows).all()
    assert (one.X_public == other.X_public).all()
    assert one.schema == other.schema
    inputs, watch = read_people(tmp_path, abbreviated(), accept_unseen=("ward",))
    assert inputs.private.rows[:, -1].all()
    assert [note.private for note in notes_of(watch)] == [True]


def test_a_public_file_that_does_not_fit_its_schema_is_refused(tmp_path):
    schema = tmp_path / "schema.json"
    schema.write_text(json.dumps({"columns": {"age": "numeric", "ward": ["N", "S"]}}))
    with pytest.raises(DataError, match=r"public file does not fit .* categories of the schema"):
        read_people(tmp_path, people(), schema=schema)
    _, watch = read_people(tmp_path, people()[1:], schema=schema, accept_unseen=("ward",))
    assert [note.private for note in notes_of(watch)] == [False]


def test_a_check_says_at_once_which_tables_do_not_fit_and_what_would_be_asked(tmp_path):
    public = people(30).drop(columns="ill").assign(patient_id=range(30))
    people(30).assign(ward="W", patient_id=0).to_csv(tmp_path / "test.csv", index=False)
    private = abbreviated().assign(patient_id=0)
    check = check_tables(spec_of(tmp_path, private, public, **ILL, evaluate=tmp_path / "test.csv"))
    for words in (
        "private file does not fit (column 'ward', 100 %",
        "test file",
        "Column 'patient",
    ):
        assert sum(words in one for one in check["stopping"]) == 1, check["stopping"]
    assert check["rows"] == {"private": N, "public": 30, "test": 30}
    assert [column["name"] for column in check["columns"]] == ["ward", "age"]
    ward = check["columns"][0]
    assert (ward["strange"], ward["public_strange"]) == (1.0, 0.0)
    # what cannot be read_people at all is refused as by a run
    with pytest.raises(DataError, match="no column 'person'"):
        check_tables(spec_of(tmp_path, private, public, **ILL, unit="person"))


def test_a_check_of_tables_that_fit_finds_nothing(tmp_path):
    private = people()
    private["person"] = [f"p{row // 2}" for row in range(N)]
    given = spec_of(tmp_path, private, people(30).drop(columns="ill"), **ILL, unit="person")
    check = json.loads(json.dumps(check_tables(given)))
    assert (check["stopping"], check["units"], check["releasable"]) == ([], N // 2, False)
    assert check["classes"] == private["ill"].value_counts().to_dict()
