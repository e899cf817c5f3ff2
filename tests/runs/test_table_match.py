"""Columns that are written otherwise than the public ones stop a run before it pays, and the
curator alone is told."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from secretballot.exceptions import DataError
from secretballot.runs.questions import Note, Watch
from secretballot.runs.spec import RunSpec
from secretballot.runs.tables import RunInputs, check_tables, table_digests

N = 100


def people(rows: int = N) -> pd.DataFrame:
    rng = np.random.default_rng(4)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 90, rows).astype(str),
            "ward": rng.choice(["north", "south"], rows),
            "ill": rng.choice(["no", "yes"], rows),
        }
    )


def spec_of(folder: Path, private: pd.DataFrame, public: pd.DataFrame, **more: Any) -> RunSpec:
    private.to_csv(folder / "private.csv", index=False)
    public.to_csv(folder / "public.csv", index=False)
    files = {name: folder / f"{name}.csv" for name in ("private", "public")}
    fixed = {"target": "ill", "classes": ("no", "yes"), "epsilon": 1, "delta": 1e-6}
    return RunSpec.read(**files | fixed | more)


def read(
    folder: Path, private: pd.DataFrame, public: pd.DataFrame | None = None, **more: Any
) -> tuple[RunInputs, Watch]:
    watch = Watch()
    public = people().drop(columns="ill") if public is None else public
    return RunInputs(spec_of(folder, private, public, **more), watch), watch


def notes_of(watch: Watch) -> list[Note]:
    """Return the notes but that on copies of rows, of which small tables have some."""
    return [note for note in watch.notes if "repeat another row" not in note.text]


def abbreviated(share: float = 1.0) -> pd.DataFrame:
    private = people()
    rows = int(share * N)
    private.loc[: rows - 1, "ward"] = private["ward"].str[0].str.upper()
    return private


@pytest.mark.parametrize(("share", "stops"), [(0.5, False), (0.51, True)])
def test_half_of_the_cells_is_the_limit(tmp_path: Path, share: float, stops: bool) -> None:
    if stops:
        with pytest.raises(DataError, match=r"column 'ward', 51 %"):
            read(tmp_path, abbreviated(share))
    else:
        _, watch = read(tmp_path, abbreviated(share))
        (note,) = notes_of(watch)
        assert note.private
        assert "Column 'ward' of the private file: 50 % of its cells are none" in note.text


def test_empty_cells_do_not_count_as_misfits(tmp_path: Path) -> None:
    private = people()
    private.loc[: N - 11, "ward"] = "?"
    _, watch = read(tmp_path, private)
    assert not notes_of(watch)
    # of those that say something, most are strange
    private.loc[N - 10 : N - 2, "ward"] = "N"
    with pytest.raises(DataError, match=r"column 'ward', 90 %"):
        read(tmp_path, private)


def test_rare_values_that_the_public_file_has_too_stop_nothing(tmp_path: Path) -> None:
    # 200 categories are kept, so that a third of the public cells are none of them either
    kept = [f"k{i}" for i in range(200) for _ in range(4)]
    public = pd.DataFrame({"city": kept + [f"r{i}" for i in range(400)]})
    private = pd.DataFrame({"city": [f"s{i}" for i in range(60)] + ["k1"] * 40, "ill": "no"})
    _, watch = read(tmp_path, private, public)
    assert not notes_of(watch)


def test_an_accepted_column_goes_on_and_nothing_of_the_run_tells_of_it(tmp_path: Path) -> None:
    public = people().drop(columns="ill")
    plain = spec_of(tmp_path, abbreviated(0.4), public)
    accepting = spec_of(tmp_path, abbreviated(0.4), public, accept_unseen="ward")
    # all that a release is made of, and all that a vault remembers, is the same
    assert plain.identity() == accepting.identity()
    assert table_digests(plain) == table_digests(accepting)
    one, other = RunInputs(plain, Watch()), RunInputs(accepting, Watch())
    assert (one.private.X == other.private.X).all()
    assert (one.X_public == other.X_public).all()
    assert one.schema == other.schema
    inputs, watch = read(tmp_path, abbreviated(), accept_unseen=("ward",))
    assert inputs.private.X[:, -1].all()
    assert [note.private for note in notes_of(watch)] == [True]


def test_a_public_file_that_does_not_fit_its_schema_is_refused(tmp_path: Path) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text(json.dumps({"columns": {"age": "numeric", "ward": ["N", "S"]}}))
    with pytest.raises(DataError, match=r"public file does not fit .* categories of the schema"):
        read(tmp_path, people(), schema=schema)
    _, watch = read(tmp_path, people()[1:], schema=schema, accept_unseen=("ward",))
    assert [note.private for note in notes_of(watch)] == [False]


def test_a_check_says_at_once_which_tables_do_not_fit_and_what_would_be_asked(
    tmp_path: Path,
) -> None:
    public = people(30).drop(columns="ill").assign(patient_id=range(30))
    people(30).assign(ward="W", patient_id=0).to_csv(tmp_path / "test.csv", index=False)
    private = abbreviated().assign(patient_id=0)
    check = check_tables(spec_of(tmp_path, private, public, evaluate=tmp_path / "test.csv"))
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
    # what cannot be read at all is refused as by a run
    with pytest.raises(DataError, match="no column 'person'"):
        check_tables(spec_of(tmp_path, private, public, unit="person"))


def test_a_check_of_tables_that_fit_finds_nothing(tmp_path: Path) -> None:
    private = people()
    private["person"] = [f"p{row // 2}" for row in range(N)]
    given = spec_of(tmp_path, private, people(30).drop(columns="ill"), unit="person")
    check = json.loads(json.dumps(check_tables(given)))
    assert (check["stopping"], check["units"], check["releasable"]) == ([], N // 2, False)
    assert check["classes"] == private["ill"].value_counts().to_dict()
