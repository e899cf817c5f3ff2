"""A service whose ledger is in a PostgreSQL database: the same answers, and a clear refusal while
the server is down."""

import uuid
from pathlib import Path
from typing import Any

import pytest
from campaigns.postgres_proxy import PostgresProxy
from served_places import QUERIES, TestClient, made_place
from test_answering import QUESTIONS, points, problem

from secretballot.core.ledger import postgres
from secretballot.service.app import application


def test_a_database_that_hangs_is_refused_and_comes_back(
    postgres_server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "SILENCE_S", 1.6)
    proxy = PostgresProxy(postgres_server)
    place = made_place(tmp_path, ledger_at=proxy.url(f"service_{uuid.uuid4().hex[:12]}"))
    key = place.key()
    with TestClient(application(place.settings, opened=True)) as client:
        client.post(QUESTIONS, json={"points": points(3)}, headers=key)
        proxy.hang()  # for ever, as far as these connections are concerned
        refused = client.post(QUESTIONS, json={"points": points(2, 40)}, headers=key)
        problem(refused, "ledger-unavailable")
        assert refused.headers["retry-after"]
        proxy.heal()
        again = client.post(QUESTIONS, json={"points": points(2, 40)}, headers=key)
        assert again.status_code == 200, again.text
        assert again.json()["left"] == QUERIES - 5
    proxy.close()
