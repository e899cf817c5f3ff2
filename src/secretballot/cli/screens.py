"""Help texts in sections that follow the width of the terminal, with an example to copy."""

import inspect
import os
import re
from collections.abc import Callable
from typing import Any, get_args

import typer
from typer.core import TyperCommand, TyperGroup

from secretballot.cli.outcome import VERB_OPTIONS
from secretballot.runs.spec import RUN

#: Key of a context's `meta`: rows of settings that a help text shows besides the options.
MORE = "secretballot.more"
_EXAMPLE = "Example: "


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
            own = "Arguments" if one.param_type_name == "argument" else one.rich_help_panel
            sections.setdefault(own or usual, []).append(_row(one))
        sections |= context.meta.get(MORE, {})
        start = 4 + max(len(name) for rows in sections.values() for name, _ in rows)
        for title, rows in sections.items():
            bold = "NO_COLOR" not in os.environ
            formatter.write(f"\n{typer.style(title, bold=True) if bold else title}\n")
            for name, text in rows:
                lines = wrapped(text.split(" "), formatter.width - start)
                formatter.write(f"  {name:<{start - 2}}" + f"\n{'':{start}}".join(lines) + "\n")

    def format_epilog(self, context: Any, formatter: Any) -> None:
        """Write the example as a shell takes it, and what is said last."""
        for text in _paragraphs(self):
            if text.startswith(_EXAMPLE):
                # an option stays with its value
                words = re.split(" (?=-)", text.removeprefix(_EXAMPLE))
                lines = wrapped(words, formatter.width - 6)
                formatter.write("\nExample\n  " + " \\\n    ".join(lines) + "\n")
        if context.command.epilog:
            formatter.write_paragraph()
            formatter.write_text(context.command.epilog)


def wrapped(words: list[str], width: int) -> list[str]:
    """Return words in lines of at most a width, where they are not longer themselves."""
    lines = [words[0]]
    for word in words[1:]:
        if len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return [line.rstrip() for line in lines]


def _paragraphs(command: Any) -> list[str]:
    return [" ".join(one.split()) for one in inspect.cleandoc(command.help or "").split("\n\n")]


def _row(parameter: Any) -> tuple[str, str]:
    """Return how a help text names a parameter, and what it says of it."""
    words = [parameter.help or ""]
    if parameter.param_type_name == "argument":
        return parameter.metavar, words[0]
    name = ", ".join(sorted(parameter.opts, key=len))
    if not parameter.is_flag:
        name += f" {parameter.metavar}"
        default = parameter.default
        words += [f"[default: {default}]"] if default not in (None, "", (), []) else []
    words += ["[required]"] if parameter.required else []
    return name, "  ".join(words)


class Verb(_Screen, TyperCommand):
    """A verb, whose options messages may name."""

    def invoke(self, context: Any) -> Any:
        """Do the work of the verb."""
        VERB_OPTIONS.clear()
        VERB_OPTIONS.update(word for one in self.params for word in one.opts)
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


def verb(
    group: typer.Typer, panel: str | None = None, name: str | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that makes a function a verb of a group."""
    return group.command(name, cls=Verb, rich_help_panel=panel)


def words(choice: Any) -> str:
    """Return the words of a `Literal`, as a help text lists them."""
    *others, last = get_args(choice)
    return f"{', '.join(others)} or {last}"
