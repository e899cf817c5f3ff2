"""The program as a whole: help, usage, start-up."""

import json
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest
from patients import invoke
from typer.testing import CliRunner

from secretballot.cli import app
from secretballot.cli.outcome import show

HEAVY = ("numpy", "pandas", "sklearn", "scipy", "opendp", "matplotlib")


PRICE = ["--target", "y", "--delta", "1e-6", "--total", "20,1e-2"]


@pytest.mark.parametrize(
    ("words", "said", "kind"),
    [
        (["teach"], "No such command", "usage"),
        (["verify", "--colour", "x"], "No such option: --colour", "usage"),
        (["learn", "--n-queries", "3"], "given by --set NAME=VALUE; --help-all lists", "usage"),
        (["audit", "canaries", "--runs", "x"], "Invalid value for '--runs'", "usage"),
        (["ledger", "create", "l", "--unit", "x"], "for '--unit': 'x' is not one of", "usage"),
        (["learn", "a.csv", *PRICE, "--epsilon", "1"], "public is missing", "parameter"),
        (["learn", "a", "b", *PRICE[2:], "--epsilon", "1"], "--target is missing", "parameter"),
        (["learn", "a", "b", *PRICE], "--epsilon is missing; give the price", "parameter"),
    ],
)
def test_wrong_usage_is_one_sentence_and_code_2(words: list[str], said: str, kind: str) -> None:
    result = invoke(*words, "--json")
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stderr.strip().count("\n") == 0
    found = json.loads(result.stdout)
    assert (found["kind"], found["error"]) == (kind, result.stderr[13:].strip())


@pytest.mark.parametrize("verb", ["", "learn", "serve prepare", "audit release", "ledger"])
@pytest.mark.parametrize("width", [60, 100])
def test_help_keeps_to_the_width_of_the_terminal(verb: str, width: int) -> None:
    result = CliRunner().invoke(app, [*verb.split(), "--help"], terminal_width=width)
    assert result.exit_code == 0
    text, _, example = result.stdout.partition("Example\n")
    assert max(map(len, text.splitlines())) <= width
    assert all(line.endswith("\\") for line in example.splitlines()[:-1])


def test_all_help_lists_what_has_no_option() -> None:
    short = invoke("learn", "--help").stdout
    long = invoke("learn", "--help-all").stdout
    assert len(re.findall(r"^  --", short, re.MULTILINE)) < 30
    assert "  votes_per_record " in long
    assert "votes_per_record" not in short
    # of another verb only its own
    assert "votes_per_record" not in invoke("label", "--help-all").stdout


@pytest.mark.parametrize("group", [[], ["ledger"], ["serve", "key"]])
def test_a_group_without_a_word_shows_its_help(group: list[str]) -> None:
    result = invoke(*group)
    assert result.exit_code == 0
    assert result.stdout.startswith(" ".join(["Usage: secretballot", *group]))


def test_a_name_begins_no_line_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    account = SimpleNamespace(dataset="x\nspent", unit="\x1b[2J", relation="", composition="")
    show("ledger", account, {}, [])
    out = capsys.readouterr().out
    assert "\nspent" not in out
    assert "\x1b" not in out


def test_help_starts_without_the_heavy_packages() -> None:
    program = (
        "import sys\nfrom secretballot.cli import app\ntry:\n    app(['learn', '--help'])\nexcept"
        f" SystemExit as leaving:\n    assert leaving.code == 0\nprint([name for name in {HEAVY!r}"
        " if name in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stderr.strip() == "[]"
