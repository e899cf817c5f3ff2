"""Public and test files with private rows are refused by every run, before anything is paid."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from secretballot.runs.choose import ChooseRun, run_choose
from secretballot.runs.learn import LearnRun, run_learn
from secretballot.runs.records import RecordsRun, run_records
from secretballot.runs.table_votes import TableRun, run_table

from secretballot.exceptions import DataError
from secretballot.runs import tables as run_tables
from secretballot.runs.check import check_tables_of_run
from secretballot.runs.progress import Watch
from secretballot.runs.quote import quote_of_run
from secretballot.runs.tables import RunTables

N = 900


def people(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age, ward = rng.normal(50, 15, n), rng.choice(["north", "south"], n)
    ill = np.where(age + rng.normal(0, 5, n) > 50, "yes", "no")
    return pd.DataFrame({"age": age, "ward": ward, "ill": ill, "days": rng.normal(5, 1, n)})


def files(folder: Path, part: str | None, **more: Any) -> RunTables:
    """Write tables of which one has a quarter of private rows, its columns in another order."""
    private, public, test = people(N, 0), people(300, 1), people(400, 2)
    if part == "public":
        public = pd.concat([public, private[:100]])
    elif part == "evaluate":
        test = pd.concat([test, private[:133].assign(ill="no", days=0.5)])
    private.to_csv(folder / "private.csv", index=False)
    public.drop(columns=["ill", "days"]).iloc[:, ::-1].to_csv(folder / "public.csv", index=False)
    test.iloc[:, ::-1].to_csv(folder / "test.csv", index=False)
    given: dict[str, Any] = {"target": "ill", "classes": ("no", "yes"), "drop": ("days",)}
    places = [folder / f"{name}.csv" for name in ("private", "public")]
    return RunTables(*places, **given | more, evaluate=folder / "test.csv", publish_metrics=True)


def _votes(tables: RunTables, out: Path, **more: Any) -> tuple[Callable[..., Any], Any]:
    return run_learn, LearnRun(tables, 1.0, 1e-6, out, **more)


def _moments(tables: RunTables, out: Path, **more: Any) -> tuple[Callable[..., Any], Any]:
    return run_records, RecordsRun(tables, 1.0, 1e-6, out, **more)


def _numbers(tables: RunTables, out: Path, **more: Any) -> tuple[Callable[..., Any], Any]:
    number = replace(tables, target="days", classes=None, bounds=(0.0, 10.0), drop=("ill",))
    return run_table, TableRun(number, 1.0, 1e-6, out, **more)


def _choice(tables: RunTables, out: Path, **more: Any) -> tuple[Callable[..., Any], Any]:
    return run_choose, ChooseRun(tables, 1.0, out, hypotheses="stumps", **more)


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ("public", r"public file holds rows of the private file.*Nothing was spent"),
        ("evaluate", r"test file .* holds rows of the private file.*Nothing was spent"),
    ],
)
@pytest.mark.parametrize("run_of", [_votes, _moments, _numbers, _choice])
def test_private_rows_are_refused_before_anything_is_paid(
    tmp_path: Path, run_of: Callable[..., Any], part: str, words: str
) -> None:
    out, ledger = tmp_path / "out", tmp_path / "l.ledger"
    run, given = run_of(files(tmp_path, part), out, ledger=ledger)
    with pytest.raises(DataError, match=words):
        run(given)
    if not isinstance(given, ChooseRun):
        with pytest.raises(DataError, match=words):
            quote_of_run(given, Watch())
    assert not out.exists()
    assert not ledger.exists()


@pytest.mark.parametrize("part", [None, "public", "evaluate"])
def test_a_check_names_the_file_that_holds_private_rows(tmp_path: Path, part: str | None) -> None:
    found = [str(error) for error in check_tables_of_run(files(tmp_path, part)).stopping]
    names = {"public": "public file", "evaluate": "test file"}
    assert ["rows of the private file" in one and names[part or ""] in one for one in found] == (
        [True] if part else []
    )


@pytest.mark.parametrize("part", ["public", "evaluate"])
def test_private_rows_on_disk_are_found_block_by_block(
    tmp_path: Path, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_tables, "MOST_IN_MEMORY", 0)
    monkeypatch.setattr("secretballot.runs.stored_records.BLOCK_ROWS", 100)
    run, given = _moments(files(tmp_path, part), tmp_path / "out", ledger=tmp_path / "l.ledger")
    for _ in range(2):  # kept in the vault or not, all rows are compared
        with pytest.raises(DataError, match="holds rows of the private file"):
            quote_of_run(given, Watch())
        with pytest.raises(DataError, match="holds rows of the private file"):
            run(given)
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "l.ledger").exists()


def test_rows_of_one_person_are_no_coincidence(tmp_path: Path) -> None:
    tables = files(tmp_path, "public", unit="person")
    private = pd.concat([people(N, 0).assign(person=range(N))] * 4)
    private.to_csv(tmp_path / "private.csv", index=False)
    _, given = _moments(tables, tmp_path / "out", ledger=tmp_path / "l.ledger")
    with pytest.raises(DataError, match="public file holds rows of the private file"):
        quote_of_run(given, Watch())


def test_honest_files_pass(tmp_path: Path) -> None:
    _, given = _moments(files(tmp_path, None), tmp_path / "out", ledger=tmp_path / "l.ledger")
    assert quote_of_run(given, Watch()).epsilon == 1.0
