"""A small table of patients, as files, and the command that learns from them."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from secretballot.cli import app

N_PRIVATE, N_PUBLIC, N_TEST = 1500, 150, 300


def rows(count, seed):
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


def write_files(folder, n_private=N_PRIVATE):
    """Write private, public and test files and return their folder."""
    rows(n_private, 1).to_csv(folder / "private.csv", index=False)
    rows(N_PUBLIC, 2)[["age", "ward", "dose"]].to_csv(folder / "public.csv", index=False)
    rows(N_TEST, 3).drop(columns="patient").to_csv(folder / "test.csv", index=False)
    return folder


def words_of_run(folder, *more, unit=False):
    """Return a small, complete command; later options override earlier ones."""
    tables = [str(folder / "private.csv"), str(folder / "public.csv"), "--target", "ill"]
    price = ["--classes", "no,yes", "--epsilon", "2", "--delta", "1e-5", "--total", "20,1e-2"]
    patient = ["--unit", "patient"] if unit else ["--drop", "patient"]
    return ["learn", *tables, *price, *patient, "--out", str(folder / "out"), *more]


def invoke(*words):
    """Run the program on these words."""
    return CliRunner().invoke(app, [str(word) for word in words])


def broken_off(*words):
    """Run the program on these words as far as to what it publishes, and interrupt it there."""

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as broken:
        broken.setattr("secretballot.runs.run.publish", interrupt)
        assert invoke(*words).exit_code == 130


def certificate_in(folder):
    """Return the certificate of the run in a folder."""
    return json.loads((folder / "release" / "certificate.json").read_text())


def document_of(result):
    """Return what a verb that ended well printed with ``--json``."""
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)
