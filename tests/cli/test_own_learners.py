"""Learners of one's own from the command line, and Ctrl-C in the middle of training."""

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest

from patients import document_of, invoke, words_of_run, write_files
from secretballot.cli.screens import _find_in_this_folder

CLASS = """
import os, time
from sklearn.linear_model import LogisticRegression
from {helper} import C

class Mine(LogisticRegression):
    def __init__(self, C=C, max_iter=500):
        super().__init__(C=C, max_iter=max_iter)

    def fit(self, X, y):
        with open("fits", "a+") as file:
            file.write("one\\n")
            file.seek(0)
            done = len(file.readlines())
        held = done > float(os.environ["HELD"])
        time.sleep(600 if held else float(os.environ["PAUSE"]))
        return super().fit(X, y)
"""
# Of so many teachers the last are held where a run is to be interrupted, so that it cannot end
# before the signal comes. Those before them take 2.5 s, and teachers are written down after 2 s.
TEACHERS, HELD, PAUSE = 20, 10, 0.5
LONG = 300  # seconds after which a test gives up; nothing is measured


@pytest.fixture(autouse=True)
def _path_kept(monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))


def own_module(folder, name):
    (folder / f"{name}.py").write_text(CLASS.format(helper=f"{name}_help"))
    (folder / f"{name}_help.py").write_text("C = 3.0\n")


def test_the_folder_is_looked_into_only_for_a_name_that_was_given(tmp_path, monkeypatch):
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
        _find_in_this_folder(name)
        assert sys.path == before, name
    _find_in_this_folder("logistic", "another_model:Mine")
    # last, so that it takes the place of nothing
    assert sys.path == [*before, os.fspath(tmp_path)]
    _find_in_this_folder("another_model:Mine")
    assert sys.path == [*before, os.fspath(tmp_path)]


def test_a_class_of_this_folder_teaches_and_ctrl_c_leaves_a_run_that_goes_on(tmp_path, monkeypatch):
    """The program as installed, which has no folder of its own among its modules; two workers."""
    own_module(tmp_path, "stranger_model")
    words = words_of_run(
        write_files(tmp_path, 600),
        *("--n-teachers", str(TEACHERS), "--teacher", "stranger_model:Mine"),
        *("--evaluate", str(tmp_path / "test.csv"), "--json"),
        *("--epsilon", "20", "--confirm", "epsilon"),
        *("--set", "n_queries=60", "--set", "exclude=report"),
    )
    program = "import sys; sys.path.pop(0); from secretballot.cli import main; main()"
    run = subprocess.Popen(
        [sys.executable, "-c", program, *words, "--set", "n_jobs=2"],
        env={**os.environ, "PAUSE": str(PAUSE), "HELD": str(HELD)},
        start_new_session=True,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + LONG
    kept = tmp_path / "out" / "vault" / "teachers"
    while not any(kept.glob("*.teachers")):
        assert time.monotonic() < deadline
        assert run.poll() is None, run.communicate()
        time.sleep(0.02)
    out = err = None
    while out is None:
        assert time.monotonic() < deadline
        # as a terminal does: to the program and to its workers. While tasks are handed out it is
        # lost, and a person repeats it.
        os.killpg(run.pid, signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            out, err = run.communicate(timeout=20)
    assert run.returncode == 130, err
    assert json.loads(out)["kind"] == "interrupted"
    assert "Traceback" not in err
    assert err.strip().endswith("secretballot: Interrupted; repeat the same command to go on.")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PAUSE", "0")
    monkeypatch.setenv("HELD", "inf")
    done = document_of(invoke(*words, "--set", "n_jobs=1"))
    assert done["resumed"] is True
    # shards without a teacher would vote for one class, which is right for half of the rows
    assert done["accuracy"] > 0.6
    # none that was kept was trained again
    files = sorted(kept.glob("*.teachers"))
    assert len(files) > 1
    found = [pickle.loads(path.read_bytes().split(b"\n", 1)[1]) for path in files]
    assert sorted(number for part in found for number in part) == list(range(TEACHERS))
    assert all(teacher is not None for part in found for teacher in part.values())
