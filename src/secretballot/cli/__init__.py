"""The command line: it translates words into calls and results into sentences, and computes
nothing. Here is the program `secretballot`: its verbs, and how each of them ends."""

import io
import os
import sys
import warnings
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

import typer

from secretballot.cli import operate, verbs
from secretballot.cli.outcome import EXIT_CODES, RUNNING, Running, guarded
from secretballot.cli.screens import Group, group, verb


class Program(Group):
    """The group of verbs; it turns every way to end into an exit code."""

    def main(  # type: ignore[override]  # the rest is passed on
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **rest: Any
    ) -> Any:
        """Run the verb that the words name and leave with its exit code."""
        words = list(sys.argv[1:] if args is None else args)
        rest["standalone_mode"] = False
        run = partial(super().main, words, prog_name or "secretballot", **rest)
        _fill_closed_places()
        before = dict(vars(RUNNING))  # of a verb that runs another one
        vars(RUNNING).update(vars(Running()))
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")
        # A foreign learner's warning may quote its data; what matters is reported by the verbs
        # themselves.
        with warnings.catch_warnings(action="ignore"):
            code = guarded(run, as_json="--json" in words)
        vars(RUNNING).update(before)
        sys.exit(code)


def _fill_closed_places() -> None:
    """Put nothing in the place of standard streams that were closed.

    Else the next file that is opened, maybe a ledger, gets the number of standard error, and
    messages of libraries are written into it.
    """
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            # it gets the lowest number that is free, and is not closed: it lasts as long as we do
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


app = group(
    "secretballot", "Learn publishable models from private labels.", cls=Program, epilog=EXIT_CODES
)


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"secretballot {version('secretballot')}")
        raise typer.Exit


@app.callback()
def program(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version, and exit."
        ),
    ] = False,
) -> None:
    """Take the options of the program itself."""


_PANELS = {
    "Before anything is spent": (verbs.plan, verbs.check),
    "Learn and publish": (verbs.learn, verbs.label, verbs.sign),
    "Use a release": (verbs.predict, verbs.evaluate, verbs.verify),
    "Operate": (operate.ledger_verbs, operate.serve_verbs, operate.audit_verbs, verbs.demo),
}
for _panel, _those in _PANELS.items():
    for _verb in _those:
        if isinstance(_verb, typer.Typer):
            app.add_typer(_verb, rich_help_panel=_panel)
        else:
            verb(app, _panel)(_verb)


def main() -> None:
    """Run the program on the words of the command line."""
    app()
