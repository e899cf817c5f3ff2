"""Options that follow from `RunSpec`, for every verb that has settings of a run."""

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer

from secretballot._places import shown_place
from secretballot._validation import shown
from secretballot.exceptions import ParameterError
from secretballot.runs.spec import (
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
    shown_fields,
)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.", rich_help_panel=RUN)]
METHOD_OPTION = Annotated[
    str | None,
    typer.Option(
        "--method",
        metavar="NAME",
        help=f"{', '.join(METHODS[:-1])} or {METHODS[-1]}.",
        rich_help_panel="Method",
    ),
]
LEARNING: tuple[type[Part], ...] = (
    DataSpec,
    BudgetSpec,
    *(METHOD_SPECS[one] for one in METHODS),
    OutputSpec,
    ExecutionSpec,
)


def settings_of(
    *models: type[Part], method: str | None = None, arguments: tuple[str, ...] = (), **own: Any
) -> Callable[[Callable[..., None]], Callable[..., None]]:
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
    **own
        Other words for the help of an argument, by its name.
    """

    def decorate(verb: Callable[..., None]) -> Callable[..., None]:
        mine = list(inspect.signature(verb).parameters.values())[1:]

        def call(**given: Any) -> None:
            rest = {one.name: given.pop(one.name) for one in mine}
            files, pairs = given.pop("config") or (), given.pop("set_") or ()
            fields = {name.removesuffix("_"): one for name, one in given.items() if one is not None}
            sources = Sources(files, fields | _pairs(pairs), method=method)
            verb(sources, **rest)

        fields = [(name, info) for name, info in shown_fields(*models) if name not in arguments]
        given: dict[str, Any] = {name: _argument(name, own.get(name, "")) for name in arguments} | {
            _python_name(name): _option(name, info) for name, info in fields
        }
        if method is None:
            given["method"] = METHOD_OPTION
        given |= {"config": _CONFIG, "set_": _set_option(models)}
        ordered = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
            for name, kind in given.items()
        ]
        own_parameters = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in mine]
        call.__signature__ = inspect.Signature(ordered + own_parameters)  # type: ignore[attr-defined]
        call.__annotations__ = given | {one.name: one.annotation for one in mine}
        call.__doc__, call.__name__ = verb.__doc__, verb.__name__
        return call

    return decorate


_CONFIG = Annotated[
    list[Path] | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="Settings or a plan, in TOML; may be repeated.",
        rich_help_panel=RUN,
    ),
]


def _set_option(models: tuple[type[Part], ...]) -> Any:
    hidden = ", ".join(sorted(_hidden(models)))
    return Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help=f"Any other setting: {hidden}.",
            rich_help_panel=RUN,
        ),
    ]


def _hidden(models: tuple[type[Part], ...]) -> set[str]:
    """Return the settings of groups that have no option."""
    shown = {name for name, _ in shown_fields(*models)}
    groups_of_verb: tuple[type[Part], ...] = (*models, AboutSpec)
    names = {
        field.alias or name
        for model in groups_of_verb
        for name, field in model.model_fields.items()
        if field.json_schema_extra is not None and name not in ("private", "public")
    }
    return names - shown


def _python_name(name: str) -> str:
    return f"{name}_" if name in ("schema",) else name


def _option(name: str, info: Any) -> Any:
    extra: Mapping[str, Any] = info.json_schema_extra
    return Annotated[
        str | None,
        typer.Option(
            option_of(name),
            metavar=extra["metavar"],
            help=info.description,
            rich_help_panel=extra["panel"],
        ),
    ]


def _argument(name: str, words: str) -> Any:
    help_text = words or (DataSpec.model_fields[name].description or "")
    return Annotated[
        str | None, typer.Argument(metavar=name.upper(), help=help_text, show_default=False)
    ]


def _pairs(pairs: Any) -> dict[str, Any]:
    """Return the settings of ``--set KEY=VALUE``, whose keys may have their group before them.

    Raises
    ------
    ParameterError
        If one is not written so, or is given twice.
    """
    found: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        group, dot, name = key.strip().rpartition(".")
        if not equals or (dot and groups().get(name) != group) or name in found:
            raise ParameterError(
                f"--set {shown(shown_place(key))} is no new setting; write KEY=VALUE, each key"
                " once."
            )
        found[name] = value.strip()
    return found


def option_of(name: str) -> str:
    """Return the option of a setting."""
    return f"--{name.replace('_', '-')}"


@cache
def options() -> frozenset[str]:
    """Return the parameters that have an option wherever a message names them."""
    shown = {name for name, _ in shown_fields(*LEARNING)}
    return frozenset({*shown, "method", *_OF_OTHER_VERBS})


#: Parameters of verbs without settings of a run, that have an option of their name.
_OF_OTHER_VERBS = (
    "canaries",
    "change",
    "composition",
    "confidence",
    "curve",
    "expires",
    "header",
    "key",
    "kind",
    "like",
    "minutes",
    "row",
    "runs",
    "steps",
    "stream",
    "timeout",
)
