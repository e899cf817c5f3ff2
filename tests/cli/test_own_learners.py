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

CLASS = """
from sklearn.linear_model import LogisticRegression
from {helper} import C
class Mine(LogisticRegression):
    def __init__(self, C=C, max_iter=500):
        super().__init__(C=C, max_iter=max_iter)
"""


def own_module(folder, name):
    (folder / f"{name}.py").write_text(CLASS.format(helper=f"{name}_help"))
    (folder / f"{name}_help.py").write_text("C = 3.0\n")


def test_a_class_of_ones_own_teaches(tmp_path):
    """The program as installed, whose modules PYTHONPATH adds to; two workers."""
    write_files(tmp_path, 400)
    own_module(tmp_path, "stranger_model")
    words = words_of_run(
        tmp_path,
        *("--n-teachers", "10", "--set", "n_jobs=2", "--teacher", "stranger_model:Mine"),
        *("--evaluate", str(tmp_path / "test.csv"), "--json"),
        *("--epsilon", "200", "--total", "200,1e-2", "--confirm", "epsilon"),
        *("--set", "n_queries=60", "--set", "exclude=report"),
    )
    run = subprocess.run(
        [sys.executable, "-P", "-m", "secretballot", *words],
        env=environment(tmp_path, 0),
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    # shards without a teacher would vote for one class, which is right for half of the rows; the
    # noise is real, and in 30 runs the mean was .927 and the deviation .010: 34 deviations
    assert json.loads(run.stdout)["accuracy"] > 0.6


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
