"""Learners with settings, and classes of one's own in the current folder, from the command line."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from patients import words_of_run, write_files

from secretballot.cli.screens import find_in_this_folder

CLASS = """
from sklearn.linear_model import LogisticRegression
from {helper} import C
class Mine(LogisticRegression):
    def __init__(self, C=C, max_iter=500):
        super().__init__(C=C, max_iter=max_iter)
"""


@pytest.fixture
def path_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))


def own_module(folder: Path, name: str) -> None:
    (folder / f"{name}.py").write_text(CLASS.format(helper=f"{name}_help"))
    (folder / f"{name}_help.py").write_text("C = 3.0\n")


def test_a_class_of_this_folder_teaches(tmp_path: Path) -> None:
    """The program as installed, which has no folder of its own among its modules; two workers."""
    write_files(tmp_path, 400)
    own_module(tmp_path, "stranger_model")
    # what also lies in the folder is not taken for an installed package
    (tmp_path / "skl2onnx.py").write_text("raise SystemExit('the folder came first')\n")
    words = words_of_run(
        tmp_path,
        *("--n-teachers", "10", "--set", "n_jobs=2", "--teacher", "stranger_model:Mine"),
        *("--evaluate", str(tmp_path / "test.csv"), "--json"),
        *("--epsilon", "200", "--total", "200,1e-2", "--confirm", "epsilon"),
        *("--set", "n_queries=60", "--set", "exclude=report"),
    )
    program = "import sys; sys.path.pop(0); from secretballot.cli import main; main()"
    run = subprocess.run(
        [sys.executable, "-c", program, *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    # shards without a teacher would vote for one class, which is right for half of the rows; the
    # noise is real, and in 30 runs the mean was .927 and the deviation .010: 34 deviations
    assert json.loads(run.stdout)["accuracy"] > 0.6


@pytest.mark.usefixtures("path_kept")
def test_the_folder_is_looked_into_only_for_a_name_that_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    own_module(tmp_path, "another_model")
    (tmp_path / "sklearn").mkdir()
    before = list(sys.path)
    for name in (
        "logistic",
        "auto",
        "tree:max_depth=3",  # a name of ours
        "sklearn.dummy:DummyClassifier",  # installed, whatever lies here
        "../another_model:Mine",
    ):
        find_in_this_folder(name)
        assert sys.path == before, name
    find_in_this_folder("logistic", "another_model:Mine")
    # last, so that it takes the place of nothing
    assert sys.path == [*before, os.fspath(tmp_path)]
    find_in_this_folder("another_model:Mine")
    assert sys.path == [*before, os.fspath(tmp_path)]
