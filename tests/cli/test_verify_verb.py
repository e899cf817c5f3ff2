"""`secretballot verify`: agree, or refuse with exit code 4."""

import json
from pathlib import Path
from typing import Any

import pytest
from patients import invoke

import secretballot as sb
from secretballot.core.mechanisms import NoisyVotes
from secretballot_verify import Finding


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    budget = sb.PrivacyBudget(1.0, 1e-6)
    ledger = sb.Ledger(tmp_path / "l", dataset="registry", budget=budget)
    votes = sb.votes_of_counts([[30, 70], [80, 20]])
    released = sb.release(votes, NoisyVotes(scale=30.0, release="counts"), ledger, budget)
    return sb.write_release(tmp_path / "release", released).path


def verify(path: Path) -> tuple[int, dict[str, Any], str]:
    result = invoke("verify", str(path), "--json")
    plain = invoke("verify", str(path))
    assert plain.exit_code == result.exit_code
    return result.exit_code, json.loads(result.stdout), plain.stdout


def test_a_true_certificate_verifies_from_file_release_or_run(folder: Path) -> None:
    for path in (folder / "certificate.json", folder, folder.parent):
        code, document, said = verify(path)
        assert (code, document["ok"]) == (0, True), said
        assert "The certificate verifies." in said


def test_a_certificate_alone_is_told_what_was_not_checked(folder: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone.json"
    (folder / "certificate.json").rename(alone)
    code, document, said = verify(alone)
    assert code == 0
    assert "not looked at" in said
    assert len(document["unchecked"]) == 1


def test_a_certificate_that_is_not_there_is_bad_input(tmp_path: Path) -> None:
    result = invoke("verify", str(tmp_path / "none.json"))
    assert result.exit_code == 2
    assert "There is no" in result.stderr


@pytest.mark.parametrize(
    ("verdict", "code", "words"), [("unsure", 5, "neither confirm nor"), ("FAILED", 4, "REFUSES")]
)
def test_the_second_opinion_decides_the_exit_code_where_the_first_agrees(
    folder: Path, monkeypatch: pytest.MonkeyPatch, verdict: str, code: int, words: str
) -> None:
    opinion = [Finding("files", "ok", "All."), Finding("price", verdict, "Hm.")]
    monkeypatch.setattr("secretballot.cli.verbs.each_finding", lambda *_: opinion)
    result = invoke("verify", str(folder), "--independent")
    assert result.exit_code == code
    assert words in result.stdout


def test_both_programs_look_at_the_same_certificate(folder: Path) -> None:
    other = folder / "other.json"
    (folder / "certificate.json").rename(other)
    (folder / "certificate.json").write_bytes(other.read_bytes())
    result = invoke("verify", str(other), "--independent")
    assert result.exit_code == 2
    assert "checks release folders" in result.stderr


def test_a_folder_without_a_certificate_does_not_verify_by_either_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for words in (["."], [".", "--independent"], [".", "--independent", "--json"]):
        result = invoke("verify", *words)
        assert (result.exit_code, result.stderr) == (4, "")
    document = json.loads(result.stdout)
    assert [finding["verdict"] for finding in document["independent"]] == ["FAILED"]
