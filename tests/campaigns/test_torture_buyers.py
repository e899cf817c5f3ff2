"""The campaign against a ledger, in small; and that it finds what it looks for."""

from collections import Counter
from pathlib import Path

import pytest
from campaigns.postgres_server import PostgresServer
from campaigns.torture import buyers

from secretballot.core.ledger import Ledger
from secretballot.exceptions import LedgerError


def test_a_crowd_at_one_ledger_cannot_overspend(tmp_path: Path) -> None:
    counts, faults = buyers.buyers_killed(4, 0, tmp_path, crowd=8)
    assert faults == []
    assert counts["purchases"] == buyers.ROOM * counts["ledgers"]


def test_kills_of_buyers_and_of_the_server_lose_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgres_server: PostgresServer
) -> None:
    monkeypatch.setattr(buyers, "ROOM", 40)
    counts, faults = buyers.buyers_killed(4, 3, tmp_path, postgres_server)
    assert faults == []
    assert (counts["kills of buyers"], counts["kills of the server"]) == (3, 1)
    assert counts["purchases"] == 40 * counts["ledgers"]


def test_a_server_that_is_away_is_no_fault_and_the_refusal_of_a_trigger_is_one(
    postgres_server: PostgresServer,
) -> None:
    ledger = Ledger(postgres_server.url(schema="away"), dataset="d", budget=buyers.PRICE)

    def away_after(statement: str) -> bool:
        with pytest.raises(LedgerError) as refused, ledger._store.begun(write=True) as connection:
            connection.execute(statement)
        return buyers._server_was_away(refused.value)

    assert not away_after("DELETE FROM account")
    assert not away_after("SELECT 1 FROM nowhere")
    postgres_server.kill()
    # on a connection that rested, and on none
    found = [away_after("SELECT 1"), away_after("SELECT 1")]
    postgres_server.start()
    assert found == [True, True]


def test_books_that_differ_from_what_was_noted_are_found(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "x.ledger", dataset="crowded", budget=buyers.PRICE)
    ledger.reserve(buyers.EVENTS, buyers.PRICE, request="plan", purpose="torture")
    said = ("drawn r1 a", "answered r1 a", "given q1 b", "refused 3 no_such_row", "given q2")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "3").write_text("\n".join(said))
    faults = buyers._faults_in(str(tmp_path / "x.ledger"), tmp_path / "notes", Counter())
    assert [fault.partition(":")[0] for fault in faults] == [
        "overspent or not used up", "refused", "unpaid", "lost", "lost or different",
    ]  # fmt: skip
