"""`secretballot ledger`: the account of a private dataset, to make and to read."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from secretballot._validation import Composition, Relation, Unit
from secretballot.cli.outcome import EXIT_CODES, print_json, say
from secretballot.cli.settings import AsJson
from secretballot.exceptions import LedgerError

if TYPE_CHECKING:
    from secretballot.core.ledger import LedgerEntry
    from secretballot.core.ledger.urls import DatabasePlace


_PLACE = "The ledger's file, or the URL of a PostgreSQL database."


def ledger_place(text: str) -> "Path | DatabasePlace":
    """Return the file or the database that somebody names.

    Raises
    ------
    typer.BadParameter
        If it is no place for a ledger; quotes nothing of a URL, which may have a password in it.
    """
    from secretballot.core.ledger.urls import file_or_database
    from secretballot.exceptions import ParameterError

    problem = ""
    try:
        return file_or_database(text)
    except ParameterError as error:
        problem = str(error)
    raise typer.BadParameter(problem)


File = Annotated[Path, typer.Argument(metavar="LEDGER", parser=ledger_place, help=_PLACE)]

app = typer.Typer(
    help="Make or read the account of a private dataset.",
    epilog=EXIT_CODES,
    no_args_is_help=False,
)


@app.command(epilog=EXIT_CODES)
def show(file: File, as_json: AsJson = False) -> None:
    """Show whose account it is, what is spent and left, and every release, oldest first.

    \b
    Example: secretballot ledger show patients.csv.ledger
    """
    from secretballot.core.ledger import Ledger

    ledger = Ledger.open_existing(file)
    amounts = {
        name: {"epsilon": pair.epsilon, "delta": pair.delta}
        for name, pair in (
            ("total", ledger.budget),
            ("spent", ledger.spent()),
            ("left", ledger.remaining()),
        )
    }
    entries = ledger.history()
    if as_json:
        terms = {
            name: getattr(ledger, name) for name in ("dataset", "unit", "relation", "composition")
        }
        releases = [
            {**vars(entry), "events": [event.model_dump(mode="json") for event in entry.events]}
            for entry in entries
        ]
        print_json({**terms, **amounts, "releases": releases})
        return
    how = f"each {ledger.unit}, {ledger.relation}, {ledger.composition} composition"
    say(f"{ledger.dataset}: {how}")
    for name, pair in amounts.items():
        say(f"{name:<6} epsilon {pair['epsilon']:<10.6g} delta {pair['delta']:.6g}")
    for entry in entries:
        say(
            f"{entry.id}  {entry.reserved_at[:16].replace('T', ' ')}  epsilon"
            f" {entry.epsilon:<10.6g} delta {entry.delta:<10.6g} {entry.purpose}  "
            f"{_answers_given(entry)}{entry.state}"
        )
    if not entries:
        say("Nothing was paid for yet.")


@app.command(epilog=EXIT_CODES)
def check(file: File, as_json: AsJson = False) -> None:
    """Check every page and every row of the account, from the first one on.

    \b
    Example: secretballot ledger check patients.csv.ledger
    """
    from secretballot.core.ledger import Ledger

    ledger = Ledger.open_existing(file)
    ledger.check()
    rows, chain = ledger.head()
    if as_json:
        print_json({"dataset": ledger.dataset, "rows": rows, "chain": chain, "ok": True})
        return
    say(f"All {rows} rows are as they were written; the last one is {chain}.")


@app.command(epilog=EXIT_CODES)
def grant(
    file: File,
    role: Annotated[str, typer.Argument(metavar="ROLE", help="A role of the database.")],
    as_json: AsJson = False,
) -> None:
    """Let a role of the database read a ledger and add rows, and nothing else.

    The role that owns the ledger does it, once.

    \b
    Example: secretballot ledger grant
             "postgresql://owner@db.example/ledgers?schema=registry" service
    """
    from secretballot.core.ledger import Ledger

    Ledger.grant(file, role)
    if as_json:
        print_json({"granted": role})
        return
    say(f"The role {role} may read the ledger and add rows, and nothing else.")


def _answers_given(entry: "LedgerEntry") -> str:
    """Return how many answers a reservation gave one by one, and of how many where events tell."""
    planned = sum(getattr(event, "queries", 0) for event in entry.events)
    if not entry.parts:
        return ""
    return f"{entry.parts} of {planned} answers  " if planned else f"{entry.parts} answers  "


@app.command(epilog=EXIT_CODES)
def create(
    file: File,
    dataset: Annotated[
        str, typer.Option("--dataset", metavar="NAME", help="Public name of the private dataset.")
    ],
    total: Annotated[
        str,
        typer.Option("--total", metavar="E,D", help="Limit of all releases from the dataset."),
    ],
    composition: Annotated[
        Composition | None,
        typer.Option(help="How releases add up: basic unless given."),
    ] = None,
    unit: Annotated[
        Unit,
        typer.Option(
            help=(
                "What the total promises: one record, all records of a user, or one record's label."
            )
        ),
    ] = "record",
    relation: Relation = "add-remove",
    as_json: AsJson = False,
) -> None:
    """Make the account of a private dataset, with all that may ever be spent on it.

    \b
    Example: secretballot ledger create registry.ledger --dataset registry-2026
             --total 4,1e-5
    """
    from secretballot.core.ledger import Ledger
    from secretballot.runs.spec import PATE, RunSpec, Sources

    # The total is checked before the path, so that a number out of range leaves no file behind. A
    # link that leads nowhere would be followed, whosever its target is.
    spec = Sources(fields={"total": total, "epsilon": 1.0, "delta": 0.0, "method": PATE}).tree()
    budget = RunSpec.of_tree(spec).total
    assert budget is not None
    if Ledger.exists(file):
        raise LedgerError(
            f"{str(file)!r} exists already; a ledger is made once, so give another path or keep"
            " that one."
        )
    Ledger(
        file,
        dataset=dataset,
        budget=budget,
        composition=composition,
        unit=unit,
        relation=relation,
    )
    show(file, as_json=as_json)
