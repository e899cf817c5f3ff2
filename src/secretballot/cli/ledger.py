"""`secretballot ledger`: the account of a private dataset, to make and to read."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from secretballot._validation import AggregatorName, Composition, Unit
from secretballot.cli.options import AsJson, Relation, classes_of, ledger_place
from secretballot.cli.outcome import EXIT_CODES, print_json, say
from secretballot.exceptions import LedgerError

if TYPE_CHECKING:
    from secretballot.privacy.ledger import Ledger, LedgerEntry

__all__ = ["app"]

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
    from secretballot.privacy.ledger import Ledger

    ledger = Ledger.open_existing(file)
    amounts = {
        name: {"epsilon": pair.epsilon, "delta": pair.delta}
        for name, pair in (
            ("budget", ledger.budget),
            ("spent", ledger.spent()),
            ("remaining", ledger.remaining()),
        )
    }
    releases, groups = ledger.releases(), ledger.spent_by_group()
    if as_json:
        terms = {
            name: getattr(ledger, name) for name in ("dataset", "unit", "neighbours", "composition")
        }
        by_group = {
            name: {"epsilon": pair.epsilon, "delta": pair.delta} for name, pair in groups.items()
        }
        listed = _listed_fields(ledger)
        print_json({**terms, "releases": releases, **amounts, "spent_by_group": by_group, **listed})
        return
    say(f"dataset      {ledger.dataset}")
    say(f"promise      for each {ledger.unit}, under {ledger.neighbours}")
    say(f"composition  {ledger.composition}")
    say(f"releases     {releases}")
    for name, pair in amounts.items():
        say(f"{name:<12} epsilon {pair['epsilon']:.6g}, delta {pair['delta']:.6g}")
    for name, paid in groups.items():
        say(f"spent on the budget group {name}: epsilon {paid.epsilon:.6g}, delta {paid.delta:.6g}")
    _say_list(ledger)


def _listed_fields(ledger: "Ledger") -> dict[str, Any]:
    """Return the list of a ledger and what became of it; nothing where it has none."""
    listed, left, taken = (
        ledger.listed_events(),
        ledger.remaining_events(),
        ledger.used_events(),
    )
    price = ledger.price_of_used()
    if listed is None or left is None or taken is None or price is None:
        return {}
    events = {
        name: [event.to_json() for event in some]
        for name, some in (("listed", listed), ("left", left), ("taken", taken))
    }
    return {**events, "taken_by_itself": {"epsilon": price.epsilon, "delta": price.delta}}


def _say_list(ledger: "Ledger") -> None:
    """Say what is on the list of a ledger, what is left of it, and what the budget then promises;
    nothing where it has none."""
    from secretballot.privacy.accounting import event_in_words

    left, taken, price = (
        ledger.remaining_events(),
        ledger.used_events(),
        ledger.price_of_used(),
    )
    if left is None or taken is None or price is None:
        return
    for name, events in (("taken", taken), ("left", left)):
        say(f"{name:<12} {'; '.join(map(event_in_words, events)) or 'nothing'}")
    if taken:
        say(
            f"What is taken costs epsilon {price.epsilon:.6g} at delta {price.delta:.6g} by itself,"
            " which is a promise only if its amount did not depend on what was released."
        )
    say("The budget is the promise of all releases together, whatever they take off the list.")


@app.command(epilog=EXIT_CODES)
def history(file: File, as_json: AsJson = False) -> None:
    """List every release that was paid for, oldest first.

    \b
    Example: secretballot ledger history patients.csv.ledger
    """
    from secretballot.privacy.ledger import Ledger

    entries = Ledger.open_existing(file).history()
    if as_json:
        plain = [
            {**vars(entry), "events": [event.to_json() for event in entry.events]}
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
    from secretballot.privacy.ledger import Ledger

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
    from secretballot.privacy.ledger import Ledger

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
        typer.Option(help="How releases add up: basic, unless something is listed."),
    ] = None,
    unit_kind: Annotated[
        Unit,
        typer.Option(
            help=(
                "What the total promises: one record, all records of a user, or one record's label."
            )
        ),
    ] = "record",
    neighbours: Relation = "add-remove",
    labels: Annotated[
        int | None,
        typer.Option(
            "--labels", metavar="N", help="Labels that all releases together may take, no others."
        ),
    ] = None,
    counts: Annotated[
        int | None,
        typer.Option(
            "--counts", metavar="N", help="Queries answered with noisy counts, in their place."
        ),
    ] = None,
    sums: Annotated[
        int | None,
        typer.Option(
            "--sums", metavar="N", help="Noisy sums over records (stages), in their place."
        ),
    ] = None,
    teachers: Annotated[
        int | None,
        typer.Option(
            "--teachers", metavar="K", help="Teachers of every release, for cheaper labels."
        ),
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option("--classes", metavar="A,B", help="Classes of the labels, if not two."),
    ] = None,
    aggregator: Annotated[
        AggregatorName | None,
        typer.Option(metavar="<NAME>", help="Of the labels: gaussian or vote-table."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make the account of a private dataset, with all that may ever be spent on it.

    With --labels, --counts or --sums so many of them are priced together, once, and listed: every
    release takes its own off the list, with the list's noise, whatever was released before. Two
    releases of half the list each then cost no more than one of all.

    \b
    Example: secretballot ledger create registry.ledger --dataset registry-2026
             --epsilon 4 --delta 1e-5
    """
    from secretballot.privacy.accounting import PrivacyBudget
    from secretballot.privacy.ledger import Ledger
    from secretballot.runs.listed_account import events_to_list

    # The budget is checked before the path, so that a number out of range leaves no file behind. A
    # link that leads nowhere would be followed, whosever its target is.
    budget = PrivacyBudget(epsilon, delta)
    if Ledger.exists(file):
        raise LedgerError(
            f"{str(file)!r} exists already; a ledger is made once, so give another path or keep"
            " that one."
        )
    names = classes_of(classes)
    events = events_to_list(
        budget,
        labels=labels,
        counts=counts,
        sums=sums,
        teachers=teachers,
        n_classes=None if names is None else len(names),
        aggregator=aggregator,
        composition=composition,
    )
    Ledger(
        file,
        dataset=dataset,
        budget=budget,
        composition=composition,
        unit=unit_kind,
        neighbours=neighbours,
        events=events,
    )
    show(file, as_json=as_json)
