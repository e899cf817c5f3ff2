"""Every public class shows how it is used, and every example in a public docstring runs as it
stands."""

import doctest
import inspect
from operator import attrgetter

import numpy as np
import pytest

import secretballot as sb
from public_rooms import PUBLIC_ROOMS

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def public_things():
    """Return the public classes and functions of the package by their full names."""
    rooms = [sb, *attrgetter(*PUBLIC_ROOMS)(sb)]
    named = [getattr(room, name) for room in rooms for name in names_of(room)]
    return {
        f"{thing.__module__}.{thing.__qualname__}": thing
        for thing in named
        if inspect.isclass(thing) or inspect.isfunction(thing)
    }


def names_of(room):
    """Return the public names of a package, or of a module that says none: what it defines."""
    own = (name for name, thing in vars(room).items() if is_of(thing, room.__name__))
    return list(getattr(room, "__all__", [name for name in own if not name.startswith("_")]))


def is_of(thing, module):
    return getattr(thing, "__module__", None) == module


THINGS = public_things()


def examples_of(name):
    """Return the examples in the docstring of a public thing, and in those of its methods."""
    finder = doctest.DocTestFinder()
    found = finder.find(THINGS[name], name, globs={"sb": sb, "np": np})
    return [test for test in found if test.examples]


def test_a_public_class_shows_how_it_is_used():
    for name, thing in THINGS.items():
        if inspect.isclass(thing):
            text = inspect.getdoc(thing) or ""
            assert "\nExamples\n--------\n" in text, f"{name} has no section of examples"
            assert doctest.DocTestParser().get_examples(text), f"{name} has no example"


@pytest.mark.parametrize("name", [name for name in THINGS if examples_of(name)])
def test_examples_run_as_they_stand(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # examples may open ledgers and write releases
    for test in examples_of(name):
        said = []
        failed, _ = doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=said.append)
        assert failed == 0, "".join(said)
