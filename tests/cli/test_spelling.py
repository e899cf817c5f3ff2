"""The command line names parameters by their options, and leaves alone what only looks like one."""

import pytest
import typer

from secretballot.cli import app
from secretballot.cli.outcome import failure_of
from secretballot.cli.settings import option_of, options
from secretballot.exceptions import Argument, DataError, Parameter, ParameterError


def test_every_parameter_is_told_as_its_option() -> None:
    for name in options():
        option = option_of(name)
        rest = f" is 'x'; give another {name}, or "
        error = ParameterError(Parameter(name), rest, Argument(name, 3))
        assert str(error) == f"{name} is 'x'; give another {name}, or {name}=3"
        failure = failure_of(error)
        assert failure.error == f"{option} is 'x'; give another {name}, or {option} 3"
        assert failure.parameter == error.parameter == name


def test_every_option_of_the_table_is_one_of_some_verb() -> None:
    def options_of(command: object) -> set[str]:
        below = getattr(command, "commands", {}).values()
        own = {word for one in getattr(command, "params", ()) for word in one.opts}
        return own.union(*map(options_of, below))

    assert set(map(option_of, options())) <= options_of(typer.main.get_command(app))


@pytest.mark.parametrize("look", ["{0}", "{0} is 3", "{0}='labels'", "{0}=3", "use {0}=3, {0}"])
def test_a_value_that_looks_like_a_parameter_is_left_alone(look: str) -> None:
    for value in map(look.format, options()):
        error = ParameterError(Parameter("student"), f" is {value!r} and {value}; give another.")
        assert failure_of(error).error == f"--student is {value!r} and {value}; give another."
        assert failure_of(DataError(f"{value} is no column.")).error == f"{value} is no column."
        assert failure_of(DataError(f"{value} is no column.")).parameter is None
