"""The table of exit codes in docs/reference/command-line.md, row by row: each code comes about as
it says, and no other does."""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from patients import invoke
from typer.testing import Result

import secretballot_verify
from secretballot.cli.outcome import EXIT_CODES
from secretballot.core.ledger import Ledger

FAULTY = f"{sys.executable} -S {Path(__file__).parents[1] / 'audit' / 'planted_faults.py'}"
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "command-line.md"


def label(folder: Path, *more: str) -> Result:
    """Buy labels from a ledger that admits one such run."""
    if not (folder / "l").exists():
        (folder / "counts.csv").write_text("a,b\n" + "2,38\n" * 20)
        create = ["ledger", "create", str(folder / "l"), "--dataset", "d", "--total", "1,1e-5"]
        assert invoke(*create).exit_code == 0
    words = ["label", str(folder / "counts.csv"), "--kind", "counts", "--classes", "a,b"]
    price = ["--epsilon", "1", "--delta", "1e-5", "--ledger", str(folder / "l"), "--dataset", "d"]
    return invoke(*words, *price, "--out", str(folder / "out"), *more)


def done(folder: Path, _: pytest.MonkeyPatch) -> Result:
    assert label(folder).exit_code == 0
    return label(folder)  # finished: a repeated command is done as well


def defect(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Result:
    monkeypatch.setattr("secretballot.runs.run.settle_request", lambda *_, **__: {}["private cell"])
    result = label(folder)
    assert "private cell" not in result.output
    return result


def bad_input(folder: Path, _: pytest.MonkeyPatch) -> Result:
    return label(folder, "--classes", "a,a")


def damaged_ledger(folder: Path, _: pytest.MonkeyPatch) -> Result:
    assert label(folder).exit_code == 0
    (folder / "l").write_bytes((folder / "l").read_bytes()[:5000])
    return label(folder, "--out", str(folder / "more"))


def no_certificate(folder: Path, _: pytest.MonkeyPatch) -> Result:
    (folder / "release").mkdir()
    key, release = str(folder / "key"), str(folder / "release")
    assert invoke("sign", "--new-key", key).exit_code == 0
    result = invoke("sign", release, "--key", key)
    assert "There is no certificate at " in result.stderr
    return result


def beyond_budget(folder: Path, _: pytest.MonkeyPatch) -> Result:
    assert label(folder).exit_code == 0
    spent = Ledger.open_existing(folder / "l").spent()
    refused = label(folder, "--out", str(folder / "more"))
    assert Ledger.open_existing(folder / "l").spent() == spent
    assert not (folder / "more").exists()
    return refused


def changed_certificate(folder: Path, _: pytest.MonkeyPatch) -> Result:
    assert label(folder).exit_code == 0
    certificate = folder / "out" / "release" / "certificate.json"
    certificate.write_text(certificate.read_text().replace('"epsilon": 1.0', '"epsilon": 0.5'))
    return invoke("verify", str(folder / "out"))


def undecided(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Result:
    assert label(folder).exit_code == 0
    unsure = [
        secretballot_verify.Finding(
            "price", secretballot_verify.UNDECIDED, "Beyond what this program can price."
        )
    ]
    monkeypatch.setattr("secretballot.cli.verbs.each_finding", lambda *_, **__: unsure)
    return invoke("verify", "--independent", str(folder / "out"))


def found_by_audit(folder: Path, _: pytest.MonkeyPatch) -> Result:
    private, neighbour = folder / "private.json", folder / "neighbour.json"
    rows: list[list[float | None]] = [[age, 0.5] for age in range(60)]
    private.write_text(json.dumps(rows))
    # a missing value, which the planted fault lets out
    neighbour.write_text(json.dumps([*rows, [None, 0.5]]))
    inputs = ["--private", str(private), "--neighbour", str(neighbour)]
    settings = ["--program", FAULTY, "--runs", "30", "--random-state", "3", "--n-jobs", "2"]
    return invoke("audit", "release", *inputs, *settings, "--", "coin", str(private), "--out", "x")


def failed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Result:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr("secretballot.runs.run.publish", refuse)
        result = label(folder)
    assert label(folder).exit_code == 0  # charged once: the account admits one such run
    return result


def interrupted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Result:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as pressed:
        pressed.setattr("secretballot.runs.run.settle_request", interrupt)
        result = label(folder)
    assert label(folder).exit_code == 0  # the same command goes on
    return result


Case = Callable[[Path, pytest.MonkeyPatch], Result]
CASES: tuple[tuple[int, Case], ...] = (
    (0, done),
    (1, defect),
    (2, bad_input),
    (2, damaged_ledger),
    (3, beyond_budget),
    (4, changed_certificate),
    (4, no_certificate),
    (5, undecided),
    (6, found_by_audit),
    (7, failed),
    (130, interrupted),
)


def rows() -> dict[int, str]:
    """Return the rows of the table: what each code means."""
    table = PAGE.read_text().split("## Exit codes", 1)[1]
    return {
        int(code): words
        for code, words in re.findall(r"^\| (\d+) \| (.*) \|$", table, re.MULTILINE)
    }


def test_the_help_and_the_page_name_every_code() -> None:
    helped = re.findall(r"\b(\d+) [a-z]", EXIT_CODES)
    assert {code for code, _ in CASES} == set(map(int, helped)) == {*rows()}


@pytest.mark.parametrize(("code", "case"), CASES)
def test_every_code_comes_about_as_the_table_says(
    code: int, case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = case(tmp_path, monkeypatch)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    if code:
        said = [line for line in result.stderr.splitlines() if line.startswith("secretballot: ")]
        # verify and audit print what they found instead
        assert len(said) == (0 if case in (changed_certificate, undecided, found_by_audit) else 1)
