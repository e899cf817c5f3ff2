"""`secretballot learn` by each method of tables: what it writes, resumption, and poor tables."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from patients import document_of, invoke, words_of_run, write_files
from typer.testing import Result

from secretballot.core.ledger import Ledger
from secretballot.core.ledger.account import AnswerPage

N_PRIVATE = 1_500
RECORD_VOTES = ("--method", "record-votes")
QUIET = ("--set", "exclude=report", "--json")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    return write_files(tmp_path, N_PRIVATE)


def learn(folder: Path, *more: str, unit: bool = False) -> Result:
    """Run a small, complete command; later options override earlier ones."""
    return invoke(*words_of_run(folder, *more, unit=unit))


def certificate_in(folder: Path) -> dict[str, Any]:
    text = (folder / "out" / "release" / "certificate.json").read_text()
    found: dict[str, Any] = json.loads(text)
    return found


def test_persons_relation_records_and_ledger(files: Path) -> None:
    more = ["--ledger", str(files / "l.sqlite"), "--dataset", "registry", "--set", "n_records=900"]
    document = document_of(learn(files, *more, "--json", "--set", "exclude=report", unit=True))
    assert document["method"] == "record-moments"
    certificate = json.loads((files / "out/release/certificate.json").read_text())
    assert (certificate["unit"], certificate["unit_column"]) == ("user", "patient")
    assert certificate["public"]["n_records"] is None  # the sums count them
    assert certificate["composition"]["dataset"] == "registry"
    out = ["--out", str(files / "two"), "--set", "relation=replace-one", "--set", "exclude=report"]
    assert learn(files, *out).exit_code == 0
    second = json.loads((files / "two/release/certificate.json").read_text())
    assert second["public"]["n_records"] == N_PRIVATE


@pytest.mark.parametrize("stage", [0, 2])
def test_a_run_that_was_interrupted_between_stages_pays_once(
    files: Path, monkeypatch: pytest.MonkeyPatch, stage: int
) -> None:
    drawn: list[Any] = []
    add = AnswerPage.add

    def interrupted(self: AnswerPage, answers: Any) -> None:
        if len(drawn) == stage:
            raise KeyboardInterrupt
        drawn.append(answers[0][1])
        add(self, answers)

    with monkeypatch.context() as broken:
        broken.setattr(AnswerPage, "add", interrupted)
        assert learn(files).exit_code == 130
    ledger = Ledger.open_existing(files / "private.csv.ledger")
    assert ledger.spent().epsilon == 2.0
    document = document_of(learn(files, *QUIET))
    assert document["resumed"]
    sums = certificate_in(files)["released"]["values"]
    # behind a mark and two numbers
    assert [np.frombuffer(one[32:], "<i8").tolist() for one in drawn] == sums[:stage]
    assert (ledger.spent().epsilon, len(ledger.history())) == (2.0, 1)


def changed(files: Path, name: str, change: Any) -> None:
    table = pd.read_csv(files / name)
    change(table).to_csv(files / name, index=False)


BAD_TABLES = {
    "a constant public column": ("public.csv", lambda t: t.assign(dose=3.0)),
    "one class": ("private.csv", lambda t: t.assign(ill="yes")),
    "odd numbers in one record": (
        "private.csv",
        lambda t: t.assign(dose=["inf", "nan", "-inf", "1e400", *t["dose"][4:]]),
    ),
    "one record": ("private.csv", lambda t: t.head(1)),
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_poor_tables_give_a_model_all_the_same(files: Path, name: str) -> None:
    changed(files, *BAD_TABLES[name])
    # a method in turn
    more = RECORD_VOTES if [*BAD_TABLES].index(name) % 2 else ()
    test = ["--evaluate", str(files / "test.csv"), "--confirm", "records"]
    document = document_of(learn(files, *more, *test, *QUIET))
    assert 0 <= document["accuracy"] <= 1
    assert invoke("verify", str(files / "out")).exit_code == 0


def test_public_points_that_tell_nothing_are_refused_before_anything_is_paid(files: Path) -> None:
    for change in (lambda t: t.assign(age=40, ward="north", dose=3.0), lambda t: t.head(3)):
        changed(files, "public.csv", change)
        result = learn(files, "--set", "accept_unseen=ward")
        assert result.exit_code == 2
        assert "all alike" in result.stderr
    assert not (files / "out").exists()
