"""Edits by hand, in a file and in a database: refused while the guards stand, noticed where they
were taken away."""

import pytest

from ledger_backends import Ledgers
from secretballot.exceptions import LedgerError
from secretballot.privacy.accounting import PrivacyBudget, PureEvent
from secretballot.privacy.ledger import Ledger

BUDGET = PrivacyBudget(1.0, 1e-5)
PRICE = PrivacyBudget(0.1, 1e-9)


def buy(ledger: Ledger, request: str) -> int:
    return ledger.reserve([PureEvent(0.1, 1)], PRICE, request=request, purpose="test")


@pytest.fixture
def place(ledgers: Ledgers) -> str:
    """A ledger with an answered, a forfeited and an open reservation."""
    place = ledgers.place()
    ledger = Ledger(place, dataset="registry", budget=BUDGET)
    for request in ("answered", "forfeited", "open"):
        buy(ledger, request)
    ledger.commit(1, b"answer")
    ledger.forfeit(2, "broken off")
    with ledger.answering(3) as page:
        page.add([(b"first", b"0"), (b"second", b"1")])
    return place


def refusal(place: str) -> str:
    """Return the one sentence with which opening is refused, the same for both ways to open."""
    said = set()
    for opener in (
        lambda: Ledger(place, dataset="registry", budget=BUDGET),
        lambda: Ledger.open_existing(place),
    ):
        with pytest.raises(LedgerError) as error:
            opener()
        said.add(str(error.value))
    (sentence,) = said
    assert sentence.endswith(".")
    assert "\n" not in sentence
    return sentence


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM reservation",
        "DELETE FROM closing",
        "DELETE FROM account",
        "DELETE FROM head",
        "DELETE FROM part",
        "UPDATE reservation SET epsilon = 0.001",
        "UPDATE reservation SET events = '[]' WHERE id = 1",
        "UPDATE closing SET state = 'committed'",
        "UPDATE closing SET released = {byte}",
        "UPDATE account SET epsilon = 100",
        "UPDATE account SET unit = 'user'",
        "UPDATE account SET neighbours = 'replace-one'",
        "UPDATE head SET position = 0",
        "UPDATE head SET position = 3",
        "UPDATE part SET answer = {byte}",
        (
            "INSERT INTO account SELECT 2, dataset, unit, neighbours, 100, delta, composition,"
            " filter_order, created_at FROM account"
        ),
        (
            "INSERT INTO reservation SELECT 4, position, 'fresh', purpose, events, epsilon, delta,"
            " reserved_at, chain FROM reservation WHERE id = 3"
        ),
        (
            "INSERT INTO reservation SELECT 4, 99, 'fresh', purpose, events, epsilon, delta,"
            " reserved_at, chain FROM reservation WHERE id = 3"
        ),
        (
            "INSERT INTO part SELECT 1, 1, 8, {byte}, {byte}, answered_at, chain FROM part WHERE"
            " number = 1"
        ),
    ],
)
def test_the_tables_themselves_are_append_only(
    place: str, ledgers: Ledgers, statement: str
) -> None:
    before = Ledger.open_existing(place).history()
    with ledgers.open(place) as run, pytest.raises(ledgers.refusal):
        run(statement.format(byte=ledgers.literal(b"0")))
    assert Ledger.open_existing(place).history() == before


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE account SET epsilon = 100",
        "UPDATE account SET delta = 0.5",
        "UPDATE account SET dataset = 'another'",
        "UPDATE account SET composition = 'free'",
        "UPDATE account SET filter_order = 3",
        "UPDATE account SET unit = 'user'",
        "UPDATE account SET neighbours = 'replace-one'",
        "DELETE FROM account",
        "UPDATE reservation SET epsilon = 0.01 WHERE id = 1",
        "UPDATE reservation SET delta = 0 WHERE id = 3",
        "UPDATE reservation SET events = '[]' WHERE id = 2",
        "UPDATE reservation SET request = 'fresh' WHERE id = 2",
        "UPDATE reservation SET purpose = 'other' WHERE id = 3",
        "UPDATE reservation SET reserved_at = '2000-01-01T00:00:00+00:00' WHERE id = 3",
        "UPDATE reservation SET chain = {link} WHERE id = 3",
        "UPDATE reservation SET position = 99 WHERE id = 1",
        "UPDATE closing SET released = {byte} WHERE reservation = 1",
        "UPDATE closing SET released_sha256 = 'none' WHERE reservation = 1",
        "UPDATE closing SET reservation = 3 WHERE reservation = 2",
        "UPDATE closing SET reason = 'other' WHERE reservation = 2",
        "UPDATE closing SET used = '[]' WHERE reservation = 1",
        "DELETE FROM closing WHERE reservation = 2",
        "UPDATE part SET answer = {byte} WHERE number = 1",
        "UPDATE part SET question = {byte} WHERE number = 1",
        "UPDATE part SET reservation = 2 WHERE number = 2",
        "UPDATE part SET number = 7 WHERE number = 2",
        "UPDATE part SET answered_at = '2000-01-01T00:00:00+00:00' WHERE number = 2",
        "DELETE FROM part WHERE number = 2",
        "DELETE FROM part",
        "DELETE FROM reservation WHERE id = 3",
        "DELETE FROM reservation",
        "DELETE FROM head",
        "UPDATE head SET position = 4",
        "UPDATE head SET chain = {link}",
        (
            "INSERT INTO reservation SELECT 4, 8, 'fresh', purpose, events, epsilon, delta,"
            " reserved_at, chain FROM reservation WHERE id = 3"
        ),
    ],
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
        run(f"UPDATE closing SET released = {ledgers.literal(b'?')} WHERE reservation = 1")
    with pytest.raises(LedgerError, match="answer changed by hand"):
        living.released("answered")


def test_older_rows_put_back_are_noticed_by_a_living_handle(place: str, ledgers: Ledgers) -> None:
    living = Ledger(place, dataset="registry")
    position, _ = living.head()
    buy(living, "new")
    with ledgers.edited(place) as run:
        ((chain,),) = run(f"SELECT chain FROM part WHERE position = {position}")
        run("DELETE FROM reservation WHERE request = 'new'")
        run(f"UPDATE head SET position = {position}, chain = {ledgers.literal(chain)}")
    assert Ledger.open_existing(place).spent().epsilon == pytest.approx(0.3)
    for use in (living.spent, living.history, lambda: buy(living, "newer")):
        with pytest.raises(LedgerError, match="lost entries, or was replaced by an older copy"):
            use()
    # going on from the older rows makes others of the same number, which are no better
    buy(Ledger.open_existing(place), "another")
    with pytest.raises(LedgerError, match=r"lost entries|changed by hand"):
        living.spent()
