"""The program as a whole: help, usage, start-up."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from secretballot.cli import app

HEAVY = ("numpy", "pandas", "sklearn", "scipy", "opendp", "matplotlib")


PRICE = ["--target", "y", "--delta", "1e-6", "--total", "20,1e-2"]


@pytest.mark.parametrize(
    ("words", "said", "kind"),
    [
        (["teach"], "No such command", "usage"),
        (["verify", "--colour", "x"], "There is no option --colour; see --help.", "usage"),
        (["learn", "--teachers", "3"], "no option --teachers; did you mean --n-teachers?", "usage"),
        (["learn", "--n-queries", "3"], "did you mean --set n_queries=VALUE?", "usage"),
        (["learn", "--set", "foo"], "--set 'foo' has no value; write KEY=VALUE.", "parameter"),
        (["learn", "a.csv", *PRICE, "--epsilon", "1"], "public is missing", "parameter"),
        (["learn", "a", "b", *PRICE[2:], "--epsilon", "1"], "--target is missing", "parameter"),
        (["learn", "a", "b", *PRICE], "--epsilon is missing; give the price", "parameter"),
        (["learn", "a", "b", *PRICE, "--epsilon", "one"], "--epsilon is 'one'; it", "parameter"),
        (["learn", "a", "b", "--set", "n_query=9"], "(did you mean n_queries?).", "parameter"),
    ],
)
def test_wrong_usage_is_one_sentence_and_code_2(words: list[str], said: str, kind: str) -> None:
    result = CliRunner().invoke(app, [*words, "--json"])
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stderr.strip().count("\n") == 0
    found = json.loads(result.stdout)
    assert (found["kind"], found["error"]) == (kind, result.stderr[13:].strip())


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


def test_the_module_runs_as_a_program() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "secretballot", "--help"], capture_output=True, text=True, check=True
    )
    assert "learn" in done.stdout
    done = subprocess.run(
        [sys.executable, "-m", "secretballot", "nonsense"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
