"""The service as a process: killed while it answers, started again, stopped, with two workers."""

import concurrent.futures
import os
import sqlite3
import threading
import time
from contextlib import closing

import httpx
import numpy as np
import pytest
from campaigns.torture.service import RunningService
from served_places import MARKED_NUMBER, QUESTIONS, made_place, points

import secretballot as sb
from secretballot.core.ledger import sqlite

PATIENCE_S = 300.0  # after which a test gives up; nothing is measured
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="signals of a Unix")


@pytest.fixture
def client():
    """One for all requests: each of its own would read the system's certificates first."""
    with httpx.Client(timeout=PATIENCE_S) as found:
        yield found


def ask(client, url, key, rows):
    """Return the service's answer, None where there is none."""
    try:
        found = client.post(url + QUESTIONS, json={"points": rows}, headers=key)
    except httpx.TransportError:
        return None
    return found.json() if found.status_code == 200 else None


def test_killed_while_it_answers_it_goes_on_with_the_same_answers_and_a_locked_ledger_ends_it(
    tmp_path, client
):
    """What left the house is on the books, word for word, and paid once."""
    place = made_place(tmp_path, queries=3000, more="[listen]\nstop_seconds = 0.3")
    key, got = place.key(), {}
    with RunningService(place.config, workers=1) as service:
        for enough in (20, 40):
            service.start()
            halt = threading.Event()

            def go_on(numbers, halt=halt):
                for number in numbers:
                    if halt.is_set():
                        return
                    document = ask(client, service.url, key, points(1, number))
                    if document is not None:
                        said = document["answers"][0]
                        # an answer that was had before a kill stays the answer
                        assert got.setdefault(number, said) == said

            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                every = [pool.submit(go_on, range(first, 3000, 4)) for first in range(4)]
                end = time.monotonic() + PATIENCE_S
                while len(got) < enough:  # it answers, and is asked
                    assert time.monotonic() < end
                    time.sleep(0.01)
                if enough == 20:
                    service.kill_all()
                halt.set()
                for one in every:
                    one.result()
        session = sb.LabelingSession.reopen(tmp_path / "vault")
        numbers = sorted(got)
        stored = session.stored(np.array([points(1, number)[0] for number in numbers]))
        assert stored.given.all()
        assert stored.labels.tolist() == [got[number]["label"] for number in numbers]
        assert stored.noisy_counts is not None
        assert stored.noisy_counts.tolist() == [got[number]["noisy_count"] for number in numbers]
        # what was stored and not delivered is at most what was under way at the kill
        assert len(got) <= session.used <= len(got) + 4
        assert len(place.ledger.history()) == 2
        place.ledger.check()
        with closing(sqlite3.connect(tmp_path / "registry.ledger", isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            # a look at the ledger waits for the lock, long after the one who asked has left
            question = {"json": {"points": points(1, 3000)}, "headers": key}
            with pytest.raises(httpx.ReadTimeout):
                client.post(service.url + QUESTIONS, timeout=0.5, **question)
            assert service.stop(sqlite._WAIT_S / 2) == 0


def test_two_workers_answer_from_one_ledger_and_a_stop_answers_first_what_was_asked(
    tmp_path, client
):
    place = made_place(tmp_path, queries=3000)
    key, scratch = place.key("curator", "*"), tmp_path / "scratch"
    with RunningService(place.config) as running, concurrent.futures.ThreadPoolExecutor(4) as pool:
        running.wait_for(2)

        def answers(_):
            return [ask(client, running.url, key, points(1, number)) for number in range(20)]

        # the same points by four, at once: one answer each
        every = list(pool.map(answers, range(4)))
        said = [[one and one["answers"] for one in each] for each in every]
        assert all(said[0])
        assert said[0] == said[1] == said[2] == said[3]
        # the numbers of all workers together, in a folder that goes with the service
        metrics = client.get(running.url + "/metrics", headers=key).text
        labels = 'dataset="registry",session="session"'
        assert f"secretballot_questions_total{{{labels}}} 80.0" in metrics
        assert list(scratch.glob("secretballot-numbers-*/counter_*.db"))
        late = pool.submit(ask, client, running.url, key, points(600, 100))
        time.sleep(0.15)
        assert running.stop() == 0
        # it was under way, or refused before it began: in no case cut off
        used = sb.LabelingSession.reopen(tmp_path / "vault").used
        assert (late.result() is None, used) in ((True, 20), (False, 620))
        assert not list(scratch.iterdir())
        log = running.log.read_text()
    assert log.index("startup complete") < log.index("shutdown complete")
    assert str(MARKED_NUMBER) not in log
