"""`secretballot ledger`: the account of a private dataset, to make and to read."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from secretballot._validation import Composition, Relation, Unit
from secretballot.cli.outcome import answer, print_json
from secretballot.cli.screens import group, verb, words
from secretballot.cli.settings import AsJson
from secretballot.cli.texts import show as show_text
from secretballot.exceptions import LedgerError

if TYPE_CHECKING:
    from secretballot.core.ledger import Ledger

Place = Annotated[
    str,
    typer.Argument(
        metavar="LEDGER", help="The ledger's file, or the URL of a PostgreSQL database."
    ),
]
app = group("ledger", "Create, show and check accounts.")


@verb(app)
def create(
    place: Place,
    dataset: Annotated[
        str, typer.Option(metavar="NAME", help="Public name of the private dataset.")
    ],
    total: Annotated[
        str, typer.Option(metavar="E,D", help="Limit of all releases from the dataset.")
    ],
    composition: Annotated[
        Composition,
        typer.Option(metavar="NAME", help=f"How releases add up: {words(Composition)}."),
    ] = "basic",
    unit: Annotated[
        Unit,
        typer.Option(
            metavar="NAME",
            help=f"What is protected: {words(Unit)}; of a user all records, of a label only that.",
        ),
    ] = "record",
    relation: Annotated[
        Relation,
        typer.Option(metavar="NAME", help=f"The change that is protected: {words(Relation)}."),
    ] = "add-remove",
    as_json: AsJson = False,
) -> None:
    """Create the account of a private dataset, with the limit of all its releases.

    Example: secretballot ledger create registry.ledger --dataset registry-2026 --total 4,1e-5
    """
    from secretballot.core.ledger import Ledger
    from secretballot.core.ledger.urls import file_or_database
    from secretballot.runs.spec import PATE, RunSpec

    # The total is checked before the path, so that a number out of range leaves no file behind. A
    # link that leads nowhere would be followed, whosever its target is.
    budget = RunSpec.read(total=total, epsilon=1.0, delta=0.0, method=PATE).total
    assert budget is not None
    file = file_or_database(place)
    if Ledger.exists(file):
        raise LedgerError(
            f"{str(file)!r} exists already; a ledger is created once, so give another path or keep"
            " that one."
        )
    made = Ledger(
        file,
        dataset=dataset,
        budget=budget,
        composition=composition,
        unit=unit,
        relation=relation,
    )
    _show(made, as_json=as_json)


@verb(app)
def show(place: Place, as_json: AsJson = False) -> None:
    """Show whose account it is, what is spent and left, and every release, oldest first.

    Example: secretballot ledger show patients.csv.ledger
    """
    _show(_opened(place), as_json=as_json)


def _opened(place: str) -> "Ledger":
    from secretballot.core.ledger import Ledger
    from secretballot.core.ledger.urls import file_or_database

    return Ledger.open_existing(file_or_database(place))


def _show(ledger: "Ledger", *, as_json: bool) -> None:
    amounts: dict[str, Any] = {
        "total": ledger.budget,
        "spent": ledger.spent(),
        "left": ledger.remaining(),
    }
    entries = ledger.history()
    if not as_json:
        show_text("ledger", ledger, amounts, entries)
        return
    terms = {name: getattr(ledger, name) for name in ("dataset", "unit", "relation", "composition")}
    pairs = {name: {"epsilon": pair.epsilon, "delta": pair.delta} for name, pair in amounts.items()}
    releases = [
        {**vars(entry), "events": [event.model_dump(mode="json") for event in entry.events]}
        for entry in entries
    ]
    print_json({**terms, **pairs, "releases": releases})


@verb(app)
def check(place: Place, as_json: AsJson = False) -> None:
    """Check every page and every row of the account, from the first one on.

    Example: secretballot ledger check patients.csv.ledger
    """
    ledger = _opened(place)
    ledger.check()
    rows, chain = ledger.head()
    answer(
        as_json,
        {"dataset": ledger.dataset, "rows": rows, "chain": chain, "ok": True},
        f"All {rows} rows are as they were written; the last one is {chain}.",
    )


@verb(app)
def grant(
    place: Place,
    role: Annotated[str, typer.Argument(metavar="ROLE", help="A role of the database.")],
    as_json: AsJson = False,
) -> None:
    """Let a role of the database read a ledger and add rows, and nothing else.

    The role that owns the ledger does it, once.

    Example: secretballot ledger grant "postgresql://owner@db.example/ledgers?schema=registry"
    service
    """
    from secretballot.core.ledger import Ledger
    from secretballot.core.ledger.urls import file_or_database

    Ledger.grant(file_or_database(place), role)
    text = f"The role {role} may read the ledger and add rows, and nothing else."
    answer(as_json, {"granted": role}, text)
