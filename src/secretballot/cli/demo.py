"""`secretballot demo`: the whole way on data that comes with the program."""

from pathlib import Path
from typing import Annotated

import typer

from secretballot.cli.learn import print_lines, run_and_watch, summary
from secretballot.cli.metrics_lines import print_no_better
from secretballot.cli.options import AsJson
from secretballot.cli.outcome import print_json, say


def demo(
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Folder for data and runs.")
    ] = Path("demo-out"),
    as_json: AsJson = False,
) -> None:
    """Write two small data sets as files and run `learn` on each: a clinic and breast cancer data.

    The clinic is simulated. Takes less than two minutes on two cores, and needs no network.

    \b
    Example: secretballot demo --out demo-out
    """
    from secretballot.runs.demo import demonstration_runs

    documents = {}
    for name, run in demonstration_runs(out).items():
        outcome, notes = run_and_watch(run)
        documents[name] = summary(outcome, notes)
        if not as_json:
            say(f"--- {name}: learnt from {run.tables.private}")
            print_no_better(outcome.metrics)
            print_lines(outcome)
    if as_json:
        print_json(documents)
