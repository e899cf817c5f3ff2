"""The program as a whole: help, usage, streams, the keys of a service; how a verb ends: the exit
code, the sentence, the JSON object; and what is never said."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from patients import invoke
from secretballot._validation import plain_line, without_controls
from secretballot.accounting import PrivacyBudget
from secretballot.audit.bounds import Verdict
from secretballot.audit.release_audit import ChannelFinding, Promise, ReleaseAudit
from secretballot.cli import app
from secretballot.cli.outcome import EXIT_CODES, RUNNING, Running, failure_of, guarded, option_of
from secretballot.core.ledger import Ledger
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
from secretballot.service.settings import read_settings

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
        (["learn", "a.csv", *PRICE, "--epsilon", "1"], "public is missing; give", "parameter"),
        (["learn", "a", "b", *PRICE[2:], "--epsilon", "1"], "--target is missing", "parameter"),
        (["learn", "a", "b", *PRICE], "--epsilon is missing; give the price", "parameter"),
    ],
)
def test_wrong_usage_is_one_sentence_and_code_2(words, said, kind):
    result = invoke(*words, "--json")
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stderr.strip().count("\n") == 0
    found = json.loads(result.stdout)
    assert (found["kind"], found["error"]) == (kind, result.stderr[13:].strip())


@pytest.mark.parametrize("verb", ["", "learn", "serve prepare", "audit release", "ledger"])
@pytest.mark.parametrize("width", [60, 100])
def test_help_keeps_to_the_width_of_the_terminal(verb, width):
    result = CliRunner().invoke(app, [*verb.split(), "--help"], terminal_width=width)
    assert result.exit_code == 0
    text, _, example = result.stdout.partition("Example\n")
    assert max(map(len, text.splitlines())) <= width
    assert all(line.endswith("\\") for line in example.splitlines()[:-1])


def test_all_help_lists_what_has_no_option():
    short = invoke("learn", "--help").stdout
    long = invoke("learn", "--help-all").stdout
    assert len(re.findall(r"^  --", short, re.MULTILINE)) < 30
    assert "  votes_per_record " in long
    assert "votes_per_record" not in short
    # of another verb only its own
    assert "votes_per_record" not in invoke("label", "--help-all").stdout


@pytest.mark.parametrize("group", [[], ["ledger"], ["serve", "key"]])
def test_a_group_without_a_word_shows_its_help(group):
    result = invoke(*group)
    assert result.exit_code == 0
    assert result.stdout.startswith(" ".join(["Usage: secretballot", *group]))


def test_help_starts_without_the_heavy_packages():
    program = (
        "import sys\nfrom secretballot.cli import app\ntry:\n    app(['learn', '--help'])\nexcept"
        f" SystemExit as leaving:\n    assert leaving.code == 0\nprint([name for name in {HEAVY!r}"
        " if name in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stderr.strip() == "[]"


NASTY = "\x1b[31mred\x1b[0m\nsecretballot: done\x9b1A\u202e"


def program(words, redirection):
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
def test_a_full_device_is_said_in_one_sentence_when_the_work_is_done(tmp_path):
    path = tmp_path / "l.ledger"
    Ledger(path, dataset="d", budget=PrivacyBudget(1.0, 1e-6))
    code, said = program(["ledger", "show", "--json", str(path)], "> /dev/full")
    assert code == 7
    assert said.splitlines() == [
        "secretballot: The disk is full; free space and repeat the command: what was paid for is"
        " kept in the ledger."
    ]


def test_streams_that_are_closed_leave_the_exit_code_and_no_file_in_their_place(tmp_path):
    words = ["ledger", "create", str(tmp_path / "l"), "--dataset", "d", "--total", "1,0"]
    assert program(words, ">&- 2>&-") == (0, "")
    assert Ledger.open_existing(tmp_path / "l").dataset == "d"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
def test_notes_that_cannot_be_written_stop_no_paid_run(tmp_path, monkeypatch):
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


def test_names_with_control_characters_reach_no_terminal(tmp_path):
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


@settings(max_examples=30)
@given(st.text(max_size=800), st.integers(20, 600))
def test_a_plain_line_is_printable_bounded_and_keeps_what_is_both(text, longest):
    line = plain_line(text, longest=longest)
    assert line.isprintable()
    assert len(line) <= longest
    if text.isprintable() and len(text) <= longest:
        assert line == text


SETTINGS = '[datasets.registry]\nvault = "vault"\n'


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "service.toml"
    path.write_text(SETTINGS)
    return path


def ran(config, *words):
    done = invoke("serve", "key", *words, "--config", str(config))
    return done.exit_code, done.stdout + done.stderr


def test_a_key_is_made_listed_and_revoked(config):
    words = "add --role analyst --dataset registry --owner Ana --json"
    code, text = ran(config, *words.split())
    assert code == 0
    made = json.loads(text)
    assert made["key"].startswith(f"sb_{made['id']}_")
    listed = json.loads(ran(config, "list", "--json")[1])["keys"]
    assert [one["id"] for one in listed] == [made["id"]]
    assert not {"key", "sha256"} & set(listed[0])
    assert f"{made['id']}  analyst" in ran(config, "list")[1]
    assert ran(config, "revoke", made["id"])[0] == 0
    assert "revoked 2" in ran(config, "list")[1]
    assert ran(config, "audit")[0] == 0
    code, text = ran(config, "revoke", "nobody")
    assert (code, "There is no key 'nobody'" in text) == (2, True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "datasets is missing"),
        (SETTINGS + "colour = 3\n", "colour is none of the names"),
        ("[datasets.registry]\n", "vault is missing"),
        ('[datasets."a/b"]\nvault = "v"\n', "cannot be part of an address"),
        (SETTINGS + 'sessions = "a"\n', "sessions is 'a'"),
        (SETTINGS + "[limits]\npoints = 0\n", "points is 0; it should be"),
        (SETTINGS + "[limits]\nbody_seconds = nan\n", "body_seconds is nan"),
    ],
)
def test_settings_that_cannot_be_are_named(config, text, said):
    config.write_text(text)
    with pytest.raises(ParameterError, match=said):
        read_settings(config)


def test_settings_that_cannot_be_read_are_told(tmp_path):
    for name, content in (("a.toml", b"= 1"), ("b.toml", b"\xff"), ("missing.toml", None)):
        if content is not None:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match="cannot be read"):
            read_settings(tmp_path / name)


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


LEAK = ChannelFinding("release", True, Verdict(20, 20, 20, 1.3, 1.3), "a.json")


def test_a_fault_that_an_audit_finds_is_code_6(monkeypatch):
    asked = {}

    def audit(**given):
        asked.update(given)
        promise = Promise(0.5, 1e-6, 1, "add-remove")
        return ReleaseAudit("coin", promise, 0.99, 30, 10, {0: 30}, [LEAK])

    monkeypatch.setattr("secretballot.audit.release_audit.audit_release", audit)
    settings = ["--private", "p.json", "--neighbour", "q.json", "--runs", "30"]
    settings += ["--program", "python 'a b.py'"]
    result = invoke("audit", "release", *settings, "--", "coin", "p.json", "--out", "x")
    assert result.exit_code == 6
    assert result.stdout.endswith("detected in a.json\nFAILED       more than was promised\n")
    assert (asked["program"], asked["runs"]) == (["python", "a b.py"], 30)
    assert [*asked["command"]] == ["coin", "p.json", "--out", "x"]
