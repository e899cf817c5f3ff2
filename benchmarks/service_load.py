"""Requests a second and times of the service, beside a handler of FastAPI that writes one row a
request into an SQLite file with the same journal, and nothing else.

Run it as `python benchmarks/service_load.py [SECONDS [LEDGER]]`, with the URL of a PostgreSQL
schema for a ledger in a database. Both servers run all the time and are asked in turns, so that
ratios say more than figures on a machine that others use too; so does the time of the processors
that a server used for a request. The client speaks HTTP over plain sockets.
"""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import asyncio
import itertools
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

import secretballot as sb
from secretballot.core.mechanisms import NoisyVotes
from secretballot.service.access import Access

QUESTIONS = "/v1/datasets/registry/sessions/session/questions"
PLANNED = 2_000_000
K = 100
TURNS = 3  # of each case
PLAIN = """
import json, socket, sqlite3, sys
import uvicorn
from fastapi import FastAPI, Request, Response

app = FastAPI(docs_url=None, redoc_url=None)
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("PRAGMA journal_mode = persist")
database.execute("PRAGMA synchronous = EXTRA")
database.execute("CREATE TABLE asked (question TEXT, label INTEGER)")

@app.post("/v1/datasets/{dataset}/sessions/{session}/questions")
async def questions(request: Request, dataset: str, session: str) -> Response:
    given = json.loads(await request.body())["points"]
    database.execute("INSERT INTO asked VALUES (?, 1)", (json.dumps(given[0]),))
    answer = {"label": 1, "given": True, "abstained": False, "noisy_count": None}
    document = {"dataset": dataset, "session": session, "answers": [answer] * len(given), "left": 1}
    return Response(json.dumps(document), media_type="application/json")

listening = socket.socket()
listening.bind(("127.0.0.1", 0))
print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False)).run(sockets=[listening])
"""


class Server(NamedTuple):
    """A server that was started: its port and its process."""

    port: int
    process: int

    def processor_seconds(self) -> float:
        """Return what it has used of the processors."""
        fields = Path(f"/proc/{self.process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Case(NamedTuple):
    """What is asked: points of a request, by so many connections at once, new or known ones."""

    connections: int
    size: int = 1
    known: bool = False

    def __str__(self) -> str:
        points = "one point" if self.size == 1 else f"{self.size} points"
        return f"{'asked before' if self.known else 'new'}, {points}"


CASES = (Case(1), Case(64), Case(256), Case(8, 100), Case(64, known=True), Case(8, 100, known=True))


def prepare(folder: Path, ledger_at: str | None = None) -> str:
    """Train teachers, begin a session of many questions, and return a key."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 3))
    known = {"classes": [0, 1], "n_teachers": K, "vault": folder / "vault"}
    teachers = sb.train_teachers("logistic", X, (X[:, 0] > 0).astype(int), **known)
    counts = NoisyVotes(scale=9.0 * PLANNED**0.5, release="counts")
    event = counts.event(teachers.shape(PLANNED))
    price = sb.PrivacyBudget(sb.accounting.epsilon_upper((event,), 1e-6), 1e-6)
    place, whole = ledger_at or folder / "x.ledger", sb.PrivacyBudget(1e4, 0.1)
    ledger = sb.Ledger(place, dataset="x", budget=whole)
    sb.LabelingSession(teachers, counts, ledger, price, n_queries=PLANNED)
    (folder / "service.toml").write_text(
        '[datasets.registry]\nvault = "vault"\n[limits]\nanswer_seconds = 60.0\n'
    )
    with Access(folder / "service-state") as access:
        return access.add("analyst", ["registry"])[1]


@contextmanager
def serving(*command: str) -> Iterator[Server]:
    """Start a server of this Python, which prints its address once it has bound it."""
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with subprocess.Popen([sys.executable, *command], **given) as process:
        said = re.search(r":(\d+)\s*$", process.stdout.readline())
        try:
            yield Server(int(said[1]), process.pid)
        finally:
            process.send_signal(signal.SIGTERM)


def request_of(points: list[list[float]], key: str) -> bytes:
    """Return a request for these points."""
    body = json.dumps({"points": points}).encode()
    head = (
        f"POST {QUESTIONS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def asked(
    server: Server, requests: Iterator[bytes], connections: int, s: float
) -> list[float]:
    """Ask for so many seconds, one request after the other on each connection; return the time of
    each."""
    times, end = list[float](), time.perf_counter() + s

    async def ask() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        while (began := time.perf_counter()) < end:
            writer.write(next(requests))
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"(?i)content-length: (\d+)", head)
            body = await reader.readexactly(int(length[1]))
            assert head.startswith(b"HTTP/1.1 200"), body
            times.append(time.perf_counter() - began)
        writer.close()

    await asyncio.gather(*(ask() for _ in range(connections)))
    return times


def requests_of(case: Case, key: str, number: Iterator[int]) -> Iterator[bytes]:
    """Yield requests for points that were never asked, or for the same again and again."""
    if case.known:
        points = ([[float(n), 0.5, 0.25]] * case.size for n in range(64))
        return itertools.cycle([request_of(one, key) for one in points])
    return (
        request_of([[float(next(number)), 0.5, 0.25] for _ in range(case.size)], key)
        for _ in itertools.count()
    )


def main(seconds: float, ledger_at: str | None) -> None:
    """Print one row for each case and server."""
    print(
        "| case | connections | server | requests/s | of the handler's | p50 ms | p99 ms |", end=""
    )
    print(" processor ms |\n" + "|---" * 8 + "|")
    with tempfile.TemporaryDirectory() as place:
        folder, number = Path(place), itertools.count(1000)
        (folder / "plain.py").write_text(PLAIN)
        key = prepare(folder, ledger_at)
        own = ["-m", "secretballot", "serve", "start", "--config", str(folder / "service.toml")]
        with (
            serving(str(folder / "plain.py"), str(folder / "plain.sqlite")) as plain,
            serving(*own, "--port", "0") as service,
        ):
            servers = {"handler": plain, "service": service}
            for server in servers.values():  # until both answer
                _wait_until_it_answers(server, key)
            for case in CASES:
                _measure(case, servers, requests_of(case, key, number), seconds)


def _wait_until_it_answers(server: Server, key: str) -> None:
    once = itertools.repeat(request_of([[0.0, 0.5, 0.25]], key))
    for _ in range(600):
        try:
            return asyncio.run(asked(server, once, 1, 0.1)) and None
        except OSError:
            time.sleep(0.1)
    raise SystemExit("a server does not start")


def _measure(
    case: Case, servers: dict[str, Server], requests: Iterator[bytes], seconds: float
) -> None:
    times = {name: list[float]() for name in servers}
    used, took = dict.fromkeys(servers, 0.0), dict.fromkeys(servers, 0.0)
    for _ in range(TURNS):
        for name, server in servers.items():
            before, began = server.processor_seconds(), time.perf_counter()
            times[name] += asyncio.run(asked(server, requests, case.connections, seconds))
            # to the last answer: of a slow server many come late
            took[name] += time.perf_counter() - began
            used[name] += server.processor_seconds() - before
    rates = {name: len(found) / took[name] for name, found in times.items()}
    for name, found in times.items():
        p50, p99 = (1000 * np.quantile(found, share) for share in (0.5, 0.99))
        print(
            f"| {case} | {case.connections} | {name} | {rates[name]:.0f}"
            f" | {rates[name] / rates['handler']:.2f} | {p50:.1f} | {p99:.1f}"
            f" | {1000 * used[name] / len(found):.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    given = sys.argv[1:3]
    main(float(given[0]) if given else 2.0, given[1] if len(given) > 1 else None)
