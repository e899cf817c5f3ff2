"""Answers in parts: durable before they leave, found again, and what a plan that stopped early
gives back."""

import contextlib
import threading
from pathlib import Path

import pytest

from ledger_backends import Ledgers
from made_events import class_event, counts_event, label_event, pure_event, table_event
from secretballot.accounting import (
    Event,
    PrivacyBudget,
    epsilon_upper,
)
from secretballot.core.ledger import Ledger
from secretballot.exceptions import BudgetError, LedgerError, ParameterError

BUDGET = PrivacyBudget(1.0, 1e-5)
PLAN = label_event(20.0, 10)


def price_of(*events: Event) -> PrivacyBudget:
    return PrivacyBudget(epsilon_upper(events, 1e-7), 1e-7)


@pytest.fixture
def ledger(ledgers: Ledgers) -> Ledger:
    return Ledger(
        ledgers.place(),
        dataset="registry",
        budget=PrivacyBudget(3.0, 1e-5),
        composition="renyi",
    )


def parts(ledger: Ledger, plan: int) -> list[tuple[bytes, bytes]]:
    with ledger.reading(plan) as page:
        return page.parts()


def opened(
    ledger: Ledger, *events: Event, request: str = "plan", queries: int | None = None
) -> int:
    bought = events or (PLAN,)
    return ledger.reserve(bought, price_of(*bought), request=request, purpose="", queries=queries)


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


def test_a_question_is_answered_once(ledger: Ledger) -> None:
    plan = opened(ledger)
    with ledger.answering(plan) as page:
        page.add([(b"a", b"1")])
    with pytest.raises(LedgerError), ledger.answering(plan) as page:
        page.add([(b"a", b"0")])
    assert parts(ledger, plan) == [(b"a", b"1")]


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
    ledger.commit(plan, b"all")
    with pytest.raises(LedgerError, match="committed already"), ledger.answering(plan):
        pass
    with pytest.raises(LedgerError, match="has no reservation 7"), ledger.answering(7):
        pass
    with ledger.reading(7) as page:
        assert (page.count, page.closed, page.last(), page.parts()) == (0, False, None, [])


def test_threads_share_the_pages(ledger: Ledger) -> None:
    plan = opened(ledger)

    def work(name: int) -> None:
        for step in range(10):
            with ledger.answering(plan) as page:
                page.add([(bytes([name, step]), b"1")])

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(parts(ledger, plan)) == 40
    assert len(parts(Ledger.open_existing(str(ledger.place)), plan)) == 40


def test_unused_queries_return_to_a_renyi_ledger(ledger: Ledger) -> None:
    plan = opened(ledger)
    with ledger.answering(plan) as page:
        page.add([(b"a", b"1"), (b"b", b"0")])
    before = ledger.spent().epsilon
    ledger.commit(plan, b"two labels", parts=2, used=(label_event(20.0, 2),))
    assert ledger.spent().epsilon == pytest.approx(before / 5)
    fresh = Ledger.open_existing(str(ledger.place))
    assert fresh.spent() == ledger.spent()
    same = Ledger.in_memory(
        dataset="registry", budget=PrivacyBudget(3.0, 1e-5), composition="renyi"
    )
    opened(same, label_event(20.0, 2))
    assert fresh.spent() == same.spent()


def test_unused_labels_of_three_classes_return_to_a_renyi_ledger(ledger: Ledger) -> None:
    plan = opened(ledger, class_event(30.0, 10))
    with ledger.answering(plan) as page:
        page.add([(b"a", b"1"), (b"b", b"0")])
    before = ledger.spent().epsilon
    for used in ((class_event(30.0, 1),), (counts_event(30.0, 4),)):
        with pytest.raises(ParameterError, match="count them again"):
            ledger.commit(plan, b"two labels", parts=2, used=used)
    ledger.commit(plan, b"two labels", parts=2, used=(class_event(30.0, 2),))
    assert ledger.spent().epsilon == pytest.approx(before / 5)


def test_unused_labels_of_a_table_return_to_a_renyi_ledger(ledger: Ledger) -> None:
    table = table_event((2**52, 2**52 - 2**46, 2**52 - 2**47), 10, 5)
    plan = opened(ledger, table)
    with ledger.answering(plan) as page:
        page.add([(b"a", b"1"), (b"b", b"0")])
    before = ledger.spent().epsilon
    other = table_event((2**52, 2**52 - 2**45, 2**52 - 2**47), 2, 5)
    for used in ((table.repeated(1),), (other,), (table_event(table.chances.weights, 2, 4),)):
        with pytest.raises(ParameterError, match="count them again"):
            ledger.commit(plan, b"two labels", parts=2, used=used)
    ledger.commit(plan, b"two labels", parts=2, used=(table.repeated(2),))
    assert ledger.spent().epsilon == pytest.approx(before / 5)


def test_a_plan_that_answered_nothing_gives_all_back(ledger: Ledger) -> None:
    plan = opened(ledger)
    ledger.commit(plan, b"none", parts=0, used=())
    assert ledger.spent().epsilon <= 1e-9
    again = opened(Ledger.open_existing(str(ledger.place)), request="again")
    assert again == 2


def test_pairs_are_never_given_back(ledgers: Ledgers) -> None:
    ledger = Ledger(ledgers.place(), dataset="registry", budget=BUDGET)
    plan = opened(ledger)
    with pytest.raises(LedgerError, match="costs as much as the whole reservation"):
        ledger.commit(plan, b"none", parts=0, used=())
    assert ledger.spent().epsilon == price_of(PLAN).epsilon
    ledger.commit(plan, b"none")
    assert ledger.spent().epsilon == price_of(PLAN).epsilon


@pytest.mark.parametrize(
    "used",
    [
        (label_event(20.0, 1),),  # fewer than were answered
        (label_event(20.0, 11),),
        (label_event(40.0, 2),),
        (label_event(20.0, 2, 50),),
        (counts_event(20.0, 2),),
        (label_event(20.0, 2), pure_event(0.1, 1)),
        (),
    ],
)
def test_used_must_be_a_beginning_of_the_plan_and_cover_the_answers(
    ledger: Ledger, used: tuple[Event, ...]
) -> None:
    plan = opened(ledger)
    with ledger.answering(plan) as page:
        page.add([(b"a", b"1"), (b"b", b"0")])
    before = ledger.spent()
    with pytest.raises(ParameterError, match="as many queries as were answered"):
        ledger.commit(plan, b"x", parts=2, used=used)
    assert ledger.spent() == before
    assert ledger.entry("plan").state == "reserved"  # type: ignore[union-attr]


def test_several_events_shrink_together_or_not_at_all(ledger: Ledger) -> None:
    events = (counts_event(50.0, 20), pure_event(0.01, 1))
    plan = opened(ledger, *events, queries=10)
    with ledger.answering(plan) as page:
        page.add([(b"a", b"1")])
    with pytest.raises(ParameterError, match="must be the reserved ones"):
        ledger.commit(plan, b"x", parts=1, used=(counts_event(50.0, 2),))
    ledger.commit(plan, b"x", parts=1, used=(counts_event(50.0, 2), pure_event(0.01, 1)))
    assert ledger.spent().epsilon > 0


@pytest.mark.parametrize(
    ("queries", "shifts", "admitted"),
    [
        (10, 4, True),
        (10, 3, False),
        (10, 2, False),
        (None, 4, False),
        (None, 20, True),
        (20, 2, True),
        (7, 4, False),
    ],
)
def test_steps_given_back_follow_from_the_answers_and_not_from_a_word(
    ledger: Ledger, queries: int | None, shifts: int, admitted: bool
) -> None:
    # ten histograms take two steps each: two answers took four of the twenty
    plan = opened(ledger, counts_event(50.0, 20), queries=queries)
    with ledger.answering(plan) as page:
        page.add([(b"a", b"1"), (b"b", b"0")])
    before = ledger.spent().epsilon
    if not admitted:
        with pytest.raises(ParameterError, match="number of queries that was stated"):
            ledger.commit(plan, b"x", parts=2, used=(counts_event(50.0, shifts),))
        assert ledger.spent().epsilon == before
        return
    ledger.commit(plan, b"x", parts=2, used=(counts_event(50.0, shifts),))
    assert ledger.spent().epsilon == pytest.approx(before * shifts / 20)


def test_nothing_comes_back_for_nothing_said_after_answers(ledger: Ledger) -> None:
    plan = opened(ledger)
    with ledger.answering(plan) as page:
        page.add([(b"a", b"1")])
    with pytest.raises(ParameterError, match="as many queries as were answered"):
        ledger.commit(plan, b"x", parts=1, used=())


def _fill(ledger: Ledger) -> int:
    for number in range(10_000):
        try:
            opened(ledger, request=str(number))
        except BudgetError:
            break
    return number


def test_a_full_budget_admits_again_what_came_back(tmp_path: Path) -> None:
    ledger = Ledger(
        tmp_path / "ledger.sqlite", dataset="registry", budget=BUDGET, composition="renyi"
    )
    last = _fill(ledger)
    ledger.commit(1, b"", parts=0, used=())
    assert opened(ledger, request="from what came back") == last + 1
    with pytest.raises(BudgetError):
        opened(ledger, request="one too many")


def test_a_commit_accounts_for_every_part(ledger: Ledger) -> None:
    # a release as a whole and a stream must not both come out of one purchase
    plan = opened(ledger)
    with ledger.answering(plan) as page:
        page.add([(b"a", b"1")])
    with pytest.raises(LedgerError, match="has given 1 answers in parts, not 0"):
        ledger.commit(plan, b"the whole")
    ledger.commit(plan, b"the part", parts=1)
    assert ledger.released("plan") == b"the part"


@pytest.mark.parametrize("in_memory", [False, True])
def test_a_page_is_of_no_use_after_its_with(ledgers: Ledgers, in_memory: bool) -> None:
    budget = PrivacyBudget(3.0, 1e-5)
    ledger = (
        Ledger.in_memory(dataset="registry", budget=budget)
        if in_memory
        else Ledger(ledgers.place(), dataset="registry", budget=budget)
    )
    plan = opened(ledger)
    with ledger.answering(plan) as first:
        first.add([(b"a", b"1")])
    with ledger.reading(plan) as second:
        assert second.count == 1
    for page in (first, second):
        for use in (
            lambda page: page.add([(b"b", b"2")]),
            lambda page: page.find([b"a"]),
            lambda page: page.count,
        ):
            with pytest.raises(LedgerError, match="are no longer held"):
                use(page)
    assert parts(ledger, plan) == [(b"a", b"1")]
