"""The program `secretballot`: its verbs, and how each of them ends."""

import io
import os
import sys
import warnings
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

import typer
import typer.core

from secretballot.cli import (
    audit,
    check,
    demo,
    evaluate,
    learn,
    ledger,
    plan,
    predict,
    serve,
    sign,
    verify,
)
from secretballot.cli.outcome import EXIT_CODES, guarded


class Program(typer.core.TyperGroup):
    """The group of verbs; it turns every way to end into an exit code."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the verb that the words name and leave with its exit code."""
        # Without any word somebody looks for help, and has made no mistake.
        words = list(sys.argv[1:] if args is None else args) or ["--help"]
        run = partial(
            super().main,
            words,
            prog_name or "secretballot",
            complete_var,
            False,
            windows_expand_args,
            **extra,
        )
        _fill_closed_places()
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")
        with warnings.catch_warnings():
            # A foreign learner's warning may quote its data; what matters is said by the verbs
            # themselves.
            warnings.simplefilter("ignore")
            code = guarded(run, as_json="--json" in words)
        sys.exit(code)


def _fill_closed_places() -> None:
    """Put nothing in the place of standard streams that were closed.

    Else the next file that is opened, maybe a ledger, gets the number of standard error, and
    messages of libraries are written into it.
    """
    for place in range(3):
        try:
            os.fstat(place)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            # not closed: it lasts as long as we do
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115


app = typer.Typer(
    cls=Program,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EXIT_CODES,
)


def _print_version(shown: bool) -> None:
    if shown:
        from importlib.metadata import version

        typer.echo(f"secretballot {version('secretballot')}")
        raise typer.Exit


@app.callback()
def program(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Say the version and leave."
        ),
    ] = False,
) -> None:
    """Learn publishable models from private labels."""


_BEFORE, _LEARN = "Before anything is spent", "Learn and publish"
_USE, _OPERATE = "Use a release", "Operate"
for _verb, _panel in (
    (plan.plan, _BEFORE),
    (check.check, _BEFORE),
    (learn.learn, _LEARN),
    (learn.label, _LEARN),
    (sign.sign, _LEARN),
    (predict.predict, _USE),
    (evaluate.evaluate, _USE),
    (verify.verify, _USE),
):
    app.command(epilog=EXIT_CODES, rich_help_panel=_panel)(_verb)
app.add_typer(ledger.app, name="ledger", rich_help_panel=_OPERATE)
app.add_typer(serve.app, name="serve", rich_help_panel=_OPERATE)
app.add_typer(audit.app, name="audit", rich_help_panel=_OPERATE)
app.command(epilog=EXIT_CODES, rich_help_panel=_OPERATE)(demo.demo)


def main() -> None:
    """Run the program on the words of the command line."""
    app()
