"""The command line names parameters by their options, and leaves alone what only looks like one."""

import pytest

from secretballot.cli.outcome import RUNNING, failure_of, option_of
from secretballot.exceptions import Argument, DataError, Parameter, ParameterError

NAMES = ("epsilon", "n_teachers", "student")


@pytest.fixture(autouse=True)
def options() -> None:
    """Let a verb with these options and `--set` be the one that runs."""
    for name in (*NAMES, "set"):
        RUNNING.options.add(option_of(name))


def test_a_parameter_is_named_by_its_option_where_the_verb_has_one() -> None:
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


@pytest.mark.parametrize("look", ["{0}", "{0} is 3", "{0}='labels'", "{0}=3", "use {0}=3, {0}"])
def test_a_value_that_looks_like_a_parameter_is_left_alone(look: str) -> None:
    for value in map(look.format, NAMES):
        error = ParameterError(Parameter("student"), f" is {value!r} and {value}; give another.")
        assert failure_of(error).error == f"--student is {value!r} and {value}; give another."
        assert failure_of(DataError(f"{value} is no column.")).error == f"{value} is no column."
        assert failure_of(DataError(f"{value} is no column.")).parameter is None
