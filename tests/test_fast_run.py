"""What `make test-fast` leaves out, and what `make test` leaves to `make test-runs`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
LONG_FILES = (HERE / "long_files.txt").read_text().split()
WHOLE_RUNS = (HERE / "whole_runs.txt").read_text().split()


@pytest.mark.parametrize("names", [LONG_FILES, WHOLE_RUNS])
def test_files_that_are_left_out_are_there(names: list[str]) -> None:
    assert [name for name in names if not (HERE / name).is_file()] == []
    assert sorted(set(names)) == names


def test_they_and_no_others_are_left_out() -> None:
    words = ["--collect-only", "--fast", "-q", "-o", "addopts=", "queries"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words],
        cwd=HERE,
        env={name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"},
        capture_output=True,
        text=True,
        check=False,
    )
    found = {line.split("::")[0].removeprefix("tests/") for line in done.stdout.splitlines()}
    kept = {path.relative_to(HERE).as_posix() for path in (HERE / "queries").glob("test_*.py")}
    assert kept & {*LONG_FILES}
    assert {name for name in found if name.endswith(".py")} == kept - {*LONG_FILES}
