"""A service whose ledger is in a PostgreSQL database: the same answers, and a clear refusal while
the server is down."""

import uuid
from pathlib import Path
from typing import Any

import pytest
from campaigns.postgres_proxy import PostgresProxy
from served_places import QUERIES, TestClient, made_place
from test_answering import QUESTIONS, points, problem

import secretballot as sb
from secretballot.core.ledger import postgres
from secretballot.service.app import application


def test_a_database_that_goes_down_is_refused_and_comes_back_with_all_answers(
    postgres_server: Any, tmp_path: Path
) -> None:
    url = postgres_server.url(schema=f"service_{uuid.uuid4().hex[:12]}")
    place = made_place(tmp_path, ledger_at=url)
    key = place.key()
    with TestClient(application(place.settings, opened=True)) as client:
        first = client.post(QUESTIONS, json={"points": points(3)}, headers=key)
        assert first.status_code == 200, first.text
        assert first.json()["left"] == QUERIES - 3
        assert client.get("/health/ready").status_code == 200
        postgres_server.kill()
        try:
            refused = client.post(QUESTIONS, json={"points": points(2, 40)}, headers=key)
            problem(refused, "ledger-unavailable")
            assert "postgres" not in refused.text
        finally:
            postgres_server.start()
        again = client.post(QUESTIONS, json={"points": points(3)}, headers=key)
        assert again.json() == first.json()
        assert client.get("/v1/key", headers=key).json()["asked"] == {"registry": 3}
        certificate = client.get(
            "/v1/datasets/registry/sessions/session/certificate", headers=key
        ).json()
        assert sb.verify_certificate(certificate).ok
    ledger = sb.Ledger.open_existing(url)
    ledger.check()
    assert len(ledger.history()) == 2


def test_a_database_that_hangs_is_refused_and_comes_back(
    postgres_server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LOOK_S", "SILENCE_S"):
        monkeypatch.setattr(postgres, name, 0.8)
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
