"""Ctrl-C in the middle of training, seen from outside: exit code 130, and the same command goes
on."""

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from patients import invoke, words_of_run, write_files

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
def command(tmp_path: Path) -> list[str]:
    (tmp_path / "slow.py").write_text(SLOW)
    words = words_of_run(write_files(tmp_path, 1200), "--n-teachers", str(TEACHERS), "--json")
    words += ["--set", "exclude=report,student", "--teacher", "slow:Slow"]
    return [sys.executable, "-m", "secretballot", *words]


def environment(folder: Path, pause: float, held: float = float("inf")) -> dict[str, str]:
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    slow = {"FITS": str(folder / "fits"), "PAUSE": str(pause), "HELD": str(held)}
    return {**os.environ, "PYTHONPATH": path, **slow}


def test_ctrl_c_leaves_a_run_that_goes_on(
    tmp_path: Path, command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": tmp_path}
    run = subprocess.Popen(
        [*command, "--set", "n_jobs=2"],
        env=environment(tmp_path, PAUSE, HELD),
        start_new_session=True,
        **pipes,
    )  # type: ignore[call-overload]
    deadline = time.monotonic() + LONG
    while not any((tmp_path / "out" / "vault" / "teachers").glob("*.teachers")):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.killpg(run.pid, signal.SIGINT)  # as a terminal does: to the program and to its workers
    out, err = run.communicate(timeout=LONG)
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
    files = sorted((tmp_path / "out" / "vault" / "teachers").glob("*.teachers"))
    assert len(files) > 1
    kept = [number for path in files for number in teachers_in(path)]
    assert sorted(kept) == list(range(TEACHERS))


def teachers_in(path: Path) -> dict[int, bytes]:
    found: dict[int, bytes] = pickle.loads(path.read_bytes().split(b"\n", 1)[1])
    return found
