"""`secretballot learn` tries the student on the public file before the ledger is asked."""

from pathlib import Path
from typing import Any

import pytest
from patients import invoke, words_of_run, write_files
from typer.testing import Result

import secretballot as sb

METHODS = {"moments": (), "votes": ("--n-teachers", "30", "--set", "n_queries=60")}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    return write_files(tmp_path, 900)


def learn(folder: Path, *more: str) -> Result:
    return invoke(*words_of_run(folder, *more, unit=False))


def spent_in(folder: Path) -> list[Any]:
    ledger = folder / "out/vault/ledger.sqlite"
    return sb.Ledger.open_existing(ledger).history() if ledger.exists() else []


UNFIT = {
    "strict_learners:NeverLearns": ("trained on the public points", "no heart for it"),
    "strict_learners:Contrary": ("published", "leave the student out with --set exclude=student"),
    "sklearn.svm:SVC": ("published", "logistic regression, trees, forests, boosting"),
}


@pytest.mark.parametrize("name", UNFIT)
@pytest.mark.parametrize("method", list(METHODS))
def test_a_student_that_cannot_learn_or_be_published_costs_nothing(
    files: Path, method: str, name: str
) -> None:
    result = learn(files, *METHODS[method], "--student", name)
    assert result.exit_code == 2
    words = " ".join(result.stderr.split())
    assert f"--student cannot be {UNFIT[name][0]}" in words
    assert UNFIT[name][1] in words
    assert "Traceback" not in words
    assert spent_in(files) == []
    assert not (files / "out/release").exists()
