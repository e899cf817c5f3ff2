"""The schema that `secretballot plan` writes: what each column is, to be edited and given back."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from patients import invoke
from typer.testing import Result

from secretballot.runs.questions import Watch
from secretballot.runs.spec import RunSpec
from secretballot.runs.tables import RunInputs


def table(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    days = np.datetime64("2019-01-01") + rng.integers(0, 700, rows)
    return pd.DataFrame(
        {
            "patient_id": rng.permutation(10**6)[:rows],
            "born": days.astype(str),
            "zip": rng.choice(["01234", "94110"], rows),
            "dose": rng.normal(size=rows).round(2),
            "ill": rng.choice(["no", "yes"], rows),
        }
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    table(100, 1).to_csv(tmp_path / "private.csv", index=False)
    table(100, 2).to_csv(tmp_path / "public.csv", index=False)
    return tmp_path


def schema(folder: Path, *more: str) -> Result:
    price = ["--target", "ill", "--epsilon", "1", "--delta", "1e-6"]
    return invoke("plan", str(folder / "public.csv"), *price, *more)


def test_a_run_with_the_schema_encodes_as_one_without(folder: Path) -> None:
    assert schema(folder, "--out", str(folder / "plan")).exit_code == 0
    out = folder / "plan" / "plan.schema.json"
    given: dict[str, Any] = {name: folder / f"{name}.csv" for name in ("private", "public")}
    given |= {"target": "ill", "classes": "no,yes", "epsilon": 1, "delta": 1e-6}
    plain, watch = RunInputs(RunSpec.read(**given), Watch()), Watch()
    declared = RunInputs(RunSpec.read(**given, schema=out), watch)
    assert declared.schema.to_json() == plain.schema.to_json()
    assert declared.X_public.tobytes() == plain.X_public.tobytes()
    assert declared.private.X.tobytes() == plain.private.X.tobytes()
    # what was asked about is settled by the schema; what is ignored is still said
    assert ["patient_id" in note.text for note in watch.notes] == [False, True]
