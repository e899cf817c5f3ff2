"""The command line names parameters by their options, and leaves alone what only looks like one."""

import re
from pathlib import Path

import pytest
import typer

import secretballot
from secretballot._validation import check_choice, check_path
from secretballot.cli import app
from secretballot.cli.outcome import failure_of
from secretballot.cli.spelling import OPTIONS
from secretballot.exceptions import Argument, DataError, Parameter, ParameterError

SOURCES = sorted(Path(secretballot.__file__).parent.rglob("*.py"))


@pytest.mark.parametrize(("name", "option"), OPTIONS.items())
def test_every_parameter_is_told_as_its_option(name: str, option: str) -> None:
    error = ParameterError(Parameter(name), f" is 'x'; give another {name}, or ", Argument(name, 3))
    assert str(error) == f"{name} is 'x'; give another {name}, or {name}=3"
    failure = failure_of(error)
    assert failure.error == f"{option} is 'x'; give another {name}, or {option} 3"
    assert failure.parameter == error.parameter == name


def test_every_option_of_the_table_is_one_of_some_verb() -> None:
    def options_of(command: object) -> set[str]:
        below = getattr(command, "commands", {}).values()
        own = {word for one in getattr(command, "params", ()) for word in one.opts}
        return own.union(*map(options_of, below))

    assert set(OPTIONS.values()) <= options_of(typer.main.get_command(app))


def test_a_parameter_without_an_option_keeps_its_name() -> None:
    error = ParameterError(Parameter("whitening"), " is 2; use ", Argument("n_classes", 3), ".")
    assert failure_of(error).error == "whitening is 2; use n_classes=3."
    assert failure_of(error).parameter == "whitening"


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("look", ["{0}", "{0} is 3", "{0}='labels'", "{0}=3", "use {0}=3, {0}"])
def test_a_value_that_looks_like_a_parameter_is_left_alone(name: str, look: str) -> None:
    value = look.format(name)
    error = ParameterError(Parameter("strategy"), f" is {value!r} and {value}; give another.")
    assert failure_of(error).error == f"--strategy is {value!r} and {value}; give another."
    assert failure_of(DataError(f"{value} is no column.")).error == f"{value} is no column."
    assert failure_of(DataError(f"{value} is no column.")).parameter is None


def test_words_that_are_no_name_are_no_parameter() -> None:
    with pytest.raises(ParameterError, match="The vault is 3") as caught:
        check_path("The vault", 3)
    assert caught.value.parameter is None
    with pytest.raises(ParameterError) as caught:
        check_choice("strategy", "n_teachers", ("margin",))
    assert failure_of(caught.value).error == "--strategy is 'n_teachers'; it must be one of margin."


def test_no_message_begins_with_the_name_of_an_option_as_mere_text() -> None:
    message = re.compile(r"\b(?:Parameter|Data)Error\(\s*f?[\"'](?P<text>[^\"'{]*)")
    about = re.compile(rf"({'|'.join(OPTIONS)}) (is|are|has|have|must)\b")
    texts = [
        (source.name, found["text"])
        for source in SOURCES
        for found in message.finditer(source.read_text(encoding="utf-8"))
    ]
    assert len(texts) > 100  # the search finds messages at all
    assert not [text for text in texts if about.match(text[1])]
