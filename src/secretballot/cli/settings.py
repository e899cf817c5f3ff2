"""Options that follow from `RunSpec`, for every verb that has settings of a run."""

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from secretballot._places import shown_place
from secretballot._validation import shown
from secretballot.cli.outcome import Answer, option_of
from secretballot.cli.screens import MORE, argument, option, with_signature, words
from secretballot.exceptions import ParameterError
from secretballot.runs.spec import (
    DATA,
    METHOD,
    METHOD_SPECS,
    METHODS,
    RUN,
    AboutSpec,
    BudgetSpec,
    DataSpec,
    ExecutionSpec,
    OutputSpec,
    Part,
    Sources,
    groups,
)

LEARNING: tuple[type[Part], ...] = (
    DataSpec,
    BudgetSpec,
    *(METHOD_SPECS[one] for one in METHODS),
    OutputSpec,
    ExecutionSpec,
    AboutSpec,
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
    *models: type[Part],
    method: str | None = None,
    arguments: tuple[str, ...] = (),
    required: tuple[str, ...] = (),
    more: tuple[str, ...] = (),
    **own: str,
) -> Callable[[Callable[..., Answer]], Callable[..., Answer]]:
    """Return a decorator that gives a verb the options of these groups of settings.

    The verb takes `Sources` first, then what its own parameters name.

    Parameters
    ----------
    *models : subclass of Part
        Groups whose shown fields become options.
    method : str, optional
        Method of the run, where the verb fixes it; by default ``--method`` is an option.
    arguments : tuple of str
        Fields that are given without an option, in this order.
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
            fields = {name.removesuffix("_"): one for name, one in given.items() if one is not None}
            return verb(Sources(files, fields | _pairs(pairs), method=method), **rest)

        data = DataSpec.model_fields
        options: dict[str, Any] = {
            one: Annotated[
                str | None, argument(one.upper(), own.get(one) or str(data[one].description))
            ]
            for one in arguments
        }
        shown, hidden = _fields(models)
        shown |= {one: hidden.pop(one) for one in more}
        for name, field in shown.items():
            extra: Any = field.json_schema_extra
            if extra["panel"] == METHOD and method is None:
                options.setdefault("method", _METHOD)  # before the settings of one method
            if name not in arguments:
                text = own.get(name) or _help_of(field)
                text += "  [required]" if name in required else ""
                options[f"{name}_" if name == "schema" else name] = _option(name, field, text)
        options |= {"config": _CONFIG, "set_": _SET}
        ordered = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
            for name, kind in options.items()
        ]
        with_signature(call, verb, [*ordered, *mine, _help_all(hidden)])
        return call

    return decorate


def _option(name: str, field: Any, text: str) -> Any:
    extra = field.json_schema_extra
    shown_in = extra["panel"] or DATA
    return Annotated[
        str | None, option(extra["metavar"], text, option_of(name), rich_help_panel=shown_in)
    ]


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


def _fields(models: tuple[type[Part], ...]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the settings of groups that a help text shows, and those that have no option."""
    found: dict[bool, dict[str, Any]] = {True: {}, False: {}}
    for model in models:
        for name, (_, field) in model.settings().items():
            extra: Any = field.json_schema_extra
            if extra is not None:
                found[extra["panel"] is not None].setdefault(name, field)
    unseen = found[False].keys() - found[True].keys() - {"private", "public"}
    return found[True], {name: one for name, one in found[False].items() if name in unseen}


def _pairs(pairs: list[str]) -> dict[str, str]:
    """Return the settings of ``--set KEY=VALUE``, whose keys may have their group before them.

    Raises
    ------
    ParameterError
        If one has no value, or is given twice.
    """
    found: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        group, _, name = key.strip().rpartition(".")
        name = name if groups().get(name) == group else key.strip()
        if not equals:
            raise ParameterError(f"--set {shown(shown_place(pair))} has no value; write KEY=VALUE.")
        if name in found:
            raise ParameterError(f"--set gives {shown(name)} twice; give it once.")
        found[name] = value.strip()
    return found
