"""`secretballot demo`: all of the program on a simulated clinic."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from secretballot.cli.outcome import say

_WHAT = {
    "check": "compare the tables",
    "learn": "learn a model, and write a release",
    "verify": "verify the release, by two programs",
    "predict": "predict new rows",
}


def demo(
    context: typer.Context,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Folder of the data and the run.")
    ] = Path("demo-out"),
) -> None:
    """Run all of this on a simulated clinic, in seconds; needs no network.

    \b
    Example: secretballot demo --out demo-out
    """
    from secretballot.runs.demo import demonstration_commands

    program = context.find_root().command
    commands = demonstration_commands(out)
    say(f"Simulated clinic in {out}: 20,000 private, 2,000 public, 4,000 test patients")
    for number, (name, words) in enumerate(commands.items(), start=1):
        say(f"{number} {_WHAT[name]}")
        say(f"  $ secretballot {shlex.join(words)}")
        try:
            program.main(words, prog_name="secretballot")
        except SystemExit as end:  # as every verb ends
            if end.code:
                raise
    say(f"Open {out / 'study' / 'release' / 'report.html'}; repeat any command above.")
