"""The process that makes releases: what it sees, how it ends, and what is said when it ends too
early."""

import json
import os
import random
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import matplotlib
import numpy as np
import pytest

from secretballot._validation import MissingExtraError
from secretballot.exceptions import DataError, ResourceError
from secretballot.publishing import process as room
from secretballot.publishing.process import start_publishing
from secretballot.publishing.release import ReleaseJob, _job_bytes, check_parts, publish

HERE = Path(__file__).parent

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@pytest.fixture(autouse=True)
def _odd_students(monkeypatch):
    monkeypatch.syspath_prepend(str(HERE))


@pytest.fixture
def job(make_released, points):
    released = make_released("labels")
    return lambda name: ReleaseJob(
        *(released, f"odd_students:{name}", points),
        without=() if name == "Forgetful" else ("report",),
    )


@pytest.fixture
def fresh(monkeypatch):
    """Start processes of this test's own."""
    monkeypatch.setattr(room, "_started", None)
    monkeypatch.setattr(room.atexit, "register", lambda _: None)
    yield start_publishing
    if room._started is not None:
        room._started.stop()


def test_a_job_sees_nothing_of_the_process_that_wants_it(tmp_path, job, monkeypatch, fresh):
    monkeypatch.setenv("PRIVATE_FACT", "42 records")
    # both processes must round alike, or the basis of sums over records has another digest
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    monkeypatch.setenv("HOME", str(tmp_path))
    # fonts are found where they were: to look for them anew takes seconds
    monkeypatch.setenv("MPLCONFIGDIR", matplotlib.get_configdir())
    with (tmp_path / "private").open("wb") as file:
        os.set_inheritable(file.fileno(), True)
        first = fresh()
        publish(tmp_path / "one", job("Witness"))
        random.seed(1)
        np.random.seed(1)  # noqa: NPY002
        publish(tmp_path / "two", job("Witness"))
    one, two = (json.loads(path.read_text()) for path in tmp_path.glob("*.json"))
    assert one["drawn"] == two["drawn"]
    assert one["handles"] == two["handles"]
    assert len(one["handles"]) == 5  # three standard ones, the way back, and what lists them
    # libraries set the last three
    own = {"PYTHONPATH", "LC_CTYPE", "KMP_INIT_AT_FORK", "KMP_DUPLICATE_LIB_OK"}
    assert set(one["environment"]) <= {*room._KEPT, *room._FIXED, *own}
    assert one["environment"]["PYTHONHASHSEED"] == "0"
    assert one["environment"]["OMP_NUM_THREADS"] == "1"
    assert one["environment"]["OPENBLAS_CORETYPE"] == "Haswell"
    assert one["files"] == []
    private = {
        *("teachers", "releasing", "data", "learners", "vault", "planning", "cli", "core.noise"),
        "core.ledger",
    }
    for name in private:
        assert find_spec(f"secretballot.{name}") is not None
        assert f"secretballot.{name}" not in one["modules"]
    assert "opendp" not in one["modules"]

    def interrupt(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        publish(tmp_path / "release", job("Plain"), say=interrupt)
    assert first._process.poll() is not None  # nobody knows what it would have said next
    assert not (tmp_path / "release").exists()


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("Failing", DataError, r"cannot learn from 60 .*no heart for it.*stays paid"),
        # nothing is left out for want of memory
        ("Forgetful", ResourceError, r"not enough memory.*Nothing paid for is lost"),
        ("Killed", DataError, r"exit code -9\), perhaps .* memory\. Nothing paid.*repeat"),
    ],
)
def test_a_job_that_fails_is_one_sentence_and_the_next_one_works(tmp_path, job, name, error, words):
    with pytest.raises(error, match=words) as caught:
        publish(tmp_path / "release", job(name))
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())
    assert "labels.csv" in publish(tmp_path / "release", job("Plain")).files


def test_a_failing_disk_is_told_as_such(tmp_path, make_released):
    job = _job_bytes(ReleaseJob(make_released(), without=("report",)))
    with pytest.raises(FileNotFoundError):
        start_publishing().perform(job, str(tmp_path / "nowhere"), lambda _: None)


def test_a_missing_package_is_found_before_it_is_needed(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(
        MissingExtraError, match=r"secretballot\[report\].*exclude=report\. Nothing"
    ):
        check_parts([])
    check_parts(["report"])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"secretballot\[parquet\]"):
        check_parts(["report"], parquet=True)


PROGRAM = """
import pickle, sys
from secretballot.publishing.release import check_parts, publish
publish(sys.argv[1], pickle.load(open(sys.argv[2], "rb")))
"""


def test_no_process_outlives_the_program(tmp_path, job):
    (tmp_path / "job").write_bytes(_job_bytes(job("Endless")))
    places = os.pathsep.join([str(HERE), *filter(None, sys.path)])
    # fonts are found where they were: to look for them anew takes seconds
    environment = {**os.environ, "HOME": str(tmp_path), "PYTHONPATH": places}
    environment["MPLCONFIGDIR"] = matplotlib.get_configdir()
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "release"), str(tmp_path / "job")],
        env=environment,
    )
    deadline = time.monotonic() + 300
    while not (tmp_path / "pid").is_file() or not (tmp_path / "pid").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    pids = [int(word) for word in (tmp_path / "pid").read_text().split()]
    program.kill()
    program.wait()
    while any(_is_alive(pid) for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _is_alive(pid):
    """Return whether a process is there and is not a zombie, which nobody has buried yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
