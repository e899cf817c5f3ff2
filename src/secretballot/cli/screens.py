"""Verbs as the parser reads them: options that follow from `RunSpec`, and help texts in sections
that follow the width of the terminal, with an example to copy."""

import inspect
import os
import re
import sys
import textwrap
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from typer.core import TyperCommand, TyperGroup

from secretballot._files import shown_place
from secretballot._validation import Json, JsonView, Names, shown
from secretballot.cli.outcome import RUNNING, Answer, option_of, print_json, show, watching
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
    described,
    groups,
)

#: Key of a context's `meta`: rows of settings that a help text shows besides the options.
_MORE = "secretballot.more"
_EXAMPLE = "Example: "
#: What does the work of a verb.
_Work = Callable[..., Answer]
_Decorator = Callable[[_Work], _Work]


class _Screen:
    """What the help texts of verbs and of their groups have in common."""

    def collect_usage_pieces(self, context: Any) -> list[str]:
        """Return what follows the name: options, and arguments as they are called."""
        arguments = [
            one.metavar if one.required else f"[{one.metavar}]"
            for one in context.command.get_params(context)
            if one.param_type_name == "argument"
        ]
        return ["[OPTIONS]", *(["COMMAND ..."] if hasattr(self, "commands") else arguments)]

    def format_help_text(self, context: Any, formatter: Any) -> None:
        """Write the paragraphs, without the example."""
        with formatter.indentation():
            for text in _paragraphs(self):
                if not text.startswith(_EXAMPLE):
                    formatter.write_text(text)

    def format_options(self, context: Any, formatter: Any) -> None:
        """Write verbs, arguments and options in their sections, all in columns of one width."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for name, verb in getattr(self, "commands", {}).items():
            row = (name, _paragraphs(verb)[0].rstrip("."))
            sections.setdefault(verb.rich_help_panel or "Verbs", []).append(row)
        parameters = context.command.get_params(context)
        usual = RUN if any(one.rich_help_panel == RUN for one in parameters) else "Options"
        for one in parameters:
            if one.param_type_name == "argument":
                sections.setdefault(ARGUMENTS, []).append((one.metavar, one.help))
            else:
                row = one.get_help_record(context)
                sections.setdefault(one.rich_help_panel or usual, []).append(row)
        sections |= context.meta.get(_MORE, {})
        start = 4 + max(len(name) for rows in sections.values() for name, _ in rows)
        for title, rows in sections.items():
            formatter.write(f"\n{title}\n")
            for name, text in rows:
                lines = textwrap.wrap(text, formatter.width - start, break_on_hyphens=False)
                formatter.write(f"  {name:<{start - 2}}" + f"\n{'':{start}}".join(lines) + "\n")

    def format_epilog(self, context: Any, formatter: Any) -> None:
        """Write the example as a shell takes it, and the closing words."""
        for text in _paragraphs(self):
            if text.startswith(_EXAMPLE):
                # an option stays with its value
                pieces = re.split(" (?=-)", text.removeprefix(_EXAMPLE))
                kept = " ".join(piece.replace(" ", "\xa0") for piece in pieces)
                lines = textwrap.wrap(
                    kept, formatter.width - 6, break_long_words=False, break_on_hyphens=False
                )
                text = " \\\n    ".join(lines).replace("\xa0", " ")
                formatter.write(f"\nExample\n  {text}\n")
        if context.command.epilog:
            formatter.write_paragraph()
            formatter.write_text(context.command.epilog)


def _paragraphs(command: Any) -> list[str]:
    text = inspect.cleandoc(command.help or "").partition("\n\nParameters\n")[0]
    return [" ".join(one.split()) for one in text.split("\n\n")]


class _Verb(_Screen, TyperCommand):
    """A verb, whose options messages may name."""

    def invoke(self, context: Any) -> Any:
        """Do the work of the verb."""
        RUNNING.verb = context.command_path.partition(" ")[2]
        RUNNING.options = {word for one in self.params for word in one.opts}
        RUNNING.watch = None
        return super().invoke(context)


class Group(_Screen, TyperGroup):
    """A group of verbs; without a word somebody looks for help, and has made no mistake."""

    def parse_args(self, context: Any, words: list[str]) -> list[str]:
        """Read the words of the group itself."""
        return super().parse_args(context, words or ["--help"])


def group(
    name: str, text: str, *, cls: type[Group] = Group, epilog: str | None = None
) -> typer.Typer:
    """Return an empty group of verbs."""
    return typer.Typer(
        name=name,
        cls=cls,
        help=text,
        epilog=epilog,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )


def verb(group: typer.Typer, panel: str | None = None, name: str | None = None) -> _Decorator:
    """Return a decorator that makes a function a verb of a group, with ``--json``.

    Positional parameters are arguments, and the others options; what they are called and mean is
    in the docstring. A function that wants to know of ``--json`` takes `as_json`, and one that says
    what it does meanwhile `watch`.
    """

    def decorate(function: _Work) -> _Work:
        given = inspect.signature(function).parameters
        texts = {
            name: (metavar, text)
            for head, text in described(function.__doc__).items()
            for name, _, metavar in [head.partition(" : ")]
        }
        own = [
            _declared(one, *texts[one.name]) if one.name in texts else one
            for one in given.values()
            if one.name not in (_AS_JSON, _WATCH)
        ]

        def call(as_json: bool = False, **values: Any) -> None:
            values |= {_AS_JSON: as_json} if _AS_JSON in given else {}
            with ExitStack() as stack:
                if _WATCH in given:
                    values[_WATCH] = stack.enter_context(watching())
                answer = function(**values)
            if as_json:
                print_json(answer.document, answer.code)
            elif answer.text:
                show(answer.text, *answer.facts)
            if answer.code:
                raise typer.Exit(answer.code)

        _with_signature(call, function, [*own, _JSON])
        group.command(name, cls=_Verb, rich_help_panel=panel)(call)
        return function

    return decorate


_AS_JSON, _WATCH = "as_json", "watch"
_JSON = inspect.Parameter(
    _AS_JSON,
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[bool, typer.Option("--json", help="Print one JSON object.")],
)


def _with_signature(
    call: Any, function: Callable[..., Any], parameters: Sequence[inspect.Parameter]
) -> None:
    """Let the parser read the parameters of a function off another one."""
    keywords = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in parameters]
    call.__signature__ = inspect.Signature(keywords)
    call.__annotations__ = {one.name: one.annotation for one in keywords}
    call.__doc__, call.__name__ = function.__doc__, function.__name__


def _declared(parameter: inspect.Parameter, metavar: str, text: str) -> inspect.Parameter:
    """Return a parameter of a verb as the parser reads it."""
    kind, kinds = parameter.annotation, (parameter.annotation, *get_args(parameter.annotation))
    for choice in kinds:
        if get_origin(choice) is Literal:
            text = f"{text.rstrip('.')}: {_words(choice)}."
    if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
        made = typer.Argument(metavar=metavar, help=text)
    else:
        name, shown = option_of(parameter.name), None if kind is bool else metavar
        made = typer.Option(name, metavar=shown, help=text)
    return parameter.replace(annotation=Annotated[kind, made])


def _option(metavar: str, text: str, *names: str, **more: Any) -> Any:
    """Return an option: how its value is called, and what it means."""
    return typer.Option(*names, metavar=metavar, help=text, **more)


def _words(choice: Any) -> str:
    """Return words, or those of a `Literal`, as a help text lists them."""
    *others, last = get_args(choice) or choice
    return f"{', '.join(others)} or {last}"


_METHOD = Annotated[
    str | None,
    _option(
        "NAME", f"{_words(METHODS)}.  [default: {METHODS[0]}]", "--method", rich_help_panel=METHOD
    ),
]
_CONFIG = Annotated[
    list[Path] | None,
    _option("FILE", "Settings or a plan, in TOML; may be repeated.", rich_help_panel=RUN),
]
_SET = Annotated[
    list[str] | None,
    _option("KEY=VALUE", "Any other setting; --help-all lists them.", "--set", rich_help_panel=RUN),
]


def settings_of(
    *places: str,
    method: str | None = None,
    without: str = "",
    required: Names = (),
    more: Names = (),
    **own: str,
) -> _Decorator:
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

    def decorate(verb: _Work) -> _Work:
        mine = list(inspect.signature(verb).parameters.values())[1:]

        def call(**given: Any) -> Answer:
            rest = {one.name: given.pop(one.name) for one in mine}
            given.pop("help_all", None)
            files, pairs = given.pop("config") or [], given.pop("set_") or []
            fields = {name: one for name, one in given.items() if one is not None}
            _find_in_this_folder(*(fields[one] for one in ("teacher", "student") if one in fields))
            return verb(Sources(files, fields | _pairs(pairs), method=method), **rest)

        fields: Json = declared(*places)
        fields.pop(without, None)
        panels = {name: one.json_schema_extra["panel"] for name, one in fields.items()}
        panels |= dict.fromkeys(more, DATA)
        hidden = {name: one for name, one in fields.items() if panels[name] is None}
        options: Json = {}
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
                made = _option(metavar, text, option_of(name), rich_help_panel=panel)
            options[name] = Annotated[str | None, made]
        options |= {"config": _CONFIG, "set_": _SET}
        ordered = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
            for name, kind in options.items()
        ]
        _with_signature(call, verb, [*ordered, *mine, _help_all(hidden)])
        return call

    return decorate


def _find_in_this_folder(*learners: str) -> None:
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


def _help_all(hidden: JsonView) -> inspect.Parameter:
    """Return the option that prints the help with the settings that have no option."""

    def print_all(context: typer.Context, asked: bool) -> None:
        if asked:
            context.meta[_MORE] = {
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
