"""What a ledger is told and what it tells: its terms, the arguments of its calls, and its
entries."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

from secretballot._validation import (
    NEIGHBOURS,
    UNITS,
    check_choice,
    check_count,
    check_relation,
    name_part,
    shown,
)
from secretballot.exceptions import BudgetError, LedgerError, Parameter, ParameterError
from secretballot.privacy.accounting import (
    COMPOSITIONS,
    Event,
    Filter,
    Grant,
    PrivacyBudget,
    delta_upper,
    filter_for,
)
from secretballot.privacy.ledger.chain import (
    Account,
    decode_events,
    encode_events,
)

State = Literal["reserved", "committed", "forfeited"]


class Amount(NamedTuple):
    """An (epsilon, delta) that may be zero, unlike a budget.

    Examples
    --------
    >>> ledger = sb.Ledger.in_memory(dataset="people", budget=sb.PrivacyBudget(1.0, 1e-6))
    >>> ledger.spent()
    Amount(epsilon=0.0, delta=0.0)
    """

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
        Its price; spent in every state.
    state : {"reserved", "committed", "forfeited"}
        Reserved: being drawn, or interrupted.
    reserved_at, closed_at : str
        UTC, ISO 8601; `closed_at` is None while reserved.
    released_sha256 : str or None
        SHA-256 of the released bytes, in hexadecimal, once committed.
    reason : str or None
        Why it was forfeited.
    parts : int
        Answers given one by one so far; 0 where the answer is given as a whole.
    queries : int or None
        How many answers were reserved, where that was stated.

    Examples
    --------
    >>> ledger = sb.Ledger.in_memory(dataset="people", budget=sb.PrivacyBudget(1.0, 0.0))
    >>> votes = sb.VoteCounts.from_counts([[3, 97]])
    >>> paid = sb.estimate_minority(votes, ledger, epsilon=0.5, request="how stable")
    >>> entry = ledger.entry("how stable")
    >>> entry.id, entry.state, entry.epsilon
    (1, 'committed', 0.5)
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
    parts: int
    queries: int | None = None


def in_brief(detail: object) -> str:
    """Return what a message may say of something that was read from a file.

    One line, bounded, without control characters.

    Whoever can write the file chose these words.
    """
    plain = "".join(
        character if character.isprintable() else " "
        for character in str(detail)[: _LONGEST_DETAIL * 4]
    )
    line = " ".join(plain.split())
    return line if len(line) <= _LONGEST_DETAIL else f"{line[:_LONGEST_DETAIL]}..."


_LONGEST_DETAIL = 160  # characters


def utc_now() -> str:
    """Return the time, UTC, ISO 8601, to the microsecond."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


@dataclass(frozen=True)
class GivenTerms:
    """What a caller says of a ledger.

    None leaves a term to the file, or to the default of a new one.

    Attributes
    ----------
    dataset : str
        Name of the private dataset.
    budget : PrivacyBudget or None
        Total budget, without a default.
    composition : {"basic", "renyi"} or None
        How releases add up.
    unit : {"record", "user", "label"} or None
        Whose data the promise is about.
    neighbours : {"add-remove", "replace-one"} or None
        Relation that the promise is about.

    Raises
    ------
    ParameterError
        If one is of the wrong type or unknown.
    """

    dataset: str
    budget: PrivacyBudget | None
    composition: str | None
    unit: str | None
    neighbours: str | None

    def __post_init__(self) -> None:
        check_text("dataset", self.dataset)
        if self.budget is not None and not isinstance(self.budget, PrivacyBudget):
            raise ParameterError(
                Parameter("budget"), f" is {shown(self.budget)}; it must be a PrivacyBudget."
            )
        for name, allowed in (
            ("composition", COMPOSITIONS),
            ("unit", UNITS),
            ("neighbours", NEIGHBOURS),
        ):
            if getattr(self, name) is not None:
                check_choice(name, getattr(self, name), allowed)

    def new_account(self, budget: PrivacyBudget) -> Account:
        """Return the terms of a new ledger; the order of its filter is fixed here, for ever.

        Raises
        ------
        ParameterError
            If the unit cannot have the relation.
        """
        composition = self.composition or COMPOSITIONS[0]
        unit, neighbours = self.unit or UNITS[0], self.neighbours or NEIGHBOURS[0]
        check_relation(unit, neighbours)
        rule = filter_for(composition, budget)
        return Account(
            dataset=self.dataset,
            unit=unit,
            neighbours=neighbours,
            epsilon=budget.epsilon,
            delta=budget.delta,
            composition=composition,
            filter_order=rule.order,
            created_at=utc_now(),
        )

    def refuse_other(self, account: Account, where: str) -> None:
        """Refuse terms that are given and differ from the ones fixed at creation.

        Raises
        ------
        LedgerError
            If one does.
        """
        own = budget_of(account)
        if self.budget is not None and self.budget != own:
            raise LedgerError(
                f"{where} has budget ({own.epsilon}, {own.delta}) and ({self.budget.epsilon},"
                f" {self.budget.delta}) was given; a ledger's budget is fixed at creation, so leave"
                " it out or give the same."
            )
        for name, fixed in (
            ("composition", account.composition),
            ("unit", account.unit),
            ("neighbours", account.neighbours),
        ):
            given = getattr(self, name)
            if given is not None and given != fixed:
                raise LedgerError(
                    f"{where} has {name} {in_brief(fixed)!r} and {given!r} was given; it is fixed"
                    " at creation, so leave it out or give the same."
                )


def refuse_other_promise(account: Account, unit: str, neighbours: str, where: str) -> None:
    """Refuse a release that does not add to the promise of an account.

    Raises
    ------
    ParameterError
        If the unit or the relation is unknown, or the unit cannot have the relation.
    LedgerError
        If the release is about another unit or relation.
    """
    check_choice("unit", unit, UNITS)
    check_choice("neighbours", neighbours, NEIGHBOURS)
    check_relation(unit, neighbours)
    released, promised = (unit, neighbours), (account.unit, account.neighbours)
    # One record more or less is in the one shard of its user, whom the release by user protects at
    # the same price. A record that is replaced by another user's is in two shards, so this ends
    # with add-remove.
    #
    # Datasets that differ in one label differ in one record, replaced in place by one with the same
    # features. What is (epsilon, delta)-indistinguishable for every replaced record is so for these
    # pairs too, and the events of all releases compose pair by pair. Not the other way: a release
    # about labels says nothing of changed features.
    covered = (released, promised) in (
        (("user", "add-remove"), ("record", "add-remove")),
        (("record", "replace-one"), ("label", "replace-one")),
    )
    if released != promised and not covered:
        raise LedgerError(
            f"{where} adds up a promise about unit {account.unit!r} under {account.neighbours!r},"
            f" and this release is about unit {unit!r} under {neighbours!r}; together they would"
            " promise neither, so release under the ledger's unit and relation. Nothing was spent."
        )


def budget_of(account: Account) -> PrivacyBudget:
    """Return the total budget of an account."""
    return PrivacyBudget(account.epsilon, account.delta)


def filter_of(account: Account, where: str) -> Filter:
    """Return the filter of an account, at the order stored in it.

    A later version may choose another for new ones.

    Raises
    ------
    LedgerError
        If this version does not know the composition.
    """
    try:
        return filter_for(account.composition, budget_of(account), account.filter_order)
    except (ParameterError, TypeError, ValueError, LookupError, RecursionError) as error:
        raise LedgerError(
            f"{where} composes releases in a way unknown to this program: {in_brief(error)}"
        ) from error


def certified_grant(
    events: Sequence[Event], price: PrivacyBudget, queries: int | None
) -> tuple[str, Grant]:
    """Return `events` as the text to store, and the grant read back from that text.

    Raises
    ------
    ParameterError
        If there is no event, or something is of the wrong type.
    BudgetError
        If `delta_upper` does not certify the events at `price`.
    """
    if not isinstance(price, PrivacyBudget):
        raise ParameterError(Parameter("price"), f" is {shown(price)}; it must be a PrivacyBudget.")
    given = _as_tuple(events)
    if not given or not all(isinstance(event, Event) for event in given):
        raise ParameterError(
            Parameter("events"), " must be a sequence of one or more events of privacy.accounting."
        )
    text = encode_events(given, None if queries is None else check_count("queries", queries))
    # what is priced is what is stored, whatever class the caller's events have
    stored = decode_events(text).events
    delta = delta_upper(stored, price.epsilon)
    if not delta <= price.delta:
        raise BudgetError(
            f"The events cost delta {delta:g} at epsilon {price.epsilon:g}, more than the delta"
            f" {price.delta:g} they are to be reserved at; calibrate them to the price."
        )
    return text, Grant(events=stored, epsilon=price.epsilon, delta=price.delta)


def _as_tuple(events: object) -> tuple[Any, ...]:
    """Return what a caller gave for events as a tuple, of itself where it is no sequence."""
    return tuple(events) if isinstance(events, Iterable) else (events,)


def check_text(name: str, value: object, *, empty: bool = False) -> None:
    """Refuse anything but text that a file can hold, and blank text unless `empty`.

    Raises
    ------
    ParameterError
        If it is not such text.
    """
    if not isinstance(value, str):
        raise ParameterError(name_part(name), f" is a {type(value).__name__}; it must be text.")
    if not empty and not value.strip():
        raise ParameterError(name_part(name), " is empty; give at least one character.")
    # NUL ends a string in other SQLite programs; half a surrogate pair cannot be written at all
    if any(character == "\0" or "\ud800" <= character <= "\udfff" for character in value):
        raise ParameterError(
            name_part(name), " has NUL or lone surrogates in it; give Unicode text without."
        )


def absolute_path(path: object) -> Path:
    """Return `path` made absolute, so that a change of folder does not lead a handle to another
    file.

    Raises
    ------
    ParameterError
        If it is no path of a file.
    """
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(text, str) or not text or "\0" in text:
        raise ParameterError(
            Parameter("path"),
            f" is {shown(path)}; it must be the path of a file, or the URL of a PostgreSQL"
            " database.",
        )
    return Path(os.path.abspath(text))
