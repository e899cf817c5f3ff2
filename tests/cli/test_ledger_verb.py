"""`secretballot ledger`: to make an account, and to read one that is there."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from ledger_answers import answer
from made_events import counts_event
from secretballot.accounting import PrivacyBudget
from secretballot.cli import app
from secretballot.core.ledger import Ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    path = tmp_path / "registry.ledger"
    book = Ledger(path, dataset="registry", budget=PrivacyBudget(2.0, 1e-5))
    number = book.reserve(
        [counts_event(100.0, 1)], PrivacyBudget(0.5, 1e-6), request="one", purpose="learn"
    )
    answer(book, number, b"public answer")
    return path


def invoke(*words: str) -> Result:
    return CliRunner().invoke(app, ["ledger", *words])


def test_create_fixes_what_the_total_guarantees(tmp_path: Path) -> None:
    place = str(tmp_path / "l")
    words = ["create", place, "--dataset", "registry", "--total", "2,1e-5"]
    result = invoke(*words, "--unit", "user", "--relation", "replace-one")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("registry: each user, replace-one, basic composition\n")
    assert "left   epsilon 2          delta 1e-05" in result.stdout
    assert "Nothing was paid for yet." in result.stdout
    document = json.loads(invoke("show", place, "--json").stdout)
    assert (document["unit"], document["relation"]) == ("user", "replace-one")
    assert document["total"] == document["left"] == {"epsilon": 2.0, "delta": 1e-5}
    assert invoke(*words).exit_code == 2  # an account is made once


@pytest.mark.parametrize("total", ["2", "0,0", "2,1", "nan,1e-5", "two,1e-5"])
def test_a_total_that_cannot_be_leaves_no_file(tmp_path: Path, total: str) -> None:
    result = invoke("create", str(tmp_path / "l"), "--dataset", "d", f"--total={total}")
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("secretballot: --total is ")
    assert list(tmp_path.iterdir()) == []


def test_show_lists_releases_and_not_their_bytes(ledger: Path) -> None:
    result = invoke("show", str(ledger))
    assert result.exit_code == 0
    assert "epsilon 0.5        delta 1e-06      learn  committed" in result.stdout
    shown = invoke("show", str(ledger), "--json").stdout
    (entry,) = json.loads(shown)["releases"]
    assert (entry["state"], entry["events"][0]["kind"]) == ("committed", "counts")
    assert "public answer" not in result.stdout + shown
