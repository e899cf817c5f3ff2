"""A small table of patients, as files, and the command that learns from them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from secretballot.cli import app

N_PUBLIC, N_TEST = 150, 300


def rows(count: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "patient": np.arange(count) // 2,
            "age": rng.integers(20, 90, count),
            "ward": rng.choice(["north", "south"], count),
            "dose": rng.normal(5, 2, count).round(2),
        }
    )
    score = table["age"] + 4 * table["dose"] + 10 * (table["ward"] == "north")
    table["ill"] = np.where(score + rng.normal(0, 6, count) > 80, "yes", "no")
    return table


def write_files(folder: Path, n_private: int) -> Path:
    """Write private, public and test files and return their folder."""
    rows(n_private, 1).to_csv(folder / "private.csv", index=False)
    rows(N_PUBLIC, 2)[["age", "ward", "dose"]].to_csv(folder / "public.csv", index=False)
    rows(N_TEST, 3).drop(columns="patient").to_csv(folder / "test.csv", index=False)
    return folder


def words_of_run(folder: Path, *more: str, unit: bool = False) -> list[str]:
    """Return a small, complete command; later options override earlier ones."""
    tables = [str(folder / "private.csv"), str(folder / "public.csv"), "--target", "ill"]
    price = ["--classes", "no,yes", "--epsilon", "2", "--delta", "1e-5", "--total", "20,1e-2"]
    patient = ["--unit", "patient"] if unit else ["--drop", "patient"]
    return ["learn", *tables, *price, *patient, "--out", str(folder / "out"), *more]


def invoke(*words: object) -> Result:
    """Run the program on these words."""
    return CliRunner().invoke(app, [str(word) for word in words])


def broken_off(*words: object) -> None:
    """Run the program on these words as far as to what it publishes, and interrupt it there."""

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as broken:
        broken.setattr("secretballot.runs.run.publish", interrupt)
        assert invoke(*words).exit_code == 130


def document_of(result: Result) -> dict[str, Any]:
    """Return what a verb that ended well printed with ``--json``."""
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found
