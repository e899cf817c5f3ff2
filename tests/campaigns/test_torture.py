"""The torture campaign in small: killed commands go on, crowds cannot overspend, and faults
would be seen."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from campaigns.torture import commands
from campaigns.torture.commands import (
    command,
    faults_in,
    folder_races,
    kills,
    leftovers,
    make_files,
    processes_of,
    processes_that_stay,
    temporary_place,
)
from typer.testing import CliRunner

from secretballot.cli import app

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/cwd").exists(), reason="this system has no /proc"
)


@pytest.mark.slow
def test_a_killed_command_goes_on_and_pays_once(tmp_path: Path) -> None:
    counts, faults = kills("label", 12, 11, tmp_path)
    assert faults == []
    assert counts["kills"] >= 12


def test_a_crowd_in_one_folder_pays_once(tmp_path: Path) -> None:
    _, faults = folder_races("choose", 1, 0, tmp_path, crowd=3)
    assert faults == []


def test_an_answer_that_is_not_the_paid_one_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(app, command("label")).exit_code == 0
    assert faults_in(tmp_path, Counter()) == []
    labels = tmp_path / "out" / "release" / "labels.csv"
    labels.write_text(labels.read_text() + "999,no,false\n")
    assert faults_in(tmp_path, Counter())
    (tmp_path / "out" / ".release.draft").mkdir()
    assert leftovers(tmp_path) == ["out/.release.draft"]


def test_a_temporary_file_and_a_process_elsewhere_are_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "_CALM", 0.2)
    folder = tmp_path / "work"
    make_files(folder)
    (temporary_place(folder) / "student").touch()
    assert leftovers(folder) == ["temporary/student"]
    child = subprocess.Popen(
        [sys.executable, "-c", "print('ready', flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd="/",
        env=os.environ | {"TMPDIR": str(temporary_place(folder))},
    )
    with child:
        assert child.stdout is not None
        child.stdout.readline()
        assert processes_that_stay(folder) == [child.pid]
        child.kill()
    assert processes_of(folder) == []
