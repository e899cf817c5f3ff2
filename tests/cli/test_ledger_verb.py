"""`secretballot ledger`: to make an account, and to read one that is there."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

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


def test_create_fixes_what_the_total_promises(tmp_path: Path) -> None:
    words = ["ledger", "create", str(tmp_path / "l"), "--dataset", "registry", "--epsilon", "2"]
    words += ["--delta", "1e-5"]
    result = CliRunner().invoke(
        app, [*words, "--unit-kind", "user", "--set", "relation=replace-one"]
    )
    assert result.exit_code == 0, result.stderr
    assert "for each user, under replace-one" in result.stdout
    document = json.loads(
        CliRunner().invoke(app, ["ledger", "show", str(tmp_path / "l"), "--json"]).stdout
    )
    assert (document["unit"], document["relation"]) == ("user", "replace-one")


def test_history_lists_releases_and_not_their_bytes(ledger: Path) -> None:
    result = CliRunner().invoke(app, ["ledger", "history", str(ledger)])
    assert result.exit_code == 0
    assert "committed" in result.stdout
    document = json.loads(
        CliRunner().invoke(app, ["ledger", "history", str(ledger), "--json"]).stdout
    )
    (entry,) = document["releases"]
    assert entry["state"] == "committed"
    assert entry["events"][0]["kind"] == "counts"
    assert "public answer" not in result.stdout


@pytest.mark.parametrize("verb", ["show", "history"])
def test_reading_never_makes_a_file(tmp_path: Path, verb: str) -> None:
    result = CliRunner().invoke(app, ["ledger", verb, str(tmp_path / "none")])
    assert result.exit_code == 2
    assert "There is no ledger" in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"no database at all" * 100])
def test_files_that_are_no_ledger_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    for path in (tmp_path / "file", tmp_path):
        result = CliRunner().invoke(app, ["ledger", "show", str(path)])
        assert result.exit_code == 2
        assert result.stderr.startswith("secretballot: ")
        assert result.stderr.count("\n") == 1
