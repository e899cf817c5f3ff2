"""`secretballot ledger`: the account of a private dataset, to make and to read."""

from typing import TYPE_CHECKING, Any

from secretballot._files import shown_place
from secretballot._validation import Composition, Relation, Unit
from secretballot.cli.outcome import Answer
from secretballot.cli.screens import group, verb
from secretballot.exceptions import LedgerError

if TYPE_CHECKING:
    from secretballot.core.ledger import Ledger

app = group("ledger", "Create, show and check accounts.")


@verb(app)
def create(
    place: str,
    *,
    dataset: str,
    total: str,
    composition: Composition = "basic",
    unit: Unit = "record",
    relation: Relation = "add-remove",
) -> Answer:
    """Create the account of a private dataset, with the limit of all its releases.

    Example: secretballot ledger create registry.ledger --dataset registry-2026 --total 4,1e-5

    Parameters
    ----------
    place : LEDGER
        The ledger's file, or the URL of a PostgreSQL database.
    dataset : NAME
        Public name of the private dataset.
    total : E,D
        Limit of all releases from the dataset.
    composition : NAME
        How releases add up.
    unit : NAME
        What is protected, of a user all records.
    relation : NAME
        The change that is protected.
    """
    from secretballot.core.ledger import Ledger
    from secretballot.core.price import PrivacyBudget
    from secretballot.runs.spec import BudgetSpec

    # The total is checked before the path, so that a number out of range leaves no file behind. A
    # link that leads nowhere would be followed, whosever its target is.
    budget = PrivacyBudget(*(BudgetSpec.of_tree({"total": total}).total or ()))
    if Ledger.exists(place):
        raise LedgerError(
            f"{shown_place(place)!r} exists already; a ledger is created once, so give another path"
            " or keep that one."
        )
    made = Ledger(
        place, dataset=dataset, budget=budget, composition=composition, unit=unit, relation=relation
    )
    return _shown(made)


@verb(app)
def show(place: str) -> Answer:
    """Show whose account it is, what is spent and left, and every release, oldest first.

    Example: secretballot ledger show patients.csv.ledger

    Parameters
    ----------
    place : LEDGER
        The ledger's file, or the URL of a PostgreSQL database.
    """
    from secretballot.core.ledger import Ledger

    return _shown(Ledger.open_existing(place))


def _shown(ledger: "Ledger") -> Answer:
    amounts: dict[str, Any] = {
        "total": ledger.budget,
        "spent": ledger.spent(),
        "left": ledger.remaining(),
    }
    entries = ledger.history()
    terms = {name: getattr(ledger, name) for name in ("dataset", "unit", "relation", "composition")}
    pairs = {name: {"epsilon": pair.epsilon, "delta": pair.delta} for name, pair in amounts.items()}
    releases = [
        {**vars(entry), "events": [event.model_dump(mode="json") for event in entry.events]}
        for entry in entries
    ]
    document = {**terms, **pairs, "releases": releases}
    return Answer(document, "ledger", (ledger, amounts, entries))


@verb(app)
def check(place: str) -> Answer:
    """Check every page and every row of the account, from the first one on.

    Example: secretballot ledger check patients.csv.ledger

    Parameters
    ----------
    place : LEDGER
        The ledger's file, or the URL of a PostgreSQL database.
    """
    from secretballot.core.ledger import Ledger

    ledger = Ledger.open_existing(place)
    ledger.check()
    rows, chain = ledger.head()
    document = {"dataset": ledger.dataset, "rows": rows, "chain": chain, "ok": True}
    return Answer(document, "checked", (document,))
