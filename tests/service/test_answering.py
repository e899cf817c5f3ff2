"""Questions over HTTP: the session's answers, once paid, in one shape; refusals as problems."""

import asyncio
import sqlite3
import threading
import time

import httpx
import numpy as np
import pytest
from served_places import (
    MARKED_NUMBER,
    QUERIES,
    QUESTIONS,
    Place,
    TestClient,
    points,
    problem,
    sent,
)

import secretballot as sb
from secretballot.learners.inputs import question_digests
from secretballot.service.app import application
from secretballot.service.problems import ProblemError
from secretballot.service.served import Collector
from secretballot.service.settings import Limits


def test_answers_have_one_shape_and_a_preview_says_what_a_request_would_take(place, client):
    """That they are those of the session, and are paid once: `test_remote`."""
    key = place.key()
    answered = client.post(QUESTIONS, json={"points": points(2)}, headers=key).json()
    shape = {"label", "given", "abstained", "noisy_count"}
    assert [set(answer) for answer in answered["answers"]] == [shape] * 2
    asked = {"points": [*points(3), points(1, 2)[0]]}
    for _ in range(2):
        found = client.post(QUESTIONS.replace("questions", "preview"), json=asked, headers=key)
        assert found.json() == {"stored": 2, "new": 1, "left": QUERIES - 2}


def test_questions_that_come_together_are_answered_in_one_transaction(place):
    """While the first is answered all others wait, and are the second group."""
    key, app = place.key(), application(place.settings)

    before = place.ledger.head()[0]
    found = sent(app, key, *({"json": {"points": [one]}} for one in points(QUERIES)))
    assert [response.status_code for response in found] == [200] * QUERIES
    session = sb.LabelingSession.reopen(place.folder / "vault")
    stored = session.stored(np.array(points(QUERIES)))
    assert stored.labels.tolist() == [one.json()["answers"][0]["label"] for one in found]
    assert session.left == 0
    # the ledger remembers who came first, and that is all that decides the order
    assert len(session.transcript().queries) == QUERIES
    assert place.ledger.head()[0] == before + QUERIES


def test_a_question_that_the_ledger_fails_for_fails_alone(place, monkeypatch):
    key, app = place.key(quota=50), application(place.settings)
    stream = app.state.service.datasets["registry"].sessions["session"].session._stream
    given, hurt = stream.answer, points(5)[3]
    digest = question_digests(np.array([hurt]))[0]

    def broken(counts, questions, *rest):
        if digest in questions:
            raise sb.LedgerError(f"{place.folder} says no")
        return given(counts, questions, *rest)

    with monkeypatch.context() as once:
        once.setattr(stream, "answer", broken)
        sent(app, key, {"json": {"points": points(1)}})
        found = sent(app, key, *({"json": {"points": [one]}} for one in points(5)))
    assert [response.status_code for response in found] == [200, 200, 200, 503, 200]
    assert "says no" not in problem(found[3], "ledger-unavailable")["detail"]
    session = sb.LabelingSession.reopen(place.folder / "vault")
    assert session.used == 4
    with TestClient(app) as client:
        assert client.post(QUESTIONS, json={"points": [hurt]}, headers=key).status_code == 200
        assert client.get("/v1/key", headers=key).json()["asked"] == {"registry": 5}


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"{", "unreadable"),
        (b"[1, 2]", "unreadable"),
        (b'{"points": []}', "unreadable"),
        (b'{"points": [[1, NaN]]}', "unreadable"),
        (b'{"points": ' + b"[" * 5000 + b"]" * 5000 + b"}", "unreadable"),
        (b"\xff\xfe", "unreadable"),
        (b'{"points": [[1, 2, 3]]}', "wrong-points"),
        (b'{"points": [[1]]}', "wrong-points"),
        (b'{"points": [[1, "two"]]}', "wrong-points"),
        (b'{"points": [[1, 1e999]]}', "wrong-points"),
    ],
)
def test_points_that_cannot_be_asked_cost_nothing(shared_place, body, kind, shared_client):
    key, address = shared_place.key(), QUESTIONS.removesuffix("/questions")
    before = shared_client.get(address, headers=key).json()["used"]
    problem(shared_client.post(QUESTIONS, content=body, headers=key), kind)
    assert shared_client.get(address, headers=key).json()["used"] == before


def test_a_body_without_end_is_refused_while_it_comes(shared_place):
    """Of a gigabyte that does not say how large it is, no more is taken than may come."""
    limit, taken = shared_place.settings.limits.body_bytes, [0]

    async def endless():
        for _ in range(1024):
            taken[0] += 1 << 20
            yield b" " * (1 << 20)

    app = application(shared_place.settings)
    problem(sent(app, shared_place.key(), {"content": endless()})[0], "too-large")
    assert taken[0] <= limit + (2 << 20)


def test_large_bodies_are_read_a_few_at_a_time_and_small_ones_beside_them(
    shared_place, monkeypatch
):
    monkeypatch.setattr("secretballot.service.app._LARGE_BODIES", 2)
    app, key, go = application(shared_place.settings), shared_place.key(), [False]
    begun = []

    async def large(number):
        begun.append(number)
        yield b'{"points": [['
        while not go[0]:
            await asyncio.sleep(0.001)
        yield b"1, 2]]}"

    async def ask():
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
            four = [
                asyncio.create_task(client.post(QUESTIONS, content=large(one), headers=key))
                for one in range(4)
            ]
            small = await client.post(QUESTIONS, json={"points": points(1)}, headers=key)
            assert (small.status_code, len(begun)) == (200, 2)
            go[0] = True
            return [one.status_code for one in await asyncio.gather(*four)]

    assert asyncio.run(ask()) == [200] * 4


def test_a_slow_body_is_cut_off(shared_place):
    config = shared_place.config.with_name("hasty.toml")
    config.write_text(f"{shared_place.config.read_text()}\n[limits]\nbody_seconds = 0.2\n")
    key, app = shared_place.key(), application(Place(shared_place.folder, config).settings)

    async def slow():
        yield b'{"points"'
        await asyncio.sleep(300)

    problem(sent(app, key, {"content": slow()})[0], "too-slow")


def test_an_error_that_nobody_foresaw_is_told_by_nothing_and_logged_by_type_and_place(
    place, monkeypatch, caplog
):
    def broken(*_, **__):
        raise ZeroDivisionError(f"the cell {MARKED_NUMBER}")

    key = place.key(quota=5)
    caplog.set_level(0)
    with TestClient(application(place.settings)) as client:
        with monkeypatch.context() as once:
            once.setattr(sb.TrainedTeachers, "vote", broken)
            found = client.post(QUESTIONS, json={"points": points(2)}, headers=key)
        problem(found, "defect")
        # before a group, too: the framework would print the message
        monkeypatch.setattr("secretballot.service.app.body_of", broken)
        problem(client.post(QUESTIONS, json={"points": points(2)}, headers=key), "defect")
        monkeypatch.setattr("secretballot.service.app.Service.session", broken)
        address = QUESTIONS.removesuffix("/questions")
        problem(client.get(address, headers=key), "defect")
    lines = caplog.messages
    troubles = [line for line in lines if "ZeroDivisionError" in line]
    assert len(troubles) >= 3
    assert "test_answering.py" in troubles[0] or "session.py" in troubles[0]
    for text in (*lines, found.text):
        assert str(MARKED_NUMBER) not in text


def test_no_private_cell_is_said_or_logged(place, capsys, caplog):
    key = place.key("curator", "*")
    caplog.set_level(0)
    texts = []
    with TestClient(application(place.settings)) as client:
        openapi = client.get("/openapi.json").json()
        for path in openapi["paths"]:
            address = path.format(dataset="registry", session="session", release="x", name="x")
            texts.append(client.get(address, headers=key).text)
        texts.append(client.post(QUESTIONS, json={"points": points(3)}, headers=key).text)
        texts.append(client.post(QUESTIONS, content=b"{", headers=key).text)
    texts += [str(record.__dict__) for record in caplog.records]
    out = capsys.readouterr()
    state = b"".join(
        one.read_bytes() for one in (place.folder / "state").rglob("*") if one.is_file()
    ).decode(errors="replace")
    for text in (*texts, out.out, out.err, state):
        assert str(MARKED_NUMBER) not in text
    assert len(texts) > 15


class Recorder:
    """Answers with what was asked, in groups that it remembers, and waits where it is told to."""

    def __init__(self):
        self.groups = []
        self.go = threading.Event()
        self.go.set()

    def __call__(self, group):
        self.groups.append(list(group))
        assert self.go.wait(300)
        return [ProblemError("busy", "odd") if one % 2 else one for one in group]

    async def begun(self):
        """Wait until a group is being answered."""
        while not self.groups:
            await asyncio.sleep(0.001)


def collector(answer, **given):
    limits = Limits(group_points=4, waiting=100, answer_seconds=300.0)
    return Collector(answer, limits.changed(**given))


def test_what_comes_while_a_group_is_answered_is_the_next_group_in_its_order():
    recorder = Recorder()

    async def ask():
        gathered = collector(recorder)
        recorder.go.clear()
        first = asyncio.create_task(gathered.ask(0, 1))
        await recorder.begun()
        others = [asyncio.create_task(gathered.ask(number, 1)) for number in (8, 2, 5, 6, 4)]
        await asyncio.sleep(0)
        recorder.go.set()
        found = await asyncio.gather(first, *others, return_exceptions=True)
        await gathered.close()
        return found

    found = asyncio.run(ask())
    assert recorder.groups == [[0], [8, 2, 5, 6], [4]]
    assert [one for one in found if not isinstance(one, ProblemError)] == [0, 8, 2, 6, 4]
    assert isinstance(found[3], ProblemError)


def test_a_failure_of_any_kind_is_one_answer_and_the_next_group_is_answered():
    class Panic(BaseException):
        """As compiled code raises."""

    def answer(group):
        if 0 in group:
            raise Panic
        return group

    async def ask():
        gathered = collector(answer)
        with pytest.raises(ProblemError):
            await gathered.ask(0, 1)
        found = await gathered.ask(2, 1)
        await gathered.close()
        return found

    assert asyncio.run(ask()) == 2


def test_more_than_may_wait_is_refused_at_once_and_who_left_takes_no_place():
    recorder = Recorder()

    async def ask():
        gathered = collector(recorder, waiting=3)
        recorder.go.clear()
        first = asyncio.create_task(gathered.ask(0, 1))
        await recorder.begun()
        left = asyncio.create_task(gathered.ask(2, 3))
        await asyncio.sleep(0)
        with pytest.raises(ProblemError) as refused:
            await gathered.ask(4, 1)
        assert refused.value.kind == "busy"
        left.cancel()
        await asyncio.wait([left])
        other = asyncio.create_task(gathered.ask(6, 3))
        await asyncio.sleep(0)
        recorder.go.set()
        found = await asyncio.gather(first, other)
        await gathered.close()
        return found

    assert asyncio.run(ask()) == [0, 6]
    assert recorder.groups == [[0], [6]]


def test_a_locked_ledger_refuses_and_does_not_queue(place):
    place.config.write_text(place.config.read_text() + "\n[limits]\nanswer_seconds = 0.4\n")
    key, app = place.key(), application(place.settings)
    lock = sqlite3.connect(place.folder / "registry.ledger", isolation_level=None)

    async def ask():
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
            lock.execute("BEGIN EXCLUSIVE")
            began = time.monotonic()
            found = await client.post(QUESTIONS, json={"points": points(1)}, headers=key)
            assert int(found.headers["retry-after"]) > 0
            problem(found, "ledger-unavailable")
            assert time.monotonic() - began < 20  # the ledger itself would wait longer
            again = await client.post(QUESTIONS, json={"points": points(1, 5)}, headers=key)
            problem(again, "ledger-unavailable")
            ready = await client.get("/health/ready")
            assert ready.status_code == 503
            lock.execute("ROLLBACK")
            async with asyncio.timeout(300):
                while True:
                    later = await client.post(QUESTIONS, json={"points": points(1)}, headers=key)
                    if later.status_code == 200:
                        break
                    await asyncio.sleep(0.1)
            assert later.json()["left"] in (10, 11)

    asyncio.run(ask())
    lock.close()
