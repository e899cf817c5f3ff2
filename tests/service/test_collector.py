"""Group commit: what comes together is answered together, in order, and nothing queues behind a
ledger that does not answer."""

import asyncio
import sqlite3
import threading
import time
from collections.abc import Sequence
from typing import Any

import httpx
import pytest
from served_places import QUESTIONS, Place
from test_answering import points, problem

from secretballot.service.app import application
from secretballot.service.collector import Collector
from secretballot.service.problems import ProblemError
from secretballot.service.settings import Limits


class Recorder:
    """Answers with what was asked, in groups that it remembers, and waits where it is told to."""

    def __init__(self) -> None:
        self.groups: list[list[int]] = []
        self.go = threading.Event()
        self.go.set()

    def __call__(self, group: Sequence[int]) -> list[int | ProblemError]:
        self.groups.append(list(group))
        assert self.go.wait(300)
        return [ProblemError("busy", "odd") if one % 2 else one for one in group]

    async def begun(self) -> None:
        """Wait until a group is being answered."""
        while not self.groups:
            await asyncio.sleep(0.001)


def collector(answer: Any, **given: Any) -> Collector:
    limits = Limits(group_points=4, waiting=100, answer_seconds=300.0)
    return Collector(answer, limits.changed(**given))


def test_what_comes_while_a_group_is_answered_is_the_next_group_in_its_order() -> None:
    recorder = Recorder()

    async def ask() -> list[Any]:
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


def test_more_than_may_wait_is_refused_at_once_and_who_left_takes_no_place() -> None:
    recorder = Recorder()

    async def ask() -> list[int]:
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


def test_a_locked_ledger_refuses_and_does_not_queue(place: Place) -> None:
    place.config.write_text(place.config.read_text() + "\n[limits]\nanswer_seconds = 0.4\n")
    key, app = place.key(), application(place.settings)
    lock = sqlite3.connect(place.folder / "registry.ledger", isolation_level=None)

    async def ask() -> None:
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
