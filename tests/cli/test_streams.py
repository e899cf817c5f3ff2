"""Output that nobody can take: the work is done all the same, the exit code is true, and a
sentence says it."""

import json
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from patients import invoke

from secretballot._validation import plain_line, shown, without_controls
from secretballot.accounting import PrivacyBudget
from secretballot.cli import app
from secretballot.core.ledger import Ledger

NASTY = "\x1b[31mred\x1b[0m\nsecretballot: done\x9b1A\u202e"


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("account") / "l.ledger"
    Ledger(path, dataset="d", budget=PrivacyBudget(1.0, 1e-6))
    return path


def program(words: list[str], redirection: str) -> tuple[int, str]:
    """Run the program under a shell's redirection of its output; return exit code and standard
    error."""
    script = f'"$@" {redirection}; exit "${{PIPESTATUS[0]}}"'
    done = subprocess.run(
        ["bash", "-c", script, "bash", sys.executable, "-m", "secretballot", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
@pytest.mark.parametrize("words", [["--help"], ["ledger", "show", "--json"]])
def test_a_full_device_is_said_in_one_sentence_when_the_work_is_done(
    ledger: Path, words: list[str]
) -> None:
    if words[0] == "ledger":
        words = [*words, str(ledger)]
    code, said = program(words, "> /dev/full")
    assert code == 7
    assert said.splitlines() == [
        "secretballot: The disk is full; free space and repeat the command: what was paid for is"
        " kept in the ledger."
    ]


def test_streams_that_are_closed_leave_the_exit_code_and_no_file_in_their_place(
    tmp_path: Path,
) -> None:
    words = ["ledger", "create", str(tmp_path / "l"), "--dataset", "d", "--total", "1,0"]
    assert program(words, ">&- 2>&-") == (0, "")
    assert Ledger.open_existing(tmp_path / "l").dataset == "d"
    assert program(words, ">&- 2>&-") == (2, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
def test_notes_that_cannot_be_written_stop_no_paid_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "votes.csv").write_text("a,b\n" + "2,38\n" * 30)
    words = ["label", str(tmp_path / "votes.csv"), "--kind", "counts", "--classes", "a,b"]
    words += ["--epsilon", "0.1", "--delta", "1e-5", "--total", "20,1e-2"]
    words += ["--confirm", "noise", "--out", str(tmp_path / "out")]
    words += ["--set", "exclude=report,student"]
    with open("/dev/full", "w", buffering=1) as full, monkeypatch.context() as patched:
        patched.setattr(sys, "stderr", full)
        with pytest.raises(SystemExit) as ended:
            app(words)
        assert not ended.value.code
    verified = invoke("verify", str(tmp_path / "out"))
    assert (verified.exit_code, verified.stderr) == (0, "")


def test_names_with_control_characters_reach_no_terminal(tmp_path: Path) -> None:
    for words in (
        ["verify", NASTY],
        ["ledger", "show", NASTY],
        ["label", NASTY, "--epsilon", "1", "--delta", "0"],
    ):
        result = invoke(*words)
        assert result.exit_code == 2
        assert len(result.stderr.splitlines()) == 1
        assert result.stderr.rstrip("\n").isprintable()
        as_json = invoke(*words, "--json")
        assert without_controls(as_json.stdout, keep="\n") == as_json.stdout
        assert json.loads(as_json.stdout)["error"].isprintable()


class _Talkative:
    def __repr__(self) -> str:
        raise AssertionError("private")


@given(st.text(max_size=800), st.integers(20, 600))
def test_a_plain_line_is_printable_bounded_and_keeps_what_is_both(text: str, longest: int) -> None:
    line = plain_line(text, longest=longest)
    assert line.isprintable()
    assert len(line) <= longest
    if text.isprintable() and len(text) <= longest:
        assert line == text


def test_what_is_shown_of_odd_things_is_short_and_printable() -> None:
    nasty = type(NASTY * 100, (), {})
    for value in (
        nasty,
        nasty(),
        Fraction(10**5000 + 1, 3),
        _Talkative(),
        type("text", (str,), {})(NASTY * 1000),
    ):
        assert len(shown(value)) <= 200
        assert shown(value).isprintable()
