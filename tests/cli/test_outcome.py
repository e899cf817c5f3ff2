"""How a verb ends: the exit code, the sentence, the JSON object; and what is never said."""

import errno
import json
from typing import NoReturn

import pytest
import typer

from secretballot.cli.outcome import _usage_sentence, failure_of, guarded
from secretballot.exceptions import (
    BudgetError,
    CertificateError,
    DataError,
    LedgerError,
    ParameterError,
    SamplerError,
    SecretBallotError,
)

SECRET = "s3cr3t-cell"


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        (ParameterError("mend it"), "parameter", 2),
        (DataError("mend it"), "data", 2),
        (LedgerError("mend it"), "ledger", 2),
        (SamplerError("mend it"), "sampler", 2),
        (SecretBallotError("mend it"), "input", 2),
        (BudgetError("mend it"), "budget", 3),
        (CertificateError("mend it"), "certificate", 4),
        (typer.BadParameter("mend it"), "usage", 2),
    ],
)
def test_every_error_of_ours_has_its_code_and_its_words(
    error: Exception, kind: str, code: int
) -> None:
    failure = failure_of(error)
    assert (failure.kind, failure.exit_code) == (kind, code)
    assert "mend it" in failure.error


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_is_said_plainly(number: int) -> None:
    failure = failure_of(OSError(number, "No space left on device", "/out/x"))
    assert (failure.kind, failure.exit_code) == ("system", 2)
    assert failure.error.startswith("The disk is full (/out/x); make room")


def test_other_troubles_of_the_system_are_bad_input() -> None:
    assert (
        failure_of(PermissionError(errno.EACCES, "Permission denied", "x")).error
        == "The system refused (x): Permission denied."
    )
    assert failure_of(MemoryError()).exit_code == 2


def test_interruption_has_its_code() -> None:
    assert failure_of(KeyboardInterrupt()).exit_code == 130
    assert failure_of(typer.Abort()).exit_code == 130


def test_an_error_that_nobody_foresaw_keeps_its_message_to_itself() -> None:
    failure = failure_of(ValueError(f"could not convert string to float: {SECRET!r}"))
    assert failure.exit_code == 1
    assert SECRET not in failure.error
    assert "ValueError" in failure.error


def refuse() -> NoReturn:
    raise DataError("This does not fit; mend it.")


def test_the_sentence_goes_to_standard_error_and_the_object_to_standard_output(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert guarded(refuse, as_json=False) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "secretballot: This does not fit; mend it.\n"
    assert guarded(refuse, as_json=True) == 2
    out, err = capsys.readouterr()
    assert json.loads(out) == {
        "error": "This does not fit; mend it.",
        "kind": "data",
        "exit_code": 2,
        "parameter": None,
    }
    assert err.count("\n") == 1


def test_work_that_ends_well_returns_its_code() -> None:
    assert guarded(lambda: None, as_json=True) == 0
    assert guarded(lambda: 4, as_json=True) == 4
    assert guarded(lambda: 130, as_json=False) == 130


@pytest.mark.parametrize(
    ("words", "given", "said"),
    [
        (
            "Invalid value for '--jobs': Input should be a valid integer, unable to parse it",
            "two",
            "--jobs is 'two'; it must be an integer, such as 3.",
        ),
        (
            "Invalid value for '--jobs': 'two' is not a valid integer.",
            None,
            "--jobs is 'two'; it must be an integer, such as 3.",
        ),
        (
            "Invalid value for 'SHELL:{bash|fish}': 'tcsh' is not one of 'bash', 'fish'.",
            None,
            "SHELL is 'tcsh'; it must be one of bash, fish.",
        ),
        (
            "Invalid value for 'PRIVATE': Value error, embedded null byte",
            "a\0",
            "PRIVATE is 'a\\x00'; it cannot be used; see --help for what it may be.",
        ),
        ("Missing option '--target'.", None, "Missing option '--target'."),
    ],
)
def test_what_a_parser_says_of_a_value_is_said_in_our_words(
    words: str, given: str | None, said: str
) -> None:
    """The sentences are those of several versions of typer."""
    assert _usage_sentence(words, given) == said
