"""Errors name their parameter as a field, also after a journey between processes."""

import copy
import pickle

import pytest

from secretballot import exceptions
from secretballot.exceptions import Argument, Parameter, SecretBallotError

CLASSES = [
    value
    for value in vars(exceptions).values()
    if isinstance(value, type) and issubclass(value, SecretBallotError)
]
PARTS = (Parameter("release"), " is 'counts'; use ", Argument("release", "labels"), ".")


@pytest.mark.parametrize("kind", CLASSES)
def test_the_message_is_joined_from_its_parts(kind: type[SecretBallotError]) -> None:
    error = kind(*PARTS)
    assert str(error) == "release is 'counts'; use release='labels'."
    assert error.args == (str(error),)
    assert error.parts == PARTS
    assert error.parameter == "release"
    assert kind("release is text").parameter is None


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("travelled", [lambda one: pickle.loads(pickle.dumps(one)), copy.copy])
def test_an_error_keeps_its_parts_on_the_way(kind: type[SecretBallotError], travelled) -> None:
    error = kind(*PARTS)
    error.add_note("while trying")
    again = travelled(error)
    assert type(again) is kind
    assert (str(again), again.args, again.parts) == (str(error), error.args, PARTS)
    assert again.__notes__ == ["while trying"]
