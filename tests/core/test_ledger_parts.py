"""Answers in parts: durable before they leave, found again, and what a plan that stopped early
gives back."""

import contextlib

import pytest

from ledger_answers import answer
from ledger_backends import Ledgers
from made_events import class_event, counts_event, label_event, table_event
from secretballot.accounting import PrivacyBudget
from secretballot.core.events import Event
from secretballot.core.ledger import Ledger
from secretballot.exceptions import LedgerError

PLAN, PRICE = label_event(20.0, 10), PrivacyBudget(2.0, 1e-6)
TABLE = table_event((2**52, 2**52 - 2**46, 2**52 - 2**47), 10, 5)


@pytest.fixture
def ledger(ledgers: Ledgers) -> Ledger:
    return Ledger(
        ledgers.place(), dataset="registry", budget=PrivacyBudget(3.0, 1e-5), composition="renyi"
    )


def parts(ledger: Ledger, plan: int) -> list[tuple[bytes, bytes]]:
    with ledger.reading(plan) as page:
        return page.parts()


def opened(ledger: Ledger, event: Event = PLAN, request: str = "plan") -> int:
    return ledger.reserve([event], PRICE, request=request, purpose="")


def close(ledger: Ledger, plan: int, *used: Event, answers: int = 0) -> None:
    """Store some answers and close with what they cost."""
    with ledger.answering(plan) as page:
        page.add([(b"%d" % number, b"1") for number in range(answers)])
        page.commit({}, used)


def test_parts_are_found_again_in_order(ledger: Ledger) -> None:
    plan = opened(ledger)
    with ledger.answering(plan) as page:
        page.add([(b"a", b"1"), (b"b", b"0")])
        page.add([(b"c", b"2")])
    other = Ledger.open_existing(str(ledger.place))
    with other.answering(plan) as page:
        assert page.count == 3
        assert page.find([b"b", b"x", b"c"]) == {b"b": b"0", b"c": b"2"}
        assert page.last() == b"2"
    with other.reading(plan) as page:
        assert page.find([b"c", b"x"]) == {b"c": b"2"}
    assert parts(other, plan) == [(b"a", b"1"), (b"b", b"0"), (b"c", b"2")]
    entry = other.entry("plan")
    assert entry is not None
    assert (entry.parts, entry.state) == (3, "reserved")
    assert other.entry("unknown") is None


def test_a_broken_transaction_leaves_no_part(ledger: Ledger) -> None:
    plan = opened(ledger)
    with contextlib.suppress(KeyError), ledger.answering(plan) as page:
        page.add([(b"a", b"1")])
        raise KeyError
    assert parts(ledger, plan) == []
    with ledger.answering(plan) as page:
        page.add([(b"a", b"0")])
    assert parts(ledger, plan) == [(b"a", b"0")]


def test_many_answers_are_one_transaction(ledger: Ledger) -> None:
    plan = opened(ledger)
    many = [(f"question {number}".encode(), b"%d" % number) for number in range(1200)]
    with ledger.answering(plan) as page:
        page.add(many)
        assert page.find([question for question, _ in many]) == dict(many)
        assert page.count == 1200
    assert parts(Ledger.open_existing(str(ledger.place)), plan) == many


@pytest.mark.parametrize("size", [1, 3])
def test_an_error_that_a_program_swallows_stores_nothing(ledger: Ledger, size: int) -> None:
    plan = opened(ledger)
    with ledger.answering(plan) as page:
        page.add([(b"a", b"1")])

    def swallow() -> None:
        with ledger.answering(plan) as page, contextlib.suppress(Exception):
            page.add([(b"b", b"1"), (b"c", b"1"), (b"a", b"0")][-size:])

    with contextlib.suppress(LedgerError):  # a database refuses to go on at all
        swallow()
    assert parts(ledger, plan) == [(b"a", b"1")]
    fresh = Ledger.open_existing(str(ledger.place))
    assert parts(fresh, plan) == [(b"a", b"1")]
    with fresh.answering(plan) as page:
        page.add([(b"b", b"1")])
    fresh.check()


def test_closed_and_unknown_reservations_take_no_part(ledger: Ledger) -> None:
    plan = opened(ledger)
    answer(ledger, plan)
    for number in (plan, 7):
        with pytest.raises(LedgerError), ledger.answering(number) as page:
            page.add([(b"a", b"1")])
        with pytest.raises(LedgerError):
            ledger.forfeit(number, "why")
    with ledger.reading(7) as page:
        assert (page.count, page.closed, page.last(), page.parts()) == (0, False, None, [])


@pytest.mark.parametrize(
    ("event", "used"),
    [
        (PLAN, label_event(20.0, 2)),
        (class_event(30.0, 10), class_event(30.0, 2)),
        (TABLE, TABLE.repeated(2)),
        (counts_event(50.0, 20), counts_event(50.0, 4)),
    ],
)
def test_unused_queries_return_to_a_renyi_ledger(ledger: Ledger, event: Event, used: Event) -> None:
    plan = opened(ledger, event)
    before = ledger.spent().epsilon
    close(ledger, plan, used, answers=2)
    assert ledger.spent().epsilon == pytest.approx(before / 5)
    fresh = Ledger.open_existing(str(ledger.place))
    assert fresh.spent() == ledger.spent()
    fresh.check()
    same = Ledger.in_memory(
        dataset="registry", budget=PrivacyBudget(3.0, 1e-5), composition="renyi"
    )
    opened(same, used)
    assert fresh.spent() == same.spent()


def test_more_than_was_reserved_never_comes_back_nor_is_it_spent(ledger: Ledger) -> None:
    plan = opened(ledger)
    before = ledger.spent()
    close(ledger, plan, label_event(2.0, 10))
    assert ledger.spent() == before
