"""Keys: wrong ones, revoked ones, of other datasets and roles, too fast, and with quotas."""

import sqlite3
from contextlib import closing

import pytest
from served_places import QUERIES, QUESTIONS, TestClient, points, problem

from secretballot.exceptions import LedgerError
from secretballot.service.access import FILE, Access, AuditEntry
from secretballot.service.app import application


def test_a_key_is_kept_as_a_hash_and_found_by_its_token(tmp_path):
    with Access(tmp_path / "state") as keys, Access(tmp_path / "state") as again:
        key, token = keys.add("analyst", ["registry"], owner="Ana", quota=3)
        for file in (tmp_path / "state").iterdir():
            assert token[16:].encode() not in file.read_bytes()
            assert oct(file.stat().st_mode & 0o777) == "0o600"
        assert keys.find(token) == key == again.find(token)
        assert token.startswith(f"sb_{key.id}_")
        wrong = token[:-1] + ("A" if token[-1] != "A" else "B")
        for other in ("", "sb_", wrong, token + "A", token.upper(), f"sb_{'0' * 12}_{'A' * 43}"):
            assert keys.find(other) is None
    assert (key.covers("registry"), key.covers("other")) == (True, False)


def test_wrong_and_revoked_keys_are_told_apart_from_none_by_nothing_else(place):
    body = {"points": points(1)}
    with (
        Access(place.settings.state) as elsewhere,
        TestClient(application(place.settings)) as client,
    ):
        key, token = elsewhere.add("analyst", ["registry"])
        headers = {"Authorization": f"Bearer {token}"}
        for wrong in ({}, {"Authorization": "Bearer sb_wrong"}, {"Authorization": token}):
            found = client.post(QUESTIONS, json=body, headers=wrong)
            problem(found, "no-key")
            assert found.headers["www-authenticate"] == "Bearer"
        assert client.post(QUESTIONS, json=body, headers=headers).status_code == 200
        # by another program, while the service runs
        elsewhere.revoke(key.id)
        found = client.post(QUESTIONS, json=body, headers=headers)
        assert "revoked" in problem(found, "no-key")["detail"]


def test_a_key_of_another_dataset_learns_not_even_which_there_are(place, client):
    headers = place.key(dataset="other")
    said = [
        problem(client.get(f"/v1/datasets/{name}/budget", headers=headers), "wrong-dataset")
        for name in ("registry", "nothing")
    ]
    assert said[0]["detail"] == said[1]["detail"]
    assert client.get("/v1/datasets", headers=headers).json() == {"datasets": []}
    assert client.get("/v1/key", headers=headers).json()["datasets"] == []
    problem(client.get("/v1/datasets/nothing/budget", headers=place.key(dataset="*")), "not-found")


ROLES = {
    "analyst": {"ask", "session", "certificate", "budget", "key"},
    "auditor": {"session", "certificate", "budget", "key", "account", "audit", "metrics"},
    "curator": {"ask", "session", "certificate", "budget", "key", "account", "audit", "metrics"},
}


@pytest.mark.parametrize("role", list(ROLES))
def test_a_role_may_do_what_the_guide_says_and_no_more(shared_place, role, shared_client):
    headers = shared_place.key(role, "*")
    base = "/v1/datasets/registry"
    addresses = {
        "ask": ("POST", QUESTIONS),
        "session": ("GET", f"{base}/sessions/session"),
        "certificate": ("GET", f"{base}/sessions/session/certificate"),
        "budget": ("GET", f"{base}/budget"),
        "key": ("GET", "/v1/key"),
        "account": ("GET", f"{base}/account"),
        "audit": ("GET", f"{base}/audit"),
        "metrics": ("GET", "/metrics"),
    }
    may = set()
    for name, (method, address) in addresses.items():
        given = {"json": {"points": points(1)}} if method == "POST" else {}
        found = shared_client.request(method, address, headers=headers, **given)
        if found.status_code == 200:
            may.add(name)
        else:
            problem(found, "wrong-role")
    assert may == ROLES[role]


def test_a_quota_counts_new_questions_alone_and_takes_or_refuses_a_request_whole(place, client):
    headers = place.key(quota=5)

    def ask(n, start=0):
        return client.post(QUESTIONS, json={"points": points(n, start)}, headers=headers)

    assert ask(3).status_code == 200
    assert ask(3).status_code == 200  # asked before
    assert "5" in problem(ask(6), "quota-spent")["detail"]
    assert ask(1, 50).json()["left"] == QUERIES - 4  # what was refused was not asked
    twice = [points(1, 70)[0]] * 2
    assert client.post(QUESTIONS, json={"points": twice}, headers=headers).status_code == 200
    problem(ask(1, 60), "quota-spent")
    assert ask(3).status_code == 200  # stored answers stay free
    own = client.get("/v1/key", headers=headers).json()
    assert (own["quota"], own["asked"]) == (5, {"registry": 5})
    other = place.key()
    assert client.post(QUESTIONS, json={"points": points(1, 60)}, headers=other).status_code == 200


def test_a_question_that_no_answer_is_left_for_is_not_counted(place, client):
    headers = place.key(quota=100)
    ask = {"points": points(QUERIES + 3)}
    assert client.post(QUESTIONS, json=ask, headers=headers).status_code == 200
    problem(client.post(QUESTIONS, json={"points": points(2, 80)}, headers=headers), "budget-spent")
    assert client.get("/v1/key", headers=headers).json()["asked"] == {"registry": QUERIES}
    rows = client.get("/v1/datasets/registry/audit", headers=place.key("auditor")).json()
    assert [(row["action"], row["points"], row["new"]) for row in rows["rows"]] == [
        ("ask", QUERIES + 3, QUERIES),
        ("ask", 2, 0),
    ]


def test_a_question_that_broke_off_is_asked_again_and_counted_once(place, monkeypatch):
    headers = place.key(quota=4)
    app = application(place.settings)
    stream = app.state.service.datasets["registry"].sessions["session"].session._stream

    def broken(*_):
        raise LedgerError(f"{place.folder} is gone")

    with TestClient(app) as client:
        with monkeypatch.context() as once:
            once.setattr(stream, "answer", broken)
            for _ in range(2):
                found = client.post(QUESTIONS, json={"points": points(3)}, headers=headers)
                assert str(place.folder) not in found.text
                problem(found, "ledger-unavailable")
        again = client.post(QUESTIONS, json={"points": points(3)}, headers=headers)
        assert again.json()["left"] == QUERIES - 3
        assert client.get("/v1/key", headers=headers).json()["asked"] == {"registry": 3}
        # of another session it is another question
        other = QUESTIONS.replace("sessions/session", "sessions/sparse")
        found = client.post(other, json={"points": points(2)}, headers=headers)
        problem(found, "quota-spent")


def test_the_audit_log_is_append_only(tmp_path):
    with Access(tmp_path) as log, closing(sqlite3.connect(tmp_path / FILE)) as connection:
        with log.admitting() as admit:
            for number in range(3):
                admit(AuditEntry(f"r{number}", "key", "download", "registry", "session"), (), None)
        assert [row.request_id for row in log.rows("registry", after=1, most=9)] == ["r1", "r2"]
        assert log.rows("other", after=0, most=9) == []
        for statement in ("UPDATE entry SET new = 0", "DELETE FROM entry"):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                connection.execute(statement)


def test_two_workers_share_one_count(tmp_path):
    entry = AuditEntry("r", "key", "ask", "registry", "session", 3)
    admitted = []
    with Access(tmp_path) as one, Access(tmp_path) as other:
        for log, new in ((one, b"abc"), (other, b"def"), (one, b"ghi"), (one, b"afg")):
            with log.admitting() as admit:
                admitted.append(admit(entry, [bytes([digest]) for digest in new], 7))
        assert admitted == [True, True, False, True]
        assert one.asked("key", "registry") == other.asked("key", "registry") == 7
        rows = one.rows(None, after=0, most=9)
    assert [(row.new, row.outcome) for row in rows] == [
        (3, "admitted"), (3, "admitted"), (0, "quota-spent"), (1, "admitted"),
    ]  # fmt: skip
