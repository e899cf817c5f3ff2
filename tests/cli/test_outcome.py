"""How a verb ends: the exit code, the sentence, the JSON object; and what is never said."""

import json
from typing import NoReturn

import pytest
import typer

from secretballot.cli.outcome import Running, failure_of, guarded
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
        (SamplerError("mend it"), "sampler", 7),
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
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
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
