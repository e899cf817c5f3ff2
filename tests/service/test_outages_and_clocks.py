"""Ledgers that are gone, databases that are down or hang, and clocks that jump: the right refusal,
and nothing lost."""

import shutil
import time
import uuid
from datetime import datetime, timedelta

import numpy as np
import pytest
from campaigns.postgres_proxy import PostgresProxy
from served_places import QUERIES, QUESTIONS, Place, TestClient, made_place, points, problem

import secretballot as sb
from secretballot.core.ledger import postgres
from secretballot.core.ledger import rows as ledger_rows
from secretballot.exceptions import LedgerError
from secretballot.service import access
from secretballot.service.app import application


def ask(client, key, n, start=0):
    return client.post(QUESTIONS, json={"points": points(n, start)}, headers=key)


def refused_everywhere(client, place, analyst):
    """Look at all that needs the ledger: the right problem, at once, and no word of the place."""
    curator, began = place.key("curator"), time.monotonic()
    found = [
        ask(client, analyst, 1),
        ask(client, analyst, 2, 40),
        *(
            client.get(f"/v1/datasets/registry/{part}", headers=curator)
            for part in ("budget", "account", "sessions/session", "sessions/session/certificate")
        ),
    ]
    for one in found:
        problem(one, "ledger-unavailable")
        assert int(one.headers["retry-after"]) > 0
        assert "version" not in one.text
        assert str(place.folder) not in one.text
        assert "postgres" not in one.text
    assert client.get("/health/live").status_code == 200
    # no look at the ledger that was made a second ago
    client._app.state.service._ready = (-np.inf, False)
    assert client.get("/health/ready").status_code == 503
    # nothing of it is queued
    assert time.monotonic() - began < 10


def test_a_ledger_that_is_gone_is_refused_until_it_is_back(place, client):
    key, ledger = place.key(), place.folder / "registry.ledger"
    first = ask(client, key, 3)
    ledger.rename(ledger.with_name("elsewhere"))
    refused_everywhere(client, place, key)
    ledger.with_name("elsewhere").rename(ledger)
    assert ask(client, key, 3).json() == first.json()


def test_a_database_that_is_down_is_refused_at_once_and_no_service_starts_with_it(
    postgres_server, tmp_path
):
    place = made_place(
        tmp_path, ledger_at=postgres_server.url(schema=f"service_{uuid.uuid4().hex[:12]}")
    )
    key = place.key(quota=3)
    with TestClient(application(place.settings)) as client:
        first = ask(client, key, 2)
        postgres_server.kill()
        try:
            refused_everywhere(client, place, key)
            with pytest.raises(LedgerError, match="cannot be reached"):
                application(place.settings)
        finally:
            postgres_server.start()
        assert ask(client, key, 2).json() == first.json()
        # refusals took nothing of the quota
        assert ask(client, key, 3).status_code == 200
    sb.LabelingSession.reopen(place.folder / "vault").ledger.check()


def test_a_database_that_hangs_is_refused_and_comes_back(postgres_server, tmp_path, monkeypatch):
    proxy = PostgresProxy(postgres_server)
    place = made_place(tmp_path, ledger_at=proxy.url(f"service_{uuid.uuid4().hex[:12]}"))
    key = place.key()
    with TestClient(application(place.settings)) as client:
        client.post(QUESTIONS, json={"points": points(3)}, headers=key)
        proxy.hang()  # for ever, as far as these connections are concerned
        with monkeypatch.context() as soon:  # a busy server that is well may take longer
            soon.setattr(postgres, "_SILENCE_S", 1.0)
            refused = client.post(QUESTIONS, json={"points": points(2, 40)}, headers=key)
        problem(refused, "ledger-unavailable")
        assert refused.headers["retry-after"]
        proxy.heal()
        again = client.post(QUESTIONS, json={"points": points(2, 40)}, headers=key)
        assert again.status_code == 200, again.text
        assert again.json()["left"] == QUERIES - 5
    proxy.close()


@pytest.mark.parametrize("jumps", [timedelta(days=-3650), timedelta(days=36500)])
def test_a_clock_that_jumps_changes_no_answer_and_no_count(place, monkeypatch, jumps):
    place.config.write_text(place.config.read_text() + "\n[answers]\ngrid_seconds = 0.05\n")
    key, real = place.key(quota=4), datetime

    class Jumped(datetime):
        @classmethod
        def now(cls, tz=None):
            return real.now(tz) + jumps

    with TestClient(application(place.settings)) as client:
        first = ask(client, key, 3).json()
        for module in (access, ledger_rows):
            monkeypatch.setattr(module, "datetime", Jumped)
        wall = time.time
        monkeypatch.setattr(time, "time", lambda: wall() + jumps.total_seconds())
        began = time.monotonic()
        assert ask(client, key, 3).json() == first
        # the grid of times goes by another clock: a jump would keep the answer for years
        assert 0.05 <= time.monotonic() - began < 300
        assert ask(client, key, 1, 50).json()["left"] == QUERIES - 4
        problem(ask(client, key, 1, 60), "quota-spent")
        rows = client._app.state.service.access.rows(None, after=0, most=9)
    assert [row.new for row in rows] == [3, 0, 1, 0]
    place.ledger.check()


def test_two_machines_with_copies_of_one_vault_answer_as_one_or_refuse(place, tmp_path):
    other = Place(tmp_path / "other", tmp_path / "other" / "service.toml")
    shutil.copytree(place.folder / "vault", other.folder / "vault")
    shutil.copy(place.config, other.config)
    sparse = QUESTIONS.replace("sessions/session/", "sessions/sparse/")
    with (
        TestClient(application(place.settings)) as one,
        TestClient(application(other.settings)) as two,
    ):
        here, there = place.key(), other.key()
        first = ask(one, here, 3).json()
        both = ask(two, there, 4).json()
        assert both["answers"][:3] == first["answers"]
        assert ask(one, here, 4).json() == both
        assert both["left"] == QUERIES - 4
        # a noisy threshold is in the vault that drew it, and in no copy: nothing is drawn anew
        drawn = one.post(sparse, json={"points": points(2)}, headers=here).json()
        told = two.post(sparse, json={"points": points(2)}, headers=there).json()
        assert told["answers"] == drawn["answers"]
        new = {"points": points(1, 30)}
        problem(two.post(sparse, json=new, headers=there), "ledger-unavailable")
        assert one.post(sparse, json=new, headers=here).json()["left"] == drawn["left"] - 1
    place.ledger.check()
