"""`secretballot ledger`: the account of a private dataset, to make and to read."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from secretballot._validation import Composition, Unit
from secretballot.cli.options import AsJson, Relation, ledger_place
from secretballot.cli.outcome import EXIT_CODES, print_json, say
from secretballot.exceptions import LedgerError

if TYPE_CHECKING:
    from secretballot.core.ledger import LedgerEntry


_PLACE = "The ledger's file, or the URL of a PostgreSQL database."
File = Annotated[Path, typer.Argument(metavar="LEDGER", parser=ledger_place, help=_PLACE)]

app = typer.Typer(
    help="Make or read the account of a private dataset.",
    epilog=EXIT_CODES,
    no_args_is_help=False,
)


@app.command(epilog=EXIT_CODES)
def show(file: File, as_json: AsJson = False) -> None:
    """Show whose account it is, what it promises, and what is spent and left.

    \b
    Example: secretballot ledger show patients.csv.ledger
    """
    from secretballot.core.ledger import Ledger

    ledger = Ledger.open_existing(file)
    amounts = {
        name: {"epsilon": pair.epsilon, "delta": pair.delta}
        for name, pair in (
            ("budget", ledger.budget),
            ("spent", ledger.spent()),
            ("remaining", ledger.remaining()),
        )
    }
    releases = ledger.releases()
    if as_json:
        terms = {
            name: getattr(ledger, name) for name in ("dataset", "unit", "relation", "composition")
        }
        print_json({**terms, "releases": releases, **amounts})
        return
    say(f"dataset      {ledger.dataset}")
    say(f"promise      for each {ledger.unit}, under {ledger.relation}")
    say(f"composition  {ledger.composition}")
    say(f"releases     {releases}")
    for name, pair in amounts.items():
        say(f"{name:<12} epsilon {pair['epsilon']:.6g}, delta {pair['delta']:.6g}")


@app.command(epilog=EXIT_CODES)
def history(file: File, as_json: AsJson = False) -> None:
    """List every release that was paid for, oldest first.

    \b
    Example: secretballot ledger history patients.csv.ledger
    """
    from secretballot.core.ledger import Ledger

    entries = Ledger.open_existing(file).history()
    if as_json:
        plain = [
            {**vars(entry), "events": [event.model_dump(mode="json") for event in entry.events]}
            for entry in entries
        ]
        print_json({"releases": plain})
        return
    for entry in entries:
        say(
            f"{entry.id:>4}  {entry.reserved_at[:19]}  {entry.state:<10}  epsilon"
            f" {entry.epsilon:<10.6g} delta {entry.delta:<10.6g} {_answers_given(entry)}"
            f"{entry.purpose}  {entry.request}"
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
    epsilon: Annotated[
        float,
        typer.Option("--epsilon", help="All the epsilon that may ever be spent on the dataset."),
    ],
    delta: Annotated[
        float, typer.Option("--delta", help="All the delta that may ever be spent on the dataset.")
    ],
    composition: Annotated[
        Composition | None,
        typer.Option(help="How releases add up: basic unless given."),
    ] = None,
    unit_kind: Annotated[
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
             --epsilon 4 --delta 1e-5
    """
    from secretballot.accounting import PrivacyBudget
    from secretballot.core.ledger import Ledger

    # The budget is checked before the path, so that a number out of range leaves no file behind. A
    # link that leads nowhere would be followed, whosever its target is.
    budget = PrivacyBudget(epsilon, delta)
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
        unit=unit_kind,
        relation=relation,
    )
    show(file, as_json=as_json)
