"""`secretballot audit`: exit codes, one JSON object, and messages."""

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from secretballot.cli import app

PROGRAM = f"{sys.executable} -S {Path(__file__).parents[1] / 'audit' / 'planted_faults.py'}"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [[age, 0.5] for age in range(60)]
    (tmp_path / "private.json").write_text(json.dumps(rows))
    (tmp_path / "neighbour.json").write_text(json.dumps([*rows, [None, 0.5]]))
    return tmp_path


def run(fault, *options):
    words = ["audit", "release", "--private", "private.json", "--neighbour", "neighbour.json"]
    words += ["--program", PROGRAM]
    return CliRunner().invoke(
        app, [*words, "--seed", "3", *options, "--", fault, "private.json", "--out", "x"]
    )


def test_a_finding_has_an_exit_code_of_its_own(folder):
    result = run("coin", "--runs", "30", "--json", "--jobs", "2")
    assert result.exit_code == 6
    found = json.loads(result.stdout)
    assert found["passed"] is False
    assert found["promise"]["epsilon"] == 0.5
    assert found["channels"][0]["tells"][0].startswith("student.json:")


def test_nothing_found_is_a_success_and_says_what_could_have_been(folder):
    result = run("none", "--runs", "6")
    assert result.exit_code == 0
    assert "PASSED" in result.stdout
    assert "so this audit cannot fail" in result.stdout


def test_mistakes_are_bad_input(folder):
    assert run("none", "--runs", "2").exit_code == 2
    assert run("none", "--confidence", "1").exit_code == 2
    result = run("none", "--change", "drop")
    assert result.exit_code == 2
    assert "not both" in result.stderr
