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
