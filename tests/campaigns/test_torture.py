"""The torture campaign in small: killed commands go on, crowds cannot overspend, and faults
would be seen."""

import subprocess
import sys
from pathlib import Path

import pytest
from campaigns.torture import commands
from campaigns.torture.commands import (
    command,
    environment,
    leftovers,
    make_files,
    open_books,
    processes_of,
    processes_that_stay,
    temporary_place,
)
from campaigns.torture.kills import kills_of_commands
from campaigns.torture.races import folder_races, ledger_races
from typer.testing import CliRunner

from secretballot.cli import app

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/cwd").exists(), reason="this system has no /proc"
)


@pytest.mark.slow
def test_a_killed_command_goes_on_and_pays_once(tmp_path: Path) -> None:
    counts, faults = kills_of_commands("label", 12, tmp_path / "work", seed=11)
    assert faults == []
    assert counts["kills"] >= 12


def test_a_crowd_at_one_ledger_cannot_overspend(tmp_path: Path) -> None:
    counts, faults = ledger_races(96, tmp_path / "work", crowd=8)
    assert faults == []
    assert counts["bought"] == 48


def test_a_crowd_in_one_folder_pays_once(tmp_path: Path) -> None:
    _, faults = folder_races("choose", 1, tmp_path / "work", crowd=3)
    assert faults == []


def test_an_answer_that_is_not_the_paid_one_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(app, command("label")).exit_code == 0
    assert open_books(tmp_path).faults == []
    labels = tmp_path / "out" / "release" / "labels.csv"
    labels.write_text(labels.read_text() + "999,no,false\n")
    assert open_books(tmp_path).faults
    (tmp_path / "out" / ".release.draft").mkdir()
    assert leftovers(tmp_path) == ["out/.release.draft"]


def test_a_temporary_file_and_a_process_elsewhere_are_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "_CALM", 0.2)
    folder = tmp_path / "work"
    make_files(folder)
    (temporary_place(folder) / "student").touch()
    assert leftovers(folder) == ["temporary student"]
    child = subprocess.Popen(
        [sys.executable, "-c", "print('ready', flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd="/",
        env=environment(folder),
    )
    with child:
        assert child.stdout is not None
        child.stdout.readline()
        assert processes_that_stay(folder) == [child.pid]
        child.kill()
    assert processes_of(folder) == []
