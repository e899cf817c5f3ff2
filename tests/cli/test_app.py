"""The program as a whole: help, usage, start-up."""

import json
import subprocess
import sys

import pytest
from secretballot.cli.options import classes_of
from typer.testing import CliRunner

from secretballot.cli import app
from secretballot.exceptions import ParameterError
from secretballot.runs.spec import words_of

HEAVY = ("numpy", "pandas", "sklearn", "scipy", "opendp", "matplotlib")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["teach"], "No such command"),
        (["learn", "a.csv"], "Missing argument"),
        (
            ["learn", "a.csv", "b.csv", "--delta", "1e-6", "--total", "20,1e-2", "--epsilon", "1"],
            "--target",
        ),
        (
            [
                "learn",
                "a.csv",
                "b.csv",
                "--target",
                "y",
                "--epsilon",
                "one",
                "--delta",
                "0",
                "--total",
                "20,1e-2",
            ],
            "--epsilon",
        ),
        (["verify", "--colour", "x"], "No such option"),
    ],
)
def test_wrong_usage_is_one_sentence_and_code_2(words: list[str], said: str) -> None:
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stderr.strip().count("\n") == 0
    assert result.stdout == ""
    result = CliRunner().invoke(app, [*words, "--json"])
    assert result.exit_code == 2
    assert json.loads(result.stdout)["kind"] == "usage"


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


def test_lists_of_words_may_quote_commas() -> None:
    assert words_of(None) == ()
    assert words_of('a, "b,c" ,d') == ("a", "b,c", "d")
    assert classes_of(None) is None
    assert classes_of("0,1") == (0, 1)
    assert classes_of("-1,1") == (-1, 1)
    assert classes_of("0,one") == ("0", "one")
    assert classes_of("01,1") == ("01", "1")
    assert classes_of("<=50K,>50K") == ("<=50K", ">50K")


@pytest.mark.parametrize("text", ["a\nb,c", "a,b\udcff", "a\r,b"])
def test_lists_that_no_file_can_hold_are_refused(text: str) -> None:
    with pytest.raises(ParameterError, match="cannot be read") as refused:
        words_of(text)
    assert str(refused.value).isprintable()
