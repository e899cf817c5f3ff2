"""Options that follow from `RunSpec`, for every verb that has settings of a run."""

import inspect
import os
import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from secretballot._files import shown_place
from secretballot._validation import shown
from secretballot.cli.outcome import Answer, option_of
from secretballot.cli.screens import MORE, option, with_signature, words
from secretballot.exceptions import ParameterError
from secretballot.named_learners import imports_a_class
from secretballot.runs.spec import (
    ARGUMENTS,
    DATA,
    METHOD,
    METHODS,
    RUN,
    Sources,
    declared,
    groups,
)

_METHOD = Annotated[
    str | None,
    option(
        "NAME", f"{words(METHODS)}.  [default: {METHODS[0]}]", "--method", rich_help_panel=METHOD
    ),
]
_CONFIG = Annotated[
    list[Path] | None,
    option("FILE", "Settings or a plan, in TOML; may be repeated.", rich_help_panel=RUN),
]
_SET = Annotated[
    list[str] | None,
    option("KEY=VALUE", "Any other setting; --help-all lists them.", "--set", rich_help_panel=RUN),
]


def settings_of(
    *places: str,
    method: str | None = None,
    without: str = "",
    required: tuple[str, ...] = (),
    more: tuple[str, ...] = (),
    **own: str,
) -> Callable[[Callable[..., Answer]], Callable[..., Answer]]:
    """Return a decorator that gives a verb the options of these groups of settings.

    The verb takes `Sources` first, then what its own parameters name.

    Parameters
    ----------
    *places : str
        Of settings, as `declared` takes them, whose shown fields become options.
    method : str, optional
        Method of the run, where the verb fixes it; by default ``--method`` is an option.
    without : str
        A setting of these places that the verb does not have.
    required : tuple of str
        Options whose help says that they are; a file may give them, too.
    more : tuple of str
        Fields of the data that become options, too, though they are usually hidden.
    **own
        Other words for the help of an argument or an option, by its name.
    """

    def decorate(verb: Callable[..., Answer]) -> Callable[..., Answer]:
        mine = list(inspect.signature(verb).parameters.values())[1:]

        def call(**given: Any) -> Answer:
            rest = {one.name: given.pop(one.name) for one in mine}
            given.pop("help_all", None)
            files, pairs = given.pop("config") or [], given.pop("set_") or []
            fields = {name: one for name, one in given.items() if one is not None}
            find_in_this_folder(*(fields[one] for one in ("teacher", "student") if one in fields))
            return verb(Sources(files, fields | _pairs(pairs), method=method), **rest)

        fields: dict[str, Any] = declared(*places)
        fields.pop(without, None)
        panels = {name: one.json_schema_extra["panel"] for name, one in fields.items()}
        panels |= dict.fromkeys(more, DATA)
        hidden = {name: one for name, one in fields.items() if panels[name] is None}
        options: dict[str, Any] = {}
        # in the order of the declarations, and then what else was asked for
        for name in sorted((one for one in fields if one not in hidden), key=more.__contains__):
            field, panel = fields[name], panels[name]
            metavar = field.json_schema_extra["metavar"]
            text = own.get(name) or _help_of(field)
            text += "  [required]" if name in required else ""
            if panel == METHOD and method is None:
                options.setdefault("method", _METHOD)  # before the settings of one method
            if panel == ARGUMENTS:
                made = typer.Argument(metavar=metavar, help=text)
            else:
                made = option(metavar, text, option_of(name), rich_help_panel=panel)
            options[name] = Annotated[str | None, made]
        options |= {"config": _CONFIG, "set_": _SET}
        ordered = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
            for name, kind in options.items()
        ]
        with_signature(call, verb, [*ordered, *mine, _help_all(hidden)])
        return call

    return decorate


def find_in_this_folder(*learners: str) -> None:
    """Let the user's own classes in the current folder be found, as of ``--teacher mymodel:Class``.

    A script finds the modules beside it, a program that was installed does not. The folder is
    looked into only where a module that was named on the command line, never in a file, is found
    nowhere else, and it comes last: whatever lies in it takes the place of no installed module.
    """
    for name in learners:
        top = name.partition(":")[0].partition(".")[0]
        # `python -P` and PYTHONSAFEPATH ask that this folder be left alone
        wanted = imports_a_class(name) and top.isidentifier() and not sys.flags.safe_path
        if wanted and find_spec(top) is None:
            sys.path.append(os.getcwd())


def _help_of(field: Any) -> str:
    usual = field.default
    plain = isinstance(usual, str | int | Path) and not isinstance(usual, bool)
    return f"{field.description}  [default: {usual}]" if plain else str(field.description)


def _help_all(hidden: Mapping[str, Any]) -> inspect.Parameter:
    """Return the option that prints the help with the settings that have no option."""

    def print_all(context: typer.Context, asked: bool) -> None:
        if asked:
            context.meta[MORE] = {
                "Settings without an option, for --set and files of --config": [
                    (name, _help_of(field)) for name, field in hidden.items()
                ]
            }
            typer.echo(context.get_help())
            raise typer.Exit

    shown_all = typer.Option(
        "--help-all", callback=print_all, is_eager=True, help="Show all settings, and exit."
    )
    keyword = inspect.Parameter.KEYWORD_ONLY
    kind = Annotated[bool, shown_all]
    return inspect.Parameter("help_all", keyword, default=False, annotation=kind)


def _pairs(pairs: list[str]) -> dict[str, str]:
    """Return the settings of ``--set KEY=VALUE``, whose keys may have their group before them.

    Raises
    ------
    ParameterError
        If one has no value.
    """
    found: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        group, _, name = key.strip().rpartition(".")
        name = name if groups().get(name) == group else key.strip()
        if not equals:
            raise ParameterError(f"--set {shown(shown_place(pair))} has no value; write KEY=VALUE.")
        found[name] = value.strip()
    return found
