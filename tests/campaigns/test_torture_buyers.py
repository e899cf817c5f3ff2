"""The campaign against a ledger, in small; and that it finds what it looks for."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from campaigns.postgres_server import PostgresServer, reason_for_none
from campaigns.torture import buyers

from secretballot.core.ledger import Ledger, postgres
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


@pytest.mark.slow
@pytest.mark.skipif(bool(reason_for_none()), reason="no PostgreSQL")
def test_commits_that_are_not_durable_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server writes its log once in 10 s, and is killed as soon as a purchase was noted. A kill
    finds nothing if the server has written between the two: even if each kill came a second late,
    all of ten with probability 1e-10."""
    begin, fork = postgres._begin_transaction, buyers._fork
    noted = [0]

    class Server(PostgresServer):
        def __init__(self) -> None:
            super().__init__("wal_writer_delay = 10s")

        def kill(self) -> None:
            until = time.monotonic() + 60  # longer than any purchase takes
            while (size := sum(note.stat().st_size for note in tmp_path.glob("*/*/*"))) <= noted[0]:
                assert time.monotonic() < until
                time.sleep(0.005)
            noted[0] = size
            super().kill()

        def remove(self) -> None:
            super().kill()  # nobody buys any more
            super().remove()

    def begin_forgetful(connection: Any, *rest: Any) -> None:
        begin(connection, *rest)
        connection.execute("SET LOCAL synchronous_commit = off")

    def fork_forgetful(work: Callable[[], None]) -> int:
        def forget() -> None:
            postgres._begin_transaction = begin_forgetful
            work()

        return fork(forget)

    monkeypatch.setattr(buyers, "_fork", fork_forgetful)
    monkeypatch.setattr(buyers, "_EVERY", 1)
    monkeypatch.setattr(buyers, "ROOM", 40)
    faults: list[str] = []
    for turn in range(5):
        if not faults:
            with Server() as server:
                _, faults = buyers.buyers_killed(2, turn, tmp_path / str(turn), server)
    assert any(fault.startswith(("lost", "unpaid", "refused")) for fault in faults)
