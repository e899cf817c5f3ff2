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

from patients import invoke, words_of_run, write_files
from secretballot.cli.screens import find_in_this_folder

CLASS = """
from sklearn.linear_model import LogisticRegression
from {helper} import C
class Mine(LogisticRegression):
    def __init__(self, C=C, max_iter=500):
        super().__init__(C=C, max_iter=max_iter)
"""


@pytest.fixture
def path_kept(monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))


def own_module(folder, name):
    (folder / f"{name}.py").write_text(CLASS.format(helper=f"{name}_help"))
    (folder / f"{name}_help.py").write_text("C = 3.0\n")


def test_a_class_of_this_folder_teaches(tmp_path):
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
        find_in_this_folder(name)
        assert sys.path == before, name
    find_in_this_folder("logistic", "another_model:Mine")
    # last, so that it takes the place of nothing
    assert sys.path == [*before, os.fspath(tmp_path)]
    find_in_this_folder("another_model:Mine")
    assert sys.path == [*before, os.fspath(tmp_path)]


SLOW = """
import os, time
from sklearn.linear_model import LogisticRegression

class Slow(LogisticRegression):
    def fit(self, X, y):
        with open(os.environ["FITS"], "a") as file:
            file.write(f"{os.getpid()}\\n")
        time.sleep(float(os.environ["PAUSE"]))
        with open(os.environ["FITS"]) as file:
            held = len(file.readlines()) > float(os.environ["HELD"])
        time.sleep(600 if held else 0)
        return super().fit(X, y)
"""
# Of so many teachers the last ten are held where a run is to be interrupted, so that it cannot end
# before the signal comes. Those before them take 2.5 s, and teachers are written down after 2 s.
TEACHERS, HELD, PAUSE = 60, 50, 0.1
LONG = 300  # seconds after which a test gives up; nothing is measured


@pytest.fixture
def command(tmp_path):
    (tmp_path / "slow.py").write_text(SLOW)
    words = words_of_run(write_files(tmp_path, 1200), "--n-teachers", str(TEACHERS), "--json")
    words += ["--set", "exclude=report,student", "--teacher", "slow:Slow"]
    return [sys.executable, "-m", "secretballot", *words]


def environment(folder, pause, held=float("inf")):
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    slow = {"FITS": str(folder / "fits"), "PAUSE": str(pause), "HELD": str(held)}
    return {**os.environ, "PYTHONPATH": path, **slow}


def test_ctrl_c_leaves_a_run_that_goes_on(tmp_path, command, monkeypatch):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": tmp_path}
    run = subprocess.Popen(
        [*command, "--set", "n_jobs=2"],
        env=environment(tmp_path, PAUSE, HELD),
        start_new_session=True,
        **pipes,
    )
    deadline = time.monotonic() + LONG
    kept = tmp_path / "out" / "vault" / "teachers"
    while not any(kept.glob("*.teachers")):
        assert time.monotonic() < deadline
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

    (tmp_path / "fits").unlink()
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for name, value in environment(tmp_path, 0).items():
        monkeypatch.setenv(name, value)
    done = invoke(*command[3:], "--set", "n_jobs=1")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["resumed"] is True
    # none that was kept was trained again
    files = sorted(kept.glob("*.teachers"))
    assert len(files) > 1
    found = [one for path in files for one in pickle.loads(path.read_bytes().split(b"\n", 1)[1])]
    assert sorted(found) == list(range(TEACHERS))
