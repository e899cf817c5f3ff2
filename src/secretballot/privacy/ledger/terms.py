"""What a ledger is told and what it tells: its terms, the arguments of its calls, and its entries."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple

from secretballot._validation import check_choice
from secretballot.exceptions import BudgetError, LedgerError, ParameterError
from secretballot.privacy.accounting import (
    COMPOSITIONS,
    Event,
    Filter,
    Grant,
    PrivacyBudget,
    delta_upper,
    filter_for,
)
from secretballot.privacy.ledger.chain import Account, decode_events, encode_events

__all__ = [
    "Amount",
    "LedgerEntry",
    "State",
    "absolute_path",
    "budget_of",
    "certified_grant",
    "check_terms",
    "check_text",
    "filter_of",
    "new_account",
    "utc_now",
]

State = Literal["reserved", "committed", "forfeited"]


class Amount(NamedTuple):
    """An (epsilon, delta) that may be zero, unlike a budget."""

    epsilon: float
    delta: float


@dataclass(frozen=True)
class LedgerEntry:
    """One reservation and what became of it; public parameters only.

    Attributes
    ----------
    id : int
        Number of the reservation, from 1.
    request : str
        Key of the request; one reservation per request, for ever.
    purpose : str
        What the release was for, in the words of the one who asked.
    events : tuple of Event
        What was allowed to be drawn.
    epsilon, delta : float
        Price at which it was bought; spent in every state.
    state : {"reserved", "committed", "forfeited"}
        Reserved: being drawn, or interrupted.
    reserved_at, closed_at : str
        UTC, ISO 8601; `closed_at` is None while reserved.
    released_sha256 : str or None
        SHA-256 of the released bytes, in hexadecimal, once committed.
    reason : str or None
        Why it was forfeited.
    """

    id: int
    request: str
    purpose: str
    events: tuple[Event, ...]
    epsilon: float
    delta: float
    state: State
    reserved_at: str
    closed_at: str | None
    released_sha256: str | None
    reason: str | None


def utc_now() -> str:
    """Return the time, UTC, ISO 8601, to the microsecond."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def new_account(dataset: str, budget: PrivacyBudget, composition: str | None) -> Account:
    """Return the terms of a new ledger; the order of its filter is fixed here, for ever."""
    kind = composition or "basic"
    order = filter_for(kind, budget).order
    return Account(dataset, budget.epsilon, budget.delta, kind, order, utc_now())


def budget_of(account: Account) -> PrivacyBudget:
    """Return the total budget of an account."""
    return PrivacyBudget(account.epsilon, account.delta)


def filter_of(account: Account, where: str) -> Filter:
    """Return the filter of an account, at the order stored in it: a later version may choose another for new ones.

    Raises
    ------
    LedgerError
        If this version does not know the composition.
    """
    try:
        return filter_for(account.composition, budget_of(account), account.filter_order)
    except ParameterError as error:
        raise LedgerError(f"{where} composes releases in a way unknown to this program: {error}") from error


def certified_grant(events: Sequence[Event], price: PrivacyBudget) -> tuple[str, Grant]:
    """Return `events` as the text to store, and the grant read back from that text.

    Raises
    ------
    ParameterError
        If there is no event, or something is of the wrong type.
    BudgetError
        If `delta_upper` does not certify the events at `price`.
    """
    if not isinstance(price, PrivacyBudget):
        raise ParameterError(f"price is {price!r}; it must be a PrivacyBudget.")
    given = tuple(events)
    if not given or not all(isinstance(event, Event) for event in given):
        raise ParameterError("events must be a sequence of one or more events of privacy.accounting.")
    text = encode_events(given)
    stored = decode_events(text)  # what is priced is what is stored, whatever class the caller's events have
    delta = delta_upper(stored, price.epsilon)
    if not delta <= price.delta:
        raise BudgetError(
            f"The events cost delta {delta:g} at epsilon {price.epsilon:g}, more than the delta {price.delta:g} they"
            " are to be bought at; calibrate them to the price."
        )
    return text, Grant(events=stored, epsilon=price.epsilon, delta=price.delta)


def check_terms(dataset: str, budget: PrivacyBudget | None, composition: str | None) -> None:
    """Refuse terms of the wrong type with `ParameterError`."""
    check_text("dataset", dataset)
    if budget is not None and not isinstance(budget, PrivacyBudget):
        raise ParameterError(f"budget is {budget!r}; it must be a PrivacyBudget.")
    if composition is not None:
        check_choice("composition", composition, COMPOSITIONS)


def check_text(name: str, value: object, *, empty: bool = False) -> None:
    """Refuse anything but text that a file can hold, and blank text unless `empty`, with `ParameterError`."""
    if not isinstance(value, str):
        raise ParameterError(f"{name} is a {type(value).__name__}; it must be text.")
    if not empty and not value.strip():
        raise ParameterError(f"{name} is empty; give at least one letter.")
    # NUL ends a text in other SQLite programs; half a surrogate pair cannot be written at all
    if any(letter == "\0" or "\ud800" <= letter <= "\udfff" for letter in value):
        raise ParameterError(f"{name} is {value!r}; it must be Unicode text without NUL and lone surrogates.")


def absolute_path(path: object) -> Path:
    """Return `path` made absolute, so that a change of folder does not lead a handle to another file."""
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(text, str) or not text or "\0" in text:
        raise ParameterError(f"path is {path!r}; it must be the path of a file.")
    return Path(os.path.abspath(text))
