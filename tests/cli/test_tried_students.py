"""`secretballot learn` tries the student on the public file before the ledger is asked."""

from pathlib import Path
from typing import Any

import pytest
from patients import invoke, words_of_run, write_files
from typer.testing import Result

import secretballot as sb

METHODS = {
    "moments": (),
    "votes": ("--n-teachers", "30", "--set", "n_queries=60"),
}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    return write_files(tmp_path, 900)


def learn(folder: Path, *more: str) -> Result:
    return invoke(*words_of_run(folder, *more, unit=False))


def spent_in(folder: Path) -> list[Any]:
    ledger = folder / "out/vault/ledger.sqlite"
    return sb.Ledger.open_existing(ledger).history() if ledger.exists() else []


@pytest.mark.parametrize("method", list(METHODS))
def test_a_student_that_cannot_learn_costs_nothing(files: Path, method: str) -> None:
    result = learn(files, *METHODS[method], "--student", "strict_learners:NeverLearns")
    assert result.exit_code == 2
    assert "--student cannot be trained on the public points" in " ".join(result.stderr.split())
    assert "no heart for it" in result.stderr
    assert "Traceback" not in result.stderr
    assert spent_in(files) == []
    assert not (files / "out/release").exists()


@pytest.mark.parametrize("name", ["strict_learners:Contrary", "sklearn.svm:SVC", "knn:p=1"])
@pytest.mark.parametrize("method", list(METHODS))
def test_a_student_that_cannot_be_published_costs_nothing(
    files: Path, method: str, name: str
) -> None:
    result = learn(files, *METHODS[method], "--student", name)
    assert result.exit_code == 2
    words = " ".join(result.stderr.split())
    assert "--student cannot be published" in words
    assert "logistic regression, trees, forests, boosting" in words
    assert "leave the student out with --set exclude=student" in words
    assert spent_in(files) == []
    assert not (files / "out/release").exists()
