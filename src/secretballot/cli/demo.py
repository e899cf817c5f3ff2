"""`secretballot demo`: all of the program on a simulated clinic."""

import io
import shlex
import shutil
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated

import typer

from secretballot.cli.outcome import say

#: Lines of each verb's output that are shown, by their first word.
_SHOWN = {
    "check": ("tables",),
    "learn": ("accuracy", "price"),
    "verify": ("The second",),
    "predict": (),
}


def demo(
    context: typer.Context,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="New folder for the data and the run.")
    ] = Path("demo-out"),
) -> None:
    """Run all of this on a simulated clinic, in seconds.

    Needs no network.

    Example: secretballot demo --out demo-out
    """
    from secretballot.runs.demo import demonstration_commands

    program, name = context.find_root().command, _name_of_program()
    commands = demonstration_commands(out)
    say(f"Simulated clinic in {out}: 20,000 private, 2,000 public, 4,000 test patients")
    for number, (verb, words) in enumerate(commands.items(), start=1):
        say(f"{number} {verb:<9}{name} {shlex.join(words)}")
        printed = io.StringIO()
        with redirect_stdout(printed):
            try:
                program.main(words, prog_name="secretballot")
            except SystemExit as end:  # as every verb ends
                if end.code:
                    raise
        for line in printed.getvalue().splitlines():
            if line.startswith(_SHOWN[verb]):
                say(f"{'':<11}{line}")
    say(f"Open {out / 'study' / 'release' / 'report.html'}; repeat any command above.")


def _name_of_program() -> str:
    """Return how this program is started from where the user is."""
    start = Path(sys.argv[0])
    if start.name == "__main__.py":
        return f"{shlex.quote(sys.executable)} -m secretballot"
    return "secretballot" if shutil.which("secretballot") else shlex.quote(sys.argv[0])
