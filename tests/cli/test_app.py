"""The program as a whole: help, usage, start-up."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from secretballot.cli import app
from secretballot.cli.options import classes_of, words_of
from secretballot.exceptions import ParameterError

VERBS = (
    ["plan"],
    ["learn"],
    ["label"],
    ["choose"],
    ["predict"],
    ["schema"],
    ["compare"],
    ["verify"],
    ["ledger"],
    ["ledger", "show"],
    ["ledger", "history"],
    ["ledger", "create"],
    ["serve"],
    ["keys"],
    ["keys", "add"],
    ["keys", "list"],
    ["keys", "revoke"],
    ["keys", "audit"],
    ["ask"],
)
HEAVY = ("numpy", "pandas", "sklearn", "scipy", "opendp", "matplotlib")


@pytest.mark.parametrize("verb", [[], *VERBS, ["demo"]], ids=" ".join)
def test_every_verb_has_help_with_exit_codes(verb: list[str]) -> None:
    result = CliRunner().invoke(app, [*verb, "--help"])
    assert result.exit_code == 0
    text = " ".join(result.stdout.split())
    assert "Exit codes: 0 done" in text
    assert "130 interrupted" in text
    if verb not in ([], ["ledger"], ["keys"]):
        assert f"Example: secretballot {' '.join(verb)}" in text


def test_the_options_of_a_long_verb_stand_in_panels() -> None:
    text = CliRunner().invoke(app, ["learn", "--help"], env={"COLUMNS": "100"}).stdout
    for panel, option in (
        ("Data", "--target"),
        ("Privacy", "--epsilon"),
        ("Method, teachers and student", "--teacher "),
        ("Queries and answers", "--queries"),
        ("Output", "--out"),
    ):
        assert option in text.split(f"─ {panel} ─")[1].split("╰")[0]
    # an option that forgot its panel would stand beside the help
    assert text.split("─ Options ─")[1].split("╰")[0].count("│") == 2


def test_a_shell_completes_verbs_and_options() -> None:
    for words, found in (("lea", "learn"), ("learn --metho", "--method")):
        env = {
            "_SECRETBALLOT_COMPLETE": "complete_bash",
            "COMP_WORDS": f"secretballot {words}",
            "COMP_CWORD": str(len(words.split())),
        }
        result = CliRunner().invoke(app, [], prog_name="secretballot", env=env)
        assert (result.exit_code, result.stdout.split()) == (0, [found])


def test_no_words_at_all_show_the_help() -> None:
    result = CliRunner().invoke(app, [])
    assert result.exit_code == 0
    assert "learn" in result.stdout


def test_the_version_is_said() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.stdout.startswith("secretballot ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["teach"], "No such command"),
        (["learn", "a.csv"], "Missing argument"),
        (["learn", "a.csv", "b.csv", "--delta", "1e-6", "--epsilon", "1"], "--target"),
        (
            ["learn", "a.csv", "b.csv", "--target", "y", "--epsilon", "one", "--delta", "0"],
            "--epsilon",
        ),
        (["label", "--epsilon", "1", "--delta", "0"], "--votes"),
        (["verify"], "Missing argument"),
        (["verify", "--colour", "x"], "No such option"),
        (["ledger", "shred"], "No such command"),
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


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--teachers", "1.5"], "--teachers is '1.5'; it must be an integer, such as 3."),
        (["--queries", ""], "--queries is ''; it must be an integer, such as 3."),
        (["--epsilon", "much"], "--epsilon is 'much'; it must be a number, such as 0.5."),
        (["--method", "bayes"], "--method is 'bayes'; it must be one of auto, moments, votes"),
        (["--json=3"], "Option '--json' does not take a value."),
    ],
)
def test_no_library_speaks_for_us_where_a_value_cannot_be(words: list[str], said: str) -> None:
    """What reads the values differs between versions of typer, and says so in its own words."""
    result = CliRunner().invoke(app, ["learn", "a.csv", "b.csv", "--target", "y", *words])
    assert result.exit_code == 2
    assert result.stderr.startswith(f"secretballot: {said}")
    assert "Input should" not in result.stderr
