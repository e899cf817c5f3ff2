"""How a verb ends: the exit code, the sentence, the JSON object; and what is never said."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer

from patients import invoke
from secretballot.cli.outcome import EXIT_CODES, RUNNING, Running, failure_of, guarded, option_of
from secretballot.exceptions import (
    Argument,
    BudgetError,
    CertificateError,
    DataError,
    LedgerError,
    Parameter,
    ParameterError,
    SamplerError,
    SecretBallotError,
)


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        (ParameterError("mend it"), "parameter", 2),
        (LedgerError("mend it"), "ledger", 2),
        (SamplerError("mend it"), "sampler", 7),
        (SecretBallotError("mend it"), "input", 2),
        (BudgetError("mend it"), "budget", 3),
        (CertificateError("mend it"), "certificate", 4),
        (typer.BadParameter("mend it"), "usage", 2),
        (typer.Abort("mend it"), "interrupted", 130),
        (MemoryError("a cell"), "system", 7),
    ],
)
def test_every_error_of_ours_has_its_code_and_its_words(error, kind, code):
    failure = failure_of(error)
    assert (failure.kind, failure.exit_code) == (kind, code)
    assert ("mend it" in failure.error) == (kind not in ("interrupted", "system"))
    assert "a cell" not in failure.error


def refuse():
    raise DataError("This does not fit; mend it.")


def test_the_sentence_goes_to_standard_error_and_the_object_to_standard_output(capsys, monkeypatch):
    monkeypatch.setattr("secretballot.cli.outcome.RUNNING", Running())
    assert guarded(refuse, as_json=False) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "secretballot: This does not fit; mend it.\n"
    assert guarded(refuse, as_json=True) == 2
    out, err = capsys.readouterr()
    assert json.loads(out) == {
        "verb": "",
        "notes": [],
        "error": "This does not fit; mend it.",
        "kind": "data",
        "exit_code": 2,
        "parameter": None,
    }
    assert err.count("\n") == 1


NAMES = ("epsilon", "n_teachers", "student")


@pytest.fixture
def options():
    """Let a verb with these options and `--set` be the one that runs."""
    for name in (*NAMES, "set"):
        RUNNING.options.add(option_of(name))


@pytest.mark.usefixtures("options")
def test_a_parameter_is_named_by_its_option_where_the_verb_has_one():
    for name in NAMES:
        option = option_of(name)
        rest = f" is 'x'; give another {name}, or "
        error = ParameterError(Parameter(name), rest, Argument(name, 3))
        assert str(error) == f"{name} is 'x'; give another {name}, or {name}=3"
        failure = failure_of(error)
        assert failure.error == f"{option} is 'x'; give another {name}, or {option} 3"
        assert failure.parameter == error.parameter == name
    error = ParameterError(Parameter("strategy"), " needs ", Argument("n_queries", 3))
    assert failure_of(error).error == "strategy needs --set n_queries=3"
    RUNNING.options.clear()
    assert failure_of(error).error == str(error)


@pytest.mark.usefixtures("options")
@pytest.mark.parametrize("look", ["{0}", "{0} is 3", "{0}='labels'", "{0}=3", "use {0}=3, {0}"])
def test_a_value_that_looks_like_a_parameter_is_left_alone(look):
    for value in map(look.format, NAMES):
        error = ParameterError(Parameter("student"), f" is {value!r} and {value}; give another.")
        assert failure_of(error).error == f"--student is {value!r} and {value}; give another."
        assert failure_of(DataError(f"{value} is no column.")).error == f"{value} is no column."
        assert failure_of(DataError(f"{value} is no column.")).parameter is None


PAGE = Path(__file__).parents[2] / "docs" / "reference" / "command-line.md"


def test_the_help_and_the_page_name_every_code():
    table = PAGE.read_text().split("## Exit codes", 1)[1]
    named = re.findall(r"^\| (\d+) \| ", table, re.MULTILINE)
    assert re.findall(r"\b(\d+) [a-z]", EXIT_CODES) == named
    assert ",".join(named) == "0,1,2,3,4,5,6,7,130"


def test_a_fault_that_an_audit_finds_is_code_6(monkeypatch):
    asked = {}

    def audit(**given):
        asked.update(given)
        return SimpleNamespace(passed=False, text=lambda: "FAILED", to_json=dict)

    monkeypatch.setattr("secretballot.audit.release_audit.audit_release", audit)
    settings = ["--private", "p.json", "--program", "python 'a b.py'", "--runs", "30"]
    result = invoke("audit", "release", *settings, "--", "coin", "p.json", "--out", "x")
    assert (result.exit_code, result.stdout) == (6, "FAILED\n")
    assert (asked["program"], asked["runs"]) == (["python", "a b.py"], 30)
    assert asked["command"] == ["coin", "p.json", "--out", "x"]
