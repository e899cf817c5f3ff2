"""What a reader learns of the curator (`[about]`): from the command line to every page."""

import json
from pathlib import Path

import numpy as np
import pytest
from patients import words_of_run, write_files
from typer.testing import CliRunner

from secretballot.cli import app
from secretballot.core.ledger import Ledger

ABOUT = {"title": "Stays in the wards", "controller": "The trust", "contact": "office@example.org"}

PURPOSE = "To plan beds"


def words_of(**about: str) -> list[str]:
    return [word for name, text in about.items() for word in ("--set", f"{name}={text}")]


WORDS = words_of(**ABOUT, purpose=PURPOSE)


def commands(folder: Path) -> dict[str, list[str]]:
    """Return a command of each kind of release."""
    learn = words_of_run(folder)
    np.save(folder / "votes.npy", np.arange(600).reshape(20, 30) % 2)
    label = ["label", str(folder / "votes.npy"), "--kind", "votes", "--classes", "0,1"]
    words_of_price = ["--epsilon", "2", "--delta", "1e-5", "--total", "20,1e-2"]
    return {
        "votes": [*learn, "--n-teachers", "10"],
        "label": [*label, *words_of_price, "--out", str(folder / "out")],
    }


@pytest.mark.parametrize("kind", ["votes", "label"])
def test_words_reach_certificate_ledger_and_pages(tmp_path: Path, kind: str) -> None:
    words = commands(write_files(tmp_path, 300))[kind]
    result = CliRunner().invoke(app, [*words, *WORDS, "--ledger", str(tmp_path / "own.ledger")])
    assert result.exit_code == 0, result.stderr
    release = tmp_path / "out" / "release"
    certificate = json.loads((release / "certificate.json").read_text())
    assert certificate["about"] == ABOUT
    assert certificate["purpose"] == PURPOSE
    ledger = Ledger.open_existing(tmp_path / "own.ledger")
    assert [entry.purpose for entry in ledger.history()] == [PURPOSE]
    for name in ("report.html", "README.txt"):
        text = " ".join((release / name).read_text().split())
        assert all(said in text for said in (*ABOUT.values(), PURPOSE))
    assert CliRunner().invoke(app, ["verify", str(release), "--independent"]).exit_code == 0


def test_words_may_be_said_otherwise_later_but_not_the_purpose_that_was_paid_for(
    tmp_path: Path,
) -> None:
    words = words_of_run(write_files(tmp_path, 300), "--ledger", str(tmp_path / "own.ledger"))
    assert CliRunner().invoke(app, [*words, *WORDS]).exit_code == 0
    # as if the run had been broken off when the release was written
    release = tmp_path / "out" / "release"
    for path in release.iterdir():
        path.unlink()
    release.rmdir()
    other = CliRunner().invoke(app, [*words, *words_of(**ABOUT, purpose="To sell ads")])
    assert other.exit_code == 2
    assert "an interrupted run that differs in purpose" in other.stderr
    again = CliRunner().invoke(
        app, [*words, *words_of(**ABOUT | {"title": "Wards"}, purpose=PURPOSE)]
    )
    assert again.exit_code == 0, again.stderr
    certificate = json.loads((release / "certificate.json").read_text())
    assert certificate["about"] == ABOUT | {"title": "Wards"}
    ledger = Ledger.open_existing(tmp_path / "own.ledger")
    assert ledger.releases() == 1
