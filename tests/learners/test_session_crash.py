"""A labelling session under kill -9: paid once, every returned answer on the books, none beyond
the plan."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")

VICTIM = Path(__file__).with_name("session_victim.py")
PLANS = pytest.mark.parametrize("plan", ["gaussian", "sparse"])


def books(verb: str, folder: Path, plan: str, number: int) -> dict[str, Any]:
    command = [sys.executable, "-W", "error", str(VICTIM), verb, str(folder), plan, str(number)]
    paths = [str(VICTIM.parents[1]), os.environ.get("PYTHONPATH", "")]
    helpers = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=900, check=False, env=helpers
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def check_books(found: dict[str, Any]) -> None:
    assert found["other_exits"] == []
    # what left the house is on the books, word for word
    assert found["wrong"] == found["denied_but_stored"] == 0
    assert found["used"] == found["stored"] == found["distinct"] <= found["planned"]
    assert found["answers"] >= found["stored"]
    assert found["entries"] == 1
    assert found["spent"] == found["price"]
    if found["most_abstentions"] is None:
        assert found["left"] == found["planned"] - found["used"]
    else:
        assert found["abstained"] <= found["most_abstentions"]
        stopped = found["abstained"] == found["most_abstentions"]
        assert stopped <= found["ends_with_abstention"]
        assert found["left"] == (0 if stopped else found["planned"] - found["used"])


def test_kill_at_every_write_of_an_ask_loses_nothing(tmp_path: Path) -> None:
    found = books("statements", tmp_path, "sparse", 2)
    check_books(found)
    assert found["kills"] >= 24  # as many steps whatever the noise says
    assert found["used"] == 3


def test_kill_at_any_moment_loses_nothing(tmp_path: Path) -> None:
    found = books("random_moments", tmp_path, "gaussian", 6)
    check_books(found)


@pytest.mark.slow
@PLANS
def test_kill_at_every_write_until_the_plan_ends(tmp_path: Path, plan: str) -> None:
    found = books("statements", tmp_path, plan, 7)
    check_books(found)
    assert found["left"] == 0


@pytest.mark.slow
@PLANS
def test_ten_thousand_asks_under_kill_at_any_moment(tmp_path: Path, plan: str) -> None:
    found = books("random_moments", tmp_path, plan, 10_000)
    check_books(found)
    assert found["kills"] > 0  # a fast machine is done before more
    assert found["left"] == 0
