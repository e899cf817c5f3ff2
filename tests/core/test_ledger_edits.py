"""Edits by hand, in a file and in a database: refused while the guards stand, noticed where they
were taken away."""

from contextlib import nullcontext
from fractions import Fraction
from typing import Any

import pytest

from ledger_backends import BUDGET, FileLedgers, Ledgers, buy, make_three, refusal
from secretballot.accounting import BasicFilter, Totals
from secretballot.core.ledger import Ledger, rows
from secretballot.exceptions import LedgerError


@pytest.fixture
def place(ledgers: Ledgers) -> str:
    place = ledgers.place()
    make_three(place)
    return place


COPIED = (
    "INSERT INTO entry SELECT {0}, kind, {1}, {2}, {3}, terms, body, at, sums, chain FROM entry"
    " WHERE {4}"
)
OPEN = "reservation = 3 AND number = 0"
FIRST_PART = "reservation = 3 AND number = 1"


REFUSED = [
    "DELETE FROM entry",
    "DELETE FROM account",
    "DELETE FROM head",
    "UPDATE entry SET sums = '1 0 0'",
    "UPDATE entry SET terms = '[]' WHERE position = 1",
    "UPDATE entry SET body = {byte} WHERE kind = 'close'",
    "UPDATE entry SET body = {byte} WHERE kind = 'part'",
    "UPDATE account SET terms = '{{}}'",
    "UPDATE head SET position = 3",
    "INSERT INTO account SELECT 2, terms FROM account",
    # a place that is taken, one after a gap, a part of a closed and one of no reservation, a
    # part after a gap, a question that was asked, a request that is known, a number that is not
    # the next
    COPIED.format("position", 4, 0, "{byte}", OPEN),
    COPIED.format(99, 4, 0, "{byte}", OPEN),
    COPIED.format(8, 1, 2, "{byte}", FIRST_PART),
    COPIED.format(8, 4, 1, "{byte}", FIRST_PART),
    COPIED.format(8, 3, 4, "{byte}", FIRST_PART),
    COPIED.format(8, 3, 3, "key", FIRST_PART),
    COPIED.format(8, 4, 0, "key", OPEN),
    COPIED.format(8, 3, 0, "{byte}", OPEN),
    COPIED.format(8, 3, 2, "{byte}", FIRST_PART),
]


REPLACED = (
    "INSERT OR REPLACE INTO entry SELECT {}, kind, {}, {}, {}, '', x'31', at, '3 0 0', chain"
    " FROM entry WHERE position = {}"
)
# what SQLite can do besides
REFUSED_IN_A_FILE = [
    "INSERT OR REPLACE INTO account SELECT 1, '{{}}' FROM account",
    "INSERT OR REPLACE INTO head SELECT 1, 0, chain FROM head",
    REPLACED.format("position", "reservation", "number", "key", 3),
    REPLACED.format(8, 9, 0, "key", 1),
    REPLACED.format(8, 4, 0, "key", 1),
    REPLACED.format(8, 1, 1, "key", 4),
    REPLACED.format(8, 3, 1, "x'00'", 6),
    REPLACED.format(8, 3, 3, "key", 6),
]


REFUSED_IN_A_DATABASE = [f"TRUNCATE {table} CASCADE" for table in ("account", "head", "entry")]


def test_the_tables_themselves_are_append_only(place: str, ledgers: Ledgers) -> None:
    before = Ledger.open_existing(place).history()
    in_a_file = isinstance(ledgers, FileLedgers)
    for statement in [*REFUSED, *(REFUSED_IN_A_FILE if in_a_file else REFUSED_IN_A_DATABASE)]:
        with ledgers.open(place) as run, pytest.raises(ledgers.refusal):
            run(statement.format(byte=ledgers.literal(b"0")))
    assert Ledger.open_existing(place).history() == before


EDITS = [
    "UPDATE account SET terms = replace(terms, '1.0', '100.0')",
    "UPDATE account SET terms = replace(terms, 'registry', 'another')",
    "UPDATE account SET terms = replace(terms, 'record', 'user')",
    "DELETE FROM account",
    "UPDATE entry SET terms = replace(terms, '0.1', '0.01') WHERE position = 1",
    "UPDATE entry SET sums = '1 0 0' WHERE position = 1",
    "UPDATE entry SET sums = 'none' WHERE position = 7",
    "UPDATE entry SET key = {byte} WHERE position = 2",
    "UPDATE entry SET chain = {link} WHERE position = 3",
    "UPDATE entry SET position = 99 WHERE position = 1",
    "UPDATE entry SET body = {byte} WHERE position = 4",
    "UPDATE entry SET terms = replace(terms, 'facts', 'faxes') WHERE position = 4",
    "UPDATE entry SET reservation = 3, number = 3 WHERE position = 5",
    "UPDATE entry SET terms = replace(terms, 'broken', 'other') WHERE position = 5",
    "UPDATE entry SET body = {byte} WHERE position = 6",
    "UPDATE entry SET number = 7 WHERE position = 7",
    "UPDATE entry SET at = '2000-01-01T00:00:00+00:00' WHERE position = 7",
    "DELETE FROM entry WHERE position = 7",
    "DELETE FROM entry WHERE reservation = 3",
    "DELETE FROM entry",
    "DELETE FROM head",
    "UPDATE head SET position = 4",
    "UPDATE head SET chain = {link}",
    COPIED.format(8, 4, 0, "{byte}", OPEN),
]


OF_ANOTHER_TYPE = [  # which a column of SQLite takes
    "UPDATE account SET terms = x'00'",
    "UPDATE entry SET reservation = 'none' WHERE position = 1",
    "UPDATE entry SET number = 0.5 WHERE position = 6",
    "UPDATE entry SET kind = x'00' WHERE position = 1",
    "UPDATE entry SET key = 'forfeited' WHERE position = 2",
    "UPDATE entry SET terms = x'ff' WHERE position = 2",
    "UPDATE entry SET terms = CAST(x'ff' AS TEXT) WHERE position = 2",
    "UPDATE entry SET sums = 7 WHERE position = 2",
    "UPDATE entry SET at = 7 WHERE position = 2",
    "UPDATE entry SET body = 'answer' WHERE position = 4",
    "UPDATE entry SET body = '0' WHERE position = 6",
    "UPDATE entry SET key = 'first' WHERE position = 6",
    "UPDATE entry SET chain = 'none' WHERE position = 6",
    "UPDATE head SET position = 'none'",
]


# what is read is held against its SHA-256 alike, whatever it was read from
@pytest.mark.parametrize(
    ("ledgers", "edit"),
    [
        *(("file", edit) for edit in (*EDITS, *OF_ANOTHER_TYPE)),
        *(("postgres", edit) for edit in EDITS[::6]),
    ],
    indirect=["ledgers"],
)
def test_edit_by_hand_is_noticed(place: str, ledgers: Ledgers, edit: str) -> None:
    with ledgers.edited(place) as run:
        run(edit.format(byte=ledgers.literal(b"?"), link=ledgers.literal(bytes(32))))
    assert refusal(place).startswith("Ledger ")


def test_taking_the_guards_away_for_nothing_is_no_edit(place: str, ledgers: Ledgers) -> None:
    with ledgers.edited(place):
        pass
    assert len(Ledger.open_existing(place).history()) == 3


def test_edit_of_an_answer_is_noticed_by_a_living_handle(place: str, ledgers: Ledgers) -> None:
    living = Ledger(place, dataset="registry")
    with ledgers.edited(place) as run:
        run(f"UPDATE entry SET body = {ledgers.literal(b'?')} WHERE position = 6")
    with living.reading(3) as page, pytest.raises(LedgerError, match="changed by hand"):
        page.find([b"first"])


def test_older_rows_put_back_are_noticed_by_a_living_handle(place: str, ledgers: Ledgers) -> None:
    living = Ledger(place, dataset="registry")
    position, _ = living.head()
    buy(living, "new")
    with ledgers.edited(place) as run:
        ((chain,),) = run(f"SELECT chain FROM entry WHERE position = {position}")
        run(f"DELETE FROM entry WHERE position > {position}")
        run(f"UPDATE head SET position = {position}, chain = {ledgers.literal(chain)}")
    assert Ledger.open_existing(place).spent().epsilon == pytest.approx(0.3)
    for use in (living.spent, living.history, lambda: buy(living, "newer")):
        with pytest.raises(LedgerError, match="lost entries, or was replaced by an older copy"):
            use()
    # going on from the older rows makes others of the same number, which are no better
    buy(Ledger.open_existing(place), "another")
    with pytest.raises(LedgerError, match=r"lost entries|changed by hand"):
        living.spent()


@pytest.fixture
def long(ledgers: Ledgers, monkeypatch: pytest.MonkeyPatch) -> str:
    """A ledger of which a new reader follows the last two rows of nine."""
    monkeypatch.setattr(rows, "_NEWEST", 2)
    place = ledgers.place("long")
    make_three(place)
    with Ledger.open_existing(place).answering(3) as page:
        page.add([(b"third", b"0"), (b"fourth", b"0")])
    return place


@pytest.mark.parametrize(
    ("edit", "read"),
    [
        ("UPDATE entry SET terms = replace(terms, '0.1', '0.01') WHERE position = 1", "history"),
        ("UPDATE entry SET key = {byte} WHERE position = 3", "history"),
        ("UPDATE entry SET reservation = 9 WHERE position = 1", "history"),
        ("UPDATE entry SET sums = '9 9 9' WHERE position = 4", "history"),
        ("UPDATE entry SET body = {byte} WHERE position = 6", "find"),
        ("UPDATE entry SET body = {byte} WHERE position = 6", "parts"),
    ],
)
def test_an_edit_of_an_older_row_is_noticed_where_it_is_read_and_by_check(
    long: str, ledgers: Ledgers, edit: str, read: str
) -> None:
    with ledgers.edited(long) as run:
        run(edit.format(byte=ledgers.literal(b"?")))
    ledger = Ledger.open_existing(long)
    assert ledger.spent().epsilon == pytest.approx(0.3)
    reads = {
        "history": lambda _: ledger.history(),
        "find": lambda page: page.find([b"first"]),
        "parts": lambda page: page.parts(),
    }
    with ledger.reading(3) as page, pytest.raises(LedgerError, match="by hand"):
        reads[read](page)
    with pytest.raises(LedgerError, match="changed by hand at entry"):
        ledger.check()


@pytest.mark.parametrize(
    "edit",
    [
        *(f"DELETE FROM entry WHERE position = {position}" for position in (1, 6, 8)),
        "UPDATE entry SET position = 99 WHERE position = 7",
    ],
)
def test_a_row_that_is_gone_is_noticed_however_old_it_is(
    long: str, ledgers: Ledgers, edit: str
) -> None:
    with ledgers.edited(long) as run:
        run(edit)
    assert "has lost entries" in refusal(long)


def test_what_is_spent_is_read_from_the_newest_row_and_is_what_all_rows_come_to(
    long: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = Ledger.open_existing(long)
    monkeypatch.setattr(rows, "_NEWEST", 10**6)
    whole = Ledger.open_existing(long)
    assert short.spent() == whole.spent()
    assert short.releases() == whole.releases() == 3
    assert short.head() == whole.head()
    short.check()


@pytest.mark.parametrize(
    ("loss", "failure", "held"),
    [
        *((2.0, 1.0, True), (1 - 1e-10, 1 - 1e-10, True)),  # of another machine's arithmetic
        *((1 - 2e-9, 1.0, False), (1.0, 1 - 2e-9, False)),
    ],
)
def test_sums_that_are_too_low_are_noticed_though_the_chain_is_whole(
    ledgers: Ledgers, monkeypatch: pytest.MonkeyPatch, loss: float, failure: float, held: bool
) -> None:
    place, costs = ledgers.place("cheap"), BasicFilter.costs
    ledger = Ledger(place, dataset="registry", budget=BUDGET)

    def other(*given: Any) -> Totals:
        full = costs(*given)
        return Totals(1, full.loss * Fraction(loss), full.failure * Fraction(failure))

    with monkeypatch.context() as patch:
        patch.setattr(BasicFilter, "costs", other)
        buy(ledger, "cheap")
    with nullcontext() if held else pytest.raises(LedgerError, match="by hand at entry 1"):
        Ledger.open_existing(place)
