"""What a reader learns of the curator (`[about]`): from the command line to every page."""

import json
from pathlib import Path

from patients import invoke, words_of_run, write_files

from secretballot.core.ledger import Ledger

ABOUT = {"title": "Stays in the wards", "controller": "The trust", "contact": "office@example.org"}

PURPOSE = "To plan beds"


def words_of(**about: str) -> list[str]:
    return [word for name, text in about.items() for word in ("--set", f"{name}={text}")]


WORDS = words_of(**ABOUT, purpose=PURPOSE)


def test_words_reach_certificate_ledger_and_pages(tmp_path: Path) -> None:
    words = words_of_run(write_files(tmp_path, 300), "--n-teachers", "10")
    result = invoke(*words, *WORDS, "--ledger", str(tmp_path / "own.ledger"))
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
    assert invoke("verify", str(release), "--independent").exit_code == 0


def test_words_may_be_said_otherwise_later_but_not_the_purpose_that_was_paid_for(
    tmp_path: Path,
) -> None:
    words = words_of_run(write_files(tmp_path, 300), "--ledger", str(tmp_path / "own.ledger"))
    assert invoke(*words, *WORDS).exit_code == 0
    # as if the run had been broken off when the release was written
    release = tmp_path / "out" / "release"
    for path in release.iterdir():
        path.unlink()
    release.rmdir()
    other = invoke(*words, *words_of(**ABOUT, purpose="To sell ads"))
    assert other.exit_code == 2
    assert "an interrupted run that differs in purpose" in other.stderr
    again = invoke(*words, *words_of(**ABOUT | {"title": "Wards"}, purpose=PURPOSE))
    assert again.exit_code == 0, again.stderr
    certificate = json.loads((release / "certificate.json").read_text())
    assert certificate["about"] == ABOUT | {"title": "Wards"}
    ledger = Ledger.open_existing(tmp_path / "own.ledger")
    assert ledger.releases() == 1
