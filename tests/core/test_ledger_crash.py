"""The ledger under kill -9, crowds and full disks: spent never falls, nothing is answered
unreserved."""

import atexit
import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ledger_backends import DatabaseLedgers

VICTIM = Path(__file__).with_name("ledger_victim.py")


@pytest.fixture
def path() -> Iterator[Path]:
    # not pytest's own folder, which nobody but its owner may enter
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / "ledger.sqlite"


@pytest.fixture(params=["file", "postgres"])
def place(request: pytest.FixtureRequest, path: Path) -> Iterator[str]:
    """A place where nothing is: a file's, and a database's."""
    if request.param == "file":
        yield str(path)
        return
    places = DatabaseLedgers(request.getfixturevalue("database").url)
    yield places.place()
    places.drop_all()


@functools.cache
def victims_program() -> subprocess.Popen[str]:
    """Return the program that all tests of this process ask, which imports what it needs once."""
    command = [sys.executable, "-W", "error", str(VICTIM)]
    running = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(running.communicate)  # which ends its input, and so the program
    return running


def victims(verb: str, path: Path | str, number: int = 0) -> Any:
    program = victims_program()
    assert program.stdin is not None
    assert program.stdout is not None
    program.stdin.write(f"{json.dumps([verb, str(path), number])}\n")
    program.stdin.flush()
    seen = json.loads(program.stdout.readline())
    assert seen != "failed", "see the standard error above"
    return seen


def check_each_death(deaths: list[dict[str, Any]]) -> None:
    """One request per death, each at one ten-thousandth of epsilon."""
    spent, entries = 0.0, 0
    for death in deaths:
        assert death["spent"] >= spent
        assert death["entries"] - entries in (0, 1)
        spent, entries = death["spent"], death["entries"]
        assert round(spent * 10_000) == entries
        assert (death["state"] is None) <= (death["said"] == [])  # drawn only what is paid
        assert death["answered"] == (death["state"] == "committed")
        # what left the house is on the books
        assert ("answered" in death["said"]) <= death["answered"]
        assert death["intact"]


def test_kill_at_every_statement_never_refunds_and_never_answers_unreserved(place: str) -> None:
    deaths = victims("statements", place)
    check_each_death(deaths)
    assert [death["signal"] for death in deaths] == [-9] * (len(deaths) - 1) + [0]
    assert len(deaths) > 20
    ends = [(tuple(death["said"]), death["state"]) for death in deaths]
    # each stage was hit: before the reservation, paid but not returned, drawn, on the books but not
    # returned, done
    assert list(dict.fromkeys(ends)) == [
        ((), None),
        ((), "reserved"),
        (("drawn",), "reserved"),
        (("drawn",), "committed"),
        (("drawn", "answered"), "committed"),
    ]


def test_kill_during_creation_leaves_no_half_made_ledger(place: str) -> None:
    deaths = victims("creation", place)
    assert len(deaths) > 15
    assert {death["spent"] for death in deaths} == {0.5}
    made = [death["made"] for death in deaths]
    assert made == sorted(made)
    assert not made[0]
    assert made[-1]


def test_an_answer_whose_room_was_claimed_is_stored_on_a_full_disk(path: Path) -> None:
    found = victims("room_for_answers", path)
    for size, room, words in found["seen"]:
        if room:
            assert words == "stored", (size, words)
        elif size > 60_000:
            assert "Nothing was changed" in words
    assert found["spent"] == 0.08


def test_crowd_of_processes_cannot_overspend(place: str) -> None:
    seen = victims("crowd", place, 4)
    assert seen == {"bought": 32, "refused": 48, "entries": 32, "spent": 1.0}


def test_processes_that_create_at_once_agree(place: str) -> None:
    seen = victims("founders", place, 8)
    made = [word for word in seen["words"] if word.startswith("made")]
    assert made == [f"made {seen['budget']}"] * 4
    assert seen["words"].count("refused True") == 4
    assert seen["entries"] == 4
    if "postgresql:" not in place:
        assert seen["files"] == ["ledger.sqlite", "ledger.sqlite-journal"]


def test_ledger_without_write_permission_can_be_read_but_not_charged(path: Path) -> None:
    seen = victims("read_only", path)
    assert seen["spent"] == 0.1
    assert "readonly" in seen["said"][0]
    if os.geteuid() == 0:
        assert "Permission denied" in seen["said"][1]
        assert "new.sqlite" not in seen["files"]
