"""Public and test files with private rows are refused by every run, before anything is paid."""

import numpy as np
import pandas as pd
import pytest

from secretballot.exceptions import DataError
from secretballot.runs import tables as run_tables
from secretballot.runs.run import quote, run
from secretballot.runs.spec import RunSpec
from secretballot.runs.tables import check_tables

N = 900


def people(n, seed):
    rng = np.random.default_rng(seed)
    age, ward = rng.normal(50, 15, n), rng.choice(["north", "south"], n)
    ill = np.where(age + rng.normal(0, 5, n) > 50, "yes", "no")
    return pd.DataFrame({"age": age, "ward": ward, "ill": ill, "days": rng.normal(5, 1, n)})


def spec_of(folder, part, method="record-moments", **more):
    """Write tables of which one has a quarter of private rows, its columns in another order."""
    private, public, test = people(N, 0), people(300, 1), people(400, 2)
    if part == "public":
        public = pd.concat([public, private[:100]])
    elif part == "evaluate":
        test = pd.concat([test, private[:133].assign(ill="no", days=0.5)])
    private.to_csv(folder / "private.csv", index=False)
    public.drop(columns=["ill", "days"]).iloc[:, ::-1].to_csv(folder / "public.csv", index=False)
    test.iloc[:, ::-1].to_csv(folder / "test.csv", index=False)
    fields = {
        "method": method,
        **{name: folder / f"{name}.csv" for name in ("private", "public")},
        "target": "ill",
        "classes": "no,yes",
        "drop": "days",
        "evaluate": folder / "test.csv",
        "publish_metrics": True,
        "epsilon": 1,
        "delta": 0 if method == "semi-private" else 1e-6,
        "total": (4, 1e-5),
        "out": folder / "out",
        "ledger": str(folder / "l.ledger"),
    }
    return RunSpec.read(**fields | more)


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ("public", r"public file holds rows of the private file.*Nothing was spent"),
        ("evaluate", r"test file .* holds rows of the private file.*Nothing was spent"),
    ],
)
@pytest.mark.parametrize(
    "more",
    [
        {"method": "pate"},
        {"method": "record-moments"},
        {"method": "pate", "target": "days", "classes": None, "bounds": "0,10", "drop": "ill"},
        {"method": "semi-private", "hypotheses": "stumps"},
    ],
    ids=["pate", "record-moments", "numbers", "semi-private"],
)
def test_private_rows_are_refused_before_anything_is_paid(tmp_path, more, part, words):
    spec = spec_of(tmp_path, part, **more)
    for perform in (run, quote, check_tables):
        with pytest.raises(DataError, match=words):
            perform(spec)
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "l.ledger").exists()


@pytest.mark.parametrize("part", ["public", "evaluate"])
def test_private_rows_on_disk_are_found_block_by_block(tmp_path, part, monkeypatch):
    monkeypatch.setattr(run_tables, "MOST_IN_MEMORY", 0)
    monkeypatch.setattr("secretballot.runs.tables.BLOCK_ROWS", 100)
    spec = spec_of(tmp_path, part)
    for perform in (quote, run, quote, run):  # kept in the vault or not, all rows are compared
        with pytest.raises(DataError, match="holds rows of the private file"):
            perform(spec)
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "l.ledger").exists()


def test_rows_of_one_person_are_no_coincidence(tmp_path):
    spec = spec_of(tmp_path, "public", unit="person")
    private = pd.concat([people(N, 0).assign(person=range(N))] * 4)
    private.to_csv(tmp_path / "private.csv", index=False)
    with pytest.raises(DataError, match="public file holds rows of the private file"):
        quote(spec)


def test_honest_files_pass(tmp_path):
    spec = spec_of(tmp_path, None)
    assert quote(spec).epsilon == 1.0
    assert check_tables(spec)["stopping"] == []
