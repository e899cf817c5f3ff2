"""What an aggregator takes off the list of a ledger."""

from typing import TYPE_CHECKING, TypeVar

from secretballot.exceptions import BudgetError, LedgerError
from secretballot.privacy.accounting import Event, event_in_words

if TYPE_CHECKING:
    from secretballot.privacy.ledger import Ledger

__all__ = ["listed_event"]

OneEvent = TypeVar("OneEvent", bound=Event)


def listed_event(
    ledger: "Ledger", kind: type[OneEvent], needed: int, counted_by: str, **terms: object
) -> OneEvent:
    """Return the one event of a kind on the list of a ledger, whatever is left of it.

    What is left is the ledger's business, when the release is paid for: one that was answered
    before gets the stored answer.

    Parameters
    ----------
    ledger : Ledger
        With a list.
    kind : type of Event
    needed : int
        Steps that are to be taken.
    counted_by : str
        Field of the event that counts its steps.
    **terms
        What further fields have to be; None on either side fits anything.

    Raises
    ------
    LedgerError
        If the ledger has no list.
    BudgetError
        If no event of that kind is listed, or too little; or there are several with different
        noise.
    """
    listed = ledger.listed_events()
    if listed is None:
        raise LedgerError(
            f"The ledger of {ledger.dataset!r} has no list, so its releases have the noise that"
            " their budget needs: calibrate it, or use a ledger that was made with events."
        )
    fitting = [
        event
        for event in listed
        # exactly this kind: a subclass may have another price
        if type(event) is kind
        and getattr(event, counted_by) >= needed
        and all(_value_fits(getattr(event, name), value) for name, value in terms.items())
    ]
    if len(fitting) == 1:
        return fitting[0]
    words = "; ".join(map(event_in_words, fitting or listed))
    if fitting:
        raise BudgetError(
            f"The list of the ledger of {ledger.dataset!r} has several kinds of noise that would"
            f" do: {words}; make the aggregator with the one that is meant. Nothing was spent."
        )
    raise BudgetError(
        f"{needed} steps of {kind.name!r} are asked for, and the list of the ledger of"
        f" {ledger.dataset!r} holds {words}; ask for as much of that. Nothing was spent."
    )


def _value_fits(listed: object, asked: object) -> bool:
    return listed is None or asked is None or listed == asked
