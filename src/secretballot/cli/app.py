"""The program `secretballot`: its verbs, and how each of them ends."""

import sys
import warnings
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

import typer
import typer.core

from secretballot.cli import (
    ask,
    audit,
    choose,
    compare,
    completion,
    demo,
    diagnose,
    keys,
    label,
    learn,
    ledger,
    plan,
    predict,
    prepare,
    price,
    schema,
    serve,
    sign,
    verify,
)
from secretballot.cli.help_groups import GroupedCommand
from secretballot.cli.outcome import EXIT_CODES, guarded, settled
from secretballot.cli.streams import lasting_streams

__all__ = ["app", "main"]


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
        with warnings.catch_warnings(), lasting_streams() as streams:
            # A foreign learner's warning may quote its data; what matters is said by the verbs
            # themselves.
            warnings.simplefilter("ignore")
            code = settled(guarded(run, as_json="--json" in words), streams.trouble())
        sys.exit(code)


app = typer.Typer(
    cls=Program,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
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
    """Learn publishable models from private labels: many teachers vote in secret, only noisy
    outcomes leave."""


app.command(name="plan", cls=GroupedCommand, epilog=EXIT_CODES)(plan.plan)
app.command(name="schema", epilog=EXIT_CODES)(schema.schema)
app.command(name="learn", cls=GroupedCommand, epilog=EXIT_CODES)(learn.learn)
app.command(name="price", cls=GroupedCommand, epilog=EXIT_CODES)(price.price)
app.command(name="label", cls=GroupedCommand, epilog=EXIT_CODES)(label.label)
app.command(name="choose", cls=GroupedCommand, epilog=EXIT_CODES)(choose.choose)
app.command(name="diagnose", cls=GroupedCommand, epilog=EXIT_CODES)(diagnose.diagnose)
app.command(name="predict", epilog=EXIT_CODES)(predict.predict)
app.command(name="compare", epilog=EXIT_CODES)(compare.compare)
app.command(name="verify", epilog=EXIT_CODES)(verify.verify)
app.command(name="sign", epilog=EXIT_CODES)(sign.sign)
app.command(name="signing-key", epilog=EXIT_CODES)(sign.signing_key)
app.add_typer(ledger.app, name="ledger")
app.add_typer(audit.app, name="audit")
app.command(name="prepare", cls=GroupedCommand, epilog=EXIT_CODES)(prepare.prepare)
app.command(name="serve", epilog=EXIT_CODES)(serve.serve)
app.add_typer(keys.app, name="keys")
app.command(name="ask", epilog=EXIT_CODES)(ask.ask)
app.command(name="demo", epilog=EXIT_CODES)(demo.demo)
app.command(name="completion", epilog=EXIT_CODES)(completion.completion)


def main() -> None:
    """Run the program on the words of the command line."""
    app()
