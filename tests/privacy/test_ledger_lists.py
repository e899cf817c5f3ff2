"""Ledgers with a fixed list of events: what may be taken, that nothing is taken twice, and that it
outlives handles and refusals. On both back ends."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ledger_backends import DatabaseLedgers, Ledgers
from secretballot.exceptions import BudgetError, LedgerError, ParameterError
from secretballot.privacy.accounting import (
    Event,
    GaussianEvent,
    LabelGaussianEvent,
    PrivacyBudget,
    PureEvent,
    VectorSumEvent,
    event_lists,
)
from secretballot.privacy.ledger import Amount, Ledger
from secretballot.privacy.ledger.file import create_file
from secretballot.privacy.ledger.terms import GivenTerms

BUDGET = PrivacyBudget(1.0, 1e-5)
PRICE = PrivacyBudget(0.99, 1e-5)
LISTED = (PureEvent(0.01, 30), GaussianEvent(60.0, 40))


@pytest.fixture
def place(ledgers: Ledgers) -> str:
    return ledgers.place()


@pytest.fixture(params=["file", "memory", "postgres"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    terms = {"dataset": "registry", "budget": BUDGET, "events": LISTED}
    if request.param == "memory":
        yield Ledger.in_memory(**terms)
        return
    if request.param == "file":
        yield Ledger(tmp_path / "ledger.sqlite", **terms)
        return
    places = DatabaseLedgers(request.getfixturevalue("database").url)
    yield Ledger(places.place(), **terms)
    places.drop_all()


def take(ledger: Ledger, request: str, *events: Event) -> int:
    return ledger.reserve(events, PRICE, request=request, purpose="test")


def test_events_are_taken_off_the_list_whatever_becomes_of_them(ledger: Ledger) -> None:
    assert ledger.composition == "list"
    assert ledger.listed_events() == ledger.remaining_events() == LISTED
    assert (ledger.used_events(), ledger.spent()) == ((), Amount(0.0, 0.0))
    first = take(ledger, "first", PureEvent(0.01, 10))
    # what is being drawn is taken already, and the whole list is the price
    assert ledger.remaining_events() == (PureEvent(0.01, 20), LISTED[1])
    assert (ledger.spent(), ledger.remaining()) == (Amount(1.0, 1e-5), Amount(0.0, 0.0))
    ledger.commit(first, b"answer")
    ledger.forfeit(take(ledger, "second", GaussianEvent(60.0, 40)), "nothing came of it")
    take(ledger, "third", PureEvent(0.005, 20))  # less than what is listed takes as much
    assert ledger.remaining_events() == ()
    assert ledger.used_events() == LISTED
    assert ledger.spent() == Amount(1.0, 1e-5)
    assert [entry.state for entry in ledger.history()] == ["committed", "forfeited", "reserved"]
    ledger.check()


@pytest.mark.parametrize(
    "events",
    [
        (PureEvent(0.01, 31),),
        (PureEvent(0.02, 1),),
        (GaussianEvent(60.0, 41),),
        (GaussianEvent(61.0, 1),),
        (LabelGaussianEvent(60.0, 1),),
        (VectorSumEvent(60.0, 1, 1),),
        (GaussianEvent(60.0, 1), PureEvent(0.02, 1)),
    ],
)
def test_what_is_not_left_is_refused_and_the_refusal_says_what_is(events: tuple[Event]) -> None:
    ledger = Ledger.in_memory(dataset="registry", budget=BUDGET, events=LISTED)
    with pytest.raises(BudgetError) as refused:
        take(ledger, "other", *events)
    words = str(refused.value)
    assert "30 pure answers (epsilon 0.01); 40 noisy counts (sigma 60)" in words
    assert words.endswith("Nothing was spent.")
    assert (ledger.releases(), ledger.remaining_events()) == (0, LISTED)


def test_a_release_about_another_unit_or_relation_is_refused() -> None:
    ledger = Ledger.in_memory(dataset="registry", budget=BUDGET, events=LISTED)
    for promise in (("record", "replace-one"), ("label", "replace-one")):
        with pytest.raises(LedgerError, match="Nothing was spent"):
            ledger.check_promise(*promise)


def test_a_reopened_ledger_has_its_list_and_what_is_left_of_it(place: str) -> None:
    first = Ledger(place, dataset="registry", budget=BUDGET, events=LISTED)
    take(first, "first", PureEvent(0.01, 10))
    for again in (
        Ledger.open_existing(place),
        Ledger(place, dataset="registry", composition="list"),
        # like events may be given apart
        Ledger(
            place, dataset="registry", events=(PureEvent(0.01, 29), *LISTED[1:], PureEvent(0.01, 1))
        ),
    ):
        assert (again.listed_events(), again.account) == (LISTED, first.account)
        assert again.remaining_events() == (PureEvent(0.01, 20), LISTED[1])
    # both handles see what either takes
    take(again, "second", PureEvent(0.01, 20))
    with pytest.raises(BudgetError, match=r"left: 40 noisy counts"):
        take(first, "third", PureEvent(0.01, 1))


def test_a_list_is_fixed_at_creation(place: str) -> None:
    Ledger(place, dataset="registry", budget=BUDGET, events=LISTED)
    with pytest.raises(LedgerError, match="fixed at"):
        Ledger(place, dataset="registry", events=LISTED[:1])
    with pytest.raises(LedgerError, match="'list' and 'renyi' was given"):
        Ledger(place, dataset="registry", composition="renyi")


def test_a_ledger_without_a_list_takes_none(place: str) -> None:
    ledger = Ledger(place, dataset="registry", budget=BUDGET)
    assert ledger.listed_events() is ledger.remaining_events() is ledger.used_events() is None
    with pytest.raises(LedgerError, match="not made with the events"):
        Ledger(place, dataset="registry", events=LISTED)


@pytest.mark.parametrize(
    ("terms", "error", "words"),
    [
        ({"composition": "list"}, ParameterError, "composition 'list'"),
        ({"composition": "basic", "events": LISTED}, ParameterError, "composition 'list'"),
        ({"events": ()}, ParameterError, "list one to 10"),
        ({"events": ("label",)}, ParameterError, "sequence of events"),
        ({"events": 5}, ParameterError, "sequence of events"),
        ({"events": (PureEvent(0.5, 3),)}, BudgetError, "list fewer"),
    ],
)
def test_a_list_that_cannot_be_leaves_no_ledger_behind(
    terms: dict[str, object], error: type[Exception], words: str, tmp_path: Path
) -> None:
    path = tmp_path / "ledger.sqlite"
    with pytest.raises(error, match=words):
        Ledger(path, dataset="registry", budget=BUDGET, **terms)
    assert not Ledger.exists(path)


def test_unused_events_are_not_given_back() -> None:
    ledger = Ledger.in_memory(dataset="registry", budget=BUDGET, events=LISTED)
    number = ledger.reserve([GaussianEvent(60.0, 9)], PRICE, request="r", purpose="", queries=9)
    with pytest.raises(LedgerError, match="stopping early costs as much"):
        ledger.commit(number, b"answer", parts=0, used=[GaussianEvent(60.0, 3)])


def test_a_program_that_prices_the_list_higher_takes_nothing_off_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ledger = Ledger.in_memory(dataset="registry", budget=BUDGET, events=LISTED)
    monkeypatch.setattr(event_lists, "_list_delta", lambda events, epsilon: 1.1e-5)
    with pytest.raises(BudgetError, match=r"listed events cost delta 1\.1e-05"):
        take(ledger, "first", PureEvent(0.01, 1))
    with pytest.raises(BudgetError, match=r"listed events cost delta 1\.1e-05"):
        ledger.check()


@pytest.mark.parametrize("text", ["list", "list []", "list [", 'list [{"event": "pure"}]', "soup"])
def test_a_list_that_cannot_be_read_opens_nothing(text: str, tmp_path: Path) -> None:
    """As programs without lists refuse any list, by its unknown name."""
    account = GivenTerms("registry", BUDGET, None, None, None).new_account(BUDGET)
    path = tmp_path / "ledger.sqlite"
    create_file(path, replace(account, composition=text))
    with pytest.raises(LedgerError, match="composes releases in a way unknown to this program"):
        Ledger.open_existing(path)
